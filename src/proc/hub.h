/* What the files of the hub share. include/kymo/engine.h is its interface, docs/design/engines.md the rules it keeps. */
#ifndef KYMO_PROC_HUB_H
#define KYMO_PROC_HUB_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "arch/trap.h"
#include "kymo/engine.h"
#include "proc/hub_seize.h"
#include "proc/process.h"

#define TASK_BUCKETS 1024u
#define HUB_RECENT 8
#define EVENTS_OF_STOPS (KYMO_EVENTS_SYSCALL)	/* that a thread stops for only if asked to when it is resumed */
#define HUB_MASK ((unsigned int)KYMO_EVENTS_ALL | KYMO_MASK_PICKED_CALLS)

/* Memory of a process, for readers on any thread. */
struct hub_memory {
	atomic_uint refs;
	struct kymo_process *process;
};

struct hub_process {
	pid_t pid;
	struct hub_memory *memory;
	struct hub_space *space;	/* with breakpoints, perhaps, and perhaps of other processes too; NULL: none */
	struct task *tasks;
	struct hub_process *next;
	bool is_launched;		/* our child; the struct stays until kymo_hub_wait() has had its status */
	bool is_held;			/* launched and not started */
	const struct hub_holder *holder;	/* for whom it stands still, or NULL */
	struct hub_holder *keeper;	/* who follows it, and may claim it at any time; or NULL */
	bool is_owed;			/* the keeper has, while another one holds it, and gets it next */
	bool is_first_held;		/* its first thread alone */
	pid_t second_held;		/* … and this one, which makes system calls; 0: none */
	bool has_filter;		/* of picked calls: it can't be let go of */
	bool was_killed;		/* … so it ends with the hub */
	bool has_ended;
	int status;			/* of a launched one that has ended */
};

enum task_state {
	TASK_RUNNING,			/* or about to tell something: a wait status will come */
	TASK_LISTENING,			/* in a group stop, PTRACE_LISTEN */
	TASK_STOPPED,			/* in a ptrace-stop that the hub has been told of */
	TASK_ENDING,			/* resumed from its exit event: nothing but its end will come */
};

enum task_stop {
	STOP_TRAP,			/* PTRACE_EVENT_STOP */
	STOP_SIGNAL,			/* signal-delivery-stop */
	STOP_ENTRY,
	STOP_EXIT,
	STOP_EVENT,			/* clone, exec */
	STOP_ENDING,			/* PTRACE_EVENT_EXIT */
	STOP_AWAY,			/* behind a call that was not its own, or before the first of these; see hub_hold.c */
};

/* What was taken from a thread that makes calls for somebody who holds its process. */
struct hub_borrow {
	bool has_own;			/* what follows is to be given back; else it is only run through a call */
	struct user_regs_struct own;
	uint64_t mask;
	uint64_t call_at;		/* where its call is made */
	unsigned int n_stops;		/* at system calls, which are to come before its call is made; 0: it stands still */
	bool is_left;			/* who has borrowed it is gone */
};

/* A signal that the hub has sent, until it arrives. */
struct sent_signal {
	int serial;
	struct kymo_engine *sender;	/* is not told of it; NULL: all are. Compared only */
	siginfo_t info;
	bool is_waiting;		/* for hub_forget_lost_signals() */
};

