/*
 * What pads promise, by running them: a payload of any size is recorded byte for byte, or counted as lost; and the
 * program sees nothing of it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/mman.h>

#include "payload_checks.h"

/* ---- a payload, and what comes of it --------------------------------------------------------- */

/* Both kinds of pad, each by its own way and by locks. */
#define for_each_way(kind, by_lock) for_each_kind(kind) for (unsigned int by_lock = 0; by_lock < 2; by_lock++)

/* A world with a site whose event is a payload. */
static void payload_world_init(struct world *world, enum kind kind, bool by_lock, struct shape shape, struct site *site)
{
	world_init(world, kind, shape);
	if (by_lock)
		world_state(world, KYMO_PAD_LIVE);
	world_landing(world, &one_payload, 1, site);
}

/* Bytes between two pages that can't be read. */
struct source {
	uint8_t *first, *end;
};

static struct source source_create(void)
{
	uint8_t *pages = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE), 0);
	return (struct source){ pages + PAGE, pages + 3 * PAGE };
}

static void source_destroy(struct source source)
{
	munmap(source.first - PAGE, 4 * PAGE);
}

/* What the next record is to have. */
struct expected {
	const uint8_t *bytes;
	size_t size;
	unsigned int n; /* records with it that came */
};

static void compare(void *data, const struct record *record, const uint8_t *bytes)
{
	struct expected *expected = data;

	if (record->id != ID)
		return;
	assert_int_equal(record->size, expected->size);
	assert_int_equal(record->tid, gettid());
	if (expected->size)
		assert_memory_equal(bytes, expected->bytes, expected->size);
	expected->n++;
}

static void expect(struct world *world, struct expected *expected)
{
	world->sizes[ID] = (uint32_t)expected->size;
	world->on_record = compare;
	world->data = expected;
}

/* A payload of which one record comes; or none, and it is counted as lost. */
static void check_payload(struct world *world, const struct site *site, uint8_t *stack, const uint8_t *bytes,
			  uint64_t size, bool is_kept)
{
	struct expected expected = { .bytes = bytes, .size = size };
	uint64_t lost = world_lost(world);

	expect(world, &expected);
	enter_with(site, stack, R10, bytes, R11, size, size);
	world_read_all(world);
	world_forget(world);
	assert_int_equal(expected.n, is_kept);
	assert_int_equal(world_lost(world) - lost, !is_kept);
	for (uint32_t i = 0; i < world->n_rings; i++)
		assert_int_equal(world_ring(world, i)->lock, 0);
}

static void a_payload_of_any_size_is_recorded_byte_for_byte(void **state)
{
	struct source source = source_create();
	uint8_t *stack = stack_create();

	fill(source.first, 2 * PAGE, 1);
	for_each_way(kind, by_lock)
	{
		struct world world;
		struct site site;

		payload_world_init(&world, kind, by_lock, roomy, &site);
		for (uint64_t size = 0; size <= KYMO_PAYLOAD_MAX; size += size < 300 ? 1 : size < 4000 ? 97 : 1) {
			check_payload(&world, &site, stack, source.first, size, true);
			check_payload(&world, &site, stack, source.end - size, size, true);
		}
		world_deinit(&world);
	}
	source_destroy(source);
	stack_destroy(stack);
}

