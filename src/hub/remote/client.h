/* At the client: the connection to the hub of another process. message.h has what both say, docs/internals/engines.md
 * the rules. */
#ifndef KYMO_HUB_REMOTE_CLIENT_H
#define KYMO_HUB_REMOTE_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/vec.h"
#include "hub/remote/table.h"
#include "hub/state.h"

struct hub_message;
struct hub_ops;

/* Engines of a process that were attached to together: those whose names have this in their upper half. */
struct hub_group {
	uint64_t number;
	const struct kymo_engine_ops *ops;
	void *data;
};

struct hub_client {
	struct kymo_hub hub;  /* the first member: of it only `ops` is used */
	pid_t hub_tid;        /* the thread that it is connected to */
	int requests, events; /* sockets */
	pthread_t thread;     /* that runs callbacks */
	pthread_mutex_t lock; /* of the first socket: one asks at a time */
	pthread_mutex_t state_lock;
	pthread_cond_t state_changed;
	bool has_drained;   /* the connection is over, and no callback runs any more */
	atomic_int failure; /* why it is over */
	atomic_bool is_ending;
	atomic_uint serial, names;
	struct hub_table table;            /* has a reference to each engine until the hub is through with it */
	KYMO_VEC(struct hub_group) groups; /* of attaching to processes; under state_lock */
	KYMO_VEC(uint64_t) gone;           /* names of those that were in groups; the same */
	pthread_mutex_t run_lock;          /* one has something run at a time */
	void (*due)(void *data);           /* what is to be run next, by the thread; under state_lock */
	void *due_data;
	struct kymo_engine *told; /* whose callback runs; for the thread itself, as the next four */
	bool is_running;          /* what was due */
	pid_t told_tid, told_pid;
	bool told_breakpoints; /* are in its memory, which is to be read through the hub then */
};

/* The connection that a hub is, of that nature. */
static inline struct hub_client *hub_client_of(struct kymo_hub *hub)
{
	return (struct hub_client *)hub;
}

/*
 * Ask the hub, and put the reply in place of the message. `memory` has what goes along, or room for what comes, of
 * `message->size`. The result of the message, or -EPIPE: it is over.
 */
int64_t hub_client_ask(struct hub_client *client, struct hub_message *message, void *memory);

/* The same, and the connection is over if the reply takes longer. */
int64_t hub_client_ask_for(struct hub_client *client, struct hub_message *message, void *memory, unsigned int ms);

/*
 * Have the thread run something between two callbacks, as kymo_hub_run(). The hub's thread waits for it, as for a
 * callback. If the connection is over, the caller runs it, when no callback runs any more.
 */
void hub_client_run(struct hub_client *client, void (*run)(void *data), void *data);

/* Whether this is its thread, in a callback of `engine` (NULL: of any, or in what hub_client_run() has it run). */
bool hub_client_is_told(const struct hub_client *client, const struct kymo_engine *engine);

/* After -EPIPE: wait until no callback runs any more. From the client's thread: don't. */
void hub_client_wait_for_end(struct hub_client *client);

/* The engine of that name, with a reference for the caller, which may be one of a group that was not seen before. NULL:
 * none, or memory is out. */
struct kymo_engine *hub_client_find(struct hub_client *client, uint64_t name);

/* A name that was not used, with 2^32 more after it. */
uint64_t hub_client_new_name(struct hub_client *client);

/* Connect to the hub whose thread is `tid`, by calls that are `ops`. As kymo_hub_connect(). */
int hub_client_create(pid_t tid, const struct hub_ops *ops, struct kymo_hub **ret);

/* End the connection, and free it, with the hub in it. */
void hub_client_destroy(struct hub_client *client);

#endif
