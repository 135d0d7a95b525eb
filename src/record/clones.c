/*
 * The program is followed while it is recorded. Its tracer clears the word of each new thread, and puts faults off
 * until they are where the program has them. Each forked child gets memory of its own in the arena's place. So the text
 * needs no guards. Children are let go at once, and what the program executes is not recorded.
 */
#include "record/clones.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "arch/clones.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "branch/branch.h"
#include "probe/install/clones.h"
#include "probe/install/install.h"
#include "probe/install/remove.h"
#include "probe/memory/arena.h"
#include "probe/memory/state.h"
#include "probe/options.h"
#include "probe/plan/faults.h"
#include "probe/probe.h"
#include "probe/snapshot/status.h"
#include "proc/launch.h"
#include "proc/linker.h"
#include "proc/memory.h"
#include "proc/nap.h"
#include "proc/process.h"
#include "proc/startup.h"
#include "proc/stop.h"
#include "proc/tree.h"
#include "procfs/maps.h"
#include "record/clones_open.h"
#include "record/packets.h"
#include "record/progress.h"
#include "record/recording.h"
#include "record/warnings.h"
#include "wire/clones.h"
#include "wire/shared.h"

#define POLL_MS 20
#define LOOK_NS 50000          /* for signals and births to be handed on */
#define LOOK_PERIOD_NS 2000000 /* between two of these */
#define BUFFER_SIZE 16384u     /* no pads write there */
#define SPARE_RINGS 4u         /* that have memory before a thread is seen that may take them */
#define TAIL_MAX (KYMO_WIRE_ARENA_RING_SIZE / sizeof(uint32_t) - 1)
#define NAMES_MAX 512 /* bytes of files' names in a sentence */
#define NAMES_SHOWN 4

struct record_clones {
	struct recording *recording;
	struct kymo_probes *probes;
	struct kymo_branches *branches;
	struct kymo_probes_clones wanted;
	struct kymo_branch_clones source;
	uint32_t n_born;
	bool is_taken[KYMO_WIRE_ARENA_RINGS];
	bool is_running;            /* it was when it was opened */
	bool is_alive;              /* the program that has the clones */
	bool is_beside;             /* probes, in one recording */
	uint64_t next_look_ns;      /* then: when to look after a process that runs, while it is planned for */
	struct kymo_probes *beside; /* in one recording, until that program is past; or NULL */
};

/* ---- what branches ask ----------------------------------------------------------------------- */

static void is_born(void *data)
{
	struct record_clones *clones = data;

	clones->n_born++;
	kymo_arena_grow(kymo_probes_arena(clones->probes), clones->n_born + SPARE_RINGS); /* else it gets the sink */
}

/* The thread's, or the newest of that memory: a program in a namespace has other ids. */
static bool take_ring(uint64_t block, pid_t tid, uint32_t *ring, void *data)
{
	struct record_clones *clones = data;
	const struct kymo_arena *arena = kymo_probes_arena(clones->probes);
	uint32_t sunk, n = kymo_arena_used(arena, &sunk), found = n;
	bool is_own = false;

	for (uint32_t i = n; i-- > 0 && !is_own;) {
		struct kymo_wire_arena_thread thread;

		if (clones->is_taken[i] || !kymo_arena_thread(arena, i, &thread) || thread.block != block)
			continue;
		is_own = thread.tid == (uint32_t)tid;
		found = is_own || found == n ? i : found;
	}
	if (found == n)
		return false;
	clones->is_taken[found] = true;
	return kymo_arena_ring(arena, found, ring);
}

static bool is_in(uint64_t pc, void *data)
{
	const struct record_clones *clones = data;

	return kymo_probes_is_in_clone(clones->probes, pc);
}

static bool origin(struct user_regs_struct *registers, void *data)
{
	const struct record_clones *clones = data;

	return kymo_probes_clone_origin(clones->probes, registers);
}

