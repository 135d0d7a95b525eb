/* SPDX-License-Identifier: MIT */
/*
 * Engines: any number of tracers on one thread.
 *
 * ptrace gives a thread one tracer. A hub is that one tracer, for as many threads as are wanted, and engines are
 * multiplexed on it: a system-call tracer, a debugger, a program's own. An engine belongs to one thread. It has a mask
 * of the events that it wants to be told, and a set of callbacks. Each callback answers with what the engine wants of
 * the thread from then on. Over all engines of a thread the strongest request wins.
 *
 * The calls, their names and errors are those of utrace (2009). Results are 0 or a negative errno value; nothing
 * prints, nothing exits.
 *
 * Threads. A hub has a thread of its own, which makes all ptrace calls and runs all callbacks, one at a time. All calls
 * below may be made from any thread and from callbacks, but where it says otherwise. Calls that need the hub's thread
 * wait for it, so none may be made while holding a lock that a callback takes. A callback must not block for long: no
 * thread of the hub gets on meanwhile.
 *
 * The process that has the hub must not wait for any child (waitpid(-1), wait()) while it has one, unless with
 * __WNOTHREAD, and not for a child that it has engines on: it would take what is the hub's. kymo_hub_launch() and
 * kymo_hub_wait() are for commands to be traced; other children may be waited for by their ids. SIGCHLD gets
 * SA_NOCLDSTOP where it had its default action, until the last hub is destroyed.
 *
 * If the process of the hub dies, whenever that is, the kernel lets go of all threads and they run on. A thread that
 * is being single-stepped in that moment may get a SIGTRAP. So may processes with breakpoints or watched memory, which
 * are for engines with KYMO_ATTACH_BREAKPOINTS alone. Commands that were launched with KYMO_LAUNCH_EXITKILL or with
 * picked calls are killed.
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
	KYMO_EVENT_QUIESCE = 1 << 0, /* before each other callback but REAP; when a STOP has taken effect, a REPORT,
					INTERRUPT or step is done */
	KYMO_EVENT_REAP = 1 << 1,    /* nothing is left of the thread, not even its id */
	KYMO_EVENT_CLONE = 1 << 2,   /* it has made a thread or process: clone, fork, vfork */
	KYMO_EVENT_EXEC = 1 << 3,    /* it has begun another program */
	KYMO_EVENT_EXIT = 1 << 4,    /* it is ending, memory and registers are there still */
	KYMO_EVENT_DEATH = 1 << 5,   /* it never runs again */
	KYMO_EVENT_SYSCALL_ENTRY = 1 << 6,
	KYMO_EVENT_SYSCALL_EXIT = 1 << 7,
	KYMO_EVENT_SIGNAL = 1 << 8,       /* one that has a handler arrives */
	KYMO_EVENT_SIGNAL_IGN = 1 << 9,   /* … that is ignored, as it is set or by default */
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

/* No event: in a mask, beside SYSCALL_ENTRY and SYSCALL_EXIT, it says that of a command with picked calls
 * (kymo_hub_launch_picking()) those calls are enough; more may be told. Of a hub of another process it means nothing.
 */
#define KYMO_MASK_PICKED_CALLS (1 << 14)

/* ---- actions --------------------------------------------------------------------------------- */

/*
 * What an engine wants of its thread, the strongest first. STOP holds until the engine that asked for it lets go by
 * kymo_engine_control(); an answer does not end it. The four below it are for once; DETACH ends the engine and asks for
 * nothing. SIGKILL, another thread's exec and exit_group end a STOP. So does time where a thread is held in EXIT: after
 * KYMO_EXIT_HOLD_MS it goes on, as a SIGKILL can't be seen there.
 */
