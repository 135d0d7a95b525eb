/*
 * Clients with engines on every thread of programs that fork, exec, signal and end threads, which want, answer and
 * detach at random. What is checked are the guarantees of lifetime: nothing after the last callback, DEATH and REAP
 * once and in that order to engines that wanted them, nothing after release, one release each.
 */
#ifndef KYMO_TESTS_RANDOM_ENGINES_H
#define KYMO_TESTS_RANDOM_ENGINES_H

#include <errno.h>

#include "base/vec.h"
#include "engines.h"

#define N_CLIENTS 4
#define ALIVE 0x11ce11ceu

struct client;

/* What one engine has gone through. */
struct life {
	atomic_uint magic;
	struct client *client;
	struct kymo_engine *engine;                      /* with a reference of the test's */
	atomic_bool was_death_told, was_reaped, is_over; /* over: it has detached, and no callback was running */
	bool is_listed, has_left; /* left: it was detached, with a callback that ran or without */
	unsigned int events;      /* its mask; set by the thread that made it, and then by the meddling threads */
};

struct client {
	struct world *world;
	struct kymo_engine_ops ops;
};

struct world {
	struct kymo_hub *hub;
	struct client clients[N_CLIENTS];
	pthread_mutex_t lock;
	KYMO_VEC(struct life *) lives;
	atomic_uint n_made, n_released, n_callbacks, n_wrong;
	atomic_uint random;
	unsigned int n_actions;
};

static void wrong(struct world *world, const char *what)
{
	if (!world->n_wrong++)
		print_error("%s\n", what);
}

static unsigned int dice(struct world *world, unsigned int sides)
{
	uint32_t x = atomic_fetch_add(&world->random, 0x9e3779b9u) + 0x9e3779b9u;

	x = (x ^ (x >> 16)) * 0x85ebca6bu;
	x = (x ^ (x >> 13)) * 0xc2b2ae35u;
	return (x ^ (x >> 16)) % sides;
}

static unsigned int random_events(struct world *world)
{
	/* CLONE stays: all threads are to have engines. So does QUIESCE, for steps and reports. */
	return (dice(world, KYMO_EVENTS_ALL + 1) & dice(world, KYMO_EVENTS_ALL + 1)) | KYMO_EVENT_CLONE |
	       KYMO_EVENT_QUIESCE;
}

static enum kymo_action random_action(struct world *world)
{
	static const enum kymo_action actions[] = { KYMO_ACTION_STOP, KYMO_ACTION_INTERRUPT, KYMO_ACTION_REPORT,
						    KYMO_ACTION_SINGLESTEP, KYMO_ACTION_BLOCKSTEP };
	unsigned int n = dice(world, 100);

	return n >= 10 ? KYMO_ACTION_RESUME : actions[n % world->n_actions];
}

/* REAP is not added later: an engine that adds it while the thread is being reaped may be told or not. */
static void choose_events(struct life *life, unsigned int not_these)
{
	unsigned int events = random_events(life->client->world) & ~not_these;
	int err = kymo_engine_set_events(life->engine, events);

	if (!err || err == -EINPROGRESS)
		life->events = events;
}

static bool begin(struct life *life)
{
	struct world *world = life->client->world;

	if (life->magic != ALIVE) {
		wrong(world, "a callback after release");
		return false;
	}
	if (life->is_over)
		wrong(world, "a callback after the last one");
	world->n_callbacks++;
	return true;
}

static unsigned int answer(struct life *life)
{
	struct world *world = life->client->world;

	if (dice(world, 300) == 0) {
		life->is_over = true;
		return KYMO_ACTION_DETACH;
	}
	return random_action(world);
}

static void add_life(struct client *client, pid_t tid, unsigned int not_these)
{
	struct life *life = calloc(1, sizeof(*life));
	struct world *world = client->world;

	assert_non_null(life);
	life->client = client;
	life->magic = ALIVE;
	if (kymo_engine_attach(world->hub, tid, KYMO_ATTACH_CREATE, &client->ops, life, &life->engine)) {
		free(life);
		return;
	}
	world->n_made++;
	choose_events(life, not_these);
	pthread_mutex_lock(&world->lock);
	life->is_listed = kymo_vec_push(&world->lives, life);
	pthread_mutex_unlock(&world->lock);
}

static unsigned int told_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event)
{
	return begin(data) ? answer(data) : KYMO_ACTION_RESUME;
}

static unsigned int told_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
				struct kymo_signal_report *report)
{
	return (begin(data) ? answer(data) : KYMO_ACTION_RESUME) | report->verdict;
}

static unsigned int told_clone(struct kymo_engine *engine, void *data, enum kymo_action action,
			       const struct kymo_clone_report *report)
{
	struct life *life = data;

	if (!begin(life))
		return KYMO_ACTION_RESUME;
	add_life(life->client, report->child, 0);
	return answer(life);
}

static unsigned int told_jctl(struct kymo_engine *engine, void *data, enum kymo_action action,
			      const struct kymo_jctl_report *report)
{
	return begin(data) ? answer(data) : KYMO_ACTION_RESUME;
}

static unsigned int told_exec(struct kymo_engine *engine, void *data, enum kymo_action action,
			      const struct kymo_exec_report *report)
{
	return begin(data) ? answer(data) : KYMO_ACTION_RESUME;
}

static unsigned int told_syscall(struct kymo_engine *engine, void *data, enum kymo_action action,
				 const struct kymo_syscall_report *report)
{
	return begin(data) ? answer(data) : KYMO_ACTION_RESUME;
}

