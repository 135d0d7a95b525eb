#include "procfs/info.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/kcmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "procfs/threads.h"

#define STATUS_LIMIT (1u << 20)
#define PF_KTHREAD 0x00200000u /* of the flags in stat */

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
	const char *features = strstr(status, "\nx86_Thread_features:"),
		   *found = features ? strstr(features, "shstk") : NULL;

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

uint64_t kymo_status_hex(const char *status, const char *name)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, 16) : 0;
}

static uint64_t locked(const char *status)
{
	const char *at = strstr(status, "\nVmLck:");

	return at ? strtoull(at + strlen("\nVmLck:"), NULL, 10) << 10 : UINT64_MAX;
}

static void parse_status(pid_t pid, const char *status, struct kymo_process_info *ret)
{
	ret->tgid = (pid_t)field(status, "\nTgid:");
	ret->parent = (pid_t)field(status, "\nPPid:");
	ret->tracer = (pid_t)field(status, "\nTracerPid:");
	ret->seccomp = (unsigned int)field(status, "\nSeccomp:");
	ret->shadow_stack = has_shadow_stack(status);
	ret->inner_pid = inner_pid(status, pid);
	ret->caught = kymo_status_hex(status, "\nSigCgt:");
	ret->ignored = kymo_status_hex(status, "\nSigIgn:");
	ret->blocked = kymo_status_hex(status, "\nSigBlk:");
	ret->locked = locked(status);
}

static int read_status(pid_t pid, char **ret)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/status", pid);
	return kymo_read_file(AT_FDCWD, name, STATUS_LIMIT, ret, NULL);
}

bool kymo_process_peek_status(pid_t pid, struct kymo_process_info *ret)
{
	kymo_cleanup_free char *status = NULL;

	*ret = (struct kymo_process_info){ .tgid = 0 };
	if (read_status(pid, &status))
		return false;
	parse_status(pid, status, ret);
	return true;
}

struct kymo_error *kymo_process_info(pid_t pid, struct kymo_process_info *ret)
{
	kymo_cleanup_free char *status = NULL, *stat = NULL;
	struct kymo_process_info info = { .tgid = 0 };
	char name[64], *end;
	const char *comm;
	int err;

	err = read_status(pid, &status);
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
	parse_status(pid, status, &info);
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

bool kymo_process_exists(pid_t tid)
{
	struct kymo_process_info info;

	return kymo_process_peek(tid, &info);
}

int kymo_compare_memory(pid_t a, pid_t b)
{
	return (int)syscall(SYS_kcmp, a, b, KCMP_VM, 0, 0);
}

pid_t kymo_inner_tid(pid_t tid)
{
	struct kymo_process_info info;

	return kymo_process_peek_status(tid, &info) ? info.inner_pid : tid;
}

static bool is_living(pid_t pid, pid_t tid)
{
	const char state = kymo_thread_state(pid, tid);

	return state != 'Z' && state != 'X';
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

static bool has_other_tracer(pid_t pid, pid_t tid)
{
	return kymo_other_tracer(tid);
}

pid_t kymo_traced_thread(pid_t pid)
{
	const pid_t found = find_thread(pid, has_other_tracer);

	return found ? found : pid;
}

static bool is_awake(pid_t pid, pid_t tid)
{
	kymo_cleanup_free char *call = NULL;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task/%d/syscall", pid, tid);
	return !kymo_read_file(AT_FDCWD, name, 4096, &call, NULL) &&
	       (*call < '0' || *call > '9'); /* "running", or "-1": in none */
}

bool kymo_has_awake_thread(pid_t pid)
{
	return find_thread(pid, is_awake) != 0;
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
