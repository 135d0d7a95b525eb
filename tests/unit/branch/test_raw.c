/* Records of BTS and samples of LBR, as branches: bytes as the kernel lays them out. No processor has written any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <linux/perf_event.h>

#include "branch/raw_bts.h"
#include "branch/raw_lbr.h"
#include "image.h"

/* ---- BTS ------------------------------------------------------------------------------------- */

static void records_tell_branches(void **state)
{
	static const uint64_t records[][3] = {
		{ 0, 0, 0 }, /* not written yet */
		{ AT(image_loop), AT(image_leaf), 0 },
		{ AT(image_leaf), AT(image_back), 0 },
		{ AT(image_if), KERNEL, 0 }, /* an interrupt */
		{ KERNEL + 8, KERNEL + 64, 0 },
		{ KERNEL + 16, AT(image_if), 0 },
		{ AT(image_if), AT(image_loop), 1 },
		{ AT(image_start), KERNEL, 0 }, /* some were lost */
		{ KERNEL, AT(image_start), 0 },
		{ AT(image_after), AT(image_return), 0 },
		{ AT(image_return), KERNEL, 0 },
		{ KERNEL, AT(image_handler), 0 },
		{ AT(image_end_of_handler), ELSEWHERE, 0 },
		{ ELSEWHERE + 8, AT(image_leaf), 0 },
	};
	static const struct kymo_branch expected[] = {
		BRANCH(CALL, AT(image_loop), AT(image_leaf)),
		BRANCH(RETURN, AT(image_leaf), AT(image_back)),
		BRANCH(JUMP, AT(image_if), AT(image_loop)),
		BRANCH(ENTER, 0, AT(image_start)),
		BRANCH(JUMP, AT(image_after), AT(image_return)),
		BRANCH(KERNEL, AT(image_return), AT(image_handler)),
		BRANCH(RETURN, AT(image_end_of_handler), ELSEWHERE),
		BRANCH(JUMP, ELSEWHERE + 8, AT(image_leaf)),
	};
	struct image_list list =
		image_decode(branch_bts_decode, records, sizeof(records) - 5); /* the last one is cut off */
	struct image_list whole = image_decode(branch_bts_decode, records, sizeof(records));

	image_check(&list, expected, 7, 1);
	CHECK(whole, expected, 1);
}

/* ---- LBR ------------------------------------------------------------------------------------- */

struct lbr_sample {
	struct perf_event_header header;
	uint64_t n;
	struct perf_branch_entry entries[4]; /* the newest first */
};

#define SAMPLE(...) \
	{ \
		.header = { PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, sizeof(struct lbr_sample) }, .n = 4, \
		.entries = { \
			__VA_ARGS__ \
		} \
	}
#define A \
	{ \
		.from = AT(image_loop), .to = AT(image_leaf) \
	}
#define B \
	{ \
		.from = AT(image_leaf), .to = AT(image_back) \
	}
#define C \
	{ \
		.from = AT(image_if), .to = AT(image_loop) \
	}
#define D \
	{ \
		.from = AT(image_call), .to = AT(image_other) \
	}
#define E \
	{ \
		.from = AT(image_other), .to = AT(image_last) \
	}
#define F \
	{ \
		.from = AT(image_last), .to = AT(image_syscall) \
	}

static void samples_are_joined_where_one_overlap_is_possible(void **state)
{
	const struct lbr_sample samples[] = { SAMPLE(F, E, D, B), SAMPLE(D, B, A, C) };
	static const struct kymo_branch expected[] = {
		BRANCH(JUMP, AT(image_if), AT(image_loop)),     BRANCH(CALL, AT(image_loop), AT(image_leaf)),
		BRANCH(RETURN, AT(image_leaf), AT(image_back)), BRANCH(CALL, AT(image_call), AT(image_other)),
		BRANCH(JUMP, AT(image_other), AT(image_last)),  BRANCH(RETURN, AT(image_last), AT(image_syscall)),
	};
	struct image_list list = image_decode(branch_lbr_decode, samples, sizeof(samples));

	CHECK(list, expected, 0);
}

/* How often a loop was executed between two samples is not known: the newest sample alone is certain. */
static void samples_of_a_loop_are_not_joined(void **state)
{
	const struct lbr_sample samples[] = { SAMPLE(C, C, C, C), SAMPLE(C, C, C, C), SAMPLE(F, E, D, B) };
	static const struct kymo_branch c = BRANCH(JUMP, AT(image_if), AT(image_loop));
	const struct kymo_branch expected[] = { c, c, c, c };
	struct image_list list = image_decode(branch_lbr_decode, samples, sizeof(samples));

	CHECK(list, expected, 0);
}

static void samples_without_an_overlap_leave_a_gap(void **state)
{
	const struct lbr_sample samples[] = { SAMPLE(F, E, D, B), SAMPLE(C, B, A, C) };
	static const struct kymo_branch expected[] = {
		BRANCH(JUMP, AT(image_if), AT(image_loop)),
		BRANCH(CALL, AT(image_loop), AT(image_leaf)),
		BRANCH(RETURN, AT(image_leaf), AT(image_back)),
		BRANCH(JUMP, AT(image_if), AT(image_loop)),
		BRANCH(ENTER, 0, AT(image_leaf)),
		BRANCH(RETURN, AT(image_leaf), AT(image_back)),
		BRANCH(CALL, AT(image_call), AT(image_other)),
		BRANCH(JUMP, AT(image_other), AT(image_last)),
		BRANCH(RETURN, AT(image_last), AT(image_syscall)),
	};
	struct image_list list = image_decode(branch_lbr_decode, samples, sizeof(samples));

	CHECK(list, expected, 1);
}

/* The ring has written over the oldest record, and other records lie between. */
static void what_is_no_sample_is_passed_over(void **state)
{
	struct {
		struct perf_event_header throttle;
		uint64_t words[3];
		struct lbr_sample sample, lies, cut;
	} ring = {
		.throttle = { PERF_RECORD_THROTTLE, 0, 32 },
		.sample = SAMPLE(D, B, A, C),
		.lies = SAMPLE(F, E, D, B),
		.cut = SAMPLE(F, E, D, B),
	};
	struct image_list list;

	ring.lies.n = 5;
	ring.cut.header.size = 3;
	list = image_decode(branch_lbr_decode, &ring, sizeof(ring));
	assert_int_equal(list.branches.n, 4);
	assert_int_equal(list.n_gaps, 0);
	kymo_vec_deinit(&list.branches);
	list = image_decode(branch_lbr_decode, &ring, 40);
	assert_int_equal(list.branches.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_tell_branches),
		cmocka_unit_test(samples_are_joined_where_one_overlap_is_possible),
		cmocka_unit_test(samples_of_a_loop_are_not_joined),
		cmocka_unit_test(samples_without_an_overlap_leave_a_gap),
		cmocka_unit_test(what_is_no_sample_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
