/* SPDX-License-Identifier: MIT */
/*
 * Engines: any number of tracers on one thread.
 *
 * ptrace gives a thread one tracer. A hub is that one tracer for any number of threads, and multiplexes engines on it:
 * a system-call tracer, a debugger, or a program's own. An engine belongs to one thread. It has a mask of the events
 * that it is told, and a set of callbacks. Each callback returns what the engine requests for the thread from then on.
 * The strongest request of all engines of a thread wins.
 *
 * The calls, their names and errors are those of utrace (2009). Results are 0 or a negative errno value; nothing
 * prints, nothing exits.
 *
 * Threads. A hub has a thread of its own, which makes all ptrace calls and runs all callbacks, one at a time. All
 * functions below may be called from any thread and from callbacks, unless their comments say otherwise. Functions that
 * need the hub's thread wait for it, so the caller must not hold a lock that a callback takes. A callback must not
 * block for long: meanwhile the hub handles no other stop.
 *
 * A process that has a hub must not wait for any child (waitpid(-1), wait()), unless with __WNOTHREAD. Nor may it wait
 * for a child that it has engines on: it would take a status that the hub needs. kymo_hub_launch() and kymo_hub_wait()
 * are for commands to be traced; the process may wait for other children by their ids. If SIGCHLD has its default
 * action, the hub sets SA_NOCLDSTOP for it until the last hub is destroyed.
 *
 * If the hub's process dies, the kernel detaches all threads and they run on. A thread that is being single-stepped at
 * that moment may get a SIGTRAP. So may processes with breakpoints or watched memory, which only engines with
 * KYMO_ATTACH_BREAKPOINTS have. Commands that were launched with KYMO_LAUNCH_EXITKILL or with picked calls are killed.
 */
#ifndef KYMO_ENGINE_H
#define KYMO_ENGINE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct kymo_hub;
struct kymo_engine;

/* ---- events ---------------------------------------------------------------------------------- */

/* Bits of an engine's mask. */
enum kymo_event {
	KYMO_EVENT_QUIESCE = 1 << 0, /* before each other callback except REAP; also when a STOP has taken effect, or a
					REPORT, INTERRUPT or step is done */
	KYMO_EVENT_REAP = 1 << 1,    /* the thread has been reaped: its id may be used again */
	KYMO_EVENT_CLONE = 1 << 2,   /* the thread has made a thread or process: clone, fork, vfork */
	KYMO_EVENT_EXEC = 1 << 3,    /* it has executed another program */
	KYMO_EVENT_EXIT = 1 << 4,    /* it is ending; memory and registers are still available */
	KYMO_EVENT_DEATH = 1 << 5,   /* it never runs again */
	KYMO_EVENT_SYSCALL_ENTRY = 1 << 6,
	KYMO_EVENT_SYSCALL_EXIT = 1 << 7,
	KYMO_EVENT_SIGNAL = 1 << 8,       /* a signal arrives that has a handler */
	KYMO_EVENT_SIGNAL_IGN = 1 << 9,   /* … that is ignored, by its setting or by default */
	KYMO_EVENT_SIGNAL_STOP = 1 << 10, /* … that would stop the process */
	KYMO_EVENT_SIGNAL_TERM = 1 << 11, /* … that would end it */
	KYMO_EVENT_SIGNAL_CORE = 1 << 12, /* … that would end it with a core dump */
	KYMO_EVENT_JCTL = 1 << 13,        /* it has stopped with its process (job control), or continues */
};

#define KYMO_EVENTS_SIGNAL \
	(KYMO_EVENT_SIGNAL | KYMO_EVENT_SIGNAL_IGN | KYMO_EVENT_SIGNAL_STOP | KYMO_EVENT_SIGNAL_TERM | \
	 KYMO_EVENT_SIGNAL_CORE)
