/* The options of `kymo syscalls`, a row each. */
#include "cli/syscall_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/syscall_check.h"
#include "cli/syscall_express.h"
#include "strace/counts.h"
#include "strace/inject.h"

#define COMMAND "syscalls"

enum { STRING_SIZE_MAX = 1 << 20, BUFFER_MIN = 1 << 16, BUFFER_MAX = 256 << 20, COLUMN_MAX = 1000 };

typedef struct cli_syscall_words words_t;

/* ---- effects: -1, or the exit status, when the user was told what is wrong ------------------- */

static int set_follow(words_t *words, const char *value)
{
	/* -ff */
	words->request.output.separately |= words->request.target.follows;
	words->request.target.follows = true;
	return -1;
}

static int follow_long(words_t *words, const char *value)
{
	words->request.target.follows = true;
	return -1;
}

static int write_separately(words_t *words, const char *value)
{
	words->request.output.separately = true;
	return -1;
}

static int set_count(words_t *words, const char *value)
{
	words->request.output.kind = KYMO_STRACE_TABLE;
	return -1;
}

static int count_too(words_t *words, const char *value)
{
	words->request.output.kind = KYMO_STRACE_BOTH;
	return -1;
}

/* -w: kymo counts no other time. */
static int nothing_else(words_t *words, const char *value)
{
	return -1;
}

static int sort_counts(words_t *words, const char *value)
{
	if (kymo_strace_counts_sort(&words->request.output.columns, value))
		return -1;
	return cli_usage(
		COMMAND,
		"-S takes time, total-time, min-time, max-time, avg-time, calls, errors, name or nothing, not '%s'",
		value);
}

static int choose_columns(words_t *words, const char *value)
{
	if (kymo_strace_counts_choose(&words->request.output.columns, value))
		return -1;
	return cli_usage(COMMAND,
			 "-U takes time-percent, total-time, min-time, max-time, avg-time, calls, errors and name with "
			 "commas between them, each once, not '%s'",
			 value);
}

static bool read_digits(const char *word, size_t n, unsigned int *ret)
{
	static const struct {
		const char *word;
		unsigned int digits;
	} precisions[] = { { "s", 0 },  { "0", 0 }, { "ms", 3 }, { "3", 3 },
			   { "us", 6 }, { "6", 6 }, { "ns", 9 }, { "9", 9 } };

	for (size_t i = 0; i < kymo_countof(precisions); i++)
		if (strlen(precisions[i].word) == n && !memcmp(precisions[i].word, word, n)) {
			*ret = precisions[i].digits;
			return true;
		}
	return false;
}

static int take_digits(const char *option, const char *value, unsigned int *ret)
{
	*ret = 6;
	if (!value || read_digits(value, strlen(value), ret))
		return -1;
	return cli_usage(COMMAND, "%s takes a precision of s, ms, us or ns, not '%s'", option, value);
}

static int show_durations(words_t *words, const char *value)
{
	words->request.times.durations = true;
	return take_digits("--syscall-times", value, &words->request.times.duration_digits);
}

static int show_relative_times(words_t *words, const char *value)
{
	words->request.times.relative_times = true;
	return take_digits("--relative-timestamps", value, &words->request.times.relative_digits);
}

/* -t, -tt, -ttt */
static int show_times(words_t *words, const char *value)
{
	struct kymo_strace_request *request = &words->request;

	if (request->times.clock == KYMO_STRACE_NO_TIME)
		request->times.clock = KYMO_STRACE_TIME_OF_DAY;
	else if (!request->times.clock_digits)
		request->times.clock_digits = 6;
	else
		request->times.clock = KYMO_STRACE_UNIX_TIME;
	return -1;
}

static bool has_prefix(const char *text, const char *prefix, const char **rest)
{
	const size_t n = strlen(prefix);

	*rest = text + (strncmp(text, prefix, n) ? 0 : n);
	return *rest != text;
}

