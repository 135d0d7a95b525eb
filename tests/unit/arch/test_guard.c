/*
 * Guards on clone, clone3 and vfork, by running them: no restartable sequence is used by a thread that shows another
 * thread's cpu_id.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arch/guard.h"
#include "base/cleanup.h"
#include "alone.h"
#include "fetches.h"
#include "load.h"
#include "pads.h"

#define AT_CALL 19 /* where in a caller its `mov $number,%eax` is */

static const struct shape roomy = { 65536, 4, false };
static const struct kymo_fetch first_u64 = FETCH(KYMO_FETCH_ARGUMENT, KYMO_TYPE_U64, 1);
static const struct kymo_pad_event one_event = { .id = 1, .args = &first_u64, .n_args = 1 };
static const uint32_t numbers[] = { SYS_vfork, SYS_clone, SYS_clone3 };

/*
 * long caller(void (*child)(long), a, b, c, d): the system call with rdi = a, rsi = b, rdx = r10 = c, r8 = d. The child
 * calls `child` with 42, and exits.
 */
typedef long caller(uint64_t child, uint64_t a, uint64_t b, uint64_t c, uint64_t d);

static const uint8_t caller_bytes[] = {
	0x53, 0x55, 0x41, 0x54,                   /* push %rbx; push %rbp; push %r12 */
	0x48, 0x89, 0xfb,                         /* mov %rdi,%rbx */
	0x48, 0x89, 0xf7,                         /* mov %rsi,%rdi */
	0x48, 0x89, 0xd6,                         /* mov %rdx,%rsi */
	0x48, 0x89, 0xca,                         /* mov %rcx,%rdx */
	0x49, 0x89, 0xca,                         /* mov %rcx,%r10 */
	0xb8, 0,    0,    0,    0,    0x0f, 0x05, /* mov $number,%eax; syscall */
	0x48, 0x85, 0xc0, 0x75, 0x10,             /* test %rax,%rax; jne 1f */
	0xbf, 42,   0,    0,    0,    0xff, 0xd3, /* mov $42,%edi; call *%rbx */
	0x31, 0xff,                               /* xor %edi,%edi */
	0xb8, 60,   0,    0,    0,    0x0f, 0x05, /* mov $SYS_exit,%eax; syscall */
	0x41, 0x5c, 0x5d, 0x5b, 0xc3,             /* 1: pop %r12; pop %rbp; pop %rbx; ret */
};

struct setup {
	struct world world;
	struct site probe, guard;
	caller *call;
};

static int find_in(const uint8_t *bytes, size_t size, uint64_t address, uint64_t entry, struct kymo_plan *ret,
		   size_t max)
{
	struct alone alone;
	struct kymo_entry_map *map;
	int n;

	alone_init(&alone, address, bytes, size, (struct kymo_extent){ address, address + size }, entry);
	assert_int_equal(kymo_entry_map_create(&alone.code, &map), 0);
	n = kymo_guard_find(&alone.code, map, ret, max);
	kymo_entry_map_destroy(map);
	return n;
}

static void setup_init(struct setup *setup, uint32_t number)
{
	uint8_t bytes[sizeof(caller_bytes)];
	struct kymo_plan plan;
	uint64_t address;

	world_init(&setup->world, SEQUENCES, roomy);
	world_function(&setup->world, &one_event, 1, &setup->probe);
	memcpy(bytes, caller_bytes, sizeof(bytes));
	memcpy(bytes + AT_CALL + 1, &number, sizeof(number));
	address = world_code(&setup->world, bytes, sizeof(bytes));
	assert_int_equal(find_in(bytes, sizeof(bytes), address, address, &plan, 1), 1);
	assert_int_equal(plan.vaddr, address + AT_CALL);
	assert_int_equal(plan.window, 7);
	world_guard(&setup->world, &plan, &setup->guard);
	setup->call = (caller *)address;
}

static bool is_list_empty(const struct world *world)
{
	for (unsigned int i = 0; i < KYMO_WIRE_MAX_VFORKS; i++)
		if (world->vforks->threads[i])
			return false;
	return true;
}

