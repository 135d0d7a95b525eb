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
#include "record/branch_parts.h"
#include "record/branch_source.h"
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
#define SENTENCE_MAX 1000

/* ---- the beginning --------------------------------------------------------------------------- */

static struct kymo_error *describe(struct recording *recording, enum kymo_record_branch_source source)
{
	struct kymo_ctf_trace *trace = &recording->output.files.trace;
	const char *command;
	struct kymo_error *error = recording_describe_target(recording);

	if (!error)
		error = recording_describe_branches(recording, source);
	if (error)
		return error;
	command = kymo_ctf_trace_env(trace, "command");
	return kymo_ctf_trace_add_process(trace, recording->run.pid, 0, 0, command ? command : "");
}

static struct kymo_error *make_output(struct recording *recording, enum kymo_record_branch_source source)
{
	struct kymo_error *error = kymo_trace_init(recording->wanted.options->directory, &recording->output.files);

	if (error)
		return error;
	recording->output.exists = true;
	error = describe(recording, source);
	if (!error)
		error = branch_writer_describe(recording->run.events);
	return error ? error : recording_write_metadata(recording);
}

/* One attempt: by a source that is known. */
struct attempt {
	struct recording *recording;
	enum kymo_record_branch_source source;
	struct record_clones *clones; /* NULL: they are not the source */
	struct kymo_branches *branches;
};

static void end_attempt(struct attempt *attempt)
{
	kymo_branches_destroy(attempt->branches);
	clones_destroy(attempt->clones);
	attempt->branches = NULL;
	attempt->clones = NULL;
}

/* Launch or attach; a command has run nothing then. */
static struct kymo_error *open_branches(struct attempt *attempt)
{
	struct recording *recording = attempt->recording;
	const bool by_clones = attempt->source == KYMO_RECORD_BRANCHES_CLONES;
	enum kymo_branch_hardware which;
	struct kymo_error *error = by_clones ? clones_launch(recording, &attempt->clones)
				   : branch_source_hardware(attempt->source, &which) ? kymo_branch_hardware_check(which)
										     : NULL;

	if (error)
		return error;
	recording_progress(recording, KYMO_RECORD_PLANNING);
	error = recording_open_branches(recording, attempt->source, attempt->clones, &attempt->branches);
	if (!error && by_clones)
		error = clones_put_in(attempt->clones, attempt->branches, NULL);
	return error;
}

static struct kymo_error *begin_branches(struct attempt *attempt)
{
	struct recording *recording = attempt->recording;
	struct kymo_error *error;

	recorder_raise_limit(); /* a command has its own already */
	recording->run.pid = kymo_branches_pid(attempt->branches);
	error = make_output(recording, attempt->source);
	recording->run.begin_ns = kymo_now_ns();
	recording_progress(recording, KYMO_RECORD_RUNNING);
	if (!error)
		error = kymo_branches_begin(attempt->branches);
	if (!error && attempt->clones)
		clones_go(attempt->clones);
	return error;
}

/* ---- which source ---------------------------------------------------------------------------- */

static void tell(const struct recording *recording, const char *sentence)
{
	const struct kymo_record_options *options = recording->wanted.options;

	if (options->tell)
		options->tell(sentence, options->data);
}

/* `reason`: why it is no faster source; NULL: the user has chosen it. */
static void tell_steps(const struct recording *recording, const char *reason)
{
	char sentence[SENTENCE_MAX];

	snprintf(sentence, sizeof(sentence),
		 "branches are recorded by single steps, 100,000 times slower than the program: for short windows%s%s",
		 reason ? "; not by clones: " : "", reason ? reason : "");
	tell(recording, sentence);
}

/* `lacking`: why it is no hardware, where the user may change that; or NULL. */
static void tell_clones(const struct recording *recording, const struct kymo_error *lacking)
{
	char sentence[SENTENCE_MAX];

	snprintf(sentence, sizeof(sentence), "branches are recorded by function clones; %s",
		 lacking ? lacking->message : "the kernel offers no branch hardware (Intel PT, BTS, LBR)");
	tell(recording, sentence);
}

static void tell_hardware(const struct recording *recording, enum kymo_record_branch_source source)
{
	char sentence[SENTENCE_MAX];

	snprintf(sentence, sizeof(sentence), "branches are recorded by the processor (%s)", branch_source_name(source));
	tell(recording, sentence);
}

/* AUTO: none that this process may have. `lacking_ret`: what it lacks the rights for, if there is such; or NULL. */
static enum kymo_record_branch_source find_hardware(struct kymo_error **lacking_ret)
{
	static const enum kymo_record_branch_source sources[] = { KYMO_RECORD_BRANCHES_PT, KYMO_RECORD_BRANCHES_BTS,
								  KYMO_RECORD_BRANCHES_LBR };

	*lacking_ret = NULL;
	for (size_t i = 0; i < kymo_countof(sources); i++) {
		enum kymo_branch_hardware which;
		struct kymo_error *error;

		(void)branch_source_hardware(sources[i], &which);
		error = kymo_branch_hardware_check(which);
		if (!error)
			return sources[i];
		if (error->code == KYMO_ERROR_PERMISSION)
			*lacking_ret = kymo_error_first(*lacking_ret, error);
		else
			kymo_error_destroy(error);
	}
	return KYMO_RECORD_BRANCHES_AUTO;
}

