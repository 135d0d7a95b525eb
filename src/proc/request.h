/* Requests to the hub about a frozen process. hub/remote/message.h has the messages. */
#ifndef KYMO_PROC_REQUEST_H
#define KYMO_PROC_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"
#include "base/vec.h"
#include "hub/remote/message.h"

struct hub_owner;
struct kymo_hub;
struct kymo_process;

struct kymo_joined {
	struct kymo_hub *hub;    /* another process', to which this is a connection */
	struct hub_owner *owner; /* … or of this process' own, which the process has */
	KYMO_VEC(struct hub_held) held;
};

/* Have the hub do what the message asks for, and put the reply in its place. -ESRCH: the process is not frozen; -EPIPE:
 * the hub is gone. */
int kymo_request(struct kymo_joined *joined, struct hub_message *message, void *memory);

/* BUSY: the hub has ended, or has let the process go. */
struct kymo_error *kymo_request_lost(const struct kymo_process *process);

/* ---- of one stopped thread. Negative errno values: -ESRCH, it is gone; -EPIPE, the hub is ---- */

int kymo_joined_set_registers(struct kymo_joined *joined, pid_t tid, const struct user_regs_struct *registers);
int kymo_joined_facts(const struct kymo_joined *joined, pid_t tid, unsigned int which, struct kymo_tracee_facts *ret);
int kymo_joined_xstate(struct kymo_joined *joined, pid_t tid, void *ret, size_t size, size_t *size_ret);

/* Set its registers for calls that are not its own, and block its signals; give both back afterwards. */
int kymo_joined_begin_calls(struct kymo_joined *joined, pid_t tid, const struct user_regs_struct *call);
struct kymo_error *kymo_joined_give_back(struct kymo_process *process, pid_t tid);

/* Run it from here (`call`; NULL: from where it is) to the exit of the next system call, and read its registers. GONE,
 * BUSY after five seconds. */
struct kymo_error *kymo_joined_call(struct kymo_process *process, pid_t tid, const struct user_regs_struct *call,
				    struct user_regs_struct *ret);

/* Run it from `begin` until it is at `end` before `signal`, which is let in for that. The same errors. By the hub of
 * this process alone. */
struct kymo_error *kymo_joined_batch(struct kymo_process *process, pid_t tid, const struct user_regs_struct *begin,
				     uint64_t end, int signal);

/* Whether memory is to be written by the next one; else as that of any process. */
bool kymo_joined_writes(const struct kymo_joined *joined);

/* As kymo_process_write(), and only while the process is frozen. */
int kymo_joined_write(struct kymo_joined *joined, uint64_t address, const void *data, size_t size);

#endif
