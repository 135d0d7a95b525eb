/* Pads that follow frame pointers: in threads, beside other values, without room, and while the stack changes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>

#include "breakpoints.h"
#include "chains.h"

/* ---- threads --------------------------------------------------------------------------------- */

static __thread uint64_t stack_begin;

/* A thread's stack, from a frame of its own up to its control block; and a stack of the test's. */
struct threaded {
	struct world *world;
	const struct site *site;
	const uint8_t *elsewhere;
	struct expected expected[3];
	bool is_changed;
};

static void enter_one(struct threaded *threaded, size_t i, uint64_t sp, uint64_t bp, uint64_t end)
{
	struct registers in, out;

	randomise(&in, i, (const uint8_t *)(uintptr_t)sp);
	in.r[7] = i;
	in.r[RSP] = sp;
	in.r[RBP] = bp;
	expect(&threaded->expected[i], threaded->site->address, sp, bp, end, LIMIT);
	enter(threaded->site, &in, &out);
	threaded->is_changed |= memcmp(in.r, out.r, sizeof(in.r)) != 0;
}

static void *enter_in_thread(void *data)
{
	struct threaded *threaded = data;
	const uint64_t block = (uint64_t)__builtin_thread_pointer();
	const uint64_t other = (uint64_t)threaded->elsewhere + STACK_SIZE;
	uint8_t room[4 * PAGE];
	const uint64_t low = ((uint64_t)room + 7) / 8 * 8, sp = low + PAGE;

	fill(room, sizeof(room), 4);
	stack_begin = low;
	put_chain(sp + 64, 5, 600);
	put_word(sp + 64 + 4 * 600, block - 8); /* the last word before the control block is not enough */
	enter_one(threaded, 0, sp, sp + 64, block);
	put_word(sp + 64 + 4 * 600, block - 16);
	enter_one(threaded, 1, sp, sp + 64, block);
	enter_one(threaded, 2, other - 2 * PAGE - 512, other - 2 * PAGE - 64, other - 2 * PAGE);
	return NULL;
}

static void check_threaded(void *data, const struct record *record, const uint8_t *bytes)
{
	const struct threaded *threaded = data;
	struct last last;
	uint64_t i;

	memset(&last, 0, sizeof(last));
	keep(&last, record, bytes);
	memcpy(&i, last.bytes + 1, sizeof(i));
	assert_true(i < kymo_countof(threaded->expected));
	check_stored(&last, 9, &threaded->expected[i]);
}