enum kymo_action {
	KYMO_ACTION_STOP,
	KYMO_ACTION_INTERRUPT,  /* make it report soon; a system call that it sleeps in ends as by a signal */
	KYMO_ACTION_REPORT,     /* make it report soon; a system call that it sleeps in is made again */
	KYMO_ACTION_SINGLESTEP, /* one instruction (a system call is one), then report */
	KYMO_ACTION_BLOCKSTEP,  /* to the next taken branch, then report; SINGLESTEP where the processor can't */
	KYMO_ACTION_RESUME,
	KYMO_ACTION_DETACH,
};

#define KYMO_EXIT_HOLD_MS 2000

/* A callback answers with an action, and these ORed to it. */
enum kymo_verdict {
	/* Of syscall_entry. Once an engine has said ABORT the call is not made; it returns -ENOSYS unless an engine
	   changes that in syscall_exit. */
	KYMO_SYSCALL_RUN = 0x00,
	KYMO_SYSCALL_ABORT = 0x10,
	/* Of signal. What becomes of the signal; the next engine sees it in its report, and the last one's holds. */
	KYMO_SIGNAL_DELIVER = 0x10, /* to its handler; one that has none takes its default action */
	KYMO_SIGNAL_IGN = 0x20,     /* it never was */
	KYMO_SIGNAL_TERM = 0x30,    /* end the process: by this signal where that does so, else by SIGKILL */
	KYMO_SIGNAL_CORE =
		0x40, /* the same with a core dump, where the program has left any signal that makes one as it was */
	KYMO_SIGNAL_STOP = 0x50,    /* stop the process: by this signal where that does so, else by SIGSTOP */
	KYMO_SIGNAL_REQUEUE = 0x60, /* not now: report it again, to all engines, when the thread goes on */
};

#define KYMO_ACTION_OF(answer) ((enum kymo_action)((answer)&0x0f))
#define KYMO_VERDICT_OF(answer) ((answer)&0xf0)

/* ---- callbacks ------------------------------------------------------------------------------- */

/* What a signal callback is told. */
enum kymo_trap {
	KYMO_TRAP_NONE,       /* a signal for the program */
	KYMO_TRAP_BREAKPOINT, /* the thread stands at a breakpoint that this engine has inserted, before the instruction
			       */
	KYMO_TRAP_WATCH,      /* a debug register that this engine has claimed has been hit: after the access, before an
				 instruction */
};

/* What callbacks are told beside `action`. Valid until the callback returns. */
struct kymo_signal_report {
	siginfo_t info;       /* may be changed, si_signo too; as the engines before have left it */
	enum kymo_event kind; /* KYMO_EVENT_SIGNAL…: what the program would do with the signal as it came */
	unsigned int verdict; /* KYMO_SIGNAL_…: of the engine before; at first what fits `kind` */
	enum kymo_trap trap; /* if it is not NONE, `kind` is KYMO_EVENT_SIGNAL, and there is no signal: whatever becomes
				of `info` and the verdict means nothing */
	unsigned int slot;   /* of WATCH */
	uint64_t address;    /* of the breakpoint; of what is watched */
};

struct kymo_syscall_report {
	uint32_t arch; /* AUDIT_ARCH_… */
	uint64_t ip, sp;
	uint64_t number, args[6]; /* at the exit: as they were when it was entered and all engines had had their say; if
				     is_entry_known */
	bool is_entry_known;      /* false at an exit whose entry no engine was told */
	bool is_aborted;          /* an engine has said ABORT */
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
	pid_t former_tid; /* of the thread that called exec; another than its tid now where that was not the first
			     thread */
};

struct kymo_exit_report {
	int status; /* as waitpid() gives it */
};

struct kymo_death_report {
	int status; /* of the thread, as waitpid() gives it; SIGKILL's where it was not to be had */
};

struct kymo_reap_report {
	int status;          /* of the first thread: the process'; else of the thread */
	pid_t superseded_by; /* the thread, as it was called before, that has executed something and has its place; or 0
			      */
};

struct kymo_jctl_report {
	int signal; /* SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU: it has stopped; SIGCONT: it goes on */
};

