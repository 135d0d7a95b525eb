/* Bringing threads out of pads that trap. A thread is stepped through such a pad. After each instruction it could go
 * back to the site, with the registers that it came with. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "arch/leave_pad.h"
#include "pad_checks.h"

#define RDI 7
#define RSI 6
#define TRAP_FLAG 0x100
#define N 128
#define WORD 5

static const struct site *stepped;
static const struct registers *came_with;
static unsigned int n_before, n_after, n_trapped;
static bool is_inside;
static uint64_t seen_flags = ARITHMETIC | DF; /* those that the code at the site may read */

static bool read_stack(void *data, uint64_t address, uint64_t *ret)
{
	memcpy(ret, (const void *)address, sizeof(*ret));
	return true;
}

static void take_registers(const greg_t *from, struct user_regs_struct *ret)
{
	*ret = (struct user_regs_struct){
		.rip = (uint64_t)from[REG_RIP],
		.rsp = (uint64_t)from[REG_RSP],
		.rax = (uint64_t)from[REG_RAX],
		.rdx = (uint64_t)from[REG_RDX],
		.r10 = (uint64_t)from[REG_R10],
		.r11 = (uint64_t)from[REG_R11],
		.eflags = (uint64_t)from[REG_EFL],
	};
}

/* In a handler nothing is asserted. */
static void expect(bool is_true)
{
	if (!is_true)
		abort();
}

static void look(greg_t *registers)
{
	const uint64_t offset = (uint64_t)registers[REG_RIP] - stepped->pad;
	const bool is_before =
		offset < stepped->layout.insn_at[0] || offset > stepped->layout.insn_at[stepped->plan.n_insns];
	struct user_regs_struct out;

	take_registers(registers, &out);
	switch (kymo_pad_leave(&stepped->plan, &stepped->layout, stepped->address, stepped->pad, read_stack, NULL,
			       &out)) {
	case KYMO_PAD_STANDS_OUTSIDE:
		if (is_inside)
			registers[REG_EFL] &= ~TRAP_FLAG;
		return;
	case KYMO_PAD_TRAPPED:
		expect(offset == stepped->layout.trap + 1);
		n_trapped++;
		registers[REG_RIP] = (greg_t)(stepped->pad + stepped->layout.insn_at[0]);
		return;
	case KYMO_PAD_LEFT:
		break;
	default:
		abort();
	}
	is_inside = true;
	n_before += is_before;
	n_after += !is_before;
	if (offset == stepped->layout.insn_at[stepped->plan.n_insns])
		expect(out.rip == stepped->address + stepped->plan.window);
	if (!is_before && offset != stepped->layout.insn_at[0])
		return;
	expect(out.rip == stepped->address);
	expect(out.rsp == came_with->r[RSP] && out.rax == came_with->r[0] && out.rdx == came_with->r[2] &&
	       out.r10 == came_with->r[10] && out.r11 == came_with->r[11]);
	expect((out.eflags & seen_flags) == (came_with->flags & seen_flags));
}

static void on_trap(int number, siginfo_t *info, void *context)
{
	look(((ucontext_t *)context)->uc_mcontext.gregs);
}

/* %rdi == *(u64 *)%rsi, of which %rdi is 7 more than that where the second one comes */
static const struct kymo_form condition = { .n = 4,
					    .ops = { { .code = KYMO_FORM_REGISTER, .value = RDI },
						     { .code = KYMO_FORM_REGISTER, .value = RSI },
						     { .code = KYMO_FORM_LOAD, .size = 8 },
						     { .code = KYMO_FORM_EQUAL } } };

static void step_through(const struct site *site, uint8_t *stack, uint64_t seed, bool is_true)
{
	struct registers in, out;
	uint64_t value = mix(seed);

	randomise(&in, seed, stack);
	in.flags = flags_of(seed % 128) | TRAP_FLAG;
	in.r[RSI] = (uint64_t)&value;
	in.r[RDI] = value + (is_true ? 0 : 7);
	stepped = site;
	came_with = &in;
	is_inside = false;
	enter(site, &in, &out);
	assert_true(is_inside);
}

/* Where flags are dead: near the end of a stack, and not near it. */
static void step_through_looks(struct world *world, const struct kymo_pad_event *event, volatile uint32_t *word,
			       uint8_t *stack)
{
	const uint64_t ends[2][2] = { { UINT64_MAX, 0 }, { 0, 0 } };
	struct site site;

	world_pushing(world, event, 1, 0, &site);
	seen_flags = DF;
	n_before = n_trapped = 0;
	for (uint64_t i = 0; i < N; i++) {
		memcpy(world->live + KYMO_PAD_LIVE_STACK_ENOUGH, ends[i % 2], sizeof(ends[0]));
		*word = i % 4 < 2;
		step_through(&site, stack, i, false);
	}
	assert_true(n_before > 5 * N);
	assert_int_equal(n_trapped, N / 4);
	seen_flags = ARITHMETIC | DF;
}

