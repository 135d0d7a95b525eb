#include "record/branches.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "branch/branch.h"
#include "probe/code/events.h"
#include "record/branch_writer.h"
#include "record/clones.h"
#include "record/describe.h"
#include "record/progress.h"
#include "record/recorder.h"
#include "record/recording.h"
#include "record/targets.h"
#include "record/warnings.h"
#include "trace/clock.h"

#define SECOND_NS 1000000000u
#define POLL_NS 20000000
#define PROGRESS_NS (SECOND_NS / 5)
#define TEXT_MAX 1000

static bool is_given_up(void *data)
{
	return recording_is_stopped(data);
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* "libc:mem*, ./app" */
static void join_specs(const struct kymo_record_options *options, char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; i < options->n_branches && used < size; i++) {
		const struct kymo_branch_spec *spec = &options->branches[i];

		used += (size_t)snprintf(text + used, size - used, "%s%s%s%s", i ? ", " : "",
					 spec->file ? spec->file : "all", spec->functions ? ":" : "",
					 spec->functions ? spec->functions : "");
	}
}

static const char *unseen_by(const struct kymo_record_options *options)
{
	if (options->by_clones)
		return "the kernel, child processes, the dynamic linker, libraries that are loaded later, functions "
		       "that can't be cloned, when each branch was taken";
	return options->follow ? "the kernel" : "the kernel, child processes";
}

static struct kymo_error *describe(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	struct kymo_ctf_trace *trace = &recording->output.files.trace;
	char chosen[TEXT_MAX] = "";
	const char *command;
	struct kymo_error *error = recording_describe_target(recording);

	join_specs(options, chosen, sizeof(chosen));
	if (!error)
		error = kymo_ctf_trace_set_env(trace, KYMO_ENV_BRANCHES,
					       options->by_clones ? "function clones" : "single steps");
	if (!error)
		error = kymo_ctf_trace_set_env(trace, KYMO_ENV_BRANCHES_CHOSEN, chosen);
	if (!error)
		error = kymo_ctf_trace_set_env(trace, KYMO_ENV_BRANCHES_UNSEEN, unseen_by(options));
	if (error)
		return error;
	command = kymo_ctf_trace_env(trace, "command");
	return kymo_ctf_trace_add_process(trace, recording->run.pid, 0, 0, command ? command : "");
}

static struct kymo_error *make_output(struct recording *recording)
{
	struct kymo_error *error = kymo_trace_init(recording->wanted.options->directory, &recording->output.files);

	if (error)
		return error;
	recording->output.exists = true;
	error = describe(recording);
	if (!error)
		error = branch_writer_describe(recording->run.events);
	return error ? error : recording_write_metadata(recording);
}

static struct kymo_error *begin_branches(struct recording *recording, struct record_clones *clones,
					 struct kymo_branches **ret)
{
	const struct kymo_record_options *options = recording->wanted.options;
	const struct kymo_branches_options branches = {
		.specs = options->branches,
		.n_specs = options->n_branches,
		.tail = options->tail,
		.follow = options->follow,
		.stamp = kymo_clock_tsc,
		.clones = clones ? clones_source(clones) : NULL,
		.command = clones ? NULL : options->command,
		.pid = clones ? recording->run.pid : options->pid,
		.is_given_up = is_given_up,
		.data = recording,
	};
	struct kymo_error *error = recording_check_directory(recording);

	recording_progress(recording, KYMO_RECORD_PLANNING);
	if (!error)
		error = kymo_branches_open(&branches, ret);
	if (!error && clones)
		error = clones_put_in(clones, *ret);
	if (error)
		return error;
	recorder_raise_limit(); /* a command has its own already */
	recording->run.pid = kymo_branches_pid(*ret);
	error = make_output(recording);
	recording->run.begin_ns = kymo_now_ns();
	recording_progress(recording, KYMO_RECORD_RUNNING);
	if (!error)
		error = kymo_branches_begin(*ret);
	if (!error && clones)
		clones_go(clones);
	return error;
}

/* ---- while it goes on ------------------------------------------------------------------------ */

static void tell_warnings(struct recording *recording, struct kymo_branches *branches)
{
	for (const char *sentence; (sentence = kymo_branches_warning(branches));)
		recording_warn(recording, "%s", sentence);
}

/* What is taken is told as events; what is written at the end is counted anew. */
static void look_after_branches(struct recording *recording, struct kymo_branches *branches)
{
	const uint64_t now = kymo_now_ns();

	recording->output.files.events = kymo_branches_taken(branches);
	tell_warnings(recording, branches);
	if (now < recording->run.next_progress_ns)
		return;
	recording->run.next_progress_ns = now + PROGRESS_NS;
	recording_progress(recording, KYMO_RECORD_RUNNING);
}

/* A program that has executed another one has no threads with clones, and goes on. */
static bool is_over(const struct recording *recording, const struct kymo_branches *branches)
{
	return recording->wanted.options->by_clones ? recording->result.command_ended
						    : !kymo_branches_has_threads(branches);
}

static void record_branches(struct recording *recording, struct record_clones *clones, struct kymo_branches *branches)
{
	while (!recording_is_time_up(recording) && !is_over(recording, branches)) {
		if (clones)
			clones_wait(clones);
		else
			nanosleep(&(struct timespec){ 0, POLL_NS }, NULL);
		look_after_branches(recording, branches);
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool is_of_a_crash(int signal)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };

	for (size_t i = 0; i < kymo_countof(signals); i++)
		if (signals[i] == signal)
			return true;
	return false;
}

/* Children that end by SIGTERM or SIGPIPE are none: those are part of what shells do. */
static bool has_crash(const struct kymo_branches *branches)
{
	bool has = false;

	for (size_t i = 0; i < kymo_branches_threads(branches); i++) {
		struct kymo_branch_thread thread;

		kymo_branches_thread(branches, i, &thread);
		has |= thread.has_ended && thread.signal && WIFSIGNALED(thread.status) &&
		       is_of_a_crash(WTERMSIG(thread.status));
	}
	return has;
}

static struct kymo_error *end_branches(struct recording *recording, struct record_clones *clones,
				       struct kymo_branches *branches)
{
	struct kymo_record_result *result = &recording->result;
	struct kymo_error *error, *ending;

	recording->result.seconds = (double)(kymo_now_ns() - recording->run.begin_ns) / SECOND_NS;
	recording_progress(recording, KYMO_RECORD_STOPPING);
	ending = clones ? clones_end(clones) : NULL;
	kymo_branches_end(branches);
	tell_warnings(recording, branches);
	error = kymo_branches_check_met(branches);
	if (error)
		recording_warn(recording, "%s", error->message);
	kymo_error_destroy(error);
	result->has_crash = has_crash(branches);
	if (!clones)
		result->command_ended = kymo_branches_command_ended(branches, &result->command_status);
	recording->output.files.events = 0;
	return ending;
}

struct kymo_error *recording_run_branches(struct recording *recording)
{
	struct kymo_branches *branches = NULL;
	struct record_clones *clones = NULL;
	struct kymo_error *error = recording->wanted.options->by_clones ? clones_launch(recording, &clones) : NULL;

	if (!error)
		error = begin_branches(recording, clones, &branches);
	if (!error) {
		recording->run.has_begun = true;
		record_branches(recording, clones, branches);
		error = end_branches(recording, clones, branches);
		recording->result.branches = kymo_branches_taken(branches);
		recording->result.are_overwritten = kymo_branches_are_overwritten(branches);
		error = kymo_error_first(error, branch_writer_write(recording, branches));
	}
	kymo_branches_destroy(branches);
	clones_destroy(clones);
	return error;
}
