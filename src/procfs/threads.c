#include "procfs/threads.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "procfs/pidns.h"

#define FILE_LIMIT (1u << 16)

/* A file of /proc/PID/task/TID; 0 or a negative errno. */
static int read_file(pid_t pid, pid_t tid, const char *name, char **ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
	return kymo_read_file(AT_FDCWD, path, FILE_LIMIT, ret, NULL);
}

/* "tid (comm) state ppid …": comm may hold anything, so fields count from its last ')'. */
static bool parse_stat(const char *stat, struct kymo_thread_info *ret)
{
	const char *comm = strchr(stat, '('), *end = strrchr(stat, ')'), *at = end;
	uint64_t user, kernel;

	if (!comm || !end || sscanf(end + 1, " %c", &ret->state) != 1)
		return false;
	snprintf(ret->comm, sizeof(ret->comm), "%.*s", (int)(end - comm - 1), comm + 1);
	for (int field = 2; field < 22; field++) {
		at = strchr(at + 1, ' ');
		if (!at || (field == 13 && sscanf(at, " %" SCNu64 " %" SCNu64, &user, &kernel) != 2))
			return false;
	}
	ret->cpu_ns = (user + kernel) * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	return sscanf(at, " %" SCNu64, &ret->start_time) == 1;
}

/* Numbers of system calls are those of 64-bit programs. */
static bool has_our_calls(pid_t pid)
{
	unsigned char ident[EI_NIDENT] = { 0 };
	kymo_cleanup_close int fd = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && !kymo_pread_all(fd, ident, sizeof(ident), 0) && ident[EI_CLASS] == ELFCLASS64;
}

/* The kernel tells where a thread sleeps to processes that may trace it. It refuses "syscall" to all others, and
 * "wchan" says "0".
 */
static void read_place(pid_t pid, bool knows_calls, struct kymo_thread_info *info)
{
	kymo_cleanup_free char *call = NULL, *place = NULL;
	const int err = read_file(pid, info->tid, "syscall", &call);

	info->call = -1;
	info->may_look = err != -EPERM && err != -EACCES;
	if (!err && knows_calls && *call >= '0' && *call <= '9')
		info->call = strtoll(call, NULL, 10);
	if (info->may_look && info->state != 'R' && !read_file(pid, info->tid, "wchan", &place) && strcmp(place, "0"))
		snprintf(info->wchan, sizeof(info->wchan), "%s", place);
}

/* 0, or a negative errno: the thread has ended. */
static int read_thread(pid_t pid, pid_t tid, bool knows_calls, struct kymo_thread_info *ret)
{
	kymo_cleanup_free char *stat = NULL, *status = NULL;
	struct kymo_thread_info info = { .tid = tid };
	const char *tracer;
	int err = read_file(pid, tid, "stat", &stat);

	if (!err)
		err = read_file(pid, tid, "status", &status);
	if (!err && !parse_stat(stat, &info))
		err = -EIO;
	if (err)
		return err;
	tracer = strstr(status, "\nTracerPid:");
	if (tracer)
		info.tracer = (pid_t)strtol(tracer + strlen("\nTracerPid:"), NULL, 10);
	read_place(pid, knows_calls, &info);
	*ret = info;
	return 0;
}

static int by_tid(const void *a, const void *b)
{
	const struct kymo_thread_info *one = a, *other = b;

	return (one->tid > other->tid) - (one->tid < other->tid);
}

struct kymo_error *kymo_thread_infos_read(pid_t pid, struct kymo_thread_infos *ret)
{
	kymo_cleanup_closedir DIR *directory = NULL;
	const bool knows_calls = has_our_calls(pid);
	struct kymo_thread_infos threads = { 0 };
	struct kymo_error *error = kymo_proc_check();
	struct dirent *entry;
	char path[64];

	if (error)
		return error;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	directory = opendir(path);
	if (!directory && errno != ENOENT && errno != ESRCH)
		return kymo_error_errno(errno, "cannot read %s", path);
	while (directory && (entry = readdir(directory))) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct kymo_thread_info info;

		if (tid <= 0 || read_thread(pid, tid, knows_calls, &info))
			continue;
		if (!kymo_vec_push(&threads, info)) {
			kymo_thread_infos_deinit(&threads);
			return &kymo_error_no_memory;
		}
	}
	if (!threads.n)
		return kymo_error_create(KYMO_ERROR_GONE, "there is no process %d", pid);
	qsort(threads.items, threads.n, sizeof(*threads.items), by_tid);
	*ret = threads;
	return NULL;
}

void kymo_thread_infos_deinit(struct kymo_thread_infos *threads)
{
	kymo_vec_deinit(threads);
}

char kymo_thread_state(pid_t pid, pid_t tid)
{
	kymo_cleanup_free char *stat = NULL;
	char name[64];
	const char *at;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", pid, tid);
	if (kymo_read_file(AT_FDCWD, name, 4096, &stat, NULL))
		return 'X';
	at = strrchr(stat, ')');
	return at && at[1] ? at[2] : 'X';
}
