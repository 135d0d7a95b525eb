/*
 * The generator of BPF programs: what it refuses, and that what it makes is sound. The kernel's verifier has its say in
 * test_probes.c.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernel/attach.h"
#include "kernel/form.h"
#include "kernel/program.h"
#include "wire/event.h"

static struct kernel_program with(const struct kymo_kernel_arg *args, size_t n)
{
	return (struct kernel_program){ .rings = 3, .state = 4, .processes = -1, .args = args, .n_args = n };
}

/* Every jump lands on an instruction, forward, and the program ends with an exit. */
static void check_flow(const struct bpf_insn *insns, int n)
{
	static bool begins[KERNEL_PROGRAM_MAX + 1];

	assert_true(n > 0 && n <= KERNEL_PROGRAM_MAX);
	memset(begins, 0, sizeof(begins));
	for (int i = 0; i < n; i++) {
		begins[i] = true;
		if (insns[i].code == (BPF_LD | BPF_DW | BPF_IMM))
			i++;
	}
	for (int i = 0; i < n; i++) {
		uint8_t class = BPF_CLASS(insns[i].code), op = BPF_OP(insns[i].code);

		if (!begins[i] || class != BPF_JMP || op == BPF_CALL || op == BPF_EXIT)
			continue;
		assert_true(insns[i].off >= 0);
		assert_true(i + 1 + insns[i].off < n && begins[i + 1 + insns[i].off]);
	}
	assert_int_equal(insns[n - 1].code, BPF_JMP | BPF_EXIT);
}

static void the_largest_program_fits_and_flows_forward(void **state)
{
	struct kymo_kernel_arg args[KYMO_EVENT_MAX_ARGS];
	static struct bpf_insn insns[KERNEL_PROGRAM_MAX];
	struct kernel_program program = with(args, KYMO_EVENT_MAX_ARGS);

	for (size_t i = 0; i < KYMO_EVENT_MAX_ARGS; i++)
		args[i] = (struct kymo_kernel_arg){
			.source = KYMO_KERNEL_MEMORY, .type = KYMO_TYPE_X64, .at = 152, .value = (int64_t)(8 * i)
		};
	program.processes = 5;
	program.ids.ns_dev = 4;
	program.ids.ns_ino = 4026532000;
	program.ids.not_tgid = 1234;
	program.names = true;
	check_flow(insns, kernel_program_make(&program, insns));
}

static void a_program_without_arguments_is_sound(void **state)
{
	static struct bpf_insn insns[KERNEL_PROGRAM_MAX];
	struct kernel_program program = with(NULL, 0);

	check_flow(insns, kernel_program_make(&program, insns));
}

static void arguments_out_of_range_are_refused(void **state)
{
	static const struct kymo_kernel_arg bad[] = {
		{ .source = KYMO_KERNEL_REGISTER, .type = KYMO_TYPE_X64, .at = 3, .value = 0 },
		{ .source = KYMO_KERNEL_REGISTER, .type = KYMO_N_TYPES, .at = 8, .value = 0 },
		{ .source = (enum kymo_kernel_source)7, .type = KYMO_TYPE_X64, .at = 8, .value = 0 },
		{ .source = KYMO_KERNEL_MEMORY, .type = KYMO_TYPE_X64, .at = 8, .value = INT64_C(1) << 40 },
	};
	struct kymo_kernel_arg many[KYMO_EVENT_MAX_ARGS + 1];
	static struct bpf_insn insns[KERNEL_PROGRAM_MAX];
	struct kernel_program program;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		program = with(&bad[i], 1);
		assert_int_equal(kernel_program_make(&program, insns), -EINVAL);
	}
	memset(many, 0, sizeof(many));
	program = with(many, KYMO_EVENT_MAX_ARGS + 1);
	assert_int_equal(kernel_program_make(&program, insns), -EINVAL);
}

static void a_sample_has_a_slot_for_each_value_and_the_name(void **state)
{
	assert_int_equal(kernel_sample_size(false), 32);
	assert_int_equal(kernel_sample_size(true), 32 + 16);
	assert_int_equal(kernel_slot_size(KYMO_TYPE_U8, 0), 8);
	assert_int_equal(kernel_slot_size(KYMO_TYPE_STRING, 6), 8);
	assert_int_equal(kernel_slot_size(KYMO_TYPE_STRING, 128), 136);
	/* the stack of a BPF program */
	assert_true(8 + kernel_sample_size(true) + 8 * KYMO_EVENT_MAX_ARGS + KYMO_KERNEL_STRINGS_MAX +
			    KERNEL_FORM_STACK <=
		    512);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_largest_program_fits_and_flows_forward),
		cmocka_unit_test(a_program_without_arguments_is_sound),
		cmocka_unit_test(arguments_out_of_range_are_refused),
		cmocka_unit_test(a_sample_has_a_slot_for_each_value_and_the_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