static void each_instruction_can_be_gone_back_from(void **state)
{
	const struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	const stack_t own = { .ss_sp = stack_create(), .ss_size = STACK_SIZE };
	uint8_t *stack = stack_create();

	assert_int_equal(sigaltstack(&own, NULL), 0); /* enter() has its registers below the stack pointer */
	assert_int_equal(sigaction(SIGTRAP, &trap, NULL), 0);
	for_each_kind(kind)
	{
		struct kymo_pad_event event;
		volatile uint32_t *word;
		struct world world;
		struct site site;

		world_init(&world, kind, roomy);
		event = (struct kymo_pad_event){
			.filter = &condition, .trap = world.env.live + KYMO_PAD_LIVE_TRAPS + sizeof(uint32_t) * WORD
		};
		word = (volatile uint32_t *)(void *)(world.live + KYMO_PAD_LIVE_TRAPS) + WORD;
		world_landing(&world, &event, 1, &site);
		assert_true(kymo_pad_can_trap(&site.plan));
		n_before = n_after = n_trapped = 0;
		for (uint64_t i = 0; i < N; i++) {
			*word = i % 4 != 0;
			step_through(&site, stack, i, i % 2);
		}
		assert_true(n_before > 20 * N && n_after >= N);
		assert_int_equal(n_trapped, N / 2);
		step_through_looks(&world, &event, word, stack);
		world_deinit(&world);
	}
	stack_destroy(stack);
}

/* ---- instructions that were taken apart ------------------------------------------------------ */

static struct kymo_plan plan_of(const char *bytes, unsigned int size, bool ends_flow)
{
	struct kymo_plan plan = { .tactic = KYMO_TACTIC_JUMP,
				  .window = (uint8_t)size,
				  .n_insns = 1,
				  .insn_offset = { 0, (uint8_t)size },
				  .patch_size = KYMO_JUMP_SIZE,
				  .lock_size = (uint8_t)size,
				  .ends_flow = ends_flow };

	memcpy(plan.original, bytes, size);
	return plan;
}

static void a_call_that_has_pushed_goes_back(void **state)
{
	static uint8_t out[8192];
	const struct kymo_pad_env env = { .guest = 0x10000000, .live = 0x10002000, .geometry = 0x10001000 };
	const struct kymo_pad_event event = { .trap = 0x10002000 + KYMO_PAD_LIVE_TRAPS };
	const struct kymo_plan plan = plan_of("\xe8\x00\x01\x00\x00", 5, true);
	const struct kymo_pad_chain alone = { 0 };
	const uint64_t site = 0x11000000, pad = 0x10003000;
	struct kymo_pad_layout layout;

	assert_true(kymo_pad_can_trap(&plan));
	assert_int_equal(kymo_pad_emit(&env, &plan, site, pad, &event, 1, &alone, out, sizeof(out), &layout), 0);
	assert_int_equal(out[layout.insn_at[0]], 0x68); /* push; the high half is 0 */
	for (unsigned int at = 0; at <= 5; at += 5) {
		struct user_regs_struct registers = { .rip = pad + layout.insn_at[0] + at,
						      .rsp = 0x7000 - (at ? 8 : 0) };

		assert_int_equal(kymo_pad_leave(&plan, &layout, site, pad, NULL, NULL, &registers), KYMO_PAD_LEFT);
		assert_int_equal(registers.rip, site);
		assert_int_equal(registers.rsp, 0x7000);
	}
}

static void what_cannot_be_brought_out_has_no_trap(void **state)
{
	static const struct {
		const char *bytes;
		unsigned int size;
		bool can;
	} cases[] = {
		{ "\xe8\x00\x01\x00\x00", 5, true },
		{ "\x48\x89\xe5", 3, true },
		{ "\xc3", 1, true },
		{ "\x0f\x05", 2, false },
		{ "\xe2\x00", 2, false },
		{ "\xe3\x00", 2, false },
		{ "\x9c", 1, false },
		{ "\x9d", 1, false },
		{ "\xcd\x80", 2, false },
	};

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		const struct kymo_plan plan = plan_of(cases[i].bytes, cases[i].size, false);

		assert_int_equal(kymo_pad_can_trap(&plan), cases[i].can);
	}
}

static bool read_nothing(void *data, uint64_t address, uint64_t *ret)
{
	return false;
}

static void a_stack_that_cannot_be_read_changes_nothing(void **state)
{
	struct kymo_pad_event event;
	struct user_regs_struct registers;
	struct world world;
	struct site site;

	world_init(&world, LOCKS, roomy);
	event = (struct kymo_pad_event){ .trap = world.env.live + KYMO_PAD_LIVE_TRAPS };
	world_landing(&world, &event, 1, &site);
	registers = (struct user_regs_struct){ .rip = site.pad + site.layout.condition, .rsp = 0x7000, .rax = 1 };
	assert_int_equal(
		kymo_pad_leave(&site.plan, &site.layout, site.address, site.pad, read_nothing, NULL, &registers), -EIO);
	assert_int_equal(registers.rip, site.pad + site.layout.condition);
	assert_int_equal(registers.rsp, 0x7000);
	registers.rip = site.address;
	assert_int_equal(
		kymo_pad_leave(&site.plan, &site.layout, site.address, site.pad, read_nothing, NULL, &registers),
		KYMO_PAD_STANDS_OUTSIDE);
	world_deinit(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_instruction_can_be_gone_back_from),
		cmocka_unit_test(a_call_that_has_pushed_goes_back),
		cmocka_unit_test(what_cannot_be_brought_out_has_no_trap),
		cmocka_unit_test(a_stack_that_cannot_be_read_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
