/*
 * A recording: from its beginning (begin.c) to the last packet, and probes out.
 */
#include "record/record.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/io.h"
#include "probe/code/events.h"
#include "probe/install/answer.h"
#include "probe/install/remove.h"
#include "probe/install/stack.h"
#include "probe/memory/state.h"
#include "probe/probe.h"
#include "probe/site/sites.h"
#include "probe/threads/watch.h"
#include "probe/threads/writes.h"
#include "proc/process.h"
#include "proc/stop.h"
#include "proc/tree.h"
#include "procfs/maps.h"
#include "record/aggregate.h"
#include "record/begin.h"
#include "record/beside.h"
#include "record/branches.h"
#include "record/describe.h"
#include "record/fallback.h"
#include "record/family.h"
#include "record/handlers.h"
#include "record/handover.h"
#include "record/kernel.h"
#include "record/kernel_run.h"
#include "record/looks.h"
#include "record/mixed.h"
#include "record/packets.h"
#include "record/progress.h"
#include "record/recorder.h"
#include "record/recording.h"
#include "record/several.h"
#include "record/snapshot.h"
#include "record/stacks.h"
#include "record/targets.h"
#include "record/until.h"
#include "record/wanted.h"
#include "record/warnings.h"
#include "trace/kernel_stream.h"

#define SECOND_NS 1000000000u
#define PROGRESS_NS (SECOND_NS / 5)
#define FLUSH_NS SECOND_NS
#define FIRST_FLUSH_NS (PROGRESS_NS / 2) /* so the first lines that a user sees have events */
#define LEASE_NS (SECOND_NS / 4)         /* pads that write registers are told that a recorder lives */
#define READING_NS (10ull * SECOND_NS)
#define SEAL_NS (1200ull * SECOND_NS) /* stamps in a packet are told apart for an hour and more: wire/event.h */
#define FASTEST_PRODUCER 800          /* bytes a microsecond that one CPU can write */
#define POLL_MAX_MS 20

/* ---- while it goes on ------------------------------------------------------------------------ */

static void publish(const struct recording *recording)
{
	uint64_t lost = recording_lost(recording);

	for (size_t i = 0; i < recording->run.sources.n; i++)
		kymo_probes_publish(recording->run.sources.items[i]->probes, recording->output.files.bytes, lost);
}

/* What is not done with every packet. */
static struct kymo_error *look_after_targets(struct recording *recording)
{
	struct kymo_error *error = NULL;
	uint64_t now = kymo_now_ns();

	if (now >= recording->run.next_progress_ns) {
		recording->run.next_progress_ns = now + PROGRESS_NS;
		recording_progress(recording, KYMO_RECORD_RUNNING);
		publish(recording);
	}
	if (recording->output.aggregating && aggregate_wants_flush(recording))
		recording_flush(recording);
	if (recording->output.aggregating)
		error = aggregate_now_and_then(recording);
	if (!error && now >= recording->run.next_flush_ns) {
		recording_note_threads(recording, !recording->run.tree);
		if (recording->wanted.options->overwrite)
			stacks_note_some(recording);
		if (recording->run.next_flush_ns &&
		    (!recording->wanted.options->overwrite || now >= recording->run.next_seal_ns))
			recording_flush(recording); /* at the second look: what is closed counts as used */
		recording->run.next_flush_ns = now + (recording->run.next_flush_ns ? FLUSH_NS : FIRST_FLUSH_NS);
		if (now >= recording->run.next_seal_ns)
			recording->run.next_seal_ns = now + SEAL_NS;
		error = recording_note_vforks(recording);
		if (!error && recording->run.kernel)
			error = recording_kernel_flush(recording->run.kernel, &recording->output.files);
	}
	return error;
}

/* Pads write registers only while this goes on. */
static void renew_writes(struct recording *recording)
{
	const uint64_t now = recording->wanted.options->allow_write ? kymo_now_ns() : 0;

	if (!now || now < recording->run.next_lease_ns)
		return;
	recording->run.next_lease_ns = now + LEASE_NS;
	for (size_t i = 0; i < recording->run.targets.n; i++) {
		const struct target *target = recording->run.targets.items[i];

		if (target->source && !target->is_sharing && !target->is_clean)
			kymo_probes_renew_writes(target->source->probes, target->process);
	}
}

