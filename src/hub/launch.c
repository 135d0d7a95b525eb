/*
 * Launching a command for engines: it stands at the entry of its execve until it is started, so that engines see that
 * call, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "hub/filter.h"
#include "hub/identity.h"
#include "hub/launch.h"
#include "hub/state.h"
#include "hub/stops.h"
#include "hub/thread/request.h"
#include "hub/thread/seize.h"
#include "hub/thread/states.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/wait.h"
#include "kymo/engine.h"
#include "procfs/info.h"
#include "procfs/threads.h"

#define CALL_STOP (SIGTRAP | 0x80)

struct launch {
	unsigned int flags;
	char *const *argv;
	char *const *environment;
	const char *path;
	char **script;                    /* argv for /bin/sh, where the file is no program */
	const sigset_t *mask;             /* NULL: that of the thread that forks */
	const struct sock_filter *filter; /* of picked calls, or NULL */
	size_t n_filter;
	const struct kymo_identity *identity; /* NULL: that of this process */
	bool waits_as_user;                   /* it has that identity before it waits */
	pid_t pid;
	int report; /* where the child's errno goes; it executes argv[0] as execvp() does then, whichever process dies
		     */
	struct hub_launched *launched;
};

/* ---- finding it ------------------------------------------------------------------------------ */

static int check_file(const char *path)
{
	struct stat file;

	if (stat(path, &file))
		return -errno;
	if (!S_ISREG(file.st_mode))
		return -EACCES;
	return access(path, X_OK) ? -errno : 0;
}

/* As execvp(3) does: an empty part of PATH is the current directory, and the first file that may be executed is taken.
 */
static int find_program(const char *name, char **ret)
{
	const char *path = getenv("PATH"), *at;
	int err = -ENOENT;

	if (strchr(name, '/')) {
		err = check_file(name);
		if (!err && !(*ret = strdup(name)))
			err = -ENOMEM;
		return err;
	}
	if (!*name)
		return -ENOENT;
	for (at = path ? path : "/bin:/usr/bin"; at; at = *at ? at + 1 : NULL) {
		size_t n = strcspn(at, ":");
		char *file;
		int why;

		if (asprintf(&file, "%.*s%s%s", (int)n, at, n ? "/" : "", name) < 0)
			return -ENOMEM;
		why = check_file(file);
		if (!why) {
			*ret = file;
			return 0;
		}
		free(file);
		err = why == -EACCES ? why : err;
		at += n;
	}
	return err;
}

/* { "/bin/sh", path, argv[1], … } */
static char **script_arguments(const char *path, char *const *argv)
{
	size_t n = 0;
	char **script;

	while (argv[n])
		n++;
	script = calloc(n + 2, sizeof(*script));
	if (!script)
		return NULL;
	script[0] = (char *)(uintptr_t) "/bin/sh";
	script[1] = (char *)(uintptr_t)path;
	for (size_t i = 1; i < n; i++)
		script[i + 1] = argv[i];
	return script;
}

/* ---- the child ------------------------------------------------------------------------------- */

/* What this process had for SIGCHLD, and commands have, where that was changed: once, before the first of them. */
static struct {
	bool is_set;
	struct sigaction action;
} ignored;

/* If the parent ignores SIGCHLD, the kernel does not keep the status of an untraced child. */
static void stop_ignoring_children(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL }, before;

	if (sigaction(SIGCHLD, NULL, &before) || !(before.sa_handler == SIG_IGN || before.sa_flags & SA_NOCLDWAIT))
		return;
	ignored.action = before;
	ignored.is_set = !sigaction(SIGCHLD, &action, NULL);
}

static void ignore_children_as_before(void)
{
	if (ignored.is_set)
		sigaction(SIGCHLD, &ignored.action, NULL);
}

static bool is_told_to_go(int go)
{
	ssize_t n;
	char byte;

	do {
		n = read(go, &byte, 1);
	} while (n < 0 && errno == EINTR);
	return n == 1;
}

static void __attribute__((noreturn)) become_and_report(const struct launch *launch, int go)
{
	int err;

	is_told_to_go(go);
	sigprocmask(SIG_SETMASK, launch->mask, NULL);
	execvp(launch->argv[0], launch->argv);
	err = errno;
	_exit(write(launch->report, &err, sizeof(err)) < 0 ? 126 : 127);
}

static int take_identity(const struct launch *launch)
{
	return launch->identity ? hub_identity_take(launch->identity) : 0;
}

