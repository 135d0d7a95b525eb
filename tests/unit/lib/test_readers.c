/* A thread that waits for readers waits for those that were there, and for no others; threads come, go, and fork. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "readers.h"

#define MANY 200 /* more than there is room for at first */

static atomic_int n_in, n_done;
static atomic_bool may_leave, has_waited;

static int begin(void **state)
{
	atomic_store(&n_in, 0);
	atomic_store(&n_done, 0);
	atomic_store(&may_leave, false);
	atomic_store(&has_waited, false);
	return 0;
}

static void wait_until(atomic_int *n, int value)
{
	while (atomic_load(n) < value)
		usleep(100);
}

static void *read_until_told(void *data)
{
	struct lib_reader *reader = kymo_lib_begin_reading();

	atomic_fetch_add(&n_in, 1);
	while (!atomic_load(&may_leave))
		usleep(100);
	atomic_fetch_add(&n_done, 1);
	kymo_lib_end_reading(reader);
	return NULL;
}

static void *wait_for_all(void *data)
{
	kymo_lib_wait_for_readers(*(unsigned long *)data);
	atomic_store(&has_waited, true);
	return NULL;
}

static void a_reader_that_was_there_is_waited_for(void **state)
{
	pthread_t readers[MANY], waiter;

	for (int i = 0; i < MANY; i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_until_told, NULL), 0);
	wait_until(&n_in, MANY);
	unsigned long epoch = kymo_lib_next_epoch();
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_all, &epoch), 0);
	usleep(20000);
	assert_false(atomic_load(&has_waited));
	atomic_store(&may_leave, true);
	pthread_join(waiter, NULL);
	assert_int_equal(atomic_load(&n_done), MANY);
	for (int i = 0; i < MANY; i++)
		pthread_join(readers[i], NULL);
}

static void a_reader_that_came_later_is_not_waited_for(void **state)
{
	unsigned long epoch = kymo_lib_next_epoch();
	pthread_t reader;

	assert_int_equal(pthread_create(&reader, NULL, read_until_told, NULL), 0);
	wait_until(&n_in, 1);
	kymo_lib_wait_for_readers(epoch);
	assert_int_equal(atomic_load(&n_done), 0);
	atomic_store(&may_leave, true);
	pthread_join(reader, NULL);
}

static void epochs_wrap_around(void **state)
{
	unsigned long before = kymo_lib_epoch;
	pthread_t reader, waiter;

	kymo_lib_epoch = (unsigned long)-1;
	assert_int_equal(pthread_create(&reader, NULL, read_until_told, NULL), 0);
	wait_until(&n_in, 1);
	unsigned long epoch = kymo_lib_next_epoch();
	assert_int_equal(epoch, 1);
	assert_int_equal(pthread_create(&waiter, NULL, wait_for_all, &epoch), 0);
	usleep(20000);
	assert_false(atomic_load(&has_waited));
	atomic_store(&may_leave, true);
	pthread_join(waiter, NULL);
	pthread_join(reader, NULL);
	kymo_lib_epoch = before;
}

static void *tell_word(void *data)
{
	kymo_lib_end_reading(kymo_lib_begin_reading());
	*(struct lib_reader **)data = kymo_lib_thread.reader;
	return NULL;
}

static void a_thread_that_ends_gives_its_word_back(void **state)
{
	struct lib_reader *words[2];

	for (int i = 0; i < 2; i++) {
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, tell_word, &words[i]), 0);
		pthread_join(thread, NULL);
		assert_non_null(words[i]);
		assert_false(words[i]->is_taken);
	}
	assert_ptr_equal(words[0], words[1]);
}

static void *end_in_a_section(void *data)
{
	kymo_lib_begin_reading();
	pthread_exit(NULL);
}

static void a_thread_that_ended_in_a_section_is_not_waited_for(void **state)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, end_in_a_section, NULL), 0);
	pthread_join(thread, NULL);
	kymo_lib_wait_for_readers(kymo_lib_next_epoch());
}

/* What the child finds: 0 is good. It must not have threads of its own: ThreadSanitizer does not like it. */
static int look_as_child(struct lib_reader *own)
{
	if (own->section == 0 || kymo_lib_thread.reader != own)
		return 1;
	kymo_lib_end_reading(own);
	kymo_lib_wait_for_readers(kymo_lib_next_epoch());
	return own->is_taken ? 0 : 2;
}

static void a_child_reads_on_and_threads_of_its_parent_do_not(void **state)
{
	pthread_t reader;
	int status;

	assert_int_equal(pthread_create(&reader, NULL, read_until_told, NULL), 0);
	wait_until(&n_in, 1);
	struct lib_reader *own = kymo_lib_begin_reading();
	pid_t child = fork();
	if (child == 0)
		_exit(look_as_child(own));
	kymo_lib_end_reading(own);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	atomic_store(&may_leave, true);
	pthread_join(reader, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_reader_that_was_there_is_waited_for, begin),
		cmocka_unit_test_setup(a_reader_that_came_later_is_not_waited_for, begin),
		cmocka_unit_test_setup(epochs_wrap_around, begin),
		cmocka_unit_test_setup(a_thread_that_ends_gives_its_word_back, begin),
		cmocka_unit_test_setup(a_thread_that_ended_in_a_section_is_not_waited_for, begin),
		cmocka_unit_test_setup(a_child_reads_on_and_threads_of_its_parent_do_not, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
