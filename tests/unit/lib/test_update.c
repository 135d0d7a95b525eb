/*
 * A recorder from outside that leaves while the library changes text: it clears its bit, and the rest is the library's.
 * The recorder is played by what is called in place of kymo_lib_toggle().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <kymo/marker.h>
#include <kymo/marker_probe.h>

#include "toggle.h"

#define N_SITES 3

int __real_kymo_lib_toggle(struct lib_site **sites, size_t n, bool on);
int __wrap_kymo_lib_toggle(struct lib_site **sites, size_t n, bool on);

static struct lib_site *sites[N_SITES];
static size_t n_sites;
static struct lib_site *leaves; /* its recorder, in the next toggle */

int __wrap_kymo_lib_toggle(struct lib_site **batch, size_t n, bool on)
{
	for (size_t i = 0; i < n && n_sites < N_SITES; i++)
		sites[n_sites++] = batch[i];
	if (leaves) {
		assert_int_equal(leaves->gate->busy, 1);
		leaves->gate->outside = 0;
	}
	leaves = NULL;
	return __real_kymo_lib_toggle(batch, n, on);
}

__attribute__((always_inline)) static inline void copied(int number)
{
	MARK(copies, "%d", number);
}

__attribute__((noinline)) static void pass(void)
{
	copied(1);
	copied(2);
	copied(3);
}

static void note(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	++*(int *)data;
}

static void connect(int *calls)
{
	assert_int_equal(kymo_marker_set_probe("copies", NULL, note, calls, KYMO_MARKER_CALL), 0);
}

static void disconnect(int *calls)
{
	assert_int_equal(kymo_marker_disable_probe("copies", note, calls, KYMO_MARKER_CALL), 0);
}

static void assert_all(bool on)
{
	for (size_t i = 0; i < N_SITES; i++) {
		assert_int_equal(kymo_lib_is_off(sites[i]), !on);
		assert_int_equal(sites[i]->gate->inside, on);
		assert_int_equal(sites[i]->gate->busy, 0);
	}
}

static int begin(void **state)
{
	int calls = 0;

	if (n_sites)
		return 0;
	connect(&calls);
	disconnect(&calls);
	return n_sites == N_SITES ? 0 : -1;
}

static void a_site_that_a_recorder_leaves_while_it_is_turned_off_is_off(void **state)
{
	int calls = 0;

	connect(&calls);
	sites[0]->gate->outside = 1;
	leaves = sites[0];
	disconnect(&calls);
	assert_all(false);
}

static void a_site_that_a_recorder_leaves_while_it_is_turned_on_is_on(void **state)
{
	int calls = 0;

	sites[1]->gate->outside = 1;
	assert_int_equal(__real_kymo_lib_toggle(&sites[1], 1, true), 0);
	leaves = sites[1];
	connect(&calls);
	assert_all(true);
	pass();
	assert_int_equal(calls, 3);
	disconnect(&calls);
	assert_all(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_site_that_a_recorder_leaves_while_it_is_turned_off_is_off, begin),
		cmocka_unit_test_setup(a_site_that_a_recorder_leaves_while_it_is_turned_on_is_on, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
