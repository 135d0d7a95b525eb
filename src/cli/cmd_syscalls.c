#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/syscalls.h"
#include "proc/proc.h"

enum {
	FOLLOW = 1,
	SET,
	COUNTS,
	DURATIONS,
	TIMES,
	FD_PATHS,
	ONLY_GOOD,
	ONLY_FAILED,
	STACKS,
	STRING_SIZE,
	ONLY_PATH,
	OUTPUT,
	AS_JSON,
	INJECT,
	PID,
	ALL,
	BACKEND,
	BUFFER,
	SECCOMP,
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
	{ STACKS, 'k', "stack-traces", NULL },
	{ STRING_SIZE, 's', "string-size", "SIZE" },
	{ ONLY_PATH, 'P', "path", "PATH" },
	{ OUTPUT, 'o', "output", "FILE" },
	{ AS_JSON, 0, "json", NULL },
	{ INJECT, 0, "inject", "SET:WHAT" },
	{ PID, 0, "pid", "PID" },
	{ ALL, 0, "all", NULL },
	{ BACKEND, 0, "backend", "NAME" },
	{ BUFFER, 0, "buffer", "SIZE" },
	{ SECCOMP, 0, "seccomp-bpf", NULL },
};

enum { STRING_SIZE_MAX = 1 << 20, BUFFER_SIZE = 16 << 20, BUFFER_MIN = 1 << 16, BUFFER_MAX = 256 << 20 };

struct words {
	struct cli_syscalls tracing;
	const char *output;
	char **command;
	pid_t pid;
	bool all, in_kernel, has_backend;
};

static int take_backend(struct words *words, const char *name)
{
	words->has_backend = true;
	words->in_kernel = !strcmp(name, "kernel");
	if (words->in_kernel || !strcmp(name, "hub"))
		return -1;
	return cli_usage("syscalls", "there is no backend '%s'; write hub or kernel", name);
}

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
	case STACKS:
		s->stack_traces = true;
		break;
	case STRING_SIZE:
		if (!cli_parse_size(value, &size) || size > STRING_SIZE_MAX)
			return cli_usage("syscalls", "-s takes a number of bytes up to 1M, not '%s'", value);
		s->string_size = (size_t)size;
		break;
	case ONLY_PATH:
		if (!*value)
			return cli_usage("syscalls", "-P takes the path of a file, and '' is none");
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
	case ALL:
		words->all = true;
		break;
	case SECCOMP:
		s->picks = true;
		break;
	case BACKEND:
		return take_backend(words, value);
	case BUFFER:
		if (!cli_parse_size(value, &size) || size < BUFFER_MIN || size > BUFFER_MAX)
			return cli_usage("syscalls", "--buffer takes a size from 64K to 256M, not '%s'", value);
		s->buffer_size = size;
		break;
	}
	return -1;
}

/* What the kernel's way can't do. */
static int check_kernel(struct words *words)
{
	struct cli_syscalls *s = &words->tracing;

	if (words->all && words->has_backend && !words->in_kernel)
		return cli_usage("syscalls", "--all is done through the kernel; leave --backend hub out");
	words->in_kernel |= words->all;
	s->follows |= words->all;
	if (!words->in_kernel && s->buffer_size)
		return cli_usage("syscalls", "--buffer is for --backend kernel and --all; without them nothing is lost");
	if (!words->in_kernel)
		return -1;
	if (s->fd_paths || s->path)
		return cli_usage("syscalls", "-y and -P look at descriptors while the process stands, and through the kernel it does not: leave them out");
	if (s->stack_traces)
		return cli_usage("syscalls", "-k looks at the stack while the thread stands, and through the kernel it does not: leave it out");
	if (s->string_size > KYMO_SYSCALL_COPIED_MAX)
		return cli_usage("syscalls", "through the kernel -s takes at most %d bytes", KYMO_SYSCALL_COPIED_MAX);
	if (!s->buffer_size)
		s->buffer_size = BUFFER_SIZE;
	return -1;
}