/* A thread. There is one while it has engines, is let go, or has been made by such a one and has not made its first stop. */
struct task {
	pid_t tid;
	struct hub_process *process;
	struct task *in_bucket, *in_process;
	struct task **link;		/* what points to it in its process */
	KYMO_VEC(struct kymo_engine *) engines;		/* in attach order; detached ones until the event in progress is over */
	KYMO_VEC(struct kymo_engine *) leavers;		/* detached, while the thread has yet to be let go */
	KYMO_VEC(struct sent_signal) sent;
	size_t n_waiting;		/* of them, when that was looked at last */
	enum task_state state;
	enum task_stop stop;
	uint64_t stop_serial;
	int signal;			/* to go on with */
	int group_stop;			/* the signal of the group stop that it is in, or 0 */
	bool is_taken;			/* seized to stand still, and for no engine: what it makes is nobody's */
	bool is_newborn;		/* its first stop has yet to come */
	bool has_maker;			/* … or has come, and its maker's event has not */
	bool was_interrupted;		/* an interrupt is on its way */
	bool ends_interrupt;		/* the stop that it stands in came while one was */
	bool traces_calls;		/* it was resumed so that it stops at system calls */
	bool steps;			/* one instruction */
	bool steps_call;		/* which is a system call */
	bool is_in_event;		/* callbacks are being called */
	bool is_kicked;
	bool is_expected;		/* is among those whose stops are on their way */
	bool makes_call_again;		/* an interrupt came into its system call; running, it is about to be at the entry of that */
	bool was_death_told, is_reaping;
	pid_t superseded_by;		/* the thread that has executed something and has its place */
	int end_status;
	uint64_t hold_deadline_ns;	/* of a hold in its exit event */
	bool is_claimed;		/* it has to stand still for its process' holder */
	struct hub_borrow *borrow;	/* or NULL */
	struct kymo_syscall_report call;
	bool is_fetched;		/* its next wait status is among the early ones */
	bool is_at_breakpoint;		/* of which has been told, and which has yet to be stepped over */
	bool has_told;			/* of the breakpoint that it came to with the registers `told` */
	bool passes_own_trap;		/* the next SIGTRAP is of an int3 of the program's */
	bool had_watches, has_stale_watch;	/* stale: of an engine that has detached */
	struct user_regs_struct told;
	bool knows_registers;		/* … which are those that it stands still with: of a process without breakpoints, for who takes it */
	int watch_entry;		/* in the journal, or -1 */
	struct hub_watch {
		struct kymo_engine *engine;	/* compared only; NULL: free, or stale */
		bool is_on;
		uint64_t address;
	} watches[KYMO_WATCH_SLOTS];
};

struct kymo_engine {
	atomic_uint refs;
	struct kymo_hub *hub;
	struct task *task;		/* NULL: detached and let go, or reaped */
	const struct kymo_engine_ops *ops;
	void *data;
	unsigned int events;
	enum kymo_action wants;
	bool owes_report, owes_step;	/* to be told by quiesce at the next stop, when the step is done */
	bool is_detached;
	bool is_in_callback;
	bool has_later;			/* was said by control() during a callback */
	enum kymo_action later;
	uint64_t born;			/* hub->event when it was attached */
	struct hub_guest *guest;	/* whose it is, with a reference; NULL: this process' own */
	uint64_t ops_key, data_key;	/* what MATCH_OPS and MATCH_DATA compare */
	bool may_break;			/* KYMO_ATTACH_BREAKPOINTS */
	KYMO_VEC(uint64_t) breakpoints;	/* addresses of those that it has inserted */
	uint64_t name;			/* between a hub and a client of it */
	struct kymo_engine *in_names;
};

/* Something that only the hub's thread can do. */
struct hub_request {
	int (*run)(struct kymo_hub *hub, void *argument);
	void *argument;
	int result;
	bool is_done;
	struct hub_request *next;
};

/* A wait status that was fetched out of turn. */
struct hub_status {
	pid_t tid;
	int status;
	uint64_t since_ns;
};

/* A child whose end the hub may take while it is being destroyed. */
struct hub_awaited {
	pid_t pid;
	bool has_ended;
	int status;
};