#define KYMO_EVENTS_SYSCALL (KYMO_EVENT_SYSCALL_ENTRY | KYMO_EVENT_SYSCALL_EXIT)
#define KYMO_EVENTS_ALL ((1 << 14) - 1)

/* Not an event: in a mask, beside SYSCALL_ENTRY and SYSCALL_EXIT, it says that the picked calls of a command
 * (kymo_hub_launch_picking()) are enough. The engine may still be told more. A hub of another process ignores it.
 */
#define KYMO_MASK_PICKED_CALLS (1 << 14)

/* ---- actions --------------------------------------------------------------------------------- */

/*
 * What an engine requests for its thread, the strongest first. STOP lasts until the engine that requested it requests
 * something else by kymo_engine_control(); the result of a callback does not end it. INTERRUPT to BLOCKSTEP take effect
 * once. DETACH ends the engine and requests nothing. SIGKILL, another thread's exec and exit_group end a STOP. A thread
 * that is stopped in EXIT goes on after KYMO_EXIT_HOLD_MS, as the hub cannot see a SIGKILL there.
 */
enum kymo_action {
	KYMO_ACTION_STOP,
	KYMO_ACTION_INTERRUPT,  /* make it report soon; a system call that it sleeps in ends as if by a signal */
	KYMO_ACTION_REPORT,     /* make it report soon; a system call that it sleeps in is restarted */
	KYMO_ACTION_SINGLESTEP, /* one instruction (a system call is one), then report */
	KYMO_ACTION_BLOCKSTEP, /* to the next taken branch, then report; as SINGLESTEP if the processor does not support
				  it */
	KYMO_ACTION_RESUME,
	KYMO_ACTION_DETACH,
};

#define KYMO_EXIT_HOLD_MS 2000

/* A callback returns an action, ORed with one of these. */
enum kymo_verdict {
	/* Of syscall_entry. Once an engine has returned ABORT the call is not made; its result is -ENOSYS unless an
	 * engine changes that in syscall_exit. */
	KYMO_SYSCALL_RUN = 0x00,
	KYMO_SYSCALL_ABORT = 0x10,
	/* Of signal: what to do with it. The next engine sees this verdict in its report; the last engine's takes
	 * effect. */
	KYMO_SIGNAL_DELIVER = 0x10, /* to its handler, or take its default action if there is none */
	KYMO_SIGNAL_IGN = 0x20,     /* discard it */
	KYMO_SIGNAL_TERM = 0x30,    /* end the process: by this signal if that ends it, else by SIGKILL */
	KYMO_SIGNAL_CORE =
		0x40, /* the same with a core dump, if any signal that dumps core still has its default action */
	KYMO_SIGNAL_STOP = 0x50,    /* stop the process: by this signal if that stops it, else by SIGSTOP */
	KYMO_SIGNAL_REQUEUE = 0x60, /* later: report it again, to all engines, when the thread goes on */
};

#define KYMO_ACTION_OF(answer) ((enum kymo_action)((answer)&0x0f))
#define KYMO_VERDICT_OF(answer) ((answer)&0xf0)

/* ---- callbacks ------------------------------------------------------------------------------- */

/* What a signal callback is told. */
enum kymo_trap {
	KYMO_TRAP_NONE,       /* a signal for the program */
	KYMO_TRAP_BREAKPOINT, /* the thread is at a breakpoint that this engine has inserted, before the instruction
			       */
	KYMO_TRAP_WATCH,      /* a debug register that this engine has claimed has been hit: after the access, before an
				 instruction */
};

/* What callbacks are told beside `action`. Valid until the callback returns. */
struct kymo_signal_report {
	siginfo_t info;       /* as the engines before have left it; may be changed, si_signo too */
	enum kymo_event kind; /* KYMO_EVENT_SIGNAL…: what the program would do with the signal as it came */
	unsigned int verdict; /* KYMO_SIGNAL_…: of the engine before; for the first engine, what fits `kind` */
	enum kymo_trap trap;  /* if it is not NONE, `kind` is KYMO_EVENT_SIGNAL, and there is no signal: changes of
				 `info` and the verdict are ignored */
	unsigned int slot;    /* of WATCH */
	uint64_t address;     /* of the breakpoint or of the watched bytes */
};

