#include "cli/cmd_syscalls.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "cli/output.h"
#include "cli/syscall_counts.h"
#include "cli/syscall_kernel.h"
#include "cli/syscall_output.h"
#include "cli/syscall_tracer.h"
#include "cli/syscall_words.h"
#include "proc/proc.h"
#include "procfs/pidns.h"

typedef struct cli_syscall_words words_t;

/* A reader that has left ends kymo as every program that writes to it: by SIGPIPE, which does not come to the thread
 * that writes. */
static int not_written(const words_t *words)
{
	const int err = words->tracing.output.write_error;
	struct sigaction action;

	if (err == EPIPE && !sigaction(SIGPIPE, NULL, &action) && action.sa_handler != SIG_IGN)
		return 128 + SIGPIPE;
	fprintf(stderr, "kymo: cannot write %s: the output is not whole (%s)\n",
		words->output ? words->output : "stderr", err ? strerror(err) : "memory is out");
	return 1;
}

static int exit_status_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* What is left to be said, when all was seen. The exit status. */
static int conclude(const words_t *words, int status)
{
	const struct cli_syscalls *s = &words->tracing;

	if (s->output.is_stuck)
		return 1; /* it can't be said here */
	if (s->request.counts)
		cli_syscall_counts_print(s->table, &s->request.columns, s->request.json, s->output.file);
	if (fflush(s->output.file) || ferror(s->output.file))
		return not_written(words);
	if (s->tracing.cut) {
		fprintf(stderr, "kymo: what process %d did from here on is not shown: %s\n",
			words->targets.pids.items[0],
			s->tracing.cut == -ETIMEDOUT ? "this kymo was too slow for the one that traces it"
						     : "the kymo that traced it, and let this one in, has ended");
		return 1;
	}
	if (s->output.has_failed) {
		cli_warn("some of what happened is not shown: memory was out, or a process could not be followed");
		return 1;
	}
	return words->command && !s->running ? exit_status_of(status) : 0;
}

/* -1: it is done. */
static int open_output(words_t *words)
{
	int err = cli_syscalls_open_output(&words->tracing, words->output, words->appends);

	if (err == -EEXIST)
		return cli_fail("syscalls", kymo_error_create(KYMO_ERROR_FAILED,
							      "%s exists and belongs to another user; choose another "
							      "file with -o",
							      words->output));
	return err ? cli_fail("syscalls",
			      kymo_error_errno(err, "cannot write %s", words->output ? words->output : "stderr"))
		   : -1;
}

static int run_tracer(words_t *words)
{
	struct cli_syscalls *s = &words->tracing;
	const pid_t *pids = words->targets.pids.items;
	const size_t n = words->targets.pids.n;
	struct kymo_error *error;
	int status;

	s->had_several = n > 1 || (n && kymo_count_threads(pids[0]) > 1);
	error = words->in_kernel ? cli_syscalls_run_in_kernel(s, words->command, n ? pids[0] : 0, &status)
				 : cli_syscalls_run(s, words->command, pids, n, &status);
	status = error ? cli_fail("syscalls", error) : conclude(words, status);
	cli_syscalls_close_output(s);
	if (s->running && !status)
		status = exit_status_of(cli_syscalls_wait(s));
	if (!words->in_kernel)
		cli_syscalls_outlive(s, status);
	return status;
}

/* Links of the paths of -P, which the calls may name as well: -1, or the exit status. */
static int add_real_paths(struct cli_syscalls *s, char **real)
{
	const size_t n = s->request.paths.n;

	for (size_t i = 0; i < n; i++) {
		real[i] = realpath(s->request.paths.items[i], NULL);
		if (real[i] && strcmp(real[i], s->request.paths.items[i]) && !kymo_vec_push(&s->request.paths, real[i]))
			return cli_fail("syscalls", &kymo_error_no_memory);
	}
	return -1;
}

static int run_with_paths(words_t *words)
{
	struct cli_syscalls *s = &words->tracing;
	const size_t n = s->request.paths.n;
	char **real = calloc(n + 1, sizeof(*real));
	int status = real ? add_real_paths(s, real) : cli_fail("syscalls", &kymo_error_no_memory);

	if (status < 0)
		status = run_tracer(words);
	for (size_t i = 0; real && i < n; i++)
		free(real[i]);
	free(real);
	return status;
}

static int run_with_table(words_t *words)
{
	struct cli_syscalls *s = &words->tracing;
	int status;

	s->table = s->request.counts ? cli_syscall_counts_create() : NULL;
	if (s->request.counts && !s->table)
		return cli_fail("syscalls", &kymo_error_no_memory);
	status = run_with_paths(words);
	cli_syscall_counts_destroy(s->table);
	return status;
}

/* Processes by their names and ids: -1, or the exit status. */
static int find_processes(words_t *words)
{
	struct kymo_error *error = words->all ? NULL : kymo_proc_check();

	if (!error && cli_targets_is_empty(&words->targets))
		return -1;
	if (!error)
		error = cli_targets_find(&words->targets, stderr);
	if (error)
		return cli_fail("syscalls", error);
	if (words->in_kernel && words->targets.pids.n > 1)
		return cli_usage("syscalls",
				 "--backend kernel takes one process, not %zu: leave it out, or write --all",
				 words->targets.pids.n);
	return -1;
}

/* A file before anything is begun; a command is a child of the process that writes to it. */
static int open_and_begin(words_t *words)
{
	const bool is_command = words->output && strchr("|!", *words->output);
	int status = is_command ? -1 : open_output(words);

	if (status < 0 && !words->in_kernel)
		status = cli_worker_begin(words->command, &words->tracing.output.worker);
	if (status < 0 && is_command)
		status = open_output(words);
	return status;
}

int cmd_syscalls(int argc, char **argv)
{
	words_t words = {
		.tracing = {
			.request.shows_lines = true,
			.request.string_size = KYMO_SYSCALL_STRING_SIZE,
			.request.style = { .column = KYMO_SYSCALL_COLUMN },
			.request.duration_digits = 6,
			.output.worker = { .front = -1 },
			.tracing.done = { -1, -1 },
		},
	};
	int status;

	tzset();
	kymo_error_destroy(kymo_syscall_set_parse("all", &words.tracing.request.set));
	status = cli_syscall_words_read(&words, argc, argv);
	if (status < 0)
		status = find_processes(&words);
	if (status < 0)
		status = open_and_begin(&words);
	if (status < 0)
		status = run_with_table(&words);
	cli_syscalls_close_output(&words.tracing);
	cli_syscall_words_deinit(&words);
	return status;
}
