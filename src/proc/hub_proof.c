/*
 * The kernel is the judge: it opens /proc/TID/mem for writing only for a process that may attach to TID (credentials, capabilities, user namespaces, dumpability, Yama and other security
 * modules). The hub has to see that it is really that file, and of today's memory: a descriptor that was opened before an exec is of the former one, and has the same inode.
 */
#include "proc/hub_proof.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/proc.h"

#define RANDOM_SIZE 16		/* bytes at AT_RANDOM */
#define AUXV_WORDS 128

static int open_memory(pid_t tid, int flags)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", kymo_live_thread(tid));
	fd = open(name, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int hub_proof_open(pid_t tid)
{
	return open_memory(tid, O_RDWR);
}

/* A descriptor opened with O_PATH was not asked about by the kernel. */
static bool is_for_writing(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && (flags & O_ACCMODE) == O_RDWR && !(flags & O_PATH);
}

static bool is_same_file(int a, int b)
{
	struct stat of_a, of_b;

	return !fstat(a, &of_a) && !fstat(b, &of_b) && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
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

/* Each exec gives a process 16 random bytes that no other program knows. A forked child has its parent's, but another inode. */
static bool is_same_memory(int fd, int own, pid_t tid)
{
	static const uint8_t wiped[RANDOM_SIZE];
	uint8_t theirs[RANDOM_SIZE], ours[RANDOM_SIZE];
	uint64_t address = address_of_random(tid);

	return address && !kymo_pread_all(fd, theirs, sizeof(theirs), (off_t)address) && !kymo_pread_all(own, ours, sizeof(ours), (off_t)address) &&
	       !memcmp(theirs, ours, sizeof(ours)) && memcmp(ours, wiped, sizeof(ours)) != 0;
}

int hub_proof_check(int fd, pid_t tid)
{
	kymo_cleanup_close int own = open_memory(tid, O_RDONLY);

	if (own == -ENOENT || own == -ESRCH)
		return -ESRCH;
	if (own < 0 || fd < 0)
		return -EPERM;
	return is_for_writing(fd) && is_same_file(fd, own) && is_same_memory(fd, own, tid) ? 0 : -EPERM;
}
