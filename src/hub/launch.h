/* Commands that a hub launches. */
#ifndef KYMO_HUB_LAUNCH_H
#define KYMO_HUB_LAUNCH_H

#include "kymo/engine.h"

struct kymo_identity;

/* Rows of the table in local.c; ops.h and include/kymo/engine.h have the contracts. */
int hub_local_launch(struct kymo_hub *hub, unsigned int flags, char *const *argv, const uint64_t *calls,
		     pid_t *pid_ret);
int hub_local_start(struct kymo_hub *hub, pid_t pid);
int hub_local_wait(struct kymo_hub *hub, pid_t pid, int *status_ret);

/* The result of launching a command here. */
struct hub_launched {
	pid_t pid;
	int status; /* if it has ended before the exec, as waitpid() gives it */
	int err;    /* why the exec failed, as of execvp(); 0: the child has not told */
};

/*
 * Commands that this hub launches from now on run as `identity` (identity.h), which lives until then; NULL: as this
 * process. Call it before the first of them, from the thread that launches. A command that cannot run so is not
 * launched: the error is that of hub_identity_take().
 */
void kymo_hub_launch_as(struct kymo_hub *hub, const struct kymo_identity *identity);

/*
 * Launch `argv`, found as execvp() does, for a recorder. The command is stopped after its execve, traced, and has no
 * owner until it is frozen. If this process dies before the exec, the child still makes it. hub_launched_ended() tells
 * its end. SIGCHLD is not ignored from then on; if it was, commands ignore it again. From the hub's thread.
 *
 *   0          it is stopped there
 *   -ECHILD    it has ended, see `ret`
 *   -EPERM     it cannot be traced
 *   others     no child was made
 */
int hub_launch_here(struct kymo_hub *hub, char *const *argv, struct hub_launched *ret);

/* Whether a launched command has ended; then its status. Checks it if the hub does not trace it any more. */
bool hub_launched_ended(struct kymo_hub *hub, pid_t pid, int *status_ret);

/*
 * End a command that a hub has launched, not within a callback of its end. 0, or -ESRCH: it has ended, and another
 * process may have its id.
 */
int kymo_hub_kill(struct kymo_hub *hub, pid_t pid);

/*
 * kymo_hub_destroy() of a hub that has launched `pid`. True: the command had ended before; its status is as waitpid()
 * has it. False: the command runs on, as a child of this process that may be waited for. A status that kymo_hub_wait()
 * has returned is not returned again.
 */
bool kymo_hub_close(struct kymo_hub *hub, pid_t pid, int *status_ret);

/*
 * Make a child that executes `argv`, found as execvp(3) does, when a byte is written to `go_ret`, and ends when that is
 * closed instead. On return the child waits for the byte: all its later system calls are the end of that wait, the
 * exec, and the command's. With `identity` it is that user's before it waits; NULL: as this process. It is not traced;
 * the caller waits for its end. A negative errno.
 */
int kymo_command_fork(char *const *argv, const struct kymo_identity *identity, pid_t *pid_ret, int *go_ret);

#endif