/* A producer that never pauses fills half of what its buffer begins with, a quarter, in this time. */
static int poll_ms(const struct recording *recording)
{
	uint64_t size = recording->wanted.options->buffer_size, ms;

	for (size_t i = 0; i < recording->run.sources.n; i++) {
		if (kymo_probes_are_watching(recording->run.sources.items[i]->probes))
			return 1;
		if (recording->run.sources.items[i]->buffer_size < size)
			size = recording->run.sources.items[i]->buffer_size;
	}
	ms = size / 8 / FASTEST_PRODUCER / 1000;
	return ms < 1 ? 1 : ms > POLL_MAX_MS ? POLL_MAX_MS : (int)ms;
}

/*
 * Until something about the processes has changed, or it is time for the next look. Looks begin one period after each
 * other: one after which there is more to write, as there nearly always is, takes its time off the wait.
 */
static void wait_for_change(struct recording *recording)
{
	/* Of several processes that are not followed, the end of the first wakes; the ends of others are seen when
	 * rings are drained. */
	struct pollfd changed = {
		.fd = recording->run.tree ? kymo_tree_fd(recording->run.tree)
					  : kymo_process_pidfd(recording->run.targets.items[0]->process),
		.events = POLLIN,
	};
	const uint64_t next = recording->run.looked_ns + (uint64_t)poll_ms(recording) * 1000000, now = kymo_now_ns();
	const struct timespec left = { .tv_nsec = next > now ? (long)(next - now) : 0 };

	ppoll(&changed, 1, &left, NULL);
	recording->run.looked_ns = kymo_now_ns();
}

/* Threads that have loaded a library wait for an answer. An error is told: what was recorded before goes on. */
static void answer_source(struct recording *recording, struct record_source *source)
{
	bool has_new = false, late = false;
	struct kymo_error *error = recording_mix(recording, source, &has_new), *answered, *described;
	size_t n_sites;

	stacks_note(recording, source);
	answered = kymo_probes_answer(source->probes, has_new, &late, &recording->result.stopped_ns);
	error = kymo_error_first(error, answered);
	n_sites = kymo_probes_n_sites(source->probes);
	/* The kernel may have new events all the same: its packets are written with those that are described. */
	described = recording_update_metadata(recording);
	error = kymo_error_first(error, described);
	if (error && !kymo_probes_are_mapped(source->probes)) { /* the process has ended */
		kymo_error_destroy(error);
		error = NULL;
	}
	if (error)
		recording_warn(recording, "a library that process %d has loaded is not probed: %s",
			       kymo_process_pid(source->process), error->message);
	if (late)
		recording_tell_late(recording, source);
	kymo_error_destroy(error);
	if (n_sites > recording->run.n_sites)
		recording->run.n_sites = n_sites;
}

static void answer_all(struct recording *recording)
{
	for (size_t i = 0; i < recording->run.sources.n; i++)
		if (kymo_probes_are_asked(recording->run.sources.items[i]->probes))
			answer_source(recording, recording->run.sources.items[i]);
}

/* A process that exits has none from some moment on, and has ended a little later only. */
static bool has_memory(pid_t pid)
{
	struct kymo_maps maps;
	struct kymo_error *error = kymo_maps_read(pid, &maps);
	bool has = !error && maps.n;

	if (!error)
		kymo_maps_deinit(&maps);
	kymo_error_destroy(error);
	return has;
}

/* A process that is not followed has ended, or is another. */
static bool is_over(struct recording *recording, const struct target *target)
{
	int status;

	if (kymo_process_ended(target->process, &status))
		return true;
	/* The kernel's probes are in the next program, too, until that is noticed. */
	if ((!recording->run.kernel && kymo_now_ns() < recording->run.next_flush_ns) ||
	    kymo_probes_are_mapped(target->source->probes) || !has_memory(target->pid))
		return false;
	recording_warn(recording,
		       "process %d has executed another program, which is not recorded%s; what it did before is",
		       target->pid, recording->run.kernel ? ", but for a moment what goes through the kernel" : "");
	return true;
}

/* Processes that are over leave the recording, but for the last; `all_ret`: that is over, too. */
static struct kymo_error *drop_those_that_are_over(struct recording *recording, bool *all_ret)
{
	struct kymo_error *error = NULL;

