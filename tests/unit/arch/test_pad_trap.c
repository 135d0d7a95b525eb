/* Pads with a condition and a trap: a thread comes to the trap when the condition holds or is not known, with the
 * registers of the site. The program sees nothing else. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "pad_checks.h"

#define RDI 7
#define RSI 6
#define N 300
#define TRAP_FLAG 0x100
#define BELOW 400    /* bytes that a pad may use, below the stack pointer */
#define STEPS_MAX 64 /* of a false condition on a register, with the call and the return */

static const struct site *trapping;
static unsigned int n_traps, n_faults, n_steps;
static struct registers at_trap;

/* As ucontext_t has those that are numbered in opcodes. */
static const int numbers[16] = { REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
				 REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15 };

/* What a tracer does. */
static void on_trap(int signal_number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;

	if (info->si_code == TRAP_TRACE) {
		n_steps++;
		return;
	}
	if ((uint64_t)registers[REG_RIP] != trapping->pad + trapping->layout.trap + 1)
		abort();
	n_traps++;
	for (int i = 0; i < 16; i++)
		at_trap.r[i] = (uint64_t)registers[numbers[i]];
	at_trap.flags = (uint64_t)registers[REG_EFL];
	registers[REG_RIP] = (greg_t)(trapping->pad + trapping->layout.insn_at[0]);
}

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
	greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
	const uint64_t at = (uint64_t)registers[REG_RIP] - trapping->pad;

	if (at < trapping->layout.condition || at >= trapping->layout.condition_end)
		abort();
	n_faults++;
	registers[REG_RIP] = (greg_t)(trapping->pad + trapping->layout.fault);
}

static int take_signals(void **state)
{
	const struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK },
			       fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	return sigaction(SIGTRAP, &trap, NULL) || sigaction(SIGSEGV, &fault, NULL) || sigaction(SIGBUS, &fault, NULL);
}

#define WORD 447 /* the last one */

static struct kymo_pad_event event_of(const struct world *world, const struct kymo_form *filter)
{
	return (struct kymo_pad_event){
		.filter = filter,
		.trap = world->env.live + KYMO_PAD_LIVE_TRAPS + sizeof(uint32_t) * WORD,
	};
}

static void arm(const struct world *world, uint32_t value)
{
	((volatile uint32_t *)(void *)(world->live + KYMO_PAD_LIVE_TRAPS))[WORD] = value;
}

/* %rdi == 7 */
static const struct kymo_form is_seven = { .n = 3,
					   .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI },
						    { .code = KYMO_FORM_VALUE, .value = 7 },
						    { .code = KYMO_FORM_EQUAL } } };

/* *(u32 *)%rsi == %rdi */
static const struct kymo_form is_in_memory = { .n = 4,
					       .ops = { { .code = KYMO_FORM_REGISTER, .value = RSI },
							{ .code = KYMO_FORM_LOAD, .size = 4 },
							{ .code = KYMO_FORM_REGISTER, .value = RDI },
							{ .code = KYMO_FORM_EQUAL } } };

/* Enter with these, which may trap. */
static void enter_with(const struct site *site, const struct registers *in, bool traps)
{
	const unsigned int before = n_traps;

	trapping = site;
	enter_unseen(site, in);
	assert_int_equal(n_traps - before, traps);
	if (traps)
		check_unchanged(in, &at_trap);
}

static void enter_both(const struct world *world, const struct site *site, uint8_t *stack, uint64_t seed, uint64_t rdi,
		       uint64_t rsi, bool traps)
{
	struct registers in;

	randomise(&in, seed, stack);
	in.flags = flags_of(seed % 128);
	in.r[RDI] = rdi;
	in.r[RSI] = rsi;
	fill((uint8_t *)in.r[RSP] - RED_ZONE, AROUND, seed);
	arm(world, 1);
	enter_with(site, &in, traps);
	arm(world, 0);
	enter_with(site, &in, false);
}

