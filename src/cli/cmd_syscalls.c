#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/syscalls.h"

enum {
	FOLLOW = 1,
	SET,
	COUNTS,
	DURATIONS,
	TIMES,
	FD_PATHS,
	ONLY_GOOD,
	ONLY_FAILED,
	STRING_SIZE,
	ONLY_PATH,
	OUTPUT,
	AS_JSON,
	INJECT,
	PID,
};

static const struct cli_option table[] = {
	{ FOLLOW, 'f', "follow", NULL },
	{ SET, 'e', "set", "SET" },
	{ COUNTS, 'c', "count", NULL },
	{ DURATIONS, 'T', "durations", NULL },
	{ TIMES, 't', "times", NULL },
	{ FD_PATHS, 'y', "fd-paths", NULL },
	{ ONLY_GOOD, 'z', "successful", NULL },
	{ ONLY_FAILED, 'Z', "failed", NULL },
	{ STRING_SIZE, 's', "string-size", "SIZE" },
	{ ONLY_PATH, 'P', "path", "PATH" },
	{ OUTPUT, 'o', "output", "FILE" },
	{ AS_JSON, 0, "json", NULL },
	{ INJECT, 0, "inject", "SET:WHAT" },
	{ PID, 0, "pid", "PID" },
};

enum { STRING_SIZE_MAX = 1 << 20 };

struct words {
	struct cli_syscalls tracing;
	const char *output;
	char **command;
	pid_t pid;
};

/* -1: go on; else the exit status. */
static int take_option(struct words *words, int option, const char *value)
{
	struct cli_syscalls *s = &words->tracing;
	struct kymo_error *error;
	uint64_t size;

	switch (option) {
	case FOLLOW:
		s->follows = true;
		break;
	case SET:
		error = kymo_syscall_set_parse(value, &s->set);
		if (error)
			return cli_fail("syscalls", error);
		break;
	case COUNTS:
		s->counts = true;
		break;
	case DURATIONS:
		s->durations = true;
		break;
	case TIMES:
		s->times = true;
		break;
	case FD_PATHS:
		s->fd_paths = true;
		break;
	case ONLY_GOOD:
		s->only_good = true;
		break;
	case ONLY_FAILED:
		s->only_failed = true;
		break;
	case STRING_SIZE:
		if (!cli_parse_size(value, &size) || size > STRING_SIZE_MAX)
			return cli_usage("syscalls", "-s takes a number of bytes up to 1M, not '%s'", value);
		s->string_size = (size_t)size;
		break;
	case ONLY_PATH:
		s->path = value;
		break;
	case OUTPUT:
		words->output = value;
		break;
	case AS_JSON:
		s->json = true;
		break;
	case INJECT:
		error = cli_syscall_injections_add(&s->injections, value);
		if (error)
			return cli_fail("syscalls", error);
		break;
	case PID:
		if (!cli_parse_pid(value, &words->pid))
			return cli_usage("syscalls", "'%s' is no process id", value);
		break;
	}
	return -1;
}

static int check(const struct words *words)
{
	const struct cli_syscalls *s = &words->tracing;

	if (!words->command && !words->pid)
		return cli_usage("syscalls", "whose system calls? give a command, or --pid PID");
	if (words->command && words->pid)
		return cli_usage("syscalls", "a command or --pid, not both: '%s' is too much", words->command[0]);
	if (s->only_good && s->only_failed)
		return cli_usage("syscalls", "-z shows calls that succeed, -Z those that fail: together they show none");
	if (s->counts && (s->durations || s->times || s->only_good || s->only_failed || s->fd_paths))
		return cli_usage("syscalls", "-c shows a table and no lines, so -T, -t, -y, -z and -Z have no meaning beside it");
	if (s->json && (s->durations || s->times))
		return cli_usage("syscalls", "--json has durations always, and no time of day: leave -T and -t out");
	return -1;
}

static int read_words(struct words *words, int argc, char **argv)
{
	struct cli_options options = { "syscalls", table, kymo_countof(table), argc, argv, .at = 1 };
	int status;

	for (;;) {
		const int option = cli_options_next(&options);

		switch (option) {
		case CLI_OPERAND:
			words->command = argv + options.at - 1;
			return check(words);
		case CLI_END:
			return check(words);
		case CLI_HELP:
			return 0;
		case CLI_WRONG:
			return 2;
		default:
			status = take_option(words, option, options.value);
			if (status >= 0)
				return status;
		}
	}
}

static int run(struct words *words)
{
	struct cli_syscalls *s = &words->tracing;
	struct kymo_error *error;
	int status;

	s->out = stderr;
	if (words->output) {
		s->out = fopen(words->output, "we");
		s->is_file = true;
		if (!s->out)
			return cli_fail("syscalls", kymo_error_errno(errno, "cannot write %s", words->output));
	}
	error = cli_syscalls_run(s, words->command, words->pid, &status);
	if (error)
		return cli_fail("syscalls", error);
	if (s->counts)
		cli_syscall_counts_print(s->table, s->json, s->out);
	if (fflush(s->out) || ferror(s->out)) {
		fprintf(stderr, "kymo: cannot write %s: the output is not whole\n", words->output ? words->output : "stderr");
		return 1;
	}
	if (s->has_failed) {
		cli_warn("some of what happened is not shown: memory was out, or a process could not be followed");
		return 1;
	}
	if (!words->command)
		return 0;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int run_with_table(struct words *words)
{
	struct cli_syscalls *s = &words->tracing;
	char real_path[PATH_MAX];
	int status;

	if (s->path && realpath(s->path, real_path) && strcmp(real_path, s->path))
		s->real_path = real_path;
	s->table = s->counts ? cli_syscall_counts_create() : NULL;
	if (s->counts && !s->table)
		return cli_fail("syscalls", &kymo_error_no_memory);
	status = run(words);
	cli_syscall_counts_destroy(s->table);
	if (s->out && s->is_file)
		fclose(s->out);
	return status;
}

int cmd_syscalls(int argc, char **argv)
{
	struct words words = { .tracing = { .string_size = KYMO_SYSCALL_STRING_SIZE } };
	int status;

	tzset();
	kymo_error_destroy(kymo_syscall_set_parse("all", &words.tracing.set));
	status = read_words(&words, argc, argv);
	if (status < 0)
		status = run_with_table(&words);
	cli_syscall_injections_destroy(words.tracing.injections);
	return status;
}