/*
 * Any may be NULL: as if it had answered KYMO_ACTION_RESUME with the verdict so far.
 *
 * `action` is the strongest of what is wanted so far, this engine's own request included. All but reap return an
 * action, with a verdict where there is one. The action adds to what the engine has asked for by
 * kymo_engine_control(): RESUME takes nothing back. A kymo_engine_control() that comes while the callback runs counts
 * instead of its answer, if that is not DETACH. The thread stands still during all but death and reap: registers and
 * memory are available. An engine that is attached during an event is not told of that.
 *
 *   quiesce          `event` is that which comes next, or 0. The mask is read again after it
 *   signal           in attach order; SIGKILL is never reported. A STOP holds before the signal is delivered
 *   syscall_entry    in reverse attach order; a STOP holds before the call is made
 *   syscall_exit, exec, jctl, clone, exit    in attach order; a STOP holds before the thread runs on
 *   clone            the child can't run until all have returned; they may attach to it, and stop it.
 *                    Its own engines are told nothing of it
 *   death            no STOP is possible; DETACH: no REAP
 *   reap             the last one
 *
 * `size` is sizeof(struct kymo_engine_ops), as the program was compiled. Attaching refuses another size than that of
 * the library.
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

/* Begin a hub, which traces nothing yet. -EAGAIN, -ENOMEM; -EPERM where the kernel allows no tracing at all. */
int kymo_hub_create(struct kymo_hub **ret);

/*
 * Detach every engine, let go of every thread as it was, end the hub's thread. What was launched and not started is
 * ended. Engines get no callback for it. References to engines stay valid, for put and get only. Not from a callback.
 * No thread may be in a call of the hub's. NULL is allowed.
 */
void kymo_hub_destroy(struct kymo_hub *hub);

/* ---- hubs of other processes ----------------------------------------------------------------- */

/*
 * Let processes connect, by a socket that is there until the hub is destroyed: those of the same user, and root's. A
 * client can have engines on what both this process and the client itself may trace.
 *
 *   -EALREADY   the hub serves
 *   -EPERM      this process has more rights than the user that started it (set-uid, capabilities of its file)
 *   errors of the file system, where there is no directory for the socket
 */
int kymo_hub_serve(struct kymo_hub *hub);

/* How many are connected. */
unsigned int kymo_hub_clients(const struct kymo_hub *hub);

/*
 * Leave the hub to its clients: detach every engine of this process, as kymo_engine_detach_all() does, and wait until
 * no client is connected. From then on no client is let in, and the hub may be destroyed without taking it from one. A
 * process that connects later finds no hub, or kymo_hub_connect() says -EPIPE. Releases run on the hub's thread, and
 * may come later where a thread can't be stopped.
 *
 *   0             no client is connected
 *   -EAGAIN       one still was after `timeout_ms` (0: don't wait, negative: for ever)
 *   -EINTR        descriptor `wake` (-1: none) can be read
 *   -EDEADLK      from a callback
 *   -EOPNOTSUPP   of another process' hub
 */
int kymo_hub_hand_over(struct kymo_hub *hub, int wake, int timeout_ms);

/*
 * Connect to the hub that traces thread `tid`. What comes back is used like a hub of one's own, but:
 *
 *   - Callbacks run on a thread of this process, one at a time, while the hub waits. It waits for KYMO_ANSWER_MS for
 *     one of them, with the calls that the callback makes. Then the connection is over.
 *   - Calls wait for the hub's answer; the calls of several threads, for each other. So no callback may wait for
 *     another thread that makes calls.
 *   - A lookup finds engines of this connection only. EXCLUSIVE without MATCH_… looks at all engines.
 *   - Launching is not possible: -EOPNOTSUPP of kymo_hub_launch(), _start() and _wait().
 *   - The connection may end: by the hub's end, or as above. All engines are detached then and released, without a last
 *     callback. Calls on them say -ESRCH, those on the hub -EPIPE.
 *
 *   -ESRCH       there is no such thread
 *   -ENOENT      no process traces it, or its tracer serves no other process
 *   -EPERM       the hub is another user's
 *   -EPROTO      it is of another version
 *   -EPIPE       it ended meanwhile, or has too many clients
 *   -ETIMEDOUT   it does not answer
 *   -EAGAIN, -ENOMEM
 */
