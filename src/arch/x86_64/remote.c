#include "arch/remote.h"

#include <asm/sigcontext.h>
#include <cpuid.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "arch/batch.h"

#define REX 0x40
#define ERESTARTSYS 512
#define ERESTARTNOINTR 513
#define ERESTARTNOHAND 514
#define ERESTART_RESTARTBLOCK 516

/* struct rt_sigframe as rt_sigreturn reads it; libc's ucontext_t has a larger mask and is not the kernel's. */
struct frame {
	uint64_t restorer; /* where pretcode lies; rt_sigreturn does not read it */
	uint64_t flags;
	uint64_t link;
	uint64_t stack_sp;
	uint32_t stack_flags, stack_pad;
	uint64_t stack_size;
	struct sigcontext context;
	uint64_t mask;
};

#define UC_FP_XSTATE 1
#define UC_SIGCONTEXT_SS 2
#define UC_STRICT_RESTORE_SS 4
#define INVALID_STACK_FLAGS \
	0xff /* rt_sigreturn ignores an alternate stack that sigaltstack would refuse: keeps the thread's */

void kymo_gadgets_scan(const uint8_t *bytes, size_t size, uint64_t address, struct kymo_gadgets *gadgets)
{
	static const uint8_t eax[] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t rax[] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 };

	for (size_t i = 0; i + 2 <= size; i++) {
		const uint8_t *at = bytes + i;
		size_t left = size - i;

		if (*at != 0x0f && *at != 0x58 && *at != eax[0] && *at != rax[0])
			continue;
		if (!gadgets->syscall && left >= 3 && at[0] == 0x0f && at[1] == 0x05 && at[2] == 0xc3)
			gadgets->syscall = address + i;
		if (!gadgets->pop_rax && at[0] == 0x58 && at[1] == 0xc3)
			gadgets->pop_rax = address + i;
		if (!gadgets->sigreturn && ((left >= sizeof(eax) && !memcmp(at, eax, sizeof(eax))) ||
					    (left >= sizeof(rax) && !memcmp(at, rax, sizeof(rax)))))
			gadgets->sigreturn = address + i;
	}
}

int kymo_gadgets_complete(const struct kymo_gadgets *gadgets)
{
	return gadgets->syscall && (gadgets->sigreturn || gadgets->pop_rax);
}

bool kymo_remote_restarts(const struct user_regs_struct *registers)
{
	int64_t error = -(int64_t)registers->rax;

	return (int64_t)registers->orig_rax >= 0 && (error == ERESTARTSYS || error == ERESTARTNOINTR ||
						     error == ERESTARTNOHAND || error == ERESTART_RESTARTBLOCK);
}

bool kymo_remote_is_syscall(const uint8_t code[KYMO_REMOTE_CALL])
{
	return code[0] == 0x0f && code[1] == 0x05;
}

bool kymo_remote_is_call(const uint8_t code[KYMO_REMOTE_CALL])
{
	/* or sysenter, int $0x80 */
	return kymo_remote_is_syscall(code) || (code[0] == 0x0f && code[1] == 0x34) ||
	       (code[0] == 0xcd && code[1] == 0x80);
}

static void set_args(struct user_regs_struct *registers, const uint64_t args[6])
{
	registers->rdi = args[0];
	registers->rsi = args[1];
	registers->rdx = args[2];
	registers->r10 = args[3];
	registers->r8 = args[4];
	registers->r9 = args[5];
}

void kymo_remote_set_call(struct user_regs_struct *registers, uint64_t number, const uint64_t args[6])
{
	registers->orig_rax = number;
	set_args(registers, args);
}

void kymo_remote_set_result(struct user_regs_struct *registers, int64_t result)
{
	registers->rax = (uint64_t)result;
}

/*
 * arch_do_signal_or_restart() without a signal to deliver. A call that sleeps with a restart block (nanosleep, poll,
 * futex with a timeout) is restarted by restart_syscall while the block lives; rt_sigreturn clears it, so on the way
 * home it starts anew.
 */
static void wind_back(struct user_regs_struct *registers)
{
	if (!kymo_remote_restarts(registers))
		return;
	registers->rax = registers->orig_rax;
	registers->rip -= 2;
	registers->orig_rax = (uint64_t)-1;
}

