/* Pads that write memory: what the record says is there, and where it says that it was not written all is as it was. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "arch/writes.h"
#include "pad_reads.h"

#define LEASE_TICKS ((uint64_t)1 << 31)
#define WRITTEN 0x1122334455667788u

/* *%rdi = WRITTEN */
static struct kymo_form store_of(unsigned int size)
{
	return (struct kymo_form){ .n = 3,
				   .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI },
					    { .code = KYMO_FORM_VALUE, .value = WRITTEN },
					    { .code = KYMO_FORM_STORE, .size = (uint8_t)size } } };
}

static struct kymo_fetch store_by(const struct kymo_form *form, unsigned int size)
{
	const enum kymo_type type = size == 1   ? KYMO_TYPE_U8
				    : size == 2 ? KYMO_TYPE_U16
				    : size == 4 ? KYMO_TYPE_U32
						: KYMO_TYPE_U64;

	return (struct kymo_fetch){ .kind = KYMO_FETCH_FORM,
				    .type = type,
				    .base = -1,
				    .index = -1,
				    .form = form,
				    .writes = KYMO_WRITE_MEMORY };
}

static uint64_t *lease_of(const struct world *world)
{
	return (uint64_t *)(void *)(world->live + KYMO_PAD_LIVE_LEASE);
}

static void lease(const struct world *world)
{
	*lease_of(world) = tsc() + LEASE_TICKS;
}

/* A pad with what is at %rdi before, if `has_before`, and the store. */
struct storing {
	struct kymo_form load, store;
	struct kymo_fetch args[2];
	struct kymo_pad_event event;
	struct world world;
	struct last last;
	struct site site;
	uint8_t *stack;
};

static void storing_init(struct storing *storing, enum kind kind, struct shape shape, unsigned int size)
{
	storing->load = load_of(size);
	storing->store = store_of(size);
	storing->args[0] = store_by(&storing->load, size);
	storing->args[0].writes = 0;
	storing->args[1] = store_by(&storing->store, size);
	storing->event = (struct kymo_pad_event){ .id = 1, .args = storing->args, .n_args = 2 };
	world_begin(&storing->world, &storing->last, kind, shape);
	world_landing(&storing->world, &storing->event, 1, &storing->site);
	lease(&storing->world);
	storing->stack = stack_create();
}

static void storing_deinit(struct storing *storing)
{
	world_deinit(&storing->world);
	stack_destroy(storing->stack);
}

static uint64_t bytes_at(const uint8_t *at, unsigned int size)
{
	uint64_t bytes = 0;

	memcpy(&bytes, at, size);
	return bytes;
}

/* Whether the hit at `at` has written, by its record; else nothing is different. `pages` has five. */
static bool does_store(struct storing *storing, const uint8_t *pages, uint64_t at, unsigned int size)
{
	static uint8_t before[2 * PAGE], after[2 * PAGE];
	const struct last *last = &storing->last;
	const bool is_seen = is_there(pages, (uint64_t)pages + at, size);
	const uint64_t had = is_seen ? bytes_at(pages + at, size) : 0;

	memcpy(before, pages + 2 * PAGE, sizeof(before));
	hit(&storing->world, &storing->last, &storing->site, storing->stack, (uint64_t)pages + at);
	assert_int_equal(last->n, 1);
	assert_int_equal(last->size, 1 + 2 * size);
	assert_int_equal(last->bytes[0] & 1, !is_seen);
	assert_int_equal(bytes_at(last->bytes + 1, size), had);
	memcpy(after, pages + 2 * PAGE, sizeof(after));
	if (!(last->bytes[0] >> 1 & 1)) {
		assert_int_equal(bytes_at(last->bytes + 1 + size, size), cut(WRITTEN, size));
		memcpy(before + at - 2 * PAGE, last->bytes + 1 + size, size);
	}
	assert_memory_equal(before, after, sizeof(before));
	return !(last->bytes[0] >> 1 & 1);
}

static void what_the_record_says_is_there(void **state)
{
	for_each_kind(kind) for (unsigned int size = 1; size <= 8; size *= 2)
	{
		uint8_t *pages = pages_create();
		struct storing storing;

		storing_init(&storing, kind, roomy, size);
		for (uint64_t at = 3 * PAGE - 20; at < 3 * PAGE + 20; at++)
			assert_int_equal(does_store(&storing, pages, at, size),
					 at + size <= 3 * PAGE || at >= 3 * PAGE);
		assert_false(does_store(&storing, pages, PAGE + 64, size));
		assert_false(does_store(&storing, pages, 4 * PAGE - size + 1, size));
		assert_true(does_store(&storing, pages, 4 * PAGE - size, size));
		storing_deinit(&storing);
		munmap(pages, 5 * PAGE);
	}
}

static void what_may_be_read_alone_stays(void **state)
{
	uint8_t *pages = pages_create();

	assert_int_equal(mprotect(pages + 3 * PAGE, PAGE, PROT_READ), 0);
	for_each_kind(kind)
	{
		struct storing storing;

		storing_init(&storing, kind, roomy, 8);
		assert_false(does_store(&storing, pages, 3 * PAGE + 8, 8));
		assert_true(does_store(&storing, pages, 2 * PAGE + 8, 8));
		storing_deinit(&storing);
	}
	munmap(pages, 5 * PAGE);
}

