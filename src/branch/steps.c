/*
 * All threads' engines have the recording for their data; which thread it is, their engine tells. Callbacks run on the
 * hub's thread, or, of a hub that was joined, on one of ours, one at a time.
 */
#include "branch/steps.h"

#include <errno.h>
#include <linux/audit.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/backoff.h"
#include "base/io.h"
#include "base/page.h"
#include "branch/chosen.h"
#include "branch/state.h"
#include "branch/thread.h"
#include "kymo/engine.h"

#define SEEN \
	(KYMO_EVENT_QUIESCE | KYMO_EVENT_CLONE | KYMO_EVENT_EXEC | KYMO_EVENT_EXIT | KYMO_EVENT_DEATH | \
	 KYMO_EVENT_REAP | KYMO_EVENTS_SIGNAL | KYMO_EVENT_SYSCALL_EXIT)
#define CALL_BYTES 7        /* of the longest call */
#define PUSH_NS 2000000000u /* that a thread may take for an instruction */
#define OURS (KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA)

static const struct branch_range nothing = { 0, 0 };

/* What it does next. At the end of the recording no thread is stepped any more: a thread that was counted too late sees
 * that it ends. */
static enum kymo_action action_of(struct kymo_branches *branches, struct branch_thread *thread)
{
	branch_thread_pushes(branches, thread,
			     thread->is_inside && thread->now.is_known && thread->now.step.flags.pushed);
	if (branches->is_ending) {
		branch_thread_leave(thread);
		branch_thread_pushes(branches, thread, false);
	}
	return thread->is_inside ? KYMO_ACTION_SINGLESTEP : KYMO_ACTION_RESUME;
}

/* ---- chosen code ----------------------------------------------------------------------------- */

static void insert(struct kymo_branches *branches, struct branch_thread *thread, uint64_t address)
{
	int err;

	for (size_t i = 0; i < thread->breaks.n; i++)
		if (thread->breaks.items[i] == address)
			return;
	err = kymo_engine_insert_breakpoint(thread->engine, address);
	if (err == -ESRCH)
		return;
	if ((err && err != -EEXIST) || !kymo_vec_push(&thread->breaks, address))
		branches_warn(branches, BRANCH_WARNING_BREAKPOINTS);
}

static void insert_entries(struct kymo_branches *branches, struct branch_thread *thread)
{
	const struct branch_space *space = branch_thread_space(branches, thread);

	for (size_t i = 0; space && i < space->entries.n; i++)
		insert(branches, thread, space->entries.items[i]);
}

/* Whether there were any. */
static bool remove_within(struct branch_thread *thread, const struct branch_range *range)
{
	size_t n = 0;

	for (size_t i = 0; i < thread->breaks.n; i++) {
		const uint64_t address = thread->breaks.items[i];

		if (address < range->start || address >= range->end)
			thread->breaks.items[n++] = address;
		else
			kymo_engine_remove_breakpoint(thread->engine, address);
	}
	if (n == thread->breaks.n)
		return false;
	thread->breaks.n = n;
	return true;
}

static bool runs_in(const struct branch_thread *thread, const struct branch_process *process)
{
	return thread->process == process && !thread->has_ended;
}

/*
 * The process may have other code than before, and what was in `unmapped` has gone. Breakpoints there have gone, too;
 * and where the same library has come again they are wanted once more. Those of all threads go before any comes back:
 * one that stays would keep its address taken.
 */
static void renew(struct kymo_branches *branches, struct branch_thread *thread, const struct branch_range *unmapped)
{
	const struct branch_process *process = thread->process;
	bool is_changed = false;

	for (size_t i = 0; i < branches->threads.n; i++)
		if (runs_in(branches->threads.items[i], process))
			is_changed |= remove_within(branches->threads.items[i], unmapped);
	is_changed |= branch_thread_renew(branches, thread);
	if (branches->is_all || !is_changed)
		return;
	for (size_t i = 0; i < branches->threads.n; i++)
		if (runs_in(branches->threads.items[i], process))
			insert_entries(branches, branches->threads.items[i]);
}

/* What is on a stack may be anything; a breakpoint is written before instructions only. */
static bool is_after_call(const struct branch_thread *thread, uint64_t address)
{
	uint8_t bytes[CALL_BYTES];

	return !kymo_engine_read(thread->engine, address - sizeof(bytes), bytes, sizeof(bytes)) &&
	       kymo_step_ends_call(bytes, sizeof(bytes));
}

/*
 * Where other code returns to. From a function that was called, or jumped to, that is after the call, and on top of the
 * stack; from the linker, which finds functions at their first call, after the last call. From a handler it is what
 * that came upon.
 */