/* ---- children that have their parent's control block ----------------------------------------- */

static struct {
	const struct setup *setup;
	uint32_t n;
	uint32_t result;
} seen;

/* In a vfork child; with its parent's memory, and its registration for nothing. */
static __attribute__((no_sanitize("address", "undefined"))) void in_child(uint64_t x)
{
	seen.n = seen.setup->world.vforks->n;
	seen.result = ((uint32_t(*)(uint64_t))seen.setup->probe.address)(x);
}

static uint8_t child_stack[65536] __attribute__((aligned(64)));

/* vfork, or what is like it: with a stack of the child's own, or the parent's. */
static long call_vfork(const struct setup *setup, uint32_t number, bool own_stack)
{
	uint64_t flags = CLONE_VM | CLONE_VFORK;
	struct clone_args args = {
		.flags = flags,
		.exit_signal = SIGCHLD,
		.stack = own_stack ? (uint64_t)child_stack : 0,
		.stack_size = own_stack ? sizeof(child_stack) : 0,
	};

	if (number == SYS_vfork)
		return setup->call((uint64_t)in_child, 0, 0, 0, 0);
	if (number == SYS_clone)
		return setup->call((uint64_t)in_child, flags | SIGCHLD,
				   own_stack ? (uint64_t)child_stack + sizeof(child_stack) : 0, 0, 0);
	return setup->call((uint64_t)in_child, (uint64_t)&args, sizeof(args), 0, 0);
}

static void a_vfork_child_records_nothing_and_is_counted_and_its_parent_goes_on(void **state)
{
	if (!is_possible(SEQUENCES))
		skip();
	for (size_t i = 0; i < 2 * kymo_countof(numbers); i++) {
		uint32_t number = numbers[i / 2];
		struct setup setup;
		int status;
		long pid;

		setup_init(&setup, number);
		seen.setup = &setup;
		seen.n = seen.result = 0;
		call(&setup.probe, 1);
		pid = call_vfork(&setup, number, i % 2);
		assert_true(pid > 0);
		call(&setup.probe, 2);
		assert_int_equal(waitpid((pid_t)pid, &status, 0), pid);
		assert_int_equal(status, 0);
		assert_int_equal(seen.n, 1);
		assert_int_equal(seen.result, 2 * 42 + 7);
		assert_int_equal(setup.world.vforks->n, 0);
		assert_true(is_list_empty(&setup.world));
		world_read_all(&setup.world);
		assert_int_equal(setup.world.records.n, 2);
		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(setup.world.records.items[k].tid, gettid());
			assert_true(setup.world.records.items[k].ring < setup.world.n_sequenced);
		}
		assert_int_equal(world_lost(&setup.world), 0);
		assert_int_equal(setup.world.counts->lost_in_vforks, 1);
		world_deinit(&setup.world);
	}
}

static void a_call_that_fails_leaves_nothing_on_the_list(void **state)
{
	struct clone_args args = { .flags = CLONE_VM | CLONE_VFORK | CLONE_SIGHAND | CLONE_CLEAR_SIGHAND };
	struct setup setup;

	if (!is_possible(SEQUENCES))
		skip();
	setup_init(&setup, SYS_clone3);
	assert_int_equal(setup.call((uint64_t)in_child, (uint64_t)&args, sizeof(args), 0, 0), -EINVAL);
	assert_int_equal(setup.world.vforks->n, 0);
	assert_true(is_list_empty(&setup.world));
	world_deinit(&setup.world);
}

