/*
 * Engines of threads that run function clones (docs/design/clones.md). They are told what must not wait. A thread that
 * begins may have the word of one that has ended in the same memory: it is cleared before the thread runs. A thread
 * that gets a fault in a clone waits until the clones are out, if a handler is to see it. And a thread that ends leaves
 * its ring, which is read at once.
 */
#include "branch/clones.h"

#include <errno.h>
#include <signal.h>

#include "branch/blocks.h"
#include "branch/state.h"
#include "branch/thread.h"
#include "kymo/engine.h"
#include "wire/clones.h"

#define EVENTS \
	(KYMO_EVENT_QUIESCE | KYMO_EVENT_CLONE | KYMO_EVENT_EXEC | KYMO_EVENT_EXIT | KYMO_EVENT_DEATH | \
	 KYMO_EVENT_REAP | KYMO_EVENTS_SIGNAL)
#define ENTRIES (KYMO_WIRE_ARENA_RING_SIZE / sizeof(uint32_t))
#define SIGCANCEL 32 /* of glibc: its handler unwinds from where the thread was */

static const struct kymo_engine_ops clone_ops;

/* ---- rings ----------------------------------------------------------------------------------- */

/* A thread whose ring is being followed. */
struct reading {
	struct kymo_branches *branches;
	struct branch_thread *thread;
	uint64_t stamp; /* of the anchor before, or of the first one; 0: there is none */
	uint64_t end;   /* no stamp is later */
};

/* What no pad has written is no anchor: time goes forward. */
static bool is_sound(const struct reading *reading, uint64_t stamp)
{
	return stamp >= reading->stamp && stamp >= reading->branches->begin_stamp && stamp <= reading->end;
}

static void take_first_anchor(const struct kymo_branch *branch, bool is_gap, void *data)
{
	struct reading *reading = data;

	if (branch->kind == KYMO_BRANCH_ANCHOR && !reading->stamp && is_sound(reading, branch->stamp))
		reading->stamp = branch->stamp;
}

static void take_branch(const struct kymo_branch *branch, bool is_gap, void *data)
{
	struct reading *reading = data;
	struct kymo_branch taken = *branch;

	if (is_gap || (branch->kind == KYMO_BRANCH_ANCHOR && !is_sound(reading, branch->stamp)))
		branches_warn(reading->branches, BRANCH_WARNING_GAP);
	if (branch->kind == KYMO_BRANCH_ANCHOR && !is_sound(reading, branch->stamp))
		return;
	if (branch->kind == KYMO_BRANCH_ANCHOR)
		reading->stamp = branch->stamp;
	taken.stamp = reading->stamp;
	taken.space = reading->thread->process->space;
	if (reading->stamp)
		branch_thread_add_at(reading->branches, reading->thread, &taken);
	else
		branch_thread_add(reading->branches, reading->thread, branch->from, branch->to,
				  (enum kymo_branch_kind)branch->kind);
}

static void read_ring(struct kymo_branches *branches, struct branch_thread *thread)
{
	struct reading reading = { .branches = branches, .thread = thread, .end = branches->options.stamp() };
	uint32_t ring[ENTRIES], entries[ENTRIES];
	struct branch_ring_entries found;

	if (!thread->block ||
	    !branches->options.clones->take_ring(thread->block, thread->tid, ring, branches->options.clones->data))
		return;
	found = branch_find_entries(ring, ENTRIES, -1);
	thread->is_overwritten = found.is_full;
	branches->is_overwritten |= found.is_full;
	for (size_t i = 0; i < found.n; i++)
		entries[i] = ring[(found.end + ENTRIES - found.n + i) % ENTRIES];
	if (branch_follow(branches->functions.items, branches->functions.n, entries, found.n,
			  thread->signal ? &thread->at : NULL, take_first_anchor, &reading) ||
	    branch_follow(branches->functions.items, branches->functions.n, entries, found.n,
			  thread->signal ? &thread->at : NULL, take_branch, &reading))
		branches_warn(branches, BRANCH_WARNING_MEMORY);
	thread->block = 0;
}

static void end_thread(struct kymo_branches *branches, struct branch_thread *thread, int status)
{
	if (!thread->has_ended)
		read_ring(branches, thread);
	branch_thread_ended(branches, thread, status);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* A thread that was made without a block of its own has that of its maker, and the word in it. */
static bool has_block_of_another(const struct kymo_branches *branches, const struct branch_thread *thread)
{
	for (size_t i = 0; i < branches->threads.n; i++) {
		const struct branch_thread *other = branches->threads.items[i];

		if (other != thread && !other->has_ended && other->process == thread->process &&
		    other->block == thread->block)
			return true;
	}
	return false;
}

static void begin_thread(struct kymo_branches *branches, struct kymo_engine *engine, struct branch_thread *thread)
{
	const uint64_t none = 0;
	struct user_regs_struct registers;

	if (thread->has_begun || kymo_engine_get_registers(engine, &registers))
		return;
	branch_thread_renew(branches, thread);
	thread->has_begun = true;
	thread->block = registers.fs_base;
	if (thread->is_born && thread->block && !has_block_of_another(branches, thread))
		kymo_engine_write(engine, thread->block + branches->options.clones->word, &none, sizeof(none));
}

static unsigned int on_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event)
{
	struct branch_thread *thread = branch_thread_of(data, engine);

	if (!thread)
		return KYMO_ACTION_DETACH;
	if (!(event & (KYMO_EVENT_EXIT | KYMO_EVENT_DEATH | KYMO_EVENT_EXEC)))
		begin_thread(data, engine, thread);
	return KYMO_ACTION_RESUME;
}

