/* Waiting for threads, where there are many. */
#include <dirent.h>

#include "fixture.h"

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

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_threads_are_let_go_when_their_engines_detach_and_when_their_hub_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
