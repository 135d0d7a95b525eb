/*
 * Breakpoints: their owners, their reports, and how threads pass them.
 *
 * A thread that has executed a breakpoint stands before a SIGTRAP. First that signal is taken away (hub_swallow()), so
 * that it is not delivered if the hub dies, and the program counter is put back. Then the owners are told. When the
 * thread goes on, the byte is put back for one instruction, while no other thread runs in that memory.
 *
 * A signal or an interrupt may come in place of that instruction. Then the thread stays at the breakpoint, and steps
 * over it when it goes on the next time. If a signal handler runs in between, the thread reaches the breakpoint again
 * with the same registers, which is not told again.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "arch/flags.h"
#include "arch/leave_pad.h"
#include "arch/remote.h"
#include "arch/trap.h"
#include "base/vec.h"
#include "hub/engine.h"
#include "hub/state.h"
#include "hub/thread/interrupt.h"
#include "hub/thread/request.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "hub/trap/break.h"
#include "hub/trap/breakpoint.h"
#include "hub/trap/disarm.h"
#include "hub/trap/pad.h"
#include "hub/trap/pads.h"
#include "hub/trap/space.h"
#include "kymo/engine.h"
#include "procfs/memory.h"

#define STEP_NS 100000000ull
#define PIECES_MAX 8 /* instructions that one is taken apart into, and some more */

/* ---- owners ---------------------------------------------------------------------------------- */

static bool owns(const struct kymo_engine *engine, uint64_t address)
{
	for (size_t i = 0; i < engine->breakpoints.n; i++)
		if (engine->breakpoints.items[i] == address)
			return true;
	return false;
}

struct breakpoint_call {
	struct kymo_engine *engine;
	uint64_t address;
};

static int check_engine(const struct kymo_engine *engine)
{
	return engine->is_detached || !engine->task || engine->task->end.was_told ? -ESRCH : 0;
}

static int insert_break(struct kymo_hub *hub, void *argument)
{
	const struct breakpoint_call *call = argument;
	struct kymo_engine *engine = call->engine;
	int err = check_engine(engine);

	if (err)
		return err;
	if (!engine->may_break)
		return -EPERM;
	if (engine->guest)
		err = hub_pads_yield(hub, engine->task->process->space, call->address);
	if (err)
		return err;
	if (owns(engine, call->address)) {
		err = hub_space_renew(hub, engine->task->process, call->address);
		return err ? err : -EEXIST;
	}
	if (!kymo_vec_reserve(&engine->breakpoints, engine->breakpoints.n + 1))
		return -ENOMEM;
	err = hub_space_insert(hub, engine->task->process, call->address);
	if (!err)
		kymo_vec_push(&engine->breakpoints, call->address);
	return err;
}

int hub_local_insert_breakpoint(struct kymo_engine *engine, uint64_t address)
{
	return hub_call(engine->hub, insert_break, &(struct breakpoint_call){ engine, address });
}

static int remove_(struct kymo_hub *hub, void *argument)
{
	const struct breakpoint_call *call = argument;
	struct kymo_engine *engine = call->engine;

	if (check_engine(engine))
		return -ESRCH;
	for (size_t i = 0; i < engine->breakpoints.n; i++) {
		if (engine->breakpoints.items[i] != call->address)
			continue;
		engine->breakpoints.items[i] = engine->breakpoints.items[--engine->breakpoints.n];
		hub_space_remove(hub, engine->task->process, call->address);
		return 0;
	}
	return -ENOENT;
}

int hub_local_remove_breakpoint(struct kymo_engine *engine, uint64_t address)
{
	return hub_call(engine->hub, remove_, &(struct breakpoint_call){ engine, address });
}

/* ---- hits ------------------------------------------------------------------------------------ */

/* If a program has copied its code while the breakpoint was in, the copy keeps it. */
static bool is_left_over(const struct hub_space *space, const struct hub_break *b)
{
	return b->original != KYMO_TRAP_BYTE && hub_break_is_written(space->memory, b);
}

static bool read_stack(void *data, uint64_t address, uint64_t *ret)
{
	const struct hub_space *space = data;

	return !kymo_memory_read(&space->memory->opened, address, ret, sizeof(*ret));
}

