/* What kymo_marker_set_probe(), _disable_probe() and _for_each() promise: errors, order, which probe excludes which,
 * and what a probe may do itself. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <kymo/marker.h>
#include <kymo/marker_probe.h>

#define CALL KYMO_MARKER_CALL
#define PENDING KYMO_MARKER_PENDING
#define EXCLUSIVE KYMO_MARKER_EXCLUSIVE

/* ---- markers and probes ---------------------------------------------------------------------- */

static int evaluated;

__attribute__((noinline)) static void pass_one(int number)
{
	MARK(one, "number=%d", (evaluated++, number));
}

__attribute__((noinline)) static void pass_two(const char *text)
{
	MARK(two, "%s", text);
}

/* The same name twice, with different formats. */
__attribute__((noinline)) static void pass_either(int number)
{
	MARK(either, "%d", number);
	MARK(either, "%d %d", number, number);
}

__attribute__((always_inline)) static inline void copied(int number)
{
	MARK(copies, "%d", number);
}

__attribute__((noinline)) static void pass_copies(void)
{
	copied(1);
	copied(2);
	copied(3);
}

/* What was called, in order: a letter a call. */
static char trail[64];

static int begin(void **state)
{
	memset(trail, 0, sizeof(trail));
	evaluated = 0;
	return 0;
}

/* `data` is the letter. */
static void note(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	size_t length = strlen(trail);

	if (length + 1 < sizeof(trail))
		trail[length] = *(const char *)data;
}

static void note_too(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	note(marker, data, arguments);
}

/* A probe of a marker is connected, whatever the format, or disconnected, without an error. Macros, so that the line is
 * told where it is not so. */
#define connected(name, probe, data) assert_int_equal(kymo_marker_set_probe(name, NULL, probe, data, CALL), 0)
#define disconnected(name, probe, data) assert_int_equal(kymo_marker_disable_probe(name, probe, data, CALL), 0)

/* ---- errors ---------------------------------------------------------------------------------- */

static void unknown_names_are_told(void **state)
{
	assert_int_equal(kymo_marker_set_probe("none", NULL, note, "a", CALL), -ENOENT);
	assert_int_equal(kymo_marker_disable_probe("none", note, "a", CALL), -ENOENT);
	assert_int_equal(kymo_marker_disable_probe("one", note, "a", CALL), -ENOENT);
	assert_int_equal(kymo_marker_disable_probe(NULL, note, "a", CALL), -ENOENT);
}

static void what_makes_no_sense_is_told(void **state)
{
	assert_int_equal(kymo_marker_set_probe(NULL, NULL, note, "a", CALL), -EINVAL);
	assert_int_equal(kymo_marker_set_probe("one", NULL, NULL, "a", CALL), -EINVAL);
	assert_int_equal(kymo_marker_set_probe("one", NULL, note, "a", KYMO_MARKER_INLINE), -EINVAL);
	assert_int_equal(kymo_marker_set_probe("one", NULL, note, "a", 2), -EINVAL);
	assert_int_equal(kymo_marker_set_probe("one", NULL, note, "a", 1 << 20), -EINVAL);
}

static void a_probe_for_another_format_is_told(void **state)
{
	char long_format[5000];

	memset(long_format, 'x', sizeof(long_format) - 1);
	long_format[sizeof(long_format) - 1] = '\0';
	assert_int_equal(kymo_marker_set_probe("one", "%d", note, "a", CALL), -EINVAL);
	assert_int_equal(kymo_marker_set_probe("one", "number=%d ", note, "a", CALL | PENDING), -EINVAL);
	assert_int_equal(kymo_marker_set_probe("one", "", note, "a", CALL), -EINVAL);
	assert_int_equal(kymo_marker_set_probe("one", long_format, note, "a", CALL), -EINVAL);
	pass_one(1);
	assert_string_equal(trail, "");
	assert_int_equal(evaluated, 0);
}

static void the_same_probe_twice_is_told(void **state)
{
	connected("one", note, "a");
	assert_int_equal(kymo_marker_set_probe("one", NULL, note, "a", CALL), -EBUSY);
	assert_int_equal(kymo_marker_set_probe("one", "number=%d", note, "a", CALL | PENDING), -EBUSY);
	pass_one(1);
	assert_string_equal(trail, "a");
	disconnected("one", note, "a");
	assert_int_equal(kymo_marker_disable_probe("one", note, "a", CALL), -ENOENT);
}

