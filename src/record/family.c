/*
 * Which processes are recorded: the processes of a tree, as they begin, execute programs and end
 * (docs/internals/following.md). targets.c has what each of them has.
 */
#include "record/family.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "probe/code/events.h"
#include "probe/install/remove.h"
#include "probe/memory/data.h"
#include "probe/memory/spent.h"
#include "probe/memory/state.h"
#include "probe/probe.h"
#include "probe/install/mapped.h"
#include "probe/install/install.h"
#include "probe/threads/threads.h"
#include "proc/linker.h"
#include "proc/process.h"
#include "proc/startup.h"
#include "proc/stop.h"
#include "proc/tree.h"
#include "record/beside.h"
#include "record/describe.h"
#include "record/mixed.h"
#include "record/packets.h"
#include "record/recording.h"
#include "record/targets.h"
#include "record/wanted.h"
#include "record/warnings.h"
#include "sym/nearest.h"

#define DYING_MS 50
#define SHARE_NS 5000000u /* of the recorder's time for events of the tree, before rings are looked at again */

static struct target *find_target(const struct recording *recording, const struct kymo_process *process)
{
	for (size_t i = recording->run.targets.n; i-- > 0 && process;)
		if (recording->run.targets.items[i]->process == process)
			return recording->run.targets.items[i];
	return NULL;
}

/* ---- programs that start --------------------------------------------------------------------- */

struct kymo_error *recording_start_up(struct recording *recording, struct target *target, enum kymo_startup_event event,
				      bool *done_ret)
{
	struct record_source *source = target->source;
	struct kymo_error *error = NULL;

	*done_ret = false;
	if (target->is_id_due && (event == KYMO_STARTUP_MAPPED || event == KYMO_STARTUP_LOADED)) {
		target->is_id_due = false;
		error = kymo_probes_set_live(source->probes);
	}
	if (error)
		return error;
	switch (event) {
	case KYMO_STARTUP_MAPPED:
		error = recording_mix(recording, source, NULL);
		return error ? error : recording_install(recording, source);
	case KYMO_STARTUP_TLS:
		target->has_threads = target->is_id_due = true;
		return NULL;
	case KYMO_STARTUP_LOADED:
		*done_ret = true;
		error = kymo_probes_install_rest(source->probes, &recording->result.stopped_ns);
		return error ? error : kymo_probes_started(source->probes);
	default:
		*done_ret = true;
		return NULL;
	}
}

/* Killed, which the tree is about to tell. Memory is gone a little before. */
bool recording_is_dead(const struct target *target, const struct kymo_error *error)
{
	struct pollfd ended = { .fd = kymo_process_pidfd(target->process), .events = POLLIN };
	bool may_be = error->code == KYMO_ERROR_FAILED || error->code == KYMO_ERROR_GONE;

	return kymo_process_is_past(target->process) || poll(&ended, 1, may_be ? DYING_MS : 0) > 0;
}

/* One process less in the recording; it runs on as it is. Those that have ended by now are not needed. */
static void give_up(struct recording *recording, struct target *target, struct kymo_error *error)
{
	target->is_in_startup = false;
	if (error && !recording_is_dead(target, error)) {
		recording_warn(recording, "process %d runs without probes: %s", target->pid, error->message);
		recording->run.has_given_up = true;
	}
	kymo_error_destroy(error);
	kymo_process_resume(target->process);
}

/* Events with their own metadata, and rings, before anything is written of them. */
static struct kymo_error *open_rings(struct recording *recording, struct record_source *source)
{
	struct kymo_error *error = recording_update_metadata(recording);

	return error ? error : source_open_rings(recording, source);
}

/* From one start-up event to the next. An error is about the recording. */
static struct kymo_error *step(struct recording *recording, struct target *target, enum kymo_startup_event event)
{
	bool done = false;
	struct kymo_error *error = recording_start_up(recording, target, event, &done), *failed;

	failed = open_rings(recording, target->source);
	if (!error && !failed && !done)
		error = kymo_process_startup_on(target->process);
	if (error || failed) {
		give_up(recording, target, error);
		return failed;
	}
	if (done) {
		target->is_in_startup = false;
		kymo_process_resume(target->process);
	}
	return NULL;
}

static struct kymo_error *begin_program(struct recording *recording, struct target *target)
{
	struct kymo_error *error;

	target->is_in_startup = true;
	error = recording_create_source(recording, target);
	if (error) {
		give_up(recording, target, error);
		return NULL;
	}
	kymo_probes_starting(target->source->probes);
	return step(recording, target, KYMO_STARTUP_MAPPED);
}

/* ---- what the tree tells --------------------------------------------------------------------- */

struct kymo_error *recording_probe_running(struct recording *recording, struct target *target)
{
	struct kymo_error *error = recording_create_source(recording, target);

