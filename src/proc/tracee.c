#include "proc/tracee.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "proc/joined.h"
#include "proc/process.h"

#define GET_DISPATCH 0x4211	/* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, of <linux/ptrace.h> from 6.4 on */
#define DISPATCH_OFF 0

int kymo_get_registers(pid_t tid, struct user_regs_struct *ret)
{
	struct iovec part = { ret, sizeof(*ret) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &part))
		return -errno;
	return part.iov_len == sizeof(*ret) ? 0 : -ENOTSUP;	/* shorter in 32-bit mode */
}

int kymo_set_registers(pid_t tid, const struct user_regs_struct *registers)
{
	struct iovec part = { (void *)(uintptr_t)registers, sizeof(*registers) };

	return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &part) ? -errno : 0;
}

static bool dispatches_calls(pid_t tid)
{
	struct {
		uint64_t mode, selector, offset, size;
	} dispatch = { .mode = DISPATCH_OFF };

	return !ptrace((enum __ptrace_request)GET_DISPATCH, tid, (void *)sizeof(dispatch), &dispatch) && dispatch.mode != DISPATCH_OFF;
}

int kymo_get_facts(pid_t tid, unsigned int which, struct kymo_tracee_facts *ret)
{
	struct __ptrace_rseq_configuration configuration = { 0 };

	memset(ret, 0, sizeof(*ret));
	if (which & KYMO_FACT_MASK && ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(ret->mask), &ret->mask))
		return -errno;
	if (which & KYMO_FACT_RSEQ && ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, (void *)sizeof(configuration), &configuration) < 0)
		ret->rseq_error = -errno;
	ret->rseq_pointer = configuration.rseq_abi_pointer;
	ret->rseq_signature = configuration.signature;
	ret->dispatches_calls = which & KYMO_FACT_DISPATCH && dispatches_calls(tid);
	return 0;
}

int kymo_get_xstate(pid_t tid, void *ret, size_t size, size_t *size_ret)
{
	struct iovec part = { ret, size };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_X86_XSTATE, &part))
		return -errno;
	*size_ret = part.iov_len;
	return 0;
}

int kymo_set_mask(pid_t tid, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(mask), &mask) ? -errno : 0;
}

/* ---- whoever is the tracer -------------------------------------------------------------------------------------------------- */

int kymo_tracee_set_registers(struct kymo_process *process, pid_t tid, const struct user_regs_struct *registers)
{
	return process->joined ? kymo_joined_set_registers(process->joined, tid, registers) : kymo_set_registers(tid, registers);
}

int kymo_tracee_facts(struct kymo_process *process, pid_t tid, unsigned int which, struct kymo_tracee_facts *ret)
{
	return process->joined ? kymo_joined_facts(process->joined, tid, which, ret) : kymo_get_facts(tid, which, ret);
}

int kymo_tracee_xstate(struct kymo_process *process, pid_t tid, void *ret, size_t size, size_t *size_ret)
{
	return process->joined ? kymo_joined_xstate(process->joined, tid, ret, size, size_ret) : kymo_get_xstate(tid, ret, size, size_ret);
}

int kymo_tracee_borrow(struct kymo_process *process, pid_t tid, const struct user_regs_struct *call, bool *is_away_ret)
{
	int err;

	if (process->joined) {
		err = kymo_joined_borrow(process->joined, tid, call);
		*is_away_ret = !err;
		return err;
	}
	err = kymo_set_registers(tid, call);
	*is_away_ret = !err;
	return err ? err : kymo_set_mask(tid, ~0ull);
}

int kymo_tracee_give_back(struct kymo_process *process, pid_t tid, const struct user_regs_struct *own, uint64_t mask)
{
	int err;

	if (process->joined)
		return kymo_joined_give_back(process->joined, tid);
	err = kymo_set_mask(tid, mask);
	return err ? err : kymo_set_registers(tid, own);
}

static struct kymo_error *gone(struct kymo_process *process, pid_t tid)
{
	return kymo_error_create(KYMO_ERROR_GONE, "thread %d of process %d ended meanwhile", tid, process->pid);
}

static struct kymo_error *call_through_hub(struct kymo_process *process, pid_t tid, const struct user_regs_struct *call, struct user_regs_struct *ret)
{
	int err = kymo_joined_call(process->joined, tid, call, ret);

	if (err == -ETIMEDOUT)
		return kymo_thread_does_not_return(process, tid);
	if (err == -EPIPE)
		return kymo_joined_lost(process);
	if (err == -EBUSY)
		return kymo_error_create(KYMO_ERROR_BUSY, "somebody has put a breakpoint on the instruction by which calls are made in process %d; try again later", process->pid);
	return err ? gone(process, tid) : NULL;
}

struct kymo_error *kymo_tracee_call(struct kymo_process *process, pid_t tid, const struct user_regs_struct *call, struct user_regs_struct *ret)
{
	struct kymo_error *error;

	if (process->joined)
		return call_through_hub(process, tid, call, ret);
	if (call && kymo_set_registers(tid, call))
		return gone(process, tid);
	error = kymo_run_to_syscall_stop(process, tid);
	if (!error)
		error = kymo_run_to_syscall_stop(process, tid);
	if (!error && kymo_get_registers(tid, ret))
		error = gone(process, tid);
	return error;
}
