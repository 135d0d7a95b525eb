/*
 * Pads as bytes: how large they get, what is refused, and that the guest image stands alone. test_pad.c runs them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <Zydis/Zydis.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "wire/event.h"

#define PAGE 4096u

static const struct kymo_fetch first_u64 = { KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 1 };
static const struct kymo_pad_event one_event = { 1, &first_u64, 1 };

/* As large as pads get. */
static void worst(struct kymo_pad_event *events, struct kymo_fetch *args, struct kymo_pad_env *env)
{
	for (unsigned int i = 0; i < KYMO_EVENT_MAX_ARGS; i++)
		args[i] = (struct kymo_fetch){ KYMO_FETCH_STACK, KYMO_TYPE_U16, 255 };
	for (unsigned int i = 0; i < KYMO_PAD_MAX_EVENTS; i++)
		events[i] = (struct kymo_pad_event){ KYMO_EVENT_ID_MAX, args, KYMO_EVENT_MAX_ARGS };
	env->stack_low = 0x7ffff0000000;
	env->stack_high = 0x7ffff1000000;
}

static const struct kymo_plan nop = {
	.tactic = KYMO_TACTIC_JUMP,
	.vaddr = 0x7f0000000000,
	.window = 5,
	.n_insns = 1,
	.insn_offset = { 0, 5 },
	.original = { 0x0f, 0x1f, 0x44 },
};

static const struct kymo_pad_env plain_env = {
	.guest = 0x7f0000100000,
	.live = 0x7f0000200000,
	.rings = 0x7e0000000000,
	.vforks = 0x7e0000800000,
	.n_rings = 8,
	.n_cpus = 4096,
	.pid = UINT32_MAX,
};

/* To a buffer of exactly `size` bytes. */
static int emit(const struct kymo_pad_env *env, const struct kymo_pad_event *events, size_t n, size_t size,
		uint64_t pad)
{
	uint16_t insn_at[KYMO_WINDOW_MAX_INSNS + 1];
	uint8_t *out = malloc(size ? size : 1);
	int ret;

	assert_non_null(out);
	ret = kymo_pad_emit(env, &nop, nop.vaddr, pad, events, n, out, size, insn_at);
	free(out);
	return ret;
}

#define PAD UINT64_C(0x7f0000110000)

static void no_pad_is_larger_than_told(void **state)
{
	for (unsigned int sequences = 0; sequences < 2; sequences++) {
		struct kymo_pad_event events[KYMO_PAD_MAX_EVENTS];
		struct kymo_fetch args[KYMO_EVENT_MAX_ARGS];
		struct kymo_pad_env env = plain_env;

		env.rseq_rings = sequences ? 0x7e0000000000 : 0;
		worst(events, args, &env);
		for (unsigned int n = 1; n <= KYMO_PAD_MAX_EVENTS; n++) {
			int size = emit(&env, events, n, kymo_pad_size_max(n), PAD);

			assert_true(size > 0);
			/* whatever is displaced in place of the five bytes and the jump */
			assert_true((size_t)size + KYMO_RELOCATED_MAX - 10 <= kymo_pad_size_max(n));
		}
	}
}

static void a_pad_that_does_not_fit_is_an_error(void **state)
{
	for (unsigned int sequences = 0; sequences < 2; sequences++) {
		struct kymo_pad_event events[KYMO_PAD_MAX_EVENTS];
		struct kymo_fetch args[KYMO_EVENT_MAX_ARGS];
		struct kymo_pad_env env = plain_env;
		int whole;

		env.rseq_rings = sequences ? 0x7e0000000000 : 0;
		worst(events, args, &env);
		whole = emit(&env, events, 2, kymo_pad_size_max(2), PAD);
		for (int size = 0; size < whole; size++)
			assert_int_equal(emit(&env, events, 2, (size_t)size, PAD), -ENOSPC);
		assert_int_equal(emit(&env, events, 2, (size_t)whole, PAD), whole);
		env.guest = PAD + (UINT64_C(1) << 32);
		assert_int_equal(emit(&env, events, 2, (size_t)whole, PAD), -ERANGE);
	}
}