struct kymo_syscall_report {
	uint32_t arch; /* AUDIT_ARCH_… */
	uint64_t ip, sp;
	uint64_t number, args[6]; /* at the exit: as they were at the entry after all engines had changed them; if
				     is_entry_known */
	bool is_entry_known;      /* false at an exit whose entry no engine was told */
	bool is_aborted;          /* an engine has returned ABORT */
	int64_t result;           /* at the exit: as the kernel gives it, an error is a negative errno */
	bool is_error;            /* at the exit */
};

enum kymo_clone_kind {
	KYMO_CLONE_THREAD,  /* of the same process */
	KYMO_CLONE_PROCESS, /* fork, or clone() like it */
	KYMO_CLONE_VFORK,   /* the thread waits until the child has executed something or has ended */
};

struct kymo_clone_report {
	pid_t child; /* its thread id, in the hub's pid namespace */
	enum kymo_clone_kind kind;
};

struct kymo_exec_report {
	pid_t former_tid; /* of the thread that called exec; differs from its tid now unless it was the first thread */
};

struct kymo_exit_report {
	int status; /* as waitpid() gives it */
};

struct kymo_death_report {
	int status; /* of the thread, as waitpid() gives it; SIGKILL's if it is not known */
};

struct kymo_reap_report {
	int status;          /* of the process if it is the first thread, else of the thread */
	pid_t superseded_by; /* the former id of the thread that has executed a program and has taken over this id; or 0
			      */
};

struct kymo_jctl_report {
	int signal; /* SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU: it has stopped; SIGCONT: it goes on */
};

/*
 * Any may be NULL: as if it had returned KYMO_ACTION_RESUME with the verdict so far.
 *
 * `action` is the strongest request so far, including this engine's own. All callbacks except reap return an action,
 * with a verdict where there is one. The action adds to what the engine has requested by kymo_engine_control(): RESUME
 * takes nothing back. A kymo_engine_control() during the callback takes effect instead of the returned action, unless
 * that is DETACH. The thread is stopped during all callbacks except death and reap: registers and memory are available.
 * An engine that is attached during an event is not told of that event.
 *
 *   quiesce          `event` is the event that comes next, or 0. The mask is read again after it
 *   signal           in attach order; SIGKILL is never reported. A STOP holds before the signal is delivered
 *   syscall_entry    in reverse attach order; a STOP holds before the call is made
 *   syscall_exit, exec, jctl, clone, exit    in attach order; a STOP holds before the thread runs on
 *   clone            the child does not run until all have returned; they may attach to it, and stop it. Its own
 *                    engines are not told of it
 *   death            STOP is not possible; after DETACH there is no REAP
 *   reap             the last callback
 *
 * `size` is sizeof(struct kymo_engine_ops) in the program. Attaching refuses a size that differs from the library's.
 */
struct kymo_engine_ops {
	size_t size; /* bytes */
	unsigned int (*quiesce)(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event);
	unsigned int (*signal)(struct kymo_engine *engine, void *data, enum kymo_action action,
			       struct kymo_signal_report *report);
	unsigned int (*clone)(struct kymo_engine *engine, void *data, enum kymo_action action,
			      const struct kymo_clone_report *report);
	unsigned int (*jctl)(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_jctl_report *report);
	unsigned int (*exec)(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_exec_report *report);
	unsigned int (*syscall_entry)(struct kymo_engine *engine, void *data, enum kymo_action action,
				      const struct kymo_syscall_report *report);
	unsigned int (*syscall_exit)(struct kymo_engine *engine, void *data, enum kymo_action action,
				     const struct kymo_syscall_report *report);
	unsigned int (*exit)(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_exit_report *report);
	unsigned int (*death)(struct kymo_engine *engine, void *data, const struct kymo_death_report *report);
	void (*reap)(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report);
	void (*release)(void *data); /* after the last kymo_engine_put(), on the thread that made it */
};

