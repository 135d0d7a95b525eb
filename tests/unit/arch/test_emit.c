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

#include "arch/leave_pad.h"
#include "arch/pad.h"
#include "base/cleanup.h"
#include "fetches.h"
#include "wire/event.h"

#define PAGE 4096u

static const struct kymo_fetch first_u64 = FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 1);
static const struct kymo_pad_event one_event = { .id = 1, .args = &first_u64, .n_args = 1 };

/* What takes most code; the first is the worst. */
static const struct kymo_fetch large[] = {
	OPERAND(KYMO_TYPE_U16, 1, 4, 10, 8),        FETCH(KYMO_FETCH_STACK, KYMO_TYPE_U16, 255),
	OPERAND(KYMO_TYPE_U64, 1, 11, 10, 1),       OPERAND(KYMO_TYPE_U16, 1, -1, 10, 8),
	FETCH(KYMO_FETCH_GLOBAL, KYMO_TYPE_U16, 1), FETCH(KYMO_FETCH_IMMEDIATE, KYMO_TYPE_U16, 1),
};

/* As large as pads get. */
static void worst(struct kymo_pad_event *events, struct kymo_fetch *args, const struct kymo_fetch *arg,
		  struct kymo_pad_env *env)
{
	for (unsigned int i = 0; i < KYMO_EVENT_MAX_ARGS; i++)
		args[i] = *arg;
	for (unsigned int i = 0; i < KYMO_PAD_MAX_EVENTS; i++)
		events[i] =
			(struct kymo_pad_event){ .id = KYMO_EVENT_ID_MAX, .args = args, .n_args = KYMO_EVENT_MAX_ARGS };
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
	.geometry = 0x7f0000110000,
	.live = 0x7f0000200000,
	.rings = 0x7e0000000000,
	.vforks = 0x7e0000800000,
	.n_rings = 8,
	.n_cpus = 4096,
};

/* To a buffer of exactly `size` bytes. */
static int emit(const struct kymo_pad_env *env, const struct kymo_pad_event *events, size_t n, size_t size,
		uint64_t pad)
{
	static const struct kymo_pad_chain alone;
	struct kymo_pad_layout layout;
	uint8_t *out = malloc(size ? size : 1);
	int ret;

	assert_non_null(out);
	ret = kymo_pad_emit(env, &nop, nop.vaddr, pad, events, n, &alone, out, size, &layout);
	free(out);
	return ret ? ret : (int)layout.size;
}

#define PAD UINT64_C(0x7f0000110000)

