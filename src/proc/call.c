/*
 * System calls in the name of a stopped thread. The order of steps keeps the target safe at each of them:
 *
 *	1. the frame is written below the thread's stack pointer		(harmless: unused stack)
 *	2. the registers point to `syscall; ret`, the stack pointer to the frame	(a death now: one call, then home)
 *	3. all signals are blocked		(a death now: the frame's mask comes back by rt_sigreturn)
 *	4. calls: registers, run to the call's exit
 *	5. the mask is set back			(a death now: as 2)
 *	6. the registers are set back
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "proc/process.h"

#define XSTATE_MAX (64u << 10)
#define SCRATCH 1024	/* below the frame, for path names and such */
#define CALL_TIMEOUT_MS 5000
#define TEXT_MAX (64u << 20)
#define ERESTART_RESTARTBLOCK 516

static struct kymo_error *scan_map(struct kymo_process *process, const struct kymo_map *map)
{
	size_t size = map->end - map->start > TEXT_MAX ? TEXT_MAX : map->end - map->start;
	kymo_cleanup_free uint8_t *bytes = malloc(size);

	if (!bytes)
		return &kymo_error_no_memory;
	if (!kymo_process_read(process, map->start, bytes, size))
		kymo_gadgets_scan(bytes, size, map->start, &process->gadgets);
	return NULL;
}

/* Gadgets may go away with the library they are in, so they are looked for anew each time. */
static struct kymo_error *find_gadgets(struct kymo_process *process)
{
	struct kymo_error *error;
	struct kymo_maps maps;

	memset(&process->gadgets, 0, sizeof(process->gadgets));
	error = kymo_maps_read(process->pid, &maps);
	if (error)
		return error;
	for (size_t i = maps.n; i-- > 0 && !error;) {
		const struct kymo_map *map = &maps.items[i];

		if (map->executable && map->readable && strcmp(map->path, "[vsyscall]") &&
		    !(process->gadgets.syscall && process->gadgets.sigreturn))
			error = scan_map(process, map);
	}
	kymo_maps_deinit(&maps);
	if (!error && !kymo_gadgets_complete(&process->gadgets))
		error = kymo_error_create(KYMO_ERROR_UNSAFE,
					  "process %d has no instructions through which a system call could be made safely (syscall; ret, and a way to rt_sigreturn)",
					  process->pid);
	return error;
}

/* Write the frame for thread `index` and point its registers at a first, harmless call. */
static int borrow(struct kymo_process *process, size_t index)
{
	static const uint64_t no_args[6];
	const struct kymo_thread *thread = &process->threads.items[index];
	kymo_cleanup_free uint8_t *xstate = malloc(XSTATE_MAX), *frame = malloc(XSTATE_MAX + KYMO_REMOTE_FRAME_MAX);
	struct iovec part = { xstate, XSTATE_MAX - 64 };
	struct user_regs_struct call;
	uint64_t mask, all = ~0ull, sp;
	int size, err;

	if (!xstate || !frame)
		return -ENOMEM;
	if (ptrace(PTRACE_GETREGSET, thread->tid, (void *)NT_X86_XSTATE, &part) ||
	    ptrace(PTRACE_GETSIGMASK, thread->tid, (void *)sizeof(mask), &mask))
		return -errno;
	size = kymo_remote_frame(&thread->registers, xstate, part.iov_len, mask, &process->gadgets, frame,
				 XSTATE_MAX + KYMO_REMOTE_FRAME_MAX, &sp);
	if (size < 0)
		return size;
	memset(xstate, 0, SCRATCH);
	err = kymo_process_write(process, sp - SCRATCH, xstate, SCRATCH);	/* is there stack? */
	if (!err)
		err = kymo_process_write(process, sp, frame, (size_t)size);
	if (err)
		return err;
	kymo_remote_call(&thread->registers, &process->gadgets, sp, SYS_getpid, no_args, &call);
	err = kymo_set_registers(thread->tid, &call);
	if (err)
		return err;
	process->remote.active = true;
	process->remote.thread = index;
	process->remote.registers = thread->registers;
	process->remote.mask = mask;
	process->remote.sp = sp;
	return ptrace(PTRACE_SETSIGMASK, thread->tid, (void *)sizeof(all), &all) ? -errno : 0;
}