struct kymo_hub {
	struct hub_client *client;	/* it is another process' hub, and nothing below is used */
	struct hub_door *door;		/* for clients of ours, or NULL */
	pthread_t thread;
	pid_t tid;
	pthread_mutex_t lock;		/* guards all of this and all tasks and engines; not held in callbacks, nor while waiting for threads */
	pthread_cond_t changed;		/* a request is done, an event is over, a thread was let go, a command has ended */
	pid_t waker;			/* a child of the hub's thread, which any signal makes stop: that ends a blocking wait */
	bool is_asleep, is_ending;
	atomic_bool is_woken;
	int failure;			/* of the thread's start */
	bool has_started;
	bool is_here;			/* it has no thread of its own: see hub_create_here() */
	unsigned int n_users;		/* of one that is here */
	bool waits_for_any;		/* … has a tree, and is told of all children of its thread; else it looks at the threads that it has alone, by their ids */
	unsigned int depth;		/* within what events and requests make the hub do */
	void (*on_orphan)(void *data, pid_t tid);	/* of who has it here; NULL: they are let go */
	void (*while_waiting)(void *data);	/* now and then, in a callback, while somebody who is connected has yet to answer; or NULL */
	void *data;
	pid_t ended;			/* the thread whose end was seen last */
	char ended_comm[16];		/* its name, or "" */
	struct hub_request *first, *last;
	struct task *buckets[TASK_BUCKETS];
	struct hub_process *processes;
	KYMO_VEC(struct task *) kicked;
	KYMO_VEC(struct hub_status) early;	/* statuses that were fetched before their turn */
	struct hub_status spared;	/* the stop that is being dispatched, if it was not waited for */
	KYMO_VEC(pid_t) expected;	/* whose stops are on their way, where there are many; perhaps some that have stopped since, or are gone */
	size_t next_expected;		/* which to look at first */
	KYMO_VEC(struct hub_status) strangers;	/* first stops whose makers' events have yet to come */
	KYMO_VEC(struct kymo_engine *) dropped;	/* references to be put when the lock is not held */
	uint64_t event;			/* counts events */
	uint64_t stops;
	int sent_serial;
	unsigned int n_tasks;
	pid_t recent[HUB_RECENT];	/* that have told something, the last one first */
	unsigned int n_unscanned;	/* waits since one for any thread */
	unsigned int n_ending;		/* tasks held in their exit events */
	struct hub_space *spaces;
	struct hub_journal *journal;	/* shared with the keeper; NULL before it is needed first */
	pid_t keeper;			/* 0: none */
	struct hub_awaited *awaited;	/* by kymo_hub_close(), or NULL */
	bool has_filters;		/* some process has, or had, a filter of picked calls */
	struct hub_seizer seizer;
	int keeper_pidfd;		/* by which it sees the end of this process; -1: none */
};

/* ---- hub.c: the thread, and how others reach it ------------------------------------------------------------------------ */

bool hub_is_own_thread(const struct kymo_hub *hub);

/* Have `run(hub, argument)` executed by the hub's thread with the lock held, and wait for it; from that thread itself: now. What it returns. The lock is not held. */
int hub_call(struct kymo_hub *hub, int (*run)(struct kymo_hub *hub, void *argument), void *argument);

/*
 * The hub whose thread is the caller's: it has none of its own, and nothing happens but in hub_pump(), which the caller comes to whenever a SIGCHLD is pending for it, and every 20 ms. Requests of other
 * threads send it one. A thread has one, for whoever asks: destroyed by the same thread as often as it was created. -ENOMEM.
 */
int hub_create_here(struct kymo_hub **ret);

/* Do what has been asked for, and deal with one change of state of a thread or child. Whether there was anything. Not from a callback. */
bool hub_pump(struct kymo_hub *hub);

/* Do at once what this thread has asked for, if the hub's thread is this one and is not in a callback. */
void hub_flush(struct kymo_hub *hub);

/* Have the thread look at a task soon. Lock held. */
void hub_kick(struct kymo_hub *hub, struct task *task);

/* Put an engine when the lock is not held any more. Lock held. */
void hub_drop(struct kymo_hub *hub, struct kymo_engine *engine);

/* The waker has stopped, as somebody wants something, or was killed. */
void hub_waker_stopped(struct kymo_hub *hub, int status);

/* The lock is released meanwhile; does what hub_drop() has put off. On the hub's thread, lock held. */
void hub_bury(struct kymo_hub *hub);

/* ---- hub_wait.c: waiting for threads. On the hub's thread, lock held ----------------------------------------------------- */

/* What comes next, or 0: nothing has come, though others may want something. `sleeps`: wait for it. The lock is released meanwhile. */
pid_t hub_wait(struct kymo_hub *hub, bool sleeps, int *status_ret);

/* Whether thread `tid` has told something, which is to be dispatched now. */
bool hub_look(struct kymo_hub *hub, pid_t tid, int *status_ret);

/* Deal with what hub_wait() has told: of the waker, the keeper, or a thread. */
void hub_deal(struct kymo_hub *hub, pid_t tid, int status);

/* Both, without waiting: whether anything had come. */
bool hub_deal_with_next(struct kymo_hub *hub);

/* The stop that is being dispatched may not have been waited for: do it now, if the thread still stands there. */
void hub_wait_for_spared(struct kymo_hub *hub);

/* Its stop is on its way. */
void hub_expect(struct kymo_hub *hub, struct task *task);

