#include "record/branch_parts.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "branch/branch.h"
#include "record/branch_source.h"
#include "record/branch_writer.h"
#include "record/clones.h"
#include "record/progress.h"
#include "record/recording.h"
#include "record/warnings.h"
#include "trace/clock.h"

#define TEXT_MAX 1000

/* ---- the beginning --------------------------------------------------------------------------- */

static bool is_given_up(void *data)
{
	return recording_is_stopped(data);
}

struct kymo_error *recording_open_branches(struct recording *recording, enum kymo_record_branch_source source,
					   const struct record_clones *clones, struct kymo_branches **ret)
{
	const struct kymo_record_options *options = recording->wanted.options;
	enum kymo_branch_hardware which;
	const bool by_hardware = branch_source_hardware(source, &which);
	const struct kymo_branches_options branches = {
		.specs = options->branches,
		.n_specs = options->n_branches,
		.tail = options->tail,
		.follow = options->follow,
		.stamp = kymo_clock_tsc,
		.clones = clones ? clones_source(clones) : NULL,
		.hardware = by_hardware ? kymo_branch_hardware_of(which) : NULL,
		.command = clones ? NULL : options->command,
		.pid = clones ? recording->run.pid : options->pid,
		.is_given_up = is_given_up,
		.data = recording,
	};

	return kymo_branches_open(&branches, ret);
}

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

struct kymo_error *recording_describe_branches(struct recording *recording, enum kymo_record_branch_source source)
{
	const struct kymo_record_options *options = recording->wanted.options;
	struct kymo_ctf_trace *trace = &recording->output.files.trace;
	char chosen[TEXT_MAX] = "";
	struct kymo_error *error;

	join_specs(options, chosen, sizeof(chosen));
	error = kymo_ctf_trace_set_env(trace, KYMO_ENV_BRANCHES, branch_source_name(source));
	if (!error)
		error = kymo_ctf_trace_set_env(trace, KYMO_ENV_BRANCHES_CHOSEN, chosen);
	return error ? error
		     : kymo_ctf_trace_set_env(trace, KYMO_ENV_BRANCHES_UNSEEN, branch_source_unseen(source, options));
}

/* ---- the end --------------------------------------------------------------------------------- */

void recording_tell_branch_warnings(struct recording *recording, struct kymo_branches *branches)
{
	for (const char *sentence; (sentence = kymo_branches_warning(branches));)
		recording_warn(recording, "%s", sentence);
}

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

void recording_end_branches(struct recording *recording, struct kymo_branches *branches)
{
	struct kymo_error *error;

	kymo_branches_end(branches);
	recording_tell_branch_warnings(recording, branches);
	error = kymo_branches_check_met(branches);
	if (error)
		recording_warn(recording, "%s", error->message);
	kymo_error_destroy(error);
	recording->result.has_crash = has_crash(branches);
}

struct kymo_error *recording_write_branches(struct recording *recording, struct kymo_branches *branches)
{
	const uint64_t before = recording->output.files.events;
	struct kymo_error *error;

	recording->result.branches = kymo_branches_taken(branches);
	recording->result.are_overwritten = kymo_branches_are_overwritten(branches);
	error = branch_writer_write(recording, branches);
	for (size_t i = 0; i < kymo_branches_threads(branches) && !error; i++) {
		struct kymo_branch_thread thread;

		kymo_branches_thread(branches, i, &thread);
		recording->output.files.events -= thread.n_anchors;
	}
	recording->result.kept_branches = recording->output.files.events - before;
	return error;
}
