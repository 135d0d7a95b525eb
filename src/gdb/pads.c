/*
 * Pads for conditions of breakpoints.
 *
 * A breakpoint is inserted as int3 at first. Before threads go on, the main thread freezes the process through the door
 * of the stub's own hub, as a recorder does. It puts all wanted conditions into pads at once, and tells the hub. From
 * then on those breakpoints are words of pads. Where that is not possible they stay as they are, and the same is not
 * tried again.
 *
 * Pads do not change. Where other conditions are wanted, all pads of the process are taken out, and put in anew. gdb
 * removes its breakpoints at each stop, and inserts them before it goes on: so what is removed goes only when threads
 * go on without it.
 */
#include "gdb/pads.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "gdb/breakpoints.h"
#include "gdb/btrace.h"
#include "gdb/pad_notes.h"
#include "gdb/thread.h"
#include "gdb/words.h"
#include "hub/hub.h"
#include "hub/trap/pads.h"
#include "probe/code/events.h"
#include "probe/install/install.h"
#include "probe/install/remove.h"
#include "probe/install/traps.h"
#include "probe/memory/state.h"
#include "probe/options.h"
#include "probe/probe.h"
#include "probe/spec/spec.h"
#include "proc/process.h"
#include "proc/stop.h"
#include "procfs/info.h"
#include "procfs/threads.h"

enum { PADS_MAX = 400, RING_SIZE = 16384 };

/* Of taking pads out. */
enum outcome {
	IS_OUT,
	IS_EARLY, /* nothing was done, or jumps may be there still */
	IS_STILL_IN,
	IS_LEAVING, /* jumps are out, and a thread may return into a pad */
};

/* A condition that is wanted in a pad. */
struct wanted {
	uint64_t address;
	uint8_t *code;
	size_t size;
	struct kymo_form form;
	bool is_in;
};

/* The pads of one process: a recording that has no events. The main thread's. */
struct gdb_pad_set {
	pid_t pid;
	unsigned int epoch;
	struct kymo_process *process;
	struct kymo_events *events;
	struct kymo_probes *probes;
	struct kymo_spec *specs;
	struct kymo_probes_trap *items;
	struct kymo_probes_traps traps;
	KYMO_VEC(struct wanted) wanted;
	KYMO_VEC(uint64_t) kept;
	bool is_due, is_failed;
	bool is_leaving;  /* its jumps are out, and a thread may return into its pads */
	bool leaves_dead; /* threads were in pads of a killed stub, which are still there */
};

static void free_set(struct gdb_pad_set *set)
{
	if (!set)
		return;
	kymo_probes_destroy(set->probes);
	kymo_events_destroy(set->events);
	kymo_process_destroy(set->process);
	for (size_t i = 0; i < set->wanted.n; i++)
		free(set->wanted.items[i].code);
	kymo_vec_deinit(&set->wanted);
	kymo_vec_deinit(&set->kept);
	free(set->items);
	free(set->specs);
	free(set);
}

/* ---- what is wanted, on the hub's thread ----------------------------------------------------- */

void gdb_pads_set(struct kymo_gdb *gdb, enum kymo_gdb_pads pads)
{
	gdb->pads = pads;
	for (size_t i = 0; i < gdb->processes.n; i++)
		gdb->processes.items[i]->pads.is_refused = false;
}

static bool want(struct gdb_pad_set *set, const struct gdb_condition *condition)
{
	struct wanted wanted = { .address = condition->address,
				 .code = malloc(condition->size),
				 .size = condition->size,
				 .form = *condition->form };

	if (wanted.code)
		memcpy(wanted.code, condition->code, condition->size);
	if (wanted.code && kymo_vec_push(&set->wanted, wanted))
		return true;
	free(wanted.code);
	return false;
}

/* All that is wanted now; whether some of it was not tried, or something is in that is not wanted. */
static bool collect(const struct gdb_process *process, enum kymo_gdb_pads pads, bool is_whole, struct gdb_pad_set *set)
{
	size_t n_in = 0;

	for (size_t i = 0; i < process->breaks.n && pads != KYMO_GDB_PADS_NONE; i++) {
		const struct gdb_break *what = &process->breaks.items[i];
		const struct gdb_condition *condition = gdb_pad_condition(process, what, pads);
		const struct gdb_pad *pad = gdb_find_pad(process, what->address);

		if (!condition || set->wanted.n == PADS_MAX || !want(set, condition)) {
			kymo_vec_push(&set->kept, what->address);
			continue;
		}
		set->is_due |= !gdb_pad_has(pad, condition);
		n_in += gdb_pad_has(pad, condition);
	}
	return set->is_due || (is_whole && n_in < process->pads.items.n);
}

