#include "cli/cmd_syscalls.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/syscall_output.h"
#include "cli/syscall_words.h"
#include "cli/worker.h"
#include "kymo/engine.h"
#include "procfs/pidns.h"
#include "strace/kernel.h"
#include "strace/strace.h"
#include "strace/tracer.h"

typedef struct cli_syscall_words words_t;

/* A run of the command. */
struct run {
	words_t words;
	struct cli_worker worker;
	struct kymo_strace_user user;
	struct kymo_strace *strace;
};

/* ---- what the trace asks of the command ------------------------------------------------------ */

static int wake_up; /* for the signal handler */

static void on_end_signal(int number)
{
	kymo_write_all(wake_up, "", 1);
}

static void begin_to_catch(bool launches, int wake, void *data)
{
	const struct run *run = data;

	wake_up = wake;
	cli_catch_signals(launches, SA_RESTART, on_end_signal);
	cli_worker_take_signals(&run->worker);
}

static int last_signal(void *data)
{
	return cli_last_signal();
}

static void leave_job(void *data)
{
	cli_worker_leave_job();
}

static void warn(const char *sentence, void *data)
{
	cli_warn("%s", sentence);
}

static void tell_lost(uint64_t n, void *data)
{
	const struct run *run = data;
	char count[32], size[32];

	cli_warn("%s beginnings and ends of calls were lost, as the buffer of %s was full: a larger --buffer, "
		 "or a smaller set with -e, loses less",
		 cli_format_count(n, count), cli_format_bytes(run->words.request.target.buffer_size, size));
}

