/*
 * Processes from outside: maps, memory, threads, and system calls executed in their name. The only caller of ptrace, and in here the hub is (docs/design/engines.md).
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

struct kymo_hub;

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
	bool is_kernels;		/* a thread of the kernel */
	pid_t inner_pid;		/* as it knows itself in its own pid namespace */
	uint64_t start_time;		/* field 22 of stat: pid and this name a process for good */
	char state;
};

/* GONE, PERMISSION. */
struct kymo_error *kymo_process_info(pid_t pid, struct kymo_process_info *ret);

/* The same where the reason does not matter: false. */
bool kymo_process_peek(pid_t pid, struct kymo_process_info *ret);

/* What a process or thread is called by itself: another number, where it is in a container. `tid` where that can't be read. */
pid_t kymo_inner_tid(pid_t tid);

/* A thread of the process that has its memory still: the first one, or, where that has ended before the others (pthread_exit in main), another. */
pid_t kymo_live_thread(pid_t pid);

/* How many threads a process has; 0: there is no such process. */
size_t kymo_count_threads(pid_t pid);

/* The process that a thread is of, and its name (NULL: not wanted); `tid` and "" where that is not to be had. TracerPid in /proc is the id of a thread, which ps(1) does not show. */
pid_t kymo_process_of(pid_t tid, char comm_ret[16]);

/* The name of a thread, also of one that has ended and was not waited for; "" where it is not to be had. */
void kymo_read_comm(pid_t tid, char ret[16]);

/* The first thread of a process that somebody else than the caller traces; `pid` where none is. */
pid_t kymo_traced_thread(pid_t pid);

/* Whether some thread of `pid` is not asleep in a system call, as far as /proc tells; false too where there is no such process. */
bool kymo_is_anyone_awake(pid_t pid);

/* A thread, as the kernel tells it to anybody; and where it sleeps, to whoever may trace it. */
struct kymo_thread_info {
	pid_t tid;
	char comm[64];
	char state;			/* as proc(5) has it: R, S, D, T, t, Z, X, I, P */
	pid_t tracer;			/* the thread that traces it; 0: nobody */
	uint64_t start_time;		/* tid and this name a thread for good */
	uint64_t cpu_ns;		/* in steps of some milliseconds */
	bool may_look;			/* the rest is known */
	int64_t call;			/* number of the system call that it is stopped or asleep in; -1: none */
	char wchan[64];			/* function of the kernel that it sleeps in; "": none, or not told */
};

struct kymo_thread_infos {
	struct kymo_thread_info *items;	/* sorted by tid */
	size_t n, cap;
};

/* All threads that process `pid` has, one after the other, so that some may have begun or ended meanwhile. GONE. */
struct kymo_error *kymo_thread_infos_read(pid_t pid, struct kymo_thread_infos *ret);
void kymo_thread_infos_deinit(struct kymo_thread_infos *threads);

/* A descriptor of the file that `map` of process `pid` was mapped from: by /proc/PID/map_files where that is allowed, else through
 * /proc/PID/root, and then only if the inode is the same. NOT_FOUND with the reason ("was replaced since it was mapped"). */
struct kymo_error *kymo_open_mapped(pid_t pid, const struct kymo_map *map, int *fd_ret);

/* Whether the file that `map` was mapped from has these bytes (64 at most) where `address` is. False where that can't be read. The second form: of its descriptor, which may be -1. */
bool kymo_is_of_mapped_file(pid_t pid, const struct kymo_map *map, uint64_t address, const void *bytes, size_t size);
bool kymo_is_of_file(int fd, const struct kymo_map *map, uint64_t address, const void *bytes, size_t size);

/* ---- a process -------------------------------------------------------------------------------------------------- */

struct kymo_process;

/*
 * Look at a running process; nothing is stopped or traced yet. GONE: no such process; PERMISSION with what to do; BUSY: it is traced already by somebody who
 * lets nobody in, and is named; else it is stopped through that one's hub; BAD_DATA: a 32-bit program.
 */
struct kymo_error *kymo_process_open(pid_t pid, struct kymo_process **ret);

/* The same for reading only: a process that is being traced by somebody is fine. */
struct kymo_error *kymo_process_look(pid_t pid, struct kymo_process **ret);

/*
 * Start `argv` (looked up in PATH), stopped before its first instruction, traced. If kymo dies before kymo_process_resume(), the command runs on by itself.
 * NOT_FOUND, PERMISSION as execvp gives them.
 */
