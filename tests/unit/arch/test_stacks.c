/* Pads are put only where Go's small stacks have room for them, whatever calls the function; and how much room they
 * need. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/pad.h"
#include "arch/syscall_pad.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/guest.h"
#include "arch/x86_64/map.h"
#include "base/cleanup.h"

#define LEFT 800
#define ENOUGH (-1) /* room_at() */

extern const uint8_t stacks_text[], stacks_text_end[], stacks_go_end[];
extern const struct kymo_extent __start_stacks_functions[], __stop_stacks_functions[];

struct by_hand {
	struct kymo_span text;
	struct kymo_module_code code;
	struct kymo_entry_map *map;
};

static struct by_hand by_hand;

static void describe(struct by_hand *m)
{
	m->text = (struct kymo_span){ (uint64_t)stacks_text, stacks_text, (size_t)(stacks_text_end - stacks_text) };
	m->code = (struct kymo_module_code){
		.text = &m->text,
		.n_text = 1,
		.functions = __start_stacks_functions,
		.n_functions = (size_t)(__stop_stacks_functions - __start_stacks_functions),
		.small_stacks = { (uint64_t)stacks_text, (uint64_t)stacks_go_end },
		.small_stacks_left = LEFT,
		.position_independent = true,
	};
}

static int set_up(void **state)
{
	describe(&by_hand);
	return kymo_entry_map_create(&by_hand.code, &by_hand.map);
}

static int tear_down(void **state)
{
	kymo_entry_map_destroy(by_hand.map);
	return 0;
}

/* What a refusal says that is left at `vaddr`, or ENOUGH where the stack is no reason for one. */
static int room_in(const struct by_hand *m, uint64_t vaddr)
{
	struct kymo_refusal refusals[KYMO_N_TACTICS];
	struct kymo_plan plans[KYMO_PLANS_MAX];
	unsigned long long start;
	unsigned int left, takes;
	size_t n_plans, n;

	if (kymo_plan(&m->code, m->map, NULL, vaddr, plans, &n_plans, refusals, &n) == 0)
		return ENOUGH;
	assert_true(n > 0);
	if (refusals[0].tactic != KYMO_TACTIC_NONE)
		return ENOUGH;
	if (sscanf(refusals[0].reason,
		   "the function at 0x%llx and what calls it may leave %u bytes of a goroutine's stack, and a pad "
		   "takes %u",
		   &start, &left, &takes) != 3)
		fail_msg("%s", refusals[0].reason);
	assert_true(start <= vaddr && refusals[0].vaddr == vaddr);
	assert_int_equal(takes, KYMO_PAD_STACK_MAX);
	assert_true(left < takes);
	return (int)left;
}

#define room_at(label) \
	({ \
		extern const uint8_t label[]; \
		room_in(&by_hand, (uint64_t)label); \
	})

static void a_chain_has_what_its_frames_leave(void **state)
{
	assert_int_equal(room_at(first), ENOUGH);
	assert_int_equal(room_at(first_inside), ENOUGH);
	assert_int_equal(room_at(second), ENOUGH);
	assert_int_equal(room_at(second_inside), ENOUGH);
	assert_int_equal(room_at(third), LEFT - 424);
	assert_int_equal(room_at(third_inside), LEFT - 424 - 16);
}

static void a_function_that_has_looked_has_enough_and_another_what_its_caller_left(void **state)
{
	assert_int_equal(room_at(body), ENOUGH);
	assert_int_equal(room_at(body_inside), ENOUGH);
	assert_int_equal(room_at(late_look), LEFT - 424);
	assert_int_equal(room_at(late_inside), ENOUGH);
	assert_int_equal(room_at(late_fails), LEFT - 424);
	assert_int_equal(room_at(morestack_of_late), LEFT - 432);
}

static void all_ways_to_look_are_known(void **state)
{
	assert_int_equal(room_at(larger_frame_inside), ENOUGH);
	assert_int_equal(room_at(by_thread_inside), ENOUGH);
	assert_int_equal(room_at(by_offset_inside), ENOUGH);
	assert_int_equal(room_at(huge_inside), ENOUGH);
	assert_int_equal(room_at(huge_before_1_17_inside), ENOUGH);
}

static void what_only_resembles_a_look_is_none(void **state)
{
	assert_int_equal(room_at(another_word_inside), 0);
	assert_int_equal(room_at(another_register_inside), 0);
	assert_int_equal(room_at(overwritten_inside), 0);
	assert_int_equal(room_at(another_jump_inside), 0);
	assert_int_equal(room_at(two_places_inside), 0);
	assert_int_equal(room_at(after_a_push_inside), 0);
	assert_int_equal(room_at(no_morestack_inside), 0);
	assert_int_equal(room_at(entered_behind_inside), 0);
}