static void others_use_locks_while_somebody_waits_for_a_child(void **state)
{
	struct setup setup;
	int status;

	if (!is_possible(SEQUENCES))
		skip();
	setup_init(&setup, SYS_vfork);
	seen.setup = &setup;
	for (unsigned int i = 0; i < KYMO_WIRE_MAX_VFORKS; i++)
		setup.world.vforks->threads[i] = 64 * (i + 1);
	setup.world.vforks->n = KYMO_WIRE_MAX_VFORKS;
	call(&setup.probe, 1);
	assert_true(call_vfork(&setup, SYS_vfork, false) >
		    0); /* no room on the list: locks from now on, for the child too */
	assert_true(wait(&status) > 0);
	assert_int_equal(setup.world.vforks->n, KYMO_WIRE_MAX_VFORKS + 1);
	call(&setup.probe, 2);
	world_read_all(&setup.world);
	assert_int_equal(setup.world.records.n, 3);
	assert_int_equal(setup.world.counts->lost_in_vforks, 0);
	for (size_t i = 0; i < 3; i++)
		assert_true(setup.world.records.items[i].ring >= setup.world.n_sequenced);
	world_deinit(&setup.world);
}

/* clone with memory shared and no wait: neither can be told from the other. */
static void a_child_that_runs_beside_its_parent_ends_sequences(void **state)
{
	if (!is_possible(SEQUENCES))
		skip();
	for (size_t i = 1; i < kymo_countof(numbers); i++) {
		struct clone_args args = {
			.flags = CLONE_VM,
			.exit_signal = SIGCHLD,
			.stack = (uint64_t)child_stack,
			.stack_size = sizeof(child_stack),
		};
		struct setup setup;
		int status;
		long pid;

		setup_init(&setup, numbers[i]);
		if (numbers[i] == SYS_clone)
			pid = setup.call(setup.probe.address, CLONE_VM | SIGCHLD, args.stack + args.stack_size, 0, 0);
		else
			pid = setup.call(setup.probe.address, (uint64_t)&args, sizeof(args), 0, 0);
		assert_true(pid > 0);
		call(&setup.probe, 1);
		assert_int_equal(waitpid((pid_t)pid, &status, 0), pid);
		call(&setup.probe, 2);
		assert_true(setup.world.vforks->n > 0);
		world_read_all(&setup.world);
		assert_int_equal(setup.world.records.n, 3);
		for (size_t k = 0; k < 3; k++)
			assert_true(setup.world.records.items[k].ring >= setup.world.n_sequenced);
		world_deinit(&setup.world);
	}
}

static void a_fork_is_left_alone(void **state)
{
	if (!is_possible(SEQUENCES))
		skip();
	for (size_t i = 1; i < kymo_countof(numbers); i++) {
		struct clone_args args = { .exit_signal = SIGCHLD };
		struct setup setup;
		int status;
		long pid;

		setup_init(&setup, numbers[i]);
		for (unsigned int live = 0; live < 2; live++) {
			if (!live)
				world_state(&setup.world, 0);
			else
				world_state(&setup.world, KYMO_PAD_RSEQ);
			if (numbers[i] == SYS_clone)
				pid = setup.call(setup.probe.address, SIGCHLD, 0, 0, 0);
			else
				pid = setup.call(setup.probe.address, (uint64_t)&args, sizeof(args), 0, 0);
			assert_true(pid > 0);
			assert_int_equal(waitpid((pid_t)pid, &status, 0), pid);
			assert_int_equal(status, 0);
			assert_int_equal(setup.world.vforks->n, 0);
		}
		call(&setup.probe, 1);
		world_read_all(&setup.world);
		assert_int_equal(setup.world.records.n, 1);
		world_deinit(&setup.world);
	}
}

/* ---- threads --------------------------------------------------------------------------------- */

#define THREAD_FLAGS \
	(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS | \
	 CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID)

static uint8_t blocks[65536] __attribute__((aligned(64)));

/* Run the probe in a thread with the control block at `block`, and wait for its end. Its id. */
static int32_t run_thread(const struct setup *setup, uint32_t number, uint8_t *block)
{
	int32_t *tid = (void *)(block + tid_offset()), now;
	struct clone_args args = {
		.flags = THREAD_FLAGS,
		.child_tid = (uint64_t)tid,
		.parent_tid = (uint64_t)tid,
		.stack = (uint64_t)child_stack,
		.stack_size = sizeof(child_stack),
		.tls = (uint64_t)block,
	};
	long ret;

	*tid = 1;
	if (number == SYS_clone)
		ret = setup->call(setup->probe.address, THREAD_FLAGS, args.stack + args.stack_size, (uint64_t)tid,
				  (uint64_t)block);
	else
		ret = setup->call(setup->probe.address, (uint64_t)&args, sizeof(args), 0, 0);
	assert_true(ret > 0);
	while ((now = __atomic_load_n(tid, __ATOMIC_ACQUIRE)))
		syscall(SYS_futex, tid, FUTEX_WAIT, now, NULL, NULL, 0);
	return (int32_t)ret;
}