struct kymo_error *kymo_process_launch(char *const *argv, struct kymo_process **ret);

/*
 * Make a child that executes `argv`, found as execvp(3) does, when a byte is written to `go_ret`, and ends when that is closed instead. Nobody traces it; the caller
 * waits for it. A negative errno.
 */
int kymo_command_fork(char *const *argv, pid_t *pid_ret, int *go_ret);

/* Let go of all threads (detached, running as the process had them) and free. NULL is allowed. */
void kymo_process_destroy(struct kymo_process *process);

pid_t kymo_process_pid(const struct kymo_process *process);

/* It is in a tree: who else traces or records it does so through the hub of this thread, and gets no further while that sleeps. */
bool kymo_process_is_at_own_hub(const struct kymo_process *process);

/* Readable when the process has ended. Stays with the process. */
int kymo_process_pidfd(const struct kymo_process *process);

/* For a launched one: whether it has ended, and the status as waitpid() gives it. Does not block. */
bool kymo_process_ended(struct kymo_process *process, int *status_ret);

/* End a launched one, and wait until it has. */
void kymo_process_kill(struct kymo_process *process);

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
	struct user_regs_struct registers;	/* valid while stopped; change through kymo_thread_set_pc() */
};

/*
 * Stop every thread, again and again until no new one appears. Returns with all stopped, or with all running as before: BUSY for a thread that does not stop within
 * two seconds (uninterruptible sleep, vfork: the sentence says which and where), another process that shares the memory, a foreign tracer.
 */
struct kymo_error *kymo_process_stop(struct kymo_process *process);

/* With one thread stopped by kymo_process_startup(): stop those that constructors have made. */
struct kymo_error *kymo_process_stop_others(struct kymo_process *process);

/* BUSY when another process (a child, the parent) shares the memory of this one and does not get memory of its own (exec) within two seconds: it would run
 * on while the threads are stopped. To be asked before the process is stopped. */
struct kymo_error *kymo_process_check_alone(struct kymo_process *process);

/*
 * Stop the first thread only, and, where that sleeps in a system call, another one to make calls by. Whoever holds it keeps other tracers from the process as a whole, as all begin with it; and a hub lets one at a time hold a process, or its first thread. GONE where it has ended before
 * the others.
 */
struct kymo_error *kymo_process_stop_first(struct kymo_process *process);

/* All threads that are stopped: none while the process runs. */
const struct kymo_thread *kymo_process_threads(const struct kymo_process *process, size_t *n);

/* What the kernel knows of a stopped thread's restartable sequences: where its struct rseq is (0: not registered), and the signature. Negative errno; -EIO where
 * the kernel can't tell. */
int kymo_thread_rseq(struct kymo_process *process, size_t index, uint64_t *pointer_ret, uint32_t *signature_ret);

/* Whether a stopped thread's system calls are signals where they are made outside of one range of code (PR_SET_SYSCALL_USER_DISPATCH), as far as the kernel tells. */
bool kymo_thread_dispatches_calls(struct kymo_process *process, size_t index);

/* Move the program counter of a stopped thread. Negative errno; -ESRCH when it died. */
int kymo_thread_set_pc(struct kymo_process *process, size_t index, uint64_t pc);

/* Let all threads run, as the process had them, and be nobody's tracer; one that is followed stays so. */
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

/*
 * What was found for the process that has forked this one holds for both: looking again takes milliseconds. It is checked before it is used. Where each system call of the text has a probe there
 * is none left: then the `syscall; ret` at `syscall` in the shared code of pads is used, which stays as long as the child does what it is asked for here.
 */
void kymo_remote_inherit(struct kymo_process *child, const struct kymo_process *maker, uint64_t syscall);

/* Give the thread its own registers and signal mask back. */
struct kymo_error *kymo_remote_end(struct kymo_process *process);

/* ---- the first moments of a launched program ---------------------------------------------------------------------- */

enum kymo_startup_event {
	KYMO_STARTUP_MAPPED,		/* a file was mapped executable; the thread is stopped behind its mmap */
	KYMO_STARTUP_TLS,		/* the thread pointer is set, and the tid behind it */
	KYMO_STARTUP_LOADED,		/* all initial files are mapped and linked; their constructors run next, or have begun to */
	KYMO_STARTUP_ENDED,		/* it ended before */
	KYMO_STARTUP_EXECED,		/* it became another program before; only of one that is followed, and the tree tells the rest; else LOADED */
};