/* ---- hubs ------------------------------------------------------------------------------------ */

/* Create a hub, which traces nothing yet. -EAGAIN, -ENOMEM; -EPERM if the kernel does not allow tracing at all. */
int kymo_hub_create(struct kymo_hub **ret);

/*
 * Detach every engine and every thread, which run on as before, and end the hub's thread. Commands that were launched
 * and not started are killed. Engines get no callback for it. References to engines stay valid, for put and get only.
 * Not from a callback, nor while another thread is in a function of this hub. NULL is allowed.
 */
void kymo_hub_destroy(struct kymo_hub *hub);

/* ---- hubs of other processes ----------------------------------------------------------------- */

/*
 * Let processes of the same user and of root connect, by a socket that exists until the hub is destroyed. A client can
 * have engines on what both this process and the client itself may trace.
 *
 *   -EALREADY   the hub serves
 *   -EPERM      this process has more privileges than the user that started it (set-uid, file capabilities)
 *   -E…         errors of the file system: there is no directory for the socket
 */
int kymo_hub_serve(struct kymo_hub *hub);

/* The number of connected clients. */
unsigned int kymo_hub_clients(const struct kymo_hub *hub);

/*
 * Leave the hub to its clients: detach every engine of this process, as kymo_engine_detach_all() does, and wait until
 * no client is connected. From then on no client can connect, and the hub may be destroyed without taking it from a
 * client. A process that connects later finds no hub, or kymo_hub_connect() returns -EPIPE. `release` functions run on
 * the hub's thread, and may run later if a thread cannot be stopped.
 *
 *   0             no client is connected
 *   -EAGAIN       a client was still connected after `timeout_ms` (0: do not wait, negative: without limit)
 *   -EINTR        descriptor `wake` (-1: none) can be read
 *   -EDEADLK      from a callback
 *   -EOPNOTSUPP   of another process' hub
 */
int kymo_hub_hand_over(struct kymo_hub *hub, int wake, int timeout_ms);

/*
 * Connect to the hub that traces thread `tid`. The result is used like a hub of this process, with these differences:
 *
 *   - Callbacks run on a thread of this process, one at a time, while the hub waits. It waits up to KYMO_ANSWER_MS for
 *     each callback, including the calls that the callback makes. Then it ends the connection.
 *   - Calls wait for the hub's answer, and calls of several threads wait for each other. So a callback must not wait
 *     for another thread that makes calls.
 *   - A lookup finds engines of this connection only. EXCLUSIVE without MATCH_… looks at all engines.
 *   - Launching is not possible: -EOPNOTSUPP of kymo_hub_launch(), _start() and _wait().
 *   - The connection may end, with the hub or as above. Then all engines are detached and released, without a last
 *     callback. Calls on them return -ESRCH, and calls on the hub -EPIPE.
 *
 *   -ESRCH       there is no such thread
 *   -ENOENT      no process traces it, or its tracer serves no other process
 *   -EPERM       the hub belongs to another user
 *   -EPROTO      the hub has another version
 *   -EPIPE       the hub ended meanwhile, or has too many clients
 *   -ETIMEDOUT   it does not answer
 *   -EAGAIN, -ENOMEM
 */
int kymo_hub_connect(pid_t tid, struct kymo_hub **ret);

#define KYMO_ANSWER_MS 5000 /* long, as a client may have to wait for a processor */

/* Why a connection is over: -EPIPE, the hub has ended or has disconnected this process; -ETIMEDOUT, a callback took too
 * long; -EPROTO. 0: it is not over, or the hub is this process' own. */
int kymo_hub_failure(const struct kymo_hub *hub);