static void insert_return(struct kymo_branches *branches, struct branch_thread *thread, uint64_t before,
			  bool has_returned)
{
	const struct branch_space *space = branch_thread_space(branches, thread);
	uint64_t address;

	if (!has_returned && !kymo_engine_read(thread->engine, thread->now.sp, &address, sizeof(address)) &&
	    branch_is_chosen(space, address) && is_after_call(thread, address))
		insert(branches, thread, address);
	if (branch_is_chosen(space, thread->called_from))
		insert(branches, thread, thread->called_from);
	if (branch_is_chosen(space, before))
		insert(branches, thread, before);
}

static void look_at_step(struct kymo_branches *branches, struct branch_thread *thread, bool is_step_end)
{
	const bool had_before = thread->now.is_known, was_inside = thread->is_inside;
	const struct kymo_step step = thread->now.step;
	const uint64_t before = thread->now.pc;
	bool is_chosen;

	branch_thread_see(branches, thread, is_step_end);
	if (branches->is_all) {
		thread->is_inside = !thread->is_in_pad && !thread->is_of_32_bits;
		return;
	}
	if (had_before && was_inside && step.kind == KYMO_STEP_CALL)
		thread->called_from = before + step.length;
	if (!thread->now.is_known)
		return;
	is_chosen = branch_is_chosen(branch_thread_space(branches, thread), thread->now.pc);
	if (is_chosen && !was_inside) {
		thread->is_inside = true;
		branch_thread_note(branches, thread, KYMO_BRANCH_ENTER);
	} else if (!is_chosen && was_inside) {
		if (had_before)
			insert_return(branches, thread,
				      step.kind == KYMO_STEP_RETURN || step.kind == KYMO_STEP_CALL ? 0 : before,
				      step.kind == KYMO_STEP_RETURN);
		branch_thread_leave(thread);
	}
}

static void see(struct kymo_branches *branches, struct branch_thread *thread, bool is_step_end)
{
	look_at_step(branches, thread, is_step_end);
	if (thread->is_inside)
		branch_thread_execute(thread);
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static unsigned int on_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);

	if (!thread)
		return KYMO_ACTION_DETACH;
	if (event & (KYMO_EVENT_EXIT | KYMO_EVENT_DEATH))
		return KYMO_ACTION_RESUME;
	if (event == KYMO_EVENT_EXEC) {
		thread->now.is_known = false;
		return KYMO_ACTION_RESUME; /* its callback is next */
	}
	if (!thread->has_begun && !branches->is_all) {
		renew(branches, thread, &nothing);
		insert_entries(branches, thread);
	}
	thread->has_begun = true;
	see(branches, thread, !event);
	thread->is_at_call_end = event == KYMO_EVENT_SYSCALL_EXIT;
	return action_of(branches, thread);
}

/* A system call that may have changed the code that a process has. */
struct change {
	struct branch_range unmapped;
	bool is_new; /* there may be new code, wherever */
};

static struct branch_range pages(uint64_t start, uint64_t size)
{
	return (struct branch_range){ start, start + kymo_page_up(size) };
}

/* What is not known may be anything. Of calls of 32 bits the numbers are not known. */
static struct change change_by(const struct kymo_syscall_report *report)
{
	const uint64_t *args = report->args;

	if (!report->is_entry_known || report->arch != AUDIT_ARCH_X86_64)
		return (struct change){ .is_new = true };
	if (report->is_error)
		return (struct change){ .is_new = false };
	switch (report->number) {
	case SYS_munmap:
		return (struct change){ pages(args[0], args[1]), false };
	case SYS_mremap: /* where it moves is looked at after it has */
		return (struct change){ pages(args[0], args[1]), (uint64_t)report->result != args[0] };
	case SYS_mmap:
		return (struct change){ pages((uint64_t)report->result, args[1]), args[2] & PROT_EXEC };
	case SYS_mprotect:
	case SYS_pkey_mprotect:
		return (struct change){ .is_new = args[2] & PROT_EXEC };
	default:
		return (struct change){ .is_new = false };
	}
}

static bool meets(const struct branch_space *space, const struct branch_range *range)
{
	for (size_t i = 0; space && i < space->regions.n; i++)
		if (space->regions.items[i].range.start < range->end &&
		    range->start < space->regions.items[i].range.end)
			return true;
	return false;
}

static unsigned int on_call_end(struct kymo_engine *engine, void *data, enum kymo_action action,
				const struct kymo_syscall_report *report)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);
	const struct change change = change_by(report);

	if (!thread)
		return KYMO_ACTION_DETACH;
	if (change.is_new || meets(branch_thread_space(branches, thread), &change.unmapped)) {
		thread->process->is_changed = true;
		renew(branches, thread, &change.unmapped);
	}
	return action_of(branches, thread);
}

/* A signal that would end the thread is the last thing that is known of it, until it goes on. */
static unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
			      struct kymo_signal_report *report)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);

	if (!thread)
		return KYMO_ACTION_DETACH | report->verdict;
	if (report->trap != KYMO_TRAP_NONE)
		return action_of(branches, thread) | report->verdict;
	thread->expects_handler = report->kind == KYMO_EVENT_SIGNAL && thread->is_inside;
	if (report->kind & (KYMO_EVENT_SIGNAL_TERM | KYMO_EVENT_SIGNAL_CORE))
		branch_thread_note_end(thread, report, thread->now.pc);
	return action_of(branches, thread) | report->verdict;
}

