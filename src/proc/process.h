/* What the files of this room share. */
#ifndef KYMO_PROC_PROCESS_H
#define KYMO_PROC_PROCESS_H

#include "base/vec.h"
#include "proc/proc.h"

struct kymo_process {
	pid_t pid;
	int pidfd;
	int memory;			/* /proc/PID/mem, or -1 after it was refused */
	bool launched;			/* our child */
	bool reaped;
	int status;			/* of a reaped one */
	bool stopped;
	KYMO_VEC(struct kymo_thread) threads;	/* seized and stopped ones */

	struct kymo_gadgets gadgets;
	struct {
		bool active;
		size_t thread;
		struct user_regs_struct registers;	/* the thread's own */
		uint64_t mask, sp;
		uint8_t *kept;		/* what lay where scratch and frame are */
		size_t n_kept;
	} remote;
	struct {
		bool began;
		bool is_static;		/* no dynamic linker */
		uint64_t debug;		/* where the linker puts the address of its struct r_debug, or 0 */
		long number;		/* of the call that was entered */
		uint64_t args[6];
	} startup;
};

/* Wait for thread `tid` to change state, for at most `timeout_ms`. 0 and `status_ret`, -ETIMEDOUT, -ECHILD. Keeps the exit status of a launched process. */
int kymo_wait_thread(struct kymo_process *process, pid_t tid, int timeout_ms, int *status_ret);

/* The registers of a stopped thread. Negative errno. */
int kymo_get_registers(pid_t tid, struct user_regs_struct *ret);
int kymo_set_registers(pid_t tid, const struct user_regs_struct *registers);

/* Run stopped thread `tid` to its next system-call stop. GONE, BUSY after five seconds. */
struct kymo_error *kymo_run_to_syscall_stop(struct kymo_process *process, pid_t tid);

/* BAD_DATA for anything but a 64-bit program of this architecture. */
struct kymo_error *kymo_process_check_class(struct kymo_process *process);

/* Allocate the struct for `pid` and open what belongs to it. */
struct kymo_error *kymo_process_create(pid_t pid, struct kymo_process **ret);

/* BAD_DATA when its program is no 64-bit x86 one. */
struct kymo_error *kymo_process_check_class(struct kymo_process *process);

#endif