static void threads_have_their_stacks_up_to_their_control_blocks(void **state)
{
	uint8_t *elsewhere = stack_create();

	put_chain((uint64_t)elsewhere + STACK_SIZE - 2 * PAGE - 64, 5, 24);
	for_each_kind(kind)
	{
		const uint64_t words[2] = { (uint64_t)&stack_begin - (uint64_t)__builtin_thread_pointer(), 600 };
		struct threaded threaded = { .elsewhere = elsewhere };
		struct world world;
		struct site site;
		pthread_t thread;

		begin(&world, NULL, kind, NULL, &one_chain, &site);
		world.on_record = check_threaded;
		world.data = &threaded;
		threaded.world = &world;
		threaded.site = &site;
		memcpy(world.live + KYMO_PAD_LIVE_THREAD_STACK, words, sizeof(words));
		assert_int_equal(pthread_create(&thread, NULL, enter_in_thread, &threaded), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_false(threaded.is_changed);
		assert_int_equal(threaded.expected[0].n, 5);
		assert_int_equal(threaded.expected[2].n, 3);
		assert_true(threaded.expected[1].n >= 6);
		world_read_all(&world);
		assert_int_equal(world.records.n, 3);
		world_deinit(&world);
	}
	stack_destroy(elsewhere);
}

/* ---- beside other values --------------------------------------------------------------------- */

static const struct kymo_form text_form = { .n = 1, .ops = { { .code = KYMO_FORM_REGISTER, .value = 6 } } };

/* What is composed comes first, and the chain behind it. */
static void chains_come_after_texts(void **state)
{
	static const struct kymo_fetch args[] = {
		FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 7),
		{ .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_STRING, .form = &text_form, .limit = 32 },
		FETCH(KYMO_FETCH_STACK_POINTER, KYMO_TYPE_X64, 0),
		{ .kind = KYMO_FETCH_CHAIN, .type = KYMO_TYPE_BYTES, .limit = LIMIT },
	};
	static const struct kymo_pad_event event = { .id = 1, .args = args, .n_args = 4 };
	static const char *const texts[] = { "", "text", "a text of thirty-two characters." };
	static struct last last;
	uint8_t *stack = stack_create();
	const uint64_t end = (uint64_t)stack + STACK_SIZE, sp = end - 2 * PAGE;

	fill(stack, STACK_SIZE, 5);
	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		begin(&world, &last, kind, stack, &event, &site);
		for (size_t n = 0; n < LIMIT + 2; n++) {
			const char *text = texts[n % kymo_countof(texts)];
			struct expected expected;
			struct registers in;

			randomise(&in, n, stack);
			in.r[RSP] = sp;
			in.r[RBP] = n ? sp + 1024 : 0;
			in.r[6] = sp + 512;
			put_chain(sp + 1024, n, 64);
			memcpy((void *)(uintptr_t)(sp + 512), text, strlen(text) + 1);
			enter_near(&site, &in, end);
			world_read_all(&world);
			world_forget(&world);
			assert_int_equal(last.bytes[0], 0);
			assert_memory_equal(last.bytes + 9, text, strlen(text) + 1);
			assert_memory_equal(last.bytes + 9 + strlen(text) + 1, &sp, sizeof(sp));
			expect(&expected, site.address, sp, in.r[RBP], end, LIMIT);
			check_stored(&last, 9 + strlen(text) + 1 + 8, &expected);
		}
		assert_int_equal(world_lost(&world), 0);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void pass_one(const struct site *site, uint8_t *stack, uint64_t seed, uint64_t size)
{
	struct registers in;

	randomise(&in, seed, stack);
	in.flags = flags_of(seed % 128);
	in.r[RBP] = in.r[RSP] + 600;
	fill((uint8_t *)in.r[RSP] - RED_ZONE, AROUND, seed);
	put_chain(in.r[RBP], 1 + seed % KYMO_WIRE_CHAIN_MAX, 24);
	enter_unseen(site, &in);
}

/* With seven more arguments, and no room: each record is whole, or a loss that is counted. */
static void slow_paths_change_nothing_and_tear_nothing(void **state)
{
	static const struct kymo_fetch args[] = {
		OPERAND(KYMO_TYPE_U64, 8, 4, -1, 1),
		OPERAND(KYMO_TYPE_U64, 16, 4, -1, 1),
		OPERAND(KYMO_TYPE_U64, 24, 4, -1, 1),
		OPERAND(KYMO_TYPE_U64, 32, 4, 0, 8),
		OPERAND(KYMO_TYPE_U64, 40, 4, 2, 8),
		OPERAND(KYMO_TYPE_U64, 48, 4, 10, 8),
		OPERAND(KYMO_TYPE_U64, 56, 4, 11, 8),
		{ .kind = KYMO_FETCH_CHAIN, .type = KYMO_TYPE_BYTES, .limit = KYMO_WIRE_CHAIN_MAX },
	};
	static const struct kymo_pad_event event = { .id = KYMO_PACKED_WIDE + 1, .args = args, .n_args = 8 };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct world world;
		struct site site;

		world_init(&world, kind, tiny);
		world.env.stack_low = (uint64_t)stack;
		world.env.stack_high = (uint64_t)stack + STACK_SIZE;
		world.varying[event.id] = &event;
		world_landing(&world, &event, 1, &site);
		pass_slow_paths(&world, &site, stack, 64, pass_one);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* ---- while the stack changes ----------------------------------------------------------------- */

#define FRAME_SIZE 24
#define N_SHORT 3u

/* A stack whose chain the handler makes longer, shorter, or leads away. */
struct changing {
	uint8_t *stack;
	uint64_t sp;
	unsigned int hits;
};

static void enter_changing(struct breakpoints *breakpoints, uint64_t at)
{
	struct changing *changing = breakpoints->data;
	struct registers in;

	randomise(&in, at, changing->stack);
	in.r[RSP] = changing->sp;
	in.r[RBP] = changing->sp + AROUND;
	put_chain(in.r[RBP], changing->hits % 2 ? N_SHORT : 2 * LIMIT, FRAME_SIZE);
	enter_near(breakpoints->site, &in, (uint64_t)changing->stack + STACK_SIZE);
}

static bool change(const struct breakpoints *breakpoints)
{
	static const uint64_t away[] = { UINT64_MAX - 15, 8, UINT64_C(0xdeadbeefdead0000) };
	struct changing *changing = breakpoints->data;
	uint32_t (*f)(uint64_t) = (uint32_t(*)(uint64_t))breakpoints->in_handler->address;

	put_chain(changing->sp + AROUND, changing->hits % 2 ? 2 * LIMIT : N_SHORT, FRAME_SIZE);
	put_word(changing->sp + AROUND + 2 * FRAME_SIZE, away[changing->hits % kymo_countof(away)]);
	changing->hits++;
	return f(4) == 15;
}

/* Whole, with addresses that were there. */
static void keep_changing(void *data, const struct record *record, const uint8_t *bytes)
{
	struct kymo_wire_chain head;
	uint64_t address;
	uint16_t size;

	if (record->id != 1)
		return;
	memcpy(&size, bytes + 9, sizeof(size));
	assert_int_equal(record->size, 11 + size);
	assert_in_range(size, sizeof(head), sizeof(head) + 8 * LIMIT);
	assert_int_equal((size - sizeof(head)) % 8, 0);
	for (size_t i = 0; i < (size - sizeof(head)) / 8; i++) {
		memcpy(&address, bytes + 11 + sizeof(head) + 8 * i, sizeof(address));
		assert_int_equal(address, RETURN + i);
	}
}

static void check_changing(struct breakpoints *breakpoints, uint64_t at, unsigned int hits)
{
	assert_int_equal(breakpoints->world->records.n, 1 + hits);
}

static void a_handler_that_changes_the_chain_tears_nothing(void **state)
{
	static const struct kymo_pad_event handlers_event = { .id = 2, .args = &first_u64, .n_args = 1 };
	static const struct breakpoint_ops ops = { .enter = enter_changing, .handle = change, .check = check_changing };
	struct changing changing = { .stack = stack_create() };

	changing.sp = (uint64_t)changing.stack + STACK_SIZE / 2;
	fill(changing.stack, STACK_SIZE, 6);
	for_each_kind(kind)
	{
		for (changing.hits = 0; changing.hits < 6;) {
			struct world world;
			struct site site, in_handler;

			begin(&world, NULL, kind, changing.stack, &one_chain, &site);
			world.on_record = keep_changing;
			world_function(&world, &handlers_event, 1, &in_handler);
			break_everywhere(&world, &site, &in_handler, &ops, &changing);
			world_deinit(&world);
		}
	}
	stack_destroy(changing.stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_have_their_stacks_up_to_their_control_blocks),
		cmocka_unit_test(chains_come_after_texts),
		cmocka_unit_test(slow_paths_change_nothing_and_tear_nothing),
		cmocka_unit_test(a_handler_that_changes_the_chain_tears_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
