/* Pads: their words, their jumps, and threads in them. */
#include "hub/trap/pad.h"

#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>

#include "arch/leave_pad.h"
#include "arch/trap.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "hub/trap/break.h"
#include "procfs/memory.h"
#include "wire/prints.h"

struct hub_pad *hub_pad_at(const struct hub_space *space, uint64_t site)
{
	for (size_t i = 0; i < space->pads.n; i++)
		if (space->pads.items[i].site == site)
			return &space->pads.items[i];
	return NULL;
}

const struct hub_pad *hub_pad_with_trap(const struct hub_space *space, uint64_t pc)
{
	for (size_t i = 0; i < space->pads.n; i++)
		if (space->pads.items[i].at + space->pads.items[i].layout.trap + 1 == pc)
			return &space->pads.items[i];
	return NULL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Where its jump is direct, the rest of it may be another's: of a recording that has joined. */
static bool has_patch(const struct hub_space *space, const struct hub_pad *pad, bool may_be_joined)
{
	uint8_t now[KYMO_PATCH_MAX];

	return !kymo_memory_read(&space->memory->opened, pad->site, now, pad->plan.patch_size) &&
	       (now[0] == pad->patch[0] || now[0] == KYMO_TRAP_BYTE) &&
	       ((may_be_joined && pad->link == pad->site) ||
		!memcmp(now + 1, pad->patch + 1, pad->plan.patch_size - 1u));
}

bool hub_pad_is_written(const struct hub_space *space, const struct hub_pad *pad)
{
	uint8_t jump[KYMO_JUMP_SIZE];

	return !pad->is_leaving && has_patch(space, pad, false) &&
	       (pad->link == pad->site || (!kymo_memory_read(&space->memory->opened, pad->link, jump, sizeof(jump)) &&
					   kymo_jump_target(pad->link, jump) == pad->at + pad->layout.entry));
}

void hub_pad_arm(const struct hub_space *space, const struct hub_pad *pad, bool is_armed)
{
	const uint32_t value = is_armed;

	kymo_memory_write(&space->memory->opened, pad->word, &value, sizeof(value));
}

static bool overlaps(uint64_t a, size_t n, uint64_t b, size_t m)
{
	return a < b + m && b < a + n;
}

bool hub_pads_cover(const struct hub_space *space, uint64_t address, size_t size)
{
	for (size_t i = 0; i < space->pads.n; i++) {
		const struct hub_pad *pad = &space->pads.items[i];

		if (!pad->is_leaving && pad->plan.lock_size > 1 &&
		    overlaps(address, size, pad->site + 1, pad->plan.lock_size - 1u) && has_patch(space, pad, true))
			return true;
	}
	return false;
}

bool hub_pad_is_there(const struct hub_space *space, const struct hub_pad *pad)
{
	return has_patch(space, pad, true);
}

bool hub_pad_has(const struct hub_pad *pad, uint64_t address, size_t size)
{
	return overlaps(address, size, pad->site, pad->plan.patch_size) ||
	       overlaps(address, size, pad->link, KYMO_JUMP_SIZE);
}

void hub_pads_hide(const struct hub_space *space, uint64_t address, void *data, size_t size)
{
	for (size_t i = 0; i < space->pads.n; i++) {
		const struct hub_pad *pad = &space->pads.items[i];

		if (pad->is_leaving || !overlaps(address, size, pad->site, pad->plan.patch_size) ||
		    !has_patch(space, pad, true))
			continue;
		for (unsigned int k = 0; k < pad->plan.patch_size; k++)
			if (pad->site + k - address < size)
				((uint8_t *)data)[pad->site + k - address] = pad->plan.original[k];
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool is_within(const struct hub_pad *pad, uint64_t pc)
{
	return pc - pad->at < pad->layout.size;
}

/* Sent by no program, and of what the thread has done. */
static bool is_fault(const siginfo_t *info)
{
	return info->si_code > 0 &&
	       (info->si_signo == SIGSEGV || (info->si_signo == SIGBUS && info->si_code != BUS_MCEERR_AO));
}

/* The pad whose own code is there, not an instruction of the program's: its condition may fault, and its stores to a
 * stack that has no room for them. */
static const struct hub_pad *with_own_code(const struct hub_space *space, uint64_t pc)
{
	for (size_t i = 0; i < space->pads.n; i++) {
		const struct hub_pad *pad = &space->pads.items[i];

		if (is_within(pad, pc) && (pc - pad->at < pad->layout.insn_at[0] || pc - pad->at >= pad->layout.fault))
			return pad;
	}
	return NULL;
}

const struct hub_pad *hub_pad_of_fault(const struct task *task, const siginfo_t *info)
{
	const struct hub_space *space = task->process->space;
	struct user_regs_struct registers;

	return space && space->pads.n && is_fault(info) && !kymo_get_registers(task->tid, &registers)
		       ? with_own_code(space, registers.rip)
		       : NULL;
}

/* The signal of a fault is what it has stopped for, or it waits. */
static bool is_faulting(const struct task *task)
{
	struct __ptrace_peeksiginfo_args args = { .nr = 1 };
	siginfo_t info;

	if (task->stop == STOP_SIGNAL && !ptrace(PTRACE_GETSIGINFO, task->tid, 0, &info) && is_fault(&info))
		return true;
	while (ptrace(PTRACE_PEEKSIGINFO, task->tid, &args, &info) == 1) {
		if (is_fault(&info))
			return true;
		args.off++;
	}
	return false;
}

static bool read_stack(void *data, uint64_t address, uint64_t *ret)
{
	const struct hub_space *space = data;

	return !kymo_memory_read(&space->memory->opened, address, ret, sizeof(*ret));
}

/* The thread stands, and no other thread changes its slot. A program that lies about that harms itself. */
static void make_void(const struct hub_space *space, const struct hub_pad *pad, uint64_t slot)
{
	const uint32_t nothing = KYMO_WIRE_PRINT_VOID;
	uint64_t state;

	if (slot - pad->prints - KYMO_WIRE_PRINTS_SLOTS >= (uint64_t)pad->n_slots * pad->slot_size ||
	    kymo_memory_read(&space->memory->opened, slot, &state, sizeof(state)))
		return;
	state++;
	kymo_memory_write(&space->memory->opened, slot + offsetof(struct kymo_wire_print, number), &nothing,
			  sizeof(nothing));
	kymo_memory_write(&space->memory->opened, slot, &state, sizeof(state));
}

bool hub_pad_give_back(const struct hub_space *space, const struct hub_pad *pad,
		       const struct user_regs_struct *registers)
{
	uint64_t slot = 0;
	const enum kymo_pad_stage stage = kymo_pad_stage(&pad->layout, pad->at, pad->slot_size, registers, &slot);

	if (stage == KYMO_PAD_OWNS)
		make_void(space, pad, slot);
	return stage == KYMO_PAD_DONE;
}

static bool find_way_out(const struct task *task, struct hub_space *space, struct user_regs_struct *registers,
			 bool *is_done_ret)
{
	struct user_regs_struct out;

	for (size_t i = 0; i < space->pads.n; i++) {
		const struct hub_pad *pad = &space->pads.items[i];

		if (pad->link != pad->site && registers->rip == pad->link) {
			registers->rip = pad->site;
			return true;
		}
		if (!is_within(pad, registers->rip))
			continue;
		if (with_own_code(space, registers->rip) && is_faulting(task))
			return false;
		out = *registers;
		if (kymo_pad_leave(&pad->plan, &pad->layout, pad->site, pad->at, read_stack, space, &out) !=
		    KYMO_PAD_LEFT)
			return false;
		*is_done_ret = hub_pad_give_back(space, pad, registers);
		*registers = out;
		return true;
	}
	return false;
}

bool hub_may_be_in_pad(const struct task *task)
{
	return task->process->space && task->process->space->pads.n;
}

void hub_pad_bring_out(struct task *task)
{
	struct hub_space *space = task->process->space;
	struct user_regs_struct registers;
	bool is_done = false;

	if (!hub_may_be_in_pad(task) || kymo_get_registers(task->tid, &registers) ||
	    !find_way_out(task, space, &registers, &is_done) || kymo_set_registers(task->tid, &registers) || !is_done)
		return;
	task->traps.told = registers;
	task->traps.pushes = (struct kymo_flags_step){ .pushed = 0 };
	task->traps.has_told = task->traps.is_at_breakpoint = true;
}