static unsigned int on_clone(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_clone_report *report)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);
	int err = 0;

	if (report->kind == KYMO_CLONE_THREAD)
		err = branch_steps_attach(branches, report->child);
	else if (branches->options.follow)
		err = branch_steps_attach_child(branches, thread, report->child);
	if (err && err != -ESRCH && err != -EEXIST)
		branches_warn(branches, BRANCH_WARNING_THREAD);
	return thread ? action_of(branches, thread) : KYMO_ACTION_DETACH;
}

/* All breakpoints have gone. */
static unsigned int on_exec(struct kymo_engine *engine, void *data, enum kymo_action action,
			    const struct kymo_exec_report *report)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);

	if (!thread)
		return KYMO_ACTION_DETACH;
	thread->tid = kymo_engine_tid(engine);
	thread->is_inside = thread->is_in_pad = thread->expects_handler = false;
	thread->breaks.n = 0;
	thread->process->is_changed = true;
	renew(branches, thread, &nothing);
	if (!branches->is_all)
		insert_entries(branches, thread); /* it may have mapped the same code as before */
	see(branches, thread, false);
	if (branches->is_all && thread->now.is_known)
		branch_thread_note(branches, thread, KYMO_BRANCH_EXEC);
	return action_of(branches, thread);
}

static unsigned int on_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);

	if (thread)
		branch_thread_ended(branches, thread, report->status);
	return KYMO_ACTION_RESUME;
}

static void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);

	if (thread)
		branch_thread_ended(branches, thread, report->status);
	branch_thread_reaped(branches, thread, report);
}

static const struct kymo_engine_ops engine_ops = {
	.size = sizeof(engine_ops),
	.quiesce = on_quiesce,
	.signal = on_signal,
	.clone = on_clone,
	.exec = on_exec,
	.syscall_exit = on_call_end,
	.exit = branch_thread_exits,
	.death = on_death,
	.reap = on_reap,
};

/* ---- attaching ------------------------------------------------------------------------------- */

static unsigned int flags_of(const struct kymo_branches *branches)
{
	return OURS | (branches->is_all ? 0 : KYMO_ATTACH_BREAKPOINTS);
}

/* The child has no breakpoints of its maker's, and its stack. */
static void inherit(struct kymo_branches *branches, const struct branch_thread *maker, struct kymo_engine *engine)
{
	struct branch_thread *child = branch_thread_of(branches, engine);

	for (size_t i = 0; child && i < maker->breaks.n; i++)
		insert(branches, child, maker->breaks.items[i]);
}

/* `maker`: NULL where it is no child. */
static int attach(struct kymo_branches *branches, pid_t tid, const struct branch_thread *maker)
{
	struct kymo_engine *engine;
	int err = kymo_engine_attach(branches->hub, tid, KYMO_ATTACH_CREATE | flags_of(branches), &engine_ops, branches,
				     &engine);

	if (err)
		return err;
	branches->n_threads++; /* it is not told its end before it has a mask */
	err = kymo_engine_set_events(engine, SEEN);
	if (!err)
		err = branch_thread_want_stop(engine);
	if (err) {
		branches->n_threads--;
		kymo_engine_control(engine, KYMO_ACTION_DETACH);
	} else if (maker) {
		inherit(branches, maker, engine);
	}
	kymo_engine_put(engine);
	return err == -EALREADY ? -ESRCH : err;
}

int branch_steps_attach(struct kymo_branches *branches, pid_t tid)
{
	return attach(branches, tid, NULL);
}

int branch_steps_attach_child(struct kymo_branches *branches, const struct branch_thread *maker, pid_t pid)
{
	return attach(branches, pid, maker);
}

static void see_first_stop(struct kymo_branches *branches, struct kymo_engine *engine)
{
	(void)branches;
	(void)branch_thread_want_stop(engine);
}

int branch_steps_attach_process(struct kymo_branches *branches)
{
	return branch_threads_attach(branches, flags_of(branches), &engine_ops, SEEN, see_first_stop);
}

/*
 * If a thread is detached between a step over `pushf` and the stop that reports it, a word on its stack asks for single
 * steps. So all are waited for that may be there. The others sleep, or will not push.
 */
void branch_steps_detach(struct kymo_branches *branches)
{
	const uint64_t deadline = kymo_now_ns() + PUSH_NS;

	branches->is_ending = true;
	for (unsigned int spins = 0; branches->n_pushing && kymo_now_ns() < deadline; spins++)
		kymo_back_off(spins);
	kymo_engine_detach_all(branches->hub, &engine_ops, branches);
}