/* A thread has come to the trap of a pad, or the pad has faulted. Either is a hit: the trap is a hint. The
 * registers become those right after an int3 at the site. */
static const struct hub_break *find_hit_in_pad(const struct task *task, const siginfo_t *info,
					       struct user_regs_struct *registers)
{
	struct hub_space *space = task->process->space;
	const bool is_trap = info->si_signo == SIGTRAP && info->si_code == SI_KERNEL;
	const struct hub_pad *pad = is_trap ? hub_pad_with_trap(space, registers->rip) : hub_pad_of_fault(task, info);

	if (!pad || (!is_trap && kymo_pad_leave(&pad->plan, &pad->layout, pad->site, pad->at, read_stack, space,
						registers) != KYMO_PAD_LEFT))
		return NULL;
	kymo_trap_set(registers, pad->site);
	return hub_space_find(space, pad->site);
}

/* The breakpoint that a thread has executed; NULL: the int3 is the program's own. */
static const struct hub_break *find_hit(const struct task *task, const siginfo_t *info,
					struct user_regs_struct *registers)
{
	const struct hub_space *space = task->process->space;
	const struct hub_break *b;

	if (!space || kymo_get_registers(task->tid, registers))
		return NULL;
	if (space->pads.n && (b = find_hit_in_pad(task, info, registers)))
		return b;
	if (info->si_signo != SIGTRAP || info->si_code != SI_KERNEL)
		return NULL;
	b = hub_space_find(space, kymo_trap_address(registers));
	if (!b || (b->owners && !b->is_void) || !hub_space_has_trap(space, b->address))
		return b;
	return is_left_over(space, b) ? b : NULL;
}

/* What a pad has taken that has faulted. */
static void give_back(const struct task *task, const siginfo_t *info)
{
	const struct hub_pad *pad = hub_may_be_in_pad(task) ? hub_pad_of_fault(task, info) : NULL;
	struct user_regs_struct registers;

	if (pad && !kymo_get_registers(task->tid, &registers))
		hub_pad_give_back(task->process->space, pad, &registers);
}

bool hub_is_of_step(const siginfo_t *info)
{
	return info->si_signo == SIGTRAP &&
	       (info->si_code == TRAP_TRACE || info->si_code == TRAP_BRKPT || info->si_code == SIGTRAP);
}

bool hub_is_trap_of_ours(const struct task *task, const siginfo_t *info)
{
	struct user_regs_struct registers;

	return find_hit(task, info, &registers) ||
	       (task->traps.had_watches && info->si_signo == SIGTRAP && info->si_code == TRAP_HWBKPT);
}

bool hub_breakpoint_is_owner(const struct kymo_engine *engine, const void *report)
{
	return owns(engine, ((const struct kymo_signal_report *)report)->address);
}

static void report(uint64_t address, struct kymo_signal_report *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->info.si_signo = SIGTRAP;
	ret->info.si_code = TRAP_BRKPT;
	ret->info.si_addr = (void *)address;
	ret->kind = KYMO_EVENT_SIGNAL;
	ret->verdict = KYMO_SIGNAL_IGN;
	ret->trap = KYMO_TRAP_BREAKPOINT;
	ret->address = address;
}

bool hub_breakpoint_stopped(struct kymo_hub *hub, struct task *task, struct kymo_signal_report *ret, int *group_ret)
{
	struct user_regs_struct registers;
	const struct hub_break *b;
	bool is_late, is_again;
	siginfo_t info;

	ret->kind = 0;
	if (task->traps.passes_own || ptrace(PTRACE_GETSIGINFO, task->tid, 0, &info)) {
		task->traps.passes_own = false;
		return false;
	}
	b = find_hit(task, &info, &registers);
	if (!b)
		return false;
	give_back(task, &info);
	is_late = !b->owners || b->is_void;
	if (is_late && is_left_over(task->process->space, b))
		hub_space_swap(task->process->space->memory, b->address, KYMO_TRAP_BYTE, b->original);
	kymo_trap_return(&registers);
	if (kymo_set_registers(task->tid, &registers) || !hub_swallow(hub, task, group_ret) || is_late)
		return true;
	is_again = task->traps.has_told && kymo_trap_is_same(&task->traps.told, &registers);
	task->traps.told = registers;
	task->traps.pushes = (struct kymo_flags_step){ .pushed = 0 };
	task->traps.has_told = task->traps.is_at_breakpoint = true;
	if (!is_again)
		report(registers.rip, ret);
	return true;
}