static void a_new_thread_is_marked_before_it_runs(void **state)
{
	if (!is_possible(SEQUENCES))
		skip();
	for (size_t i = 1; i < kymo_countof(numbers); i++) {
		uint8_t *block = blocks + sizeof(blocks) / 2;
		uint32_t *cpu = (void *)(block + rseq_offset() + 4);
		uint64_t self = (uint64_t)block;
		struct setup setup;
		int32_t tid;

		setup_init(&setup, numbers[i]);
		memset(blocks, 0, sizeof(blocks));
		memcpy(block, &self, 8);
		memcpy(block + 16, &self, 8);
		tid = run_thread(&setup, numbers[i], block); /* cpu_id is 0, of the thread that had the block before */
		assert_int_equal(*cpu, UINT32_MAX);
		assert_int_equal(*(uint64_t *)(void *)(block + rseq_offset() + 8), 0);
		assert_int_equal(setup.world.vforks->n, 0);
		call(&setup.probe, 1);
		world_read_all(&setup.world);
		assert_int_equal(setup.world.records.n, 2);
		assert_true(setup.world.records.items[0].ring < setup.world.n_sequenced);
		assert_true(setup.world.records.items[1].ring >= setup.world.n_sequenced);
		assert_int_equal(setup.world.records.items[1].tid, tid);
		world_deinit(&setup.world);
	}
}

static void before_sequences_are_used_threads_are_left_alone(void **state)
{
	uint8_t *block = blocks + sizeof(blocks) / 2;
	uint64_t self = (uint64_t)block;
	struct setup setup;

	if (!is_possible(SEQUENCES))
		skip();
	setup_init(&setup, SYS_clone3);
	memset(setup.world.live + KYMO_PAD_LIVE_RSEQ_OFFSET, 0, 8);
	world_state(&setup.world, KYMO_PAD_LIVE);
	memset(blocks, 0, sizeof(blocks));
	memcpy(block, &self, 8);
	memcpy(block + 16, &self, 8);
	run_thread(&setup, SYS_clone3, block);
	assert_int_equal(*(uint32_t *)(void *)(block + rseq_offset() + 4), 0);
	assert_int_equal(*(uint32_t *)(void *)(block + 4), self >> 32);
	world_deinit(&setup.world);
}

static void a_thread_with_a_strange_control_block_ends_sequences(void **state)
{
	static const unsigned int at[] = { 0, 8 }; /* does not point to itself; is not aligned */

	if (!is_possible(SEQUENCES))
		skip();
	for (size_t i = 0; i < kymo_countof(at); i++) {
		uint8_t *block = blocks + sizeof(blocks) / 2 + at[i];
		uint64_t self = (uint64_t)block;
		struct setup setup;

		setup_init(&setup, SYS_clone3);
		memset(blocks, 0, sizeof(blocks));
		memcpy(block, &self, 8);
		if (at[i])
			memcpy(block + 16, &self, 8);
		run_thread(&setup, SYS_clone3, block);
		assert_int_equal(*(uint32_t *)(void *)(block + rseq_offset() + 4), 0);
		assert_int_equal(setup.world.vforks->n, 1);
		call(&setup.probe, 1);
		world_read_all(&setup.world);
		for (size_t k = 0; k < setup.world.records.n; k++)
			assert_true(setup.world.records.items[k].ring >= setup.world.n_sequenced);
		world_deinit(&setup.world);
	}
}

/* ---- prctl ----------------------------------------------------------------------------------- */

static uint64_t reader_of(const struct world *world)
{
	uint64_t reader;

	memcpy(&reader, world->live + KYMO_PAD_LIVE_READER, sizeof(reader));
	return reader;
}

