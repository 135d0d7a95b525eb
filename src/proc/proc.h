/*
 * Processes from outside: maps, memory, threads, and system calls executed in their name. The only caller of ptrace.
 *
 * A `struct kymo_process` is used from one thread, the one that created it (ptrace knows its tracer by thread). Destroying it lets go of
 * every thread, in the state in which the process had them.
 */
#ifndef KYMO_PROC_PROC_H
#define KYMO_PROC_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "arch/remote.h"
#include "base/error.h"

/* ---- maps ------------------------------------------------------------------------------------------------------- */

struct kymo_map {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	bool readable, writable, executable, shared;
	bool deleted;		/* the path ends in " (deleted)", which is cut off */
	char *path;		/* "" for anonymous memory; "[stack]", "/usr/bin/git" */
};

struct kymo_maps {
	struct kymo_map *items;	/* sorted by start */
	size_t n, cap;
};

/* Read /proc/PID/maps. GONE, PERMISSION. */
struct kymo_error *kymo_maps_read(pid_t pid, struct kymo_maps *ret);
void kymo_maps_deinit(struct kymo_maps *maps);

/* The mapping that contains `address`, or NULL. */
const struct kymo_map *kymo_maps_at(const struct kymo_maps *maps, uint64_t address);

/*
 * A page-aligned hole of `size` bytes such that all of it is within ±2 GiB (less a margin) of all of [low, high); 0 when there is none. Holes
 * just above the heap and just below a stack are left to them. The nearest below `low` is preferred.
 */
uint64_t kymo_maps_hole(const struct kymo_maps *maps, uint64_t low, uint64_t high, uint64_t size);

/* A hole of `size` bytes anywhere, or 0. */
uint64_t kymo_maps_hole_anywhere(const struct kymo_maps *maps, uint64_t size);

/* ---- what /proc says -------------------------------------------------------------------------------------------- */

struct kymo_process_info {
	char comm[32];
	pid_t tgid;
	pid_t tracer;			/* 0: nobody */
	unsigned int seccomp;		/* 0 none, 1 strict, 2 filter; of this thread, if `pid` was one */
	bool shadow_stack;		/* likewise */
	pid_t inner_pid;		/* as it knows itself in its own pid namespace */
	uint64_t start_time;		/* field 22 of stat: pid and this name a process for good */
	char state;
};

/* GONE, PERMISSION. */
struct kymo_error *kymo_process_info(pid_t pid, struct kymo_process_info *ret);

/* A thread of the process that has its memory still: the first one, or, where that has ended before the others (pthread_exit in main), another. */
pid_t kymo_live_thread(pid_t pid);

/* A descriptor of the file that `map` of process `pid` was mapped from: by /proc/PID/map_files where that is allowed, else through
 * /proc/PID/root, and then only if the inode is the same. NOT_FOUND with the reason ("was replaced since it was mapped"). */
struct kymo_error *kymo_open_mapped(pid_t pid, const struct kymo_map *map, int *fd_ret);

/* ---- a process -------------------------------------------------------------------------------------------------- */

struct kymo_process;

/*
 * Look at a running process; nothing is stopped or traced yet. GONE: no such process; PERMISSION with what to do; BUSY: it is traced already,
 * the tracer is named; BAD_DATA: a 32-bit program.
 */
struct kymo_error *kymo_process_open(pid_t pid, struct kymo_process **ret);

/* The same for reading only: a process that is being traced by somebody is fine. */
struct kymo_error *kymo_process_look(pid_t pid, struct kymo_process **ret);

/*
 * Start `argv` (looked up in PATH), stopped before its first instruction, traced. If kymo dies before kymo_process_resume(), the command runs on by itself.
 * NOT_FOUND, PERMISSION as execvp gives them.
 */
struct kymo_error *kymo_process_launch(char *const *argv, struct kymo_process **ret);

/* Let go of all threads (detached, running as the process had them) and free. NULL is allowed. */
void kymo_process_destroy(struct kymo_process *process);

pid_t kymo_process_pid(const struct kymo_process *process);

/* Readable when the process has ended. Stays with the process. */
int kymo_process_pidfd(const struct kymo_process *process);

/* For a launched one: whether it has ended, and the status as waitpid() gives it. Does not block. */
bool kymo_process_ended(struct kymo_process *process, int *status_ret);