/* ---- stepping over --------------------------------------------------------------------------- */

void hub_breakpoint_passed(struct task *task)
{
	task->traps.has_told = task->traps.is_at_breakpoint = task->traps.is_passing = false;
	task->traps.pushes = (struct kymo_flags_step){ .pushed = 0 };
}

/* The one at which it stands and has been told of; else it stands at none. */
static struct hub_break *find_own(struct task *task)
{
	const struct hub_space *space = task->process->space;
	struct user_regs_struct registers;
	struct hub_break *b = NULL;

	if (!task->traps.is_at_breakpoint)
		return NULL;
	if (kymo_get_registers(task->tid, &registers) || registers.rip != task->traps.told.rip)
		task->traps.is_at_breakpoint = false;
	else if (space)
		b = hub_space_find(space, registers.rip);
	if (task->traps.is_at_breakpoint && !(b && b->owners && !b->is_void && !b->by_pad))
		hub_breakpoint_passed(task); /* it was removed: the instruction is executed now, and the next hit is
						news. Of a pad, it stands in a system call that ends there */
	return task->traps.is_at_breakpoint ? b : NULL;
}

static bool is_call(const struct hub_space *space, const struct hub_break *b)
{
	uint8_t code[KYMO_REMOTE_CALL] = { b->original };

	return !kymo_memory_read(&space->memory->opened, b->address + 1, code + 1, sizeof(code) - 1) &&
	       kymo_remote_is_call(code);
}

/* Whether that status is the end of the step. */
static bool is_step(pid_t tid, int status)
{
	siginfo_t info;

	return WIFSTOPPED(status) && status >> 8 == SIGTRAP && !ptrace(PTRACE_GETSIGINFO, tid, 0, &info) &&
	       hub_is_of_step(&info);
}

/* What the instruction below a breakpoint does, which is not in memory now. */
static struct kymo_flags_step flags_at(const struct hub_break *b)
{
	uint8_t bytes[1 + HUB_BREAK_NEXT] = { b->original };

	memcpy(bytes + 1, b->next, b->n_next);
	return kymo_flags_step_of(bytes, 1u + b->n_next);
}

/* A step over `popf` never ends: the kernel takes the trap flag for the program's own from then on. */
static bool pop_flags(struct task *task, const struct kymo_flags_step *step)
{
	struct user_regs_struct registers;
	uint64_t value = 0;

	return step->popped && !kymo_get_registers(task->tid, &registers) &&
	       !kymo_memory_read(&task->process->space->memory->opened, registers.rsp, &value, step->popped) &&
	       kymo_flags_pop(step, value, &registers) && !kymo_set_registers(task->tid, &registers);
}

/* A step over `popf` that has not come about leaves the trap flag, which the kernel takes for the program's own. */
static void take_flag_back(const struct task *task, const struct kymo_flags_step *step)
{
	struct user_regs_struct registers;

	if (!step->popped || kymo_flags_are_own(&task->traps.told) || kymo_get_registers(task->tid, &registers) ||
	    registers.rip != task->traps.told.rip || !kymo_flags_are_own(&registers))
		return;
	registers.eflags = task->traps.told.eflags;
	kymo_set_registers(task->tid, &registers);
}

/* What a step over `pushf` has pushed has the kernel's trap flag, of which the program would die when it pops it. */
static void clean_flags(struct task *task)
{
	const struct kymo_flags_step *step = &task->traps.pushes;
	const struct hub_memory *memory = step->pushed ? hub_memory_of(task->process) : NULL;
	const struct user_regs_struct *told = &task->traps.told;
	struct user_regs_struct registers;
	uint16_t flags;

	if (memory && !kymo_get_registers(task->tid, &registers) && registers.rip == told->rip + step->length &&
	    registers.rsp == task->traps.pushes_from - step->pushed &&
	    !kymo_memory_read(&memory->opened, registers.rsp, &flags, sizeof(flags)) && kymo_flags_clean(&flags))
		kymo_memory_write(&memory->opened, registers.rsp, &flags, sizeof(flags));
}

