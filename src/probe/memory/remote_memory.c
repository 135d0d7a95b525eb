/* Memory that a target makes for kymo, by remote calls. */
#include "probe/memory/remote_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "proc/batch.h"
#include "proc/call.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/info.h"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

#ifndef PIDFD_THREAD
#define PIDFD_THREAD O_EXCL /* Linux 6.9 */
#endif

struct kymo_error *kymo_remote_failed(const char *what, int64_t result)
{
	return kymo_error_errno((int)result, "the process could not %s", what);
}

struct kymo_error *kymo_remote_memfd(struct kymo_process *process, const char *name, int64_t *fd_ret)
{
	uint64_t scratch = kymo_remote_scratch(process);
	uint64_t args[6] = { scratch, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC };
	struct kymo_error *error;
	int err = kymo_process_write(process, scratch, name, strlen(name) + 1);

	if (err)
		return kymo_error_errno(err, "cannot write to the stack of the process");
	error = kymo_remote_syscall(process, SYS_memfd_create, args, fd_ret);
	if (!error && *fd_ret == -EINVAL) { /* before Linux 6.3 */
		args[1] = MFD_CLOEXEC | MFD_ALLOW_SEALING;
		error = kymo_remote_syscall(process, SYS_memfd_create, args, fd_ret);
	}
	if (!error && *fd_ret == -EACCES)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "a policy forbids executable memfds here (vm.memfd_noexec=2, or a security "
					 "module), and kymo's pads live in one");
	if (!error && *fd_ret < 0)
		error = kymo_remote_failed("make a memfd", *fd_ret);
	return error;
}

static bool has_name(int fd, const char *name)
{
	char link[64], want[64], to[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	snprintf(want, sizeof(want), "/memfd:%s (deleted)", name);
	n = readlink(link, to, sizeof(to));
	return n == (ssize_t)strlen(want) && !memcmp(to, want, strlen(want));
}

/* Made a moment ago by kymo_remote_memfd(), and not by the program. */
static bool is_fresh(int fd, const char *name, uint64_t *inode_ret)
{
	struct stat st;

	if (fstat(fd, &st))
		return false;
	*inode_ret = st.st_ino;
	return S_ISREG(st.st_mode) && !st.st_size && !st.st_blocks && !st.st_nlink && fcntl(fd, F_GET_SEALS) == 0 &&
	       has_name(fd, name);
}

/* A first thread that has ended has no descriptors any more, and the others do. Before Linux 6.9 a thread is nothing
 * that a pidfd can be of. */
static int get_descriptor(struct kymo_process *process, int remote)
{
	int fd = (int)syscall(SYS_pidfd_getfd, kymo_process_pidfd(process), remote, 0);
	pid_t pid = kymo_process_pid(process), thread = fd < 0 && errno == ESRCH ? kymo_live_thread(pid) : pid;
	kymo_cleanup_close int pidfd = thread != pid ? (int)syscall(SYS_pidfd_open, thread, PIDFD_THREAD) : -1;
	char name[64];

	if (thread == pid)
		return fd;
	fd = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, remote, 0);
	snprintf(name, sizeof(name), "/proc/%d/fd/%d", thread, remote);
	return fd < 0 ? open(name, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : fd;
}

struct kymo_error *kymo_take_memfd(struct kymo_process *process, const char *name, int64_t remote, int *fd_ret,
				   uint64_t *inode_ret)
{
	int fd = get_descriptor(process, (int)remote);
	uint64_t inode = 0;

	if (fd < 0)
		return kymo_error_errno(errno, "cannot take over the descriptor that process %d made",
					kymo_process_pid(process));
	if (!is_fresh(fd, name, &inode)) {
		close(fd);
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "process %d was made to create memory for kymo, and its descriptor %d is not "
					 "that memory; something answers system calls in its place",
					 kymo_process_pid(process), (int)remote);
	}
	*fd_ret = fd;
	*inode_ret = inode;
	return NULL;
}

struct kymo_batch_call kymo_remote_map_call(const struct kymo_remote_mapping *mapping)
{
	return (struct kymo_batch_call){ .number = SYS_mmap,
					 .args = { mapping->address, mapping->size, (uint64_t)mapping->protection,
						   (uint64_t)mapping->kind | MAP_FIXED_NOREPLACE, (uint64_t)mapping->fd,
						   mapping->offset } };
}

struct kymo_error *kymo_remote_map(struct kymo_process *process, const struct kymo_remote_mapping *mapping)
{
	struct kymo_batch_call call = kymo_remote_map_call(mapping);
	struct kymo_error *error = kymo_remote_calls(process, 0, &call, 1);

	return error ? error : kymo_remote_check_map(process, mapping, call.result);
}

struct kymo_error *kymo_remote_check_map(const struct kymo_process *process, const struct kymo_remote_mapping *mapping,
					 int64_t result)
{
	if (result == -EACCES || result == -EPERM)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "a policy forbids mapping executable memory in the process (a security "
					 "module, or a filesystem without exec)");
	if (result == -EAGAIN)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "process %d locks its memory (mlockall), and may not lock as much as kymo's "
					 "mappings have; raise its limit first: prlimit --pid %d --memlock=unlimited",
					 kymo_process_pid(process), kymo_process_pid(process));
	if (result < 0 && result > -4096)
		return kymo_remote_failed("map kymo's memory", result);
	if ((uint64_t)result != mapping->address)
		return kymo_error_create(KYMO_ERROR_FAILED, "the kernel mapped memory elsewhere than at 0x%" PRIx64,
					 mapping->address);
	return NULL;
}

void kymo_remote_unmap(struct kymo_process *process, const struct kymo_remote_mapping *mapping)
{
	uint64_t args[6] = { mapping->address, mapping->size };
	int64_t result;

	kymo_error_destroy(kymo_remote_syscall(process, SYS_munmap, args, &result));
}

struct kymo_error *kymo_remote_close(struct kymo_process *process, int64_t remote, struct kymo_error *error)
{
	return kymo_remote_close_both(process, 0, remote, -1, error);
}

struct kymo_error *kymo_remote_close_both(struct kymo_process *process, uint64_t code, int64_t one, int64_t other,
					  struct kymo_error *error)
{
	struct kymo_batch_call calls[2];
	struct kymo_error *closing;
	size_t n = 0;

	if (one >= 0)
		calls[n++] = (struct kymo_batch_call){ .number = SYS_close, .args = { (uint64_t)one } };
	if (other >= 0)
		calls[n++] = (struct kymo_batch_call){ .number = SYS_close, .args = { (uint64_t)other } };
	closing = kymo_remote_calls(process, code, calls, n);
	if (!closing && n == 2 && calls[1].result == -ECANCELED) /* the first one failed: it was closed already */
		closing = kymo_remote_syscall(process, SYS_close, calls[1].args, &calls[1].result);
	if (!error)
		return closing;
	kymo_error_destroy(closing);
	return error;
}

int kymo_allocate(int fd, uint64_t offset, uint64_t size)
{
	int err;

	do
		err = posix_fallocate(fd, (off_t)offset, (off_t)size);
	while (err == EINTR);
	return err;
}

/*
 * The file gets its size when it is mapped in the target: a target that locks its memory (mlockall) would else get all
 * of it at once. Then its size is final: a page cut off would be a SIGBUS for each process that touches it.
 */
struct kymo_error *kymo_give_size(int fd, uint64_t size)
{
	if (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return kymo_error_errno(errno, "cannot size the shared memory");
	return NULL;
}
