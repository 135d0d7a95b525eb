#include "cli/config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/options.h"
#include "cli/output.h"

#define FILE_MAX ((size_t)1 << 20)

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The text without blanks at its ends; it is changed. */
static char *trim(char *text)
{
	size_t n;

	while (is_blank(*text))
		text++;
	n = strlen(text);
	while (n && is_blank(text[n - 1]))
		text[--n] = '\0';
	return text;
}

/* As a shell would take it: 'libc:malloc size=%di' means what is between its quotes. */
static char *unquote(char *value)
{
	const size_t n = strlen(value);

	if (n < 2 || (*value != '\'' && *value != '"') || value[n - 1] != *value ||
	    strchr(value + 1, *value) != value + n - 1)
		return value;
	value[n - 1] = '\0';
	return value + 1;
}

/* "--buffer=64M" and "-p SPEC" are an option and its value; `line` is cut after the option. NULL: there is none. */
static char *cut_value(char *line)
{
	char *end = line + strcspn(line, " \t");
	char *value;

	if (!*end)
		return NULL;
	*end = '\0';
	value = unquote(trim(end + 1));
	return *value ? value : NULL;
}

static int take_line(char *line, const struct cli_options *options, int id, cli_config_take *take, void *data)
{
	char command[] = "", *value, *argv[] = { command, line, NULL, NULL };
	struct cli_options of_line = *options;
	int found;

	if (*line != '-')
		return cli_usage(options->command, "'%s' is no option; a line is one, such as -p libc:malloc", line);
	value = cut_value(line);
	argv[2] = value;
	of_line.argc = value ? 3 : 2;
	of_line.argv = argv;
	of_line.at = 1;
	found = cli_options_next(&of_line);
	switch (found) {
	case CLI_HELP:
		return cli_usage(options->command, "--help belongs on the command line");
	case CLI_WRONG:
		return 2;
	case CLI_OPERAND:
	case CLI_END:
		return cli_usage(options->command, "'%s' is no option", line);
	}
	if (found == id)
		return cli_usage(options->command, "a file of options cannot name another one");
	if (of_line.at < of_line.argc || (of_line.cluster && *of_line.cluster))
		return cli_usage(options->command, "option '%s' takes no value, and a line has one option", line);
	return take(data, found, of_line.value);
}

static struct kymo_error *read_config_file(const char *path, char **ret, size_t *size_ret)
{
	int err = !strcmp(path, "-") ? kymo_read_fd(STDIN_FILENO, FILE_MAX, ret, size_ret)
				     : kymo_read_file(AT_FDCWD, path, FILE_MAX, ret, size_ret);

	if (err)
		return kymo_error_errno(-err, "cannot read options from %s", path);
	if (memchr(*ret, '\0', *size_ret))
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is no text: it has a NUL byte", path);
	return NULL;
}

int cli_config_read(struct cli_config *config, const char *path, const struct cli_options *options, int id,
		    cli_config_take *take, void *data)
{
	struct kymo_error *error;
	unsigned int number = 0;
	size_t size;
	int status = 0;

	if (config->text)
		return cli_usage(options->command,
				 "one file of options is enough; put the lines of %s into the first one", path);
	error = read_config_file(path, &config->text, &size);
	if (error)
		return cli_fail(options->command, error);
	for (char *rest = config->text; rest && !status;) {
		char *line = trim(strsep(&rest, "\n"));

		number++;
		if (!*line || *line == '#')
			continue;
		status = take_line(line, options, id, take, data);
		if (status)
			fprintf(stderr, "kymo: this is line %u of %s\n", number, path);
	}
	return status;
}

void cli_config_deinit(struct cli_config *config)
{
	free(config->text);
}
