/*
 * A hub of another process: the connection, and the thread that runs callbacks.
 *
 * An engine is in the table, with a reference, from before it is asked for until the hub says GONE, or the connection
 * is over. So its data lives, and release() runs once, as it would here.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "hub/engine.h"
#include "hub/ops.h"
#include "hub/remote/client.h"
#include "hub/remote/message.h"
#include "hub/remote/socket.h"
#include "hub/remote/proof.h"
#include "hub/remote/table.h"
#include "hub/state.h"
#include "kymo/engine.h"

#define MS 1000000ull
#define HELLO_MS 5000
#define BYE_MS 5000

/* ---- asking ---------------------------------------------------------------------------------- */

static void lose(struct hub_client *client, int why)
{
	int before = 0;

	/* A client that was too slow is told so, whichever side has noticed the end first. */
	if (!atomic_compare_exchange_strong(&client->failure, &before, why) && before == -EPIPE && why == -ETIMEDOUT)
		client->failure = why;
	shutdown(client->requests, SHUT_RDWR);
	shutdown(client->events, SHUT_RDWR);
}

bool hub_client_is_told(const struct hub_client *client, const struct kymo_engine *engine)
{
	if (!pthread_equal(pthread_self(), client->thread))
		return false;
	return engine ? client->told == engine : client->told || client->is_running;
}

static int send_with_proof(const struct hub_client *client, int socket, const struct hub_message *message)
{
	kymo_cleanup_close int proof = hub_proof_open(message->tid, client->hub_tid, message->type != HUB_PROVE);

	return proof < 0 ? hub_send(socket, message, NULL) : hub_send_fd(socket, message, proof);
}

static int exchange(const struct hub_client *client, int socket, struct hub_message *message, void *memory,
		    uint8_t *room, uint64_t deadline_ns)
{
	struct hub_message reply;
	int err = hub_message_needs_proof(message) ? send_with_proof(client, socket, message)
						   : hub_send(socket, message, memory);

	if (!err)
		err = hub_receive(socket, HUB_ITSELF, deadline_ns, &reply, room, NULL);
	if (err)
		return err;
	if (!reply.is_reply || reply.type != message->type || reply.serial != message->serial ||
	    reply.size != message->size)
		return -EPROTO;
	if (room && !reply.result)
		memcpy(memory, room, reply.size);
	*message = reply;
	return 0;
}

static int64_t ask_until(struct hub_client *client, struct hub_message *message, void *memory, uint64_t deadline_ns)
{
	bool is_told = hub_client_is_told(client, NULL);
	bool has_room = hub_message_brings_memory(message->type);
	kymo_cleanup_free uint8_t *room = has_room ? malloc(HUB_DATA_MAX) : NULL;
	int err = -EPIPE;

	if (has_room && !room)
		return -ENOMEM;
	if (!is_told)
		pthread_mutex_lock(&client->lock);
	message->version = HUB_VERSION;
	message->serial = ++client->serial;
	if (!client->failure)
		err = exchange(client, is_told ? client->events : client->requests, message, memory, room, deadline_ns);
	if (!is_told)
		pthread_mutex_unlock(&client->lock);
	if (!err)
		return message->result;
	lose(client, err);
	return -EPIPE;
}

int64_t hub_client_ask(struct hub_client *client, struct hub_message *message, void *memory)
{
	return ask_until(client, message, memory, 0);
}

int64_t hub_client_ask_for(struct hub_client *client, struct hub_message *message, void *memory, unsigned int ms)
{
	return ask_until(client, message, memory, kymo_now_ns() + ms * 1000000ull);
}

void hub_client_wait_for_end(struct hub_client *client)
{
	if (pthread_equal(pthread_self(), client->thread))
		return;
	pthread_mutex_lock(&client->state_lock);
	while (!client->has_drained)
		pthread_cond_wait(&client->state_changed, &client->state_lock);
	pthread_mutex_unlock(&client->state_lock);
}

/* ---- running something between two callbacks ------------------------------------------------ */

static void run_due(struct hub_client *client)
{
	void (*run)(void *data);
	void *data;

	pthread_mutex_lock(&client->state_lock);
	run = client->due;
	data = client->due_data;
	client->due = NULL;
	pthread_mutex_unlock(&client->state_lock);
	if (run)
		run(data);
}

static void set_due(struct hub_client *client, void (*run)(void *data), void *data)
{
	pthread_mutex_lock(&client->state_lock);
	client->due = run;
	client->due_data = data;
	pthread_mutex_unlock(&client->state_lock);
}

void hub_client_run(struct hub_client *client, void (*run)(void *data), void *data)
{
	struct hub_message message = { .type = HUB_RUN };

	if (pthread_equal(pthread_self(), client->thread)) {
		run(data);
		return;
	}
	pthread_mutex_lock(&client->run_lock);
	set_due(client, run, data);
	if (hub_client_ask(client, &message, NULL)) {
		lose(client, -EPROTO);
		hub_client_wait_for_end(client);
		run_due(client);
	}
	pthread_mutex_unlock(&client->run_lock);
}

