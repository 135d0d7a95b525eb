/* What a hub is made of, for the files of this room. include/kymo/engine.h is its interface. */
#ifndef KYMO_HUB_STATE_H
#define KYMO_HUB_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "hub/thread/seize.h"
#include "kymo/engine.h"

struct hub_door;
struct hub_journal;
struct hub_ops;
struct hub_process;
struct hub_space;
struct task;

#define TASK_BUCKETS 1024u
#define HUB_RECENT 8

/* What the end of a hub does with its door. */
struct hub_door_ops {
	void (*close)(struct hub_door *door);   /* no client is served any more, and no client's engines are left */
	void (*destroy)(struct hub_door *door); /* when the hub's threads were let go */
};

/* Something that only the hub's thread can do. */
struct hub_request {
	int (*run)(struct kymo_hub *hub, void *argument);
	void *argument;
	int result;
	atomic_uint
		is_done; /* a futex; the request is gone as soon as it is not 0. 1: more follows, with the lock held */
	struct hub_request *next;
};

/* A wait status that was fetched out of turn. */
struct hub_status {
	pid_t tid;
	int status;
	uint64_t since_ns;
};

/* A child whose end the hub may take while it is being destroyed: the structs of processes are freed before that. */
struct hub_awaited {
	pid_t pid;
	bool has_ended;
	int status;
};

/* How the start of the hub's thread has gone. */
struct hub_start {
	int failure;
	bool is_done;
};

/* How the hub's thread sleeps, and is woken. */
struct hub_sleep {
	pid_t waker; /* a child of it, which any signal makes stop: that ends a blocking wait */
	bool is_asleep;
	atomic_bool is_woken;
	bool was_asked, is_resting; /* hub_rest() */
	pthread_cond_t asked;
	bool owes_signal; /* hub_doze() took a SIGCHLD, which may have told of more than its caller looked at */
};

/* What has the hub: what it tells that, and the user that commands run as. */
struct hub_user {
	void (*on_orphan)(void *data, pid_t tid); /* NULL: orphans are let go */
	void (*while_waiting)(void *data); /* now and then, in a callback, while a client has yet to answer; or NULL */
	void *data;
	const struct kymo_identity *identity; /* of commands; NULL: that of this process */
};

/* What is to be done on the hub's thread, in the order in which it was asked for. */
struct hub_requests {
	struct hub_request *first, *last;
};

struct hub_tasks {
	struct task *buckets[TASK_BUCKETS];
	unsigned int n;
	unsigned int n_ending; /* held in their exit events */
	KYMO_VEC(struct task *) kicked;
};

/* Wait statuses that are not told of yet. */
struct hub_statuses {
	KYMO_VEC(struct hub_status) early; /* that were fetched before their turn */
	struct hub_status spared;          /* the stop that is being dispatched, if it was not waited for */
	KYMO_VEC(pid_t)
	expected; /* whose stops are on their way, where there are many; perhaps some that have stopped since, or are
		     gone */
	size_t next_expected;                  /* which to look at first */
	KYMO_VEC(struct hub_status) unclaimed; /* first stops whose makers' events have yet to come */
};

/* Which threads are looked at first. */
struct hub_search {
	pid_t recent[HUB_RECENT];                /* that have told something, the last one first */
	unsigned int n_unscanned;                /* waits since one for any thread */
	unsigned int n_turns_free, n_turns_left; /* stops at calls for which the hub looks for no other thread: at most,
						    and of those still to come */
};

/* The thread whose end was seen last. */
struct hub_ended {
	pid_t tid;
	char comm[16]; /* its name, or "" */
};

/* How many there have been. */
struct hub_counts {
	uint64_t events, stops;
	int sent; /* signals */
};

/* The process that takes breakpoints out where the hub's own is killed. */
struct hub_keeper {
	struct hub_journal *journal; /* shared with it; NULL before it is needed first */
	pid_t pid;                   /* 0: none */
	int pidfd;                   /* by which it sees the end of this process; -1: none */
};

struct kymo_hub {
	const struct hub_ops *ops; /* its nature, for life. Of a connection nothing below is set (ops.h) */
	struct hub_door *door;     /* for clients of ours, or NULL */
	const struct hub_door_ops *door_ops;
	pthread_t thread;
	pid_t tid;
	pthread_mutex_t lock; /* guards all of this and all tasks and engines; not held in callbacks, nor while waiting
				 for threads */
	pthread_cond_t changed; /* a request is done, an event is over, a thread was let go, a command has ended */
	struct hub_start start;
	struct hub_sleep sleep;
	bool is_ending;
	bool is_here;         /* it has no thread of its own: see hub_create_here() */
	bool waits_for_any;   /* one that is here has a tree, and is told of all children of its thread; else it looks
				 at the threads that it has alone, by their ids */
	bool has_filters;     /* some process has, or had, a filter of picked calls */
	unsigned int n_users; /* of one that is here */
	unsigned int depth;   /* within what events and requests make the hub do */
	struct hub_user user;
	struct hub_requests requests;
	struct hub_tasks tasks;
	struct hub_process *processes;
	struct hub_statuses statuses;
	struct hub_search search;
	struct hub_ended ended;
	struct hub_awaited *awaited; /* by kymo_hub_close(), or NULL */
	struct hub_counts counts;
	KYMO_VEC(struct kymo_engine *) dropped; /* references to be put when the lock is not held */
	struct hub_space *spaces;
	struct hub_keeper keeper;
	struct hub_seizer seizer;
};

#endif
