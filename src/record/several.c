/* The processes of a recording beside its first: those that were named with it, and children that exist already
 * (docs/internals/following.md). */
#include "record/several.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe/install/mapped.h"
#include "proc/process.h"
#include "proc/stop.h"
#include "proc/tree.h"
#include "procfs/info.h"
#include "record/begin.h"
#include "record/describe.h"
#include "record/family.h"
#include "record/packets.h"
#include "record/progress.h"
#include "record/recording.h"
#include "record/stale.h"
#include "record/targets.h"
#include "record/wanted.h"
#include "record/warnings.h"

#define SHARING_TRIES 200 /* for a child in its parent's memory to execute its program */
#define SHARING_WAIT_NS 2000000u

void recording_tell_refused(struct recording *recording, pid_t pid, struct kymo_error *error)
{
	const struct kymo_record_options *options = recording->wanted.options;

	/* Of each: recording_warn() tells but once what differs in numbers only. */
	error = kymo_error_prefix(error, "process %d is not recorded", pid);
	if (options->warn)
		options->warn(error->message, options->data);
	kymo_error_destroy(error);
}

/* What recorders that are gone have left goes out, then probes go in. It is stopped afterwards. */
static struct kymo_error *put_in(struct recording *recording, struct target *target)
{
	struct kymo_error *error = recording_clear_stale(target->process);

	if (!error && recording->run.tree)
		error = kymo_tree_take(recording->run.tree, target->process);
	if (error)
		return error;
	recording_note_begin(recording, target, NULL);
	error = recording_probe_running(recording, target);
	if (error)
		recording_note_refused(recording, target);
	return error;
}

/* `is_named`: it was asked for; else it is a child that exists, of `parent`, which is NULL where that is not recorded.
 */
static void attach_one(struct recording *recording, pid_t pid, const struct target *parent, bool is_named)
{
	struct kymo_process *process;
	struct target *target = NULL;
	struct kymo_error *error = kymo_process_open(pid, &process);
	bool has_ended;

	if (!error) {
		target = recording_add_target(recording, process, parent);
		error = target ? NULL : &kymo_error_no_memory;
		if (!target)
			kymo_process_destroy(process);
	}
	if (target) {
		target->is_named = is_named;
		error = put_in(recording, target);
	}
	if (!error) {
		kymo_process_resume(target->process);
		return;
	}
	has_ended = target ? recording_is_dead(target, error) : error->code == KYMO_ERROR_GONE;
	if (is_named || !has_ended)
		recording_tell_refused(recording, pid, error);
	else
		kymo_error_destroy(error);
	if (target)
		recording_give_back(recording, target);
}

/* What the others have recorded meanwhile, and what the tree has to tell. */
static struct kymo_error *keep_up(struct recording *recording)
{
	struct kymo_error *error = NULL;
	size_t n;

	if (!recording->wanted.options->overwrite)
		error = recording_drain(recording, &n);
	return error || !recording->run.tree ? error : recording_follow(recording);
}

/* ---- children that exist --------------------------------------------------------------------- */

struct descent {
	KYMO_VEC(pid_t) tried; /* children that got their probes, or refused */
	unsigned int n_waits;  /* for children in their parents' memory */
};

static const struct target *find_by_pid(const struct recording *recording, pid_t pid)
{
	for (size_t i = 0; i < recording->run.targets.n; i++)
		if (recording->run.targets.items[i]->pid == pid)
			return recording->run.targets.items[i];
	return NULL;
}

static bool was_tried(const struct descent *descent, pid_t pid)
{
	for (size_t i = 0; i < descent->tried.n; i++)
		if (descent->tried.items[i] == pid)
			return true;
	return false;
}

/* Followed by this tree already, or about to be: the kernel has attached us at its birth. */
static bool is_ours(const struct recording *recording, pid_t pid, const struct kymo_process_info *info)
{
	return find_by_pid(recording, pid) || info->tracer == gettid() || pid == getpid();
}