void hub_breakpoint_stepped(struct task *task)
{
	clean_flags(task);
	hub_breakpoint_passed(task);
}

/* The program's byte is in memory, and no other thread runs. */
static bool make_step(struct kymo_hub *hub, struct task *task, const struct hub_break *b, bool wants_step)
{
	bool makes_call = is_call(task->process->space, b), is_own_trap = b->original == KYMO_TRAP_BYTE;
	const struct kymo_flags_step step = flags_at(b);
	struct user_regs_struct registers;
	int status;

	if (!wants_step && !task->traps.had_watches && pop_flags(task, &step)) {
		hub_breakpoint_passed(task);
		return true;
	}
	task->resumed.steps = true; /* its SIGTRAP is the hub's, whenever it comes */
	if (step.pushed && !kymo_get_registers(task->tid, &registers) && !kymo_flags_are_own(&registers)) {
		task->traps.pushes = step;
		task->traps.pushes_from = registers.rsp;
	}
	if (ptrace(makes_call ? PTRACE_SYSCALL : PTRACE_SINGLESTEP, task->tid, 0, 0) ||
	    !hub_fetch(hub, task, STEP_NS, &status))
		return false;
	if (makes_call && WIFSTOPPED(status) && status >> 8 == (SIGTRAP | 0x80)) {
		hub_breakpoint_passed(task);
		task->resumed.steps = task->resumed.steps_call = wants_step;
		return false;
	}
	if (is_own_trap && WIFSTOPPED(status) && status >> 8 == SIGTRAP) {
		hub_breakpoint_passed(task);
		task->traps.passes_own = true;
		task->resumed.steps = false;
		return false;
	}
	if (!is_step(task->tid, status)) {
		take_flag_back(task, &step);
		return false;
	}
	hub_breakpoint_stepped(task);
	return !wants_step && !task->traps.had_watches;
}

/* ---- going on from the site of a pad --------------------------------------------------------- */

/* A thread stands at the site of a pad, and in no system call: one that is made again goes back from here. */
static const struct hub_pad *find_pad(const struct task *task, struct user_regs_struct *registers)
{
	const struct hub_space *space = task->process->space;
	const struct hub_pad *pad;

	if (!space || !space->pads.n || kymo_get_registers(task->tid, registers) || (int64_t)registers->orig_rax >= 0)
		return NULL;
	pad = hub_pad_at(space, registers->rip);
	return pad && hub_pad_is_written(space, pad) ? pad : NULL;
}

/* Whether the thread has yet to execute the displaced instruction, or more of one that was taken apart. */
static bool is_before(const struct task *task, const struct hub_pad *pad)
{
	struct user_regs_struct registers, out;

	if (kymo_get_registers(task->tid, &registers))
		return false;
	out = registers;
	return kymo_pad_leave(&pad->plan, &pad->layout, pad->site, pad->at, NULL, NULL, &out) == KYMO_PAD_LEFT &&
	       out.rip == pad->site && registers.rip != pad->at + pad->layout.insn_at[0];
}

/* What has stopped it last is to be told, also where that is no step. */
static void step_in_pad(struct kymo_hub *hub, struct task *task, const struct hub_pad *pad)
{
	int status;

	for (unsigned int i = 0; i < PIECES_MAX; i++) {
		task->resumed.steps = true;
		if (ptrace(PTRACE_SINGLESTEP, task->tid, 0, 0) || !hub_fetch(hub, task, STEP_NS, &status) ||
		    !is_step(task->tid, status) || !is_before(task, pad))
			return;
		hub_forget_status(hub, task);
	}
}