static int check(struct words *words)
{
	const struct cli_syscalls *s = &words->tracing;

	if (words->all && (words->command || words->pid))
		return cli_usage("syscalls", "--all has the calls of every process: leave the command or --pid out");
	if (!words->command && !words->pid && !words->all)
		return cli_usage("syscalls", "whose system calls? give a command, or --pid PID");
	if (words->command && words->pid)
		return cli_usage("syscalls", "a command or --pid, not both: '%s' is too much", words->command[0]);
	if (s->only_good && s->only_failed)
		return cli_usage("syscalls", "-z shows calls that succeed, -Z those that fail: together they show none");
	if (s->counts && (s->durations || s->times || s->only_good || s->only_failed || s->fd_paths || s->stack_traces))
		return cli_usage("syscalls", "-c shows a table and no lines, so -T, -t, -y, -k, -z and -Z have no meaning beside it");
	if (s->json && (s->durations || s->times))
		return cli_usage("syscalls", "--json has durations always, and no time of day: leave -T and -t out");
	if (s->picks && (!words->command || words->in_kernel))
		return cli_usage("syscalls", "--seccomp-bpf is for commands that kymo starts and traces: leave --pid, --all and --backend kernel out");
	if (s->picks && !s->follows)
		return cli_usage("syscalls", "with --seccomp-bpf children have the filter, too, and cannot do without a tracer: add -f");
	return check_kernel(words);
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

/* A reader that has left ends kymo as every program that writes to it: by SIGPIPE, which does not come to the thread that writes. */
static int not_written(const struct words *words)
{
	const int err = words->tracing.write_error;
	struct sigaction action;

	if (err == EPIPE && !sigaction(SIGPIPE, NULL, &action) && action.sa_handler != SIG_IGN)
		return 128 + SIGPIPE;
	fprintf(stderr, "kymo: cannot write %s: the output is not whole (%s)\n", words->output ? words->output : "stderr", err ? strerror(err) : "memory is out");
	return 1;
}

/* What is left to be said, when all was seen. The exit status. */
static int conclude(const struct words *words, int status)
{
	const struct cli_syscalls *s = &words->tracing;

	if (s->is_stuck)
		return 1;	/* it can't be said here */
	if (s->counts)
		cli_syscall_counts_print(s->table, s->json, s->out);
	if (fflush(s->out) || ferror(s->out))
		return not_written(words);
	if (s->cut) {
		fprintf(stderr, "kymo: what process %d did from here on is not shown: %s\n", words->pid,
			s->cut == -ETIMEDOUT ? "this kymo was too slow for the one that traces it" : "the kymo that traced it, and let this one in, has ended");
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

/* -1: it is done. */
static int open_output(struct words *words)
{
	int err = cli_syscalls_open_output(&words->tracing, words->output);

	return err ? cli_fail("syscalls", kymo_error_errno(err, "cannot write %s", words->output ? words->output : "stderr")) : -1;
}

static void close_output(struct cli_syscalls *s)
{
	if (s->out)
		fclose(s->out);
	s->out = NULL;
}

static int run(struct words *words)
{
	struct cli_syscalls *s = &words->tracing;
	struct kymo_error *error;
	int status;

	s->had_several = words->pid && kymo_count_threads(words->pid) > 1;
	error = (words->in_kernel ? cli_syscalls_run_in_kernel : cli_syscalls_run)(s, words->command, words->pid, &status);
	status = error ? cli_fail("syscalls", error) : conclude(words, status);
	close_output(s);
	if (!words->in_kernel)
		cli_syscalls_outlive(s, status);
	return status;
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
	return status;
}

int cmd_syscalls(int argc, char **argv)
{
	struct words words = { .tracing = { .string_size = KYMO_SYSCALL_STRING_SIZE, .apart = { .front = -1 }, .done = { -1, -1 } } };
	int status;

	tzset();
	kymo_error_destroy(kymo_syscall_set_parse("all", &words.tracing.set));
	status = read_words(&words, argc, argv);
	if (status < 0)
		status = open_output(&words);
	if (status < 0 && !words.in_kernel)
		status = cli_apart_begin(words.command, &words.tracing.apart);
	if (status < 0)
		status = run_with_table(&words);
	close_output(&words.tracing);
	cli_syscall_injections_destroy(words.tracing.injections);
	return status;
}