static unsigned int told_exit(struct kymo_engine *engine, void *data, enum kymo_action action,
			      const struct kymo_exit_report *report)
{
	return begin(data) ? answer(data) : KYMO_ACTION_RESUME;
}

static unsigned int told_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	struct life *life = data;

	if (!begin(life))
		return KYMO_ACTION_RESUME;
	if (atomic_exchange(&life->was_death_told, true) || life->was_reaped)
		wrong(life->client->world, "DEATH twice, or after REAP");
	if (dice(life->client->world, 4) == 0) {
		life->is_over = true;
		return KYMO_ACTION_DETACH;
	}
	return KYMO_ACTION_RESUME;
}

static void told_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	struct life *life = data;

	if (!begin(life))
		return;
	if (atomic_exchange(&life->was_reaped, true))
		wrong(life->client->world, "REAP twice");
	life->is_over = true;
}

static void told_release(void *data)
{
	struct life *life = data;
	struct world *world = life->client->world;

	if (atomic_exchange(&life->magic, 0) != ALIVE)
		wrong(world, "released twice");
	world->n_released++;
}

static const struct kymo_engine_ops random_ops = {
	.size = sizeof(random_ops),
	.quiesce = told_quiesce,
	.signal = told_signal,
	.clone = told_clone,
	.jctl = told_jctl,
	.exec = told_exec,
	.syscall_entry = told_syscall,
	.syscall_exit = told_syscall,
	.exit = told_exit,
	.death = told_death,
	.reap = told_reap,
	.release = told_release,
};

/* ---- from outside of callbacks --------------------------------------------------------------- */

static void look_at(struct kymo_engine *engine)
{
	struct user_regs_struct registers;
	struct kymo_examiner examiner;
	long word;

	if (kymo_engine_prepare_examine(engine, &examiner))
		return;
	if (!kymo_engine_get_registers(engine, &registers))
		kymo_engine_read(engine, registers.rsp, &word, sizeof(word));
	kymo_engine_finish_examine(engine, &examiner);
}

static void detach(struct life *life)
{
	int err = kymo_engine_control(life->engine, KYMO_ACTION_DETACH);

	life->has_left |= !err || err == -EINPROGRESS;
	if (err == 0)
		life->is_over = true;
}

/* All engines that stop threads resume them, so the programs proceed. */
static void meddle(struct world *world)
{
	struct life *life = NULL;

	pthread_mutex_lock(&world->lock);
	if (world->lives.n)
		life = world->lives.items[dice(world, (unsigned int)world->lives.n)];
	pthread_mutex_unlock(&world->lock);
	if (!life)
		return;
	switch (dice(world, 12)) {
	case 0:
		choose_events(life, KYMO_EVENT_REAP & ~life->events);
		break;
	case 1:
		look_at(life->engine);
		break;
	case 2:
		if (dice(world, 20) == 0)
			detach(life);
		break;
	case 3:
		kymo_engine_control(life->engine, random_action(world));
		break;
	case 4:
		kymo_engine_barrier(life->engine);
		break;
	default:
		kymo_engine_control(life->engine, KYMO_ACTION_RESUME);
	}
}

static void let_all_go(struct world *world)
{
	pthread_mutex_lock(&world->lock);
	for (size_t i = 0; i < world->lives.n; i++)
		kymo_engine_control(world->lives.items[i]->engine, KYMO_ACTION_RESUME);
	pthread_mutex_unlock(&world->lock);
}

/* Of a thread that is no more: all engines that wanted to be told the end were. */
static const char *what_is_missing(const struct life *life)
{
	if (life->has_left || (life->is_over && !life->was_reaped))
		return NULL;
	if (life->events & KYMO_EVENT_REAP && !life->was_reaped)
		return "REAP was not told";
	if (life->events & KYMO_EVENT_DEATH && !life->was_death_told)
		return "DEATH was not told";
	return NULL;
}

/* All programs have ended; what is told of that may be on its way. */
static void check_ends(struct world *world)
{
	pthread_mutex_lock(&world->lock);
	for (size_t i = 0; i < world->lives.n; i++) {
		for (int naps = 0; what_is_missing(world->lives.items[i]) && naps < 20000; naps++)
			nap();
		if (what_is_missing(world->lives.items[i]))
			wrong(world, what_is_missing(world->lives.items[i]));
	}
	pthread_mutex_unlock(&world->lock);
}

static void forget_the_released(struct world *world)
{
	for (size_t i = 0; i < world->lives.n; i++) {
		kymo_engine_put(world->lives.items[i]->engine);
		if (world->lives.items[i]->magic == ALIVE)
			wrong(world, "an engine that is over was not released");
		free(world->lives.items[i]);
	}
	world->lives.n = 0;
}

/* ---- programs -------------------------------------------------------------------------------- */

static void find_family(char *path, size_t size)
{
	const char *targets = getenv("KYMO_TARGETS");

	snprintf(path, size, "%s/family", targets ? targets : "build/tests/targets");
}

/* What tests/targets/family does, and what it ends with if it has found nothing wrong. */
struct thing {
	const char *words[2];
	int status;
};

static uint32_t first_seed(void)
{
	const char *seed = getenv("KYMO_SEED");
	uint32_t number = seed ? (uint32_t)strtoul(seed, NULL, 0) : (uint32_t)time(NULL);

	print_message("KYMO_SEED=%u\n", number);
	return number;
}

static unsigned int n_wanted_events(unsigned int otherwise)
{
	const char *events = getenv("KYMO_HUB_EVENTS");

	return events ? (unsigned int)atoi(events) : otherwise;
}

#endif