int kymo_hub_connect(pid_t tid, struct kymo_hub **ret);

#define KYMO_ANSWER_MS 5000 /* a client that is alive may wait for the processor for long */

/* Why a connection is over: -EPIPE, the hub has ended or has let us go; -ETIMEDOUT, a callback took too long; -EPROTO.
 * 0: it is not, or the hub is this process' own. */
int kymo_hub_failure(const struct kymo_hub *hub);

/* ---- launching ------------------------------------------------------------------------------- */

enum kymo_launch_flag {
	KYMO_LAUNCH_EXITKILL =
		1 << 0, /* the command and its followed children are ended with SIGKILL if the hub dies */
};

/*
 * Start `argv` (looked up in PATH), as a child of the hub's process. It stands before its first instruction, for
 * engines to be attached to `pid_ret`, until kymo_hub_start(). -ENOENT, -EACCES as execvp() gives them. Not from a
 * callback. kymo_hub_wait() must be called for it once.
 */
int kymo_hub_launch(struct kymo_hub *hub, unsigned int flags, char *const *argv, pid_t *pid_ret);

#define KYMO_CALL_NUMBERS 512

/*
 * The same, but the command, with all that it starts, gets a seccomp filter that picks calls: bit N % 64 of calls[N /
 * 64] is call N of x86-64. Where every engine of a thread that is told system calls has KYMO_MASK_PICKED_CALLS, the
 * others don't stop it, and cost next to nothing. 32-bit calls, numbers from KYMO_CALL_NUMBERS on, clone3(), and
 * clone() with CLONE_UNTRACED are always picked; clone3() with that flag fails with ENOSYS. A call that a filter of the
 * program's own refuses is not told.
 *
 * Nothing takes a filter away, and without a tracer picked calls fail with ENOSYS. So the hub lets go of none of these
 * threads: they stay traced when their engines are detached, and are ended with SIGKILL with the hub, by
 * kymo_hub_destroy() too (KYMO_LAUNCH_EXITKILL is implied). Without CAP_SYS_ADMIN the command gets no rights by set-uid
 * programs (no_new_privs).
 *
 *   -EINVAL    a kernel without such filters, or no `calls`
 */
int kymo_hub_launch_picking(struct kymo_hub *hub, unsigned int flags, char *const *argv, const uint64_t *calls,
			    pid_t *pid_ret);

/* Let a launched command run; without engines it is not traced. -ESRCH: no launched one, or it runs already. */
int kymo_hub_start(struct kymo_hub *hub, pid_t pid);

/* Wait for the end of a launched command; status as waitpid() gives it. -ECHILD: no launched one. -EDEADLK: from a
 * callback. */
int kymo_hub_wait(struct kymo_hub *hub, pid_t pid, int *status_ret);

/*
 * A sentence for an error that attaching to thread or process `tid` gave, as "thread 12 of process 11 is being traced
 * by process 99 (gdb); let it detach first". Asks /proc now; needs no hub. Writes at most `size` bytes, with the
 * NUL.
 */
void kymo_hub_explain(pid_t tid, int err, char *text, size_t size);

/* ---- attaching ------------------------------------------------------------------------------- */

enum kymo_attach_flag {
	KYMO_ATTACH_CREATE = 1 << 0,    /* make a new engine; else look for one */
	KYMO_ATTACH_EXCLUSIVE = 1 << 1, /* only if none matches */
	KYMO_ATTACH_MATCH_OPS = 1 << 2,
	KYMO_ATTACH_MATCH_DATA = 1 << 3,  /* with neither of both, any engine matches */
	KYMO_ATTACH_BREAKPOINTS = 1 << 4, /* with CREATE: it may insert breakpoints and claim debug registers */
};