/* The calls themselves fail: by their arguments. */
static void before_a_process_limits_its_calls_memory_is_not_read_any_more(void **state)
{
	static const struct {
		uint64_t option, value;
		bool limits;
	} cases[] = {
		{ PR_SET_NO_NEW_PRIVS, 2, true },           { PR_SET_SECCOMP, 77, true },
		{ PR_SET_SYSCALL_USER_DISPATCH, 77, true }, { PR_SET_NAME, 0, false },
		{ PR_GET_SECCOMP + 10000, 0, false },
	};

	if (!is_possible(SEQUENCES))
		skip();
	for (size_t i = 0; i < kymo_countof(cases); i++) {
		const uint64_t self = (uint64_t)getpid();
		struct setup setup;

		setup_init(&setup, SYS_prctl);
		setup.world.header->regions[0].live = (uint64_t)setup.world.live;
		setup.world.words->n_regions = 1;
		memcpy(setup.world.live + KYMO_PAD_LIVE_READER, &self, sizeof(self));
		assert_true(setup.call(0, cases[i].option, cases[i].value, 0, 0) < 0);
		assert_int_equal(reader_of(&setup.world), cases[i].limits ? 0 : self);
		assert_int_equal(*setup.world.live, KYMO_PAD_RSEQ);
		call(&setup.probe, 1);
		world_read_all(&setup.world);
		assert_int_equal(setup.world.records.n, 1);
		world_deinit(&setup.world);
	}
}

/* ---- finding and emitting -------------------------------------------------------------------- */

#define LIBC "/lib/x86_64-linux-gnu/libc.so.6"

/* What objdump shows: `mov $number,%eax`, and `syscall` in the next line. */
static size_t ask_objdump(uint64_t *ret, size_t max)
{
	FILE *pipe = popen("LC_ALL=C objdump -d --no-show-raw-insn " LIBC " 2>/dev/null", "re");
	uint64_t address, last = 0;
	char line[512];
	size_t n = 0;

	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		char *number = strstr(line, "mov    $0x");

		if (last && strstr(line, "syscall") && n < max)
			ret[n++] = last;
		last = 0;
		if (number && sscanf(line, " %lx:", &address) == 1 &&
		    (!strncmp(number, "mov    $0x38,%eax", 17) || !strncmp(number, "mov    $0x3a,%eax", 17) ||
		     !strncmp(number, "mov    $0x1b3,%eax", 18) || !strncmp(number, "mov    $0x9d,%eax", 17)))
			last = address;
	}
	pclose(pipe);
	return n;
}

