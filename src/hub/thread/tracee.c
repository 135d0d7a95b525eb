#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "hub/thread/tracee.h"

#define GET_DISPATCH 0x4211 /* PTRACE_GET_SYSCALL_USER_DISPATCH_CONFIG, of <linux/ptrace.h> from 6.4 on */
#define DISPATCH_OFF 0

int kymo_get_registers(pid_t tid, struct user_regs_struct *ret)
{
	struct iovec part = { ret, sizeof(*ret) };

	if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &part))
		return -errno;
	return part.iov_len == sizeof(*ret) ? 0 : -ENOTSUP; /* shorter in 32-bit mode */
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

	return !ptrace((enum __ptrace_request)GET_DISPATCH, tid, (void *)sizeof(dispatch), &dispatch) &&
	       dispatch.mode != DISPATCH_OFF;
}

int kymo_get_facts(pid_t tid, unsigned int which, struct kymo_tracee_facts *ret)
{
	struct __ptrace_rseq_configuration configuration = { 0 };

	memset(ret, 0, sizeof(*ret));
	if (which & KYMO_FACT_MASK && ptrace(PTRACE_GETSIGMASK, tid, (void *)sizeof(ret->mask), &ret->mask))
		return -errno;
	if (which & KYMO_FACT_RSEQ &&
	    ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, (void *)sizeof(configuration), &configuration) < 0)
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

int kymo_set_xstate(pid_t tid, const void *image, size_t size)
{
	struct iovec part = { (void *)(uintptr_t)image, size };

	return ptrace(PTRACE_SETREGSET, tid, (void *)NT_X86_XSTATE, &part) ? -errno : 0;
}

int kymo_set_mask(pid_t tid, uint64_t mask)
{
	return ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(mask), &mask) ? -errno : 0;
}