static int open_own(pid_t tid, FILE **ret, void *data)
{
	const struct run *run = data;

	return cli_syscall_output_open_own(&run->words.output, tid, ret);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* A reader that has left ends kymo as every program that writes to it: by SIGPIPE, which does not come to the thread
 * that writes. */
static int not_written(const words_t *words, int err)
{
	struct sigaction action;

	if (err == EPIPE && !sigaction(SIGPIPE, NULL, &action) && action.sa_handler != SIG_IGN)
		return 128 + SIGPIPE;
	fprintf(stderr, "kymo: cannot write %s: the output is not whole (%s)\n",
		words->output.path ? words->output.path : "stderr", err ? strerror(err) : "memory is out");
	return 1;
}

/* What is left to be said, when all was seen. The exit status. */
static int conclude(const struct run *run, int status)
{
	struct kymo_strace_result result = kymo_strace_result(run->strace);
	const words_t *words = &run->words;

	if (result.is_stuck)
		return 1; /* it can't be said here */
	if (!kymo_strace_finish(run->strace))
		return not_written(words, kymo_strace_result(run->strace).write_error);
	if (result.cut) {
		fprintf(stderr, "kymo: what process %d did from here on is not shown: %s\n",
			words->targets.pids.items[0],
			result.cut == -ETIMEDOUT ? "this kymo did not drain its output in time, and was disconnected"
						 : "the kymo that traced it, and let this one in, has ended");
		return 1;
	}
	if (result.is_incomplete) {
		cli_warn("some of what happened is not shown: memory was out, or a process could not be followed");
		return 1;
	}
	return words->command && !result.running ? cli_status_of(status) : 0;
}

/* When all is said: let the user's kymo end with `status`, and serve others until they have gone. */
static void outlive(struct run *run, int status)
{
	char sentence[200];

	if (!kymo_strace_has_hub(run->strace))
		return;
	snprintf(sentence, sizeof(sentence),
		 "the last lines are missing: this kymo did not drain its output for %d seconds, and other kymos trace "
		 "the same process",
		 KYMO_ANSWER_MS / 1000);
	cli_forget_signals();
	cli_worker_dismiss(&run->worker, status, kymo_strace_result(run->strace).is_stuck ? sentence : NULL);
	run->user.front = -1; /* its descriptor is closed */
	kymo_strace_serve(run->strace);
}

static int trace(struct run *run)
{
	const pid_t *pids = run->words.targets.pids.items;
	const size_t n = run->words.targets.pids.n;
	char **command = run->words.command;
	struct kymo_error *error;
	int status;

	error = run->words.in_kernel ? kymo_strace_run_in_kernel(run->strace, command, n ? pids[0] : 0, &status)
				     : kymo_strace_run(run->strace, command, pids, n, &status);
	status = error ? cli_fail("syscalls", error) : conclude(run, status);
	kymo_strace_close(run->strace);
	cli_syscall_output_wait(&run->words.output);
	if (kymo_strace_result(run->strace).running && !status)
		status = cli_status_of(kymo_strace_wait(run->strace));
	if (!run->words.in_kernel)
		outlive(run, status);
	return status;
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* -1: it is done. */
static int open_output(struct run *run, int *fd_ret)
{
	struct cli_syscall_output *output = &run->words.output;

	/* -ff: what is not of a thread goes to stderr. */
	*fd_ret = run->words.request.output.separately ? STDERR_FILENO : cli_syscall_output_open(output, &run->worker);
	if (*fd_ret == -EEXIST)
		return cli_fail("syscalls", kymo_error_create(KYMO_ERROR_FAILED,
							      "%s exists and belongs to another user; choose another "
							      "file with -o",
							      output->path));
	return *fd_ret < 0 ? cli_fail("syscalls", kymo_error_errno(*fd_ret, "cannot write %s",
								   output->path ? output->path : "stderr"))
			   : -1;
}

/* A file before anything is begun; a command is a child of the process that writes to it. */
static int open_and_begin(struct run *run, int *fd_ret)
{
	const bool is_command = cli_syscall_output_is_command(&run->words.output);
	int status = is_command ? -1 : open_output(run, fd_ret);

	if (status < 0 && !run->words.in_kernel)
		status = cli_worker_begin(run->words.command, CLI_WORKER_LOSS, &run->worker);
	if (status < 0 && is_command)
		status = open_output(run, fd_ret);
	return status;
}

/* Links of the paths of -P, which the calls may name as well: -1, or the exit status. */
static int add_real_paths(struct kymo_strace_request *request, char **real)
{
	const size_t n = request->which.paths.n;

	for (size_t i = 0; i < n; i++) {
		real[i] = realpath(request->which.paths.items[i], NULL);
		if (real[i] && strcmp(real[i], request->which.paths.items[i]) &&
		    !kymo_vec_push(&request->which.paths, real[i]))
			return cli_fail("syscalls", &kymo_error_no_memory);
	}
	return -1;
}

static int begin_and_trace(struct run *run)
{
	struct kymo_error *error;
	int fd, status = open_and_begin(run, &fd);

	if (status >= 0)
		return status;
	run->user.front = run->worker.front;
	error = kymo_strace_create(&run->words.request, &run->user, fd, &run->strace);
	status = error ? cli_fail("syscalls", error) : trace(run);
	kymo_strace_destroy(run->strace);
	cli_syscall_output_wait(&run->words.output);
	return status;
}

static int run_with_paths(struct run *run)
{
	struct kymo_strace_request *request = &run->words.request;
	const size_t n = request->which.paths.n;
	char **real = calloc(n + 1, sizeof(*real));
	int status = real ? add_real_paths(request, real) : cli_fail("syscalls", &kymo_error_no_memory);

	if (status < 0)
		status = begin_and_trace(run);
	for (size_t i = 0; real && i < n; i++)
		free(real[i]);
	free(real);
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

int cmd_syscalls(int argc, char **argv)
{
	struct run run = {
		.words.request = {
			.look = { .string_size = KYMO_SYSCALL_STRING_SIZE, .style = { .column = KYMO_SYSCALL_COLUMN } },
			.times = { .duration_digits = 6 },
		},
		.worker = { .front = -1 },
		.user = {
			.front = -1,
			.begin = begin_to_catch,
			.last_signal = last_signal,
			.leave_job = leave_job,
			.warn = warn,
			.tell_lost = tell_lost,
			.open_own = open_own,
			.data = &run,
		},
	};
	int status;

	tzset();
	kymo_error_destroy(kymo_syscall_set_parse("all", &run.words.request.which.set));
	status = cli_syscall_words_read(&run.words, argc, argv);
	if (status < 0)
		status = find_processes(&run.words);
	if (status < 0)
		status = run_with_paths(&run);
	cli_syscall_words_deinit(&run.words);
	return status;
}
