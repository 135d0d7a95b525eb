#include "gdb/btrace.h"

#include <errno.h>
#include <stdlib.h>

#include "gdb/breakpoints.h"
#include "gdb/state.h"
#include "gdb/thread.h"
#include "procfs/disposition.h"
#include "procfs/maps.h"
#include "wire/shared.h"

enum { EXECUTED_MAX = 64 };

int gdb_btrace_begin(struct gdb_thread *thread, size_t size)
{
	struct gdb_btrace *btrace = thread->btrace ? thread->btrace : calloc(1, sizeof(*btrace));

	if (gdb_is_traced(thread))
		return -EALREADY;
	thread->btrace = btrace;
	if (!btrace || !(btrace->size = gdb_blocks_init(&btrace->blocks, size)))
		return -ENOMEM;
	btrace->is_on = btrace->is_walked = true;
	btrace->expects_handler = false;
	if (!thread->is_stopped)
		return 0;
	btrace->now.is_known = false;
	gdb_btrace_see(thread, 0);
	return 0;
}

bool gdb_btrace_end(struct gdb_thread *thread)
{
	const bool was_on = gdb_is_traced(thread);

	if (was_on) {
		thread->btrace->is_on = false;
		gdb_blocks_deinit(&thread->btrace->blocks);
	}
	return was_on;
}

void gdb_btrace_destroy(struct gdb_btrace *btrace)
{
	if (btrace)
		gdb_blocks_deinit(&btrace->blocks);
	free(btrace);
}

bool gdb_is_traced(const struct gdb_thread *thread)
{
	return thread->btrace && thread->btrace->is_on;
}

bool gdb_btrace_walk(struct gdb_thread *thread)
{
	struct gdb_btrace *btrace = thread->btrace ? thread->btrace : calloc(1, sizeof(*btrace));

	thread->btrace = btrace;
	if (!btrace)
		return false;
	if (!btrace->is_walked) {
		btrace->expects_handler = btrace->is_at_call_end = false;
		(void)kymo_walk_look(thread->engine, &btrace->now);
	}
	btrace->is_walked = true;
	return true;
}

bool gdb_has_recording(pid_t pid)
{
	struct kymo_maps maps = { 0 };
	struct kymo_error *error = kymo_maps_read(pid, &maps);
	bool has = false;

	for (size_t i = 0; i < maps.n; i++)
		has |= kymo_wire_is_own_path(maps.items[i].path);
	kymo_error_destroy(error);
	kymo_maps_deinit(&maps);
	return has;
}

bool gdb_btrace_is_walked(const struct gdb_thread *thread)
{
	return thread->btrace && thread->btrace->is_walked;
}

enum kymo_action gdb_btrace_step(struct gdb_thread *thread)
{
	if (gdb_btrace_is_walked(thread))
		thread->btrace->owes_step = true;
	return KYMO_ACTION_SINGLESTEP;
}

void gdb_btrace_note_told(struct gdb_thread *thread, uint64_t address)
{
	if (thread->btrace)
		thread->btrace->was_told = thread->btrace->now.is_known && thread->btrace->now.pc == address;
}

void gdb_btrace_forget_hit(struct gdb_thread *thread)
{
	if (thread->btrace)
		thread->btrace->was_told = false;
}

bool gdb_btrace_is_pushing(const struct gdb_thread *thread)
{
	const struct gdb_btrace *btrace = thread->btrace;

	return btrace && !thread->is_dead && !thread->is_stopped && btrace->now.is_known &&
	       btrace->now.step.flags.pushed;
}

/* ---- what is executed ------------------------------------------------------------------------ */

/* `may_be_self`: an instruction may have been executed that leads to itself. A repeated one that is not done has not
 * been. */
static void account(struct gdb_btrace *btrace, const struct kymo_walk *now, bool may_be_self)
{
	const struct kymo_walk *before = &btrace->now;
	const bool has_moved = now->pc != before->pc;
	const bool branches = kymo_step_branches(&before->step, before->pc, now->pc);

	if (has_moved && btrace->expects_handler) {
		btrace->expects_handler = false;
		gdb_blocks_move(&btrace->blocks, now->pc);
	} else if (has_moved || (may_be_self && branches)) {
		gdb_blocks_execute(&btrace->blocks, now->pc, branches);
	}
}

static void note(struct gdb_btrace *btrace, const struct kymo_walk *now, bool may_be_self)
{
	if (!btrace->blocks.has_begun)
		gdb_blocks_begin(&btrace->blocks, now->pc, false);
	else if (btrace->now.is_known)
		account(btrace, now, may_be_self);
	else if (now->pc != btrace->blocks.pc)
		gdb_blocks_move(&btrace->blocks, now->pc);
}

