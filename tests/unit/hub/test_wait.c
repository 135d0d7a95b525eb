/* Waiting for threads, where there are many. */
#include <dirent.h>

#include "fixture.h"
#include "hub/forget.h"
#include "hub/hub.h"
#include "hub/thread/request.h"
#include "hub/thread/status.h"
#include "hub/thread/task.h"
#include "hub/wait.h"

#define MANY 300

static void *sleep_on(void *data)
{
	struct shared *shared = data;

	shared->count++;
	for (;;)
		pause();
	return NULL;
}

static int sleeping_by_many(struct shared *shared)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int i = 1; i < MANY; i++)
		pthread_create(&thread, &small, sleep_on, shared);
	while (shared->count < MANY - 1)
		nap();
	shared->ready = 1;
	return sleep_on(shared) != NULL;
}

static struct shared *calling;
static atomic_int *turns; /* of each thread */

/* Only while they are told to: many that run at full speed would leave no processor for others. */
static void *call_on(void *data)
{
	atomic_int *turn = data;

	while (!calling->is_over) {
		if (!calling->go)
			usleep(20000);
		++*turn;
		syscall(SYS_getppid);
	}
	return sleep_on(calling);
}

static int calling_by_many(struct shared *shared)
{
	pthread_attr_t small;
	pthread_t thread;

	calling = shared;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (int i = 1; i < MANY; i++)
		pthread_create(&thread, &small, call_on, &turns[i]);
	shared->ready = 1;
	return call_on(&turns[0]) != NULL;
}

/* How many of its threads have this tracer. */
static int n_traced_by(pid_t pid, pid_t tracer)
{
	struct dirent *entry;
	char name[64];
	DIR *tasks;
	int n = 0;

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	tasks = opendir(name);
	assert_non_null(tasks);
	while ((entry = readdir(tasks)))
		n += entry->d_name[0] != '.' && tracer_of(atoi(entry->d_name)) == tracer;
	closedir(tasks);
	return n;
}

static void attach_to_all(struct fixture *f, unsigned int events)
{
	size_t n;

	assert_int_equal(kymo_engine_attach_process(f->hub, f->pid, 0, &ops, &f->book, events, &n), 0);
	assert_int_equal(n, MANY);
	assert_int_equal(n_traced_by(f->pid, f->hub->tid), MANY);
}

static void many_threads_are_let_go_when_their_engines_detach_and_when_their_hub_ends(void **state)
{
	struct fixture f;

	begin(&f, sleeping_by_many);
	for (int i = 0; i < 3; i++) {
		attach_to_all(&f, i % 2 ? KYMO_EVENTS_SYSCALL : 0);
		assert_int_equal(kymo_engine_detach_all(f.hub, &ops, &f.book), MANY);
		eventually(n_traced_by(f.pid, 0) == MANY);
	}
	attach_to_all(&f, KYMO_EVENTS_SYSCALL);
	kymo_hub_destroy(f.hub);
	assert_int_equal(n_traced_by(f.pid, 0), MANY);
	f.hub = NULL;
	end(&f);
}

static void each_of_many_that_call_all_the_time_gets_its_turn(void **state)
{
	int before[MANY];
	struct fixture f;

	turns = mmap(NULL, MANY * sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(turns, MAP_FAILED);
	begin(&f, calling_by_many);
	attach_to_all(&f, KYMO_EVENTS_SYSCALL);
	f.shared->go = 1;
	for (int i = 0; i < MANY; i++)
		before[i] = turns[i];
	for (int i = 0; i < MANY; i++)
		eventually(turns[i] > before[i] + 3);
	f.shared->is_over = 1;
	assert_int_equal(kymo_engine_detach_all(f.hub, &ops, &f.book), MANY);
	eventually(n_traced_by(f.pid, 0) == MANY);
	end(&f);
	munmap(turns, MANY * sizeof(*turns));
}

static void attach_to_one_after_the_other(void *data)
{
	struct fixture *f = data;
	struct dirent *entry;
	char name[64];
	DIR *tasks;

	assert_true(hub_is_own_thread(f->hub));
	snprintf(name, sizeof(name), "/proc/%d/task", f->pid);
	tasks = opendir(name);
	assert_non_null(tasks);
	while ((entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			kymo_engine_put(engine_of(f->hub, atoi(entry->d_name), &f->book, KYMO_EVENTS_SYSCALL));
	closedir(tasks);
	assert_int_equal(n_traced_by(f->pid, f->hub->tid), 3);
	runs(f); /* no thread is stopped yet */
	assert_int_equal(f->book.told[ENTRY], 0);
}

static void what_is_run_on_the_hubs_thread_is_done_before_anybody_is_told_of_it(void **state)
{
	struct fixture f;

	begin(&f, counting_by_threads);
	eventually(n_traced_by(f.pid, 0) == 3);
	kymo_hub_run(f.hub, attach_to_one_after_the_other, &f);
	eventually(f.book.told[ENTRY] > 30);
	runs(&f);
	assert_int_equal(kymo_engine_detach_all(f.hub, &ops, &f.book), 3);
	end(&f);
}

static void a_child_that_nobody_traces_any_more_and_that_stands_still_hides_nobody(void **state)
{
	char *argv[] = { (char *)"sleep", (char *)"1000", NULL };
	struct kymo_engine *engine;
	struct fixture f;
	int status;
	pid_t pid;

	begin(&f, counting);
	assert_int_equal(kymo_hub_launch(f.hub, 0, argv, &pid), 0);
	assert_int_equal(kymo_hub_start(f.hub, pid), 0);
	eventually(tracer_of(pid) == 0);
	assert_int_equal(kill(pid, SIGSTOP), 0);
	eventually(state_of(pid) == 'T');
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SYSCALL);
	eventually(f.book.told[ENTRY] > 3);
	runs(&f);
	kymo_engine_put(engine);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(kymo_hub_wait(f.hub, pid, &status), 0);
	assert_int_equal(status, SIGKILL);
	end(&f);
}

/* Of three threads, one of which tells something anew whenever another has been told. */
static void statuses_that_were_fetched_early_are_told_in_their_order(void **state)
{
	struct kymo_hub *hub = calloc(1, sizeof(*hub));
	struct hub_process *process = hub_get_process(hub, 1);
	struct task *tasks[4];
	int status;

	for (int i = 0; i < 4; i++) {
		tasks[i] = hub_add_task(hub, process, i + 1);
		hub_keep_status(hub, i + 1, i + 1);
	}
	for (int i = 0; i < 12; i++) {
		assert_int_equal(hub_wait(hub, false, &status), i % 4 + 1);
		assert_int_equal(status, i + 1);
		hub_keep_status(hub, i % 4 + 1, i + 5);
	}
	hub_forget_status(hub, tasks[1]);
	assert_int_equal(hub_wait(hub, false, &status), 1);
	assert_int_equal(hub_wait(hub, false, &status), 3);
	for (int i = 0; i < 4; i++)
		hub_forget_task(hub, tasks[i]);
	kymo_vec_deinit(&hub->statuses.early);
	kymo_vec_deinit(&hub->tasks.kicked);
	free(hub);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(statuses_that_were_fetched_early_are_told_in_their_order),
		cmocka_unit_test(a_child_that_nobody_traces_any_more_and_that_stands_still_hides_nobody),
		cmocka_unit_test(each_of_many_that_call_all_the_time_gets_its_turn),
		cmocka_unit_test(what_is_run_on_the_hubs_thread_is_done_before_anybody_is_told_of_it),
		cmocka_unit_test(many_threads_are_let_go_when_their_engines_detach_and_when_their_hub_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
