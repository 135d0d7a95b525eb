/* The beginning of a recording in the process: attach or launch, probes in. */
#include "record/begin.h"

#include <stdlib.h>

#include "probe/install/remove.h"
#include "probe/probe.h"
#include "probe/install/mapped.h"
#include "probe/threads/threads.h"
#include "proc/launch.h"
#include "proc/left_stub.h"
#include "proc/linker.h"
#include "proc/process.h"
#include "proc/startup.h"
#include "proc/tree.h"
#include "record/beside.h"
#include "record/describe.h"
#include "record/family.h"
#include "record/mixed.h"
#include "record/packets.h"
#include "record/progress.h"
#include "record/recording.h"
#include "record/stale.h"
#include "record/targets.h"
#include "record/wanted.h"
#include "record/warnings.h"

/* The first target, and from now on what it makes. */
static struct kymo_error *take_process(struct recording *recording, struct target **ret)
{
	const bool follows = recording->wanted.options->follow || recording_is_beside(recording);
	struct kymo_error *error = follows ? kymo_tree_create(&recording->run.tree) : NULL;
	struct target *target;

	recording->run.pid = kymo_process_pid(recording->run.process);
	if (!error && recording->run.tree) {
		kymo_tree_set_meanwhile(recording->run.tree, recording_drain_meanwhile, recording);
		error = kymo_tree_take(recording->run.tree, recording->run.process);
	}
	if (!error)
		error = recording_open_mix(recording);
	if (error)
		return error;
	target = recording_add_target(recording, recording->run.process, NULL);
	if (!target)
		return &kymo_error_no_memory;
	target->is_named = true;
	error = recording_create_source(recording, target);
	*ret = target;
	return error;
}

/* With others to come, a file that is not there yet may be theirs. */
static struct kymo_error *check_all_found(const struct recording *recording, const struct target *target)
{
	return recording->run.tree || recording_has_several(recording)
		       ? NULL
		       : kymo_probes_check_all_found(target->source->probes);
}

struct kymo_error *recording_attach(struct recording *recording)
{
	struct kymo_error *error =
		kymo_process_open(recording->wanted.options->pids[recording->wanted.at_pid], &recording->run.process);
	struct target *target = NULL;

	if (!error)
		error = recording_clear_stale(recording->run.process);
	if (!error)
		error = take_process(recording, &target);
	if (!error)
		error = beside_check(recording);
	if (!error)
		error = beside_open(recording);
	if (error)
		return error;
	recording->run.has_begun = true;
	recording_progress(recording, KYMO_RECORD_PLANNING);
	error = kymo_probes_resolve(target->source->probes);
	if (!error)
		error = check_all_found(recording, target);
	if (!error)
		error = recording_check_any_met(recording, target);
	if (!error)
		error = kymo_probes_set_live(target->source->probes);
	if (!error)
		error = recording_mix(recording, target->source, NULL);
	if (!error)
		error = recording_finish_mix(recording);
	if (!error)
		error = recording_install(recording, target->source);
	if (!error)
		error = recording_make_output(recording);
	if (!error)
		error = recording_update_metadata(recording);
	if (!error)
		error = source_open_rings(recording, target->source);
	return error ? error : beside_put_in(recording);
}

/* Follow the dynamic linker from file to file. */
static struct kymo_error *start_up(struct recording *recording, struct target *target)
{
	enum kymo_startup_event event = KYMO_STARTUP_MAPPED;
	struct kymo_error *error;
	bool done;

	kymo_probes_starting(target->source->probes);
	error = recording_start_up(recording, target, event, &done);
	while (!error && !done) {
		error = kymo_process_startup(target->process, &event);
		recording->run.has_run = event == KYMO_STARTUP_LOADED; /* constructors */
		if (error || event == KYMO_STARTUP_LOADED)
			break;
		error = recording_start_up(recording, target, event, &done);
	}
	if (error || done)
		return error;
	if (!target->has_threads && !recording->run.tree)
		recording_warn(
			recording,
			"this program sets up its threads without the dynamic linker, and kymo does not see when "
			"(--no-follow): all records carry the process id");
	error = check_all_found(recording, target);
	if (!error)
		error = recording_finish_mix(recording);
	return error ? error : recording_start_up(recording, target, event, &done);
}

struct kymo_error *recording_launch(struct recording *recording)
{
	struct kymo_error *error = kymo_process_launch(recording->wanted.options->command, &recording->run.process);
	struct target *target = NULL;

	if (!error)
		error = take_process(recording, &target);
	if (!error)
		error = beside_check(recording);
	if (!error)
		error = start_up(recording, target);
	if (!error)
		error = beside_open(recording);
	if (!error)
		error = beside_put_in(recording);
	if (!error)
		error = recording_make_output(recording);
	if (!error)
		error = source_open_rings(recording, target->source);
	recording->run.has_begun = !error;
	return error;
}