	if (!error)
		error = kymo_probes_resolve(target->source->probes);
	if (!error)
		error = recording_check_any_met(recording, target);
	if (!error)
		error = kymo_probes_set_live(target->source->probes);
	if (!error)
		error = recording_install(recording, target->source);
	return error ? error : open_rings(recording, target->source);
}

static struct kymo_error *no_target(const struct kymo_tree_event *event)
{
	kymo_process_destroy(event->process);
	return &kymo_error_no_memory;
}

/* Born while its parent's probes were going in: it has none of them, or not all that belongs to them, and gets its own
 * as a process that runs. */
static struct kymo_error *attach_child(struct recording *recording, struct target *target)
{
	struct kymo_detach_result result = { .note = NULL };
	struct kymo_error *error = kymo_remove(target->process, kymo_probes_inode(target->source->probes), &result);

	free(result.note);
	if (!error && result.pads_left)
		error = kymo_error_create(KYMO_ERROR_BUSY, "a thread of process %d stands in a pad", target->pid);
	if (error)
		return error;
	target->source->users--; /* the parent is another */
	target->source = NULL;
	return recording_probe_running(recording, target);
}

/* A child has its parent's text and memory, but for the rings: it gets its own. */
static struct kymo_error *adopt(struct recording *recording, struct target *target, struct target *parent)
{
	struct record_source *before = target->source, *source;
	struct kymo_adopted *adopted;
	struct kymo_error *error;

	if (recording->wanted.options->overwrite)
		kymo_probes_set_child_buffer(before->probes, recording_share_of(recording));
	error = kymo_probes_adopt(before->probes, target->process, parent->process, before->adopted, &adopted);

	if (error || !adopted)
		return error;
	source = recording_share_source(recording, before, adopted, target->pid);
	if (!source) {
		kymo_adopted_destroy(adopted);
		return &kymo_error_no_memory;
	}
	recording_use_source(target, source);
	before->users--; /* the parent is another */
	return source_open_rings(recording, source);
}

/* Whether its program has forbidden itself to read the time stamp counter, which forks and execs inherit. */
static bool is_muted(const struct target *target)
{
	return target->is_muted || (target->source && source_is_muted(target->source));
}

static struct kymo_error *forked(struct recording *recording, const struct kymo_tree_event *event)
{
	struct target *parent = find_target(recording, event->other);
	struct target *target = recording_add_target(recording, event->process, parent);
	struct kymo_error *error = NULL;

	if (!target)
		return no_target(event);
	if (parent)
		recording_use_source(target, parent->source);
	target->is_muted = parent && is_muted(parent);
	target->is_sharing = event->kind == KYMO_TREE_SHARING;
	recording_note_begin(recording, target, parent);
	recording_note_thread(recording, target, target->pid, true, event->comm);
	if (target->is_sharing || recording->run.is_ending)
		return NULL;
	if (target->source && target->source->n_rings && !event->refusal)
		error = adopt(recording, target, parent);
	if (error && parent && !recording_is_dead(target, error)) {
		kymo_error_destroy(error);
		error = attach_child(recording, target);
	}
	give_up(recording, target, error);
	return NULL;
}

/* The kernel gives no privileges to a program whose tracer does not have all of them. */
static void warn_of_lost_rights(struct recording *recording, const struct kymo_tree_event *event)
{
	struct stat program;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/exe", kymo_process_pid(event->process));
	if (geteuid() && !stat(name, &program) && program.st_mode & S_ISUID && program.st_uid != geteuid())
		recording_warn(recording,
			       "%s is set-uid, and runs without the rights of its owner while it is followed; "
			       "--no-follow lets it have them",
			       event->comm);
}

static struct kymo_error *execed(struct recording *recording, const struct kymo_tree_event *event)
{
	struct target *before = find_target(recording, event->other);
	struct target *target = recording_add_target(recording, event->process, NULL);
	struct kymo_error *error = NULL;

	if (!target)
		return no_target(event);
	target->parent = before ? before->parent : 0;
	target->is_named = before && before->is_named;
	target->is_muted = before && is_muted(before);
	if (recording->run.process == event->other)
		recording->run.process = event->process;
	if (before)
		error = recording_drop_target(recording, before);
	if (recording->run.is_ending || error) {
		target->is_clean = true;
		kymo_process_resume(target->process);
		return error;
	}
	recording_note_begin(recording, target, NULL);
	recording_note_thread(recording, target, target->pid, true, event->comm);
	warn_of_lost_rights(recording, event);
	if (!event->refusal && !target->is_muted)
		return begin_program(recording, target);
	target->is_clean = true;
	recording_warn(recording, "%s is not recorded: %s", event->comm,
		       target->is_muted ? "reading the time stamp counter is a fault in it (PR_TSC_SIGSEGV)"
					: event->refusal->message);
	kymo_process_resume(target->process);
	return NULL;
}