/* Keep a status that was waited for, to be dispatched in its turn; a thread has one at a time. Forget it. */
void hub_keep_status(struct kymo_hub *hub, pid_t tid, int status);
void hub_forget_status(struct kymo_hub *hub, struct task *task);

/* The same for who is forgotten itself, but for its end, which somebody may wait for. */
void hub_forget_stop(struct kymo_hub *hub, const struct task *task);

/* Wait for at most `timeout_ns` for a task's next status, which is kept. */
bool hub_fetch(struct kymo_hub *hub, struct task *task, uint64_t timeout_ns, int *status_ret);

/* ---- hub_task.c: threads and processes. All with the lock held, and what calls ptrace on the hub's thread --------------- */

struct task *hub_find(const struct kymo_hub *hub, pid_t tid);
struct hub_process *hub_find_process(const struct kymo_hub *hub, pid_t pid);

/* The struct of a process, which may be new. NULL: memory is out. */
struct hub_process *hub_get_process(struct kymo_hub *hub, pid_t pid);

/* Free it if nobody needs it. */
void hub_put_process(struct kymo_hub *hub, struct hub_process *process);

/* Its memory, opened when it is needed first, or NULL. The process keeps it; whoever uses it without the lock takes a reference. */
struct hub_memory *hub_memory_of(struct hub_process *process);
void hub_memory_put(struct hub_memory *memory);

/* It is another one behind exec. */
void hub_forget_memory(struct hub_process *process);

/* A task for a thread that is traced already, running. NULL: memory is out. */
struct task *hub_add_task(struct kymo_hub *hub, struct hub_process *process, pid_t tid);

/* It is no more, or no more ours: engines lose it, without a callback. */
void hub_forget_task(struct kymo_hub *hub, struct task *task);

/* Whoever waits for the thread to be let go need not any more. */
void hub_release_leavers(struct kymo_hub *hub, struct task *task);

/* It has another id from now on. */
void hub_rekey_task(struct kymo_hub *hub, struct task *task, pid_t tid);

/*
 * Seize a thread of process `pid` (0: look which), which runs on. A negative errno, as kymo_engine_attach() has them. `ret` may be one that there is.
 *
 *   -EAGAIN      it has become another program meanwhile, or is about to be let go: again, when what is known of the one before has been dealt with
 *   -ETIMEDOUT   another thread executes something, and does not get on with it
 */
int hub_seize(struct kymo_hub *hub, pid_t tid, pid_t pid, struct task **ret);

/* Seize threads of a process that are not the hub's yet, once. How many were, or a negative errno; those that are ending are passed over. */
int hub_seize_threads(struct kymo_hub *hub, pid_t pid);

/* The same until there is no other. 0, or a negative errno. */
int hub_seize_all(struct kymo_hub *hub, pid_t pid);

/* Whether the process has threads that are not the hub's. A first thread that had ended before it could be seized is none. */
bool hub_lacks_threads(const struct kymo_hub *hub, pid_t pid);

/* ---- hub_seize.c: processes that execute something while they are seized. The same ---------------------------------------- */

/* Those of its threads that are the hub's, and are about to end, as an exec of another one waits for that. Ends are kept, to be dispatched in their turn. */
void hub_let_end(struct kymo_hub *hub, pid_t pid);

/* What has waited for an exec has seized the one that made it, by its former id: it is the process' first thread now, which is let go, as if it had not been seized. */
void hub_let_go_of_renamed(struct kymo_hub *hub, pid_t pid);

/* Whether its end is kept so. */
bool hub_has_end(const struct kymo_hub *hub, const struct task *task);

/* Whether one that was not the hub's has executed something, and has the place of the first thread, which was: whose end is kept then. */
bool hub_was_replaced(struct kymo_hub *hub, pid_t pid);

/* Nobody knows it: it runs on without us, or, where it has a filter of ours, ends. */
void hub_abandon(const struct kymo_hub *hub, pid_t tid);

#define HUB_OPTIONS                                                                                               \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | \
	 PTRACE_O_TRACEEXIT)

/* Of who is taken: who makes something for the kernel to attach may be killed before it has told of that. */
#define HUB_TAKER_OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC | PTRACE_O_TRACEEXIT)

