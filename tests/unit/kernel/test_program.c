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
	struct bpf_insn insns[KERNEL_PROGRAM_MAX];
	struct kernel_program program = with(args, KYMO_EVENT_MAX_ARGS);

	for (size_t i = 0; i < KYMO_EVENT_MAX_ARGS; i++)
		args[i] = (struct kymo_kernel_arg){ KYMO_KERNEL_MEMORY, KYMO_TYPE_X64, 152, (int64_t)(8 * i) };
	program.processes = 5;
	program.ids.ns_dev = 4;
	program.ids.ns_ino = 4026532000;
	program.ids.not_tgid = 1234;
	program.names = true;
	check_flow(insns, kernel_program_make(&program, insns));
}

static void a_program_without_arguments_is_sound(void **state)
{
	struct bpf_insn insns[KERNEL_PROGRAM_MAX];
	struct kernel_program program = with(NULL, 0);

	check_flow(insns, kernel_program_make(&program, insns));
}

static void arguments_out_of_range_are_refused(void **state)
{
	static const struct kymo_kernel_arg bad[] = {
		{ KYMO_KERNEL_REGISTER, KYMO_TYPE_X64, 3, 0 },
		{ KYMO_KERNEL_REGISTER, KYMO_N_TYPES, 8, 0 },
		{ (enum kymo_kernel_source)7, KYMO_TYPE_X64, 8, 0 },
		{ KYMO_KERNEL_MEMORY, KYMO_TYPE_X64, 8, INT64_C(1) << 40 },
	};
	struct kymo_kernel_arg many[KYMO_EVENT_MAX_ARGS + 1];
	struct bpf_insn insns[KERNEL_PROGRAM_MAX];
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
	assert_int_equal(kernel_sample_size(0, false), 32);
	assert_int_equal(kernel_sample_size(8, true), 32 + 64 + 16);
	assert_true(kernel_sample_size(KYMO_EVENT_MAX_ARGS, true) + 8 <= 512); /* the stack of a BPF program */
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
