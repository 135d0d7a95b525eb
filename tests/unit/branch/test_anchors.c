/* Anchors among the entries of a ring: which of them are whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "branch/blocks.h"
#include "branch/branch.h"
#include "wire/clones.h"

#define UPPER(n) (KYMO_WIRE_ANCHOR | (n))
#define LOWER(n) (KYMO_WIRE_ANCHOR | KYMO_WIRE_ANCHOR_LOW | (n))
#define STAMP(upper, lower) ((uint64_t)(upper) << KYMO_WIRE_ANCHOR_BITS | (lower))

struct found {
	uint64_t stamps[8];
	size_t n;
};

static void take(const struct kymo_branch *branch, bool is_gap, void *data)
{
	struct found *found = data;

	assert_int_equal(branch->kind, KYMO_BRANCH_ANCHOR);
	assert_false(is_gap);
	assert_int_equal(branch->from | branch->to, 0);
	found->stamps[found->n++] = branch->stamp;
}

static void test_whole_ones(void **state)
{
	const uint32_t entries[] = { UPPER(1), LOWER(2), UPPER(0), LOWER(0x3fffffff), UPPER(0x3fffffff), LOWER(0) };
	struct found found = { .n = 0 };

	assert_int_equal(branch_follow(NULL, 0, entries, sizeof(entries) / 4, NULL, take, &found), 0);
	assert_int_equal(found.n, 3);
	assert_int_equal(found.stamps[0], STAMP(1, 2));
	assert_int_equal(found.stamps[1], STAMP(0, 0x3fffffff));
	assert_int_equal(found.stamps[2], STAMP(0x3fffffff, 0));
}

/* The ring has gone over the first half, a handler has come between both, or the target has written it. */
static void test_halves(void **state)
{
	const uint32_t entries[] = { LOWER(9), LOWER(8), UPPER(1), UPPER(2), LOWER(3),
				     LOWER(4), UPPER(5), 7,        LOWER(6), UPPER(7) };
	struct found found = { .n = 0 };

	assert_int_equal(branch_follow(NULL, 0, entries, sizeof(entries) / 4, NULL, take, &found), 0);
	assert_int_equal(found.n, 1);
	assert_int_equal(found.stamps[0], STAMP(2, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_ones),
		cmocka_unit_test(test_halves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
