#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "syscall/names.h"
#include "syscall/sets.h"

/* The numbers of `text` are those that follow, to -1; no others of the table. */
static void check_set(const char *text, ...)
{
	uint64_t expected[KYMO_SYSCALL_MAX / 64] = { 0 };
	struct kymo_syscall_set set;
	va_list numbers;
	int number;

	va_start(numbers, text);
	while ((number = va_arg(numbers, int)) >= 0)
		expected[number / 64] |= 1ull << (number % 64);
	va_end(numbers);
	assert_null(kymo_syscall_set_parse(text, &set));
	for (uint64_t i = 0; i < KYMO_SYSCALL_MAX; i++)
		if (kymo_syscall_name(i))
			assert_int_equal(kymo_syscall_set_has(&set, i), expected[i / 64] >> (i % 64) & 1);
}

static bool has(const char *text, uint64_t number)
{
	struct kymo_syscall_set set;

	assert_null(kymo_syscall_set_parse(text, &set));
	return kymo_syscall_set_has(&set, number);
}

static void check_refused(const char *text, const char *sentence)
{
	struct kymo_syscall_set set;
	struct kymo_error *error = kymo_syscall_set_parse(text, &set);

	assert_non_null(error);
	assert_int_equal(error->code, KYMO_ERROR_USAGE);
	assert_string_equal(error->message, sentence);
	kymo_error_destroy(error);
}

static void names_numbers_and_expressions_add_up(void **state)
{
	check_set("open,close", SYS_open, SYS_close, -1);
	check_set("2,3", SYS_open, SYS_close, -1);
	check_set(",open,,close,", SYS_open, SYS_close, -1);
	check_set("/^(open|close)$", SYS_open, SYS_close, -1);
	check_set("read,/^dup[23]$", SYS_read, SYS_dup2, SYS_dup3, -1);
	check_set("none", -1);
	check_set("none,read", SYS_read, -1);
	check_set("%clock", SYS_gettimeofday, SYS_settimeofday, SYS_adjtimex, SYS_time, SYS_clock_settime,
		  SYS_clock_gettime, SYS_clock_getres, SYS_clock_adjtime, -1);
}

static void an_item_behind_others_can_be_taken_out(void **state)
{
	check_set("open,close,!open", SYS_close, -1);
	check_set("dup,dup2,dup3,!dup,!/3$", SYS_dup2, -1);
	assert_true(has("%file,!openat", SYS_open));
	assert_false(has("%file,!openat", SYS_openat));
	assert_false(has("all,!read", SYS_read));
	assert_true(has("all,!read", SYS_write));
}

static void a_mark_at_the_beginning_inverts_all(void **state)
{
	assert_false(has("!read,write", SYS_read));
	assert_false(has("!read,write", SYS_write));
	assert_true(has("!read,write", SYS_close));
	assert_true(has("!%file", SYS_getpid));
	assert_false(has("!%file", SYS_openat));
	assert_false(has("!/get", SYS_getpid));
	check_set("!all", -1);
}

static void numbers_without_a_name_belong_to_what_is_not_listed(void **state)
{
	assert_null(kymo_syscall_name(499));
	assert_true(has("all", 499));
	assert_true(has("all", UINT64_MAX));
	assert_true(has("!read", 499));
	assert_false(has("read", 499));
	assert_false(has("%file", UINT64_MAX));
}

static void what_is_wrong_is_told_with_what_is_near(void **state)
{
	check_refused("opnat", "there is no system call 'opnat'; near are openat");
	check_refused("read,dub", "there is no system call 'dub'; near are dup");
	check_refused("xyzzyxyzzy",
		      "there is no system call 'xyzzyxyzzy'; a set has names, %file and other classes, or /REGEX");
	check_refused("%fil", "there is no class '%fil'; there are %file, %desc, %process, %network, %signal, %ipc, "
			      "%memory, %creds, %clock");
	check_refused("", "the set '' has no system call: write names, %file and other classes, or /REGEX");
	check_refused("!,", "the set '!,' has no system call: write names, %file and other classes, or /REGEX");
	check_refused("/nosuch", "'/nosuch' is found in no system call's name");
	check_refused("!read,!write",
		      "'!' at the beginning of a set inverts all of it; there is no second one, as in '!write'");
	check_refused("9999", "there is no system call '9999'; a set has names, %file and other classes, or /REGEX");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_numbers_and_expressions_add_up),
		cmocka_unit_test(an_item_behind_others_can_be_taken_out),
		cmocka_unit_test(a_mark_at_the_beginning_inverts_all),
		cmocka_unit_test(numbers_without_a_name_belong_to_what_is_not_listed),
		cmocka_unit_test(what_is_wrong_is_told_with_what_is_near),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
