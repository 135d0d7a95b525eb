#include "cli/output.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/terminal.h"
#include "sym/demangle.h"

#define WIDTH_MAX 100 /* columns; longer lines are hard to read */
#define WIDTH_MIN 40
#define INDENT 6 /* "kymo: " */

int cli_status_of(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void cli_print_json_name(FILE *out, const char *name)
{
	kymo_cleanup_free char *shown = name ? kymo_shown(name) : NULL;

	kymo_json_string(out, shown ? shown : name);
}

static void hint(const char *command)
{
	fprintf(stderr, "try 'kymo help%s%s'\n", command ? " " : "", command ? command : "");
}

static bool is_caret_line(const char *line)
{
	return line[strspn(line, " ")] == '^';
}

/* Columns that sentences may take; 0: any number, as where a program reads them. */
static unsigned int sentence_width(void)
{
	int columns;

	if (!isatty(STDERR_FILENO))
		return 0;
	cli_terminal_size(STDERR_FILENO, &columns, NULL);
	return columns > WIDTH_MAX ? WIDTH_MAX : columns < WIDTH_MIN ? WIDTH_MIN : (unsigned int)columns;
}

/* Break the line at blanks, so that it ends before `width`; `used` columns have something already. */
static void wrap(FILE *out, const char *line, unsigned int used, unsigned int width)
{
	while (*line) {
		const size_t blanks = strspn(line, " "), n = blanks + strcspn(line + blanks, " ");
		const unsigned int columns = (unsigned int)kymo_utf8_count(line, n);
		kymo_cleanup_free char *word = strndup(line, n);

		if (!word)
			return;
		if (used + columns > width && blanks) {
			fprintf(out, "\n%*s", INDENT, "");
			used = INDENT - (unsigned int)blanks;
			kymo_utf8_print(out, word + blanks);
		} else {
			kymo_utf8_print(out, word);
		}
		used += columns;
		line += n;
	}
}

/*
 * "kymo: PREFIX SENTENCE", with names demangled line by line. A line above a caret quotes the user and stays: a column
 * is marked there. On a terminal sentences are wrapped, and lines that begin with a blank stay as they are.
 */
static void print_sentence(FILE *out, const char *prefix, char *text)
{
	const unsigned int width = sentence_width();
	unsigned int used = INDENT + (unsigned int)strlen(prefix);

	fprintf(out, "kymo: %s", prefix);
	for (char *line = text, *next; line; line = next) {
		kymo_cleanup_free char *shown = NULL;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!next || !is_caret_line(next))
			shown = kymo_shown(line);
		if (width && *line != ' ')
			wrap(out, shown ? shown : line, used, width);
		else
			kymo_utf8_print(out, shown ? shown : line);
		fputc('\n', out);
		used = 0;
	}
}

/* By one write: nothing of another process comes between its words. */
static void say(const char *prefix, const char *format, va_list args)
{
	kymo_cleanup_free char *text = kymo_format(format, args);
	char *said = NULL;
	size_t n;
	FILE *out = text ? open_memstream(&said, &n) : NULL;

	fflush(stdout);
	if (out)
		print_sentence(out, prefix, text);
	if (!out || fclose(out))
		fputs("kymo: out of memory\n", stderr);
	else
		fwrite(said, 1, n, stderr);
	free(said);
}

int cli_usage(const char *command, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("", format, args);
	va_end(args);
	hint(command);
	return 2;
}

static void say_plainly(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void say_plainly(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("", format, args);
	va_end(args);
}

int cli_fail(const char *command, struct kymo_error *error)
{
	bool usage = error->code == KYMO_ERROR_USAGE;

	say_plainly("%s", error->message);
	if (usage)
		hint(command);
	kymo_error_destroy(error);
	return usage ? 2 : 1;
}

void cli_warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say("warning: ", format, args);
	va_end(args);
}

const char *cli_format_count(uint64_t count, char out[32])
{
	char digits[24];
	int n = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *to = out;

	for (int i = 0; i < n; i++) {
		if (i && (n - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return out;
}

const char *cli_format_bytes(uint64_t bytes, char out[32])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(out, 32, "%" PRIu64 " bytes", bytes);
		return out;
	}
	for (; value >= 1024; unit++)
		value /= 1024;
	snprintf(out, 32, "%.1f %s", value, units[unit]);
	return out;
}