static void an_exclusive_probe_is_alone(void **state)
{
	assert_int_equal(kymo_marker_set_probe("one", NULL, note, "a", CALL | EXCLUSIVE), 0);
	assert_int_equal(kymo_marker_set_probe("one", NULL, note, "b", CALL), -EBUSY);
	assert_int_equal(kymo_marker_set_probe("one", NULL, note, "b", CALL | EXCLUSIVE), -EBUSY);
	disconnected("one", note, "a");
	connected("one", note, "b");
	assert_int_equal(kymo_marker_set_probe("one", NULL, note, "a", CALL | EXCLUSIVE), -EBUSY);
	disconnected("one", note, "b");
}

static void without_a_recording_nothing_is_recorded_in_place(void **state)
{
	assert_int_equal(kymo_marker_set_probe("one", NULL, NULL, NULL, KYMO_MARKER_INLINE), -ENODEV);
	assert_int_equal(kymo_marker_disable_probe("one", NULL, NULL, KYMO_MARKER_INLINE), -ENOENT);
}

/* ---- calling --------------------------------------------------------------------------------- */

static void a_marker_is_off_before_and_after(void **state)
{
	pass_one(1);
	assert_int_equal(kymo_marker_set_probe("one", "number=%d", note, "a", CALL), 0);
	assert_int_equal(evaluated, 0);
	pass_one(2);
	disconnected("one", note, "a");
	pass_one(3);
	assert_string_equal(trail, "a");
	assert_int_equal(evaluated, 1);
}

static void probes_are_called_in_the_order_in_which_they_were_connected(void **state)
{
	connected("one", note, "a");
	connected("one", note_too, "b");
	connected("one", note, "c");
	pass_one(1);
	assert_string_equal(trail, "abc");
	disconnected("one", note_too, "b");
	pass_one(1);
	assert_string_equal(trail, "abcac");
	connected("one", note_too, "b");
	pass_one(1);
	assert_string_equal(trail, "abcacacb");
	disconnected("one", note, "a");
	disconnected("one", note_too, "b");
	disconnected("one", note, "c");
	pass_one(1);
	assert_string_equal(trail, "abcacacb");
	assert_int_equal(evaluated, 3);
}

static void a_name_turns_on_all_copies(void **state)
{
	connected("copies", note, "x");
	pass_copies();
	assert_string_equal(trail, "xxx");
	disconnected("copies", note, "x");
}

static void a_format_chooses_among_markers_of_one_name(void **state)
{
	assert_int_equal(kymo_marker_set_probe("either", "%d %d", note, "2", CALL), 0);
	pass_either(1);
	assert_string_equal(trail, "2");
	connected("either", note, "a");
	pass_either(1);
	assert_string_equal(trail, "2a2a");
	disconnected("either", note, "2");
	pass_either(1);
	assert_string_equal(trail, "2a2aaa");
	disconnected("either", note, "a");
}

static void probes_of_markers_that_may_come_are_kept(void **state)
{
	assert_int_equal(kymo_marker_set_probe("to_come", NULL, note, "a", CALL | PENDING), 0);
	assert_int_equal(kymo_marker_set_probe("to_come", NULL, note, "a", CALL | PENDING), -EBUSY);
	assert_int_equal(kymo_marker_set_probe("to_come", NULL, note, "b", CALL), -ENOENT);
	disconnected("to_come", note, "a");
	assert_int_equal(kymo_marker_disable_probe("to_come", note, "a", CALL), -ENOENT);
}

static void set_errno(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	errno = ERANGE;
}

static void errno_is_kept(void **state)
{
	connected("one", set_errno, NULL);
	errno = EDOM;
	pass_one(1);
	assert_int_equal(errno, EDOM);
	disconnected("one", set_errno, NULL);
}

/* ---- what a probe may do --------------------------------------------------------------------- */

static void pass_others(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	note(marker, data, arguments);
	pass_one(1);
	pass_two("again");
}

static void markers_that_a_probe_passes_call_no_probes(void **state)
{
	connected("one", pass_others, "a");
	connected("two", note, "b");
	pass_one(1);
	pass_two("");
	assert_string_equal(trail, "ab");
	disconnected("one", pass_others, "a");
	disconnected("two", note, "b");
}

static int results[4];

/* Connects one, disconnects another, and itself. */
static void change(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	note(marker, data, arguments);
	results[0] = kymo_marker_set_probe("one", NULL, note, "n", CALL);
	results[1] = kymo_marker_set_probe("two", NULL, note, "t", CALL);
	results[2] = kymo_marker_disable_probe("one", note, "o", CALL);
	results[3] = kymo_marker_disable_probe("one", change, data, CALL);
}