static int show_absolute_times(words_t *words, const char *value)
{
	struct kymo_strace_request *request = &words->request;

	if (request->times.clock == KYMO_STRACE_NO_TIME)
		request->times.clock = KYMO_STRACE_TIME_OF_DAY;
	while (value && *value) {
		const size_t n = strcspn(value, ",");
		const char *word = value, *rest;

		if (!has_prefix(value, "format:", &word))
			has_prefix(value, "precision:", &word);
		rest = value + n;
		value = rest + (*rest == ',');
		if ((size_t)(rest - word) == 4 && !memcmp(word, "unix", 4))
			request->times.clock = KYMO_STRACE_UNIX_TIME;
		else if ((size_t)(rest - word) == 4 && !memcmp(word, "time", 4))
			request->times.clock = KYMO_STRACE_TIME_OF_DAY;
		else if ((size_t)(rest - word) == 4 && !memcmp(word, "none", 4))
			request->times.clock = KYMO_STRACE_NO_TIME;
		else if (!read_digits(word, (size_t)(rest - word), &request->times.clock_digits))
			return cli_usage(COMMAND,
					 "--absolute-timestamps takes format:time, format:unix and precision:s, ms, us "
					 "or ns, not '%.*s'",
					 (int)(rest - word), word);
	}
	return -1;
}

static int show_numbers(words_t *words, const char *value)
{
	words->request.look.numbers = true;
	return -1;
}

static int show_addresses(words_t *words, const char *value)
{
	words->request.look.addresses = true;
	return -1;
}

/* -y, -yy */
static int show_fds(words_t *words, const char *value)
{
	words->request.look.fds = words->request.look.fds ? KYMO_STRACE_FD_ALL : KYMO_STRACE_FD_PATH;
	return -1;
}

static int show_fds_long(words_t *words, const char *value)
{
	return value ? cli_syscall_words_qualify(words, "decode-fds", value) : show_fds(words, NULL);
}

static int show_names_of_pids(words_t *words, const char *value)
{
	words->request.look.pids |= KYMO_STRACE_PID_COMM;
	return -1;
}

static int hide_failed(words_t *words, const char *value)
{
	words->request.which.hides_failed = words->request.which.hides_unfinished = true;
	return -1;
}

static int hide_good(words_t *words, const char *value)
{
	words->request.which.hides_good = words->request.which.hides_unfinished = true;
	return -1;
}

static int show_stacks(words_t *words, const char *value)
{
	words->request.look.stack_traces = true;
	return -1;
}

static int set_string_size(words_t *words, const char *value)
{
	uint64_t size;

	if (!cli_parse_size(value, &size) || size > STRING_SIZE_MAX)
		return cli_usage(COMMAND, "-s takes a number of bytes up to 1M, not '%s'", value);
	words->request.look.string_size = (size_t)size;
	return -1;
}

static int set_column(words_t *words, const char *value)
{
	uint64_t column;

	if (!cli_parse_number(value, &column) || column > COLUMN_MAX)
		return cli_usage(COMMAND, "-a takes a column up to %d, not '%s'", COLUMN_MAX, value);
	words->request.look.style.column = (unsigned int)column;
	return -1;
}

/* -x, -xx */
static int show_hex(words_t *words, const char *value)
{
	struct kymo_syscall_style *style = &words->request.look.style;

	style->strings = style->strings == KYMO_STRINGS_AS_TEXT ? KYMO_STRINGS_HEX_IF_BINARY : KYMO_STRINGS_HEX;
	return -1;
}

static int show_hex_long(words_t *words, const char *value)
{
	struct kymo_syscall_style *style = &words->request.look.style;

	if (!value || !strcmp(value, "all"))
		style->strings = KYMO_STRINGS_HEX;
	else if (!strcmp(value, "non-ascii") || !strcmp(value, "non-ascii-chars"))
		style->strings = KYMO_STRINGS_HEX_IF_BINARY;
	else if (!strcmp(value, "none"))
		style->strings = KYMO_STRINGS_AS_TEXT;
	else
		return cli_usage(COMMAND, "--strings-in-hex takes all, non-ascii or none, not '%s'", value);
	return -1;
}

