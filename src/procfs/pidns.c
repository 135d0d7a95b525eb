/*
 * Process ids across PID namespaces. /proc may be that of a namespace above our own (a container without a /proc of its
 * own): its status files have an id for each namespace from there down to the thread's (NSpid of proc(5)). This
 * process' own file has as many as there are down to it.
 */
#include "procfs/pidns.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define STATUS_LIMIT 65536
#define OWN "\nNSpid:"
#define OF_GROUP "\nNSpgid:"
#define FIRST_NAMESPACE 0xeffffffc /* PROC_PID_INIT_INO of include/linux/proc_ns.h */
#define DEPTH_MAX 33               /* MAX_PID_NS_LEVEL of the kernel, and the first one */

/* Its ids, or those of its group (NSpgid), from the namespace of /proc to its own; how many, 0 where it is gone. */
static size_t read_ids(const char *path, const char *key, pid_t ids[DEPTH_MAX])
{
	kymo_cleanup_free char *status = NULL;
	const char *at;
	char *end;
	size_t n = 0;

	if (kymo_read_file(AT_FDCWD, path, STATUS_LIMIT, &status, NULL))
		return 0;
	at = strstr(status, key);
	for (at = at ? at + strlen(key) : ""; *at == '\t' && n < DEPTH_MAX; at = end)
		ids[n++] = (pid_t)strtol(at + 1, &end, 10);
	return n;
}

/* Ids below that of /proc, or no process of our id at all: /proc is that of a namespace above or beside our own. */
static bool is_proc_of_others(void)
{
	pid_t ids[DEPTH_MAX];
	const size_t depth = read_ids("/proc/self/status", OWN, ids);

	return depth > 1 || (!depth && access("/proc/stat", F_OK) == 0 && access("/proc/self", F_OK) != 0);
}

struct kymo_error *kymo_proc_check(void)
{
	static _Atomic(int) known; /* 1: ours, 2: another's */

	if (!known)
		known = is_proc_of_others() ? 2 : 1;
	if (known == 1)
		return NULL;
	return kymo_error_create(KYMO_ERROR_FAILED,
				 "/proc shows another PID namespace, where process ids mean other processes; "
				 "mount that of this one first: mount -t proc proc /proc");
}

static bool read_namespace(pid_t process, struct stat *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", process);
	return !stat(path, ret);
}

uint64_t kymo_own_pidns(void)
{
	struct stat own;

	return stat("/proc/self/ns/pid", &own) ? 0 : own.st_ino;
}

static bool has_process_in(uint64_t inode)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	struct dirent *entry;
	struct stat space;

	while (processes && (entry = readdir(processes)))
		if (atoi(entry->d_name) > 0 && read_namespace(atoi(entry->d_name), &space) && space.st_ino == inode)
			return true;
	return false;
}

bool kymo_sees_pidns(uint64_t inode)
{
	const uint64_t own = kymo_own_pidns();

	return !own || own == FIRST_NAMESPACE || own == inode || has_process_in(inode);
}

static bool are_same_files(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev;
}

/* What is looked for: a thread that has the id `pid` by `key` in namespace `space`, or at `level` where that is NULL.
 */
struct search {
	const struct stat *space;
	const char *key;
	size_t level;
	pid_t pid;
	pid_t process, ids[DEPTH_MAX]; /* what was found: its process as /proc has it, its ids */
	size_t n;
};

static bool is_searched_namespace(struct search *search, const char *path)
{
	search->n = read_ids(path, search->key, search->ids);
	if (search->space)
		return search->n && search->ids[search->n - 1] == search->pid;
	return search->n > search->level && search->ids[search->level] == search->pid;
}

static bool find_thread_in(struct search *search, pid_t process)
{
	kymo_cleanup_closedir DIR *tasks = NULL;
	struct dirent *entry;
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/task", process);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%d/status", process, atoi(entry->d_name));
		if (atoi(entry->d_name) > 0 && is_searched_namespace(search, path)) {
			search->process = process;
			return true;
		}
	}
	return false;
}

static bool find_namespace(struct search *search)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	struct dirent *entry;
	struct stat space;

	while (processes && (entry = readdir(processes))) {
		const pid_t process = atoi(entry->d_name);

		if (process <= 0 ||
		    (search->space && (!read_namespace(process, &space) || !are_same_files(&space, search->space))))
			continue;
		if (find_thread_in(search, process))
			return true;
	}
	return false;
}

static pid_t find_here(pid_t tid, pid_t pid, const char *key)
{
	struct search caller = { .pid = tid, .key = OWN }, wanted = { .pid = pid, .key = key };
	pid_t own[DEPTH_MAX];
	const size_t depth = read_ids("/proc/self/status", OWN, own);
	struct stat own_space, space;

	if (!depth || stat("/proc/self/ns/pid", &own_space))
		return 0;
	caller.level = depth - 1;
	caller.process = tid;
	if (depth > 1 && !find_namespace(&caller))
		return 0;
	if (!read_namespace(caller.process, &space))
		return 0;
	if (are_same_files(&own_space, &space))
		return pid;
	wanted.space = &space;
	return find_namespace(&wanted) && wanted.n >= depth ? wanted.ids[depth - 1] : 0;
}

pid_t kymo_pid_there(pid_t process, pid_t pid)
{
	pid_t theirs[DEPTH_MAX], ids[DEPTH_MAX];
	char path[64];
	size_t level, n;

	snprintf(path, sizeof(path), "/proc/%d/status", process);
	level = read_ids(path, OWN, theirs);
	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	n = read_ids(path, OWN, ids);
	return level && level <= n ? ids[level - 1] : 0;
}

pid_t kymo_pid_here(pid_t tid, pid_t pid)
{
	return find_here(tid, pid, OWN);
}

pid_t kymo_group_here(pid_t tid, pid_t group)
{
	return find_here(tid, group, OF_GROUP);
}