/* Asked for each function that is analyzed: a process with probes goes on meanwhile, and so do their rings. */
static bool is_given_up(void *data)
{
	struct record_clones *clones = data;
	struct recording_run *run = &clones->recording->run;
	size_t n;

	if (clones->is_running && clones->is_beside && kymo_now_ns() >= clones->next_look_ns) {
		kymo_process_nap(run->process, LOOK_NS);
		if (!run->drain_error)
			run->drain_error = recording_drain(clones->recording, &n);
		clones->next_look_ns = kymo_now_ns() + LOOK_PERIOD_NS;
	}
	return recording_is_stopped(clones->recording);
}

static bool is_chosen(uint64_t address, void *data)
{
	const struct record_clones *clones = data;

	return kymo_branches_is_chosen(clones->branches, address);
}

/* ---- the beginning --------------------------------------------------------------------------- */

struct kymo_error *clones_launch(struct recording *recording, struct record_clones **ret)
{
	struct recording_run *run = &recording->run;
	struct kymo_error *error = clones_open_process(recording);

	if (error)
		return error;
	run->pid = kymo_process_pid(run->process);
	return clones_create(recording, ret);
}

struct kymo_error *clones_create(struct recording *recording, struct record_clones **ret)
{
	struct recording_run *run = &recording->run;
	struct record_clones *clones = calloc(1, sizeof(*clones));

	if (!clones)
		return &kymo_error_no_memory;
	clones->recording = recording;
	clones->is_running = !recording->wanted.options->command;
	clones->wanted = (struct kymo_probes_clones){
		.is_chosen = is_chosen, .is_given_up = is_given_up, .is_running = clones->is_running, .data = clones
	};
	clones->source = (struct kymo_branch_clones){ .hub = kymo_tree_hub(run->tree),
						      .is_running = clones->is_running,
						      .word = kymo_probes_clones_word(0),
						      .is_born = is_born,
						      .take_ring = take_ring,
						      .is_in = is_in,
						      .origin = origin,
						      .data = clones };
	*ret = clones;
	return NULL;
}

const struct kymo_branch_clones *clones_source(const struct record_clones *clones)
{
	return &clones->source;
}

/* ---- putting in ------------------------------------------------------------------------------ */

static struct kymo_error *add_clones(const struct record_clones *clones)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < kymo_probes_n_cloned(clones->probes) && !error; i++) {
		const struct kymo_probes_cloned cloned = kymo_probes_cloned(clones->probes, i);

		error = kymo_branches_add_clones(clones->branches, cloned.clones, cloned.bias, cloned.first_site);
	}
	return error;
}

/* What is not cloned is not recorded. */
static void tell_refused(const struct record_clones *clones)
{
	size_t n_refused = 0, n_cloned = 0;

	for (size_t i = 0; i < kymo_probes_n_cloned(clones->probes); i++) {
		const struct kymo_probes_cloned cloned = kymo_probes_cloned(clones->probes, i);
		size_t n;

		(void)kymo_clones_refused(cloned.clones, &n);
		n_refused += n;
		n_cloned += kymo_clones_n(cloned.clones);
	}
	if (n_refused)
		recording_warn(clones->recording,
			       "%zu of the %zu chosen functions can't be cloned, and are not recorded: 'kymo explain "
			       "--branch' says why",
			       n_refused, n_refused + n_cloned);
}

/* Nor is that. */
static void tell_probed(const struct record_clones *clones)
{
	const size_t n = kymo_probes_n_in_the_way(clones->probes);

	if (n)
		recording_warn(clones->recording,
			       "the branches of %zu chosen function%s are not recorded, as probes are in %s: in a "
			       "function that has a clone only its entry can have a probe",
			       n, n == 1 ? "" : "s", n == 1 ? "it" : "them");
}

