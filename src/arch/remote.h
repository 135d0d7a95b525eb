/*
 * Make a stopped thread execute system calls so that it returns to its own code without help.
 *
 * If a tracer replaced a thread's registers and died, the thread would run wild. So before its registers are changed, a
 * complete signal frame with the thread's own state is written to unused memory. Before the frame lies a return address
 * that leads to rt_sigreturn; the program counter is then set to a `syscall; ret` in the target's existing code.
 * Whatever happens to the tracer, the thread executes the call, returns into rt_sigreturn and continues where it was.
 * (Frame layout: arch/x86/kernel/signal_64.c, arch/x86/include/uapi/asm/sigcontext.h.)
 *
 * Public header of the room, beside code.h. Pure.
 */
#ifndef KYMO_ARCH_REMOTE_H
#define KYMO_ARCH_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/* Addresses of useful bytes in executable memory of a target; 0: not found yet. */
struct kymo_gadgets {
	uint64_t syscall;   /* syscall; ret */
	uint64_t sigreturn; /* mov $15,%eax (or %rax); syscall */
	uint64_t pop_rax;   /* pop %rax; ret: leads to sigreturn if there is no better way */
};

/* Search the `size` bytes that are at `address` in the target; fills members that are still 0. */
void kymo_gadgets_scan(const uint8_t *bytes, size_t size, uint64_t address, struct kymo_gadgets *gadgets);

/* Whether a way home is known: syscall, and one of the other two. */
int kymo_gadgets_complete(const struct kymo_gadgets *gadgets);

/* Room for what kymo_remote_frame() writes, beside the xstate. */
#define KYMO_REMOTE_FRAME_MAX 1280

/*
 * Write to `out` what must lie at `sp_ret` in the target, below `top`, and return its size; -ENOSPC, -EINVAL.
 * `registers` are the thread's as PTRACE_GETREGSET gave them, `xstate` its NT_X86_XSTATE image, `mask` its blocked
 * signals. A thread that was stopped inside of a system call restarts it on its way home, as the kernel would have.
 */
int kymo_remote_frame(const struct user_regs_struct *registers, uint64_t top, const uint8_t *xstate, size_t xstate_size,
		      uint64_t mask, const struct kymo_gadgets *gadgets, uint8_t *out, size_t size, uint64_t *sp_ret);

/* The registers for system call `number` with up to 6 arguments, on the frame at `sp`. */
void kymo_remote_call(const struct user_regs_struct *registers, const struct kymo_gadgets *gadgets, uint64_t sp,
		      long number, const uint64_t args[6], struct user_regs_struct *ret);

/*
 * Whether a stopped thread makes a call for a dead recorder, or returns from such a call: it is on a frame of
 * kymo_remote_frame(). `stack` is from KYMO_REMOTE_BELOW under its stack pointer on, `code` at its program counter. The
 * registers alone say which threads cannot.
 */
#define KYMO_REMOTE_BELOW 8
#define KYMO_REMOTE_STACK 344
#define KYMO_REMOTE_CODE 9
bool kymo_remote_has_frame(const uint8_t *bytes, size_t size); /* a frame begins in these bytes, at a multiple of 8 */
bool kymo_remote_may_be_away(const struct user_regs_struct *registers);
bool kymo_remote_is_away(const uint8_t stack[KYMO_REMOTE_STACK], const uint8_t code[KYMO_REMOTE_CODE]);

/* Whether a stopped thread makes its system call again when it goes on: it continues before the instruction that
 * precedes its program counter. */
bool kymo_remote_restarts(const struct user_regs_struct *registers);

/*
 * What happens to the system call of a thread that makes remote calls, if the recorder dies: rt_sigreturn ends the
 * restart block by which the kernel continues a call that has a limit. The lower, the better for remote calls.
 */
enum kymo_remote_sleep {
	KYMO_REMOTE_AWAKE,       /* it is in no call, or has the result already */
	KYMO_REMOTE_SLEEPS,      /* the call is made again, and the program does not notice */
	KYMO_REMOTE_SLEEPS_ANEW, /* the call is made again, and its time limit starts again */
	KYMO_REMOTE_SLEEPS_ONCE, /* it fails with EINTR: the kernel has restarted it by restart_syscall(2) already, and
				    does so once more or never */
};
enum kymo_remote_sleep kymo_remote_sleep(const struct user_regs_struct *registers); /* of a stopped one */
enum kymo_remote_sleep kymo_remote_sleep_in(int64_t number,
					    const uint64_t args[6]); /* of one that sleeps in a call; -1: in none */

/* Whether the kernel continues this call by restart_syscall(2) where a stop has interrupted it. */
bool kymo_remote_has_restart_block(uint64_t number);

/*
 * Name the call of a thread that is stopped in restart_syscall(2), by the instruction before it, which loads the
 * number: `code` is from KYMO_REMOTE_NAME below the program counter on. `registers` become those of the call itself.
 * False, and nothing is changed, if it is not such a stop or the number is not known.
 */
#define KYMO_REMOTE_NAME 9
bool kymo_remote_name_call(struct user_regs_struct *registers, const uint8_t code[KYMO_REMOTE_NAME]);

/* Whether the instruction that begins with `code` makes a system call. */
#define KYMO_REMOTE_CALL 2
bool kymo_remote_is_call(const uint8_t code[KYMO_REMOTE_CALL]);

/* Whether it is the one that 64-bit programs make system calls by. */
bool kymo_remote_is_syscall(const uint8_t code[KYMO_REMOTE_CALL]);

/* For a thread that is stopped at the entry of a system call: replace the call. */
void kymo_remote_set_call(struct user_regs_struct *registers, uint64_t number, const uint64_t args[6]);

/* For a thread that is stopped at the exit: replace the result. */
void kymo_remote_set_result(struct user_regs_struct *registers, int64_t result);

/*
 * The kernel continues most system calls that a stop interrupts, without a visible effect. A few fail with EINTR, as
 * for a signal (epoll_wait, semop, sigtimedwait, a recv with a time limit: signal(7)). True for a thread that was
 * stopped in one of them: `ret` are the registers with which it makes the call again, unless a signal handler runs
 * first. `limit_ms_ret` is the call's own time limit, which starts again then, or -1. If `limit_at_ret` is not 0 the
 * limit is the struct timespec at that address in the target.
 */
bool kymo_remote_uninterrupt(const struct user_regs_struct *registers, struct user_regs_struct *ret,
			     int64_t *limit_ms_ret, uint64_t *limit_at_ret);

#endif