static void arguments_out_of_range_are_errors(void **state)
{
	static const struct kymo_fetch bad[] = {
		{ KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 18 },	    { KYMO_FETCH_REGISTER, KYMO_TYPE_U64, -1 },
		{ KYMO_FETCH_STACK, KYMO_TYPE_U64, 256 },	    { KYMO_FETCH_STACK, KYMO_TYPE_U64, -1 },
		{ KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 0 },	    { KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 262 },
		{ KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, INT64_MIN },  { KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, INT64_MAX },
		{ KYMO_FETCH_IMMEDIATE, KYMO_N_TYPES, 0 },	    { (enum kymo_fetch_kind)99, KYMO_TYPE_U64, 0 },
	};
	struct kymo_pad_event events[KYMO_PAD_MAX_EVENTS + 1];
	struct kymo_pad_env env = plain_env;

	for (size_t i = 0; i < kymo_countof(events); i++)
		events[i] = one_event;
	assert_true(emit(&env, events, 16, kymo_pad_size_max(16), PAD) > 0);
	assert_int_equal(emit(&env, events, 17, kymo_pad_size_max(17), PAD), -EINVAL);
	assert_int_equal(emit(&env, events, 0, kymo_pad_size_max(1), PAD), -EINVAL);
	for (size_t i = 0; i < kymo_countof(bad); i++) {
		struct kymo_pad_event event = { 1, &bad[i], 1 };

		assert_int_equal(emit(&env, &event, 1, kymo_pad_size_max(1), PAD), -EINVAL);
	}
	events[0].id = KYMO_EVENT_ID_MAX + 1;
	assert_int_equal(emit(&env, events, 1, kymo_pad_size_max(1), PAD), -EINVAL);
	events[0].id = KYMO_EVENT_ID_MAX;
	assert_true(emit(&env, events, 1, kymo_pad_size_max(1), PAD) > 0);
	events[0].n_args = KYMO_EVENT_MAX_ARGS + 1;
	assert_int_equal(emit(&env, events, 1, kymo_pad_size_max(1), PAD), -EINVAL);
	env.rseq_rings = 0x7e0000000000;
	assert_int_equal(emit(&env, events + 1, 1, kymo_pad_size_max(1), PAD + 16), -EINVAL);
}

/* Not by a relocation either: an address in it would be one of this process. */
static void nothing_in_the_guest_image_refers_to_what_is_outside(void **state)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction insn;
	ZydisDecoder decoder;
	size_t size;
	const uint8_t *bytes = kymo_pad_guest(&size);

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	assert_true(size > 0 && size <= PAGE);
	for (size_t at = 0; at < size; at += insn.length) {
		/* a signature of restartable sequences; the only bytes that are no code */
		if (size - at > 4 && !memcmp(bytes + at, "\x53\x30\x05\x53", 4)) {
			insn.length = 4;
			continue;
		}
		assert_true(ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes + at, size - at, &insn, operands)));
		for (unsigned int i = 0; i < insn.operand_count; i++) {
			bool is_relative = operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[i].imm.is_relative;
			bool is_rip = operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
				      operands[i].mem.base == ZYDIS_REGISTER_RIP;
			ZyanU64 target;

			/* no 64-bit address is written out */
			assert_false(insn.mnemonic == ZYDIS_MNEMONIC_MOV && operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
				     insn.raw.imm[0].size == 64);
			if (!is_relative && !is_rip)
				continue;
			assert_true(ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&insn, &operands[i], 0x10000 + at, &target)));
			assert_true(target >= 0x10000 && target < 0x10000 + size);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_pad_is_larger_than_told),
		cmocka_unit_test(a_pad_that_does_not_fit_is_an_error),
		cmocka_unit_test(arguments_out_of_range_are_errors),
		cmocka_unit_test(nothing_in_the_guest_image_refers_to_what_is_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