struct look {
	struct kymo_gdb *gdb;
	bool is_whole; /* all threads go on: what is not inserted now is not wanted */
	KYMO_VEC(struct gdb_pad_set *) due;
};

/* A thread that is stepped through everything does not come into a pad. */
static bool is_traced(const struct kymo_gdb *gdb, const struct gdb_process *process)
{
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (gdb->threads.items[i]->process == process && gdb_is_traced(gdb->threads.items[i]))
			return true;
	return gdb_traces(&gdb->tracing, process->pid); /* a tracepoint is no pad, and may be at the same address */
}

/* A thread that waits in the kernel cannot be frozen, and one before a signal, which it has yet to get. */
static bool can_be_frozen(const struct kymo_gdb *gdb, const struct gdb_process *process)
{
	const struct gdb_thread *thread = gdb_any_thread(gdb, process->pid);

	for (size_t i = 0; i < gdb->threads.n; i++)
		if (gdb->threads.items[i]->process == process && !gdb->threads.items[i]->is_dead &&
		    (gdb->threads.items[i]->is_vforking || gdb->threads.items[i]->is_stuck ||
		     gdb->threads.items[i]->is_settling))
			return false;
	return thread && hub_pads_can_freeze(thread->engine);
}

static void look_at_all(void *data)
{
	struct look *it = data;

	for (size_t i = 0; i < it->gdb->processes.n; i++) {
		const struct gdb_process *process = it->gdb->processes.items[i];
		const bool takes = !process->pads.is_refused && !is_traced(it->gdb, process);
		const enum kymo_gdb_pads pads = takes ? it->gdb->pads : KYMO_GDB_PADS_NONE;
		struct gdb_pad_set *set;

		if (process->has_ended || process->is_narrow || (pads == KYMO_GDB_PADS_NONE && !process->pads.items.n))
			continue;
		set = calloc(1, sizeof(*set));
		if (set && collect(process, pads, it->is_whole, set) && can_be_frozen(it->gdb, process) &&
		    kymo_vec_push(&it->due, set)) {
			set->pid = process->pid;
			set->epoch = process->pads.epoch;
		} else {
			free_set(set);
		}
	}
}

/* ---- taking out ------------------------------------------------------------------------------ */

struct change {
	struct kymo_gdb *gdb;
	struct gdb_pad_set *set;
	bool is_there;
	bool is_let_go; /* the stub has the process no more: it has ended, or runs without a debugger */
	bool is_early;  /* it cannot be frozen now, or its text cannot be changed */
	bool is_gone;   /* nothing is left in its memory */
};

static struct gdb_process *process_of(const struct change *it, struct gdb_thread **thread_ret)
{
	struct gdb_process *process = gdb_find_process(it->gdb, it->set->pid);

	*thread_ret = process ? gdb_any_thread(it->gdb, it->set->pid) : NULL;
	return *thread_ret && process->pads.epoch == it->set->epoch ? process : NULL;
}

static void begin_to_leave(void *data)
{
	struct change *it = data;
	struct gdb_thread *thread;
	const struct gdb_process *process = process_of(it, &thread);

	it->is_let_go = !gdb_find_process(it->gdb, it->set->pid);
	it->is_there = process || it->is_let_go;
	it->is_early = process && !can_be_frozen(it->gdb, process);
	if (process && !it->is_early)
		hub_pads_leave(thread->engine, true);
}

static void have_left(void *data)
{
	const struct change *it = data;
	struct gdb_thread *thread;
	struct gdb_process *process = process_of(it, &thread);

	if (it->is_gone)
		hub_pads_forget(it->gdb->hub, it->set->pid);
	if (!process)
		return;
	if (it->is_early) {
		hub_pads_leave(thread->engine, false); /* breakpoints are by int3 until it is tried again */
		return;
	}
	if (it->set->is_failed) {
		hub_pads_leave(thread->engine, false); /* no breakpoint is by them */
		process->pads.is_refused = true;
	}
	gdb_forget_pads(process);
}

