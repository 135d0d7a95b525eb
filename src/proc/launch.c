#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/process.h"

/* In the child: wait until the parent traces, then become the command; its errno goes through `report`. */
static void become(char *const *argv, int go, int report, const sigset_t *mask)
{
	char byte;
	int err;

	while (read(go, &byte, 1) < 0 && errno == EINTR)
		;
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	err = errno;
	if (write(report, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

/* `status` is that of the child, which has ended. */
static struct kymo_error *exec_failed(const char *command, int report, int status)
{
	int err;

	if (read(report, &err, sizeof(err)) != sizeof(err)) {
		if (WIFSIGNALED(status))	/* the old program was gone already when the new one turned out to be wrong */
			return kymo_error_create(KYMO_ERROR_FAILED, "the kernel ended %s while it loaded it (%s); is the file damaged?",
						 command, strsignal(WTERMSIG(status)));
		return kymo_error_create(KYMO_ERROR_FAILED, "%s ended before it began", command);
	}
	if (err == ENOENT)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "there is no program %s%s", command,
					 strchr(command, '/') ? "" : " in PATH");
	return kymo_error_errno(err, "cannot run %s", command);
}

static struct kymo_error *wait_for_exec(struct kymo_process *process, const char *command, int report)
{
	for (;;) {
		int status;
		pid_t got = waitpid(process->pid, &status, __WALL);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return kymo_error_errno(errno, "cannot wait for %s", command);
		if (!WIFSTOPPED(status)) {
			process->reaped = true;
			process->status = status;
			return exec_failed(command, report, status);
		}
		if (status >> 16 == PTRACE_EVENT_EXEC)
			return NULL;
		ptrace(PTRACE_CONT, process->pid, 0, status >> 16 ? 0 : WSTOPSIG(status));
	}
}

static struct kymo_error *start_child(char *const *argv, int report, int go[2], int report_write, struct kymo_process **ret)
{
	struct kymo_process *process = NULL;
	struct kymo_error *error;
	sigset_t all, mask;
	pid_t pid;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &mask);
	pid = fork();
	if (!pid) {
		close(go[1]);
		become(argv, go[0], report_write, &mask);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
	if (pid < 0)
		return kymo_error_errno(errno, "cannot start %s", argv[0]);
	error = kymo_process_create(pid, &process);
	if (error) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return error;
	}
	process->launched = true;
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD)) {
		error = kymo_error_errno(errno, "cannot trace %s", argv[0]);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		kymo_process_destroy(process);
		return error;
	}
	*ret = process;
	return NULL;
}

static struct kymo_error *stopped_at_exec(struct kymo_process *process)
{
	struct kymo_thread thread = { .tid = process->pid, .is_stopped = true };
	struct kymo_error *error;
	int memory, err;
	char name[64];

	error = kymo_process_check_class(process);
	if (error)
		return error;
	/* The exec event comes within execve, which has yet to store its result in rax; behind it registers are ours. */
	error = kymo_run_to_syscall_stop(process, process->pid);
	if (error)
		return error;

	/* The descriptor of before belongs to the memory of before. */
	snprintf(name, sizeof(name), "/proc/%d/mem", process->pid);
	memory = open(name, O_RDWR | O_CLOEXEC);
	if (memory < 0)
		return kymo_error_errno(errno, "cannot open the memory of process %d (is the program set-uid, or not readable?)",
					process->pid);
	close(process->memory);
	process->memory = memory;
	err = kymo_get_registers(process->pid, &thread.registers);
	if (err)
		return kymo_error_errno(err, "cannot read the registers of process %d", process->pid);
	process->stopped = true;
	return kymo_vec_push(&process->threads, thread) ? NULL : &kymo_error_no_memory;
}

struct kymo_error *kymo_process_launch(char *const *argv, struct kymo_process **ret)
{
	struct kymo_process *process = NULL;
	struct kymo_error *error = NULL;
	int go[2] = { -1, -1 }, report[2] = { -1, -1 };

	if (pipe2(go, O_CLOEXEC) || pipe2(report, O_CLOEXEC))
		error = kymo_error_errno(errno, "cannot start %s", argv[0]);
	if (!error)
		error = start_child(argv, report[0], go, report[1], &process);
	if (!error && kymo_write_all(go[1], "", 1))
		error = kymo_error_errno(errno, "cannot start %s", argv[0]);
	close(report[1]);
	if (!error)
		error = wait_for_exec(process, argv[0], report[0]);
	if (!error)
		error = stopped_at_exec(process);
	if (!error)
		error = kymo_process_check_class(process);
	close(go[0]);
	close(go[1]);
	close(report[0]);
	if (error) {
		if (process && !process->reaped) {
			kill(process->pid, SIGKILL);
			waitpid(process->pid, NULL, __WALL);
		}
		kymo_process_destroy(process);
		return error;
	}
	*ret = process;
	return NULL;
}