	*all_ret = false;
	for (size_t i = recording->run.targets.n; i-- > 0 && !error;) {
		if (!is_over(recording, recording->run.targets.items[i]))
			continue;
		*all_ret = recording->run.targets.n == 1;
		if (!*all_ret)
			error = recording_drop_target(recording, recording->run.targets.items[i]);
	}
	return error;
}

/* Until the end of time, processes, disk. `alive_ret`: there are processes to take probes out of. */
static struct kymo_error *record_targets(struct recording *recording, bool *alive_ret)
{
	size_t n, n_kernel;
	bool is_all_over;

	*alive_ret = true;
	while (!recording_is_time_up(recording)) {
		struct kymo_error *error = NULL;

		wait_for_change(recording);
		renew_writes(recording);
		/* Producers that overwrite do not wait: what they may be writing is not read before they are gone.
		 */
		if (!recording->wanted.options->overwrite)
			error = recording_drain(recording, &n);
		if (!error && recording->run.kernel)
			error = recording_kernel_drain(recording->run.kernel, &recording->output.files, &n_kernel);
		if (!error && recording->run.tree)
			error = recording_follow(recording);
		if (error)
			return error;
		beside_heed(recording);
		answer_all(recording);
		recording_snapshot(recording);
		recording_heed_conditions(recording);
		recording_look_at_faults(recording);
		is_all_over = !recording->run.targets.n;
		if (!recording->run.tree)
			error = drop_those_that_are_over(recording, &is_all_over);
		if (error || is_all_over) {
			*alive_ret = !is_all_over;
			return error;
		}
		error = recording_look(recording);
		if (!error)
			error = look_after_targets(recording);
		if (error)
			return error;
	}
	answer_all(recording); /* a reader that has asked since is told of what it has missed, or none would be */
	return NULL;
}

/* ---- the end --------------------------------------------------------------------------------- */

static struct kymo_error *take_out_of(struct recording *recording, struct target *target)
{
	struct kymo_detach_result result = { .note = NULL };
	struct kymo_error *error, *left;
	uint64_t inode = 0; /* its parent is not known: whatever is not recorded */
	int status;

	recording_end_look(recording, target);
	target->is_clean = true;
	if (target->source && !target->is_sharing)
		kymo_probes_end_writes(target->source->probes, target->process);
	if (target->source)
		inode = kymo_probes_inode(target->source->probes);
	if (target->source && !inode) {
		kymo_process_resume(target->process);
		return NULL;
	}
	if (target->source && recording->wanted.options->overwrite)
		stacks_note(recording, target->source);
	left = beside_leave(recording, target->process);
	if (target->source && target->source->process == target->process)
		kymo_probes_look_at_stack(target->source->probes);
	error = kymo_error_first(left, kymo_remove(target->process, inode, &result));
	if (error && kymo_process_ended(target->process, &status)) {
		kymo_error_destroy(error);
		return NULL;
	}
	if (!error && result.pads_left)
		recording_warn(recording,
			       "a signal handler of process %d still runs on top of a pad: kymo's memory stays mapped; "
			       "'kymo detach %d' removes it later",
			       target->pid, target->pid);
	if (!error && result.note)
		recording_warn(recording, "%s", result.note);
	free(result.note);
	/* What stays as a third party has changed it: no later detach would take it out either. */
	if (error && error->code == KYMO_ERROR_UNSAFE)
		return error;
	return kymo_error_prefix(error, "some probes are still in process %d, and 'kymo detach %d' takes them out",
				 target->pid, target->pid);
}

/* The probes of a process that runs in another's memory are taken out with the other's. */
static struct target *find_dirty(const struct recording *recording)
{
	for (size_t i = 0; i < recording->run.targets.n; i++)
		if (!recording->run.targets.items[i]->is_clean && !recording->run.targets.items[i]->is_sharing)
			return recording->run.targets.items[i];
	return NULL;
}

/* Of all processes, also of those that are born meanwhile. */
static struct kymo_error *take_out_of_all(struct recording *recording)
{
	struct kymo_error *error = NULL;
	struct target *target;

	recording->run.is_ending = true;
	do {
		if (recording->run.tree)
			error = kymo_error_first(error, recording_follow(recording));
		target = find_dirty(recording);
		if (target)
			error = kymo_error_first(error, take_out_of(recording, target));
	} while (target);
	return error;
}

