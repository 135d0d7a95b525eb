/* Forms: what is accepted, and what they give. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "base/cleanup.h"
#include "wire/form.h"

#define OP(code_, ...) \
	{ \
		.code = KYMO_FORM_##code_, __VA_ARGS__ \
	}

static struct kymo_form form_of(const struct kymo_form_op *ops, uint32_t n)
{
	struct kymo_form form = { .n = n };

	for (uint32_t i = 0; i < n; i++)
		form.ops[i] = ops[i];
	return form;
}

#define form(...) \
	form_of((const struct kymo_form_op[]){ __VA_ARGS__ }, \
		sizeof((const struct kymo_form_op[]){ __VA_ARGS__ }) / sizeof(struct kymo_form_op))

static void check_refused(struct kymo_form form)
{
	assert_false(kymo_form_check(&form, 16, 255));
}

static void check_value(struct kymo_form form, uint64_t expected)
{
	const uint64_t registers[16] = { [3] = 30, [7] = 70 }, stack[] = { 100, 101 };
	const struct kymo_form_input input = { .registers = registers, .stack = stack, .n_stack = 2 };
	uint64_t value;

	assert_true(kymo_form_check(&form, 16, 255));
	assert_true(kymo_form_run(&form, &input, &value));
	assert_int_equal(value, expected);
}

/* Memory of 8 bytes at 0x1000. */
static bool load(void *data, uint64_t address, unsigned int size, uint64_t *ret)
{
	const uint64_t memory = 0x8877665544332211;

	assert_null(data);
	if (address < 0x1000 || address + size > 0x1008)
		return false;
	*ret = memory >> 8 * (address - 0x1000);
	if (size < 8)
		*ret &= (1ull << 8 * size) - 1;
	return true;
}

static void check_loaded(struct kymo_form form, bool is_there, uint64_t expected)
{
	const struct kymo_form_input input = { .bias = 0x1000, .load = load };
	uint64_t value = 0;

	assert_true(kymo_form_check(&form, 16, 255));
	assert_int_equal(kymo_form_run(&form, &input, &value), is_there);
	assert_int_equal(value, expected);
}

static void check_fault(struct kymo_form form)
{
	const struct kymo_form_input input = { .n_stack = 0 };
	uint64_t value;

	assert_true(kymo_form_check(&form, 16, 255));
	assert_true(kymo_form_can_fault(&form));
	assert_false(kymo_form_run(&form, &input, &value));
}

static void memory_is_read_at_addresses_that_are_computed(void **state)
{
	check_loaded(form(OP(ADDRESS, .value = 1), OP(LOAD, .size = 1)), true, 0x22);
	check_loaded(form(OP(ADDRESS, .value = 6), OP(LOAD, .size = 2)), true, 0x8877);
	check_loaded(form(OP(VALUE, .value = 0x1000), OP(LOAD, .size = 8)), true, 0x8877665544332211);
	check_loaded(form(OP(ADDRESS, .value = 4), OP(LOAD, .size = 4), OP(EXTEND, .size = 4, .is_signed = true)), true,
		     0xffffffff88776655);
	check_loaded(form(OP(ADDRESS, .value = 5), OP(LOAD, .size = 4)), false, 0);
	check_refused(form(OP(LOAD, .size = 8)));
	check_refused(form(OP(VALUE), OP(LOAD, .size = 3)));
	check_fault(form(OP(VALUE), OP(LOAD, .size = 8)));
}

static void the_thread_pointer_is_there_where_the_thread_has_one(void **state)
{
	const struct kymo_form address = form(OP(THREAD), OP(VALUE, .value = -8), OP(ADD));
	const struct kymo_form_input input = { .thread = 0x1008, .load = load };
	struct kymo_form variable = address;
	uint64_t value;

	check_fault(address);
	assert_true(kymo_form_run(&address, &input, &value));
	assert_int_equal(value, 0x1000);
	variable.ops[variable.n++] = (struct kymo_form_op)OP(LOAD, .size = 2);
	assert_true(kymo_form_run(&variable, &input, &value));
	assert_int_equal(value, 0x2211);
}

static void a_form_leaves_one_value_and_never_takes_what_is_not_there(void **state)
{
	struct kymo_form many = { .n = KYMO_FORM_OPS_MAX + 1 }, deep = { .n = 0 };

	check_refused((struct kymo_form){ .n = 0 });
	check_refused(many);
	check_refused(form(OP(VALUE), OP(VALUE)));
	check_refused(form(OP(NEGATE)));
	check_refused(form(OP(VALUE), OP(ADD)));
	check_refused(form({ .code = KYMO_FORM_N_CODES }));
	for (deep.n = 0; deep.n <= KYMO_FORM_DEPTH_MAX; deep.n++)
		deep.ops[deep.n] = (struct kymo_form_op)OP(VALUE);
	while (deep.n < 2 * KYMO_FORM_DEPTH_MAX + 1)
		deep.ops[deep.n++] = (struct kymo_form_op)OP(ADD);
	check_refused(deep);
}

static void operands_are_within_the_machine(void **state)
{
	check_refused(form(OP(REGISTER, .value = 16)));
	check_refused(form(OP(REGISTER, .value = -1)));
	check_refused(form(OP(STACK, .value = 256)));
	check_refused(form(OP(VALUE), OP(EXTEND, .size = 8)));
	check_refused(form(OP(VALUE), OP(VALUE), OP(SHIFT_LEFT, .size = 2)));
}

