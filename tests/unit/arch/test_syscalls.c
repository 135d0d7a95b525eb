/* Where a module's system calls are, and what of them is left alone. test_recorded.py runs their pads. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "alone.h"
#include "arch/code.h"
#include "arch/exits.h"
#include "arch/plan.h"
#include "arch/pad.h"
#include "arch/syscall_pad.h"
#include "base/cleanup.h"
#include "probe/threads/strikes.h"
#include "wire/event.h"

#define AT 0x7f0000000000u

/* The places in these bytes, of which the first `n_own` are one function. */
static size_t places_in(const char *bytes, size_t size, size_t n_own, struct kymo_syscall_site **ret)
{
	struct alone alone;
	struct kymo_entry_map *map;
	size_t n;

	alone_init(&alone, AT, bytes, size, (struct kymo_extent){ AT, AT + n_own }, AT);
	assert_int_equal(kymo_entry_map_create(&alone.code, &map), 0);
	assert_int_equal(kymo_syscall_sites_create(&alone.code, map, ret, &n), 0);
	kymo_entry_map_destroy(map);
	return n;
}

#define PLACES(bytes) places_in(bytes, sizeof(bytes) - 1, sizeof(bytes) - 1, &places)
#define PLACES_IN(bytes, n_own) places_in(bytes, sizeof(bytes) - 1, n_own, &places)

static void each_instruction_is_found(void **state)
{
	kymo_cleanup_free struct kymo_syscall_site *places = NULL;

	/* mov $1,%eax; syscall; mov $39,%eax; syscall; ret */
	assert_int_equal(PLACES("\xb8\x01\0\0\0\x0f\x05\xb8\x27\0\0\0\x0f\x05\xc3"), 2);
	assert_int_equal(places[0].vaddr, AT + 5);
	assert_int_equal(places[1].vaddr, AT + 12);
	assert_null(places[0].reason);
}

static void the_bytes_inside_of_another_instruction_are_none(void **state)
{
	kymo_cleanup_free struct kymo_syscall_site *places = NULL;

	/* mov $0x50f,%eax; ret */
	assert_int_equal(PLACES("\xb8\x0f\x05\0\0\xc3"), 0);
}

static void the_bytes_of_data_between_functions_are_none(void **state)
{
	kymo_cleanup_free struct kymo_syscall_site *places = NULL;

	/* lea table(%rip),%rax; ret; table: a byte that is no instruction, and what looks like a call */
	assert_int_equal(PLACES_IN("\x48\x8d\x05\x01\0\0\0\xc3\x06\x0f\x05\xc3", 8), 0);
}

static void code_without_a_function_that_is_called_is_looked_at(void **state)
{
	kymo_cleanup_free struct kymo_syscall_site *places = NULL;

	/* call 1f; ret; 1: test %eax,%eax; jz 2f; ret; 2: mov $39,%al; syscall; ret */
	assert_int_equal(PLACES_IN("\xe8\x01\0\0\0\xc3\x85\xc0\x74\x01\xc3\xb0\x27\x0f\x05\xc3", 6), 1);
	assert_int_equal(places[0].vaddr, AT + 13);
}

static void a_function_that_ends_its_thread_and_calls_nobody_is_left_alone(void **state)
{
	kymo_cleanup_free struct kymo_syscall_site *places = NULL;

	/* musl's __unmapself: mov $11,%eax; syscall; xor %edi,%edi; mov $60,%eax; syscall */
	assert_int_equal(PLACES("\xb8\x0b\0\0\0\x0f\x05\x31\xff\xb8\x3c\0\0\0\x0f\x05"), 2);
	assert_non_null(places[0].reason);
	assert_non_null(places[1].reason);
}

static void a_function_that_calls_others_has_its_stack(void **state)
{
	kymo_cleanup_free struct kymo_syscall_site *places = NULL;

	/* 1: call 1b; mov $60,%eax; syscall */
	assert_int_equal(PLACES("\xe8\xfb\xff\xff\xff\xb8\x3c\0\0\0\x0f\x05"), 1);
	assert_null(places[0].reason);
}