static void no_pad_is_larger_than_told(void **state)
{
	for (unsigned int sequences = 0; sequences < 2; sequences++) {
		struct kymo_pad_event events[KYMO_PAD_MAX_EVENTS];
		struct kymo_fetch args[KYMO_EVENT_MAX_ARGS];
		struct kymo_pad_env env = plain_env;

		env.rseq_rings = sequences ? 0x7e0000000000 : 0;
		for (size_t k = 0; k < kymo_countof(large); k++) {
			worst(events, args, &large[k], &env);
			for (unsigned int n = 1; n <= KYMO_PAD_MAX_EVENTS; n++) {
				int size = emit(&env, events, n, kymo_pad_size_max(events, n), PAD);

				assert_true(size > 0);
				/* whatever is displaced in place of the five bytes and the jump */
				assert_true((size_t)size + KYMO_RELOCATED_MAX - 10 <= kymo_pad_size_max(events, n));
			}
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
		worst(events, args, &large[0], &env);
		whole = emit(&env, events, 2, kymo_pad_size_max(events, 2), PAD);
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
		FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, 18),
		FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_U64, -1),
		FETCH(KYMO_FETCH_STACK, KYMO_TYPE_U64, 256),
		FETCH(KYMO_FETCH_STACK, KYMO_TYPE_U64, -1),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 0),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 262),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, INT64_MIN),
		FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, INT64_MAX),
		FETCH(KYMO_FETCH_IMMEDIATE, KYMO_N_TYPES, 0),
		FETCH((enum kymo_fetch_kind)99, KYMO_TYPE_U64, 0),
		FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_STRING, 0),
		FETCH(KYMO_FETCH_REGISTER, (enum kymo_type)17, 0),
		FETCH(KYMO_FETCH_REGISTER, (enum kymo_type)16, 0),
		FETCH(KYMO_FETCH_GLOBAL, KYMO_TYPE_STRING, 0),
		OPERAND(KYMO_TYPE_STRING, 0, 0, 1, 1),
		OPERAND(KYMO_TYPE_U8, 0, 0, 1, 0),
		OPERAND(KYMO_TYPE_U8, 0, 0, 1, 3),
		OPERAND(KYMO_TYPE_U8, 0, 0, 1, 16),
		OPERAND(KYMO_TYPE_U8, 0, 0, 4, 1),
		OPERAND(KYMO_TYPE_U8, 0, 0, 16, 1),
		OPERAND(KYMO_TYPE_U8, 0, 16, 0, 1),
		OPERAND(KYMO_TYPE_U8, 0, 17, -1, 1),
		OPERAND(KYMO_TYPE_U8, 0, -2, -1, 1),
		OPERAND(KYMO_TYPE_U8, 0, -1, -2, 1),
		OPERAND(KYMO_TYPE_U8, INT64_C(0x80000000), 0, -1, 1),
		OPERAND(KYMO_TYPE_U8, INT64_C(-0x80000001), 0, -1, 1),
		OPERAND(KYMO_TYPE_U8, INT64_MIN, 0, -1, 1),
		PAYLOAD(16, 0),
		PAYLOAD(-1, 0),
		PAYLOAD(0, 16),
		PAYLOAD(0, -1),
		PAYLOAD(INT64_C(1) << 32, 0),
		{ .kind = KYMO_FETCH_PAYLOAD, .type = KYMO_TYPE_U8, .value = 10, .index = 11 },
	};
	struct kymo_pad_event events[KYMO_PAD_MAX_EVENTS + 1];
	struct kymo_pad_env env = plain_env;

	for (size_t i = 0; i < kymo_countof(events); i++)
		events[i] = one_event;
	assert_true(emit(&env, events, 16, kymo_pad_size_max(events, 16), PAD) > 0);
	assert_int_equal(emit(&env, events, 17, kymo_pad_size_max(NULL, 17), PAD), -EINVAL);
	assert_true(emit(&env, events, 0, kymo_pad_size_max(NULL, 0), PAD) > 0); /* of an evicted instruction */
	for (size_t i = 0; i < kymo_countof(bad); i++) {
		struct kymo_pad_event event = { .id = 1, .args = &bad[i], .n_args = 1 };

		assert_int_equal(emit(&env, &event, 1, kymo_pad_size_max(NULL, 1), PAD), -EINVAL);
	}
	events[0].id = KYMO_EVENT_ID_MAX + 1;
	assert_int_equal(emit(&env, events, 1, kymo_pad_size_max(NULL, 1), PAD), -EINVAL);
	events[0].id = KYMO_EVENT_ID_MAX;
	assert_true(emit(&env, events, 1, kymo_pad_size_max(NULL, 1), PAD) > 0);
	events[0].n_args = KYMO_EVENT_MAX_ARGS + 1;
	assert_int_equal(emit(&env, events, 1, kymo_pad_size_max(NULL, 1), PAD), -EINVAL);
	env.rseq_rings = 0x7e0000000000;
	assert_int_equal(emit(&env, events + 1, 1, kymo_pad_size_max(NULL, 1), PAD + 16), -EINVAL);
}

static void arguments_at_the_ends_of_their_ranges_are_taken(void **state)
{
	static const struct kymo_fetch good[] = {
		FETCH(KYMO_FETCH_REGISTER, KYMO_TYPE_F64, 17),
		FETCH(KYMO_FETCH_GLOBAL, KYMO_TYPE_F64, INT64_MIN),
		OPERAND(KYMO_TYPE_F64, INT32_MIN, 15, 15, 8),
		OPERAND(KYMO_TYPE_U8, INT32_MAX, 0, 0, 1),
		OPERAND(KYMO_TYPE_U8, 0, 4, -1, 0),
		OPERAND(KYMO_TYPE_U8, 0, -1, -1, 0),
		PAYLOAD(0, 15),
		PAYLOAD(15, 0),
	};

	for (size_t i = 0; i < kymo_countof(good); i++) {
		struct kymo_pad_event event = { .id = 1, .args = &good[i], .n_args = 1 };

		assert_true(emit(&plain_env, &event, 1, kymo_pad_size_max(NULL, 1), PAD) > 0);
	}
}