static struct kymo_error *take_out(struct recording *recording)
{
	recording_progress(recording, KYMO_RECORD_STOPPING);
	return take_out_of_all(recording);
}

static void note_command_end(struct recording *recording)
{
	int status;

	recording_child_ended(recording);
	if (recording->result.command_ended || !recording->run.process ||
	    !kymo_process_ended(recording->run.process, &status))
		return;
	recording->result.command_ended = true;
	recording->result.command_status = status;
}

static struct kymo_error *finish_rings(struct recording *recording)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < recording->run.sources.n; i++)
		error = kymo_error_first(error, source_finish_rings(recording, recording->run.sources.items[i]));
	if (recording->output.exists)
		error = kymo_error_first(error, recording_note_vforks(recording));
	return error;
}

static bool is_anyone_left(const struct recording *recording)
{
	bool is = recording->run.tree;
	int status;

	for (size_t i = 0; i < recording->run.targets.n && !is; i++)
		is = !kymo_process_ended(recording->run.targets.items[i]->process, &status);
	return is;
}

static struct kymo_error *run_sources(struct recording *recording)
{
	struct kymo_error *error = NULL;
	bool alive = true;

	recorder_hurry();
	if (recording->run.tree)
		recorder_raise_limit();
	if (recording->run.kernel && recording->run.lacks_thread_ids)
		recording_kernel_carry_pids(recording->run.kernel);
	error = recording_attach_others(recording);
	recording->run.begin_ns = kymo_now_ns();
	recording->run.next_seal_ns = recording->run.begin_ns + SEAL_NS;
	recording_begin_together(recording); /* where there was nothing to put in yet */
	recording_progress(recording, KYMO_RECORD_RUNNING);
	recording_note_threads(recording, true);
	renew_writes(recording);
	error = kymo_error_first(error, beside_begin(recording));
	if (recording->run.process)
		kymo_process_resume(recording->run.process);
	if (!error && recording->run.targets.n)
		error = record_targets(recording, &alive);
	recording->result.seconds = (double)(kymo_now_ns() - recording->run.begin_ns) / SECOND_NS;
	if (recording->run.kernel && alive)
		error = kymo_error_first(error, recording_end_together(recording));
	if (recording->run.kernel) { /* first: taking out the others checks that all text is the file's */
		error = kymo_error_first(error,
					 recording_kernel_finish(recording->run.kernel, &recording->output.files));
		error = kymo_error_first(error, kymo_kernel_pool_write(recording->run.pool, &recording->output.files));
		recording->result.were_full |= recording_kernel_lost(recording->run.kernel) > 0;
	}
	if (alive && is_anyone_left(recording)) {
		recording_note_threads(recording, !recording->run.tree);
		error = kymo_error_first(error, take_out(recording));
	}
	error = kymo_error_first(error, finish_rings(recording));
	error = kymo_error_first(error, beside_end(recording));
	if (!error && recording->run.tree)
		recording_tell_unmet(recording);
	return error;
}

/* The recording could not begin. */
static void undo(struct recording *recording)
{
	struct kymo_detach_result result = { .note = NULL };
	uint64_t inode = recording->run.sources.n ? kymo_probes_inode(recording->run.sources.items[0]->probes) : 0;

	if (!recording->run.process || !inode || !(recording->run.has_begun || !recording->wanted.options->command))
		return;
	if (recording->run.tree && !recording->wanted.options->command) { /* it may have made children */
		kymo_error_destroy(take_out_of_all(recording));
		return;
	}
	kymo_process_resume(recording->run.process);
	kymo_error_destroy(kymo_remove(recording->run.process, inode, &result));
	free(result.note);
}

/* The next of several that are asked for is the first of the recording; false: there is none. */
static bool pass_over(struct recording *recording, struct kymo_error **error_ret)
{
	const struct kymo_record_options *options = recording->wanted.options;

	if (recording->wanted.at_pid + 1 >= options->n_pids || recording_is_stopped(recording)) {
		if (options->n_pids > 1)
			*error_ret =
				kymo_error_prefix(*error_ret, "none of the %zu processes can be recorded; process %d",
						  options->n_pids, options->pids[recording->wanted.at_pid]);
		return false;
	}
	recording_tell_refused(recording, options->pids[recording->wanted.at_pid], *error_ret);
	recording->wanted.at_pid++;
	return true;
}