static void __attribute__((noreturn)) become(const struct launch *launch, int go)
{
	int err = launch->waits_as_user ? take_identity(launch) : 0;

	if (err)
		_exit(-err);
	if (!is_told_to_go(go)) /* the parent is gone */
		_exit(127);
	if (launch->mask)
		sigprocmask(SIG_SETMASK, launch->mask, NULL);
	/* The filter first: a user without privileges may not put one in. */
	err = launch->filter ? hub_filter_install(launch->filter, launch->n_filter) : 0;
	if (!err && !launch->waits_as_user)
		err = take_identity(launch);
	if (err)
		_exit(-err);
	execve(launch->path, launch->argv, launch->environment);
	if (errno == ENOEXEC)
		execve(launch->script[0], launch->script, launch->environment);
	err = errno;
	dprintf(STDERR_FILENO, "cannot run %s: %s\n", launch->path, strerror(err));
	_exit(err == ENOENT ? 127 : 126);
}

static void close_pipe(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

/* Its pid, or a negative errno. It waits until a byte comes through the pipe. The caller closes that, and has both ends
 * so that the child's death is no SIGPIPE. */
static pid_t fork_child(const struct launch *launch, void (*be)(const struct launch *launch, int go), int go[2])
{
	pid_t pid;
	int err;

	if (pipe2(go, O_CLOEXEC))
		return -errno;
	pid = fork();
	if (!pid) {
		close(go[1]);
		ignore_children_as_before();
		be(launch, go[0]);
	}
	err = -errno;
	if (pid > 0)
		return pid;
	close_pipe(go);
	return err;
}

/* Run a seized child, which runs, on by `request` until it stands where it is to. 0; -ESRCH: it has ended, with
 * `status_ret`; another errno. */
static int run_until(pid_t pid, enum __ptrace_request request, bool (*is_there)(pid_t pid, int status), int *status_ret)
{
	for (;;) {
		int signal;

		if (waitpid(pid, status_ret, __WALL) != pid) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (!WIFSTOPPED(*status_ret))
			return -ESRCH;
		if (is_there(pid, *status_ret))
			return 0;
		signal = *status_ret >> 16 || WSTOPSIG(*status_ret) == CALL_STOP ? 0 : WSTOPSIG(*status_ret);
		ptrace(request, pid, 0, signal);
	}
}

static bool is_at_execve(pid_t pid, int status)
{
	struct __ptrace_syscall_info info = { .op = PTRACE_SYSCALL_INFO_NONE };

	if (status >> 16 || WSTOPSIG(status) != CALL_STOP)
		return false;
	ptrace(PTRACE_GET_SYSCALL_INFO, pid, (void *)sizeof(info), &info);
	return info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_execve;
}

static bool has_executed(pid_t pid, int status)
{
	return status >> 16 == PTRACE_EVENT_EXEC;
}

static bool is_at_call(pid_t pid, int status)
{
	return !(status >> 16) && WSTOPSIG(status) == CALL_STOP;
}

/* To the entry of its execve. A negative errno; it has ended, then: with the errno for its status where it got no
 * filter. */
static int hold_at_exec(pid_t pid, int go, const struct launch *launch)
{
	long options = HUB_OPTIONS | (launch->flags & KYMO_LAUNCH_EXITKILL ? PTRACE_O_EXITKILL : 0) |
		       (launch->filter ? PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL : 0);
	int status, err;

	if (ptrace(PTRACE_SEIZE, pid, 0, options) || ptrace(PTRACE_INTERRUPT, pid, 0, 0))
		return -errno;
	if (kymo_write_all(go, "", 1))
		return -EPIPE;
	err = run_until(pid, PTRACE_SYSCALL, is_at_execve, &status);
	return err == -ESRCH && WIFEXITED(status) && WEXITSTATUS(status) ? -WEXITSTATUS(status) : err;
}

/* The event comes within execve, which has yet to store its result in rax; after it registers are the holder's. */
static int hold_behind_exec(pid_t pid, int go, int *status_ret)
{
	int err;

	if (ptrace(PTRACE_SEIZE, pid, 0, HUB_OPTIONS))
		return -errno;
	if (kymo_write_all(go, "", 1))
		return -EPIPE;
	err = run_until(pid, PTRACE_CONT, has_executed, status_ret);
	if (!err)
		ptrace(PTRACE_SYSCALL, pid, 0, 0);
	return err ? err : run_until(pid, PTRACE_SYSCALL, is_at_call, status_ret);
}

static void kill_and_reap(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	while (waitpid(pid, &status, __WALL) == pid && WIFSTOPPED(status))
		ptrace(PTRACE_CONT, pid, 0, 0);
}

static int add_launched(struct kymo_hub *hub, pid_t pid, bool has_filter)
{
	struct hub_process *process = hub_get_process(hub, pid);
	struct task *task = process ? hub_add_task(hub, process, pid) : NULL;

	if (!task) {
		if (process)
			hub_put_process(hub, process);
		return -ENOMEM;
	}
	process->is_launched = process->is_held = true;
	process->has_filter = has_filter;
	hub->has_filters |= has_filter;
	hub_set_stop(task, STOP_ENTRY);
	task->stop_serial = ++hub->counts.stops;
	return 0;
}

/* After its execve: the owner lets it run. */
static int add_here(struct kymo_hub *hub, pid_t pid)
{
	int err = add_launched(hub, pid, false);
	struct task *task = err ? NULL : hub_find(hub, pid);

	if (err)
		return err;
	task->process->is_held = false;
	hub_change_stop(task, STOP_AWAY);
	return 0;
}

/* The caller's handlers are not for the child. */
static pid_t fork_without_signals(const struct launch *launch, int go[2])
{
	sigset_t all, mask;
	pid_t pid;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	pid = fork_child(launch, become_and_report, go);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	return pid;
}

static int launch_here(struct kymo_hub *hub, void *argument)
{
	struct launch *launch = argument;
	struct hub_launched *launched = launch->launched;
	int go[2], err;

	launched->pid = fork_without_signals(launch, go);
	if (launched->pid < 0)
		return launched->pid;
	err = hold_behind_exec(launched->pid, go[1], &launched->status);
	if (!err)
		err = add_here(hub, launched->pid);
	if (err && err != -ESRCH && err != -ECHILD)
		kill_and_reap(launched->pid); /* before the pipe ends, as it would execute the command then */
	close_pipe(go);
	return err == -ESRCH ? -ECHILD : err;
}

int hub_launch_here(struct kymo_hub *hub, char *const *argv, struct hub_launched *ret)
{
	struct launch launch = { .argv = argv, .launched = ret };
	int report[2], err;
	sigset_t mask;

	*ret = (struct hub_launched){ .err = 0 };
	if (pipe2(report, O_CLOEXEC))
		return -errno;
	hub_sleeps_end(&hub->seizer); /* they block a signal */
	sigprocmask(SIG_SETMASK, NULL, &mask);
	launch.mask = &mask;
	launch.report = report[1];
	stop_ignoring_children();
	err = hub_call(hub, launch_here, &launch);
	close(report[1]);
	if (err == -ECHILD && read(report[0], &ret->err, sizeof(ret->err)) != sizeof(ret->err))
		ret->err = 0;
	close(report[0]);
	return err;
}

static int launch_it(struct kymo_hub *hub, void *argument)
{
	struct launch *launch = argument;
	int go[2], err;
	pid_t pid = fork_child(launch, become, go);

	if (pid < 0)
		return pid;
	err = hold_at_exec(pid, go[1], launch);
	close_pipe(go);
	if (!err)
		err = add_launched(hub, pid, launch->filter);
	if (err)
		kill_and_reap(pid);
	else
		launch->pid = pid;
	return err;
}

/* Until the child is in its read, or has ended. The calls that it makes before are ours. */
static void wait_until_it_waits(pid_t pid)
{
	const struct timespec moment = { .tv_nsec = 50 * 1000 };

	while (!strchr("SZX", kymo_thread_state(pid, pid)))
		nanosleep(&moment, NULL);
}

int kymo_command_fork(char *const *argv, const struct kymo_identity *identity, pid_t *pid_ret, int *go_ret)
{
	kymo_cleanup_free char *path = NULL;
	kymo_cleanup_free char **script = NULL;
	struct launch launch = { .argv = argv, .environment = environ, .identity = identity, .waits_as_user = true };
	pid_t pid;
	int status, go[2], err = find_program(argv[0], &path);

	if (err)
		return err;
	script = script_arguments(path, argv);
	if (!script)
		return -ENOMEM;
	launch.path = path;
	launch.script = script;
	stop_ignoring_children();
	pid = fork_child(&launch, become, go);
	if (pid < 0)
		return pid;
	close(go[0]);
	wait_until_it_waits(pid);
	if (waitpid(pid, &status, WNOHANG) == pid) { /* before its read: it could not become that user */
		close(go[1]);
		return WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
	}
	*pid_ret = pid;
	*go_ret = go[1];
	return 0;
}

static int launch_command(struct kymo_hub *hub, struct launch *launch, pid_t *pid_ret)
{
	kymo_cleanup_free char *path = NULL;
	kymo_cleanup_free char **script = NULL;
	char *const *argv = launch->argv;
	sigset_t mask;
	int err;

	if (hub_is_own_thread(hub))
		return -EDEADLK;
	err = find_program(argv[0], &path);
	if (err)
		return err;
	script = script_arguments(path, argv);
	if (!script)
		return -ENOMEM;
	pthread_sigmask(SIG_SETMASK, NULL, &mask); /* the caller's, which the hub's thread has not */
	launch->environment = environ;
	launch->path = path;
	launch->script = script;
	launch->mask = &mask;
	err = hub_call(hub, launch_it, launch);
	if (!err)
		*pid_ret = launch->pid;
	return err;
}

int hub_local_launch(struct kymo_hub *hub, unsigned int flags, char *const *argv, const uint64_t *calls, pid_t *pid_ret)
{
	struct sock_filter filter[HUB_FILTER_MAX];
	struct launch launch = { .flags = flags, .argv = argv, .identity = hub->user.identity };

	if (calls) {
		launch.filter = filter;
		launch.n_filter = hub_filter_make(calls, filter);
	}
	return launch_command(hub, &launch, pid_ret);
}

void kymo_hub_launch_as(struct kymo_hub *hub, const struct kymo_identity *identity)
{
	hub->user.identity = identity;
}

/* ---- starting it, and its end ---------------------------------------------------------------- */

/* The stop that it stands in is told as if it had come only now. */
static int start_command(struct kymo_hub *hub, void *argument)
{
	const pid_t *pid = argument;
	struct hub_process *process = hub_find_process(hub, *pid);
	struct task *task = hub_find(hub, *pid);

	if (!process || !process->is_held || !task)
		return -ESRCH;
	hub_keep_status(hub, *pid, (SIGTRAP | 0x80) << 8 | 0x7f);
	process->is_held = false;
	hub_set_state(task, TASK_RUNNING);
	return 0;
}

int hub_local_start(struct kymo_hub *hub, pid_t pid)
{
	return hub_call(hub, start_command, &pid);
}

static struct hub_process *find_launched(const struct kymo_hub *hub, pid_t pid)
{
	struct hub_process *process = hub->processes;

	while (process && (process->pid != pid || !process->is_launched))
		process = process->next;
	return process;
}

struct launched {
	pid_t pid;
	int status;
};

static int look_at_launched(struct kymo_hub *hub, void *argument)
{
	struct launched *launched = argument;
	const struct hub_process *process = find_launched(hub, launched->pid);
	int status;

	if (!process)
		return 0;
	if (!process->has_ended && !hub_find(hub, launched->pid) && hub_look(hub, launched->pid, &status))
		hub_dispatch(hub, launched->pid, status);
	launched->status = process->status;
	return process->has_ended;
}

bool hub_launched_ended(struct kymo_hub *hub, pid_t pid, int *status_ret)
{
	struct launched launched = { .pid = pid };
	bool has_ended = hub_call(hub, look_at_launched, &launched);

	if (has_ended)
		*status_ret = launched.status;
	return has_ended;
}

int hub_local_wait(struct kymo_hub *hub, pid_t pid, int *status_ret)
{
	struct hub_process *process;
	int err = -ECHILD;

	if (hub_is_own_thread(hub))
		return -EDEADLK;
	pthread_mutex_lock(&hub->lock);
	while ((process = find_launched(hub, pid)) && !process->has_ended)
		pthread_cond_wait(&hub->changed, &hub->lock);
	if (process) {
		*status_ret = process->status;
		process->is_launched = false;
		hub_put_process(hub, process);
		err = 0;
	}
	pthread_mutex_unlock(&hub->lock);
	return err;
}

static int end_launched(struct kymo_hub *hub, void *argument)
{
	const pid_t *pid = argument;
	const struct hub_process *process = hub_find_process(hub, *pid);

	return process && process->is_launched ? hub_kill(hub, process) : -ESRCH;
}

int kymo_hub_kill(struct kymo_hub *hub, pid_t pid)
{
	return hub_call(hub, end_launched, &pid);
}

bool kymo_hub_close(struct kymo_hub *hub, pid_t pid, int *status_ret)
{
	struct hub_awaited awaited = { .pid = pid };
	struct hub_process *process;

	pthread_mutex_lock(&hub->lock);
	process = find_launched(hub, pid);
	if (process && process->has_ended)
		awaited = (struct hub_awaited){ pid, true, process->status };
	else
		hub->awaited = &awaited;
	pthread_mutex_unlock(&hub->lock);
	kymo_hub_destroy(hub);
	if (awaited.has_ended)
		*status_ret = awaited.status;
	return awaited.has_ended;
}