/*
 * An engine of thread `tid`, with a reference for the caller. A new one has an empty mask and wants nothing; it is not
 * told of the event in progress. A thread that the hub does not have yet is seized, and does not stop for it.
 *
 * Seizing waits in the kernel while another thread of the process executes something. That waits for the end of all
 * other threads. Where one of them is the hub's already, the hub waits for ever, and the process with it. Processes
 * that may do so while they are attached to are better launched by the hub.
 *
 *   -EINVAL    CREATE without ops; an unknown flag
 *   -EBADR     CREATE, and ops->size is too small: it was not set, or the header is older than the library
 *   -E2BIG     CREATE, and ops->size is larger than the library knows: the header is newer than the library
 *   -EEXIST    EXCLUSIVE, and one matches
 *   -ENOENT    a lookup finds none
 *   -ESRCH     there is no such thread, or it is ending
 *   -EPERM     it may not be traced, on a connected hub by this process itself, as PTRACE_ATTACH would have it;
 *              kymo_hub_explain() says why. Engines of a connected hub are detached when the thread executes a program
 *              that this process may not trace
 *   -EBUSY     another tracer traces it; kymo_hub_explain() names it
 *   -EAGAIN    in a callback: its process has become another program, of which the hub has yet to tell
 *   -ENOMEM
 */
int kymo_engine_attach(struct kymo_hub *hub, pid_t tid, unsigned int flags, const struct kymo_engine_ops *ops,
		       void *data, struct kymo_engine **ret);

/*
 * A new engine for each thread of process `pid`, with mask `events` at once. Engines with CLONE are told of threads
 * that are made later. Only the hub gets references, so the caller has engines in callbacks, or by a lookup. `n_ret`
 * (may be NULL) is how many. All or none; `flags` may be BREAKPOINTS, and EXCLUSIVE with MATCH_… Errors as of
 * kymo_engine_attach().
 */
int kymo_engine_attach_process(struct kymo_hub *hub, pid_t pid, unsigned int flags, const struct kymo_engine_ops *ops,
			       void *data, unsigned int events, size_t *n_ret);

/*
 * Detach all engines of the hub that have these ops and this data. Wait until their threads run as they were and none
 * of their callbacks runs; from a callback, do not wait. Returns how many engines they were.
 */
size_t kymo_engine_detach_all(struct kymo_hub *hub, const struct kymo_engine_ops *ops, void *data);

/* ---- which engines there are ----------------------------------------------------------------- */

/* An engine of any process. */
struct kymo_engine_info {
	pid_t tid, pid; /* its thread, and the process of that */
	pid_t owner;    /* the process that has the engine: the hub's own, or one that is connected; 0: not known */
	unsigned int events; /* its mask */
	int wants; /* enum kymo_action: what it has asked for by kymo_engine_control() and has not got; STOP as long as
		      that holds */
};

/*
 * The engines of all threads of process `id`, or of thread `id` where that is no process' first. At most `max` are
 * stored; `n_ret` is how many there are. Each client is told the engines of all processes. No thread is stopped for it.
 * Engines that come and go between two of the messages that a long list takes may be missing, or be there twice.
 *
 *   -ESRCH        the hub has no such thread
 *   -EPIPE, -ETIMEDOUT, -EPROTO   the connection is over, as kymo_hub_failure() has it
 *   -ENOMEM
 */
int kymo_hub_list(struct kymo_hub *hub, pid_t id, struct kymo_engine_info *infos, size_t max, size_t *n_ret);

/* ---- an engine ------------------------------------------------------------------------------- */

/* References keep the engine's memory, nothing else. An attached engine has one of its own. */
void kymo_engine_get(struct kymo_engine *engine);
void kymo_engine_put(struct kymo_engine *engine); /* NULL is allowed */

