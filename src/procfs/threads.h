/* What /proc says of the threads of a process. */
#ifndef KYMO_PROCFS_THREADS_H
#define KYMO_PROCFS_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

/* A thread, as the kernel shows it to all users; and where it sleeps, for processes that may trace it. */
struct kymo_thread_info {
	pid_t tid;
	char comm[64];
	char state;          /* as proc(5) has it: R, S, D, T, t, Z, X, I, P */
	pid_t tracer;        /* the thread that traces it; 0: none */
	uint64_t start_time; /* tid and this identify a thread uniquely */
	uint64_t cpu_ns;     /* in steps of some milliseconds */
	bool may_look;       /* the rest is known */
	int64_t call;        /* number of the system call that it is stopped or asleep in; -1: none */
	char wchan[64];      /* function of the kernel that it sleeps in; "": none, or not told */
};

struct kymo_thread_infos {
	struct kymo_thread_info *items; /* sorted by tid */
	size_t n, cap;
};

/* All threads that process `pid` has, one after the other, so that some may have begun or ended meanwhile. GONE. */
struct kymo_error *kymo_thread_infos_read(pid_t pid, struct kymo_thread_infos *ret);
void kymo_thread_infos_deinit(struct kymo_thread_infos *threads);

/* The state of a thread, a character as in /proc/PID/stat; 'X': it is gone. */
char kymo_thread_state(pid_t pid, pid_t tid);

#endif