/* "libcrypto.so.3, libc.so.6 and 3 more files". */
static void tell_large(const struct record_clones *clones)
{
	const size_t n = kymo_probes_n_unclonable(clones->probes);
	char names[NAMES_MAX] = "", more[64] = "";
	size_t used = 0, shown = 0;

	for (; shown < n && shown < NAMES_SHOWN && used < sizeof(names); shown++) {
		const char *path = kymo_probes_unclonable(clones->probes, shown);
		const char *slash = strrchr(path, '/');

		used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", shown ? ", " : "",
					 slash ? slash + 1 : path);
	}
	if (shown < n)
		snprintf(more, sizeof(more), " and %zu more file%s", n - shown, n - shown == 1 ? "" : "s");
	if (n)
		recording_warn(clones->recording,
			       "the functions of %s%s are not recorded: all clones of a program take %u jumps and %u "
			       "MiB at the most; choose fewer functions (-b FILE:GLOB)",
			       names, more, KYMO_PROBES_CLONES_JUMPS, KYMO_PROBES_CLONES_MIB);
}

static struct kymo_error *take_out(struct record_clones *clones)
{
	struct recording *recording = clones->recording;
	struct kymo_detach_result result = { .note = NULL };
	struct kymo_error *error;
	int status;

	error = kymo_remove(recording->run.process, kymo_probes_inode(clones->probes), &result);
	if (error && (error->code == KYMO_ERROR_GONE || kymo_process_ended(recording->run.process, &status))) {
		kymo_error_destroy(error);
		return NULL;
	}
	if (!error && result.pads_left)
		recording_warn(
			recording,
			"a thread of process %d may still return into a clone: kymo's memory stays mapped; 'kymo "
			"detach %d' removes it later",
			recording->run.pid, recording->run.pid);
	if (!error && result.note)
		recording_warn(recording, "%s", result.note);
	free(result.note);
	return kymo_error_prefix(error, "some clones are still in process %d, and 'kymo detach %d' takes them out",
				 recording->run.pid, recording->run.pid);
}

/* Of a running process: no thread may be missed, so engines come first. */
static struct kymo_error *follow_running(struct record_clones *clones)
{
	struct recording_run *run = &clones->recording->run;
	struct kymo_error *error = kymo_tree_take(run->tree, run->process);

	return error ? error : kymo_branches_begin(clones->branches);
}

static struct kymo_error *install(struct record_clones *clones, struct kymo_probes *beside)
{
	struct recording *recording = clones->recording;
	struct kymo_error *error = kymo_probes_resolve_clones(clones->probes);

	if (!error && clones->is_running)
		error = beside ? kymo_branches_begin(clones->branches) : follow_running(clones);
	if (!error && beside) /* pads go on with what they displace where words say so: they are 0 from here on */
		error = kymo_probes_note_clones(beside);
	if (!error && clones->is_running) /* seconds after the first check */
		error = clones_check_running(recording->run.process);
	if (!error)
		error = kymo_probes_install(clones->probes, &recording->result.stopped_ns);
	if (!error && beside)
		error = kymo_probes_note_clones(beside);
	if (!error)
		error = add_clones(clones);
	if (!error || !clones->is_running || !kymo_probes_arena(clones->probes)->address)
		return error;
	return kymo_error_first(error, take_out(clones));
}

static void tell_staying(const struct record_clones *clones)
{
	const size_t n = kymo_probes_n_staying(clones->probes);

	if (n)
		recording_warn(clones->recording,
			       "%zu of the chosen functions stay as they are, and are not recorded: a handler of "
			       "signals has interrupted them, %stheir code is not what the file has",
			       n, clones->is_beside ? "threads are in the probes at their entries, or " : "or ");
}

struct kymo_error *clones_put_in(struct record_clones *clones, struct kymo_branches *branches,
				 struct kymo_probes *beside)
{
	struct recording *recording = clones->recording;
	const struct kymo_probes_options options = {
		.events = recording->run.events,
		.directory = recording->wanted.options->directory,
		.buffer_size = BUFFER_SIZE,
		.is_tight = true,
		.no_rseq = true,
		.clones = &clones->wanted,
		.warn = recording_tell,
		.data = recording,
	};
	struct kymo_error *error;