/* What is found of the other instructions that call the kernel: where, or 0. */
static uint64_t other_in(const char *bytes, size_t size, size_t n_own)
{
	struct alone alone;
	struct kymo_entry_map *map;
	uint64_t found = 0;
	int result;

	alone_init(&alone, AT, bytes, size, (struct kymo_extent){ AT, AT + n_own }, AT);
	assert_int_equal(kymo_entry_map_create(&alone.code, &map), 0);
	result = kymo_find_other_call(&alone.code, map, &found);
	assert_int_equal(result, found != 0);
	kymo_entry_map_destroy(map);
	return found;
}

#define OTHER_IN(bytes, n_own) other_in(bytes, sizeof(bytes) - 1, n_own)

static void calls_of_32_bit_programs_are_found(void **state)
{
	/* mov $91,%eax; int $0x80; ret */
	assert_int_equal(OTHER_IN("\xb8\x5b\0\0\0\xcd\x80\xc3", 8), AT + 5);
	/* mov $91,%eax; sysenter; ret */
	assert_int_equal(OTHER_IN("\xb8\x5b\0\0\0\x0f\x34\xc3", 8), AT + 5);
	/* mov $0x80cd,%eax; ret: within an instruction */
	assert_int_equal(OTHER_IN("\xb8\xcd\x80\0\0\xc3", 6), 0);
	/* no instruction; int $0x80; ret: the function is not understood */
	assert_int_equal(OTHER_IN("\x06\xcd\x80\xc3", 4), AT + 1);
}

static void calls_of_32_bit_programs_outside_of_functions_are_found_where_code_leads_to_them(void **state)
{
	/* call 1f; ret; 1: int $0x80; ret */
	assert_int_equal(OTHER_IN("\xe8\x01\0\0\0\xc3\xcd\x80\xc3", 6), AT + 6);
	/* call 1f; ret; 1: int $0x80; leave; out %al,(%dx): a table */
	assert_int_equal(OTHER_IN("\xe8\x01\0\0\0\xc3\xcd\x80\xc9\xee\xc3", 6), 0);
	/* lea table(%rip),%rax; ret; table: a byte that is no instruction, and what looks like a call */
	assert_int_equal(OTHER_IN("\x48\x8d\x05\x01\0\0\0\xc3\x06\xcd\x80\xc3", 8), 0);
}

static void a_number_is_known_where_one_way_leads_there(void **state)
{
	kymo_cleanup_free struct kymo_syscall_site *places = NULL;

	/* mov $202,%eax; mov %rdx,%rsi; xor %r10d,%r10d; syscall; syscall; xor %eax,%eax; test %edi,%edi; je 1f;
	 * mov %rsp,%rdi; syscall; 1: ret */
	assert_int_equal(PLACES("\xb8\xca\0\0\0\x48\x89\xd6\x45\x31\xd2\x0f\x05\x0f\x05\x31\xc0\x85\xff\x74\x05"
				"\x48\x89\xe7\x0f\x05\xc3"),
			 3);
	assert_int_equal(places[0].number, 202);
	assert_int_equal(places[1].number, -1);
	assert_int_equal(places[2].number, 0);
}

static void a_number_is_not_known_where_several_ways_lead_there(void **state)
{
	kymo_cleanup_free struct kymo_syscall_site *places = NULL;

	/* mov $1,%eax; 1: mov %rsp,%rdi; syscall; mov $2,%eax; test %edi,%edi; je 1b; mov $3,%al; syscall;
	 * mov $4,%eax; call 2f; syscall; 2: ret */
	assert_int_equal(PLACES("\xb8\x01\0\0\0\x48\x89\xe7\x0f\x05\xb8\x02\0\0\0\x85\xff\x74\xf2\xb0\x03\x0f\x05"
				"\xb8\x04\0\0\0\xe8\x02\0\0\0\x0f\x05\xc3"),
			 3);
	assert_int_equal(places[0].number, -1);
	assert_int_equal(places[1].number, -1);
	assert_int_equal(places[2].number, -1);
}

static const struct kymo_pad_env env = {
	.guest = 0x7f0000100000,
	.geometry = 0x7f0000110000,
	.live = 0x7f0000200000,
	.rings = 0x7e0000000000,
	.rseq_rings = 0x7e0000400000,
	.vforks = 0x7e0000800000,
	.header = 0x7e0000900000,
	.words = 0x7e0000b00000,
	.data = 0x7e0000a00000,
	.n_rings = 8,
	.n_cpus = 4096,
};

