/*
 * How a client proves that it may trace a thread. It opens /proc/TID/mem for writing, which the kernel allows to
 * processes that may attach to TID: credentials, capabilities, user namespaces, dumpability, Yama and other security
 * modules are checked. It sends the descriptor to the hub.
 *
 * The hub checks that this is the file of the memory that the thread has now. A descriptor that was opened before an
 * exec is of the former memory, and has the same inode.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "hub/remote/proof.h"
#include "hub/thread/task.h"
#include "procfs/info.h"

#define RANDOM_SIZE 16 /* bytes at AT_RANDOM */
#define AUXV_WORDS 128
#define STATUS_MAX 65536

static int open_memory(pid_t tid, int flags)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", kymo_live_thread(tid));
	fd = open(name, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A descriptor opened with O_PATH was not asked about by the kernel. */
static bool is_for_writing(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) == O_RDWR && !(flags & O_PATH);
}

/* Asks no file system: that of another user's descriptor may be a program (FUSE) that never answers. */
static bool is_same_inode(int a, int b)
{
	struct statx of_a, of_b;

	return !statx(a, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &of_a) &&
	       !statx(b, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &of_b) &&
	       of_a.stx_dev_major == of_b.stx_dev_major && of_a.stx_dev_minor == of_b.stx_dev_minor &&
	       of_a.stx_ino == of_b.stx_ino;
}

/* "/TID/mem", whatever the mount's name is before it. */
static bool mem_file_name(int fd, char *name, size_t size)
{
	char link[64], path[PATH_MAX];
	ssize_t n;
	char *at;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return false;
	path[n] = '\0';
	at = strrchr(path, '/');
	while (at && at > path && *--at != '/')
		;
	return at && (size_t)snprintf(name, size, "%s", at) < size;
}

/* Inodes of procfs have numbers of 32 bits, which come again: the name says whose it is. */
static bool is_same_file(int a, int b)
{
	char of_a[64], of_b[64];

	return is_same_inode(a, b) && mem_file_name(a, of_a, sizeof(of_a)) && mem_file_name(b, of_b, sizeof(of_b)) &&
	       !strcmp(of_a, of_b);
}

/* From the kernel's copy, which an exec replaces. 0: there is none. A 32-bit program has words of half the size. */
static uint64_t address_of_random(pid_t tid)
{
	union {
		uint64_t wide[AUXV_WORDS];
		uint32_t narrow[2 * AUXV_WORDS];
	} auxv;
	kymo_cleanup_close int fd = -1;
	char name[64];
	ssize_t size;

	snprintf(name, sizeof(name), "/proc/%d/auxv", kymo_live_thread(tid));
	fd = open(name, O_RDONLY | O_CLOEXEC);
	memset(&auxv, 0, sizeof(auxv));
	size = fd < 0 ? -1 : read(fd, &auxv, sizeof(auxv));
	for (size_t i = 0; size > 0 && i + 1 < AUXV_WORDS; i += 2)
		if (auxv.wide[i] == AT_RANDOM)
			return auxv.wide[i + 1];
	for (size_t i = 0; size > 0 && i + 1 < 2u * AUXV_WORDS; i += 2)
		if (auxv.narrow[i] == AT_RANDOM)
			return auxv.narrow[i + 1];
	return 0;
}

static bool read_random(int fd, uint64_t address, uint8_t *ret)
{
	return !kymo_pread_all(fd, ret, RANDOM_SIZE, (off_t)address);
}

/*
 * Each exec gives a process 16 random bytes that no other program knows; the memory of before is gone, or another
 * process' (vfork). A forked child has its parent's bytes, but another file.
 */
static int check_memory(int fd, int own, pid_t tid)
{
	static const uint8_t wiped[RANDOM_SIZE];
	uint8_t theirs[RANDOM_SIZE], ours[RANDOM_SIZE];
	uint64_t address = address_of_random(tid);

	if (!address)
		return -EPERM;
	if (!read_random(own, address, ours))
		return -EAGAIN;
	return read_random(fd, address, theirs) && !memcmp(theirs, ours, sizeof(ours)) &&
			       memcmp(ours, wiped, sizeof(ours)) != 0
		       ? 0
		       : -EPERM;
}