	clones->branches = branches;
	clones->beside = beside;
	clones->is_beside = beside;
	if (recording->wanted.options->tail > TAIL_MAX)
		recording_warn(recording, "--tail %zu is more than clones keep: the newest %zu blocks of a thread",
			       recording->wanted.options->tail, TAIL_MAX);
	error = kymo_probes_create(recording->run.process, NULL, 0, &options, &clones->probes);
	if (!error && beside)
		kymo_probes_put_beside(clones->probes, beside);
	if (!error)
		error = install(clones, beside);
	if (error)
		return error;
	clones->is_alive = true;
	tell_large(clones);
	tell_refused(clones);
	tell_staying(clones);
	tell_probed(clones);
	return NULL;
}

void clones_go(struct record_clones *clones)
{
	kymo_process_resume(clones->recording->run.process);
}

/* ---- while it goes on ------------------------------------------------------------------------ */

/* One that was made before the arena has other memory there, or none. */
static bool has_arena(struct kymo_process *process, const struct kymo_arena *arena)
{
	kymo_cleanup(kymo_maps_deinit) struct kymo_maps maps = { 0 };
	struct kymo_error *error = kymo_process_maps(process, &maps);
	const struct kymo_map *map = error ? NULL : kymo_maps_at(&maps, arena->address);
	const bool has = arena->address && (error || (map && !strcmp(map->path, KYMO_WIRE_ARENA_PATH)));

	kymo_error_destroy(error);
	return has;
}

/* A child shares the arena with its parent until it has memory of its own there. One that runs in its parent's memory
 * (vfork) has its parent's thread, too, and is told of again. */
static void part(struct record_clones *clones, const struct kymo_tree_event *event)
{
	const struct kymo_arena *arena = kymo_probes_arena(clones->probes);
	struct kymo_error *error = event->refusal ? kymo_error_create(KYMO_ERROR_FAILED, "%s", event->refusal->message)
				   : has_arena(event->process, arena) ? kymo_arena_part(event->process, arena)
								      : NULL;

	if (error && !kymo_process_is_past(event->process))
		recording_warn(clones->recording,
			       "process %d, a forked child, may write into the history of the thread that made it: %s",
			       event->tid, error->message);
	kymo_error_destroy(error);
}

static void tell_exec(struct record_clones *clones, const struct kymo_tree_event *event)
{
	recording_warn(clones->recording,
		       "process %d has executed another program (%s), %s not recorded; what it did before %s",
		       clones->recording->run.pid, event->comm,
		       clones->is_beside ? "the branches of which are" : "which is",
		       clones->is_beside ? "are" : "is (--branch-source steps records both)");
	clones->is_alive = false;
}

void clones_note(struct record_clones *clones, const struct kymo_tree_event *event)
{
	const struct kymo_process *process = clones->recording->run.process;

	if (event->kind == KYMO_TREE_FORKED)
		part(clones, event);
	if (event->kind == KYMO_TREE_EXECED && event->other == process) {
		tell_exec(clones, event);
		kymo_probes_part(clones->probes);
		clones->beside = NULL;
	}
	if (event->kind == KYMO_TREE_ENDED && event->process == process) {
		clones->is_alive = false;
		kymo_probes_part(clones->probes);
		clones->beside = NULL;
	}
}

static void note_exec(struct record_clones *clones, const struct kymo_tree_event *event)
{
	struct recording_run *run = &clones->recording->run;

	if (event->other != run->process) {
		kymo_process_destroy(event->other);
		kymo_process_destroy(event->process);
		return;
	}
	tell_exec(clones, event);
	kymo_process_destroy(run->process);
	run->process = event->process;
	kymo_process_resume(run->process);
}

static void note_end(struct record_clones *clones, const struct kymo_tree_event *event)
{
	struct recording *recording = clones->recording;

	if (event->process == recording->run.process) {
		clones->is_alive = false;
		recording->run.process = NULL;
		recording->result.command_ended = true;
		recording->result.command_status = event->status;
	}
	kymo_process_destroy(event->process);
}

