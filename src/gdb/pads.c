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
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "gdb/breakpoints.h"
#include "gdb/btrace.h"
#include "gdb/pad_notes.h"
#include "gdb/pad_set.h"
#include "gdb/prints.h"
#include "gdb/thread.h"
#include "gdb/words.h"
#include "hub/hub.h"
#include "hub/trap/pads.h"
#include "probe/install/remove.h"
#include "probe/install/traps.h"
#include "probe/memory/prints.h"
#include "probe/memory/state.h"
#include "probe/options.h"
#include "probe/probe.h"
#include "proc/process.h"

/* Of taking pads out. */
enum outcome {
	IS_OUT,
	IS_EARLY, /* nothing was done, or jumps may be there still */
	IS_STILL_IN,
	IS_LEAVING, /* jumps are out, and a thread may return into a pad */
};

/* ---- what is wanted, on the hub's thread ----------------------------------------------------- */

void gdb_pads_set(struct kymo_gdb *gdb, enum kymo_gdb_pads pads)
{
	gdb->pads = pads;
	for (size_t i = 0; i < gdb->processes.n; i++)
		gdb->processes.items[i]->pads.is_refused = false;
}

/* All that is wanted now; whether some of it was not tried, or something is in that is not wanted. */
static bool collect(const struct gdb_process *process, enum kymo_gdb_pads pads, bool is_whole, struct gdb_pad_set *set)
{
	size_t n_in = 0;

	for (size_t i = 0; i < process->breaks.n && pads != KYMO_GDB_PADS_NONE; i++) {
		const struct gdb_break *what = &process->breaks.items[i];
		const struct gdb_pad *pad = gdb_find_pad(process, what->address);
		struct gdb_pad_wish wish;

		if (!gdb_pad_wish(process, what, pads, &wish) || !gdb_pad_set_want(set, &wish, what->address)) {
			kymo_vec_push(&set->kept, what->address);
			continue;
		}
		set->is_due |= !gdb_pad_has(pad, &wish);
		n_in += gdb_pad_has(pad, &wish);
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
			gdb_pad_set_destroy(it->gdb, set);
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
		gdb_pad_set_destroy(gdb, set);
	}
}

bool gdb_pads_are_in(const struct kymo_gdb *gdb, pid_t pid)
{
	for (size_t i = 0; i < gdb->pad_sets.n; i++)
		if (!pid || gdb->pad_sets.items[i]->pid == pid)
			return true;
	return false;
}

bool gdb_pads_print(const struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->pad_sets.n; i++)
		if (gdb->pad_sets.items[i]->is_printing)
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

	gdb->prints.n = 0; /* there is no hub any more */
	while ((set = take_set(gdb, 0))) {
		set->is_printing = false;
		gdb_pad_set_destroy(gdb, set);
	}
	kymo_vec_deinit(&gdb->prints);
	kymo_vec_deinit(&gdb->pad_sets);
}

/* ---- putting in ------------------------------------------------------------------------------ */

/* The code goes over; what is printed is known by now. */
static void note(struct gdb_process *process, struct gdb_wanted *wanted)
{
	if (kymo_vec_push(&process->pads.items, wanted->pad))
		wanted->pad.code = NULL;
}

/* Also what was refused, which is not to be tried again. */
static void give_all(void *data)
{
	const struct change *it = data;
	struct gdb_thread *thread;
	struct gdb_process *process = process_of(it, &thread);
	struct kymo_probes_prints prints = { .n_slots = 0 };

	if (process && !it->set->is_failed && it->set->prints) {
		prints = kymo_prints(it->set->probes);
		it->set->is_printing = gdb_prints_begin(it->gdb, it->set->prints);
	}
	for (size_t i = 0; process && i < it->set->wanted.n; i++) {
		struct gdb_wanted *wanted = &it->set->wanted.items[i];
		struct kymo_trap_pad pad;

		if (!it->set->is_failed && (it->set->is_printing || !wanted->print) &&
		    kymo_probes_trap(it->set->probes, wanted->pad.address, &pad)) {
			struct hub_pad given = { .site = pad.site,
						 .at = pad.pad,
						 .word = pad.word,
						 .link = pad.link,
						 .plan = pad.plan,
						 .layout = pad.layout,
						 .is_used = true };

			memcpy(given.patch, pad.patch, sizeof(given.patch));
			if (wanted->print) {
				given.prints = prints.address;
				given.n_slots = prints.n_slots;
				given.slot_size = prints.slot_size;
			}
			wanted->pad.is_in = !hub_pads_give(thread->engine, &given);
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

	set->is_failed = err && err != -EALREADY;
	if (!set->is_failed)
		error = gdb_pad_set_install(set);
	set->is_failed |= error != NULL;
	kymo_error_destroy(error);
	if (set->wanted.n)
		kymo_hub_run(gdb->hub, give_all, &it);
	if (set->is_failed || !kymo_vec_push(&gdb->pad_sets, set)) {
		if (set->probes && kymo_probes_inode(set->probes))
			take_out(gdb, set, false);
		gdb_pad_set_destroy(gdb, set);
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
			gdb_pad_set_destroy(gdb, take_set(gdb, gdb->pad_sets.items[i]->pid));
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
			gdb_pad_set_destroy(gdb, before);
			put_in(gdb, set);
			continue;
		}
		if (!kymo_vec_push(&gdb->pad_sets, before))
			gdb_pad_set_destroy(gdb, before);
		gdb_pad_set_destroy(gdb, set);
	}
	kymo_vec_deinit(&it.due);
}

static bool is_in_the_way(const struct gdb_pad_set *set, uint64_t address)
{
	for (size_t i = 0; i < set->wanted.n; i++) {
		struct kymo_trap_pad pad;

		if (kymo_probes_trap(set->probes, set->wanted.items[i].pad.address, &pad) &&
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
