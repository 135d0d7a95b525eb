/* Threads and processes of a hub. All with the lock held, and what calls ptrace on the hub's thread. */
#ifndef KYMO_HUB_THREAD_TASK_H
#define KYMO_HUB_THREAD_TASK_H

#include <stdatomic.h>

#include "arch/flags.h"
#include "arch/trap.h"
#include "base/vec.h"
#include "kymo/engine.h"
#include "procfs/memory.h"

struct hub_remote_call;
struct hub_owner;
struct hub_space;

/* Memory of a process, for readers on any thread. */
struct hub_memory {
	atomic_uint refs;
	struct kymo_memory opened;
};

struct hub_process {
	pid_t pid;
	struct hub_memory *memory;
	struct hub_space *space; /* with breakpoints, perhaps, and perhaps of other processes too; NULL: none */
	struct task *tasks;
	struct hub_process *next;
	bool is_launched;              /* our child; the struct stays until kymo_hub_wait() has had its status */
	bool is_held;                  /* launched and not started */
	const struct hub_owner *owner; /* which has it frozen, or NULL */
	struct hub_owner *follower;    /* which follows it, and may request it at any time; or NULL */
	bool is_owed;                  /* the follower has requested it from another owner, and gets it next */
	bool is_first_frozen;          /* its first thread alone */
	pid_t second_frozen;           /* … and this one, which makes system calls; 0: none */
	bool has_filter;               /* of picked calls: it can't be let go of */
	bool was_killed;               /* … so it ends with the hub */
	bool has_ended;
	int status; /* of a launched one that has ended */
};

/* Both are set by thread/states.c, which has what may follow what. */
enum task_state {
	TASK_RUNNING,   /* or about to tell something: a wait status will come */
	TASK_LISTENING, /* in a group stop, PTRACE_LISTEN */
	TASK_STOPPED,   /* in a ptrace-stop that the hub has been told of */
	TASK_ENDING,    /* resumed from its exit event: nothing but its end will come */
};

enum task_stop {
	STOP_TRAP,   /* PTRACE_EVENT_STOP */
	STOP_SIGNAL, /* signal-delivery-stop */
	STOP_ENTRY,
	STOP_EXIT,
	STOP_EVENT,  /* clone, exec */
	STOP_ENDING, /* PTRACE_EVENT_EXIT */
	STOP_AWAY,   /* after a call that was not its own, or before the first of these; see freeze/freeze.c */
};

/* A signal that the hub has sent, until it arrives. */
struct sent_signal {
	int serial;
	struct kymo_engine *sender; /* is not told of it; NULL: all are. Compared only */
	siginfo_t info;
	bool is_waiting; /* for hub_forget_lost_signals() */
};

/* How a thread was made, until both its first stop and its maker's event have come. */
struct hub_birth {
	bool is_taken;   /* seized to be frozen, and for no engine: no engine gets what it makes */
	bool is_newborn; /* its first stop has yet to come */
	bool has_maker;  /* … or has come, and its maker's event has not */
};

/* How a thread was resumed, and so which stop comes next. */
struct hub_resumed {
	bool was_interrupted;  /* an interrupt is on its way */
	bool traces_calls;     /* it stops at system calls */
	bool steps;            /* one instruction */
	bool steps_call;       /* which is a system call */
	bool makes_call_again; /* an interrupt came into its system call; running, it is about to be at the entry of
				  that */
	bool is_expected;      /* is among those whose stops are on their way */
	bool is_fetched;       /* its next wait status is among the early ones */
};

/* The end of a thread. */
struct hub_end {
	bool was_told, is_reaping;
	pid_t superseded_by; /* the thread that has executed something and has its place */
	int status;
	uint64_t hold_deadline_ns; /* of a hold in its exit event */
};

/* A signal that it sends to itself: hub/own_signal.h. */
struct hub_own_signal {
	const struct kymo_engine *engine; /* for which; compared only */
	int signal;                       /* 0: none is expected */
	uint64_t at;                      /* where it stands when it is told of it */
	bool has_come;
};

