/* What /proc says of a process. */
#ifndef KYMO_PROCFS_INFO_H
#define KYMO_PROCFS_INFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_process_info {
	char comm[32];
	pid_t tgid, parent;
	pid_t tracer;         /* 0: none */
	unsigned int seccomp; /* 0 none, 1 strict, 2 filter; of this thread, if `pid` was one */
	bool shadow_stack;    /* likewise */
	bool is_kernels;      /* a thread of the kernel */
	pid_t inner_pid;      /* as it knows itself in its own pid namespace */
	uint64_t start_time;  /* field 22 of stat: pid and this identify a process uniquely */
	uint64_t caught;      /* signals that have a handler: 1 << (number - 1) */
	uint64_t ignored;
	uint64_t blocked; /* by this thread */
	uint64_t locked;  /* bytes of mappings that are locked; UINT64_MAX: that is not told */
	char state;
};

/* GONE, PERMISSION. */
struct kymo_error *kymo_process_info(pid_t pid, struct kymo_process_info *ret);

/* The same where the reason does not matter: false. */
bool kymo_process_peek(pid_t pid, struct kymo_process_info *ret);

/* Whether there is such a process or thread, as far as /proc tells. */
bool kymo_process_exists(pid_t tid);

/* Whether both processes have the same memory: 0, or another number where they do not. Below 0: the kernel does not
 * tell. */
int kymo_compare_memory(pid_t a, pid_t b);

/* What /proc/PID/status has of that: ids, tracer, seccomp, shadow stack, signals, locked memory. */
bool kymo_process_peek_status(pid_t pid, struct kymo_process_info *ret);

/* A number of the text of /proc/PID/status, by the name of its line: "\nSigCgt:"; 0 where there is none. */
uint64_t kymo_status_hex(const char *status, const char *name);

/* What a process or thread is called by itself: another number, where it is in a container. `tid` where that can't be
 * read. */
pid_t kymo_inner_tid(pid_t tid);

/* A thread of the process that has its memory still: the first one, or, where that has ended before the others
 * (pthread_exit in main), another. */
pid_t kymo_live_thread(pid_t pid);

/* How many threads a process has; 0: there is no such process. */
size_t kymo_count_threads(pid_t pid);

/* The process that a thread is of, and its name (NULL: not wanted); `tid` and "" if that is not available. TracerPid in
 * /proc is the id of a thread, which ps(1) does not show. */
pid_t kymo_process_of(pid_t tid, char comm_ret[16]);

/* The name of a thread, also of one that has ended and was not waited for; "" if it is not available. */
void kymo_read_comm(pid_t tid, char ret[16]);

/* The first thread of a process that has a tracer other than the caller; `pid` where none is. */
pid_t kymo_traced_thread(pid_t pid);

/* Whether some thread of `pid` is not asleep in a system call, as far as /proc tells; false too where there is no such
 * process. */
bool kymo_has_awake_thread(pid_t pid);

/* The tracer of the thread, if it is not the caller; 0: not traced. */
pid_t kymo_other_tracer(pid_t tid);

#endif