static void jumps_lead_forward_to_the_same_depth(void **state)
{
	check_refused(form(OP(VALUE), OP(JUMP, .value = 1)));
	check_refused(form(OP(VALUE), OP(JUMP, .value = 0)));
	check_refused(form(OP(VALUE), OP(JUMP, .value = 4)));
	check_refused(form(OP(VALUE), OP(JUMP_IF_ZERO, .value = 3), OP(VALUE)));
	check_refused(form(OP(VALUE), OP(JUMP, .value = 3), OP(VALUE)));
	check_value(form(OP(VALUE), OP(JUMP_IF_ZERO, .value = 4), OP(VALUE, .value = 1), OP(JUMP, .value = 5),
			 OP(VALUE, .value = 2)),
		    2);
}

static void bytes_are_wanted_at_the_end(void **state)
{
	const struct kymo_form wants = form(OP(VALUE, .value = 0x1000), OP(VALUE, .value = -3), OP(WANT));
	uint64_t wanted = 0, value = 0;
	const struct kymo_form_input input = { .wanted = &wanted };

	check_value(wants, 0x1000);
	assert_true(kymo_form_run(&wants, &input, &value));
	assert_int_equal(value, 0x1000);
	assert_int_equal(wanted, (uint64_t)-3);
	assert_false(kymo_form_can_fault(&wants));
	check_refused(form(OP(VALUE), OP(WANT)));
	check_refused(form(OP(VALUE), OP(VALUE), OP(WANT), OP(NEGATE)));
	check_refused(form(OP(VALUE), OP(VALUE), OP(WANT), OP(VALUE), OP(WANT)));
	/* a way past it */
	check_refused(form(OP(VALUE), OP(VALUE), OP(JUMP_IF_ZERO, .value = 5), OP(VALUE), OP(WANT)));
	check_value(form(OP(VALUE, .value = 7), OP(VALUE), OP(JUMP_IF_ZERO, .value = 5), OP(VALUE, .value = 1),
			 OP(JUMP, .value = 6), OP(VALUE, .value = 2), OP(WANT)),
		    7);
}

static void memory_is_written_at_the_end(void **state)
{
	const struct kymo_form store = form(OP(VALUE, .value = 0x1000), OP(VALUE, .value = 3), OP(STORE, .size = 4));

	assert_true(kymo_form_check(&store, 16, 255));
	assert_true(kymo_form_can_fault(&store));
	check_fault(store); /* what runs a form elsewhere writes nothing */
	check_refused(form(OP(VALUE), OP(VALUE), OP(STORE, .size = 3)));
	check_refused(form(OP(VALUE), OP(VALUE), OP(STORE, .size = 4), OP(NEGATE)));
	check_refused(form(OP(VALUE), OP(VALUE), OP(STORE, .size = 4), OP(VALUE), OP(STORE, .size = 4)));
	check_refused(form(OP(VALUE), OP(VALUE), OP(JUMP_IF_ZERO, .value = 5), OP(VALUE), OP(STORE, .size = 4)));
}

static void values_come_from_registers_and_the_stack(void **state)
{
	check_value(form(OP(REGISTER, .value = 3)), 30);
	check_value(form(OP(STACK, .value = 1)), 101);
	check_value(form(OP(REGISTER, .value = 7), OP(REGISTER, .value = 3), OP(SUBTRACT)), 40);
}

static void what_is_not_to_be_had_is_a_fault(void **state)
{
	check_fault(form(OP(STACK, .value = 0)));
	check_fault(form(OP(RETVAL)));
	check_fault(form(OP(VALUE, .value = 1), OP(VALUE), OP(DIVIDE)));
	check_fault(form(OP(VALUE, .value = 1), OP(VALUE), OP(REMAINDER, .is_signed = true)));
}

static void the_least_number_may_be_divided(void **state)
{
	check_value(form(OP(VALUE, .value = INT64_MIN), OP(VALUE, .value = -1), OP(DIVIDE, .is_signed = true)),
		    (uint64_t)INT64_MIN);
	check_value(form(OP(VALUE, .value = INT64_MIN), OP(VALUE, .value = -1), OP(REMAINDER, .is_signed = true)), 0);
	check_value(form(OP(VALUE, .value = -1), OP(VALUE, .value = 3), OP(SHIFT_RIGHT, .size = 8)), UINT64_MAX >> 3);
	check_value(form(OP(VALUE, .value = 1), OP(VALUE, .value = 33), OP(SHIFT_LEFT, .size = 4)), 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_thread_pointer_is_there_where_the_thread_has_one),
		cmocka_unit_test(a_form_leaves_one_value_and_never_takes_what_is_not_there),
		cmocka_unit_test(operands_are_within_the_machine),
		cmocka_unit_test(jumps_lead_forward_to_the_same_depth),
		cmocka_unit_test(bytes_are_wanted_at_the_end),
		cmocka_unit_test(memory_is_written_at_the_end),
		cmocka_unit_test(values_come_from_registers_and_the_stack),
		cmocka_unit_test(what_is_not_to_be_had_is_a_fault),
		cmocka_unit_test(memory_is_read_at_addresses_that_are_computed),
		cmocka_unit_test(the_least_number_may_be_divided),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
