/* Forms in pads: machine code gives what kymo_form_run() gives, for values and for filters, and changes no register. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "pad_checks.h"

#define N_FORMS 4000
#define PER_WORLD 40
#define STRICT 0x6000 /* of MXCSR: every exception is a signal, and numbers are rounded toward zero */

struct maker {
	struct kymo_form *form;
	uint64_t seed;
	unsigned int n_faults;
};

static uint64_t next(struct maker *m, uint64_t below)
{
	m->seed = mix(m->seed + 1);
	return m->seed % below;
}

static struct kymo_form_op *put(struct maker *m, enum kymo_form_code code)
{
	struct kymo_form_op *op = &m->form->ops[m->form->n++];

	*op = (struct kymo_form_op){ .code = (uint8_t)code, .size = 8, .is_signed = next(m, 2) };
	return op;
}

/* Numbers at which something changes. */
static int64_t some_value(struct maker *m)
{
	static const int64_t edges[] = { 0, 1, -1, 2, 31, 32, 63, 64, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 4096,
					 /* of floating-point numbers: 1.5, 2^63, infinite, the least; 1.5f and 2^64f */
					 0x3ff8000000000000, 0x43e0000000000000, 0x7ff0000000000000, 0x0010000000000000,
					 0x3fc00000, 0x5f800000 };

	return next(m, 3) ? edges[next(m, kymo_countof(edges))] : (int64_t)mix(m->seed);
}

static void make(struct maker *m, unsigned int depth);

static void make_leaf(struct maker *m)
{
	switch (next(m, 7)) {
	case 3:
		put(m, KYMO_FORM_VECTOR)->value = (int64_t)next(m, KYMO_FORM_VECTORS);
		break;
	case 0:
		put(m, KYMO_FORM_VALUE)->value = some_value(m);
		break;
	case 2:
		put(m, KYMO_FORM_CONTEXT)->value = next(m, 2) ? KYMO_FORM_PID : KYMO_FORM_TID; /* a CPU may change */
		break;
	case 1:
		if (m->n_faults < KYMO_FORM_FAULTS_MAX) {
			m->n_faults++;
			put(m, KYMO_FORM_STACK)->value = (int64_t)next(m, 8);
			break;
		}
		/* fallthrough */
	default:
		put(m, KYMO_FORM_REGISTER)->value = (int64_t)next(m, 16);
		break;
	}
}

static void make_choice(struct maker *m, unsigned int depth)
{
	uint32_t to_other, to_end;

	make(m, depth - 1);
	to_other = m->form->n;
	put(m, KYMO_FORM_JUMP_IF_ZERO);
	make(m, depth - 1);
	to_end = m->form->n;
	put(m, KYMO_FORM_JUMP);
	m->form->ops[to_other].value = m->form->n;
	make(m, depth - 1);
	m->form->ops[to_end].value = m->form->n;
}

static void make_pair(struct maker *m, unsigned int depth)
{
	const unsigned int code = KYMO_FORM_ADD + (unsigned int)next(m, KYMO_FORM_JUMP - KYMO_FORM_ADD);
	const bool may_fault = code == KYMO_FORM_DIVIDE || code == KYMO_FORM_REMAINDER;

	make(m, depth - 1);
	if (next(m, 8))
		make(m, depth - 1);
	else
		put(m, KYMO_FORM_PICK)->value = 0;
	if (!next(m, 8)) {
		put(m, KYMO_FORM_PICK)->value = (int64_t)next(m, 2);
		put(m, KYMO_FORM_XOR);
	}
	if (!next(m, 6))
		put(m, KYMO_FORM_SWAP);
	if (may_fault && m->n_faults == KYMO_FORM_FAULTS_MAX) {
		put(m, KYMO_FORM_XOR);
		return;
	}
	m->n_faults += may_fault;
	put(m, code == KYMO_FORM_WANT ? KYMO_FORM_DROP : (enum kymo_form_code)code)->size = next(m, 2) ? 4 : 8;
}

static void make(struct maker *m, unsigned int depth)
{
	if (!depth || m->form->n > KYMO_FORM_OPS_MAX / 2) {
		make_leaf(m);
	} else if (!next(m, 6)) {
		make_choice(m, depth);
	} else if (!next(m, 4)) {
		const unsigned int code = KYMO_FORM_EXTEND + (unsigned int)next(m, KYMO_FORM_ADD - KYMO_FORM_EXTEND);

		make(m, depth - 1);
		put(m, code)->size = kymo_form_is_of_floats(code) ? 4u << next(m, 2) : 1u << next(m, 3);
	} else {
		make_pair(m, depth);
	}
}