int hub_proof_check(int fd, pid_t tid, int memory)
{
	kymo_cleanup_close int own = open_memory(tid, O_RDONLY);

	if (own == -ENOENT || own == -ESRCH)
		return -ESRCH;
	if (own < 0 || fd < 0 || !is_for_writing(fd) || !is_same_file(fd, own))
		return -EPERM;
	return check_memory(fd, memory < 0 ? own : memory, tid);
}

int hub_proof_check_guest(int fd, struct hub_process *process, pid_t tid)
{
	const struct hub_memory *memory = hub_memory_of(process);

	return memory && memory->opened.fd >= 0 ? hub_proof_check(fd, tid, memory->opened.fd) : -EPERM;
}

/* ---- at the client --------------------------------------------------------------------------- */

static bool is_traced_by(pid_t tid, pid_t hub)
{
	struct kymo_process_info info;

	if (!kymo_process_peek(tid, &info))
		return false;
	return info.tracer == hub || (kymo_process_peek(kymo_traced_thread(info.tgid), &info) && info.tracer == hub);
}

struct rights {
	unsigned int uid[3], gid[3]; /* real, effective, saved */
	uint64_t permitted, effective;
	struct stat namespace;
};

static bool get_rights(pid_t tid, struct rights *ret)
{
	kymo_cleanup_free char *status = NULL;
	const char *uid, *gid, *permitted, *effective;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/ns/user", tid);
	if (stat(name, &ret->namespace))
		return false;
	snprintf(name, sizeof(name), "/proc/%d/status", tid);
	if (kymo_read_file(AT_FDCWD, name, STATUS_MAX, &status, NULL))
		return false;
	uid = strstr(status, "\nUid:");
	gid = strstr(status, "\nGid:");
	permitted = strstr(status, "\nCapPrm:");
	effective = strstr(status, "\nCapEff:");
	return uid && gid && permitted && effective &&
	       sscanf(uid, "\nUid: %u %u %u", &ret->uid[0], &ret->uid[1], &ret->uid[2]) == 3 &&
	       sscanf(gid, "\nGid: %u %u %u", &ret->gid[0], &ret->gid[1], &ret->gid[2]) == 3 &&
	       sscanf(permitted, "\nCapPrm: %" SCNx64, &ret->permitted) == 1 &&
	       sscanf(effective, "\nCapEff: %" SCNx64, &ret->effective) == 1;
}

/* Whether the kernel would let the hub trace us: then it has what we have. */
static bool may_as_much(pid_t hub)
{
	struct rights theirs, ours;

	return get_rights(hub, &theirs) && get_rights(gettid(), &ours) &&
	       !memcmp(theirs.uid, ours.uid, sizeof(ours.uid)) && !memcmp(theirs.gid, ours.gid, sizeof(ours.gid)) &&
	       !(ours.permitted & ~theirs.effective) && theirs.namespace.st_dev == ours.namespace.st_dev &&
	       theirs.namespace.st_ino == ours.namespace.st_ino;
}

/*
 * The id may come from a hub that may less than we, and be another process' in the next moment. That is why the
 * memory is looked at last: what it has now it had all the time, so the process that was traced meanwhile is the one
 * that was opened.
 */
static bool is_no_gift(int fd, pid_t tid, pid_t hub, bool may_be_untraced)
{
	return is_traced_by(tid, hub) ? !hub_proof_check(fd, tid, -1) : may_be_untraced && may_as_much(hub);
}

int hub_proof_open(pid_t tid, pid_t hub, bool may_be_untraced)
{
	int fd = open_memory(tid, O_RDWR);

	if (fd < 0 || is_no_gift(fd, tid, hub, may_be_untraced))
		return fd;
	close(fd);
	return -EPERM;
}
