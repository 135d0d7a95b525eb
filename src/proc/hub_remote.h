/* A hub and those that are connected to it, from both sides. hub_message.h has what they say, docs/design/engines.md the rules. */
#ifndef KYMO_PROC_HUB_REMOTE_H
#define KYMO_PROC_HUB_REMOTE_H

#include "proc/hub_hold.h"
#include "proc/hub_message.h"

/* ---- engines by their names (hub_table.c) -------------------------------------------------------------------------------- */

#define NAME_BUCKETS 1024u

struct hub_table {
	pthread_mutex_t lock;
	struct kymo_engine *buckets[NAME_BUCKETS];
};

void hub_table_init(struct hub_table *table);
void hub_table_deinit(struct hub_table *table);
void hub_table_add(struct hub_table *table, struct kymo_engine *engine);

/* One with a reference for the caller, or NULL; one that nobody has a reference to any more is not there. */
struct kymo_engine *hub_table_find(struct hub_table *table, uint64_t name);

/* Take one out; it may not be there: NULL. References stay as they are. */
struct kymo_engine *hub_table_take(struct hub_table *table, uint64_t name);

/* Take this one out, though another may have its name. */
void hub_table_remove(struct hub_table *table, struct kymo_engine *engine);

/* Take any out, or NULL. */
struct kymo_engine *hub_table_take_any(struct hub_table *table);

/* ---- at the hub: one that is connected (hub_guest.c) --------------------------------------------------------------------- */

struct hub_guest {
	struct kymo_hub *hub;
	struct hub_door *door;		/* is there as long as its thread */
	atomic_uint refs;		/* its thread's, and one of each engine */
	int requests;			/* sockets */
	atomic_int events;		/* for the hub's thread alone */
	atomic_bool is_lost, has_ended;
	pthread_t thread;
	uint32_t serial;		/* of what the hub's thread asks */
	struct hub_table table;
	struct hub_guest *next;
	struct hub_holder holder;
	_Alignas(struct hub_held) uint8_t memory[2][HUB_DATA_MAX];	/* of messages on the two sockets */
};

/* Serve one that has connected. Takes the socket. NULL: no memory or thread for it. */
struct hub_guest *hub_guest_create(struct kymo_hub *hub, struct hub_door *door, int socket);

/* Nothing more is asked of it or done for it; its thread lets go of its engines and ends. */
void hub_guest_lose(struct hub_guest *guest);

/* By its thread, when none of its engines is left (hub_door.c). */
void hub_guest_has_left(struct hub_door *door);

void hub_guest_get(struct hub_guest *guest);
void hub_guest_put(struct hub_guest *guest);

/* ---- what one asks for (hub_guest_calls.c) -------------------------------------------------------------------------------- */

/* The callbacks of its engines. */
extern const struct kymo_engine_ops hub_guest_ops;

/* Do what `message` asks for, and make the reply of it. The memory is the message's, and the reply's. Closes `proof`, a descriptor that came along, or -1. */
void hub_guest_run(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof);

/* On the hub's thread, in a callback: have the guest prove again that it may trace `tid`. */
bool hub_guest_proves(struct hub_guest *guest, pid_t tid);

/* On the hub's thread: have it told, and put the answer in place of the message. False: it is lost. */
bool hub_guest_ask(struct hub_guest *guest, struct hub_message *message);

/* ---- at the client (hub_client.c) ------------------------------------------------------------------------------------------ */

/* Engines of a process that were attached to together: those whose names have this in their upper half. */
struct hub_group {
	uint64_t number;
	const struct kymo_engine_ops *ops;
	void *data;
};

struct hub_client {
	struct kymo_hub *hub;
	pid_t hub_tid;			/* the thread that it is connected to */
	int requests, events;		/* sockets */
	pthread_t thread;		/* that runs callbacks */
	pthread_mutex_t lock;		/* of the first socket: one asks at a time */
	pthread_mutex_t state_lock;
	pthread_cond_t state_changed;
	bool has_drained;		/* the connection is over, and no callback runs any more */
	atomic_int failure;		/* why it is over */
	atomic_bool is_ending;
	atomic_uint serial, names;
	struct hub_table table;		/* has a reference to each engine until the hub is through with it */
	KYMO_VEC(struct hub_group) groups;	/* of attaching to processes; under state_lock */
	KYMO_VEC(uint64_t) gone;		/* names of those that were in groups; the same */
	struct kymo_engine *told;	/* whose callback runs; for the thread itself, as the next three */
	pid_t told_tid, told_pid;
	bool told_breakpoints;		/* are in its memory, which is to be read through the hub then */
};

#define HUB_GROUP_OF(name) ((name) >> 32)

/*
 * Ask the hub, and put the reply in place of the message. `memory` has what goes along, or room for what comes, of `message->size`. The result of the message, or -EPIPE: it is over.
 */
int64_t hub_client_ask(struct hub_client *client, struct hub_message *message, void *memory);

/* The same, and the connection is over if the reply takes longer. */
int64_t hub_client_ask_for(struct hub_client *client, struct hub_message *message, void *memory, unsigned int ms);

/* Whether this is its thread, in a callback of `engine` (NULL: of any). */
bool hub_client_is_told(const struct hub_client *client, const struct kymo_engine *engine);

/* After -EPIPE: wait until no callback runs any more. From the client's thread: don't. */
void hub_client_wait_for_end(struct hub_client *client);

/* The engine of that name, with a reference for the caller, which may be one of a group that was not seen before. NULL: none, or memory is out. */
struct kymo_engine *hub_client_find(struct hub_client *client, uint64_t name);

/* A name that was not used, with 2^32 more behind it. */
uint64_t hub_client_new_name(struct hub_client *client);

#endif