static struct kymo_error *run_in_processes(struct recording *recording)
{
	enum recording_fallback fallback = RECORDING_NO_FALLBACK;
	struct kymo_error *error, *failed;

	do {
		recording->warnings.is_holding = true;
		error = recording->wanted.options->command ? recording_launch(recording) : recording_attach(recording);
		if (!error)
			break;
		undo(recording);
		if (pass_over(recording, &error)) {
			error = recording_begin_anew(recording, KYMO_RECORD_INPROC);
			continue;
		}
		fallback = recording_fallback(recording, &error);
		if (fallback == RECORDING_NO_FALLBACK)
			break;
		failed = recording_begin_anew(recording, fallback == RECORDING_BY_KERNEL   ? KYMO_RECORD_KERNEL
							 : fallback == RECORDING_BY_PTRACE ? KYMO_RECORD_PTRACE
											   : KYMO_RECORD_INPROC);
		if (fallback != RECORDING_MIXED && !failed) {
			recording->wanted.refusal = error;
			return recording_run_kernel(recording);
		}
		kymo_error_destroy(error);
		error = failed;
	} while (!error);
	recording_release_warnings(recording, true);
	if (!error)
		recording_tell_reasons(recording, NULL);
	return error ? error : run_sources(recording);
}

/* What is kept in memory, and the frames of its stacks. */
static struct kymo_error *write_kept(struct recording *recording)
{
	struct kymo_trace *output = &recording->output.files;
	struct kymo_error *error;
	uint64_t bytes;

	stacks_prune(recording);
	error = kymo_trace_write_kept(output, output, &bytes);
	kymo_kept_destroy(output->kept);
	output->kept = NULL;
	return error ? error : stacks_write(recording);
}

static struct kymo_error *run_probes(struct recording *recording)
{
	struct kymo_error *error = recording_choose_backend(recording);

	if (!error)
		error = recording_check_options(recording);
	if (!error)
		error = aggregate_begin(recording);
	if (!error)
		error = stacks_begin(recording);
	if (!error)
		error = recording_divide(recording);
	if (error)
		return error;
	return recording->wanted.backend == KYMO_RECORD_INPROC ? run_in_processes(recording)
							       : recording_run_kernel(recording);
}

/* How long debug information may be read. Tracers that are left go through this thread, which has to serve them. */
static uint64_t reading_ns(const struct recording *recording)
{
	return recording->result.shared || recording->result.shared_hub ? 0 : READING_NS;
}

struct kymo_error *kymo_record(const struct kymo_record_options *options, struct kymo_record_result *ret)
{
	struct recording recording;
	struct kymo_error *error = recording_init(options, &recording);

	if (!error)
		error = options->n_branches && !options->n_specs ? recording_run_branches(&recording)
								 : run_probes(&recording);
	recording_end_command(&recording);
	if (recording.output.exists && recording.output.aggregating)
		error = kymo_error_first(error, aggregate_write(&recording, true));
	if (recording.output.exists && recording.output.files.kept)
		error = kymo_error_first(error, write_kept(&recording));
	if (recording.output.exists) {
		if (!error)
			error = kymo_ctf_trace_set_env(&recording.output.files.trace, KYMO_ENV_STATE, KYMO_STATE_ENDED);
		error = kymo_error_first(error, recording_write_metadata(&recording));
	}
	recording.result.events = recording.output.files.events;
	recording.result.aggregated = aggregate_hits(&recording);
	recording.result.in_no_row = aggregate_in_no_row(&recording);
	recording.result.is_estimate = recording.output.files.is_estimate;
	recording.result.lost = recording_lost(&recording);
	recording.result.lost_in_vforks = recording.output.lost_in_vforks;
	recording.result.n_sites = recording_n_sites(&recording);
	if (!error)
		recording_progress(&recording, KYMO_RECORD_DONE);
	if (!error)
		recording_tell_conditions(&recording);
	if (!error && options->command)
		note_command_end(&recording);
	if (!error)
		recording_share(&recording);
	recording_end_run(&recording); /* no process waits for what comes now, which may take long */
	if (recording.output.exists)
		error = kymo_error_first(error, stacks_write_sources(&recording, reading_ns(&recording)));
	stacks_tell(&recording);
	recording.result.bytes = recording.output.files.bytes;
	recording_deinit(&recording);
	if (error)
		return error;
	*ret = recording.result;
	return NULL;
}