static const struct kymo_plan call = {
	.tactic = KYMO_TACTIC_PUN,
	.vaddr = AT,
	.window = 2,
	.n_insns = 1,
	.insn_offset = { 0, 2 },
	.original = { 0x0f, 0x05 },
	.patch_size = 2,
	.lock_size = 5,
};

static int emit(const struct kymo_plan *plan, const struct kymo_pad_syscalls *syscalls, size_t size,
		struct kymo_pad_layout *ret)
{
	kymo_cleanup_free uint8_t *out = malloc(size);

	return kymo_pad_emit_syscall(&env, plan, AT, AT + 0x300000, syscalls, out, size, ret);
}

static void a_call_that_takes_memory_away_is_known_by_either_of_its_numbers(void **state)
{
	static const uint32_t others[] = { SYS_read, SYS_futex, SYS_exit, KYMO_PAD_SYSCALLS, UINT32_MAX };
	static const uint32_t taking[] = { SYS_mmap, SYS_munmap, SYS_brk, SYS_process_madvise, SYS_ioctl };
	kymo_cleanup_free struct kymo_syscall_site *places = NULL;

	for (size_t i = 0; i < kymo_countof(taking); i++) {
		assert_true(kymo_pad_strikes(taking[i]));
		assert_true(kymo_pad_strikes(taking[i] | 0x40000000));
	}
	for (size_t i = 0; i < kymo_countof(others); i++)
		assert_false(kymo_pad_strikes(others[i]));
	/* mov $0x40000009,%eax; syscall; ret: mmap of x32 */
	assert_int_equal(PLACES("\xb8\x09\0\0\x40\x0f\x05\xc3"), 1);
	assert_int_equal(places[0].number, SYS_mmap | 0x40000000);
	assert_true(probes_may_strike(&places[0]));
}

static void a_pad_fits_into_what_is_kept_for_one_event(void **state)
{
	const struct kymo_pad_syscalls syscalls = { .first_id = 1, .exit_id = 513 };
	struct kymo_pad_layout layout;

	assert_int_equal(emit(&call, &syscalls, kymo_pad_size_max(NULL, 1), &layout), 0);
	assert_true(layout.entry < layout.inner && layout.inner < layout.displaced && layout.displaced < layout.size);
	assert_int_equal(emit(&call, &syscalls, kymo_pad_size_max(NULL, 1) - 1, &layout), -ENOSPC);
}

static void what_is_no_system_call_and_ids_out_of_range_are_refused(void **state)
{
	const struct kymo_pad_syscalls good = { .first_id = 1, .exit_id = 513 };
	const struct kymo_pad_syscalls bad = { .first_id = KYMO_EVENT_ID_MAX - 511, .exit_id = 1 };
	struct kymo_plan nop = call, two = call;
	struct kymo_pad_layout layout;

	nop.original[1] = 0x1f;
	two.n_insns = 2;
	assert_int_equal(emit(&nop, &good, kymo_pad_size_max(NULL, 1), &layout), -EINVAL);
	assert_int_equal(emit(&two, &good, kymo_pad_size_max(NULL, 1), &layout), -EINVAL);
	assert_int_equal(emit(&call, &bad, kymo_pad_size_max(NULL, 1), &layout), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instruction_is_found),
		cmocka_unit_test(the_bytes_inside_of_another_instruction_are_none),
		cmocka_unit_test(the_bytes_of_data_between_functions_are_none),
		cmocka_unit_test(code_without_a_function_that_is_called_is_looked_at),
		cmocka_unit_test(a_function_that_ends_its_thread_and_calls_nobody_is_left_alone),
		cmocka_unit_test(a_function_that_calls_others_has_its_stack),
		cmocka_unit_test(calls_of_32_bit_programs_are_found),
		cmocka_unit_test(calls_of_32_bit_programs_outside_of_functions_are_found_where_code_leads_to_them),
		cmocka_unit_test(a_number_is_known_where_one_way_leads_there),
		cmocka_unit_test(a_number_is_not_known_where_several_ways_lead_there),
		cmocka_unit_test(a_call_that_takes_memory_away_is_known_by_either_of_its_numbers),
		cmocka_unit_test(a_pad_fits_into_what_is_kept_for_one_event),
		cmocka_unit_test(what_is_no_system_call_and_ids_out_of_range_are_refused),
	};

	return cmocka_run_group_tests_name("arch-syscalls", tests, NULL, NULL);
}