static void fill_context(const struct user_regs_struct *r, uint64_t fpstate, struct sigcontext *ret)
{
	ret->r8 = r->r8;
	ret->r9 = r->r9;
	ret->r10 = r->r10;
	ret->r11 = r->r11;
	ret->r12 = r->r12;
	ret->r13 = r->r13;
	ret->r14 = r->r14;
	ret->r15 = r->r15;
	ret->rdi = r->rdi;
	ret->rsi = r->rsi;
	ret->rbp = r->rbp;
	ret->rbx = r->rbx;
	ret->rdx = r->rdx;
	ret->rax = r->rax;
	ret->rcx = r->rcx;
	ret->rsp = r->rsp;
	ret->rip = r->rip;
	ret->eflags = r->eflags;
	ret->cs = (uint16_t)r->cs;
	ret->ss = (uint16_t)r->ss;
	ret->fpstate = (void *)fpstate;
}

/* The reserved words that tell rt_sigreturn that more than the legacy 512 bytes follow. */
static void mark_xstate(uint8_t *xstate, size_t size)
{
	struct _fpx_sw_bytes mark = {
		.magic1 = FP_XSTATE_MAGIC1,
		.extended_size = (uint32_t)size + FP_XSTATE_MAGIC2_SIZE,
		.xstate_size = (uint32_t)size,
	};
	uint32_t magic2 = FP_XSTATE_MAGIC2;

	memcpy(&mark.xfeatures, xstate + 464, sizeof(mark.xfeatures)); /* XCR0, as the kernel hands it out */
	memcpy(xstate + 464, &mark, sizeof(mark));
	memcpy(xstate + size, &magic2, sizeof(magic2));
}

#define XSTATE_HEADER 512 /* XSTATE_BV: which components are not in their initial state */
#define XTILEDATA 18

/*
 * ptrace hands out room for AMX tiles on every machine that has them; rt_sigreturn takes an image with them only from a
 * thread that asked for the permission, and would else restore no more than SSE. Without tile data the image ends where
 * they begin.
 */
static unsigned int tiles_offset(void)
{
	static unsigned int known =
		UINT_MAX; /* asked once: in a virtual machine each cpuid is tens of microseconds in the hypervisor */
	unsigned int a, offset = __atomic_load_n(&known, __ATOMIC_RELAXED), c, d;

	if (offset != UINT_MAX)
		return offset;
	if (!__get_cpuid_count(0xd, XTILEDATA, &a, &offset, &c, &d) || !a)
		offset = 0;
	__atomic_store_n(&known, offset, __ATOMIC_RELAXED);
	return offset;
}

static size_t used_xstate(const uint8_t *xstate, size_t size)
{
	const size_t offset = tiles_offset();
	uint64_t components;

	memcpy(&components, xstate + XSTATE_HEADER, sizeof(components));
	if (components & 1ull << XTILEDATA)
		return size;
	return offset < size && offset >= XSTATE_HEADER + 64 ? offset : size;
}