static void without_a_lease_or_calls_nothing_is_written(void **state)
{
	const uint64_t none = 0;
	uint8_t *pages = pages_create();

	for_each_kind(kind)
	{
		const uint64_t leases[] = { 0, tsc() - 1, tsc() + (2ull << KYMO_PAD_LEASE_BITS), UINT64_MAX };
		struct storing storing;

		storing_init(&storing, kind, roomy, 4);
		for (size_t i = 0; i < sizeof(leases) / sizeof(leases[0]); i++) {
			*lease_of(&storing.world) = leases[i];
			assert_false(does_store(&storing, pages, 2 * PAGE, 4));
		}
		lease(&storing.world);
		assert_true(does_store(&storing, pages, 2 * PAGE, 4));
		memcpy(storing.world.live + KYMO_PAD_LIVE_READER, &none, sizeof(none));
		hit(&storing.world, &storing.last, &storing.site, storing.stack, (uint64_t)pages + 2 * PAGE + 64);
		assert_int_equal(storing.last.bytes[0] >> 1 & 1, 1);
		storing_deinit(&storing);
	}
	munmap(pages, 5 * PAGE);
}

/* Where nothing is recorded, nothing is written; a record for which there was no room is counted. */
static void a_write_is_told_or_counted(void **state)
{
	uint8_t *pages = pages_create();

	for_each_kind(kind)
	{
		uint64_t n_written = 0, n_hits = 0;
		struct storing storing;
		struct registers in;

		storing_init(&storing, kind, tiny, 8);
		for (; n_hits < 2000; n_hits++) {
			memset(pages + 2 * PAGE, 0, 8);
			randomise(&in, n_hits, storing.stack);
			in.r[RDI] = (uint64_t)(pages + 2 * PAGE);
			enter_unseen(&storing.site, &in);
			n_written += bytes_at(pages + 2 * PAGE, 8) == WRITTEN;
		}
		assert_true(world_lost(&storing.world) > 0);
		world_read_all(&storing.world);
		assert_int_equal(n_written, n_hits);
		assert_int_equal(storing.last.n + world_lost(&storing.world), n_hits);
		world_state(&storing.world, 0);
		memset(pages + 2 * PAGE, 0, 8);
		randomise(&in, 1, storing.stack);
		in.r[RDI] = (uint64_t)(pages + 2 * PAGE);
		enter_unseen(&storing.site, &in);
		assert_int_equal(bytes_at(pages + 2 * PAGE, 8), 0);
		storing_deinit(&storing);
	}
	munmap(pages, 5 * PAGE);
}

static int emit(const struct storing *storing, const struct kymo_pad_event *event)
{
	static uint8_t out[65536] __attribute__((aligned(64)));
	const struct kymo_pad_chain chain = { .next = 0 };
	struct kymo_pad_layout layout;

	return kymo_pad_emit(&storing->world.env, &storing->site.plan, storing->site.address, storing->site.pad, event,
			     1, &chain, out, sizeof(out), &layout);
}

static void bad_stores_are_refused(void **state)
{
	struct kymo_form twice = store_of(8), not_last = store_of(8), odd = store_of(3), load = load_of(8);
	struct storing storing;
	struct kymo_pad_event event;

	twice.ops[1] = twice.ops[0];
	twice.ops[2] = (struct kymo_form_op){ .code = KYMO_FORM_STORE, .size = 8 };
	twice.ops[twice.n++] = (struct kymo_form_op){ .code = KYMO_FORM_STORE, .size = 8 };
	not_last.ops[not_last.n++] = (struct kymo_form_op){ .code = KYMO_FORM_NOT };
	storing_init(&storing, LOCKS, roomy, 8);
	event = storing.event;
	assert_int_equal(emit(&storing, &event), 0);
	event.filter = &storing.store;
	assert_int_equal(emit(&storing, &event), -EINVAL);
	event.filter = NULL;
	storing.args[1].writes = 0;
	assert_int_equal(emit(&storing, &event), -EINVAL);
	storing.args[1].writes = KYMO_WRITE_OF(3);
	assert_int_equal(emit(&storing, &event), -EINVAL);
	storing.args[1].writes = KYMO_WRITE_MEMORY;
	storing.args[1].form = &load;
	assert_int_equal(emit(&storing, &event), -EINVAL);
	storing.args[1].form = &twice;
	assert_int_equal(emit(&storing, &event), -EINVAL);
	storing.args[1].form = &not_last;
	assert_int_equal(emit(&storing, &event), -EINVAL);
	storing.args[1].form = &odd;
	assert_int_equal(emit(&storing, &event), -EINVAL);
	/* What is recorded is what the program had. */
	storing.args[1] = storing.args[0];
	storing.args[0] = store_by(&storing.store, 8);
	assert_int_equal(emit(&storing, &event), -EINVAL);
	storing_deinit(&storing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_record_says_is_there),
		cmocka_unit_test(what_may_be_read_alone_stays),
		cmocka_unit_test(without_a_lease_or_calls_nothing_is_written),
		cmocka_unit_test(a_write_is_told_or_counted),
		cmocka_unit_test(bad_stores_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