static void a_probe_connects_and_disconnects(void **state)
{
	connected("one", change, "c");
	connected("one", note, "o");
	pass_one(1);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(results[i], 0);
	assert_int_equal(trail[0], 'c');
	memset(trail, 0, sizeof(trail));
	pass_one(1);
	pass_two("");
	assert_string_equal(trail, "nt");
	assert_int_equal(kymo_marker_disable_probe("one", change, "c", CALL), -ENOENT);
	disconnected("one", note, "n");
	disconnected("two", note, "t");
	pass_one(1);
	assert_int_equal(evaluated, 2);
}

static void pass_in_handler(int number)
{
	pass_one(number);
}

static void a_signal_handler_passes_markers(void **state)
{
	signal(SIGUSR1, pass_in_handler);
	connected("one", note, "s");
	raise(SIGUSR1);
	assert_string_equal(trail, "s");
	disconnected("one", note, "s");
	signal(SIGUSR1, SIG_DFL);
}

/* ---- what is told ---------------------------------------------------------------------------- */

struct told {
	struct kymo_marker_info either[4], copies;
	unsigned int n_either, n;
	const char *last_file;
	unsigned int last_line;
	bool in_order;
};

static int remember(const struct kymo_marker_info *marker, void *data)
{
	struct told *told = data;

	told->n++;
	if (told->last_file && strcmp(told->last_file, marker->file) == 0 && marker->line < told->last_line)
		told->in_order = false;
	told->last_file = marker->file;
	told->last_line = marker->line;
	if (strcmp(marker->name, "either") == 0 && told->n_either < 4)
		told->either[told->n_either++] = *marker;
	if (strcmp(marker->name, "copies") == 0)
		told->copies = *marker;
	return 0;
}

static void each_marker_is_told(void **state)
{
	struct told told = { .in_order = true };

	assert_int_equal(kymo_marker_set_probe("either", "%d %d", note, "2", CALL), 0);
	assert_int_equal(kymo_marker_for_each(remember, &told), 0);
	disconnected("either", note, "2");
	assert_int_equal(told.n, 5);
	assert_true(told.in_order);
	assert_int_equal(told.n_either, 2);
	assert_string_equal(told.either[0].format, "%d");
	assert_string_equal(told.either[1].format, "%d %d");
	assert_int_equal(told.either[0].n_probes, 0);
	assert_int_equal(told.either[1].n_probes, 1);
	assert_int_equal(told.either[1].line, told.either[0].line + 1);
	assert_string_equal(told.either[0].provider, "kymo");
	assert_non_null(strstr(told.either[0].file, "test_connect.c"));
	assert_non_null(strstr(told.either[0].module, "unit-lib-connect"));
	assert_false(told.either[0].is_recorded);
	assert_false(told.either[0].is_recorded_outside);
	assert_int_equal(told.either[0].n_sites, 1);
	assert_int_equal(told.copies.n_sites, 3);
}

static int stop_at_two(const struct kymo_marker_info *marker, void *data)
{
	++*(int *)data;
	return strcmp(marker->name, "two") == 0 ? 7 : 0;
}

static void telling_stops_when_it_is_told_to(void **state)
{
	int n = 0;

	assert_int_equal(kymo_marker_for_each(stop_at_two, &n), 7);
	assert_int_equal(n, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(unknown_names_are_told, begin),
		cmocka_unit_test_setup(what_makes_no_sense_is_told, begin),
		cmocka_unit_test_setup(a_probe_for_another_format_is_told, begin),
		cmocka_unit_test_setup(the_same_probe_twice_is_told, begin),
		cmocka_unit_test_setup(an_exclusive_probe_is_alone, begin),
		cmocka_unit_test_setup(without_a_recording_nothing_is_recorded_in_place, begin),
		cmocka_unit_test_setup(a_marker_is_off_before_and_after, begin),
		cmocka_unit_test_setup(probes_are_called_in_the_order_in_which_they_were_connected, begin),
		cmocka_unit_test_setup(a_name_turns_on_all_copies, begin),
		cmocka_unit_test_setup(a_format_chooses_among_markers_of_one_name, begin),
		cmocka_unit_test_setup(probes_of_markers_that_may_come_are_kept, begin),
		cmocka_unit_test_setup(errno_is_kept, begin),
		cmocka_unit_test_setup(markers_that_a_probe_passes_call_no_probes, begin),
		cmocka_unit_test_setup(a_probe_connects_and_disconnects, begin),
		cmocka_unit_test_setup(a_signal_handler_passes_markers, begin),
		cmocka_unit_test_setup(each_marker_is_told, begin),
		cmocka_unit_test_setup(telling_stops_when_it_is_told_to, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