/* ---- hub_run.c: threads that stop and go on. All with the lock held, on the hub's thread -------------------------- */

/* The masks of all its engines together. */
unsigned int hub_events(const struct task *task);

/* Make it stop. */
void hub_interrupt(struct kymo_hub *hub, struct task *task);

/*
 * From before a signal to a stop that has none, at the same place: it executes nothing in between. False: another thing happened to it (it was killed), or it stops later; that is told next.
 * `group_ret` is the signal of a group stop that this stop is, or 0.
 */
bool hub_swallow(struct kymo_hub *hub, struct task *task, int *group_ret);

/* Whether it stands still for an engine. */
bool hub_is_held(const struct task *task);

/* Whether somebody wants the call that it sleeps in to end. */
bool hub_is_interrupted(const struct task *task);

/* Deal with what engines have wanted since it was looked at last: interrupt it, tell what is owed, let it run, let it go. */
void hub_attend(struct kymo_hub *hub, struct task *task);

/* Let a stopped one go on, or stay, as its engines want; or let it go where there are none. */
void hub_settle(struct kymo_hub *hub, struct task *task);

/* Nobody holds it any more, as the kernel has woken it. */
void hub_break_stops(struct task *task);

/* Forget the deadline of a hold in its exit event. */
void hub_end_hold(struct kymo_hub *hub, struct task *task);

/* ---- hub_release.c: the end of a hub. The same -------------------------------------------------------------------- */

/* Let go of all that are stopped or can be within `timeout_ms`. */
void hub_release_all(struct kymo_hub *hub, int timeout_ms);

/* ---- hub_launch.c ------------------------------------------------------------------------------------------------------------ */

/* What has come of a command that was launched here. */
struct hub_launched {
	pid_t pid;
	int status;			/* of one that has ended before it has executed anything, as waitpid() gives it */
	int err;			/* why that could not be executed, as execvp() has it; 0: the child has not told */
};

/*
 * Launch `argv`, found as execvp() does, for a recorder: it stands behind its execve, traced, and nobody's until it is held. If this process dies before it has executed anything, it does that
 * by itself. Its end is told by hub_launched_ended(): SIGCHLD is not ignored from then on, but by commands, if it was. From the hub's thread.
 *
 *   0          it stands there
 *   -ECHILD    it has ended, see `ret`
 *   -EPERM     it can't be traced
 *   others     no child could be made
 */
int hub_launch_here(struct kymo_hub *hub, char *const *argv, struct hub_launched *ret);

/* Whether a launched command has ended; then its status. Looks whether it has, where the hub does not trace it any more. */
bool hub_launched_ended(struct kymo_hub *hub, pid_t pid, int *status_ret);

/* ---- hub_filter.c: the seccomp filter of picked calls --------------------------------------------------------------------- */

#define HUB_FILTER_MAX 2048
#define HUB_FILTER_MARK 0x6b79u	/* tells our filter's stops from those that a filter of the program's own wants */

struct sock_filter;

/* `out` has room for HUB_FILTER_MAX. How many instructions. Pure. */
size_t hub_filter_make(const uint64_t *calls, struct sock_filter *out);

/* For the calling thread and what it makes; safe behind fork(). A negative errno. */
int hub_filter_install(const struct sock_filter *filter, size_t n);

/* ---- hub_stops.c: what wait statuses mean -------------------------------------------------------------------------------- */

/* Thread `tid` has changed state so. On the hub's thread, lock held; releases it for callbacks. */
void hub_dispatch(struct kymo_hub *hub, pid_t tid, int status);

/*
 * Whether a step is done that its thread, which stands at a PTRACE_EVENT_STOP, has not told yet. Then its own stop has been made to come next, without an instruction in between. That ends a
 * group stop, into which the thread has to be sent again.
 */
bool hub_waits_for_step(struct task *task);

/*
 * A stopped thread's call may have failed because of us, as it would not have without a tracer: by the stop itself (`signal` 0), or for a signal that its process ignores, which wakes up only who
 * has a tracer. It is made again, unless an engine wants it to end.
 */
void hub_undo_interruption(struct task *task, int signal);

/* Whether a SIGTRAP is of a step: behind an instruction, a system call; at the beginning of a signal handler. */
bool hub_is_of_step(const siginfo_t *info);