static void the_calls_of_libc_are_found(void **state)
{
	struct kymo_plan plans[16];
	struct kymo_entry_map *map;
	struct loaded libc;
	uint64_t expected[16];
	size_t n = ask_objdump(expected, kymo_countof(expected));

	if (!n || !load(LIBC, &libc)) {
		print_message("skipped: there is no objdump, or no " LIBC "\n");
		skip();
	}
	assert_int_equal(kymo_entry_map_create(&libc.code, &map), 0);
	assert_int_equal(kymo_guard_find(&libc.code, map, plans, kymo_countof(plans)), (int)n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(plans[i].vaddr, expected[i]);
	assert_int_equal(kymo_guard_find(&libc.code, map, plans, n - 1), -ENOSPC);
	kymo_entry_map_destroy(map);
	unload(&libc);
}

static void what_cannot_be_guarded_is_an_error(void **state)
{
	const uint64_t base = 0x1100;
	uint8_t bytes[sizeof(caller_bytes)];
	struct kymo_plan plan;

	memcpy(bytes, caller_bytes, sizeof(bytes));
	assert_int_equal(find_in(bytes, sizeof(bytes), base, base, &plan, 1), 0);
	bytes[AT_CALL + 1] = SYS_vfork;
	assert_int_equal(find_in(bytes, sizeof(bytes), base, base, &plan, 1), 1);
	assert_int_equal(find_in(bytes, sizeof(bytes), base, base + AT_CALL, &plan, 1), 1);
	/* other code comes to the system call alone, or into the move */
	assert_int_equal(find_in(bytes, sizeof(bytes), base, base + AT_CALL + 5, &plan, 1), -EPERM);
	/* the jump would cross a page */
	assert_int_equal(find_in(bytes, sizeof(bytes), 0x2000 - AT_CALL - 4, 0x2000 - AT_CALL - 4, &plan, 1), -EPERM);
	assert_int_equal(find_in(bytes, sizeof(bytes), 0x2000 - AT_CALL - 5, 0x2000 - AT_CALL - 5, &plan, 1), 1);
	/* the flags are used: the guard changes them */
	memcpy(bytes + AT_CALL + 7, "\x90\x90\x90", 3);
	assert_int_equal(find_in(bytes, sizeof(bytes), base, base, &plan, 1), -EPERM);
	/* the end of the text comes first */
	assert_int_equal(find_in(bytes, AT_CALL + 7, base, base, &plan, 1), -EPERM);
	assert_int_equal(find_in(bytes, AT_CALL + 6, base, base, &plan, 1), 0);
}

static void a_guard_knows_where_its_instructions_are(void **state)
{
	for (size_t i = 0; i < kymo_countof(numbers); i++) {
		struct kymo_pad_env env = { .live = 0x7f0000010000, .vforks = 0x1000 };
		struct kymo_plan plan = {
			.vaddr = 0x7f0000000000, .window = 7, .n_insns = 2, .insn_offset = { 0, 5, 7 }
		};
		struct kymo_pad_layout layout;
		uint8_t out[1024];
		int size;

		memcpy(plan.original, "\xb8\0\0\0\0\x0f\x05", 7);
		assert_int_equal(kymo_guard_emit(&env, &plan, plan.vaddr, 0x7f0000020000, out, sizeof(out), &layout),
				 -EINVAL);
		memcpy(plan.original + 1, &numbers[i], 4);
		assert_int_equal(kymo_guard_emit(&env, &plan, plan.vaddr, 0x7f0000020000, out, sizeof(out), &layout),
				 0);
		size = (int)layout.size;
		assert_true(size > 0 && (size_t)size <= kymo_pad_size_max(NULL, 1));
		assert_int_equal(layout.insn_at[0], 0);
		assert_memory_equal(out + layout.insn_at[1], "\x0f\x05", 2);
		assert_memory_equal(out + layout.insn_at[1] - 5, plan.original, 5);
		assert_int_equal(layout.insn_at[2], layout.insn_at[1] + 2);
		for (int less = 0; less < size; less++) {
			uint8_t *exact = malloc((size_t)less + 1);

			assert_int_equal(
				kymo_guard_emit(&env, &plan, plan.vaddr, 0x7f0000020000, exact, (size_t)less, &layout),
				-ENOSPC);
			free(exact);
		}
		env.live = 0x1000;
		assert_int_equal(kymo_guard_emit(&env, &plan, plan.vaddr, 0x7f0000020000, out, sizeof(out), &layout),
				 -ERANGE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_vfork_child_records_nothing_and_is_counted_and_its_parent_goes_on),
		cmocka_unit_test(a_call_that_fails_leaves_nothing_on_the_list),
		cmocka_unit_test(others_use_locks_while_somebody_waits_for_a_child),
		cmocka_unit_test(a_child_that_runs_beside_its_parent_ends_sequences),
		cmocka_unit_test(a_fork_is_left_alone),
		cmocka_unit_test(a_new_thread_is_marked_before_it_runs),
		cmocka_unit_test(before_a_process_limits_its_calls_memory_is_not_read_any_more),
		cmocka_unit_test(before_sequences_are_used_threads_are_left_alone),
		cmocka_unit_test(a_thread_with_a_strange_control_block_ends_sequences),
		cmocka_unit_test(the_calls_of_libc_are_found),
		cmocka_unit_test(what_cannot_be_guarded_is_an_error),
		cmocka_unit_test(a_guard_knows_where_its_instructions_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