/* A thread that sleeps with a timeout would start that sleep anew on its way home; others are better. */
static bool is_in_timed_sleep(const struct kymo_thread *thread)
{
	return (int64_t)thread->registers.orig_rax >= 0 && (int64_t)thread->registers.rax == -ERESTART_RESTARTBLOCK;
}

struct kymo_error *kymo_remote_begin(struct kymo_process *process)
{
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(process->pid, &info);
	int err = -EIO;

	if (error)
		return error;
	if (info.seccomp)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "process %d runs under a seccomp filter, which might kill it for the system calls that setting up memory takes",
					 process->pid);
	error = find_gadgets(process);
	if (error)
		return error;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < process->threads.n; i++) {
			if (is_in_timed_sleep(&process->threads.items[i]) != (pass == 1))
				continue;
			err = borrow(process, i);
			if (!err)
				return NULL;
			if (process->remote.active)
				return kymo_error_prefix(kymo_error_errno(err, "cannot block its signals"),
							 "thread %d", process->threads.items[i].tid);
		}
	}
	return kymo_error_create(KYMO_ERROR_UNSAFE,
				 "no thread of process %d has room on its stack for a signal frame (%s)", process->pid,
				 strerror(-err));
}

static struct kymo_error *lost_thread(struct kymo_process *process, pid_t tid)
{
	process->remote.active = false;
	return kymo_error_create(KYMO_ERROR_GONE, "thread %d of process %d ended meanwhile", tid, process->pid);
}

struct kymo_error *kymo_run_to_syscall_stop(struct kymo_process *process, pid_t tid)
{
	for (;;) {
		int status, err;

		if (ptrace(PTRACE_SYSCALL, tid, 0, 0))
			return lost_thread(process, tid);
		err = kymo_wait_thread(process, tid, CALL_TIMEOUT_MS, &status);
		if (err == -ETIMEDOUT)
			return kymo_error_create(KYMO_ERROR_BUSY, "thread %d of process %d does not return from a system call", tid,
						 process->pid);
		if (err || !WIFSTOPPED(status))
			return lost_thread(process, tid);
		if (WSTOPSIG(status) == (SIGTRAP | 0x80))
			return NULL;
		/* All that can be blocked is; a stop is repeated when the thread is itself again. */
		if (!(status >> 16) && WSTOPSIG(status) == SIGSTOP)
			process->remote.stop_again = true;
	}
}

struct kymo_error *kymo_remote_syscall(struct kymo_process *process, long number, const uint64_t args[6], int64_t *result_ret)
{
	pid_t tid = process->threads.items[process->remote.thread].tid;
	struct user_regs_struct registers;
	struct kymo_error *error;

	kymo_remote_call(&process->remote.registers, &process->gadgets, process->remote.sp, number, args, &registers);
	if (kymo_set_registers(tid, &registers))
		return lost_thread(process, tid);
	error = kymo_run_to_syscall_stop(process, tid);
	if (!error)
		error = kymo_run_to_syscall_stop(process, tid);
	if (error)
		return error;
	if (kymo_get_registers(tid, &registers))
		return lost_thread(process, tid);
	*result_ret = (int64_t)registers.rax;
	return NULL;
}

uint64_t kymo_remote_scratch(const struct kymo_process *process)
{
	return process->remote.sp - SCRATCH;
}

struct kymo_error *kymo_remote_end(struct kymo_process *process)
{
	pid_t tid = process->threads.items[process->remote.thread].tid;
	struct user_regs_struct registers;

	if (!process->remote.active)
		return NULL;
	process->remote.active = false;
	kymo_remote_resume(&process->remote.registers, &registers);
	if (ptrace(PTRACE_SETSIGMASK, tid, (void *)sizeof(process->remote.mask), &process->remote.mask) ||
	    kymo_set_registers(tid, &registers))
		return lost_thread(process, tid);
	process->threads.items[process->remote.thread].registers = registers;
	return NULL;
}