/* Breakpoints and watchpoints of a thread. */
struct hub_traps {
	bool is_at_breakpoint;             /* of which has been told, and which has yet to be stepped over */
	bool has_told;                     /* of the breakpoint that it came to with the registers `told` */
	bool is_passing;                   /* it has gone on to what the pad there has displaced */
	bool passes_own;                   /* the next SIGTRAP is of an int3 of the program's */
	bool had_watches, has_stale_watch; /* stale: of an engine that has detached */
	struct user_regs_struct told;
	struct kymo_flags_step pushes; /* of the hub's step over that breakpoint, which has the kernel's trap flag */
	uint64_t pushes_from; /* the stack pointer before that step: an engine may have changed it since the hit */
	bool knows_registers; /* … which are those that it is stopped with: of a process without breakpoints, for the
				 owner that takes it */
	int watch_entry;      /* in the journal, or -1 */
	struct hub_watch {
		struct kymo_engine *engine; /* compared only; NULL: free, or stale */
		bool is_on;
		uint64_t address;
	} watches[KYMO_WATCH_SLOTS];
};

/* A thread. There is one while it has engines, is let go, or has been made by such a one and has not made its first
 * stop. */
struct task {
	pid_t tid;
	struct hub_process *process;
	struct task *in_bucket, *in_process;
	struct task **link;                     /* what points to it in its process */
	KYMO_VEC(struct kymo_engine *) engines; /* in attach order; detached ones until the event in progress is over */
	KYMO_VEC(struct kymo_engine *) leavers; /* detached, while the thread has yet to be let go */
	KYMO_VEC(struct sent_signal) sent;
	size_t n_waiting; /* of them, when that was looked at last */
	enum task_state state;
	enum task_stop stop;
	uint64_t stop_serial;
	int signal;          /* to go on with */
	int group_stop;      /* the signal of the group stop that it is in, or 0 */
	bool ends_interrupt; /* the stop that it stands in came while an interrupt was on its way */
	bool is_in_event;    /* callbacks are being called */
	bool is_kicked;
	bool must_freeze;                    /* for the owner of its process */
	struct hub_remote_call *remote_call; /* or NULL */
	struct kymo_syscall_report call;
	struct hub_birth birth;
	struct hub_resumed resumed;
	struct hub_end end;
	struct hub_traps traps;
	struct hub_own_signal own;
};

struct task *hub_find(const struct kymo_hub *hub, pid_t tid);
struct hub_process *hub_find_process(const struct kymo_hub *hub, pid_t pid);

/* The struct of a process, which may be new. NULL: memory is out. */
struct hub_process *hub_get_process(struct kymo_hub *hub, pid_t pid);

/* Free it if nothing needs it. */
void hub_put_process(struct kymo_hub *hub, struct hub_process *process);

/* Its memory, opened when it is needed first, or NULL. The process keeps it. A caller that uses it without the lock
 * takes a reference. */
struct hub_memory *hub_memory_of(struct hub_process *process);
void hub_memory_put(struct hub_memory *memory);

/* After an exec the process has another memory. */
void hub_forget_memory(struct hub_process *process);

/* A task for a thread that is traced already, running. NULL: memory is out. */
struct task *hub_add_task(struct kymo_hub *hub, struct hub_process *process, pid_t tid);

/* No caller has to wait any more for the thread to be detached. */
void hub_release_leavers(struct kymo_hub *hub, struct task *task);

/* It has another id from now on. */
void hub_rekey_task(struct kymo_hub *hub, struct task *task, pid_t tid);

/* The masks of all its engines together. */
unsigned int hub_events(const struct task *task);

/* No engine stops it any more, as the kernel has woken it. */
void hub_break_stops(struct task *task);

/* Forget the deadline of a hold in its exit event. */
void hub_end_hold(struct kymo_hub *hub, struct task *task);

/* It is in no table any more. */
void hub_take_out_task(struct kymo_hub *hub, struct task *task);

#endif