static void it_traps_where_the_condition_holds(void **state)
{
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct kymo_pad_event some, all;
		struct site condition, always;
		struct world world;

		world_init(&world, kind, roomy);
		some = event_of(&world, &is_seven);
		all = event_of(&world, NULL);
		world_landing(&world, &some, 1, &condition);
		world_landing(&world, &all, 1, &always);
		for (uint64_t i = 0; i < N; i++) {
			enter_both(&world, &condition, stack, i, i % 3 ? 7 : mix(i), i, i % 3);
			enter_both(&world, &always, stack, i, i, i, true);
		}
		world_read_all(&world);
		assert_int_equal(world.records.n, 0);
		assert_int_equal(world_lost(&world), 0);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void memory_that_is_not_there_traps(void **state)
{
	uint8_t *stack = stack_create();
	uint32_t *pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(take_signals(NULL), 0); /* cmocka takes SIGSEGV before each test */
	assert_int_equal(mprotect((uint8_t *)pages + PAGE, PAGE, PROT_NONE), 0);
	for_each_kind(kind)
	{
		struct kymo_pad_event event;
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		event = event_of(&world, &is_in_memory);
		world_landing(&world, &event, 1, &site);
		for (uint64_t i = 0; i < N; i++) {
			const uint64_t at = i * 28 % (2 * PAGE), address = (uint64_t)pages + at;
			const bool is_there = at < PAGE;
			const unsigned int before = n_faults;

			if (is_there)
				pages[at / 4] = (uint32_t)i;
			enter_both(&world, &site, stack, i, i, address, true);
			enter_both(&world, &site, stack, i, i + 1, address, !is_there);
			enter_both(&world, &site, stack, i, i, 8 * i, true);
			enter_both(&world, &site, stack, i, i, UINT64_C(0x8000000000000000) + i, true);
			assert_int_equal(n_faults - before, is_there ? 2 : 4);
		}
		world_deinit(&world);
	}
	munmap(pages, 2 * PAGE);
	stack_destroy(stack);
}

/* Where flags are dead. Whether it traps, and whether anything is stored below. */
static void enter_near(const struct site *site, const struct registers *in, bool traps, bool stores)
{
	const unsigned int before = n_traps;
	uint8_t *below = (uint8_t *)in->r[RSP] - BELOW;
	uint8_t kept[BELOW - 8];
	struct registers out;

	fill(below, BELOW, 1);
	memcpy(kept, below, sizeof(kept));
	trapping = site;
	enter(site, in, &out);
	assert_memory_equal(out.r, in->r, sizeof(out.r));
	assert_int_equal(n_traps - before, traps);
	assert_int_equal(memcmp(kept, below, sizeof(kept)) != 0, stores);
	if (traps)
		assert_memory_equal(at_trap.r, in->r, sizeof(at_trap.r));
}

/* Whatever its condition is. Without a tracer it never uses the stack. */
static void near_the_end_of_a_stack_it_traps(void **state)
{
	const stack_t own = { .ss_sp = stack_create(), .ss_size = STACK_SIZE }, none = { .ss_flags = SS_DISABLE };
	uint8_t *stack = stack_create();

	assert_int_equal(sigaltstack(&own, NULL), 0); /* the handler stores below, too */
	for_each_kind(kind)
	{
		struct kymo_pad_event event;
		struct registers in;
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		event = event_of(&world, &is_seven);
		world_pushing(&world, &event, 1, 8, &site);
		for (uint64_t i = 0; i < N; i++) {
			const bool is_near = i % 2, is_true = i % 3 == 0;
			uint64_t words[2];

			randomise(&in, i, stack);
			in.r[RDI] = is_true ? 7 : 8;
			words[0] = in.r[RSP] + is_near;
			words[1] = in.r[RSP] - 511;
			memcpy(world.live + KYMO_PAD_LIVE_STACK_ENOUGH, words, sizeof(words));
			arm(&world, 1);
			enter_near(&site, &in, is_near || is_true, !is_near);
			words[1] = in.r[RSP] + 1; /* below that lie other threads' stacks */
			memcpy(world.live + KYMO_PAD_LIVE_STACK_ENOUGH, words, sizeof(words));
			enter_near(&site, &in, is_true, true);
			arm(&world, 0);
			enter_near(&site, &in, false, false);
		}
		assert_int_equal(world_lost(&world), 0);
		world_deinit(&world);
	}
	assert_int_equal(sigaltstack(&none, NULL), 0);
	stack_destroy(own.ss_sp);
	stack_destroy(stack);
}

static void enter_in_child(const struct site *site, uint8_t *stack)
{
	struct registers in;

	randomise(&in, 1, stack);
	enter_with(site, &in, false);
}

static void nothing_traps_in_a_forked_child(void **state)
{
	uint8_t *stack = stack_create();
	struct kymo_pad_event event;
	struct world world;
	struct site site;

	world_init(&world, LOCKS, roomy);
	event = event_of(&world, NULL);
	world_landing(&world, &event, 1, &site);
	arm(&world, 1);
	in_child(&site, stack, enter_in_child);
	world_deinit(&world);
	stack_destroy(stack);
}

/* Another recording has come since. */
static void it_ends_a_chain(void **state)
{
	uint8_t *stack = stack_create();

	for_each_kind(kind)
	{
		struct site site, before;
		struct kymo_pad_event event;
		struct registers in;
		struct world world;

		world_init(&world, kind, roomy);
		event = event_of(&world, &is_seven);
		world_landing(&world, &event, 1, &site);
		world_put_before(&world, &site, &one_event, 1, &before);
		arm(&world, 1);
		for (uint64_t i = 0; i < N; i++) {
			const unsigned int n = n_traps;

			randomise(&in, i, stack);
			in.r[RDI] = i % 2 ? 7 : i;
			trapping = &site;
			enter_unseen(&before, &in);
			assert_int_equal(n_traps - n, i % 2 || i == 7);
			if (n_traps > n)
				check_unchanged(&in, &at_trap);
		}
		world_read_all(&world);
		assert_int_equal(world.records.n, N);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

static void what_else_a_site_has_is_refused(void **state)
{
	const struct kymo_pad_chain alone = { 0 }, behind = { .next = 0x1000 }, watch = { .watch = 0x1000 };
	const struct kymo_form question = { .n = 1, .ops = { { .code = KYMO_FORM_ASK, .value = KYMO_FORM_CLOCK } } };
	const struct kymo_form real = {
		.n = 2, .ops = { { .code = KYMO_FORM_VALUE }, { .code = KYMO_FORM_TO_FLOAT, .size = 8 } }
	};
	struct kymo_pad_event trap, asking, floating, with_argument, sampled;
	struct kymo_pad_layout layout;
	uint8_t out[8192];
	struct world world;
	struct site site;

	world_init(&world, LOCKS, roomy);
	trap = with_argument = sampled = event_of(&world, &is_seven);
	asking = event_of(&world, &question);
	floating = event_of(&world, &real);
	with_argument.args = &first_u64;
	with_argument.n_args = 1;
	sampled.sample = (struct kymo_pad_sample){ .kind = KYMO_PAD_SAMPLE_EVERY, .n = 2 };
	world_landing(&world, &trap, 1, &site);
	assert_true(site.layout.trap > 0);
	assert_int_equal(site.layout.hop, 0);

#define EMIT_WITH(events, n, chain) \
	kymo_pad_emit(&world.env, &site.plan, site.address, site.pad, events, n, chain, out, sizeof(out), &layout)
	assert_int_equal(EMIT_WITH(&trap, 1, &alone), 0);
	assert_int_equal(EMIT_WITH(&trap, 1, &behind), -EINVAL);
	assert_int_equal(EMIT_WITH(&trap, 1, &watch), -EINVAL);
	assert_int_equal(EMIT_WITH(&with_argument, 1, &alone), -EINVAL);
	assert_int_equal(EMIT_WITH(&sampled, 1, &alone), -EINVAL);
	assert_int_equal(EMIT_WITH(&asking, 1, &alone), -EINVAL);
	assert_int_equal(EMIT_WITH(&floating, 1, &alone), -EINVAL);
	assert_int_equal(EMIT_WITH(((const struct kymo_pad_event[]){ trap, one_event }), 2, &alone), -EINVAL);
	assert_int_equal(EMIT_WITH(((const struct kymo_pad_event[]){ one_event, trap }), 2, &alone), -EINVAL);
	assert_int_equal(EMIT_WITH(&one_event, 1, &alone), 0);
	assert_int_equal(layout.trap, 0);
	world_deinit(&world);
}

/* Instructions are counted, as they are the same on each machine. */
static void a_false_condition_costs_few_instructions(void **state)
{
	struct kymo_pad_event event;
	struct world world;
	struct site site;

	world_init(&world, LOCKS, roomy);
	event = event_of(&world, &is_seven);
	world_function(&world, &event, 1, &site);
	trapping = &site;
	arm(&world, 1);
	n_steps = 0;
	__asm__ volatile("pushf; orl %1, (%%rsp); popf; call *%0; pushf; andl %2, (%%rsp); popf"
			 :
			 : "r"(site.address), "i"(TRAP_FLAG), "i"(~TRAP_FLAG), "D"(8ul)
			 : "memory", "cc", "rax");
	print_message("%u instructions\n", n_steps);
	assert_true(n_steps > 20 && n_steps < STEPS_MAX);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_traps_where_the_condition_holds),
		cmocka_unit_test(memory_that_is_not_there_traps),
		cmocka_unit_test(near_the_end_of_a_stack_it_traps),
		cmocka_unit_test(nothing_traps_in_a_forked_child),
		cmocka_unit_test(it_ends_a_chain),
		cmocka_unit_test(what_else_a_site_has_is_refused),
		cmocka_unit_test(a_false_condition_costs_few_instructions),
	};

	return cmocka_run_group_tests(tests, take_signals, NULL);
}
