#include "proc/process.h"

#define OTHERS_PATIENCE_NS 4000000000u

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/hub_hold.h"
#include "proc/joined.h"

/* All but the memory. */
static struct kymo_error *allocate(pid_t pid, struct kymo_process **ret)
{
	struct kymo_process *process = calloc(1, sizeof(*process));

	if (!process)
		return &kymo_error_no_memory;
	process->pid = pid;
	process->memory = -1;
	process->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (process->pidfd < 0) {
		int err = errno;

		free(process);
		return err == ESRCH ? kymo_error_create(KYMO_ERROR_GONE, "there is no process %d", pid) :
				      kymo_error_errno(err, "cannot watch process %d", pid);
	}
	*ret = process;
	return NULL;
}

static bool has_ended(const struct kymo_process *process)
{
	struct pollfd ended = { .fd = process->pidfd, .events = POLLIN };

	return poll(&ended, 1, 0) != 0;
}

static struct kymo_error *open_memory(struct kymo_process *process, pid_t thread)
{
	pid_t pid = process->pid;
	char name[64];
	int err;

	snprintf(name, sizeof(name), "/proc/%d/mem", thread);
	process->memory = open(name, O_RDWR | O_CLOEXEC);
	if (process->memory >= 0 && !has_ended(process))
		return NULL;
	if (process->memory >= 0) {	/* the id may be another process' by now, and so the memory */
		close(process->memory);
		process->memory = -1;
		return kymo_error_create(KYMO_ERROR_GONE, "process %d has ended", pid);
	}
	err = errno;
	if (err == ESRCH)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "process %d has no memory: it is a kernel thread, or it is ending",
					 pid);
	if (err == EACCES || err == EPERM)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "process %d does not let you trace it: it runs as another user, with more rights than you, or protects itself (PR_SET_DUMPABLE); try as root",
					 pid);
	return kymo_error_errno(err, "cannot open the memory of process %d", pid);
}

struct kymo_error *kymo_process_create(pid_t pid, struct kymo_process **ret)
{
	struct kymo_process *process;
	struct kymo_error *error = allocate(pid, &process);

	if (error)
		return error;
	error = open_memory(process, kymo_live_thread(pid));
	if (error) {
		kymo_process_destroy(process);
		return error;
	}
	*ret = process;
	return NULL;
}

struct kymo_error *kymo_process_create_held(pid_t pid, struct kymo_process **ret, struct kymo_error **refusal_ret)
{
	struct kymo_process *process;
	struct kymo_error *error = allocate(pid, &process);

	if (error)
		return error;
	*refusal_ret = open_memory(process, pid);
	if (*refusal_ret && kymo_live_thread(pid) != pid) {	/* the first thread has ended before the others */
		kymo_error_destroy(*refusal_ret);
		*refusal_ret = open_memory(process, kymo_live_thread(pid));
	}
	*ret = process;
	return NULL;
}

/* EI_CLASS and e_machine of the program. */
struct kymo_error *kymo_process_check_class(struct kymo_process *process)
{
	unsigned char ident[20];
	char name[64];
	kymo_cleanup_close int fd = -1;

	snprintf(name, sizeof(name), "/proc/%d/exe", kymo_live_thread(process->pid));
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "process %d has no program: it is a kernel thread, or it is ending",
					 process->pid);
	if (fd < 0)
		return kymo_error_errno(errno, "cannot read the program of process %d", process->pid);
	if (kymo_pread_all(fd, ident, sizeof(ident), 0) || memcmp(ident, "\177ELF", 4))
		return NULL;	/* binfmt_misc; the planner looks at the real files */
	if (ident[4] != 2 || ident[18] != 62)
		return kymo_error_create(KYMO_ERROR_BAD_DATA,
					 "process %d is not a 64-bit x86 program; kymo traces x86-64 programs only", process->pid);
	return NULL;
}

static struct kymo_error *is_traced(pid_t pid, pid_t by)
{
	char comm[16];
	const pid_t tracer = kymo_process_of(by, comm);

	return kymo_error_create(KYMO_ERROR_BUSY, "process %d is being traced by process %d (%s); let that one detach first", pid, tracer, comm);
}

/* Another kymo that comes or goes traces it for a moment. One that lets others in need not go. */
static struct kymo_error *outwait_kymo(pid_t pid, struct kymo_process_info *info, bool *can_join_ret)
{
	uint64_t deadline = kymo_now_ns() + OTHERS_PATIENCE_NS;
	struct kymo_error *error = NULL;

