#include "cli/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/nearest.h"
#include "cli/help.h"
#include "cli/output.h"
#include "sym/demangle.h"

/* Words longer than KYMO_EDITED_MAX are far from everything. */
static size_t distance_of(const char *a, const char *b)
{
	const size_t n = strlen(a), m = strlen(b);

	return n > KYMO_EDITED_MAX || m > KYMO_EDITED_MAX ? KYMO_EDITED_MAX : kymo_edit_distance(a, n, b, m);
}

const char *cli_nearest(const char *word, const char *const *words, size_t n)
{
	size_t length = strlen(word), limit = length < 3 ? 1 : (length + 2) / 3, best = limit + 1;
	const char *found = NULL;

	for (size_t i = 0; i < n; i++) {
		size_t far = length > 1 && !strncmp(word, words[i], length) ? 0 : distance_of(word, words[i]);

		if (far < best) {
			best = far;
			found = words[i];
		}
	}
	return found;
}

static int unknown_name(const struct cli_options *options, const char *name, size_t length)
{
	const char **names = calloc(options->n + 1, sizeof(*names)), *near = NULL;
	kymo_cleanup_free char *word = strndup(name, length);

	for (size_t i = 0; names && i < options->n; i++)
		names[i] = options->table[i].name;
	if (names && word)
		near = cli_nearest(word, names, options->n);
	if (near)
		cli_usage(options->command, "unknown option '--%.*s'; did you mean '--%s'?", (int)length, name, near);
	else
		cli_usage(options->command, "unknown option '--%.*s'", (int)length, name);
	free(names);
	return CLI_WRONG;
}

/* Take the next word as the value of the option. */
static int take_value(struct cli_options *options, const struct cli_option *option, const char *spelled)
{
	if (options->at >= options->argc) {
		cli_usage(options->command, "option '%s' needs a value: %s %s", spelled, spelled, option->value);
		return CLI_WRONG;
	}
	options->value = options->argv[options->at++];
	return option->id;
}

static int answer_help(const struct cli_options *options)
{
	fputs(cli_help(options->command), stdout);
	return CLI_HELP;
}

static bool needs_value(const struct cli_option *option)
{
	return option->value && *option->value != '=';
}

static int next_long(struct cli_options *options, const char *name)
{
	size_t length = strcspn(name, "=");
	bool given = name[length] == '=';

	if (!given && !strcmp(name, "help"))
		return answer_help(options);
	for (size_t i = 0; i < options->n; i++) {
		const struct cli_option *option = &options->table[i];

		if (strlen(option->name) != length || memcmp(option->name, name, length))
			continue;
		if (needs_value(option) && !given)
			return take_value(options, option, name - 2);
		if (!option->value && given) {
			cli_usage(options->command, "option '--%s' takes no value", option->name);
			return CLI_WRONG;
		}
		options->value = given ? name + length + 1 : NULL;
		return option->id;
	}
	return unknown_name(options, name, length);
}

static int next_letter(struct cli_options *options)
{
	char spelled[3] = { '-', *options->cluster++, '\0' };

	for (size_t i = 0; i < options->n; i++) {
		const struct cli_option *option = &options->table[i];

		if (!option->letter || option->letter != spelled[1])
			continue;
		if (!needs_value(option)) {
			options->value = NULL;
			return option->id;
		}
		if (!*options->cluster)
			return take_value(options, option, spelled);
		options->value = options->cluster;
		options->cluster = NULL;
		return option->id;
	}
	if (spelled[1] == 'h')
		return answer_help(options);
	cli_usage(options->command, "unknown option '%s'", spelled);
	return CLI_WRONG;
}

int cli_options_next(struct cli_options *options)
{
	char *word;

	if (options->cluster && *options->cluster)
		return next_letter(options);
	if (options->at >= options->argc)
		return CLI_END;
	word = options->argv[options->at++];
	if (options->only_operands || word[0] != '-' || !word[1]) {
		options->value = word;
		return CLI_OPERAND;
	}
	if (!strcmp(word, "--")) {
		options->only_operands = true;
		return cli_options_next(options);
	}
	if (!strcmp(word, "--no-demangle")) {
		kymo_show_raw_names();
		return cli_options_next(options);
	}
	if (word[1] == '-')
		return next_long(options, word + 2);
	options->cluster = word + 1;
	return next_letter(options);
}

int cli_flag_and_process(const char *command, const struct cli_option *flag, int argc, char **argv, bool *flag_ret,
			 const char **pid_ret)
{
	struct cli_options options = { command, flag, 1, argc, argv, .at = 1 };

	*flag_ret = false;
	*pid_ret = NULL;
	for (;;) {
		switch (cli_options_next(&options)) {
		case CLI_OPERAND:
			if (*pid_ret)
				return cli_usage(command, "one process at a time: '%s' is too much", options.value);
			*pid_ret = options.value;
			break;
		case CLI_END:
			return -1;
		case CLI_HELP:
			return 0;
		case CLI_WRONG:
			return 2;
		default:
			*flag_ret = true;
		}
	}
}