/* Where it belongs. The tid changes where a thread other than the first calls exec. 0 once the thread was reaped. */
pid_t kymo_engine_tid(const struct kymo_engine *engine);
pid_t kymo_engine_pid(const struct kymo_engine *engine); /* of the thread's process */

/*
 * Set the mask. It holds for events that begin after the call has returned. A running thread is made to stop, and its
 * system calls are told from that stop on.
 *
 *   -EINVAL        an unknown event
 *   -ESRCH         detached, or the thread was reaped
 *   -EALREADY      clears DEATH when death is being reported or was, clears REAP when reaping is, sets DEATH on a dying
 *                  thread. Nothing is changed
 *   -EINPROGRESS   bits were cleared while a callback of this engine runs, on another thread: the mask is changed, but
 *                  that callback may be of a cleared one. See barrier
 */
int kymo_engine_set_events(struct kymo_engine *engine, unsigned int events);

/*
 * Say what the engine wants from now on. Does not block.
 *
 *   0              done. STOP: the thread stands still. DETACH: no callback comes any more, the caller cleans up
 *   -EINPROGRESS   STOP: it will stop, and QUIESCE is told when it has. DETACH: a callback of this engine runs just now
 *                  and is its last; then the caller cleans up, see barrier
 *   -EINVAL        no action; SINGLESTEP, BLOCKSTEP, REPORT without QUIESCE in the mask
 *   -ESRCH         detached; or the thread is dead, which takes DETACH only
 *   -EALREADY      DETACH: reap is being called, that is the last one and cleans up
 */
int kymo_engine_control(struct kymo_engine *engine, enum kymo_action action);

/*
 * Wait until no callback of this engine runs and its answer is applied. Of a detached one: until the thread was let go,
 * too.
 *
 *   0              so it is
 *   -ESRCH         the same, and the engine is detached or reaped: nothing comes any more
 *   -EDEADLK       from a callback of this engine
 */
int kymo_engine_barrier(struct kymo_engine *engine);

/* ---- looking at a thread --------------------------------------------------------------------- */

/* Which stop is being looked at. */
struct kymo_examiner {
	uint64_t stop;
};

/*
 * For looking from outside of callbacks at a thread that this engine has stopped: registers and memory are steady from
 * prepare to finish, if finish says so.
 *
 *   0         steady
 *   -EAGAIN   prepare: it has not stopped yet; finish: it woke meanwhile (it was killed), discard what was read
 *   -EINVAL   prepare: this engine does not hold it by STOP
 *   -ESRCH    dead, or detached
 */
int kymo_engine_prepare_examine(struct kymo_engine *engine, struct kymo_examiner *ret);
int kymo_engine_finish_examine(struct kymo_engine *engine, const struct kymo_examiner *examiner);

/*
 * These work in callbacks, and between prepare and finish. -ESRCH: the thread is dead; -EAGAIN: it does not stand
 * still; -ENOTSUP: it executes 32-bit code.
 *
 * Registers are the processor's. At a syscall_entry the number of the call is in the register for it.
 */
int kymo_engine_get_registers(struct kymo_engine *engine, struct user_regs_struct *ret);
int kymo_engine_set_registers(struct kymo_engine *engine, const struct user_regs_struct *registers);

/* At a syscall_entry: another call instead. Later engines are told of this one. -EINVAL elsewhere. */
int kymo_engine_set_syscall(struct kymo_engine *engine, uint64_t number, const uint64_t args[6]);

/* At a syscall_exit: what it returns; an error is a negative errno. -EINVAL elsewhere. */
int kymo_engine_set_result(struct kymo_engine *engine, int64_t result);

/*
 * Of a thread that has reported a signal and is held by this engine's STOP since: this signal instead of what the chain
 * of engines has decided, or none (0). The other engines are told nothing. -EINVAL: the thread does not stand before a
 * signal, or `info` is of another one. -EOPNOTSUPP: of another process' hub.
 */
