/*
 * Four clients with engines on every thread of programs that fork, exec, signal and end threads, which want, answer and detach at random. The programs check themselves; what is checked
 * here are the guarantees of lifetime: nothing after the last callback, DEATH and REAP once and in that order, nothing after release, one release each.
 *
 * KYMO_HUB_EVENTS is how many callbacks there are to be (10,000), KYMO_SEED repeats a run's choices, KYMO_HUB_NO_STEPS leaves single-steps out.
 */
#include "engines.h"

#include "base/vec.h"

#define N_CLIENTS 4
#define ALIVE 0x11ce11ceu

struct client;

/* What one engine has gone through. */
struct life {
	atomic_uint magic;
	struct client *client;
	struct kymo_engine *engine;	/* with a reference of the test's */
	atomic_bool was_death_told, was_reaped, is_over;	/* over: it has detached, and no callback was running */
	bool is_listed;
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
	return (dice(world, KYMO_EVENTS_ALL + 1) & dice(world, KYMO_EVENTS_ALL + 1)) | KYMO_EVENT_CLONE | KYMO_EVENT_QUIESCE;
}

static enum kymo_action random_action(struct world *world)
{
	static const enum kymo_action actions[] = { KYMO_ACTION_STOP, KYMO_ACTION_INTERRUPT, KYMO_ACTION_REPORT, KYMO_ACTION_SINGLESTEP,
						    KYMO_ACTION_BLOCKSTEP };
	unsigned int n = dice(world, 100);

	return n >= 10 ? KYMO_ACTION_RESUME : actions[n % world->n_actions];
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

static void add_life(struct client *client, pid_t tid)
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
	pthread_mutex_lock(&world->lock);
	life->is_listed = kymo_vec_push(&world->lives, life);
	pthread_mutex_unlock(&world->lock);
	kymo_engine_set_events(life->engine, random_events(world));
}

static unsigned int told_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event)
{
	return begin(data) ? answer(data) : KYMO_ACTION_RESUME;
}

static unsigned int told_signal(struct kymo_engine *engine, void *data, enum kymo_action action, struct kymo_signal_report *report)
{
	return (begin(data) ? answer(data) : KYMO_ACTION_RESUME) | report->verdict;
}

static unsigned int told_clone(struct kymo_engine *engine, void *data, enum kymo_action action, const struct kymo_clone_report *report)
{
	struct life *life = data;

	if (!begin(life))
		return KYMO_ACTION_RESUME;
	add_life(life->client, report->child);
	return answer(life);
}

static unsigned int told_jctl(struct kymo_engine *engine, void *data, enum kymo_action action, const struct kymo_jctl_report *report)
{
	return begin(data) ? answer(data) : KYMO_ACTION_RESUME;
}

static unsigned int told_exec(struct kymo_engine *engine, void *data, enum kymo_action action, const struct kymo_exec_report *report)
{
	return begin(data) ? answer(data) : KYMO_ACTION_RESUME;
}

static unsigned int told_syscall(struct kymo_engine *engine, void *data, enum kymo_action action, const struct kymo_syscall_report *report)
{
	return begin(data) ? answer(data) : KYMO_ACTION_RESUME;
}

static unsigned int told_exit(struct kymo_engine *engine, void *data, enum kymo_action action, const struct kymo_exit_report *report)
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

/* ---- from outside of callbacks ------------------------------------------------------------------------------------------- */

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

	if (err == 0)
		life->is_over = true;
}

/* Everybody who stops threads lets them go again, so the programs get on. */
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
		kymo_engine_set_events(life->engine, random_events(world));
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

struct waiting {
	struct world *world;
	pid_t pid;
	int status;
	atomic_bool is_over;
};

static void *wait_for_it(void *data)
{
	struct waiting *waiting = data;

	assert_int_equal(kymo_hub_wait(waiting->world->hub, waiting->pid, &waiting->status), 0);
	waiting->is_over = true;
	return NULL;
}

static void run(struct world *world, char *const *argv, int expected)
{
	struct waiting waiting = { .world = world };
	pthread_t waiter;

	assert_int_equal(kymo_hub_create(&world->hub), 0);
	assert_int_equal(kymo_hub_launch(world->hub, 0, argv, &waiting.pid), 0);
	for (size_t i = 0; i < N_CLIENTS; i++)
		add_life(&world->clients[i], waiting.pid);
	assert_int_equal(kymo_hub_start(world->hub, waiting.pid), 0);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_it, &waiting), 0);
	for (unsigned int i = 0; !waiting.is_over; i++) {
		meddle(world);
		if (i % 16 == 0) {
			let_all_go(world);
			nap();
		}
	}
	pthread_join(waiter, NULL);
	kymo_hub_destroy(world->hub);
	forget_the_released(world);
	assert_int_equal(world->n_wrong, 0);
	assert_int_equal(waiting.status, expected << 8);
	assert_int_equal(world->n_made, world->n_released);
}