static void it_is_found_in_any_two_registers(void **state)
{
	uint8_t *stack = stack_create(), *bytes = stack + 2 * PAGE;

	fill(bytes, 128, 3);
	for_each_kind(kind)
	{
		struct world world;

		world_init(&world, kind, roomy);
		for (unsigned int address = 0; address < 16; address++) {
			for (unsigned int size_in = 0; size_in < 16; size_in++) {
				struct kymo_fetch arg = PAYLOAD(address, (int8_t)size_in);
				struct kymo_pad_event event = { .id = ID, .args = &arg, .n_args = 1 };
				uint64_t size = 1 + (address * 16 + size_in) % 100;
				struct expected expected = { .bytes = bytes, .size = size };
				struct site site;

				if (address == size_in || size_in == RSP || address == RSP)
					continue;
				world_landing(&world, &event, 1, &site);
				expect(&world, &expected);
				enter_with(&site, stack, address, bytes, size_in, size, address * 16 + size_in);
				world_read_all(&world);
				assert_int_equal(expected.n, 1);
			}
		}
		assert_int_equal(world_lost(&world), 0);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void the_stack_pointer_may_be_its_address(void **state)
{
	static const struct kymo_fetch arg = PAYLOAD(RSP, 1);
	static const struct kymo_pad_event event = { .id = ID, .args = &arg, .n_args = 1 };
	uint8_t *stack = stack_create(), *bytes = stack + STACK_SIZE / 2 + 40;

	fill(bytes, 100, 8);
	for_each_kind(kind)
	{
		struct expected expected = { .bytes = bytes, .size = 77 };
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		world_landing(&world, &event, 1, &site);
		expect(&world, &expected);
		enter_with(&site, stack, RSP, bytes, 1, 77, 5);
		world_read_all(&world);
		assert_int_equal(expected.n, 1);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* ---- what is too large ----------------------------------------------------------------------- */

static void one_that_is_too_large_is_a_loss(void **state)
{
	static const uint64_t sizes[] = {
		KYMO_PAYLOAD_MAX + 1, 65536,           UINT64_C(1) << 32, (UINT64_C(1) << 32) + 5, INT64_MAX,
		UINT64_C(1) << 63,    UINT64_MAX - 11, UINT64_MAX,
	};
	uint8_t *stack = stack_create();

	for_each_way(kind, by_lock)
	{
		struct world world;
		struct site site;

		payload_world_init(&world, kind, by_lock, roomy, &site);
		check_payload(&world, &site, stack, stack, 100, true);
		for (size_t i = 0; i < kymo_countof(sizes); i++)
			check_payload(&world, &site, stack, NULL, sizes[i], false);
		check_payload(&world, &site, stack, stack, KYMO_PAYLOAD_MAX, true);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* Sub-buffers of one page: what has no room in an empty one is lost, whether the recorder reads or not. */
static void one_that_fits_no_sub_buffer_is_a_loss(void **state)
{
	const uint64_t most = PAGE - KYMO_PACKED_THREAD_SIZE - HEADER;
	uint8_t *stack = stack_create();

	fill(stack, PAGE, 1);
	for_each_way(kind, by_lock)
	{
		for (unsigned int overwrite = 0; overwrite < 2; overwrite++) {
			struct world world;
			struct site site;

			payload_world_init(&world, kind, by_lock, (struct shape){ PAGE, 3, overwrite }, &site);
			check_payload(&world, &site, stack, stack, most + 1, false); /* nothing is open */
			for (unsigned int k = 0; k < 20; k++) {
				check_payload(&world, &site, stack, stack, most, true);
				check_payload(&world, &site, stack, stack, most + 1, false);
				check_payload(&world, &site, stack, stack, 1, true);
				check_payload(&world, &site, stack, stack, KYMO_PAYLOAD_MAX, false);
			}
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

static void a_record_may_end_with_its_sub_buffer_but_not_behind(void **state)
{
	static const uint32_t sizes[] = { 0, 1, 7, 8, 9, 63, 255, KYMO_PAYLOAD_MAX };
	uint8_t *stack = stack_create();

	fill(stack, PAGE, 2);
	for_each_way(kind, by_lock)
	{
		for (size_t i = 0; i < kymo_countof(sizes) * 2; i++) {
			uint32_t size = sizes[i / 2], less = i % 2;
			/* There has to be room for a thread's record before it, too. */
			uint32_t whole = HEADER + size, room = KYMO_PACKED_THREAD_SIZE + whole;
			struct kymo_wire_ring *ring;
			uint8_t behind[16];
			struct world world;
			cpu_set_t before;
			uint64_t end;
			struct site site;

			payload_world_init(&world, kind, by_lock, (struct shape){ 2 * PAGE, 4, false }, &site);
			world.sizes[ID] = size;
			ring = world_ring(&world, stay(&before) + (by_lock ? world.n_sequenced : 0));
			enter_with(&site, stack, R10, stack, R11, size, i); /* opens the sub-buffer */
			end = ring->end;
			memset((uint8_t *)ring + end, 0x5a, sizeof(behind));
			memset(behind, 0x5a, sizeof(behind));
			ring->cur = end - room + less;
			enter_with(&site, stack, R10, stack, R11, size, i);
			leave(&before);
			assert_int_equal(ring->opened, 1 + less);
			assert_int_equal(ring->cur, less ? end + room : end - KYMO_PACKED_THREAD_SIZE);
			if (!less)
				assert_memory_equal((uint8_t *)ring + end, behind, sizeof(behind));
			else
				assert_memory_equal((uint8_t *)ring + end + room - size, stack, size);
			assert_memory_equal((uint8_t *)ring + ring->cur - size, stack, size);
			assert_int_equal(world_lost(&world), 0);
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

/* ---- slow paths, and others beside it -------------------------------------------------------- */

static void enter_unseen_with(const struct site *site, uint8_t *stack, uint64_t seed, uint64_t size)
{
	enter_with(site, stack, R10, stack, R11, size, seed);
}

static void the_program_sees_nothing_on_any_slow_path(void **state)
{
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		payload_world_init(&world, kind, false, tiny, &site);
		pass_slow_paths(&world, &site, stack, 256, enter_unseen_with);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void enter_with_small_and_large(const struct site *site, uint8_t *stack)
{
	enter_with(site, stack, R10, stack, R11, 8, 1);
	enter_with(site, stack, R10, stack, R11, KYMO_PAYLOAD_MAX + 1, 1);
}

static void a_pad_that_records_nothing_loses_nothing(void **state)
{
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		payload_world_init(&world, kind, false, roomy, &site);
		in_child(&site, stack, enter_with_small_and_large);
		if (kind == SEQUENCES) {
			world.vforks->n = 1;
			world.vforks->threads[0] = (uint64_t)__builtin_thread_pointer();
			enter_with(&site, stack, R10, stack, R11, KYMO_PAYLOAD_MAX + 1, 1);
		}
		world_read_all(&world);
		assert_int_equal(world.records.n, 0);
		assert_int_equal(world_lost(&world), 0);
		assert_int_equal(world.counts->lost_in_vforks, kind == SEQUENCES);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void others_at_the_same_place_are_recorded_as_ever(void **state)
{
	static const struct kymo_fetch registers[] = {
		FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, R10),
		FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, R11),
		FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7),
		OPERAND(KYMO_TYPE_U64, 0, RSP, -1, 1),
	};
	static const struct kymo_pad_event events[] = { { .id = 1, .args = registers, .n_args = 4 },
							{ .id = ID, .args = as_markers, .n_args = 1 },
							{ .id = 2, .args = registers, .n_args = 4 },
							{ .id = ID, .args = as_markers, .n_args = 1 } };
	static const uint64_t sizes[] = {
		0, 1, 7, 8, 9, 23, 63, 64, 255, 1000, KYMO_PAYLOAD_MAX, KYMO_PAYLOAD_MAX + 1
	};
	uint8_t *stack = stack_create();

	fill(stack, PAGE, 4);
	for_each_kind(kind)
	{
		struct site first, second, third;
		struct world world;

		world_init(&world, kind, roomy);
		world_landing(&world, events, 4, &first);
		world_put_before(&world, &first, events + 1, 1, &second);
		world_put_before(&world, &second, events, 3, &third);
		for (size_t n = 0; n < kymo_countof(sizes); n++) {
			uint64_t size = sizes[n];
			struct expected expected = { .bytes = stack, .size = size };
			bool is_kept = size <= KYMO_PAYLOAD_MAX;
			struct registers in;

			expect(&world, &expected);
			enter_with(&third, stack, R10, stack, R11, size, size);
			randomise(&in, size, stack);
			world_read_all(&world);
			assert_int_equal(expected.n, is_kept ? 4 : 0);
			assert_int_equal(world.records.n, 4 + expected.n);
			for (size_t i = 0; i < world.records.n; i++) {
				const struct record *record = &world.records.items[i];

				if (record->id == ID)
					continue;
				assert_int_equal(value(record, 1, 8), (uint64_t)stack);
				assert_int_equal(value(record, 9, 8), size);
				assert_int_equal(value(record, 17, 8), in.r[7]);
				assert_memory_equal(record->args + 25, (uint8_t *)in.r[RSP], 8);
			}
			world_forget(&world);
		}
		assert_int_equal(world_lost(&world), 4);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_payload_of_any_size_is_recorded_byte_for_byte),
		cmocka_unit_test(it_is_found_in_any_two_registers),
		cmocka_unit_test(the_stack_pointer_may_be_its_address),
		cmocka_unit_test(one_that_is_too_large_is_a_loss),
		cmocka_unit_test(one_that_fits_no_sub_buffer_is_a_loss),
		cmocka_unit_test(a_record_may_end_with_its_sub_buffer_but_not_behind),
		cmocka_unit_test(the_program_sees_nothing_on_any_slow_path),
		cmocka_unit_test(a_pad_that_records_nothing_loses_nothing),
		cmocka_unit_test(others_at_the_same_place_are_recorded_as_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
