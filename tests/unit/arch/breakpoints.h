/*
 * A breakpoint at each instruction of a pad in turn, whose handler records, too. Include after cmocka.h.
 */
#ifndef KYMO_TESTS_ARCH_BREAKPOINTS_H
#define KYMO_TESTS_ARCH_BREAKPOINTS_H

#include <signal.h>
#include <sys/ucontext.h>

#include "pads.h"

struct breakpoints;

struct breakpoint_ops {
	void (*enter)(struct breakpoints *breakpoints, uint64_t at);
	bool (*handle)(const struct breakpoints *breakpoints); /* in the handler; false when something is wrong */
	void (*check)(struct breakpoints *breakpoints, uint64_t at, unsigned int hits); /* what was recorded */
};

struct breakpoints {
	struct world *world;
	const struct site *site, *in_handler;
	const struct breakpoint_ops *ops;
	void *data;

	uint64_t address;
	uint8_t original;
	unsigned int hits, restarts;
	bool is_wrong;
};

static struct breakpoints *breakpoints_now;

static void on_breakpoint(int signal, siginfo_t *info, void *data)
{
	greg_t *ip = &((ucontext_t *)data)->uc_mcontext.gregs[REG_RIP];
	struct breakpoints *now = breakpoints_now;

	world_write(now->world, now->address, &now->original, 1);
	now->hits++;
	/* Within a sequence the kernel has moved it to the abort handler already. */
	if ((uint64_t)*ip == now->address + 1)
		*ip = (greg_t)now->address;
	else
		now->restarts++;
	if (!now->ops->handle(now))
		now->is_wrong = true;
}

static inline void break_at(struct breakpoints *breakpoints, uint64_t at)
{
	static const uint8_t int3 = 0xcc;

	breakpoints->hits = 0;
	breakpoints->address = at;
	breakpoints->original = *(uint8_t *)at;
	world_write(breakpoints->world, at, &int3, 1);
	breakpoints->ops->enter(breakpoints, at);
	world_write(breakpoints->world, at, &breakpoints->original, 1);
	assert_true(breakpoints->hits <= 1);
	assert_false(breakpoints->is_wrong);
	world_read_all(breakpoints->world);
	breakpoints->ops->check(breakpoints, at, breakpoints->hits);
	assert_int_equal(world_lost(breakpoints->world), 0);
	world_forget(breakpoints->world);
}

/*
 * Break at each instruction from the entry of the pad at `site` to its jump back. Many are reached, and sequences are
 * restarted.
 */
static inline void break_everywhere(struct world *world, const struct site *site, const struct site *in_handler,
				    const struct breakpoint_ops *ops, void *data)
{
	struct sigaction action = { .sa_sigaction = on_breakpoint, .sa_flags = SA_SIGINFO }, before;
	struct breakpoints breakpoints = {
		.world = world, .site = site, .in_handler = in_handler, .ops = ops, .data = data
	};
	uint64_t at = site->pad + site->layout.entry, end = site->pad + site->layout.insn_at[0];
	unsigned int reached = 0;
	char text[128];

	breakpoints_now = &breakpoints;
	assert_int_equal(sigaction(SIGTRAP, &action, &before), 0);
	while (at < end) {
		int length = kymo_disassemble((uint8_t *)at, end - at, at, text, sizeof(text));

		assert_true(length > 0);
		break_at(&breakpoints, at);
		reached += breakpoints.hits;
		at += (uint64_t)length;
	}
	sigaction(SIGTRAP, &before, NULL);
	assert_true(reached > 25);
	assert_true(world->kind == LOCKS ? !breakpoints.restarts : breakpoints.restarts > 10);
}

#endif