static void dispatch(struct record_clones *clones, const struct kymo_tree_event *event)
{
	switch (event->kind) {
	case KYMO_TREE_FORKED:
		part(clones, event);
		kymo_process_destroy(event->process);
		break;
	case KYMO_TREE_EXECED:
		note_exec(clones, event);
		break;
	case KYMO_TREE_ENDED:
		note_end(clones, event);
		break;
	case KYMO_TREE_STARTUP:
		kymo_process_resume(event->process);
		break;
	case KYMO_TREE_SHARING:
	case KYMO_TREE_REFUSED:
	case KYMO_TREE_THREAD:
	case KYMO_TREE_THREAD_ENDED:
		break;
	}
}

static void follow(struct record_clones *clones)
{
	struct kymo_tree_event event;

	while (kymo_tree_next(clones->recording->run.tree, &event)) {
		dispatch(clones, &event);
		kymo_error_destroy(event.refusal);
	}
}

/* ---- the end --------------------------------------------------------------------------------- */

/* The probes go on alone. A process that has ended meanwhile needs nothing. */
static void end_beside(struct record_clones *clones)
{
	kymo_probes_part(clones->probes);
	if (clones->beside)
		kymo_error_destroy(kymo_probes_note_clones(clones->beside));
}

/*
 * A handler of faults may look where it is, and finds a clone if this process has been killed. And a program that
 * survives the end of its stack has less of it in clones. So such a program has none any more; nor has one that has got
 * a fault, or cancels a thread, before that was seen.
 */
void clones_heed_handlers(struct record_clones *clones, bool are_coming)
{
	const pid_t pid = clones->recording->run.pid;
	const bool is_waited_for = kymo_branches_clones_are_to_go(clones->branches);
	struct kymo_error *error;

	if (!clones->is_alive || !(is_waited_for || are_coming || kymo_faults_of(kymo_handled_signals(pid))))
		return;
	clones->is_alive = false;
	error = take_out(clones);
	kymo_branches_clones_have_gone(clones->branches);
	if (!error)
		end_beside(clones);
	recording_warn(
		clones->recording,
		"process %d %s, which may look where it is: its clones were taken out, and %s not recorded%s%s%s", pid,
		is_waited_for ? "handles a fault or cancels a thread" : "has set a handler of faults",
		clones->is_beside ? "later branches are" : "what comes now is",
		clones->is_beside ? "" : " (--branch-source steps records it)", error ? "; but " : "",
		error ? error->message : "");
	kymo_error_destroy(error);
}

bool clones_are_over(const struct record_clones *clones)
{
	return clones->is_running ? !clones->is_alive : clones->recording->result.command_ended;
}

void clones_wait(struct record_clones *clones)
{
	struct pollfd changed = { .fd = kymo_tree_fd(clones->recording->run.tree), .events = POLLIN };

	poll(&changed, 1, POLL_MS);
	follow(clones);
	clones_heed_handlers(clones, false);
}

void clones_leave_child(struct record_clones *clones, struct kymo_process *child)
{
	struct kymo_detach_result result = { .note = NULL };

	if (!clones->probes)
		return;
	kymo_error_destroy(kymo_remove(child, kymo_probes_inode(clones->probes), &result));
	free(result.note);
}

struct kymo_error *clones_leave(struct record_clones *clones)
{
	struct kymo_error *error = clones->is_alive ? take_out(clones) : NULL;

	clones->is_alive = false;
	return error;
}

void clones_tell_sunk(const struct record_clones *clones)
{
	uint32_t sunk;

	(void)kymo_arena_used(kymo_probes_arena(clones->probes), &sunk);
	if (sunk)
		recording_warn(clones->recording,
			       "%u times a thread got no ring, as there was none with memory: its branches are not "
			       "recorded",
			       sunk);
}

struct kymo_error *clones_end(struct record_clones *clones)
{
	struct recording_run *run = &clones->recording->run;
	struct kymo_error *error = clones_leave(clones);

	kymo_process_destroy(run->process); /* before the tree lets all go */
	run->process = NULL;
	clones_tell_sunk(clones);
	return error;
}

void clones_destroy(struct record_clones *clones)
{
	if (!clones)
		return;
	kymo_probes_part(clones->probes);
	kymo_probes_destroy(clones->probes);
	free(clones);
}