static void random_form(struct kymo_form *form, uint64_t seed)
{
	do {
		struct maker m = { .form = form, .seed = mix(seed += 1000003) };

		form->n = 0;
		make(&m, 1 + (unsigned int)next(&m, 4));
	} while (!kymo_form_check(form, KYMO_FETCH_REGISTERS, KYMO_FETCH_STACK_MAX));
}

/* Registers with such numbers in them, too. */
static void spice(struct registers *in, uint64_t seed)
{
	struct maker m = { .seed = seed };

	for (int i = 0; i < 16; i++)
		if (i != RSP && next(&m, 2))
			in->r[i] = (uint64_t)some_value(&m);
}

static void check_record(const struct record *record, const struct kymo_form *form, bool is_there, uint64_t expected)
{
	const size_t at = kymo_form_can_fault(form) || kymo_form_has_floats(form);

	assert_int_equal(record->size, at + 8);
	if (at)
		assert_int_equal(record->args[0], !is_there);
	assert_int_equal(value(record, at, 8), is_there ? expected : 0);
}

static void check_form(struct world *world, const struct kymo_form *form, uint8_t *stack, uint64_t seed)
{
	const struct kymo_fetch arg = { .kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = form };
	const struct kymo_pad_event events[] = { { .id = 1, .args = &arg, .n_args = 1 },
						 { .id = 2, .args = &arg, .n_args = 1, .filter = form } };
	const unsigned int usual = _mm_getcsr();
	uint64_t vectors[KYMO_FORM_VECTORS];
	struct registers in, out;
	unsigned int mxcsr;
	struct site site;

	world_landing(world, events, 2, &site);
	for (uint64_t i = 0; i < 4; i++) {
		struct kymo_form_input input = {
			.registers = in.r,
			.vectors = vectors,
			.n_stack = 8,
			.context = { [KYMO_FORM_PID] = WORLD_PID, [KYMO_FORM_TID] = (uint64_t)gettid() },
		};
		uint64_t expected = 0;
		bool is_there;

		randomise(&in, seed + i, stack);
		spice(&in, mix(seed + i));
		in.flags = flags_of(seed % 128);
		for (size_t k = 0; k < KYMO_FORM_VECTORS; k++)
			memcpy(&vectors[k], in.vectors + k * 64, sizeof(vectors[k]));
		input.stack = (const uint64_t *)in.r[RSP];
		is_there = kymo_form_run(form, &input, &expected);
		_mm_setcsr(STRICT);
		enter(&site, &in, &out);
		mxcsr = _mm_getcsr();
		_mm_setcsr(usual);
		assert_int_equal(mxcsr, STRICT);
		check_unchanged(&in, &out);
		world_read_all(world);
		assert_int_equal(world->records.n, 1 + (is_there && expected));
		for (size_t k = 0; k < world->records.n; k++)
			check_record(&world->records.items[k], form, is_there, expected);
		world_forget(world);
	}
}

static void any_form_has_the_value_that_it_has_by_the_reference(void **state)
{
	uint8_t *stack = stack_create();

	fill(stack, STACK_SIZE, 0);
	for_each_kind(kind)
	{
		for (unsigned int i = 0; i < N_FORMS / PER_WORLD; i++) {
			struct world world;

			world_init(&world, kind, roomy);
			for (unsigned int k = 0; k < PER_WORLD; k++) {
				struct kymo_form form;

				random_form(&form, i * PER_WORLD + k);
				check_form(&world, &form, stack, i * 7919u + k);
			}
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

static void what_a_function_returns_may_not_be_known(void **state)
{
	const struct kymo_form form = { .n = 1, .ops = { { .code = KYMO_FORM_RETVAL } } };
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		for (int is_unknown = 0; is_unknown < 2; is_unknown++) {
			const struct kymo_fetch arg = {
				.kind = KYMO_FETCH_FORM, .type = KYMO_TYPE_U64, .form = &form, .value = is_unknown
			};
			const struct kymo_pad_event events[] = {
				{ .id = 1, .args = &arg, .n_args = 1 },
				{ .id = 2,
				  .args = &arg,
				  .n_args = 1,
				  .filter = &form,
				  .retval_is_unknown = is_unknown },
			};
			struct registers in, out;
			struct world world;
			struct site site;

			world_init(&world, kind, roomy);
			world_landing(&world, events, 2, &site);
			randomise(&in, 1, stack);
			enter(&site, &in, &out);
			check_unchanged(&in, &out);
			world_read_all(&world);
			assert_int_equal(world.records.n, is_unknown ? 1 : 2);
			assert_int_equal(world.records.items[0].args[0], is_unknown);
			assert_int_equal(value(&world.records.items[0], 1, 8), is_unknown ? 0 : in.r[0]);
			world_deinit(&world);
		}
	}
	stack_destroy(stack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_form_has_the_value_that_it_has_by_the_reference),
		cmocka_unit_test(what_a_function_returns_may_not_be_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