/* The program that it was in may be gone, and its pads with it. A thread that is in a signal handler may return into a
 * pad: the hub knows those pads until they are gone, also where a later attempt fails. `is_waited_for`: threads run,
 * and may leave pads. */
static enum outcome take_out(struct kymo_gdb *gdb, struct gdb_pad_set *set, bool is_waited_for)
{
	struct change it = { .gdb = gdb, .set = set };
	struct kymo_detach_result result = { .note = NULL };
	struct kymo_error *error;

	kymo_hub_run(gdb->hub, begin_to_leave, &it);
	if (!it.is_there || it.is_early)
		return it.is_early ? IS_EARLY : IS_OUT;
	error = (is_waited_for ? kymo_remove : kymo_remove_at_once)(set->process, kymo_probes_inode(set->probes),
								    &result);
	it.is_gone = !error && !result.text_left && !result.pads_left;
	it.is_early = !error && result.text_left && !it.is_let_go && !set->is_leaving;
	set->is_leaving = !it.is_let_go && (error ? set->is_leaving : result.pads_left && !it.is_early);
	set->is_failed = error && !set->is_leaving;
	kymo_error_destroy(error);
	free(result.note);
	kymo_hub_run(gdb->hub, have_left, &it);
	if (it.is_early)
		return IS_EARLY;
	return set->is_failed ? IS_STILL_IN : set->is_leaving ? IS_LEAVING : IS_OUT;
}

/* Of a process, or NULL; it is no more among the sets. */
static struct gdb_pad_set *take_set(struct kymo_gdb *gdb, pid_t pid)
{
	for (size_t i = 0; i < gdb->pad_sets.n; i++) {
		struct gdb_pad_set *set = gdb->pad_sets.items[i];

		if (pid && set->pid != pid)
			continue;
		gdb->pad_sets.items[i] = gdb->pad_sets.items[--gdb->pad_sets.n];
		return set;
	}
	return NULL;
}

void gdb_pads_remove(struct kymo_gdb *gdb, pid_t pid, bool is_waited_for)
{
	for (size_t i = gdb->pad_sets.n; i-- > 0;) {
		struct gdb_pad_set *set = gdb->pad_sets.items[i];
		const bool is_meant = !pid || set->pid == pid;
		const enum outcome outcome = is_meant ? take_out(gdb, set, is_waited_for) : IS_EARLY;

		if (outcome == IS_EARLY || outcome == IS_LEAVING)
			continue;
		gdb->pad_sets.items[i] = gdb->pad_sets.items[--gdb->pad_sets.n];
		free_set(set);
	}
}

bool gdb_pads_are_in(const struct kymo_gdb *gdb, pid_t pid)
{
	for (size_t i = 0; i < gdb->pad_sets.n; i++)
		if (!pid || gdb->pad_sets.items[i]->pid == pid)
			return true;
	return false;
}

bool gdb_pads_are_reached(const struct kymo_gdb *gdb, pid_t pid)
{
	for (size_t i = 0; i < gdb->pad_sets.n; i++)
		if (gdb->pad_sets.items[i]->pid == pid && !gdb->pad_sets.items[i]->is_leaving)
			return true;
	return false;
}

void gdb_pads_deinit(struct kymo_gdb *gdb)
{
	struct gdb_pad_set *set;

	while ((set = take_set(gdb, 0)))
		free_set(set);
	kymo_vec_deinit(&gdb->pad_sets);
}

/* ---- putting in ------------------------------------------------------------------------------ */

/* The kernel resets the action of such a signal before its tracer sees it. */
static bool loses_faults(pid_t pid)
{
	const uint64_t faults = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);
	struct kymo_thread_infos threads = { .n = 0 };
	struct kymo_error *error = kymo_thread_infos_read(pid, &threads);
	bool loses = error != NULL;

	for (size_t i = 0; i < threads.n && !loses; i++) {
		struct kymo_process_info info;

		loses = kymo_process_peek_status(threads.items[i].tid, &info) && (info.ignored | info.blocked) & faults;
	}
	if (!error)
		kymo_thread_infos_deinit(&threads);
	kymo_error_destroy(error);
	return loses;
}

