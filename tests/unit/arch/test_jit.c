/* JIT code: what is planned there, and what is not. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "alone.h"
#include "room.h"

#define AT 0x7f0000000000u
#define INT3S 16

/* Plan the instruction at `at` of these bytes, which are a function from their start to its end; NULL, or why there is
 * no plan, no pun where it comes to that. */
static const char *plan(const char *bytes, size_t size, uint64_t at, unsigned int length, struct kymo_plan *ret)
{
	static struct kymo_refusal refusals[KYMO_N_TACTICS];
	uint8_t text[64];
	struct kymo_plan plans[KYMO_PLANS_MAX];
	struct alone alone;
	struct kymo_entry_map *map;
	struct room room;
	size_t n = 0, n_refusals = 0;
	int err;

	memset(text, 0xcc, sizeof(text));
	memcpy(text, bytes, size);
	alone_init(&alone, AT, text, size + INT3S, (struct kymo_extent){ AT, AT + at + length }, AT + at);
	alone.code.is_jit = true;
	assert_int_equal(kymo_entry_map_create(&alone.code, &map), 0);
	room_init(&room, &alone.code);
	room_free_around(&room);
	err = kymo_plan(&alone.code, map, &room.ops, AT + at, plans, &n, refusals, &n_refusals);
	room_deinit(&room);
	kymo_entry_map_destroy(map);
	for (size_t i = 0; err && i < n_refusals; i++)
		if (refusals[i].tactic == KYMO_TACTIC_PUN || n_refusals == 1)
			return refusals[i].reason;
	assert_int_equal(err, 0);
	assert_int_equal(n, 1);
	*ret = plans[0];
	return NULL;
}

#define PLAN(bytes, at, length) plan(bytes, sizeof(bytes) - 1, at, length, &made)

static void an_instruction_of_five_bytes_becomes_a_jump(void **state)
{
	struct kymo_plan made;

	assert_null(PLAN("\x55\xb8\x05\0\0\0\xc3", 1, 5));
	assert_int_equal(made.tactic, KYMO_TACTIC_JUMP);
	assert_int_equal(made.n_insns, 1);
	assert_int_equal(made.lock_size, 5);
}

static void a_short_one_becomes_a_pun_and_nothing_is_copied(void **state)
{
	struct kymo_plan made;

	/* In a file this would be a group. */
	assert_null(PLAN("\x48\x89\xf8\x48\x01\xf0\xc3", 0, 3));
	assert_int_equal(made.tactic, KYMO_TACTIC_PUN);
	assert_int_equal(made.n_insns, 1);
	assert_int_equal(made.n_copied, 0);
	assert_int_equal(made.patch_size, 3);
}

static void what_is_changed_in_place_is_not_displaced(void **state)
{
	struct kymo_plan made;
	const char *const kind = "of a kind that programs change";

	assert_non_null(strstr(PLAN("\xe8\x10\0\0\0\xc3", 0, 5), kind));
	assert_non_null(strstr(PLAN("\xe9\x10\0\0\0\xc3", 0, 5), kind));
	assert_non_null(strstr(PLAN("\x0f\x84\x10\0\0\0\xc3", 0, 6), kind));
	assert_non_null(strstr(PLAN("\x0f\x1f\x44\0\0\xc3", 0, 5), kind));
	assert_non_null(strstr(PLAN("\x48\xb8\1\2\3\4\5\6\7\x08\xc3", 0, 10), kind));
	assert_non_null(strstr(PLAN("\x3d\1\0\0\0\xc3", 0, 5), kind));
}

static void what_may_fault_is_not_displaced(void **state)
{
	struct kymo_plan made;
	const char *const fault = "may fault, and the program would not know";

	assert_non_null(strstr(PLAN("\x48\x8b\x87\0\1\0\0\xc3", 0, 7), fault));
	assert_non_null(strstr(PLAN("\x48\xf7\xff\x48\x01\xf0\xc3", 0, 3), fault));
	assert_null(PLAN("\x48\x8b\x84\x24\0\1\0\0\xc3", 0, 8));
	assert_int_equal(made.tactic, KYMO_TACTIC_JUMP);
}

static void no_pun_relies_on_it(void **state)
{
	struct kymo_plan made;
	const char *const kind = "the instruction at 0x7f0000000003 is of a kind that programs change";

	assert_non_null(strstr(PLAN("\x48\x89\xf8\xe8\x10\0\0\0\xc3", 0, 3), kind));
	assert_non_null(strstr(PLAN("\x48\x89\xf8\x48\xb8\1\2\3\4\5\6\7\x08\xc3", 0, 3), kind));
	assert_null(PLAN("\x48\x89\xf8\xff\xd0\x48\xb8\1\2\3\4\5\6\7\x08\xc3", 0, 3));
	assert_int_equal(made.tactic, KYMO_TACTIC_PUN);
}

static void no_pun_relies_on_what_follows_the_end_of_the_flow(void **state)
{
	struct kymo_plan made;
	const char *const end = "after the end of the flow";

	assert_non_null(strstr(PLAN("\xc3", 0, 1), end));
	assert_non_null(strstr(PLAN("\x48\x89\xf8\xc3", 0, 3), end));
	assert_null(PLAN("\x48\x89\xf8\x5d\xc3", 0, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_instruction_of_five_bytes_becomes_a_jump),
		cmocka_unit_test(a_short_one_becomes_a_pun_and_nothing_is_copied),
		cmocka_unit_test(what_is_changed_in_place_is_not_displaced),
		cmocka_unit_test(what_may_fault_is_not_displaced),
		cmocka_unit_test(no_pun_relies_on_it),
		cmocka_unit_test(no_pun_relies_on_what_follows_the_end_of_the_flow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