static void the_first_instruction_has_no_frame_yet_unless_something_comes_back_to_it(void **state)
{
	assert_int_equal(room_at(not_called), ENOUGH);
	assert_int_equal(room_at(not_called_inside), 0);
	assert_int_equal(room_at(begins_anew), 0);
}

static void all_that_lowers_the_stack_pointer_counts(void **state)
{
	assert_int_equal(room_at(fits_inside), ENOUGH);
	assert_int_equal(room_at(pushes_inside), LEFT - 8 - 376 - 5 * 8);
	assert_int_equal(room_at(adds_inside), LEFT - 8 - 376 - 40);
	assert_int_equal(room_at(by_lea_inside), LEFT - 8 - 376 - 40);
	assert_int_equal(room_at(aligns_inside), LEFT - 8 - 376 - 64);
	assert_int_equal(room_at(by_register_inside), 0);
	assert_int_equal(room_at(by_much_inside), 0);
}

static void recursion_leaves_nothing(void **state)
{
	assert_int_equal(room_at(recursive), 0);
	assert_int_equal(room_at(ping), 0);
	assert_int_equal(room_at(pong), 0);
}

static void jumps_and_falling_through_count_as_calls_do(void **state)
{
	assert_int_equal(room_at(jumped_to), ENOUGH);
	assert_int_equal(room_at(jumped_to_inside), ENOUGH);
	assert_int_equal(room_at(fallen_into_inside), LEFT - 8 - 408 - 8);
	assert_int_equal(room_at(not_fallen_into_inside), ENOUGH);
	assert_int_equal(room_at(has_a_middle_inside), LEFT - 8 - 400 - 8 - 8);
}

static void other_compilers_functions_have_large_stacks(void **state)
{
	assert_int_equal(room_at(of_c_inside), ENOUGH);
}

static void without_small_stacks_there_is_room_everywhere(void **state)
{
	extern const uint8_t third_inside[], recursive[];
	struct by_hand large;

	describe(&large);
	large.code.small_stacks = (struct kymo_extent){ 0, 0 };
	assert_int_equal(kymo_entry_map_create(&large.code, &large.map), 0);
	assert_int_equal(room_in(&large, (uint64_t)third_inside), ENOUGH);
	assert_int_equal(room_in(&large, (uint64_t)recursive), ENOUGH);
	kymo_entry_map_destroy(large.map);
}

static void stacks_that_are_not_small_are_an_error(void **state)
{
	struct by_hand wrong;

	describe(&wrong);
	wrong.code.small_stacks_left = 4097;
	assert_int_equal(kymo_entry_map_create(&wrong.code, &wrong.map), -EINVAL);
}

/* ---- what a pad takes ------------------------------------------------------------------------ */

#define STARTS_MAX 40
#define N_ENTRIES 11

/* The shared code as it was compiled, and where functions begin in it: the entries, and what is called. */
struct shared {
	struct kymo_guest_image guest;
	ZydisDecoder decoder;
	uint64_t starts[STARTS_MAX];
	size_t n_starts;
};

static void decode(const struct shared *shared, uint64_t at, struct x86_insn *ret)
{
	const struct kymo_guest_image *guest = &shared->guest;

	assert_true(at < guest->size);
	assert_int_equal(x86_decode_full(&shared->decoder, guest->bytes + at, guest->size - at, at, ret), 0);
}

static void add_start(struct shared *shared, uint64_t at)
{
	for (size_t i = 0; i < shared->n_starts; i++)
		if (shared->starts[i] == at)
			return;
	assert_true(shared->n_starts < STARTS_MAX);
	shared->starts[shared->n_starts++] = at;
}

static void open_shared(struct shared *ret)
{
	struct x86_insn insn;

	memset(ret, 0, sizeof(*ret));
	kymo_guest_image(&ret->guest);
	x86_decoder_init(&ret->decoder);
	add_start(ret, ret->guest.take);
	add_start(ret, ret->guest.switch_);
	add_start(ret, ret->guest.change);
	add_start(ret, ret->guest.vfork);
	add_start(ret, ret->guest.read);
	add_start(ret, ret->guest.string);
	add_start(ret, ret->guest.block);
	add_start(ret, ret->guest.list);
	add_start(ret, ret->guest.write);
	add_start(ret, ret->guest.ask);
	add_start(ret, ret->guest.strike);
	assert_int_equal(ret->n_starts, N_ENTRIES);
	for (uint64_t at = 0; at < ret->guest.size; at += insn.length) {
		decode(ret, at, &insn);
		assert_int_not_equal(insn.flow, X86_FLOW_CALL_INDIRECT);
		assert_int_not_equal(insn.flow, X86_FLOW_JUMP_INDIRECT);
		if (insn.flow == X86_FLOW_CALL)
			add_start(ret, insn.target);
	}
}