/* ---- launching ------------------------------------------------------------------------------- */

enum kymo_launch_flag {
	KYMO_LAUNCH_EXITKILL = 1 << 0, /* the command and its followed children are killed if the hub dies */
};

/*
 * Start `argv` (looked up in PATH) as a child of the hub's process. It is stopped before its first instruction until
 * kymo_hub_start(), so that engines can be attached to `pid_ret`. -ENOENT, -EACCES as of execvp(). Not from a callback.
 * kymo_hub_wait() must be called for it once.
 */
int kymo_hub_launch(struct kymo_hub *hub, unsigned int flags, char *const *argv, pid_t *pid_ret);

#define KYMO_CALL_NUMBERS 512

/*
 * The same, but the command and all that it starts get a seccomp filter that picks calls: bit N % 64 of calls[N / 64]
 * is call N of x86-64. If every engine that is told a thread's system calls has KYMO_MASK_PICKED_CALLS, other calls do
 * not stop it, and cost next to nothing. 32-bit calls, numbers from KYMO_CALL_NUMBERS on, clone3(), and clone() with
 * CLONE_UNTRACED are always picked; clone3() with that flag fails with ENOSYS. A call that the program's own filter
 * refuses is not reported.
 *
 * A filter cannot be removed, and without a tracer picked calls fail with ENOSYS. So the hub never detaches these
 * threads: they stay traced when their engines are detached, and are killed when the hub ends, also by
 * kymo_hub_destroy() (KYMO_LAUNCH_EXITKILL is implied). Without CAP_SYS_ADMIN set-uid programs give the command no
 * privileges (no_new_privs).
 *
 *   -EINVAL    the kernel has no such filters, or there are no `calls`
 */
int kymo_hub_launch_picking(struct kymo_hub *hub, unsigned int flags, char *const *argv, const uint64_t *calls,
			    pid_t *pid_ret);

/* Let a launched command run; without engines it is not traced. -ESRCH: not a launched command, or it runs already. */
int kymo_hub_start(struct kymo_hub *hub, pid_t pid);

/* Wait for the end of a launched command; status as waitpid() gives it. -ECHILD: not a launched command. -EDEADLK: from
 * a callback. */
int kymo_hub_wait(struct kymo_hub *hub, pid_t pid, int *status_ret);

/*
 * Write a sentence for an error of attaching to thread or process `tid`: at most `size` bytes, with the NUL. Reads
 * /proc now; needs no hub. An example: "thread 12 of process 11 is being traced by process 99 (gdb); let it detach
 * first".
 */
void kymo_hub_explain(pid_t tid, int err, char *text, size_t size);

/* ---- attaching ------------------------------------------------------------------------------- */

enum kymo_attach_flag {
	KYMO_ATTACH_CREATE = 1 << 0,    /* make a new engine; else look for one */
	KYMO_ATTACH_EXCLUSIVE = 1 << 1, /* only if no engine matches */
	KYMO_ATTACH_MATCH_OPS = 1 << 2,
	KYMO_ATTACH_MATCH_DATA = 1 << 3,  /* with neither of the two, any engine matches */
	KYMO_ATTACH_BREAKPOINTS = 1 << 4, /* with CREATE: it may insert breakpoints and claim debug registers */
};