/* ---- engines --------------------------------------------------------------------------------- */

uint64_t hub_client_new_name(struct hub_client *client)
{
	return (uint64_t)++client->names << 32;
}

static const struct hub_group *find_group(const struct hub_client *client, uint64_t number)
{
	for (size_t i = 0; i < client->groups.n; i++)
		if (client->groups.items[i].number == number)
			return &client->groups.items[i];
	return NULL;
}

static bool is_gone(const struct hub_client *client, uint64_t name)
{
	for (size_t i = 0; i < client->gone.n; i++)
		if (client->gone.items[i] == name)
			return true;
	return false;
}

/* Of a group, found for the first time: no request was for this engine. */
static struct kymo_engine *make_engine(struct hub_client *client, uint64_t name)
{
	const struct hub_group *group = find_group(client, HUB_GROUP_OF(name));
	struct kymo_engine *engine = group && !is_gone(client, name) ? calloc(1, sizeof(*engine)) : NULL;

	if (!engine)
		return NULL;
	atomic_init(&engine->refs, 1);
	engine->hub = &client->hub;
	engine->ops = group->ops;
	engine->data = group->data;
	engine->name = name;
	hub_table_add(&client->table, engine);
	return engine;
}

struct kymo_engine *hub_client_find(struct hub_client *client, uint64_t name)
{
	struct kymo_engine *engine;

	pthread_mutex_lock(&client->state_lock);
	engine = hub_table_find(&client->table, name);
	if (!engine) {
		engine = make_engine(client, name);
		if (engine)
			kymo_engine_get(engine);
	}
	pthread_mutex_unlock(&client->state_lock);
	return engine;
}

/* The table's reference, for the last time. Each engine of a group has been one for its user, also if nothing was ever
 * told of it. */
static struct kymo_engine *take_engine(struct hub_client *client, uint64_t name)
{
	struct kymo_engine *engine;