/* A child of a process that is recorded, or was refused; `again_ret`: it is one to be looked at later, or there may be
 * more now. */
static struct kymo_error *look_at_child(struct recording *recording, struct descent *descent, pid_t pid,
					bool *again_ret)
{
	const struct target *parent;
	struct kymo_process_info info;

	if (was_tried(descent, pid) || !kymo_process_peek(pid, &info) || info.state == 'Z' ||
	    is_ours(recording, pid, &info))
		return NULL;
	parent = find_by_pid(recording, info.parent);
	if (!parent && !was_tried(descent, info.parent))
		return NULL;
	*again_ret = true;
	if (kymo_compare_memory(pid, info.parent) == 0 && descent->n_waits++ < SHARING_TRIES) {
		nanosleep(&(struct timespec){ .tv_nsec = SHARING_WAIT_NS }, NULL);
		return keep_up(recording);
	}
	if (!kymo_vec_push(&descent->tried, pid))
		return &kymo_error_no_memory;
	attach_one(recording, pid, parent, false);
	return keep_up(recording);
}

static struct kymo_error *look_at_all(struct recording *recording, struct descent *descent, bool *again_ret)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	struct kymo_error *error = NULL;
	struct dirent *entry;

	if (!processes)
		return kymo_error_errno(errno, "cannot read /proc");
	*again_ret = false;
	while (!error && recording->run.targets.n && !recording_is_stopped(recording) && (entry = readdir(processes))) {
		const long pid = strtol(entry->d_name, NULL, 10);

		if (pid > 0)
			error = look_at_child(recording, descent, (pid_t)pid, again_ret);
	}
	return error;
}

static struct kymo_error *attach_descendants(struct recording *recording)
{
	struct descent descent = { .n_waits = 0 };
	struct kymo_error *error = NULL;
	bool again = true;

	while (!error && again && recording->run.targets.n && !recording_is_stopped(recording))
		error = look_at_all(recording, &descent, &again);
	kymo_vec_deinit(&descent.tried);
	return error;
}

static bool has_children(pid_t pid)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	struct kymo_process_info info;
	struct dirent *entry;

	while (processes && (entry = readdir(processes))) {
		const long id = strtol(entry->d_name, NULL, 10);

		if (id > 0 && kymo_process_peek((pid_t)id, &info) && info.parent == pid && info.state != 'Z')
			return true;
	}
	return false;
}

void recording_tell_left_out(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;

	if (options->pid && options->follow && options->existing && has_children(options->pid))
		recording_warn(recording,
			       "the children that process %d has already are not recorded; those that it makes from "
			       "now on are: only code in the process records both",
			       options->pid);
}

/* ---- the others ------------------------------------------------------------------------------ */

/* If no process is followed, each spec must match in some process. */
static struct kymo_error *check_all_met(const struct recording *recording)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < recording->wanted.n_inproc && !error; i++)
		for (size_t k = 0; k < recording->run.sources.n; k++) {
			kymo_error_destroy(error);
			error = kymo_probes_check_found(recording->run.sources.items[k]->probes, i);
			if (!error)
				break;
		}
	return error;
}

struct kymo_error *recording_attach_others(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	struct kymo_error *error = NULL;

	if (!recording_has_several(recording))
		return NULL;
	if (recording->run.process)
		kymo_process_resume(recording->run.process);
	for (size_t i = recording->wanted.at_pid + 1; i < options->n_pids && !error && !recording_is_stopped(recording);
	     i++) {
		if (!find_by_pid(recording, options->pids[i])) /* born of another meanwhile */
			attach_one(recording, options->pids[i], NULL, true);
		error = keep_up(recording);
	}
	if (!error && recording->run.tree && options->existing)
		error = attach_descendants(recording);
	if (!error && !recording->run.tree && !recording_is_stopped(recording))
		error = check_all_met(recording);
	return error;
}
