/*
 * Four clients in the process of the hub (random_engines.h) trace programs that check themselves. test_random_socket.c
 * has clients that are processes.
 *
 * KYMO_HUB_EVENTS is how many callbacks there are to be (10,000), KYMO_SEED repeats a run's choices, KYMO_HUB_NO_STEPS
 * leaves single-steps out.
 */
#include "random_engines.h"

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
		add_life(&world->clients[i], waiting.pid, 0);
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
	check_ends(world);
	kymo_hub_destroy(world->hub);
	forget_the_released(world);
	assert_int_equal(world->n_wrong, 0);
	assert_int_equal(waiting.status, expected << 8);
	assert_int_equal(world->n_made, world->n_released);
}

static void engines_that_do_anything_get_one_last_callback_and_programs_run_right(void **state)
{
	static const struct thing things[] = { { { "exec", "20" }, 7 }, { { "storm" }, 3 }, { { "stops" }, 0 } };
	unsigned int n_wanted = n_wanted_events(10000);
	struct world world = { .lock = PTHREAD_MUTEX_INITIALIZER };
	char family[4096];

	world.random = first_seed();
	world.n_actions = getenv("KYMO_HUB_NO_STEPS") ? 3 : 5;
	find_family(family, sizeof(family));
	for (unsigned int i = 0; i < N_CLIENTS; i++) {
		world.clients[i].world = &world;
		world.clients[i].ops = random_ops;
	}
	for (unsigned int i = 0; i < 3 || world.n_callbacks < n_wanted; i++) {
		char *argv[] = { family, (char *)(uintptr_t)things[i % 3].words[0],
				 (char *)(uintptr_t)things[i % 3].words[1], NULL };

		run(&world, argv, things[i % 3].status);
	}
	print_message("%u callbacks, %u engines\n", world.n_callbacks, world.n_made);
	kymo_vec_deinit(&world.lives);
}

/* ---- a child that is late -------------------------------------------------------------------- */

struct late {
	struct kymo_hub *hub;
	struct kymo_engine_ops ops;
	atomic_bool is_made, is_waited_for;
};

static unsigned int hold_the_child(struct kymo_engine *engine, void *data, enum kymo_action action,
				   const struct kymo_clone_report *report)
{
	struct late *late = data;
	struct kymo_engine *child = NULL;

	assert_int_equal(kymo_engine_attach(late->hub, report->child, KYMO_ATTACH_CREATE, &late->ops, late, &child), 0);
	kymo_engine_control(child, KYMO_ACTION_STOP);
	kymo_engine_put(child);
	late->is_made = true;
	return KYMO_ACTION_RESUME;
}

static unsigned int note_the_wait(struct kymo_engine *engine, void *data, enum kymo_action action,
				  const struct kymo_syscall_report *report)
{
	struct late *late = data;

	late->is_waited_for |= late->is_made && report->number == SYS_wait4;
	return KYMO_ACTION_RESUME;
}

/* As on a busy machine. tests/run gives each test a session of its own, so that SIGTSTP does nothing in the group that
 * the child begins in. */
static void a_child_may_begin_after_it_was_stopped(void **state)
{
	struct late late = { .ops = { .size = sizeof(ops), .clone = hold_the_child, .syscall_entry = note_the_wait } };
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