static int set_constants(words_t *words, const char *value)
{
	struct kymo_syscall_style *style = &words->request.look.style;

	if (!strcmp(value, "abbrev"))
		style->constants = KYMO_CONSTANTS_NAMES;
	else if (!strcmp(value, "raw"))
		style->constants = KYMO_CONSTANTS_NUMBERS;
	else if (!strcmp(value, "verbose"))
		style->constants = KYMO_CONSTANTS_BOTH;
	else
		return cli_usage(COMMAND, "-X takes raw, abbrev or verbose, not '%s'", value);
	return -1;
}

static int show_whole(words_t *words, const char *value)
{
	return cli_syscall_words_qualify(words, "abbrev", "none");
}

/* -q, -qq, -qqq */
static int be_quiet(words_t *words, const char *value)
{
	unsigned int *quiet = &words->request.which.quiet;

	*quiet |= !(*quiet & KYMO_STRACE_QUIET_MODE)   ? KYMO_STRACE_QUIET_MODE
		  : !(*quiet & KYMO_STRACE_QUIET_EXIT) ? KYMO_STRACE_QUIET_EXIT
						       : KYMO_STRACE_QUIET_EXEC;
	return -1;
}

static int be_quiet_long(words_t *words, const char *value)
{
	return value ? cli_syscall_words_qualify(words, "quiet", value) : be_quiet(words, NULL);
}

static int set_path(words_t *words, const char *value)
{
	if (!*value)
		return cli_usage(COMMAND, "-P takes the path of a file, and '' is none");
	if (!kymo_vec_push(&words->request.which.paths, value))
		return cli_fail(COMMAND, &kymo_error_no_memory);
	return -1;
}

static int set_output(words_t *words, const char *value)
{
	words->output.path = value;
	return -1;
}

static int set_append(words_t *words, const char *value)
{
	words->output.appends = true;
	return -1;
}

static int show_json(words_t *words, const char *value)
{
	words->request.look.json = true;
	return -1;
}

static int add_injection(words_t *words, const char *value)
{
	return cli_syscall_words_qualify(words, "inject", value);
}

static int detach_on(words_t *words, const char *value)
{
	if (strcmp(value, "execve") && strcmp(value, "execveat"))
		return cli_usage(COMMAND, "-b takes execve, not '%s'", value);
	words->request.target.leaves_on_exec = true;
	return -1;
}

static int set_variable(words_t *words, const char *value)
{
	const size_t n = strcspn(value, "=");
	kymo_cleanup_free char *name = strndup(value, n);

	if (!n)
		return cli_usage(COMMAND, "-E takes NAME=VALUE, or NAME to leave it out, not '%s'", value);
	if (!name || (value[n] ? setenv(name, value + n + 1, 1) : unsetenv(name)))
		return cli_fail(COMMAND, &kymo_error_no_memory);
	return -1;
}

static int set_user(words_t *words, const char *value)
{
	int err;

	if (geteuid())
		return cli_usage(COMMAND, "-u takes root, so that the command can become %s", value);
	kymo_identity_deinit(&words->identity);
	err = kymo_identity_find(value, &words->identity);
	if (err == -ENOENT)
		return cli_usage(COMMAND, "there is no user '%s'", value);
	if (err)
		return cli_fail(COMMAND, kymo_error_errno(err, "cannot look up the user '%s'", value));
	words->request.target.identity = &words->identity;
	return -1;
}

static int add_pids(words_t *words, const char *value)
{
	struct kymo_error *error = cli_targets_add_pids(&words->targets, value);

	return error ? cli_fail(COMMAND, error) : -1;
}

static int add_name(words_t *words, const char *value)
{
	struct kymo_error *error = cli_targets_add_name(&words->targets, value);

	return error ? cli_fail(COMMAND, error) : -1;
}

static int set_time(words_t *words, const char *value)
{
	double seconds;

	if (!cli_parse_seconds(value, &seconds))
		return cli_usage(COMMAND, "--for '%s' is no number of seconds; write 5 or 0.5", value);
	words->request.target.for_ns = (uint64_t)(seconds * 1e9);
	return -1;
}