/* First stops that nobody has claimed for long, if `is_idle`: else what has yet to be dispatched may be their makers' events. And holds in exit events that have lasted too long. */
void hub_look_at_clock(struct kymo_hub *hub, bool is_idle);

/* Whether that is to be called every few milliseconds. */
bool hub_needs_clock(const struct kymo_hub *hub);

/* ---- hub_report.c: calling engines. On the hub's thread, lock held, released for each callback --------------------------- */

/* Quiesce for those that were promised one. `with_steps`: a step is done. */
void hub_report_owed(struct kymo_hub *hub, struct task *task, bool with_steps);

void hub_report_syscall(struct kymo_hub *hub, struct task *task, unsigned int event);
void hub_report_clone(struct kymo_hub *hub, struct task *task, const struct kymo_clone_report *report);
/*
 * It has executed a program: has each client prove again that it may trace it, and lets go of the former memory,
 * which is all that a client reaches until then. Engines of a client that may not are detached, its hold ends.
 */
void hub_report_to_guests(struct kymo_hub *hub, struct task *task);
void hub_report_exec(struct kymo_hub *hub, struct task *task, pid_t former_tid);
void hub_report_exit(struct kymo_hub *hub, struct task *task, int status);
void hub_report_jctl(struct kymo_hub *hub, struct task *task, int signal);
void hub_report_signal(struct kymo_hub *hub, struct task *task, struct kymo_signal_report *report, const struct kymo_engine *skip);

/* What is told to `is_for` alone, and is no signal. */
void hub_report_trap(struct kymo_hub *hub, struct task *task, struct kymo_signal_report *report, bool (*is_for)(const struct kymo_engine *engine, const void *report));

/* DEATH; may be called once. */
void hub_report_death(struct kymo_hub *hub, struct task *task, int status);

/* REAP, and the end of the task. DEATH has been told. */
void hub_report_reap(struct kymo_hub *hub, struct task *task, int status);

/* ---- hub_signal.c ---------------------------------------------------------------------------------------------------------- */

/* A thread has stopped before a signal is delivered: ask engines, and set task->signal. Lock held. */
void hub_signal_stopped(struct kymo_hub *hub, struct task *task, int signal);

/* Of a thread that has stopped, and a signal that it stands before has been dealt with: those that were sent and don't arrive any more. Lock held. */
void hub_forget_lost_signals(struct kymo_hub *hub, struct task *task);

/* ---- hub_hold.c: processes that stand still for somebody who is connected. On the hub's thread, lock held -------------------- */

/* A claimed thread stands where it is to. */
bool hub_is_still(const struct task *task);

/* Its registers, which were read: where they are asked for next, that is saved. */
void hub_hold_note(struct task *task, const struct user_regs_struct *registers);

/* hub_borrow.c: whether a stop of thread `task` was of a call that is not its own, and was dealt with. */
bool hub_borrowed_stopped(struct kymo_hub *hub, struct task *task, int status);

/* Whether a borrowed thread makes a call by the instruction there. */
bool hub_calls_at(const struct hub_process *process, uint64_t address);

/* It is ending, or is another program now: nothing is given back. */
void hub_forget_borrow(struct task *task);

/* ---- hub_look.c ------------------------------------------------------------------------------------------------------------ */

/* At the entry of a system call: make it another one. A negative errno. */
int hub_set_call(struct task *task, uint64_t number, const uint64_t args[6]);

/* Which stop at a system call it is; fills task->call. STOP_EVENT: neither, or it was killed. */
enum task_stop hub_read_call(struct task *task);

/* Whether its memory has breakpoints, which reading must not show. */
bool hub_has_breakpoints(struct kymo_engine *engine);

/* ---- hub_engine.c ----------------------------------------------------------------------------------------------------------- */

/* What is attached, or looked for. Keys of own engines are their addresses. */
struct hub_attach {
	pid_t id;
	unsigned int flags, events;
	const struct kymo_engine_ops *ops;
	void *data;
	uint64_t ops_key, data_key;
	struct hub_guest *guest;
	int proof;			/* of the guest: a descriptor, or -1 (hub_proof.h) */
	uint64_t name;			/* the first engine's; others count on */
	struct kymo_engine **ret;
	size_t n;
};

