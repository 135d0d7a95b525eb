#include "procfs/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"
#include "procfs/info.h"
#include "procfs/pidns.h"

/* All but the memory. */
static struct kymo_error *watch_memory(pid_t pid, struct kymo_memory *ret)
{
	struct kymo_error *error = kymo_proc_check();
	int pidfd;

	if (error)
		return error;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (pidfd < 0)
		return errno == ESRCH ? kymo_error_create(KYMO_ERROR_GONE, "there is no process %d", pid)
				      : kymo_error_errno(errno, "cannot watch process %d", pid);
	*ret = (struct kymo_memory){ .pidfd = pidfd, .fd = -1 };
	return NULL;
}

static bool has_ended(const struct kymo_memory *memory)
{
	struct pollfd ended = { .fd = memory->pidfd, .events = POLLIN };

	return poll(&ended, 1, 0) != 0;
}

static struct kymo_error *open_memory(struct kymo_memory *memory, pid_t pid, pid_t thread)
{
	struct kymo_process_info info;
	char name[64];
	int err;

	snprintf(name, sizeof(name), "/proc/%d/mem", thread);
	memory->fd = open(name, O_RDWR | O_CLOEXEC);
	if (memory->fd >= 0 && !has_ended(memory))
		return NULL;
	if (memory->fd >= 0) { /* the id may be another process' by now, and so the memory */
		close(memory->fd);
		memory->fd = -1;
		return kymo_error_create(KYMO_ERROR_GONE, "process %d has ended", pid);
	}
	err = errno;
	if (err == ESRCH) /* it has no memory */
		return kymo_process_peek(pid, &info) && info.is_kernels
			       ? kymo_error_create(KYMO_ERROR_BAD_DATA,
						   "process %d (%s) is a kernel thread, which has no memory", pid,
						   info.comm)
			       : kymo_error_create(KYMO_ERROR_GONE, "process %d is ending", pid);
	if (err == EACCES || err == EPERM)
		return kymo_error_create(
			KYMO_ERROR_PERMISSION,
			"process %d does not let you trace it: it runs as another user, with more "
			"rights than you, or protects itself (PR_SET_DUMPABLE)%s",
			pid, geteuid() ? "; try as root" : ". Root lacks CAP_SYS_PTRACE here, as in most containers");
	return kymo_error_errno(err, "cannot open the memory of process %d", pid);
}

struct kymo_error *kymo_memory_init(pid_t pid, struct kymo_memory *ret)
{
	struct kymo_memory memory;
	struct kymo_error *error = watch_memory(pid, &memory);

	if (error)
		return error;
	error = open_memory(&memory, pid, kymo_live_thread(pid));
	if (error)
		kymo_memory_deinit(&memory);
	else
		*ret = memory;
	return error;
}

struct kymo_error *kymo_memory_init_held(pid_t pid, struct kymo_memory *ret, struct kymo_error **refusal_ret)
{
	struct kymo_error *error = watch_memory(pid, ret);

	if (error)
		return error;
	*refusal_ret = open_memory(ret, pid, pid);
	if (*refusal_ret && kymo_live_thread(pid) != pid) { /* the first thread has ended before the others */
		kymo_error_destroy(*refusal_ret);
		*refusal_ret = open_memory(ret, pid, kymo_live_thread(pid));
	}
	return NULL;
}

void kymo_memory_deinit(struct kymo_memory *memory)
{
	if (memory->fd >= 0)
		close(memory->fd);
	close(memory->pidfd);
}

int kymo_memory_read(const struct kymo_memory *memory, uint64_t address, void *data, size_t size)
{
	return kymo_pread_all(memory->fd, data, size, (off_t)address);
}

int kymo_memory_write(const struct kymo_memory *memory, uint64_t address, const void *data, size_t size)
{
	return kymo_pwrite_all(memory->fd, data, size, (off_t)address);
}
