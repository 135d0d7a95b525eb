#include "proc/stub_exit.h"

#include <string.h>

#include "arch/start_stub.h"
#include "arch/trap.h"
#include "proc/memory.h"
#include "proc/request.h"
#include "proc/state.h"
#include "proc/stub_site.h"
#include "proc/thread.h"

/* False: it is in the stub still. */
static bool lead_out(struct kymo_process *process, struct kymo_thread *thread, uint64_t at, uint64_t site,
		     bool *has_called_ret)
{
	struct user_regs_struct registers = thread->registers;
	uint64_t stack[KYMO_START_WORDS];

	if (registers.rip - at >= KYMO_START_STUB)
		return true;
	if (kymo_process_read(process, registers.rsp, stack, sizeof(stack)) ||
	    kymo_start_leave_stub(at, site, stack, &registers, has_called_ret) ||
	    kymo_joined_set_registers(process->joined, thread->tid, &registers))
		return false;
	thread->registers = registers;
	return true;
}

/* The call's own bytes in place of the jump. A breakpoint of the kernel's may have come on top of the jump: its end
 * brings back the first byte, which may be the file's. */
static bool take_jump_out(struct kymo_process *process, uint64_t site, const uint8_t *jump, const uint8_t *call)
{
	uint8_t now[KYMO_START_JUMP];
	size_t first;
	bool is_known;

	if (kymo_process_read(process, site, now, sizeof(now)))
		return false;
	first = now[0] == KYMO_TRAP_BYTE;
	is_known = first || now[0] == jump[0] || now[0] == call[0];
	if (!is_known || memcmp(now + 1, jump + 1, sizeof(now) - 1) != 0)
		return !memcmp(now + first, call + first, sizeof(now) - first);
	return !kymo_process_write(process, site + first, call + first, sizeof(now) - first);
}

/* The jump first: until its zeros are back, the stub leads out by itself. */
bool kymo_start_take_out(struct kymo_process *process, uint64_t at, uint64_t site, bool *has_called_ret)
{
	uint8_t stub[KYMO_START_STUB], jump[KYMO_START_JUMP];
	bool is_out = true;

	if (kymo_start_make_stub(at, site, 0, stub, jump) || !take_jump_out(process, site, jump, stub))
		return false;
	for (size_t i = 0; i < process->threads.n; i++)
		is_out &= lead_out(process, &process->threads.items[i], at, site, has_called_ret);
	return is_out && !kymo_process_write(process, at, kymo_start_zeros, sizeof(kymo_start_zeros));
}
