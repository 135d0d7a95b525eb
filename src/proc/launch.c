/* Launching a command for a recorder: this thread's hub stops it at its first instruction. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "hub/freeze/freeze.h"
#include "hub/freeze/owner.h"
#include "hub/launch.h"
#include "proc/frozen.h"
#include "proc/launch.h"
#include "proc/process.h"
#include "proc/reach.h"
#include "proc/state.h"

static struct kymo_error *exec_failed(const char *command, const struct hub_launched *launched)
{
	if (!launched->err &&
	    WIFSIGNALED(
		    launched->status)) /* the old program was gone already when the new one turned out to be wrong */
		return kymo_error_create(KYMO_ERROR_FAILED,
					 "the kernel ended %s while it loaded it (%s); is the file damaged?", command,
					 strsignal(WTERMSIG(launched->status)));
	if (!launched->err)
		return kymo_error_create(KYMO_ERROR_FAILED, "%s ended before it began", command);
	if (launched->err == ENOENT)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "there is no program %s%s", command,
					 strchr(command, '/') ? "" : " in PATH");
	return kymo_error_errno(launched->err, "cannot run %s", command);
}

static struct kymo_error *start_command(struct hub_owner *owner, char *const *argv, pid_t *pid_ret)
{
	struct hub_launched launched;
	int err = hub_launch_here(owner->hub, argv, &launched);

	*pid_ret = launched.pid;
	if (err == -ECHILD)
		return exec_failed(argv[0], &launched);
	if (err == -EPERM)
		return kymo_begin_error(err);
	return err ? kymo_error_errno(err, "cannot start %s", argv[0]) : NULL;
}

/* Its first program, whose memory is the process' from now on. */
static struct kymo_error *check_refusal(struct kymo_process *process, struct kymo_error *refusal)
{
	struct kymo_error *error = kymo_process_check_class(process);

	if (!error && refusal)
		error = kymo_error_errno(
			EACCES, "cannot open the memory of process %d (is the program set-uid, or not readable?)",
			process->pid);
	kymo_error_destroy(refusal);
	return error;
}

/* After an error `ret` is to be ended; NULL: the hub ends with the owner, and the child is to be killed. */
static struct kymo_error *take_launched(struct hub_owner *owner, pid_t pid, struct kymo_process **ret)
{
	struct kymo_error *refusal = NULL, *error = kymo_process_create_held(pid, ret, &refusal);

	if (error)
		return error;
	(*ret)->child = PROCESS_IS_OURS;
	(*ret)->owner = owner;
	error = check_refusal(*ret, refusal);
	return error ? error : kymo_frozen_take(*ret, false);
}

struct kymo_error *kymo_process_launch(char *const *argv, struct kymo_process **ret)
{
	struct hub_owner *owner = hub_owner_create();
	struct kymo_process *process = NULL;
	struct kymo_error *error = owner ? NULL : &kymo_error_no_memory;
	pid_t pid = 0;

	if (!error)
		error = start_command(owner, argv, &pid);
	if (error) {
		hub_owner_destroy(owner);
		return error;
	}
	error = take_launched(owner, pid, &process);
	if (!error) {
		*ret = process;
		return NULL;
	}
	if (process) {
		kymo_process_kill(process);
		kymo_process_destroy(process);
	} else {
		kymo_hub_kill(owner->hub, pid);
		hub_owner_destroy(owner);
	}
	return error;
}
