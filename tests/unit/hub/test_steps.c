/*
 * Steps while the process is stopped and continued by job control. A step is done when its SIGTRAP waits in the
 * thread's queue, and the kernel tells a group stop before that. So the thread is stopped there with an unexpected
 * signal: about every third time in these tests.
 */
#include "engines.h"

#define ROUNDS 40

/* The second thread takes the signals of the process, so that the one that is stepped is told of a stop at any
 * instruction. */
static void *doze(void *data)
{
	for (;;)
		pause();
	return data;
}

static int counting(struct shared *shared)
{
	pthread_t thread;

	pthread_create(&thread, NULL, doze, NULL);
	shared->ready = 1;
	while (!shared->is_over)
		shared->count++;
	return 0;
}

static unsigned int step_on(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			    void *report)
{
	unsigned int verdict = told == SIGNAL ? ((struct kymo_signal_report *)report)->verdict : 0;

	return (told == JCTL && book->more ? KYMO_ACTION_DETACH : KYMO_ACTION_SINGLESTEP) | verdict;
}

static struct kymo_engine *step(struct kymo_hub *hub, pid_t pid, struct book *book)
{
	struct kymo_engine *engine = engine_of(hub, pid, book, KYMO_EVENT_QUIESCE | KYMO_EVENT_JCTL);

	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_SINGLESTEP), 0);
	eventually(book->told[QUIESCE] > 20);
	return engine;
}

static void stands(const struct shared *shared)
{
	int before = shared->count;

	for (int i = 0; i < 5; i++)
		nap();
	assert_int_equal(shared->count, before);
}

static void runs(const struct shared *shared)
{
	int before = shared->count;

	eventually(shared->count > before + 1);
}

static void a_thread_let_go_in_a_group_stop_does_not_die_of_a_step(void **state)
{
	struct shared *shared = share();
	pid_t pid = child_of(counting, shared);
	struct kymo_hub *hub = new_hub();

	eventually(shared->ready);
	for (int i = 0; i < ROUNDS; i++) {
		struct book book = { .hook = step_on, .more = &book };
		struct kymo_engine *engine = step(hub, pid, &book);

		kill(pid, SIGSTOP);
		eventually(book.told[JCTL]);
		kymo_engine_barrier(engine);
		kymo_engine_put(engine);
		eventually(state_of(pid) == 'T' && tracer_of(pid) == 0);
		stands(shared);
		kill(pid, SIGCONT);
		runs(shared);
	}
	kymo_hub_destroy(hub);
	end_with_kill(pid);
}

static void a_hub_that_ends_in_a_group_stop_leaves_no_step_behind(void **state)
{
	struct shared *shared = share();
	pid_t pid = child_of(counting, shared);

	eventually(shared->ready);
	for (int i = 0; i < ROUNDS; i++) {
		struct book book = { .hook = step_on };
		struct kymo_hub *hub = new_hub();
		struct kymo_engine *engine = step(hub, pid, &book);

		kill(pid, SIGSTOP);
		eventually(book.told[JCTL]);
		kymo_engine_put(engine);
		kymo_hub_destroy(hub);
		eventually(state_of(pid) == 'T');
		stands(shared);
		kill(pid, SIGCONT);
		runs(shared);
	}
	end_with_kill(pid);
}

static void an_engine_that_steps_is_told_of_each_stop_and_each_continuing(void **state)
{
	struct book book = { .hook = step_on };
	struct shared *shared = share();
	pid_t pid = child_of(counting, shared);
	struct kymo_hub *hub = new_hub();
	struct kymo_engine *engine;

	eventually(shared->ready);
	engine = step(hub, pid, &book);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		kill(pid, SIGSTOP);
		eventually(book.told[JCTL] == 2 * i + 1);
		stands(shared);
		kill(pid, SIGCONT);
		eventually(book.told[JCTL] == 2 * i + 2);
		runs(shared);
	}
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	runs(shared);
	end_with_kill(pid);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_let_go_in_a_group_stop_does_not_die_of_a_step),
		cmocka_unit_test(a_hub_that_ends_in_a_group_stop_leaves_no_step_behind),
		cmocka_unit_test(an_engine_that_steps_is_told_of_each_stop_and_each_continuing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