/*
 * An engine of thread `tid`, with a reference for the caller. A new engine has an empty mask and requests nothing; it
 * is not told of the event in progress. A thread that the hub does not trace yet is seized, and is not stopped for it.
 *
 * Seizing waits in the kernel while another thread of the process calls exec, which waits for the end of all other
 * threads. If the hub traces one of these already, the hub and the process wait without end. Launch a process by the
 * hub if it may call exec while engines are attached to it.
 *
 *   -EINVAL    CREATE without ops, or an unknown flag
 *   -EBADR     CREATE, and ops->size is too small: it was not set, or the header is older than the library
 *   -E2BIG     CREATE, and ops->size is larger than the library knows: the header is newer than the library
 *   -EEXIST    EXCLUSIVE, and one matches
 *   -ENOENT    a lookup finds none
 *   -ESRCH     there is no such thread, or it is ending
 *   -EPERM     it may not be traced (on a connected hub, by this process itself), as by PTRACE_ATTACH;
 *              kymo_hub_explain() says why. Engines of a connected hub are detached when the thread executes a program
 *              that this process may not trace
 *   -EBUSY     another tracer traces it; kymo_hub_explain() names it
 *   -EAGAIN    in a callback: its process has executed a program, and the hub has not reported that yet. Elsewhere that
 *              is waited for, for 10 s
 *   -ENOMEM
 */
int kymo_engine_attach(struct kymo_hub *hub, pid_t tid, unsigned int flags, const struct kymo_engine_ops *ops,
		       void *data, struct kymo_engine **ret);

/*
 * A new engine for each thread of process `pid`, with mask `events` from the beginning: all or none. Engines with CLONE
 * are told of threads that are made later. Only the hub gets references, so the caller gets engines in callbacks, or by
 * a lookup. `n_ret` (may be NULL) gets their number. `flags` may be BREAKPOINTS, and EXCLUSIVE with MATCH_… Errors as
 * of kymo_engine_attach().
 */
int kymo_engine_attach_process(struct kymo_hub *hub, pid_t pid, unsigned int flags, const struct kymo_engine_ops *ops,
			       void *data, unsigned int events, size_t *n_ret);

/*
 * Detach all engines of the hub that have these ops and this data. Wait until their threads run as before and none of
 * their callbacks runs; from a callback, do not wait. Returns the number of detached engines.
 */
size_t kymo_engine_detach_all(struct kymo_hub *hub, const struct kymo_engine_ops *ops, void *data);

/* ---- which engines there are ----------------------------------------------------------------- */

/* An engine of any process. */
struct kymo_engine_info {
	pid_t tid, pid;      /* its thread, and that thread's process */
	pid_t owner;         /* the process that has the engine: the hub's own or a client; 0: not known */
	unsigned int events; /* its mask */
	int wants; /* enum kymo_action: what it has requested by kymo_engine_control() and not got yet; STOP as long as
		      that lasts */
};

/*
 * The engines of all threads of process `id`, or of thread `id` if that is not the first thread of a process. At most
 * `max` are stored; `n_ret` gets their number. Each client sees the engines of all processes. No thread is stopped for
 * it. A long list takes several messages: engines that come or go between two of them may be missing, or be listed
 * twice.
 *
 *   -ESRCH        the hub has no such thread
 *   -EPIPE, -ETIMEDOUT, -EPROTO   the connection is over, see kymo_hub_failure()
 *   -ENOMEM
 */
int kymo_hub_list(struct kymo_hub *hub, pid_t id, struct kymo_engine_info *infos, size_t max, size_t *n_ret);

/* ---- an engine ------------------------------------------------------------------------------- */

/* A reference keeps the engine's memory, nothing else. An attached engine has a reference of its own. */
void kymo_engine_get(struct kymo_engine *engine);
void kymo_engine_put(struct kymo_engine *engine); /* NULL is allowed */

/* The engine's thread. The tid changes when a thread other than the first calls exec. 0 after the thread was reaped. */
pid_t kymo_engine_tid(const struct kymo_engine *engine);
pid_t kymo_engine_pid(const struct kymo_engine *engine); /* of the thread's process */

/*
 * Set the mask. It takes effect for events that begin after this function has returned. A running thread is made to
 * stop, and its system calls are reported from that stop on.
 *
 *   -EINVAL        an unknown event
 *   -ESRCH         detached, or the thread was reaped
 *   -EALREADY      clears DEATH after its report has begun, clears REAP after its report has begun, or sets DEATH on a
 *                  dying thread. Nothing is changed
 *   -EINPROGRESS   bits were cleared while a callback of this engine runs on another thread: the mask is changed, but
 *                  that callback may be for a cleared event. See barrier
 */