static struct kymo_error *ended(struct recording *recording, const struct kymo_tree_event *event)
{
	struct target *target = find_target(recording, event->process);

	if (event->refusal)
		recording_warn(recording, "process %d has executed another program, which is not recorded: %s",
			       kymo_process_pid(event->process), event->refusal->message);
	if (kymo_process_pid(event->process) == recording->run.pid && recording->wanted.options->command &&
	    !event->refusal) {
		recording->result.command_ended = true;
		recording->result.command_status = event->status;
	}
	if (!target) {
		kymo_process_destroy(event->process);
		return NULL;
	}
	recording_note_thread(recording, target, target->pid, false, event->comm);
	return recording_drop_target(recording, target);
}

/* The second thread of a process that is known by its process id until now. */
static void tell_apart(struct recording *recording, const struct target *target, struct kymo_process *process)
{
	struct kymo_error *error = NULL;

	if (target && target->source && !recording->run.is_ending)
		error = kymo_probes_tell_apart(target->source->probes, process);
	if (error && !recording_is_dead(target, error))
		recording_warn(
			recording,
			"the threads of process %d cannot be told apart, and all records carry the process id: %s",
			target->pid, error->message);
	kymo_error_destroy(error);
	kymo_process_resume(process);
}

static struct kymo_error *dispatch(struct recording *recording, const struct kymo_tree_event *event)
{
	struct target *target = find_target(recording, event->process);

	beside_note(recording, event);
	switch (event->kind) {
	case KYMO_TREE_FORKED:
	case KYMO_TREE_SHARING:
		return forked(recording, event);
	case KYMO_TREE_REFUSED:
		recording_warn(recording, "process %d (%s), a child of a recorded one, is not recorded: %s", event->tid,
			       event->comm, event->refusal->message);
		return NULL;
	case KYMO_TREE_EXECED:
		return execed(recording, event);
	case KYMO_TREE_ENDED:
		return ended(recording, event);
	case KYMO_TREE_STARTUP:
		if (target && target->is_in_startup && !recording->run.is_ending)
			return step(recording, target, event->startup);
		kymo_process_resume(event->process);
		return NULL;
	case KYMO_TREE_THREAD:
	case KYMO_TREE_THREAD_ENDED:
		if (target)
			recording_note_thread(recording, target, event->tid, event->kind == KYMO_TREE_THREAD,
					      event->comm);
		if (event->is_held)
			tell_apart(recording, target, event->process);
		return NULL;
	}
	return NULL;
}

void recording_drain_meanwhile(void *data)
{
	struct recording *recording = data;
	size_t n;

	if (!recording->wanted.options->overwrite && !recording->run.drain_error && !recording->run.is_ending)
		recording->run.drain_error = recording_drain(recording, &n);
}

struct kymo_error *recording_follow(struct recording *recording)
{
	uint64_t deadline = kymo_now_ns() + SHARE_NS;
	struct kymo_error *error = NULL;
	struct kymo_tree_event event;

	while (!error && kymo_tree_next(recording->run.tree, &event)) {
		error = dispatch(recording, &event);
		kymo_error_destroy(event.refusal);
		if (!recording->run.is_ending && kymo_now_ns() > deadline)
			break;
	}
	kymo_spent_free();
	return error ? error : kymo_take(recording->run.drain_error);
}

static void warn_not_loaded(struct recording *recording, const struct kymo_spec *spec)
{
	const char *command = recording->wanted.options->command ? recording->wanted.options->command[0] : "";
	char nearest[PATH_MAX] = "";

	kymo_nearest_file(spec->file, command, nearest, sizeof(nearest));
	if (!strcmp(nearest, spec->file))
		nearest[0] = '\0';
	recording_warn(recording, "no %sprocess loaded a file called %s ('%s').%s%s%s",
		       recording->run.has_given_up ? "recorded " : "", spec->file, kymo_spec_typed(spec),
		       *nearest ? " Did you mean " : "", nearest, *nearest ? "?" : "");
}

void recording_tell_unmet(struct recording *recording)
{
	const struct kymo_probe_event *events;
	size_t n;

	events = kymo_events_items(recording->run.events, &n);
	for (size_t i = 0; i < recording->wanted.n_inproc; i++) {
		const struct kymo_spec *spec = &recording->wanted.specs[i];
		bool met = false;

		for (size_t k = 0; k < n; k++)
			met |= events[k].spec == spec;
		if (met || (recording->run.lacking && recording->run.lacking[i]))
			continue;
		if (spec->file)
			warn_not_loaded(recording, spec);
		else if (spec->marker)
			recording_warn(recording, "no process has a marker that matches '%s'", spec->marker);
		else
			recording_warn(recording, "no process has code for '%s'", kymo_spec_typed(spec));
	}
}