	pthread_mutex_lock(&client->state_lock);
	engine = hub_table_take(&client->table, name);
	if (!engine && make_engine(client, name))
		engine = hub_table_take(&client->table, name);
	if (engine && find_group(client, HUB_GROUP_OF(name)))
		kymo_vec_push(&client->gone, name);
	pthread_mutex_unlock(&client->state_lock);
	return engine;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

static unsigned int call(struct kymo_engine *engine, struct hub_message *m)
{
	const struct kymo_engine_ops *ops = engine->ops;
	enum kymo_action action = (enum kymo_action)m->action;
	void *data = engine->data;

	switch (m->type) {
	case HUB_QUIESCE:
		return ops->quiesce ? ops->quiesce(engine, data, action, m->event) : KYMO_ACTION_RESUME;
	case HUB_SIGNAL:
		return ops->signal ? ops->signal(engine, data, action, &m->signal)
				   : KYMO_ACTION_RESUME | m->signal.verdict;
	case HUB_CLONE:
		return ops->clone ? ops->clone(engine, data, action, &m->clone) : KYMO_ACTION_RESUME;
	case HUB_JCTL:
		return ops->jctl ? ops->jctl(engine, data, action, &m->jctl) : KYMO_ACTION_RESUME;
	case HUB_EXEC:
		return ops->exec ? ops->exec(engine, data, action, &m->exec) : KYMO_ACTION_RESUME;
	case HUB_SYSCALL_ENTRY:
		return ops->syscall_entry ? ops->syscall_entry(engine, data, action, &m->syscall) : KYMO_ACTION_RESUME;
	case HUB_SYSCALL_EXIT:
		return ops->syscall_exit ? ops->syscall_exit(engine, data, action, &m->syscall) : KYMO_ACTION_RESUME;
	case HUB_EXIT:
		return ops->exit ? ops->exit(engine, data, action, &(struct kymo_exit_report){ m->status })
				 : KYMO_ACTION_RESUME;
	case HUB_DEATH:
		return ops->death ? ops->death(engine, data, &(struct kymo_death_report){ m->status })
				  : KYMO_ACTION_RESUME;
	default:
		if (ops->reap)
			ops->reap(engine, data, &m->reap);
		return KYMO_ACTION_RESUME;
	}
}

static bool reply(struct hub_client *client, struct hub_message *message, unsigned int answer)
{
	message->is_reply = 1;
	message->result = answer & 0xff;
	return !hub_send(client->events, message, NULL);
}

/* In a callback of its own, the engine's thread is known without asking. */
static bool tell_engine(struct hub_client *client, struct kymo_engine *engine, struct hub_message *message)
{
	uint64_t late_ns = kymo_now_ns() + HUB_ANSWER_MS * MS;
	unsigned int answer = KYMO_ACTION_RESUME | (message->type == HUB_SIGNAL ? message->signal.verdict : 0);
	bool is_well;

	client->told = engine;
	client->told_tid = message->tid;
	client->told_pid = message->pid;
	client->told_breakpoints = message->flags;
	if (!client->is_ending)
		answer = call(engine, message);
	client->told = NULL;
	is_well = reply(client, message, answer);
	if (!is_well || client->failure == -EPIPE)
		lose(client, kymo_now_ns() < late_ns ? -EPIPE : -ETIMEDOUT);
	return is_well;
}

/* The hub waits until this is answered. */
static bool run_now(struct hub_client *client, struct hub_message *message)
{
	const uint64_t late_ns = kymo_now_ns() + HUB_ANSWER_MS * MS;
	bool is_well;

	client->is_running = true;
	run_due(client);
	client->is_running = false;
	is_well = reply(client, message, KYMO_ACTION_RESUME);
	if (!is_well || client->failure == -EPIPE)
		lose(client, kymo_now_ns() < late_ns ? -EPIPE : -ETIMEDOUT);
	return is_well;
}

/* The hub goes on before the engine is released, as that may ask for something. */
static bool forget(struct hub_client *client, struct hub_message *message)
{
	struct kymo_engine *engine = take_engine(client, message->engine);
	bool is_well = reply(client, message, 0);

	kymo_engine_put(engine);
	return is_well;
}

/* Whether an engine may stay is for the hub to say. */
static bool prove(const struct hub_client *client, struct hub_message *message)
{
	message->is_reply = 1;
	message->result = 0;
	return !send_with_proof(client, client->events, message);
}

static bool take_one(struct hub_client *client)
{
	struct hub_message message;
	struct kymo_engine *engine;
	bool is_well;
	int err = hub_receive(client->events, HUB_ITSELF, 0, &message, NULL, NULL);

	if (!err && message.is_reply)
		err = -EPROTO;
	if (err) {
		lose(client, err);
		return false;
	}
	if (message.type == HUB_GONE)
		return forget(client, &message);
	if (message.type == HUB_PROVE)
		return prove(client, &message);
	if (message.type == HUB_RUN_NOW)
		return run_now(client, &message);
	engine = hub_client_find(client, message.engine);
	is_well = engine && tell_engine(client, engine, &message);
	kymo_engine_put(engine);
	return is_well;
}

static void *be_client(void *data)
{
	struct hub_client *client = data;
	struct kymo_engine *engine;

	pthread_mutex_lock(&client->state_lock); /* it knows its own id */
	pthread_mutex_unlock(&client->state_lock);
	while (take_one(client))
		;
	lose(client, -EPIPE);
	while ((engine = hub_table_take_any(&client->table)))
		kymo_engine_put(engine);
	pthread_mutex_lock(&client->state_lock);
	client->has_drained = true;
	pthread_cond_broadcast(&client->state_changed);
	pthread_mutex_unlock(&client->state_lock);
	return NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

static int greet(struct hub_client *client)
{
	struct hub_message hello = { .version = HUB_VERSION, .type = HUB_HELLO };
	int err = hub_send(client->requests, &hello, NULL);

	if (!err)
		err = hub_receive(client->requests, HUB_ITSELF, kymo_now_ns() + HELLO_MS * MS, &hello, NULL,
				  &client->events);
	if (!err && (hello.type != HUB_HELLO || client->events < 0))
		err = -EPROTO;
	return err;
}

static void deinit_client(struct hub_client *client)
{
	close(client->requests);
	if (client->events >= 0)
		close(client->events);
	kymo_vec_deinit(&client->groups);
	kymo_vec_deinit(&client->gone);
	hub_table_deinit(&client->table);
	pthread_cond_destroy(&client->state_changed);
	pthread_mutex_destroy(&client->run_lock);
	pthread_mutex_destroy(&client->state_lock);
	pthread_mutex_destroy(&client->lock);
	free(client);
}

static int start_client(struct hub_client *client)
{
	int err = greet(client);
	sigset_t all, mask;

	if (err)
		return err;
	sigfillset(&all);
	pthread_mutex_lock(&client->state_lock);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	err = -pthread_create(&client->thread, NULL, be_client, client);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	pthread_mutex_unlock(&client->state_lock);
	return err;
}

int hub_client_create(pid_t tid, const struct hub_ops *ops, struct kymo_hub **ret)
{
	struct hub_client *client = calloc(1, sizeof(*client));
	int err = client ? hub_socket_dial(tid, &client->requests) : -ENOMEM;

	if (err) {
		free(client);
		return err;
	}
	client->events = -1;
	client->hub_tid = tid;
	client->hub.ops = ops;
	pthread_mutex_init(&client->lock, NULL);
	pthread_mutex_init(&client->state_lock, NULL);
	pthread_mutex_init(&client->run_lock, NULL);
	pthread_cond_init(&client->state_changed, NULL);
	hub_table_init(&client->table);
	err = start_client(client);
	if (err)
		deinit_client(client);
	else
		*ret = &client->hub;
	return err;
}

void hub_client_destroy(struct hub_client *client)
{
	struct hub_message bye = { .type = HUB_BYE };

	client->is_ending = true;
	ask_until(client, &bye, NULL, kymo_now_ns() + BYE_MS * MS);
	lose(client, -EPIPE);
	pthread_join(client->thread, NULL);
	deinit_client(client);
}