int kymo_engine_set_events(struct kymo_engine *engine, unsigned int events);

/*
 * Request an action from now on. Does not block.
 *
 *   0              done. STOP: the thread is stopped. DETACH: no callback follows, the caller cleans up
 *   -EINPROGRESS   STOP: it will stop, and QUIESCE is reported when it has. DETACH: a callback of this engine runs now
 *                  and is its last; then the caller cleans up, see barrier
 *   -EINVAL        not an action; or SINGLESTEP, BLOCKSTEP, REPORT without QUIESCE in the mask
 *   -ESRCH         detached; or the thread is dead, and the action is not DETACH
 *   -EALREADY      DETACH: reap is being called, is the last callback, and cleans up
 */
int kymo_engine_control(struct kymo_engine *engine, enum kymo_action action);

/*
 * Wait until no callback of this engine runs and its result is applied. If the engine is detached, wait also until the
 * hub has let the thread go.
 *
 *   0              done
 *   -ESRCH         done, and the engine is detached or reaped: no callback follows
 *   -EDEADLK       from a callback of this engine
 */
int kymo_engine_barrier(struct kymo_engine *engine);

/* ---- looking at a thread --------------------------------------------------------------------- */

/* Identifies the stop that is being examined. */
struct kymo_examiner {
	uint64_t stop;
};

/*
 * To examine, outside of callbacks, a thread that this engine has stopped. Registers and memory did not change between
 * prepare and finish if finish returns 0.
 *
 *   0         steady
 *   -EAGAIN   prepare: it has not stopped yet; finish: it ran meanwhile (it was killed), discard what was read
 *   -EINVAL   prepare: this engine does not stop it
 *   -ESRCH    dead, or detached
 */
int kymo_engine_prepare_examine(struct kymo_engine *engine, struct kymo_examiner *ret);
int kymo_engine_finish_examine(struct kymo_engine *engine, const struct kymo_examiner *examiner);

/*
 * These work in callbacks, and between prepare and finish. -ESRCH: the thread is dead; -EAGAIN: it is not stopped;
 * -ENOTSUP: it executes 32-bit code.
 *
 * Registers are the processor's. At a syscall_entry rax has the number of the call.
 */
int kymo_engine_get_registers(struct kymo_engine *engine, struct user_regs_struct *ret);
int kymo_engine_set_registers(struct kymo_engine *engine, const struct user_regs_struct *registers);

/* At a syscall_entry: replace the call. Engines that are called later see the new call. -EINVAL elsewhere. */
int kymo_engine_set_syscall(struct kymo_engine *engine, uint64_t number, const uint64_t args[6]);

/* At a syscall_exit: replace what it returns; an error is a negative errno. -EINVAL elsewhere. */
int kymo_engine_set_result(struct kymo_engine *engine, int64_t result);

/*
 * For a thread that has reported a signal and is stopped by this engine since: deliver this signal instead of what the
 * engines have decided, or none (0). The other engines are not told. -EINVAL: the thread is not stopped at a signal, or
 * `info` belongs to another signal.
 */
int kymo_engine_set_signal(struct kymo_engine *engine, int signal, const siginfo_t *info);

/*
 * Read or write all of `size` bytes of its memory, read-only pages too, as they are without breakpoints. These work at
 * any time while the process lives, stopped or not, from any thread. They wait for the hub's thread only if the process
 * has breakpoints: as long as threads may be stopped to step over one. -EIO: not all is mapped; -ESRCH, -EPERM.
 */
int kymo_engine_read(struct kymo_engine *engine, uint64_t address, void *data, size_t size);
int kymo_engine_write(struct kymo_engine *engine, uint64_t address, const void *data, size_t size);