int kymo_remote_frame(const struct user_regs_struct *registers, uint64_t top, const uint8_t *xstate, size_t xstate_size,
		      uint64_t mask, const struct kymo_gadgets *gadgets, uint8_t *out, size_t size, uint64_t *sp_ret)
{
	uint64_t fpstate, frame_at, sp;
	struct user_regs_struct home = *registers;
	struct frame frame = {
		.flags = UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS,
		.stack_flags = INVALID_STACK_FLAGS,
		.mask = mask,
	};
	uint64_t chain[2];
	size_t total, n_chain;

	if (!kymo_gadgets_complete(gadgets) || xstate_size < 512 + 64)
		return -EINVAL;
	xstate_size = used_xstate(xstate, xstate_size);
	fpstate = (top - (xstate_size + FP_XSTATE_MAGIC2_SIZE)) & ~(uint64_t)63;
	frame_at = (fpstate - sizeof(struct frame)) & ~(uint64_t)15;
	/*
	 * `ret` of the syscall gadget pops the first word. With the sigreturn gadget that word lies where a handler's
	 * return address would, and the stack pointer is then right after it, as rt_sigreturn expects. With pop_rax
	 * two words come before: the gadget, 15; the third, at that place, is the address of `syscall`.
	 */
	if (gadgets->sigreturn) {
		frame.restorer = gadgets->sigreturn;
		n_chain = 0;
	} else {
		chain[0] = gadgets->pop_rax;
		chain[1] = SYS_rt_sigreturn;
		frame.restorer = gadgets->syscall;
		n_chain = 2;
	}
	sp = frame_at - 8 * n_chain;
	total = fpstate + xstate_size + FP_XSTATE_MAGIC2_SIZE - sp;
	if (total > size)
		return -ENOSPC;
	wind_back(&home);
	fill_context(&home, fpstate, &frame.context);
	memset(out, 0, total);
	memcpy(out, chain, 8 * n_chain);
	memcpy(out + (frame_at - sp), &frame, sizeof(frame));
	memcpy(out + (fpstate - sp), xstate, xstate_size);
	mark_xstate(out + (fpstate - sp), xstate_size);
	*sp_ret = sp;
	return (int)total;
}

void kymo_remote_call(const struct user_regs_struct *registers, const struct kymo_gadgets *gadgets, uint64_t sp,
		      long number, const uint64_t args[6], struct user_regs_struct *ret)
{
	*ret = *registers;
	ret->orig_rax = (uint64_t)-1;
	ret->rax = (uint64_t)number;
	set_args(ret, args);
	ret->rsp = sp;
	ret->rip = gadgets->syscall;
	ret->eflags &= ~(unsigned long long)(1 << 8 | 1 << 10); /* no single step, no direction */
}

/* ---- on the way ------------------------------------------------------------------------------ */

/* Calls are short: a thread inside of one that waits is at home. */
bool kymo_remote_may_be_away(const struct user_regs_struct *registers)
{
	return (int64_t)registers->orig_rax < 0 || !kymo_remote_restarts(registers);
}

/* The words that programs' own frames have otherwise: an alternate stack that can't be, and the state of vectors right
 * behind. */
static bool is_frame(const uint8_t *bytes)
{
	struct frame frame;

	memcpy(&frame, bytes, sizeof(frame));
	return frame.restorer && frame.flags == (UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS) &&
	       !frame.link && !frame.stack_sp && frame.stack_flags == INVALID_STACK_FLAGS && !frame.stack_pad &&
	       !frame.stack_size && frame.context.fpstate && !((uintptr_t)frame.context.fpstate & 63);
}

bool kymo_remote_has_frame(const uint8_t *bytes, size_t size)
{
	for (size_t at = 0; at + sizeof(struct frame) <= size; at += 8)
		if (is_frame(bytes + at))
			return true;
	return false;
}

/* Whether it is an instruction that leads home, the `syscall` that the call is made with, or one of a batch. */
static bool is_gadget(const uint8_t *code)
{
	static const uint8_t pop[] = { 0x58, 0xc3 }, call[] = { 0x0f, 0x05 };
	struct kymo_gadgets found = { 0 };

	kymo_gadgets_scan(code, KYMO_REMOTE_CODE, 1, &found);
	return found.sigreturn == 1 || code[0] == 0xc3 || !memcmp(code, pop, sizeof(pop)) ||
	       !memcmp(code, call, sizeof(call)) || kymo_batch_is_code(code);
}

/*
 * Where the frame is, from the stack pointer: there, before the gadget's `ret`; 8 below, after it; with pop_rax 16 and
 * 8 above, before and behind that `ret`.
 */
bool kymo_remote_is_away(const uint8_t stack[KYMO_REMOTE_STACK], const uint8_t code[KYMO_REMOTE_CODE])
{
	_Static_assert(KYMO_REMOTE_STACK >= KYMO_REMOTE_BELOW + 16 + sizeof(struct frame),
		       "the farthest frame is in `stack`");

	return is_gadget(code) && kymo_remote_has_frame(stack, KYMO_REMOTE_BELOW + 16 + sizeof(struct frame));
}

/* ---- calls that are continued ---------------------------------------------------------------- */