/* A command that can have no clones has run nothing, and begins anew. What was wrong with the words is told by the
 * steps, which have them, too. `reason_ret`: why there are no clones. */
static struct kymo_error *open_clones(struct attempt *attempt, bool *is_open_ret, struct kymo_error **reason_ret)
{
	struct recording *recording = attempt->recording;
	const char *reason = branch_source_lacks_clones(recording->wanted.options);
	struct kymo_error *error;

	*is_open_ret = false;
	if (reason) {
		*reason_ret = kymo_error_create(KYMO_ERROR_UNSAFE, "%s", reason);
		return NULL;
	}
	recording->warnings.is_holding = true;
	attempt->source = KYMO_RECORD_BRANCHES_CLONES;
	error = open_branches(attempt);
	if (!error || recording_is_stopped(recording)) {
		recording_release_warnings(recording, true);
		*is_open_ret = !error;
		return error;
	}
	*reason_ret =
		error->code != KYMO_ERROR_NOT_FOUND
			? error
			: kymo_error_create(KYMO_ERROR_NOT_FOUND, "the program has no such code when it begins, and "
								  "what comes later has none");
	if (*reason_ret != error)
		kymo_error_destroy(error);
	end_attempt(attempt);
	return recording_begin_anew(recording, KYMO_RECORD_AUTO);
}

static struct kymo_error *open_best(struct attempt *attempt)
{
	struct recording *recording = attempt->recording;
	struct kymo_error *reason = NULL, *lacking, *error;
	bool is_open;

	attempt->source = find_hardware(&lacking);
	if (attempt->source != KYMO_RECORD_BRANCHES_AUTO) {
		kymo_error_destroy(lacking);
		error = open_branches(attempt);
		if (!error)
			tell_hardware(recording, attempt->source);
		return error;
	}
	error = open_clones(attempt, &is_open, &reason);
	if (is_open)
		tell_clones(recording, lacking);
	kymo_error_destroy(lacking);
	if (!error && !is_open) {
		attempt->source = KYMO_RECORD_BRANCHES_STEPS;
		error = open_branches(attempt);
		if (!error)
			tell_steps(recording, reason->message);
	}
	kymo_error_destroy(reason);
	return error;
}

static struct kymo_error *advise_steps(struct kymo_error *error)
{
	struct kymo_error *advice =
		kymo_error_create(error->code, "%s: --branch-source steps records it, slowly", error->message);

	kymo_error_destroy(error);
	return advice;
}

static struct kymo_error *open_source(struct attempt *attempt)
{
	struct kymo_error *error;

	if (attempt->source == KYMO_RECORD_BRANCHES_AUTO)
		return open_best(attempt);
	error = open_branches(attempt);
	if (!error && attempt->source == KYMO_RECORD_BRANCHES_STEPS)
		tell_steps(attempt->recording, NULL);
	return error && error->code == KYMO_ERROR_UNSAFE ? advise_steps(error) : error;
}

/* ---- while it goes on ------------------------------------------------------------------------ */

/* What is taken is told as events; what is written at the end is counted anew. */
static void look_after_branches(struct recording *recording, struct kymo_branches *branches)
{
	const uint64_t now = kymo_now_ns();

	recording->output.files.events = kymo_branches_taken(branches);
	recording_tell_branch_warnings(recording, branches);
	if (now < recording->run.next_progress_ns)
		return;
	recording->run.next_progress_ns = now + PROGRESS_NS;
	recording_progress(recording, KYMO_RECORD_RUNNING);
}

static bool is_over(const struct attempt *attempt)
{
	return attempt->clones ? clones_are_over(attempt->clones) : !kymo_branches_has_threads(attempt->branches);
}

static void record_branches(const struct attempt *attempt)
{
	while (!recording_is_time_up(attempt->recording) && !is_over(attempt)) {
		if (attempt->clones)
			clones_wait(attempt->clones);
		else
			nanosleep(&(struct timespec){ 0, POLL_NS }, NULL);
		look_after_branches(attempt->recording, attempt->branches);
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

static struct kymo_error *end_branches(const struct attempt *attempt)
{
	struct recording *recording = attempt->recording;
	struct kymo_record_result *result = &recording->result;
	struct kymo_error *ending;

	recording->result.seconds = (double)(kymo_now_ns() - recording->run.begin_ns) / SECOND_NS;
	recording_progress(recording, KYMO_RECORD_STOPPING);
	ending = attempt->clones ? clones_end(attempt->clones) : NULL;
	recording_end_branches(recording, attempt->branches);
	if (!attempt->clones)
		result->command_ended = kymo_branches_command_ended(attempt->branches, &result->command_status);
	recording->output.files.events = 0;
	return kymo_error_first(ending, recording_write_branches(recording, attempt->branches));
}

struct kymo_error *recording_run_branches(struct recording *recording)
{
	struct attempt attempt = { .recording = recording, .source = recording->wanted.options->branch_source };
	struct kymo_error *error = recording_check_directory(recording);

	if (!error)
		error = open_source(&attempt);
	if (!error)
		error = begin_branches(&attempt);
	if (!error) {
		recording->run.has_begun = true;
		record_branches(&attempt);
		error = end_branches(&attempt);
	}
	end_attempt(&attempt);
	return error;
}
