#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/process.h"

#define STATUS_LIMIT (1u << 20)
#define LOOKED_AT 64	/* threads, for one that is awake */
#define PF_KTHREAD 0x00200000u	/* of the flags in stat */

static long field(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? strtol(at + strlen(name), NULL, 10) : 0;
}

/* "pid (comm) state ppid …": comm may hold anything, so count from its last ')'. */
static bool parse_stat(const char *stat, struct kymo_process_info *ret)
{
	const char *at = strrchr(stat, ')');
	unsigned int flags = 0;

	if (!at || sscanf(at + 1, " %c", &ret->state) != 1)
		return false;
	for (int i = 2; i < 22; i++) {
		at = strchr(at + 1, ' ');
		if (!at || (i == 8 && sscanf(at, " %u", &flags) != 1))
			return false;
	}
	ret->is_kernels = flags & PF_KTHREAD;
	return sscanf(at, " %" SCNu64, &ret->start_time) == 1;
}

static bool has_shadow_stack(const char *status)
{
	const char *features = strstr(status, "\nx86_Thread_features:"), *found = features ? strstr(features, "shstk") : NULL;

	return found && found < strchrnul(features + 1, '\n');
}

/* The last number of "NSpid:	4242	17". */
static pid_t inner_pid(const char *status, pid_t pid)
{
	const char *at = strstr(status, "\nNSpid:"), *end, *last;

	if (!at)
		return pid;
	end = strchrnul(at + 1, '\n');
	for (last = end; last > at && last[-1] != '\t' && last[-1] != ' '; last--)
		;
	return (pid_t)strtol(last, NULL, 10);
}

struct kymo_error *kymo_process_info(pid_t pid, struct kymo_process_info *ret)
{
	kymo_cleanup_free char *status = NULL, *stat = NULL;
	struct kymo_process_info info = { .tgid = 0 };
	char name[64], *end;
	const char *comm;
	int err;

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	err = kymo_read_file(AT_FDCWD, name, STATUS_LIMIT, &status, NULL);
	if (!err) {
		snprintf(name, sizeof(name), "/proc/%d/stat", pid);
		err = kymo_read_file(AT_FDCWD, name, STATUS_LIMIT, &stat, NULL);
	}
	if (err == -ENOENT || err == -ESRCH)
		return kymo_error_create(KYMO_ERROR_GONE, "there is no process %d", pid);
	if (err)
		return kymo_error_errno(err, "cannot read %s", name);
	if (!parse_stat(stat, &info))
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is not as expected", name);
	comm = strchr(stat, '(');
	snprintf(info.comm, sizeof(info.comm), "%s", comm ? comm + 1 : "");
	end = strrchr(info.comm, ')');
	if (end)
		*end = '\0';
	info.tgid = (pid_t)field(status, "\nTgid:");
	info.tracer = (pid_t)field(status, "\nTracerPid:");
	info.seccomp = (unsigned int)field(status, "\nSeccomp:");
	info.shadow_stack = has_shadow_stack(status);
	info.inner_pid = inner_pid(status, pid);
	*ret = info;
	return NULL;
}

/* The first of its threads of which that is so, or 0. */
static pid_t find_thread(pid_t pid, bool (*is_it)(pid_t pid, pid_t tid))
{
	kymo_cleanup_closedir DIR *tasks = NULL;
	struct dirent *entry;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	tasks = opendir(name);
	while (tasks && (entry = readdir(tasks))) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && is_it(pid, tid))
			return tid;
	}
	return 0;
}

bool kymo_process_peek(pid_t pid, struct kymo_process_info *ret)
{
	struct kymo_error *error = kymo_process_info(pid, ret);
	bool is_there = !error;

	kymo_error_destroy(error);
	return is_there;
}

pid_t kymo_inner_tid(pid_t tid)
{
	struct kymo_process_info info;

	return kymo_process_peek(tid, &info) ? info.inner_pid : tid;
}

static bool is_living(pid_t pid, pid_t tid)
{
	struct kymo_process_info info;

	return kymo_process_peek(tid, &info) && info.state != 'Z' && info.state != 'X';
}

pid_t kymo_live_thread(pid_t pid)
{
	const pid_t found = is_living(pid, pid) ? pid : find_thread(pid, is_living);

	return found ? found : pid;
}

pid_t kymo_other_tracer(pid_t tid)
{
	struct kymo_process_info info;

	return kymo_process_peek(tid, &info) && info.tracer != gettid() ? info.tracer : 0;
}

static bool is_anothers(pid_t pid, pid_t tid)
{
	return kymo_other_tracer(tid);
}

pid_t kymo_traced_thread(pid_t pid)
{
	const pid_t found = find_thread(pid, is_anothers);

	return found ? found : pid;
}

static bool is_awake(pid_t pid, pid_t tid)
{
	kymo_cleanup_free char *call = NULL;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task/%d/syscall", pid, tid);
	return !kymo_read_file(AT_FDCWD, name, 4096, &call, NULL) && (*call < '0' || *call > '9');	/* "running", or "-1": in none */
}

bool kymo_is_anyone_awake(pid_t pid)
{
	return find_thread(pid, is_awake) != 0;
}

/* By the call that it sleeps in; running, and stopped ones are in none. */
static enum kymo_remote_sleep sleep_of(pid_t pid, pid_t tid)
{
	kymo_cleanup_free char *line = NULL;
	int64_t number;
	uint64_t args[6];
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task/%d/syscall", pid, tid);
	if (kymo_read_file(AT_FDCWD, name, 4096, &line, NULL))
		return KYMO_REMOTE_SLEEPS_ONCE;
	if (sscanf(line, "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64, &number, &args[0], &args[1], &args[2],
		   &args[3], &args[4], &args[5]) != 7)
		return KYMO_REMOTE_AWAKE;
	return kymo_remote_sleep_in(number, args);
}

pid_t kymo_thread_rather_than(pid_t pid, enum kymo_remote_sleep best, const struct kymo_process *held)
{
	kymo_cleanup_closedir DIR *tasks = NULL;
	const struct dirent *entry;
	enum kymo_remote_sleep sleep;
	pid_t found = 0;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	tasks = best == KYMO_REMOTE_AWAKE ? NULL : opendir(name);
	for (int i = 0; tasks && best != KYMO_REMOTE_AWAKE && i < LOOKED_AT && (entry = readdir(tasks)); i++) {
		const pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid <= 0 || (held && kymo_find_thread(held, tid)))
			continue;
		sleep = sleep_of(pid, tid);
		if (sleep >= best)
			continue;
		best = sleep;
		found = tid;
	}
	return found;
}

pid_t kymo_thread_to_borrow(pid_t pid)
{
	pid_t found = kymo_thread_rather_than(pid, sleep_of(pid, pid), NULL);

	return found ? found : pid;
}

size_t kymo_count_threads(pid_t pid)
{
	struct stat tasks;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return stat(path, &tasks) || tasks.st_nlink < 2 /* of a directory */ ? 0 : tasks.st_nlink - 2;
}

void kymo_read_comm(pid_t tid, char ret[16])
{
	kymo_cleanup_close int fd = -1;
	char name[32];
	ssize_t n;

	ret[0] = '\0';
	snprintf(name, sizeof(name), "/proc/%d/comm", tid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, ret, 15);
	ret[n < 0 ? 0 : n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

pid_t kymo_process_of(pid_t tid, char comm_ret[16])
{
	struct kymo_process_info info;
	const pid_t pid = kymo_process_peek(tid, &info) ? info.tgid : tid;

	if (comm_ret)
		kymo_read_comm(pid, comm_ret);
	return pid;
}