static bool make_traps(struct gdb_pad_set *set)
{
	const bool has_no_loads = loses_faults(set->pid);

	set->specs = calloc(set->wanted.n, sizeof(*set->specs));
	set->items = calloc(set->wanted.n, sizeof(*set->items));
	if (!set->specs || !set->items)
		return false;
	set->traps = (struct kymo_probes_traps){ .items = set->items };
	for (size_t i = 0; i < set->wanted.n; i++)
		if (has_no_loads && kymo_form_has(&set->wanted.items[i].form, KYMO_FORM_LOAD, NULL))
			kymo_vec_push(&set->kept, set->wanted.items[i].address);
		else
			set->items[set->traps.n++] =
				(struct kymo_probes_trap){ set->wanted.items[i].address, &set->wanted.items[i].form };
	set->traps.kept = set->kept.items;
	set->traps.n_kept = set->kept.n;
	return true;
}

static void say_nothing(const char *sentence, void *data)
{
}

static struct kymo_error *install(struct gdb_pad_set *set)
{
	const struct kymo_probes_options options = {
		.directory = "(breakpoints)",
		.buffer_size = RING_SIZE,
		.is_tight = true,
		.is_one_of_many = true,
		.no_rseq = true,
		.traps = &set->traps,
		.warn = say_nothing,
	};
	struct kymo_probes_options own = options;
	uint64_t stopped_ns = 0;
	struct kymo_detach_result dead = { .note = NULL };
	struct kymo_error *error = kymo_process_open(set->pid, &set->process);

	if (!error)
		error = kymo_remove_at_once(set->process, 0, &dead); /* what a killed stub has left at the sites */
	free(dead.note);
	set->leaves_dead = !error && dead.pads_left;
	if (!error)
		error = kymo_events_create(&set->events);
	own.events = set->events;
	if (!error)
		error = kymo_probes_create(set->process, set->specs, set->traps.n, &own, &set->probes);
	if (!error)
		error = kymo_probes_freeze(set->probes);
	if (!error)
		error = kymo_probes_resolve_traps(set->probes);
	if (!error)
		error = kymo_probes_install(set->probes, &stopped_ns);
	if (set->process)
		kymo_process_resume(set->process);
	return error;
}

static bool note(struct gdb_process *process, struct wanted *wanted)
{
	const struct gdb_pad pad = {
		.address = wanted->address, .code = wanted->code, .size = wanted->size, .is_in = wanted->is_in
	};

	if (!kymo_vec_push(&process->pads.items, pad))
		return false;
	wanted->code = NULL;
	return true;
}

/* Also what was refused, which is not to be tried again. */
static void give_all(void *data)
{
	const struct change *it = data;
	struct gdb_thread *thread;
	struct gdb_process *process = process_of(it, &thread);

	for (size_t i = 0; process && i < it->set->wanted.n; i++) {
		struct wanted *wanted = &it->set->wanted.items[i];
		struct kymo_trap_pad pad;

		if (!it->set->is_failed && kymo_probes_trap(it->set->probes, wanted->address, &pad)) {
			struct hub_pad given = { .site = pad.site,
						 .at = pad.pad,
						 .word = pad.word,
						 .link = pad.link,
						 .plan = pad.plan,
						 .layout = pad.layout,
						 .is_used = true };

			memcpy(given.patch, pad.patch, sizeof(given.patch));
			wanted->is_in = !hub_pads_give(thread->engine, &given);
		}
		note(process, wanted);
	}
	if (process)
		process->pads.is_refused |= it->set->is_failed;
}

/* What a failed attempt has left is taken out. */
static void put_in(struct kymo_gdb *gdb, struct gdb_pad_set *set)
{
	struct change it = { .gdb = gdb, .set = set };
	const int err = set->wanted.n ? kymo_hub_serve(gdb->hub) : -ENOENT;
	struct kymo_error *error = NULL;

	set->is_failed = (err && err != -EALREADY) || !make_traps(set);
	if (!set->is_failed)
		error = install(set);
	set->is_failed |= error != NULL;
	kymo_error_destroy(error);
	if (set->wanted.n)
		kymo_hub_run(gdb->hub, give_all, &it);
	if (set->is_failed || !kymo_vec_push(&gdb->pad_sets, set)) {
		if (set->probes && kymo_probes_inode(set->probes))
			take_out(gdb, set, false);
		free_set(set);
	}
}

/* ---- what threads were in -------------------------------------------------------------------- */

static void look_whether_early(void *data)
{
	struct change *it = data;
	struct gdb_thread *thread;
	const struct gdb_process *process = process_of(it, &thread);

	it->is_early = !process || !can_be_frozen(it->gdb, process);
}