	*can_join_ret = false;
	while (!error && info->tracer && !(*can_join_ret = kymo_can_join(info->tracer)) && kymo_now_ns() < deadline) {
		struct kymo_process_info tracer;

		error = kymo_process_info(info->tracer, &tracer);
		if (!error && strcmp(tracer.comm, "kymo"))
			return NULL;
		kymo_error_destroy(error);
		nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
		error = kymo_process_info(pid, info);
	}
	return error;
}

static struct kymo_error *open_checked(pid_t pid, bool may_be_traced, struct kymo_process **ret)
{
	struct kymo_process *process = NULL;
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(pid, &info);
	bool may_join = may_be_traced;

	if (error)
		return error;
	pid = info.tgid;
	if (pid == getpid())
		return kymo_error_create(KYMO_ERROR_USAGE, "kymo cannot record itself");
	if ((info.state == 'Z' || info.state == 'X') && kymo_live_thread(pid) == pid)
		return kymo_error_create(KYMO_ERROR_GONE, "process %d has ended; its parent has not collected it yet", pid);
	if (info.tracer && !may_be_traced)
		error = outwait_kymo(pid, &info, &may_join);
	if (error)
		return error;
	if (info.tracer && !may_join)
		return is_traced(pid, info.tracer);
	if (info.shadow_stack)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "process %d has shadow stacks (CET), which kymo's pads do not serve yet", pid);
	error = kymo_process_create(pid, &process);
	if (!error)
		error = kymo_process_check_class(process);
	if (error) {
		kymo_process_destroy(process);
		return error;
	}
	*ret = process;
	return NULL;
}

struct kymo_error *kymo_process_open(pid_t pid, struct kymo_process **ret)
{
	return open_checked(pid, false, ret);
}

struct kymo_error *kymo_process_look(pid_t pid, struct kymo_process **ret)
{
	return open_checked(pid, true, ret);
}

void kymo_process_destroy(struct kymo_process *process)
{
	if (!process)
		return;
	if (process->remote.active)
		kymo_error_destroy(kymo_remote_end(process));
	if (process->tree)
		kymo_keep_release(process);
	else
		kymo_keep_leave(process);
	hub_holder_destroy(process->holder);
	if (process->memory >= 0)
		close(process->memory);
	close(process->pidfd);
	kymo_vec_deinit(&process->threads);
	free(process);
}

pid_t kymo_process_pid(const struct kymo_process *process)
{
	return process->pid;
}

bool kymo_process_is_at_own_hub(const struct kymo_process *process)
{
	return process->tree;
}

int kymo_process_pidfd(const struct kymo_process *process)
{
	return process->pidfd;
}

bool kymo_process_ended(struct kymo_process *process, int *status_ret)
{
	struct pollfd ended = { .fd = process->pidfd, .events = POLLIN };

	if (process->tree)
		kymo_keep_look(process);
	if (process->tree || process->is_past) {	/* stops are told by the same waitpid() as the end, and are not to be lost */
		*status_ret = process->status;
		return process->is_past;
	}
	kymo_keep_serve(process);
	if (process->launched && !process->reaped)
		process->reaped = hub_launched_ended(process->holder->hub, process->pid, &process->status);
	if (process->launched) {
		if (process->reaped)
			*status_ret = process->status;
		return process->reaped;
	}
	*status_ret = 0;
	return poll(&ended, 1, 0) > 0;
}

void kymo_process_kill(struct kymo_process *process)
{
	int status;

	kill(process->pid, SIGKILL);
	kymo_process_resume(process);
	for (unsigned int spins = 0; !kymo_process_ended(process, &status); spins++) {
		if (process->tree && kymo_tree_pump(process->tree))
			spins = 0;
		kymo_wait_a_little(spins);
	}
}

int kymo_process_read(struct kymo_process *process, uint64_t address, void *data, size_t size)
{
	return kymo_pread_all(process->memory, data, size, (off_t)address);
}

/* A hub writes to what the process has now. If that has executed something since it was opened here, what is read here is gone. */
static int write_through_hub(struct kymo_process *process, uint64_t address, const void *data, size_t size)
{
	uint8_t first;
	int err = size ? kymo_process_read(process, address, &first, sizeof(first)) : 0;

	return err ? err : kymo_joined_write(process->joined, address, data, size);
}

int kymo_process_write(struct kymo_process *process, uint64_t address, const void *data, size_t size)
{
	return process->joined && kymo_joined_writes(process->joined) ? write_through_hub(process, address, data, size) : kymo_pwrite_all(process->memory, data, size, (off_t)address);
}

bool kymo_process_is_past(const struct kymo_process *process)
{
	return process->is_past;
}