enum kymo_remote_sleep kymo_remote_sleep_in(int64_t number, const uint64_t args[6])
{
	switch (number) {
	case -1:
		return KYMO_REMOTE_AWAKE;
	case SYS_nanosleep:
		return KYMO_REMOTE_SLEEPS_ANEW;
	case SYS_clock_nanosleep:
		return args[1] & TIMER_ABSTIME ? KYMO_REMOTE_SLEEPS : KYMO_REMOTE_SLEEPS_ANEW;
	case SYS_poll:
		return (int32_t)args[2] < 0 ? KYMO_REMOTE_SLEEPS : KYMO_REMOTE_SLEEPS_ANEW;
	case SYS_futex: /* the limits of other operations are points in time */
		return (args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && args[3] ? KYMO_REMOTE_SLEEPS_ANEW
									   : KYMO_REMOTE_SLEEPS;
	case SYS_restart_syscall:
		return KYMO_REMOTE_SLEEPS_ONCE;
	default:
		return KYMO_REMOTE_SLEEPS;
	}
}

enum kymo_remote_sleep kymo_remote_sleep(const struct user_regs_struct *registers)
{
	const uint64_t args[6] = { registers->rdi, registers->rsi, registers->rdx,
				   registers->r10, registers->r8,  registers->r9 };

	if (!kymo_remote_restarts(registers))
		return KYMO_REMOTE_AWAKE;
	if ((int64_t)registers->rax != -ERESTART_RESTARTBLOCK)
		return KYMO_REMOTE_SLEEPS;
	return kymo_remote_sleep_in((int64_t)registers->orig_rax, args);
}

bool kymo_remote_has_restart_block(uint64_t number)
{
	return number == SYS_nanosleep || number == SYS_clock_nanosleep || number == SYS_poll || number == SYS_futex;
}

/* mov $number,%eax (or %rax); syscall. The kernel changes no argument register of a call. */
bool kymo_remote_name_call(struct user_regs_struct *registers, const uint8_t code[KYMO_REMOTE_NAME])
{
	static const uint8_t rax[] = { 0x48, 0xc7, 0xc0 }, call[] = { 0x0f, 0x05 };
	uint32_t number;

	if (kymo_remote_sleep(registers) != KYMO_REMOTE_SLEEPS_ONCE ||
	    memcmp(code + KYMO_REMOTE_NAME - sizeof(call), call, sizeof(call)) ||
	    ((code[2] != 0xb8 || (code[1] & 0xf0) == REX) && memcmp(code, rax, sizeof(rax))))
		return false;
	memcpy(&number, code + 3, sizeof(number));
	if (!kymo_remote_has_restart_block(number))
		return false;
	registers->orig_rax = number;
	return true;
}

/* ---- calls that a stop ends ------------------------------------------------------------------ */

/* Calls that fail with EINTR when no data has moved, and that do the same when they are made again. */
static bool ends_by_stop(uint64_t number)
{
	switch (number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case SYS_io_pgetevents:
	case SYS_io_uring_enter:
	/* of sockets with SO_RCVTIMEO or SO_SNDTIMEO */
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_accept:
	case SYS_accept4:
	case SYS_connect:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
		return true;
	default:
		return false;
	}
}

bool kymo_remote_uninterrupt(const struct user_regs_struct *registers, struct user_regs_struct *ret,
			     int64_t *limit_ms_ret, uint64_t *limit_at_ret)
{
	uint64_t number = registers->orig_rax;

	if ((int64_t)registers->rax != -EINTR || (int64_t)number < 0 || !ends_by_stop(number))
		return false;
	*limit_ms_ret = number == SYS_epoll_wait || number == SYS_epoll_pwait ? (int32_t)registers->r10 : -1;
	*limit_at_ret = number == SYS_semtimedop || number == SYS_epoll_pwait2      ? registers->r10
			: number == SYS_rt_sigtimedwait                             ? registers->rdx
			: number == SYS_io_getevents || number == SYS_io_pgetevents ? registers->r8
										    : 0;
	*ret = *registers;
	ret->rax = (uint64_t)-ERESTARTNOHAND; /* EINTR after a handler, as it would have been */
	return true;
}