/* kymo_engine_attach(), kymo_engine_attach_process(); flags and events have been checked. */
int hub_attach(struct kymo_hub *hub, struct hub_attach *attach);
int hub_attach_process(struct kymo_hub *hub, struct hub_attach *attach);

/* Whose engines to detach: all of the guest's, or those that match. */
struct hub_match {
	const struct hub_guest *guest;
	bool is_any;
	uint64_t ops_key, data_key;
};

/* kymo_engine_detach_all() */
size_t hub_detach_all(struct kymo_hub *hub, const struct hub_match *match);

/* kymo_hub_list(), without the first `from` (hub_list.c) */
int hub_list(struct kymo_hub *hub, pid_t id, size_t from, struct kymo_engine_info *infos, size_t max, size_t *n_ret);

/* Put an engine from a thread, or at a time, that must not run what comes after its last reference. */
void hub_put_later(struct kymo_engine *engine);

/* kymo_engine_barrier() that does not wait, but says -EAGAIN. `event` is 0 the first time, and what it was made afterwards. */
int hub_try_barrier(struct kymo_engine *engine, uint64_t *event);

/* Not an engine of its task any more. Lock held. */
void hub_detach_engine(struct kymo_hub *hub, struct kymo_engine *engine);

/* The event in progress is over: take out what was detached meanwhile. Lock held. */
void hub_purge_engines(struct kymo_hub *hub, struct task *task);

/* ---- hub_guest.c, hub_door.c: those that are connected ------------------------------------------------------------------------ */

/* A new engine is a guest's; the last reference to it was put. */
void hub_guest_take(struct hub_guest *guest, struct kymo_engine *engine);
void hub_guest_release(struct kymo_engine *engine);

/* Nobody is served any more, and nobody's engines are left. NULL is allowed. */
void hub_close_door(struct hub_door *door);

/* Whether anybody is inside of a hub with threads; if not, nobody is let in any more. */
bool hub_is_shared(struct kymo_hub *hub);

/* The process of one that is connected, or 0. */
pid_t hub_visitor(const struct kymo_hub *hub);

/* When the hub's threads were let go. NULL is allowed. */
void hub_destroy_door(struct hub_door *door);

/* ---- hub_client.c: calls on another process' hub -------------------------------------------------------------------------------- */

/* Connect to the hub whose thread is `tid`. As kymo_hub_connect(). */
int hub_connect_to(pid_t tid, struct kymo_hub **ret);

void hub_client_destroy(struct hub_client *client);
int client_attach(struct kymo_hub *hub, pid_t tid, unsigned int flags, const struct kymo_engine_ops *ops, void *data, struct kymo_engine **ret);
int client_attach_process(struct kymo_hub *hub, pid_t pid, unsigned int flags, const struct kymo_engine_ops *ops, void *data, unsigned int events,
			  size_t *n_ret);
size_t client_detach_all(struct kymo_hub *hub, const struct kymo_engine_ops *ops, const void *data);
pid_t client_tid(const struct kymo_engine *engine);
pid_t client_pid(const struct kymo_engine *engine);
int client_set_events(struct kymo_engine *engine, unsigned int events);
int client_control(struct kymo_engine *engine, enum kymo_action action);
int client_barrier(struct kymo_engine *engine);
int client_prepare_examine(struct kymo_engine *engine, struct kymo_examiner *ret);
int client_finish_examine(struct kymo_engine *engine, const struct kymo_examiner *examiner);
int client_get_registers(struct kymo_engine *engine, struct user_regs_struct *ret);
int client_set_registers(struct kymo_engine *engine, const struct user_regs_struct *registers);
int client_set_syscall(struct kymo_engine *engine, uint64_t number, const uint64_t args[6]);
int client_set_result(struct kymo_engine *engine, int64_t result);
int client_read(struct kymo_engine *engine, uint64_t address, void *data, size_t size);
int client_write(struct kymo_engine *engine, uint64_t address, const void *data, size_t size);
int client_inject(struct kymo_engine *engine, const siginfo_t *info);
int client_insert_breakpoint(struct kymo_engine *engine, uint64_t address);
int client_remove_breakpoint(struct kymo_engine *engine, uint64_t address);
int client_watch(struct kymo_engine *engine, enum kymo_watch watch, uint64_t address, size_t size, unsigned int *slot_ret);
int client_unwatch(struct kymo_engine *engine, unsigned int slot);

#endif