/* By the instruction where the thread stands, which makes it once more. */
static bool is_fault(const siginfo_t *info)
{
	return info->si_code > 0 && (info->si_signo == SIGSEGV || info->si_signo == SIGBUS ||
				     info->si_signo == SIGILL || info->si_signo == SIGFPE);
}

/* The end of the thread: where it stands, or would without clones. A dump of its memory has that, too. */
static void note_end(struct kymo_branches *branches, struct kymo_engine *engine, struct branch_thread *thread,
		     const struct kymo_signal_report *report)
{
	const struct kymo_branch_clones *clones = branches->options.clones;
	struct user_regs_struct registers = { 0 };

	kymo_engine_get_registers(engine, &registers);
	if (clones->origin(&registers, clones->data))
		kymo_engine_set_registers(engine, &registers);
	branch_thread_note_end(thread, report, registers.rip);
}

static bool is_in_clone(const struct kymo_branches *branches, struct kymo_engine *engine)
{
	const struct kymo_branch_clones *clones = branches->options.clones;
	struct user_regs_struct registers;

	return !branches->are_clones_out && !kymo_engine_get_registers(engine, &registers) &&
	       clones->is_in(registers.rip, clones->data);
}

/*
 * A handler may look where the fault was, or unwind from there, and it may return. The program's own address is no
 * place to return to while catches are in the text around it. So the clones go first. Until then the thread gets the
 * fault again and again, or the signal is sent anew; at last that is in the program's own code.
 */
static unsigned int put_off(struct kymo_branches *branches, const siginfo_t *info)
{
	branches->are_clones_to_go = true;
	return is_fault(info) ? KYMO_SIGNAL_IGN : KYMO_SIGNAL_REQUEUE;
}

static unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
			      struct kymo_signal_report *report)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);

	if (!thread || report->trap != KYMO_TRAP_NONE)
		return KYMO_ACTION_RESUME | report->verdict;
	if (report->kind & (KYMO_EVENT_SIGNAL_TERM | KYMO_EVENT_SIGNAL_CORE)) {
		note_end(branches, engine, thread, report);
	} else if (report->kind == KYMO_EVENT_SIGNAL &&
		   (is_fault(&report->info) || report->info.si_signo == SIGCANCEL) && is_in_clone(branches, engine)) {
		return KYMO_ACTION_RESUME | put_off(branches, &report->info);
	}
	return KYMO_ACTION_RESUME | report->verdict;
}

/* Children have what they need from elsewhere. */
static unsigned int on_clone(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_clone_report *report)
{
	struct kymo_branches *branches = data;

	if (report->kind != KYMO_CLONE_THREAD)
		return KYMO_ACTION_RESUME;
	branches->options.clones->is_born(branches->options.clones->data);
	if (branch_thread_attach(branches, report->child, 0, &clone_ops, EVENTS, true))
		branches_warn(branches, BRANCH_WARNING_THREAD);
	return KYMO_ACTION_RESUME;
}

/* All that was cloned has gone. */
static unsigned int on_exec(struct kymo_engine *engine, void *data, enum kymo_action action,
			    const struct kymo_exec_report *report)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);

	if (thread) {
		read_ring(branches, thread);
		thread->engine = NULL;
		branches->last = NULL;
	}
	branches->n_threads--;
	return KYMO_ACTION_DETACH;
}

static unsigned int on_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	struct branch_thread *thread = branch_thread_of(data, engine);

	if (thread)
		end_thread(data, thread, report->status);
	return KYMO_ACTION_RESUME;
}

static void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);

	if (thread) {
		end_thread(branches, thread, report->status);
		thread->engine = NULL; /* another one may be where it was */
	}
	branches->last = NULL;
	branches->n_threads--;
}

static const struct kymo_engine_ops clone_ops = {
	.size = sizeof(clone_ops),
	.quiesce = on_quiesce,
	.signal = on_signal,
	.clone = on_clone,
	.exec = on_exec,
	.exit = branch_thread_exits,
	.death = on_death,
	.reap = on_reap,
};

/* ---- beginning and end ----------------------------------------------------------------------- */

static void take_existing(struct kymo_branches *branches, struct kymo_engine *engine)
{
	branches->options.clones->is_born(branches->options.clones->data);
	kymo_engine_control(engine, KYMO_ACTION_REPORT);
}

int branch_clones_attach(struct kymo_branches *branches)
{
	if (branches->options.clones->is_running)
		return branch_threads_attach(branches, 0, &clone_ops, EVENTS, take_existing);
	branches->options.clones->is_born(branches->options.clones->data);
	return branch_thread_attach(branches, branches->pid, 0, &clone_ops, EVENTS, false);
}

void branch_clones_detach(struct kymo_branches *branches)
{
	kymo_engine_detach_all(branches->hub, &clone_ops, branches);
	for (size_t i = 0; i < branches->threads.n; i++)
		if (!branches->threads.items[i]->has_ended)
			read_ring(branches, branches->threads.items[i]);
}