static int show_all(words_t *words, const char *value)
{
	words->all = true;
	return -1;
}

static int pick(words_t *words, const char *value)
{
	words->request.target.picks = true;
	return -1;
}

static int set_backend(words_t *words, const char *value)
{
	words->has_backend = true;
	words->in_kernel = !strcmp(value, "kernel");
	if (words->in_kernel || !strcmp(value, "hub"))
		return -1;
	return cli_usage(COMMAND, "there is no backend '%s'; write hub or kernel", value);
}

static int set_buffer(words_t *words, const char *value)
{
	uint64_t size;

	if (!cli_parse_size(value, &size) || size < BUFFER_MIN || size > BUFFER_MAX)
		return cli_usage(COMMAND, "--buffer takes a size from 64K to 256M, not '%s'", value);
	words->request.target.buffer_size = size;
	return -1;
}

/* ---- what strace has and kymo has not -------------------------------------------------------- */

static int refuse_daemon(words_t *words, const char *value)
{
	return cli_usage(COMMAND, "-D is strace's: the command of kymo is a child of its own; trace a running process "
				  "with --pid in the background instead");
}

static int refuse_version(words_t *words, const char *value)
{
	return cli_usage(COMMAND, "-V is strace's; 'kymo --version' shows the version");
}

static int refuse_signals(words_t *words, const char *value)
{
	return cli_usage(COMMAND, "-I is strace's: kymo can be interrupted at any time, and the command has the "
				  "terminal's first interrupt");
}

static int refuse_overhead(words_t *words, const char *value)
{
	return cli_usage(COMMAND, "-O is strace's: the times of -c are those of the clock, with what tracing costs");
}

static int refuse_debug(words_t *words, const char *value)
{
	return cli_usage(COMMAND, "-d is strace's, for its own authors; 'kymo threads PID' shows who traces what");
}

static int refuse_context(words_t *words, const char *value)
{
	return cli_usage(COMMAND, "--secontext is strace's: kymo does not show SELinux contexts");
}

/* ---- the table ------------------------------------------------------------------------------- */

struct word {
	char letter;
	const char *name, *value;
	int (*take)(words_t *words, const char *value);
};