/*
 * Run the launched process until the next of these; it is stopped then (as by kymo_process_stop(), one thread). Nothing is set up in the process for it: if
 * this one dies meanwhile the command runs on as if nothing had been.
 */
struct kymo_error *kymo_process_startup(struct kymo_process *process, enum kymo_startup_event *ret);

/*
 * Whether the dynamic linker of a stopped process that has just started is still to tell debuggers that it is done (r_state is RT_ADD; glibc, elf/rtld.c). False
 * where it tells nothing, and for a process that was not launched or followed.
 */
bool kymo_process_is_linking(struct kymo_process *process);

/* ---- a tree of processes ------------------------------------------------------------------------------------------- */

/*
 * A process with all that descends from it, whose threads stay seized while they run (docs/design/following.md). All functions above work for its
 * processes as for others. What must not wait (signals, new threads) is dealt with by whoever waits for anything here; the rest is told by kymo_tree_next().
 */
struct kymo_tree;

enum kymo_tree_kind {
	KYMO_TREE_FORKED,		/* `process` is new, stopped before its first instruction; made by `other` */
	KYMO_TREE_SHARING,		/* `process` is new, and runs in the memory of `other`, which made it (vfork) */
	KYMO_TREE_REFUSED,		/* process `tid` is new and not followed, nor what it does; `refusal` says why. `process` is NULL */
	KYMO_TREE_EXECED,		/* `process` is new, and has the pid of `other`, which is no more; stopped as after kymo_process_launch() */
	KYMO_TREE_STARTUP,		/* `startup` has happened in `process`, which is stopped; see kymo_process_startup_on() */
	KYMO_TREE_THREAD,		/* `process` has a new thread `tid`, which runs; or see `is_held` */
	KYMO_TREE_THREAD_ENDED,		/* another than the last one */
	KYMO_TREE_ENDED,		/* `process` is no more; `status` as waitpid() gives it */
};

struct kymo_tree_event {
	enum kymo_tree_kind kind;
	struct kymo_process *process;	/* the tree's until the receiver destroys it; which must be after it has ended or has been replaced, or it is let go */
	struct kymo_process *other;	/* NULL: not known */
	pid_t tid;
	int status;
	enum kymo_startup_event startup;
	char comm[16];			/* of the thread; "" where it was not to be had */
	bool is_held;			/* of THREAD: see kymo_process_hold_birth() */
	struct kymo_error *refusal;	/* of FORKED and EXECED: why its memory can't be looked at; of ENDED: it has executed a program, and why that is not followed; of REFUSED; the receiver's */
};

/*
 * Others may join its processes, as long as the tree is there (kymo_hub_connect()). Only one at a time: it takes SIGCHLD for itself (blocked, and not ignored) until it is destroyed, and the ends of all children of this process. To be called after kymo_process_launch(), as
 * children inherit both.
 */
struct kymo_error *kymo_tree_create(struct kymo_tree **ret);

/* Let go of all processes that are left, as kymo_process_destroy() does. NULL is allowed. */
void kymo_tree_destroy(struct kymo_tree *tree);

/*
 * Let go of all that are left. Whether others trace some of them through it, who are served by this, as often as by kymo_tree_next(). `who_ret` is the process of one of them; 0: it has just gone, or
 * can't be seen from here. Nobody is called meanwhile any more. False: nobody does, nor can from now on.
 */
bool kymo_tree_linger(struct kymo_tree *tree, pid_t *who_ret);

/* Whether a launched process that it has let go has ended since, with its status, which waitpid() gives nobody then. Where kymo_tree_linger() was false, that is known for good: later ends are the caller's to wait for. */
bool kymo_tree_has_ended(struct kymo_tree *tree, pid_t pid, int *status_ret);

/* Readable when there is something for kymo_tree_next(). */
int kymo_tree_fd(const struct kymo_tree *tree);

/* Who has joined may take its time to answer (KYMO_ANSWER_MS at most), in kymo_tree_next() too: there `meanwhile` is called every few milliseconds. It may not use the tree, nor its processes. */
void kymo_tree_set_meanwhile(struct kymo_tree *tree, void (*meanwhile)(void *data), void *data);

/* Follow `process` from now on. It may be launched and stopped, or opened and running; it is left as it was. BUSY, GONE as kymo_process_stop() has them. */
struct kymo_error *kymo_tree_take(struct kymo_tree *tree, struct kymo_process *process);