static void note_pass(struct task *task, const struct hub_pad *pad, const struct user_regs_struct *registers)
{
	task->traps.told = *registers;
	task->traps.told.rip = pad->site;
	task->traps.is_passing = true;
}

/* The pad at whose site it has been told of a hit last, or NULL. */
static const struct hub_pad *told_pad(const struct task *task)
{
	return hub_may_be_in_pad(task) ? hub_pad_at(task->process->space, task->traps.told.rip) : NULL;
}

void hub_breakpoint_look(struct task *task)
{
	const struct hub_pad *pad = told_pad(task);
	struct user_regs_struct registers;

	if (!task->traps.is_passing)
		return;
	task->traps.is_passing = false;
	/* Before a signal, or it was interrupted. A call that was taken apart may have pushed its return address. */
	if (!pad || kymo_get_registers(task->tid, &registers) || registers.rip < pad->at + pad->layout.insn_at[0] ||
	    registers.rip >= pad->at + pad->layout.insn_at[1] ||
	    kymo_pad_leave(&pad->plan, &pad->layout, pad->site, pad->at, NULL, NULL, &registers) != KYMO_PAD_LEFT ||
	    !kymo_trap_is_same(&task->traps.told, &registers))
		hub_breakpoint_passed(task);
}

void hub_breakpoint_look_again(struct task *task)
{
	struct user_regs_struct registers;

	if (task->traps.is_at_breakpoint && told_pad(task) &&
	    (kymo_get_registers(task->tid, &registers) || !kymo_trap_is_same(&task->traps.told, &registers)))
		task->traps.is_at_breakpoint = false; /* a handler may return there: it has been told */
}

enum pad_way {
	PAD_IS_NONE,    /* the thread goes on as it stands: it stands at no pad, or enters one by the jump */
	PAD_IS_ENTERED, /* it stands elsewhere now, and goes on from there */
	PAD_IS_STEPPED, /* it has made a step, which is told */
};

/* A thread that has been told goes on at the displaced instruction, and so does each one where no breakpoint is in: it
 * may stand here as the pad's stores do not fit on its stack. One that steps onto a breakpoint comes to it at
 * once: a step into the jump would lead back here. */
static enum pad_way pass_pad(struct kymo_hub *hub, struct task *task, bool wants_step)
{
	struct user_regs_struct registers;
	const struct hub_pad *pad = find_pad(task, &registers);
	const struct hub_break *b = pad ? hub_space_find(task->process->space, pad->site) : NULL;
	const bool is_in = b && b->owners && !b->is_void,
		   was_told = task->traps.is_at_breakpoint && task->traps.told.rip == registers.rip;
	bool is_at_trap;

	if (!pad || (!was_told && is_in && (!wants_step || !b->by_pad)))
		return PAD_IS_NONE;
	is_at_trap = !was_told && is_in;
	registers.rip = pad->at + (is_at_trap ? pad->layout.trap : pad->layout.insn_at[0]);
	if (kymo_set_registers(task->tid, &registers))
		return PAD_IS_NONE;
	if (is_at_trap)
		return PAD_IS_ENTERED;
	if (was_told)
		note_pass(task, pad, &registers);
	else
		hub_breakpoint_passed(task);
	if (!wants_step)
		return PAD_IS_ENTERED;
	step_in_pad(hub, task, pad);
	return PAD_IS_STEPPED;
}

/* ---- stepping over a byte -------------------------------------------------------------------- */

bool hub_step_over(struct kymo_hub *hub, struct task *task, bool wants_step)
{
	struct hub_space *space = task->process->space;
	const enum pad_way way = pass_pad(hub, task, wants_step);
	struct hub_break *b = way == PAD_IS_NONE ? find_own(task) : NULL;
	bool is_done, was_in;

	if (way == PAD_IS_STEPPED)
		return true;
	if (!b)
		return false;
	hub_space_hold(hub, task->process, task);
	was_in = hub_space_lift(space, b, NULL);
	is_done = make_step(hub, task, b, wants_step);
	if (was_in)
		hub_space_lower(space, b);
	if (!is_done)
		return true;
	hub_forget_status(hub, task); /* of a step that is not reported */
	task->resumed.steps = false;
	return false;
}