static void a_payload_is_the_only_argument_of_its_event(void **state)
{
	static const struct kymo_fetch args[] = { PAYLOAD(10, 11), FETCH(KYMO_FETCH_IMMEDIATE, KYMO_TYPE_U8, 1),
						  PAYLOAD(10, 11) };
	static const struct kymo_pad_event good[] = { { .id = 1, .args = args, .n_args = 1 },
						      { .id = 2, .args = args + 1, .n_args = 1 },
						      { .id = 3, .args = args + 2, .n_args = 1 } };
	static const struct kymo_pad_event bad[] = { { .id = 1, .args = args, .n_args = 2 },
						     { .id = 2, .args = args + 1, .n_args = 2 },
						     { .id = 3, .args = args, .n_args = 3 } };

	assert_true(emit(&plain_env, good, 3, kymo_pad_size_max(NULL, 3), PAD) > 0);
	for (size_t i = 0; i < kymo_countof(bad); i++)
		assert_int_equal(emit(&plain_env, &bad[i], 1, kymo_pad_size_max(NULL, 1), PAD), -EINVAL);
	assert_false(kymo_pad_has_faults(args, 1));
	assert_int_equal(kymo_pad_body_size(args, 1), 0);
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
	assert_true(size > 0 && size <= 2 * PAGE);
	for (size_t at = 0; at < size; at += insn.length) {
		/* a signature of restartable sequences; the only bytes that are no code */
		if (size - at > 4 && !memcmp(bytes + at, "\x53\x30\x05\x53", 4)) {
			insn.length = 4;
			continue;
		}
		assert_true(ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, bytes + at, size - at, &insn, operands)));
		for (unsigned int i = 0; i < insn.operand_count; i++) {
			bool is_relative =
				operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[i].imm.is_relative;
			bool is_rip = operands[i].type == ZYDIS_OPERAND_TYPE_MEMORY &&
				      operands[i].mem.base == ZYDIS_REGISTER_RIP;
			ZyanU64 target;

			/* no 64-bit address is written out */
			assert_false(insn.mnemonic == ZYDIS_MNEMONIC_MOV &&
				     operands[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && insn.raw.imm[0].size == 64);
			if (!is_relative && !is_rip)
				continue;
			assert_true(ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&insn, &operands[i], 0x10000 + at, &target)));
			assert_true(target >= 0x10000 && target < 0x10000 + size);
		}
	}
}

static struct kymo_pad_layout layout_of(uint64_t rseq_rings, int32_t position)
{
	const struct kymo_pad_chain chain = { .next = 0x7e0000900000 };
	struct kymo_pad_env env = plain_env;
	struct kymo_pad_layout layout;
	uint8_t out[2 * PAGE];

	env.rseq_rings = rseq_rings;
	env.position = position;
	assert_int_equal(
		kymo_pad_emit(&env, &nop, nop.vaddr, 0x7f0000300000, &one_event, 1, &chain, out, sizeof(out), &layout),
		0);
	return layout;
}

static void an_anchor_is_made_right_before_the_hop(void **state)
{
	static const uint64_t rings[] = { 0, 0x7e0000000000 };

	(void)state;
	for (size_t i = 0; i < sizeof(rings) / sizeof(*rings); i++) {
		const struct kymo_pad_layout without = layout_of(rings[i], 0), with = layout_of(rings[i], 56);
		const uint32_t load = 10;

		assert_true(with.hop > without.hop);
		assert_true(with.hop - without.hop + load <= KYMO_PAD_ANCHOR_SPAN);
		assert_true(kymo_pad_will_look(&with, with.entry));
		assert_false(kymo_pad_will_look(&with, with.entry + 1));
		assert_true(kymo_pad_will_look(&with, with.hop - load));
		assert_false(kymo_pad_will_look(&with, with.hop));
		assert_false(kymo_pad_will_look(&with, with.displaced));
		assert_false(kymo_pad_will_look(&with, with.insn_at[0]));
		assert_false(kymo_pad_will_look(&with, with.insn_at[1]));
		assert_int_equal(kymo_pad_will_look(&with, with.size - 1), rings[i] != 0);
		assert_false(kymo_pad_will_look(&with, with.size));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_pad_is_larger_than_told),
		cmocka_unit_test(a_pad_that_does_not_fit_is_an_error),
		cmocka_unit_test(an_anchor_is_made_right_before_the_hop),
		cmocka_unit_test(arguments_out_of_range_are_errors),
		cmocka_unit_test(arguments_at_the_ends_of_their_ranges_are_taken),
		cmocka_unit_test(a_payload_is_the_only_argument_of_its_event),
		cmocka_unit_test(nothing_in_the_guest_image_refers_to_what_is_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
