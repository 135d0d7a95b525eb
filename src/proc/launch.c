/* Launching a command for a recorder: it stands still at its first instruction, by the hub of this thread. */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/error.h"
#include "hub/freeze/hold.h"
#include "hub/freeze/holder.h"
#include "hub/launch.h"
#include "proc/keep.h"
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

static struct kymo_error *start_command(struct hub_holder *holder, char *const *argv, pid_t *pid_ret)
{
	struct hub_launched launched;
	int err = hub_launch_here(holder->hub, argv, &launched);

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

/* Behind an error `ret` is to be ended; NULL: the hub ends with the holder, and the child is to be killed. */
static struct kymo_error *take_launched(struct hub_holder *holder, pid_t pid, struct kymo_process **ret)
{
	struct kymo_error *refusal = NULL, *error = kymo_process_create_held(pid, ret, &refusal);

	if (error)
		return error;
	(*ret)->launched = true;
	(*ret)->holder = holder;
	error = check_refusal(*ret, refusal);
	return error ? error : kymo_keep_take(*ret, false);
}

struct kymo_error *kymo_process_launch(char *const *argv, struct kymo_process **ret)
{
	struct hub_holder *holder = hub_holder_create();
	struct kymo_process *process = NULL;
	struct kymo_error *error = holder ? NULL : &kymo_error_no_memory;
	pid_t pid = 0;

	if (!error)
		error = start_command(holder, argv, &pid);
	if (error) {
		hub_holder_destroy(holder);
		return error;
	}
	error = take_launched(holder, pid, &process);
	if (!error) {
		*ret = process;
		return NULL;
	}
	if (process) {
		kymo_process_kill(process);
		kymo_process_destroy(process);
	} else {
		kymo_hub_kill(holder->hub, pid);
		hub_holder_destroy(holder);
	}
	return error;
}