void gdb_btrace_see(struct gdb_thread *thread, unsigned int event)
{
	struct gdb_btrace *btrace = thread->btrace;
	struct kymo_walk now = { .is_known = false };

	if (!gdb_btrace_is_walked(thread))
		return;
	btrace->was_told = false;
	if (event == KYMO_EVENT_DEATH || kymo_walk_look(thread->engine, &now)) {
		btrace->now.is_known = false;
		return;
	}
	if (btrace->is_on)
		note(btrace, &now, !event && !btrace->is_at_call_end);
	else if (now.pc != btrace->now.pc)
		btrace->expects_handler = false;
	if (btrace->now.is_known && now.pc != btrace->now.pc) {
		kymo_walk_clean(thread->engine, &btrace->now, &now);
		btrace->owes_step = false;
	}
	btrace->is_at_call_end = event == KYMO_EVENT_SYSCALL_EXIT;
	btrace->now = now;
}

void gdb_btrace_look_again(struct gdb_thread *thread)
{
	struct gdb_btrace *btrace = thread->btrace;
	uint64_t pc;

	if (!gdb_btrace_is_walked(thread))
		return;
	pc = btrace->now.pc;
	if (kymo_walk_look(thread->engine, &btrace->now))
		return;
	btrace->was_told &= btrace->now.pc == pc;
	if (!btrace->is_on || !btrace->blocks.has_begun)
		return;
	if (btrace->now.pc != btrace->blocks.pc)
		gdb_blocks_move(&btrace->blocks, btrace->now.pc);
}

void gdb_btrace_expect_signal(struct gdb_thread *thread, int signal)
{
	if (gdb_btrace_is_walked(thread))
		thread->btrace->expects_handler |=
			kymo_signal_disposition(thread->tid, signal) == KYMO_DISPOSITION_CAUGHT;
}

void gdb_btrace_forget(struct gdb_thread *thread)
{
	struct gdb_btrace *btrace = thread->btrace;

	if (!btrace)
		return;
	btrace->now.is_known = btrace->is_at_call_end = btrace->expects_handler = btrace->blocks.has_begun =
		btrace->was_told = false;
	btrace->blocks.is_read = false;
}

/* ---- going on -------------------------------------------------------------------------------- */

/* Whether a breakpoint is there which is yet to be executed. */
static bool is_at_breakpoint(const struct gdb_thread *thread, uint64_t pc)
{
	return !thread->btrace->was_told && (gdb_has_breakpoint(thread->process, pc) ||
					     gdb_traces_at(&thread->gdb->tracing, thread->process->pid, pc));
}

bool gdb_btrace_pop(struct gdb_thread *thread)
{
	struct gdb_btrace *btrace = thread->btrace;
	struct kymo_walk now;

	if (!gdb_btrace_is_walked(thread) || btrace->expects_handler || !btrace->now.is_known ||
	    !btrace->now.step.flags.popped || is_at_breakpoint(thread, btrace->now.pc))
		return false;
	now = btrace->now;
	if (!kymo_walk_pop(thread->engine, &now))
		return false;
	if (btrace->is_on)
		note(btrace, &now, false);
	btrace->now = now;
	btrace->was_told = false;
	return true;
}

/* Whether a step over the instruction at which it stands shows in the program, unless the stub is told of its end. */
static bool shows_step(const struct kymo_walk *now)
{
	return now->is_known &&
	       (now->step.flags.pushed || now->step.flags.popped || now->step.kind == KYMO_STEP_SYSCALL);
}

/*
 * The hub owes each step that was asked for until it is done. A thread that was stopped before the step makes it when
 * it goes on, also where nothing asks for steps any more. That step is hidden as those before it: where it could show,
 * the stub asks for it anew and sees its end.
 */
static bool steps_on(const struct gdb_thread *thread)
{
	const struct gdb_btrace *btrace = thread->btrace;

	return btrace->is_on || (btrace->owes_step && shows_step(&btrace->now));
}

enum kymo_action gdb_btrace_action(struct gdb_thread *thread)
{
	struct gdb_btrace *btrace = thread->btrace;

	if (!gdb_btrace_is_walked(thread))
		return KYMO_ACTION_RESUME;
	for (int i = 0; i < EXECUTED_MAX && gdb_btrace_pop(thread); i++)
		;
	if (!thread->process->is_narrow && steps_on(thread))
		return gdb_btrace_step(thread);
	if (!btrace->owes_step) {
		btrace->is_walked = btrace->now.is_known = false;
		gdb_set_mask(thread);
	}
	return KYMO_ACTION_RESUME;
}