/*
 * Whole reads and writes of memory, of running or stopped processes, read-only text too. Negative errno; -EIO where unmapped. A write
 * within one page is one copy: it is made or not made, also if this process is killed.
 */
int kymo_process_read(struct kymo_process *process, uint64_t address, void *data, size_t size);
int kymo_process_write(struct kymo_process *process, uint64_t address, const void *data, size_t size);

/* ---- stopping --------------------------------------------------------------------------------------------------- */

/* A stopped thread. */
struct kymo_thread {
	pid_t tid;
	bool is_stopped;
	struct user_regs_struct registers;	/* valid while stopped; change through kymo_thread_set_pc() */
};

/*
 * Stop every thread, again and again until no new one appears. Returns with all stopped, or with all running as before: BUSY for a thread that does not stop within
 * two seconds (uninterruptible sleep, vfork: the sentence says which and where), another process that shares the memory, a foreign tracer.
 */
struct kymo_error *kymo_process_stop(struct kymo_process *process);

/* With one thread stopped by kymo_process_startup(): stop those that constructors have made. */
struct kymo_error *kymo_process_stop_others(struct kymo_process *process);

/* BUSY when a child process shares the memory of this one and does not get memory of its own (exec) within two seconds: it would run
 * on while the threads are stopped. To be asked before the process is stopped. */
struct kymo_error *kymo_process_check_alone(struct kymo_process *process);

/*
 * Stop the first thread only. Whoever holds it keeps other tracers from the process as a whole, as all begin with it. GONE where it has ended before
 * the others.
 */
struct kymo_error *kymo_process_stop_first(struct kymo_process *process);

/* All threads that are stopped. */
const struct kymo_thread *kymo_process_threads(const struct kymo_process *process, size_t *n);

/* What the kernel knows of a stopped thread's restartable sequences: where its struct rseq is (0: not registered), and the signature. Negative errno; -EIO where
 * the kernel can't tell. */
int kymo_thread_rseq(struct kymo_process *process, size_t index, uint64_t *pointer_ret, uint32_t *signature_ret);

/* Move the program counter of a stopped thread. Negative errno; -ESRCH when it died. */
int kymo_thread_set_pc(struct kymo_process *process, size_t index, uint64_t pc);

/* Let all threads run, as the process had them, and be nobody's tracer. */
void kymo_process_resume(struct kymo_process *process);

/* ---- system calls in its name ------------------------------------------------------------------------------------ */

/*
 * Borrow one stopped thread (the process must be stopped) for system calls; the others stay where they are. arch/remote.h says how the
 * thread finds home if this process dies. UNSAFE when no way is found: no gadget, no room on any stack, a seccomp filter (then calls might kill it).
 */
struct kymo_error *kymo_remote_begin(struct kymo_process *process);

/* Execute one call. `result_ret` is as the kernel gave it (negative errno). An error means that the thread is gone, or did not come back. */
struct kymo_error *kymo_remote_syscall(struct kymo_process *process, long number, const uint64_t args[6], int64_t *result_ret);

/* Address of at least 256 bytes of scratch memory of the borrowed thread (its stack, below the frame). */
uint64_t kymo_remote_scratch(const struct kymo_process *process);

/* Look for the instructions that calls are made with, while the process runs: kymo_remote_begin() has to look at them once more then, not for
 * them. */
struct kymo_error *kymo_remote_prepare(struct kymo_process *process);

/* Give the thread its own registers and signal mask back. */
struct kymo_error *kymo_remote_end(struct kymo_process *process);

/* ---- the first moments of a launched program ---------------------------------------------------------------------- */

enum kymo_startup_event {
	KYMO_STARTUP_MAPPED,		/* a file was mapped executable; the thread is stopped behind its mmap */
	KYMO_STARTUP_TLS,		/* the thread pointer is set, and the tid behind it */
	KYMO_STARTUP_LOADED,		/* all initial files are mapped and linked; their constructors run next, or have begun to */
	KYMO_STARTUP_ENDED,		/* it ended before */
};

/*
 * Run the launched process until the next of these; it is stopped then (as by kymo_process_stop(), one thread). Nothing is set up in the process for it: if
 * this one dies meanwhile the command runs on as if nothing had been.
 */
struct kymo_error *kymo_process_startup(struct kymo_process *process, enum kymo_startup_event *ret);

#endif