static uint64_t end_of(const struct shared *shared, uint64_t start)
{
	uint64_t end = shared->guest.size;

	for (size_t i = 0; i < shared->n_starts; i++)
		if (shared->starts[i] > start && shared->starts[i] < end)
			end = shared->starts[i];
	return end;
}

/* What one instruction that is no call takes of the stack. */
static unsigned int lowered_by(const struct x86_insn *insn)
{
	const ZydisDecodedOperand *from = &insn->op[1];

	if (insn->flow == X86_FLOW_RETURN || !x86_writes(insn, 4))
		return 0;
	switch (insn->z.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
		return 8;
	case ZYDIS_MNEMONIC_SUB:
		assert_int_equal(from->type, ZYDIS_OPERAND_TYPE_IMMEDIATE);
		return from->imm.value.s > 0 ? (unsigned int)from->imm.value.s : 0;
	case ZYDIS_MNEMONIC_ADD:
		assert_int_equal(from->type, ZYDIS_OPERAND_TYPE_IMMEDIATE);
		return from->imm.value.s < 0 ? (unsigned int)-from->imm.value.s : 0;
	case ZYDIS_MNEMONIC_AND:
		assert_true(from->imm.value.s <= -8);
		return (unsigned int)(-from->imm.value.s - 8); /* stack pointers are multiples of 8 */
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_LEAVE:
		return 0;
	default:
		/* Back to where another register knows. */
		assert_true(insn->z.mnemonic == ZYDIS_MNEMONIC_MOV || insn->z.mnemonic == ZYDIS_MNEMONIC_LEA);
		assert_int_not_equal(
			x86_gpr(from->type == ZYDIS_OPERAND_TYPE_REGISTER ? from->reg.value : from->mem.base), 4);
		return 0;
	}
}

/* How far below its stack pointer an instruction reaches: the red zone, or what a call takes. */
static unsigned int below(const struct shared *shared, const struct x86_insn *insn, int depth);

/* What the function at `start` and all that it calls take of the stack. */
static unsigned int taken_from(const struct shared *shared, uint64_t start, int depth)
{
	unsigned int taken = 0, most = 0;
	struct x86_insn insn;

	assert_true(depth < 4);
	for (uint64_t at = start; at < end_of(shared, start); at += insn.length) {
		unsigned int more;

		decode(shared, at, &insn);
		more = below(shared, &insn, depth);
		most = most < more ? more : most;
		if (insn.flow != X86_FLOW_CALL)
			taken += lowered_by(&insn);
	}
	return taken + most;
}

static unsigned int below(const struct shared *shared, const struct x86_insn *insn, int depth)
{
	unsigned int most = 0;

	if (insn->flow == X86_FLOW_CALL)
		return 8 + taken_from(shared, insn->target, depth + 1);
	for (int i = 0; i < insn->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &insn->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == ZYDIS_REGISTER_RSP &&
		    op->mem.disp.value < -(int64_t)most)
			most = (unsigned int)-op->mem.disp.value;
	}
	return most;
}

static unsigned int allowed(const struct kymo_guest_image *guest, uint64_t entry)
{
	if (entry == guest->strike)
		return KYMO_PAD_STRIKE_STACK_MAX;
	return KYMO_PAD_STACK_MAX + (entry >= guest->read && entry <= guest->write ? KYMO_PAD_READER_STACK : 0);
}

static void a_pad_takes_no_more_of_the_stack_than_it_says(void **state)
{
	struct shared shared;

	open_shared(&shared);
	for (size_t i = 0; i < N_ENTRIES; i++) {
		unsigned int taken = FRAME + 8 + taken_from(&shared, shared.starts[i], 0);

		print_message("entry %zu: %u bytes\n", i, taken);
		assert_true(taken <= allowed(&shared.guest, shared.starts[i]));
	}
	assert_true(FRAME - BELOW_RING <= KYMO_PAD_STACK_MAX);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_chain_has_what_its_frames_leave),
		cmocka_unit_test(a_function_that_has_looked_has_enough_and_another_what_its_caller_left),
		cmocka_unit_test(all_ways_to_look_are_known),
		cmocka_unit_test(what_only_resembles_a_look_is_none),
		cmocka_unit_test(the_first_instruction_has_no_frame_yet_unless_something_comes_back_to_it),
		cmocka_unit_test(all_that_lowers_the_stack_pointer_counts),
		cmocka_unit_test(recursion_leaves_nothing),
		cmocka_unit_test(jumps_and_falling_through_count_as_calls_do),
		cmocka_unit_test(other_compilers_functions_have_large_stacks),
		cmocka_unit_test(without_small_stacks_there_is_room_everywhere),
		cmocka_unit_test(stacks_that_are_not_small_are_an_error),
		cmocka_unit_test(a_pad_takes_no_more_of_the_stack_than_it_says),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
