/*
 * Threads in which a dead recorder has left a remote call.
 *
 * If a recorder is killed while a thread makes a system call for it, the thread finds its own way home (call.c): it
 * makes the call, returns into rt_sigreturn, and is where it was. That takes microseconds of processor time. But the
 * thread may get none for long, as the machine is busy or the program is stopped.
 *
 * A recorder that stops the process meanwhile would see memory from before that call, and write its own frame over the
 * thread's. So such a thread is brought home first.
 */
#include "arch/batch.h"
#include "arch/remote.h"
#include "base/error.h"
#include "proc/home.h"
#include "proc/memory.h"
#include "proc/request.h"
#include "proc/state.h"
#include "proc/thread.h"

#define TRIES (KYMO_BATCH_MAX + 5) /* its call, or those of a batch and the two of its end; and rt_sigreturn */

static bool is_away(struct kymo_process *process, const struct kymo_thread *thread)
{
	uint8_t stack[KYMO_REMOTE_STACK], code[KYMO_REMOTE_CODE];

	/* Code at the end of a mapping is none of a frame's. */
	return kymo_remote_may_be_away(&thread->registers) &&
	       !kymo_process_read(process, thread->registers.rsp - KYMO_REMOTE_BELOW, stack, sizeof(stack)) &&
	       !kymo_process_read(process, thread->registers.rip, code, sizeof(code)) &&
	       kymo_remote_is_away(stack, code);
}

struct kymo_error *kymo_bring_home(struct kymo_process *process, pid_t tid)
{
	for (int i = 0; i < TRIES; i++) {
		struct kymo_thread *thread = kymo_find_thread(process, tid);
		struct user_regs_struct behind;
		struct kymo_error *error;

		if (!thread || !is_away(process, thread))
			return NULL;
		error = kymo_joined_call(process, tid, NULL, &behind);
		if (error)
			return error;
		thread->registers = behind;
	}
	return kymo_error_create(KYMO_ERROR_BUSY,
				 "thread %d of process %d, in which a killed recorder was making a call, does not "
				 "return to where it was",
				 tid, process->pid);
}
