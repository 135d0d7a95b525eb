/* Which process may trace which: the rules of ptrace(2), "Ptrace access mode checking". Where something can't be told,
 * it is refused. */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "nested/allow.h"
#include "procfs/info.h"

#define STATUS_LIMIT (1u << 20)
#define DEPTH 256

static bool has_ids(const char *status, const char *name, unsigned int ids[3])
{
	const char *at = strstr(status, name);

	return at && sscanf(at + strlen(name), "%u %u %u", &ids[0], &ids[1], &ids[2]) == 3;
}

bool inner_read_status(pid_t tid, struct inner_status *ret)
{
	kymo_cleanup_free char *status = NULL;
	struct inner_status read = { .parent = 0 };
	const char *at;
	char name[64];
	int a, b;

	snprintf(name, sizeof(name), "/proc/%d/status", tid);
	if (kymo_read_file(AT_FDCWD, name, STATUS_LIMIT, &status, NULL) || !has_ids(status, "\nUid:", read.uid) ||
	    !has_ids(status, "\nGid:", read.gid))
		return false;
	at = strstr(status, "\nPPid:");
	read.parent = at ? (pid_t)strtol(at + 6, NULL, 10) : 0;
	at = strstr(status, "\nNSpid:");
	read.is_nested = at && sscanf(at + 7, "%d%*[ \t]%d", &a, &b) > 1;
	read.pending = kymo_status_hex(status, "\nSigPnd:") | kymo_status_hex(status, "\nShdPnd:");
	read.blocked = kymo_status_hex(status, "\nSigBlk:");
	read.ignored = kymo_status_hex(status, "\nSigIgn:");
	read.permitted = kymo_status_hex(status, "\nCapPrm:");
	read.effective = kymo_status_hex(status, "\nCapEff:");
	*ret = read;
	return true;
}

static bool is_same_user_namespace(pid_t a, pid_t b)
{
	struct stat of_a, of_b;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/ns/user", a);
	if (stat(name, &of_a))
		return false;
	snprintf(name, sizeof(name), "/proc/%d/ns/user", b);
	return !stat(name, &of_b) && of_a.st_ino == of_b.st_ino && of_a.st_dev == of_b.st_dev;
}

/* Files in /proc/PID belong to root where the process does not let itself be dumped. */
static bool is_dumpable(pid_t tid, const struct inner_status *status)
{
	struct stat maps;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/maps", tid);
	return !stat(name, &maps) && maps.st_uid == status->uid[1];
}

static bool are_ids_same(const unsigned int wanted[3], unsigned int id)
{
	return wanted[0] == id && wanted[1] == id && wanted[2] == id;
}

static bool descends_from(pid_t tid, pid_t ancestor)
{
	struct inner_status status;

	for (int i = 0; i < DEPTH && inner_read_status(tid, &status) && status.parent > 0; i++) {
		if (status.parent == ancestor)
			return true;
		tid = status.parent;
	}
	return false;
}

/* What PR_SET_PTRACER has allowed is not known. */
static bool does_yama_allow(pid_t tracer, pid_t tid)
{
	kymo_cleanup_free char *scope = NULL;
	struct kymo_process_info info;

	if (kymo_read_file(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", 16, &scope, NULL) || atoi(scope) == 0)
		return true;
	if (atoi(scope) > 1)
		return false;
	return kymo_process_peek(tracer, &info) && descends_from(tid, info.tgid);
}

bool inner_may_trace(pid_t tracer, pid_t tid)
{
	struct inner_status from, to;

	if (!inner_read_status(tracer, &from) || !inner_read_status(tid, &to) || from.is_nested || to.is_nested ||
	    !is_same_user_namespace(tracer, tid))
		return false;
	if (from.effective & 1ull << CAP_SYS_PTRACE)
		return true;
	return are_ids_same(to.uid, from.uid[0]) && are_ids_same(to.gid, from.gid[0]) && is_dumpable(tid, &to) &&
	       !(to.permitted & ~from.permitted) && does_yama_allow(tracer, tid);
}