/*
 * Send a signal to the thread, with this siginfo, which the program gets unchanged (si_signo, si_code and the rest).
 * All other engines of the thread are told of it as of any signal. If a signal below SIGRTMIN with the same number is
 * pending for the thread, the two become one, as always. Does not wait. -EINVAL: no such signal, or SIGKILL with other
 * members set; -ESRCH; -EAGAIN.
 */
int kymo_engine_inject(struct kymo_engine *engine, const siginfo_t *info);

/* ---- breakpoints and debug registers --------------------------------------------------------- */

/*
 * Breakpoints and watched words need engines that were attached with KYMO_ATTACH_BREAKPOINTS: if the hub's process
 * dies, they can kill the traced process. A helper process of the hub (the keeper) removes them some tens of
 * microseconds after that death. A SIGTRAP ends a thread that runs into one in between.
 *
 * A breakpoint is in memory, so every thread runs into it, but an engine inserts it for its own thread. Engines of that
 * thread that have inserted it get their signal callback, with KYMO_TRAP_BREAKPOINT, if their masks have
 * KYMO_EVENT_SIGNAL. Other threads step over it, and no engine is told. To catch all threads, attach an engine to each
 * and insert the breakpoint by each; for new threads, do so in the CLONE that reports them.
 *
 * It is hidden from all engines: they read the bytes that were there before, and what they write goes below the
 * breakpoint. Forked children do not have it, unless an engine of theirs inserts it. When the thread goes on it
 * executes the instruction, with all other threads of the process stopped for that moment.
 *
 * Detaching the engine removes it, and so does an exec. `address` must be the beginning of an instruction.
 *
 *   -EPERM    without KYMO_ATTACH_BREAKPOINTS
 *   -EEXIST   this engine has one there
 *   -EIO      nothing is mapped there
 *   -EINVAL   it is no code, or shared with other processes
 *   -EBUSY    another tracer traces a thread of the process; a process that the hub does not trace shares the memory
 *             (between vfork and exec: try again); the address is within a jump of a recording's; or a recorder makes a
 *             call by this instruction (try again)
 *   -ENOSPC   there are KYMO_BREAKPOINTS_MAX in this hub
 *   -ESRCH, -ENOMEM, -EAGAIN
 */
int kymo_engine_insert_breakpoint(struct kymo_engine *engine, uint64_t address);

/* Remove it: no report of it follows. -ENOENT: this engine has none there; -ESRCH. */
int kymo_engine_remove_breakpoint(struct kymo_engine *engine, uint64_t address);

#define KYMO_BREAKPOINTS_MAX 8000

enum kymo_watch {
	KYMO_WATCH_EXECUTION, /* of the instruction at the address; size is 1 */
	KYMO_WATCH_WRITE,
	KYMO_WATCH_ACCESS, /* reads and writes */
};

/*
 * Watch 1, 2, 4 or 8 bytes, at a multiple of that, by one of the thread's four debug registers. It watches this thread
 * only; new threads have empty debug registers. Works in callbacks, and between prepare and finish. A hit calls the
 * signal callback of this engine only, with KYMO_TRAP_WATCH, if its mask has KYMO_EVENT_SIGNAL. Detaching the engine
 * removes it, and so does an exec.
 *
 *   -EPERM    without KYMO_ATTACH_BREAKPOINTS
 *   -EINVAL   the processor cannot watch that
 *   -ENOSPC   all four are claimed
 *   -EBUSY    none is free, and an earlier tracer has left some in use
 *   -EAGAIN   the thread is not stopped, or the keeper cannot be started
 *   -ESRCH
 */
int kymo_engine_watch(struct kymo_engine *engine, enum kymo_watch watch, uint64_t address, size_t size,
		      unsigned int *slot_ret);

/* Stop watching: no report of it follows. A running thread is stopped for it, and the slot is free then. -ENOENT: this
 * engine has no such slot; -ESRCH. */
int kymo_engine_unwatch(struct kymo_engine *engine, unsigned int slot);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