/* Try again to take out pads in which threads were: this stub's own pads, and the pads that a killed stub has left. */
static void remove_left(struct kymo_gdb *gdb)
{
	for (size_t i = gdb->pad_sets.n; i-- > 0;)
		if (gdb->pad_sets.items[i]->is_leaving && take_out(gdb, gdb->pad_sets.items[i], false) == IS_OUT)
			free_set(take_set(gdb, gdb->pad_sets.items[i]->pid));
	for (size_t i = 0; i < gdb->pad_sets.n; i++) {
		struct gdb_pad_set *set = gdb->pad_sets.items[i];
		struct change it = { .gdb = gdb, .set = set };
		struct kymo_detach_result dead = { .note = NULL };
		struct kymo_error *error;

		if (set->leaves_dead)
			kymo_hub_run(gdb->hub, look_whether_early, &it);
		if (!set->leaves_dead || it.is_early)
			continue;
		error = kymo_remove_at_once(set->process, 0, &dead);
		set->leaves_dead = error || dead.pads_left;
		kymo_error_destroy(error);
		free(dead.note);
	}
}

/* ---- when ------------------------------------------------------------------------------------ */

/* "vCont;c" with no thread: all that is not named before. */
static bool is_for_all(const char *packet, size_t n)
{
	return (n == 1 && *packet == 'c') ||
	       (n >= 7 && !memcmp(packet, "vCont;c", 7) && (n == 7 || packet[7] == ':')) ||
	       (n >= 2 && !memcmp(packet + n - 2, ";c", 2));
}

static bool goes_on(const char *packet, size_t n)
{
	return (n >= 6 && !memcmp(packet, "vCont;", 6)) || (n && strchr("cCsS", *packet));
}

static void look_for_all(struct kymo_gdb *gdb, bool is_whole)
{
	struct look it = { .gdb = gdb, .is_whole = is_whole };

	remove_left(gdb);
	kymo_hub_run(gdb->hub, look_at_all, &it);
	for (size_t i = 0; i < it.due.n; i++) {
		struct gdb_pad_set *set = it.due.items[i], *before = take_set(gdb, set->pid);
		const bool is_out = !before || (!before->is_leaving && take_out(gdb, before, false) == IS_OUT);

		if (is_out) {
			free_set(before);
			put_in(gdb, set);
			continue;
		}
		if (!kymo_vec_push(&gdb->pad_sets, before))
			free_set(before);
		free_set(set);
	}
	kymo_vec_deinit(&it.due);
}

static bool is_in_the_way(const struct gdb_pad_set *set, uint64_t address)
{
	for (size_t i = 0; i < set->wanted.n; i++) {
		struct kymo_trap_pad pad;

		if (kymo_probes_trap(set->probes, set->wanted.items[i].address, &pad) &&
		    address - pad.site - 1 < pad.plan.lock_size - 1u)
			return true;
	}
	return false;
}

/* A breakpoint in what a jump relies on: pads are put in anew when threads go on, and without that one. */
static void make_way(struct kymo_gdb *gdb, const char *packet, size_t n)
{
	struct gdb_words words = { packet + 1, packet + n };
	uint64_t type, address;

	if (!gdb_take_number(&words, &type) || !gdb_take_char(&words, ',') || !gdb_take_number(&words, &address) ||
	    type)
		return;
	for (size_t i = 0; i < gdb->pad_sets.n; i++)
		if (is_in_the_way(gdb->pad_sets.items[i], address)) {
			gdb_pads_remove(gdb, gdb->pad_sets.items[i]->pid, false);
			return;
		}
}

static bool begins_with(const char *packet, size_t n, const char *name)
{
	return n >= strlen(name) && !memcmp(packet, name, strlen(name));
}

void gdb_pads_look(struct kymo_gdb *gdb, const char *packet, size_t n)
{
	if (gdb->has_joined)
		return; /* the pads are the hub's, which another process has */
	if ((gdb->pads != KYMO_GDB_PADS_NONE || gdb->pad_sets.n) && goes_on(packet, n))
		look_for_all(gdb, is_for_all(packet, n));
	else if (gdb->pad_sets.n && n && *packet == 'Z')
		make_way(gdb, packet, n);
	else if (gdb->pad_sets.n && (begins_with(packet, n, "Qbtrace:") || begins_with(packet, n, "QTStart")))
		gdb_pads_remove(gdb, 0, false); /* they come back when no thread is traced any more */
}