/* The next event, without waiting; false: none yet. To be called every 20 ms while programs start. */
bool kymo_tree_next(struct kymo_tree *tree, struct kymo_tree_event *ret);

/* Run a followed process, stopped by EXECED or STARTUP, to its next start-up event, which kymo_tree_next() will tell; nothing is waited for. */
struct kymo_error *kymo_process_startup_on(struct kymo_process *process);

/*
 * Whether the next thread that a followed process makes is held, once: it and its maker run no instruction of their own until the receiver
 * of THREAD, which says so, resumes the process. kymo_process_stop() stops what else there is of it. Not for programs that start.
 */
void kymo_process_hold_birth(struct kymo_process *process, bool is_to_hold);

/* Whether it has become another program, or has ended: requests fail then, and the tree has told it or is about to. */
bool kymo_process_is_past(const struct kymo_process *process);

/* ---- whoever traces it ---------------------------------------------------------------------------------------------- */

/* How to have engines on a process that somebody else may trace already. The functions get `data`. */
struct kymo_reach {
	struct kymo_hub **hub;		/* what is opened, or connected to */
	void *data;
	int (*open)(void *data);	/* begin a hub of our own */
	int (*attach)(void *data, pid_t *busy_ret);	/* -EBUSY: `busy_ret` is a thread that somebody else traces */
	void (*close)(void *data);	/* the hub, also one that could not be had */
	bool (*is_given_up)(void *data);
};

/*
 * Attach by a hub of our own, or by that of somebody who traces the process and lets us in. That one may be on its way out, so both are tried a few times. A negative errno: BUSY where it
 * lets nobody in. What was opened last may be there still.
 */
int kymo_hub_reach(const struct kymo_reach *reach);

/*
 * kymo_hub_destroy(), of one that has launched `pid`: whether that had ended before it was let go, with its status as waitpid() has it. Else it runs on, a child of this process that may be
 * waited for. A status that kymo_hub_wait() has told is not told again.
 */
bool kymo_hub_close(struct kymo_hub *hub, pid_t pid, int *status_ret);

/* The process of somebody who is connected to a hub of this process; 0: of nobody, or of one that can't be seen from here. */
pid_t kymo_hub_visitor(const struct kymo_hub *hub);

/* The sentence for it, as kymo_hub_explain() has it. BUSY, PERMISSION, GONE, FAILED. */
struct kymo_error *kymo_trace_error(pid_t pid, int err);

/* The sentence for the error of kymo_hub_create(), or of the first ptrace() to a child of one's own: where that is not permitted, why nothing can be traced from here. PERMISSION, FAILED. */
struct kymo_error *kymo_begin_error(int err);

/* ---- many calls of a hub ------------------------------------------------------------------------------------------- */

/*
 * Have `run(data)` executed on the hub's thread, as a callback is, and wait for it: what it attaches to many threads takes one switch to that thread instead of two each, and none of them goes on before
 * it returns. Of another process' hub it runs on the caller's thread, and each call is a message of its own.
 */
void kymo_hub_run(struct kymo_hub *hub, void (*run)(void *data), void *data);

/*
 * Have a signal of this process, which is kymo's own, break off what its hubs wait for in vain while they seize threads (docs/design/engines.md, hazard 17). It has a handler from then on, in what is forked,
 * too, until that executes something. Once, before there is a hub or another thread.
 */
void kymo_take_seize_signal(void);

/* ---- tracers inside of the tree ------------------------------------------------------------------------------------ */

struct kymo_inner;

/*
 * A layer that makes ptrace() and wait() work for the threads that a hub traces, towards each other (docs/design/inner.md). A thread that is followed has to be followed here before any
 * other engine of its is attached, in kymo_hub_run(); what it makes is followed by itself. Negative errno values as of kymo_engine_attach().
 * Callbacks may use it until the hub is destroyed: before that it is stopped, and behind that destroyed. NULL is allowed for both.
 */
int kymo_inner_create(struct kymo_hub *hub, struct kymo_inner **ret);
int kymo_inner_follow(struct kymo_inner *inner, pid_t tid, pid_t pid);
void kymo_inner_pick(uint64_t *calls);	/* add what it has to be told of, where a command is launched with picked calls */
void kymo_inner_stop(struct kymo_inner *inner);
void kymo_inner_destroy(struct kymo_inner *inner);

#endif