static void find_family(char *path, size_t size)
{
	const char *targets = getenv("KYMO_TARGETS");

	snprintf(path, size, "%s/family", targets ? targets : "build/tests/targets");
}

static void engines_that_do_anything_get_one_last_callback_and_programs_run_right(void **state)
{
	static const struct {
		const char *words[2];
		int status;
	} things[] = { { { "exec", "20" }, 7 }, { { "storm" }, 3 }, { { "stops" }, 0 } };
	const char *events = getenv("KYMO_HUB_EVENTS"), *seed = getenv("KYMO_SEED");
	unsigned int n_wanted = events ? (unsigned int)atoi(events) : 10000;
	struct world world = { .lock = PTHREAD_MUTEX_INITIALIZER };
	char family[4096];

	world.random = seed ? (unsigned int)strtoul(seed, NULL, 0) : (unsigned int)time(NULL);
	world.n_actions = getenv("KYMO_HUB_NO_STEPS") ? 3 : 5;
	print_message("KYMO_SEED=%u\n", world.random);
	find_family(family, sizeof(family));
	for (unsigned int i = 0; i < N_CLIENTS; i++) {
		world.clients[i].world = &world;
		world.clients[i].ops = random_ops;
	}
	for (unsigned int i = 0; i < 3 || world.n_callbacks < n_wanted; i++) {
		char *argv[] = { family, (char *)(uintptr_t)things[i % 3].words[0], (char *)(uintptr_t)things[i % 3].words[1], NULL };

		run(&world, argv, things[i % 3].status);
	}
	print_message("%u callbacks, %u engines\n", world.n_callbacks, world.n_made);
	kymo_vec_deinit(&world.lives);
}

/* ---- a child that is late -------------------------------------------------------------------------------------------------- */

struct late {
	struct kymo_hub *hub;
	struct kymo_engine_ops ops;
	atomic_bool is_made, is_waited_for;
};

static unsigned int hold_the_child(struct kymo_engine *engine, void *data, enum kymo_action action, const struct kymo_clone_report *report)
{
	struct late *late = data;
	struct kymo_engine *child = NULL;

	assert_int_equal(kymo_engine_attach(late->hub, report->child, KYMO_ATTACH_CREATE, &late->ops, late, &child), 0);
	kymo_engine_control(child, KYMO_ACTION_STOP);
	kymo_engine_put(child);
	late->is_made = true;
	return KYMO_ACTION_RESUME;
}

static unsigned int note_the_wait(struct kymo_engine *engine, void *data, enum kymo_action action, const struct kymo_syscall_report *report)
{
	struct late *late = data;

	late->is_waited_for |= late->is_made && report->number == SYS_wait4;
	return KYMO_ACTION_RESUME;
}

/* As on a busy machine. tests/run gives each test a session of its own, so that SIGTSTP does nothing in the group that the child begins in. */
static void a_child_may_begin_after_it_was_stopped(void **state)
{
	struct late late = { .ops = { .clone = hold_the_child, .syscall_entry = note_the_wait } };
	char family[4096], *argv[] = { family, (char *)(uintptr_t) "stops", NULL };
	struct waiting waiting = { .status = -1 };
	struct kymo_engine *engine = NULL;
	struct world world = { 0 };
	pthread_t waiter;

	find_family(family, sizeof(family));
	world.hub = late.hub = new_hub();
	waiting.world = &world;
	assert_int_equal(kymo_hub_launch(late.hub, 0, argv, &waiting.pid), 0);
	assert_int_equal(kymo_engine_attach(late.hub, waiting.pid, KYMO_ATTACH_CREATE, &late.ops, &late, &engine), 0);
	assert_int_equal(kymo_engine_set_events(engine, KYMO_EVENT_CLONE | KYMO_EVENT_SYSCALL_ENTRY), 0);
	assert_int_equal(kymo_hub_start(late.hub, waiting.pid), 0);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_it, &waiting), 0);
	eventually(late.is_waited_for);
	assert_int_equal(kymo_engine_detach_all(late.hub, &late.ops, &late), 2);
	for (int naps = 0; !waiting.is_over && naps < 20000; naps++)
		nap();
	if (!waiting.is_over)
		kill(waiting.pid, SIGKILL);
	pthread_join(waiter, NULL);
	assert_int_equal(waiting.status, 0);
	kymo_engine_put(engine);
	kymo_hub_destroy(late.hub);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_may_begin_after_it_was_stopped),
		cmocka_unit_test(engines_that_do_anything_get_one_last_callback_and_programs_run_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