int kymo_engine_set_signal(struct kymo_engine *engine, int signal, const siginfo_t *info);

/*
 * All of `size` bytes of its memory, read-only pages too, as they are without breakpoints. These work at any time while
 * the process lives, stopped or not, from any thread. They don't wait for the hub's thread, but where the process has
 * breakpoints: there for a moment, in which threads may be held to step over one. -EIO: not all is mapped; -ESRCH,
 * -EPERM.
 */
int kymo_engine_read(struct kymo_engine *engine, uint64_t address, void *data, size_t size);
int kymo_engine_write(struct kymo_engine *engine, uint64_t address, const void *data, size_t size);

/*
 * Send a signal to the thread, with this siginfo (si_signo, si_code and the rest are told to the program as they are).
 * It goes through the chain of engines like any other, but past this one. A signal below SIGRTMIN may be sent while one
 * of its number waits to be delivered to the thread: the two become one, as always. Does not wait. -EINVAL: no signal,
 * or SIGKILL with anything in it; -ESRCH; -EAGAIN.
 */
int kymo_engine_inject(struct kymo_engine *engine, const siginfo_t *info);

/* ---- breakpoints and debug registers --------------------------------------------------------- */

/*
 * Breakpoints and watched words are for engines that were attached with KYMO_ATTACH_BREAKPOINTS, as the death of the
 * hub's process can make them deadly for the traced one. A process of the hub's (the keeper) takes them out some tens
 * of microseconds after that death. A thread that runs into one in between is ended by SIGTRAP.
 *
 * A breakpoint is in memory, so every thread runs into it. An engine has it for its own thread. Engines of the thread
 * that have inserted it get their signal callback, with KYMO_TRAP_BREAKPOINT, if their masks have KYMO_EVENT_SIGNAL.
 * Other threads step over it, and no engine is told. For all threads, have an engine on each, and insert by each; for
 * new threads, in the CLONE that tells of them.
 *
 * No other party sees it: engines read what was there before, and what they write goes below. Forked children do not
 * have it, unless an engine of theirs inserts it. The instruction is executed when the thread goes on, with all other
 * threads of the process held for that moment.
 *
 * It goes with its engine, and with an exec. `address` must be the beginning of an instruction.
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

/* Nothing is told of it any more. -ENOENT: this engine has none there; -ESRCH. */
int kymo_engine_remove_breakpoint(struct kymo_engine *engine, uint64_t address);

#define KYMO_BREAKPOINTS_MAX 8000

enum kymo_watch {
	KYMO_WATCH_EXECUTION, /* of the instruction at the address; size is 1 */
	KYMO_WATCH_WRITE,
	KYMO_WATCH_ACCESS, /* reads and writes */
};

/*
 * Watch 1, 2, 4 or 8 bytes, at a multiple of that, by one of the thread's four debug registers. Of this thread alone:
 * new ones have empty registers. Works where registers do. A hit calls the signal callback of this engine alone, with
 * KYMO_TRAP_WATCH, if its mask has KYMO_EVENT_SIGNAL. Goes with the engine, and with an exec.
 *
 *   -EPERM    without KYMO_ATTACH_BREAKPOINTS
 *   -EINVAL   the processor can't watch that
 *   -ENOSPC   all four are claimed
 *   -EBUSY    none is free, and some are not the hub's: a tracer before has left them
 *   -EAGAIN   the thread does not stand still; or no keeper can be made
 *   -ESRCH
 */
int kymo_engine_watch(struct kymo_engine *engine, enum kymo_watch watch, uint64_t address, size_t size,
		      unsigned int *slot_ret);

/* Nothing is told of it any more. A thread that runs is stopped for it, and the slot is free then. -ENOENT: this engine
 * has no such slot; -ESRCH. */
int kymo_engine_unwatch(struct kymo_engine *engine, unsigned int slot);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