static const struct word table[] = {
	/* The names that kymo's users know first: they are the ones that messages propose. */
	{ 'f', "follow", NULL, set_follow },
	{ 'e', "set", "SET", cli_syscall_words_express },
	{ 'c', "count", NULL, set_count },
	{ 'T', "durations", NULL, show_durations },
	{ 't', "times", NULL, show_times },
	{ 'y', "fd-paths", NULL, show_fds },
	{ 'z', "successful", NULL, hide_failed },
	{ 'Z', "failed", NULL, hide_good },
	{ 'k', "stack-traces", NULL, show_stacks },
	{ 's', "string-size", "SIZE", set_string_size },
	{ 'P', "path", "PATH", set_path },
	{ 'o', "output", "FILE", set_output },
	{ 'A', "output-append-mode", NULL, set_append },
	{ 'a', "columns", "COLUMN", set_column },
	{ 'b', "detach-on", "CALL", detach_on },
	{ 'C', "summary", NULL, count_too },
	{ 'E', "env", "NAME=VALUE", set_variable },
	{ 'i', "instruction-pointer", NULL, show_addresses },
	{ 'n', "syscall-number", NULL, show_numbers },
	{ 'p', "pid", "PID", add_pids },
	{ 'q', "quiet", "=WHAT", be_quiet_long },
	{ 'r', "relative-timestamps", "=PRECISION", show_relative_times },
	{ 'S', "summary-sort-by", "COLUMN", sort_counts },
	{ 'u', "user", "USER", set_user },
	{ 'U', "summary-columns", "COLUMNS", choose_columns },
	{ 'v', "no-abbrev", NULL, show_whole },
	{ 'w', "summary-wall-clock", NULL, nothing_else },
	{ 'x', "hex", NULL, show_hex },
	{ 'X', "const-print-style", "STYLE", set_constants },
	{ 'Y', "pid-names", NULL, show_names_of_pids },
	{ 0, "json", NULL, show_json },
	{ 0, "inject", "SET:WHAT", add_injection },
	{ 0, "name", "NAME", add_name },
	{ 0, "all", NULL, show_all },
	{ 0, "backend", "NAME", set_backend },
	{ 0, "buffer", "SIZE", set_buffer },
	{ 0, "seccomp-bpf", NULL, pick },
	{ 0, "for", "SECONDS", set_time },

	/* strace's long names of the same. */
	{ 0, "absolute-timestamps", "=FORMAT", show_absolute_times },
	{ 0, "timestamps", "=FORMAT", show_absolute_times },
	{ 0, "attach", "PID", add_pids },
	{ 0, "decode-fds", "=WHAT", show_fds_long },
	{ 0, "failed-only", NULL, hide_good },
	{ 'F', "follow-forks", NULL, follow_long },
	{ 0, "output-separately", NULL, write_separately },
	{ 0, "silent", "=WHAT", be_quiet_long },
	{ 0, "silence", "=WHAT", be_quiet_long },
	{ 0, "stack-trace", NULL, show_stacks },
	{ 0, "string-limit", "SIZE", set_string_size },
	{ 0, "strings-in-hex", "=WHICH", show_hex_long },
	{ 0, "successful-only", NULL, hide_failed },
	{ 0, "summary-only", NULL, set_count },
	{ 0, "syscall-times", "=PRECISION", show_durations },
	{ 0, "trace-path", "PATH", set_path },

	{ 'D', "daemonize", "=HOW", refuse_daemon },
	{ 'd', "debug", NULL, refuse_debug },
	{ 'V', "version", NULL, refuse_version },
	{ 'I', "interruptible", "WHEN", refuse_signals },
	{ 'O', "summary-syscall-overhead", "TIME", refuse_overhead },
	{ 0, "secontext", "=WHAT", refuse_context },
};

/* Qualifiers of -e that have long names of their own. */
static const char *const qualifiers[] = { "trace",       "abbrev",  "raw",  "signal", "status", "fault",
					  "decode-pids", "verbose", "read", "write",  "kvm" };

enum { N_WORDS = kymo_countof(table), N_QUALIFIERS = kymo_countof(qualifiers) };

static void fill_options(struct cli_option options[N_WORDS + N_QUALIFIERS])
{
	for (int i = 0; i < N_WORDS; i++)
		options[i] = (struct cli_option){ i + 1, table[i].letter, table[i].name, table[i].value };
	for (int i = 0; i < N_QUALIFIERS; i++)
		options[N_WORDS + i] = (struct cli_option){ N_WORDS + i + 1, 0, qualifiers[i], "SET" };
}

/* ---- reading --------------------------------------------------------------------------------- */

static int take_word(words_t *words, int option, const char *value)
{
	if (option <= N_WORDS)
		return table[option - 1].take(words, value);
	return cli_syscall_words_qualify(words, qualifiers[option - N_WORDS - 1], value);
}

int cli_syscall_words_read(struct cli_syscall_words *words, int argc, char **argv)
{
	struct cli_option list[N_WORDS + N_QUALIFIERS];
	struct cli_options options = { COMMAND, list, kymo_countof(list), argc, argv, .at = 1 };
	int status;

	fill_options(list);
	for (;;) {
		const int option = cli_options_next(&options);

		switch (option) {
		case CLI_OPERAND:
			words->command = argv + options.at - 1;
			return cli_syscall_words_check(words);
		case CLI_END:
			return cli_syscall_words_check(words);
		case CLI_HELP:
			return 0;
		case CLI_WRONG:
			return 2;
		default:
			status = take_word(words, option, options.value);
			if (status >= 0)
				return status;
		}
	}
}

void cli_syscall_words_deinit(struct cli_syscall_words *words)
{
	cli_targets_deinit(&words->targets);
	kymo_identity_deinit(&words->identity);
	kymo_vec_deinit(&words->request.which.paths);
	kymo_strace_injections_destroy(words->injections);
}
