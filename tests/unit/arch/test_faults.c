/* What is displaced in a process that handles faults, and in one that may come to. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "alone.h"
#include "room.h"

#define AT 0x1000u

struct wanted {
	unsigned int watched, possible;
	bool is_alone;
};

/* Plan the first instruction of these bytes, which are a function, with room for all tactics; NULL, or why there is no
 * plan: the first reason, or that of the site. */
static const char *plan_with(const struct wanted *wanted, const char *bytes, size_t size, struct kymo_plan *ret)
{
	static struct kymo_refusal refusals[KYMO_N_TACTICS];
	uint8_t text[128];
	struct kymo_plan plans[KYMO_PLANS_MAX];
	struct alone alone;
	struct kymo_entry_map *map;
	struct room room;
	size_t n = 0, n_refusals = 0;
	int err;

	memset(text, 0xcc, sizeof(text));
	memcpy(text, bytes, size);
	alone_init(&alone, AT, text, sizeof(text), (struct kymo_extent){ AT, AT + size }, AT);
	assert_int_equal(kymo_entry_map_create(&alone.code, &map), 0);
	room_init(&room, &alone.code);
	room_free_around(&room);
	room.ops.watched_faults = wanted->watched;
	room.ops.possible_faults = wanted->possible;
	room.ops.is_alone = wanted->is_alone;
	err = kymo_plan(&alone.code, map, &room.ops, AT, plans, &n, refusals, &n_refusals);
	room_deinit(&room);
	kymo_entry_map_destroy(map);
	if (err)
		return refusals[0].reason;
	*ret = plans[n - 1];
	return NULL;
}

#define PLAN(wanted, bytes) plan_with(&(wanted), bytes, sizeof(bytes) - 1, &made)

static const struct wanted nothing = { 0 };
static const struct wanted memory = { .watched = KYMO_FAULT_MEMORY };
static const struct wanted arithmetic = { .watched = KYMO_FAULT_ARITHMETIC };
static const struct wanted all = { .watched = KYMO_FAULT_ANY };
static const struct wanted later = { .possible = KYMO_FAULT_ANY };
static const struct wanted alone = { .watched = KYMO_FAULT_ANY, .is_alone = true };

/* push %rbx; mov (%rdi),%ebx; lea 2(%rbx),%eax; pop %rbx; ret */
#define SAVES "\x53\x8b\x1f\x8d\x43\x02\x5b\xc3"

static void a_group_with_a_load_becomes_a_pun(void **state)
{
	struct kymo_plan made;

	assert_null(PLAN(nothing, SAVES));
	assert_int_equal(made.tactic, KYMO_TACTIC_GROUP);
	assert_int_equal(made.faults, KYMO_FAULT_MEMORY);
	assert_null(PLAN(memory, SAVES));
	assert_int_equal(made.tactic, KYMO_TACTIC_PUN);
	assert_int_equal(made.faults, 0);
	assert_int_equal(made.n_copied, 0);
}

static void a_pun_is_preferred_while_nobody_handles_faults(void **state)
{
	struct kymo_plan made;

	assert_null(PLAN(later, SAVES));
	assert_int_equal(made.tactic, KYMO_TACTIC_PUN);
	/* … where there is one. */
	assert_null(PLAN(later, "\x8b\x07\x83\xc0\x01\x90\xc3"));
	assert_int_equal(made.tactic, KYMO_TACTIC_GROUP);
	assert_int_equal(made.faults, KYMO_FAULT_MEMORY);
}

static void a_load_is_refused_where_sigsegv_is_handled(void **state)
{
	struct kymo_plan made;
	const char *const fault = "the instruction at 0x1000 may fault, and the process handles SIGSEGV or SIGBUS";

	assert_non_null(strstr(PLAN(memory, "\x8b\x07\x83\xc0\x01\xc3"), fault));
	assert_non_null(strstr(PLAN(memory, "\x48\x8b\x87\0\1\0\0\xc3"), fault));
	assert_non_null(strstr(PLAN(memory, "\x89\x37\x83\xc0\x01\xc3"), fault));
	assert_non_null(strstr(PLAN(memory, "\xf3\xa4\x83\xc0\x01\xc3"), fault));     /* rep movsb */
	assert_non_null(strstr(PLAN(memory, "\xff\x37\x58\x83\xc0\x01\xc3"), fault)); /* push (%rdi) */
	assert_non_null(strstr(PLAN(memory, "\xff\x60\x10\x90\x90\x90\xc3"), fault)); /* jmp *16(%rax) */
	assert_non_null(strstr(PLAN(memory, "\x8b\x45\xf8\x83\xc0\x01\xc3"), fault)); /* mov -8(%rbp),%eax */
	assert_non_null(strstr(PLAN(memory, "\x65\x8b\x04\x25\0\0\0\0\xc3"), fault)); /* mov %gs:0,%eax */
	assert_null(PLAN(arithmetic, "\x48\x8b\x87\0\1\0\0\xc3"));
}

static void what_is_sound_is_displaced_whatever_is_handled(void **state)
{
	struct kymo_plan made;

	assert_null(PLAN(all, "\x48\x8b\x84\x24\0\1\0\0\xc3"));       /* mov 256(%rsp),%rax */
	assert_null(PLAN(all, "\x48\x8b\x05\x10\0\0\0\xc3"));         /* mov 16(%rip),%rax */
	assert_null(PLAN(all, "\x64\x48\x8b\x04\x25\x28\0\0\0\xc3")); /* mov %fs:40,%rax */
	assert_null(PLAN(all, "\x48\x8d\x84\x37\0\1\0\0\xc3"));       /* lea 256(%rdi,%rsi),%rax */
	assert_null(PLAN(all, "\xe8\x01\0\0\0\xc3\xc3"));             /* call */
	assert_null(PLAN(all, "\x66\x0f\x1f\x44\x07\x08\xc3"));       /* nopw 8(%rdi,%rax) */
	assert_null(PLAN(all, "\x55\x48\x89\xe5\x90\xc3"));           /* push %rbp; mov %rsp,%rbp */
	assert_int_equal(made.tactic, KYMO_TACTIC_GROUP);
	assert_int_equal(made.faults, 0);
}

static void probes_of_the_stack_may_fault(void **state)
{
	struct kymo_plan made;
	const char *const fault = "may fault";

	assert_non_null(
		strstr(PLAN(memory, "\x48\x83\x8c\x24\x00\xc0\xff\xff\x00\xc3"), fault)); /* orq $0,-0x4000(%rsp) */
	assert_non_null(strstr(PLAN(memory, "\x48\x83\x0c\x24\x00\xc3"), fault));         /* orq $0,(%rsp) */
	assert_null(PLAN(memory, "\x48\x83\x4c\x24\x08\x01\xc3"));                        /* orq $1,8(%rsp) */
}

static void divisions_and_numbers_are_refused_where_sigfpe_is_handled(void **state)
{
	struct kymo_plan made;
	const char *const fault = "may fault, and the process handles SIGFPE";

	assert_non_null(strstr(PLAN(arithmetic, "\xf7\xff\x83\xc0\x01\xc3"), fault));         /* idiv %edi */
	assert_non_null(strstr(PLAN(arithmetic, "\xf2\x0f\x58\xc1\x83\xc0\x01\xc3"), fault)); /* addsd */
	assert_non_null(strstr(PLAN(arithmetic, "\xd8\xc1\x83\xc0\x01\x90\xc3"), fault));     /* fadd */
	assert_null(PLAN(arithmetic, "\x0f\x28\xc1\x83\xc0\x01\xc3"));                        /* movaps %xmm1,%xmm0 */
	assert_null(PLAN(memory, "\xf7\xff\x83\xc0\x01\xc3"));
}

static void alone_there_is_no_group(void **state)
{
	struct kymo_plan made;

	assert_null(PLAN(alone, "\x55\x48\x89\xe5\x48\x89\xf8\x5d\xc3"));
	assert_int_equal(made.n_insns, 1);
	assert_int_equal(made.tactic, KYMO_TACTIC_PUN);
}

/* A pad may use the flags only where the code writes them all before it reads any. */
static void flags_are_dead_where_they_are_written_first(void **state)
{
	struct kymo_plan made;

	assert_null(PLAN(nothing, "\x48\x83\xec\x08\x48\x83\xf8\x01\xc3")); /* sub; cmp */
	assert_true(made.flags_are_dead);
	assert_null(PLAN(nothing, "\x55\x48\x89\xe5\x48\x83\xec\x10\xc9\xc3")); /* push; mov; sub */
	assert_true(made.flags_are_dead);
	assert_null(PLAN(nothing, "\x0f\x94\xc0\x83\xc0\x01\xc3")); /* sete %al; add */
	assert_false(made.flags_are_dead);
	assert_null(PLAN(nothing, "\xff\xc0\x48\x89\xf8\x90\x90\xc3")); /* inc leaves CF */
	assert_false(made.flags_are_dead);
	assert_null(PLAN(nothing, "\xd3\xe0\x48\x89\xf8\x90\x90\xc3")); /* shl %cl by 0 leaves all */
	assert_false(made.flags_are_dead);
	assert_null(PLAN(nothing, "\x48\x89\xf8\xff\xd0\x83\xc0\x01\xc3")); /* a call comes first */
	assert_false(made.flags_are_dead);
	assert_null(PLAN(nothing, "\x48\x89\xf8\x90\x90\xc3")); /* the function returns */
	assert_false(made.flags_are_dead);
}

/* A pad may keep a register below the stack pointer only where the program itself stores there first. */
static void a_word_is_free_where_the_program_pushes_first(void **state)
{
	struct kymo_plan made;

	assert_null(PLAN(nothing, "\x53\x48\x83\xec\x08\x90\x90\xc3")); /* push %rbx */
	assert_int_equal(made.scratch, 8);
	assert_null(PLAN(nothing, "\x41\x54\x48\x83\xec\x08\x90\xc3")); /* push %r12 */
	assert_int_equal(made.scratch, 8);
	assert_null(PLAN(alone, "\x6a\x01\x48\x83\xec\x08\x90\xc3")); /* push $1 */
	assert_int_equal(made.scratch, 8);
	assert_null(PLAN(nothing, "\x66\x53\x48\x83\xec\x08\x90\xc3")); /* push %bx */
	assert_int_equal(made.scratch, 0);
	assert_null(PLAN(nothing, "\xff\x74\x24\xf8\x48\x83\xec\x08\xc3")); /* push -8(%rsp) reads it */
	assert_int_equal(made.scratch, 0);
	assert_null(PLAN(nothing, "\x48\x8b\x44\x24\xf8\x53\x90\xc3")); /* mov -8(%rsp),%rax; push */
	assert_int_equal(made.scratch, 0);
	assert_null(PLAN(nothing, "\x48\x83\xec\x08\x53\x90\xc3")); /* sub $8,%rsp; push */
	assert_int_equal(made.scratch, 0);
	assert_null(PLAN(nothing, "\x48\x89\xfc\x53\x90\x90\xc3")); /* mov %rdi,%rsp; push */
	assert_int_equal(made.scratch, 0);
	assert_null(PLAN(nothing, "\x5b\x53\x90\x90\x90\x90\xc3")); /* pop; push */
	assert_int_equal(made.scratch, 0);
	assert_null(PLAN(nothing, "\x48\x83\xc0\x01\x90\x90\xc3")); /* no push */
	assert_int_equal(made.scratch, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_with_a_load_becomes_a_pun),
		cmocka_unit_test(a_pun_is_preferred_while_nobody_handles_faults),
		cmocka_unit_test(a_load_is_refused_where_sigsegv_is_handled),
		cmocka_unit_test(what_is_sound_is_displaced_whatever_is_handled),
		cmocka_unit_test(probes_of_the_stack_may_fault),
		cmocka_unit_test(divisions_and_numbers_are_refused_where_sigfpe_is_handled),
		cmocka_unit_test(alone_there_is_no_group),
		cmocka_unit_test(a_word_is_free_where_the_program_pushes_first),
		cmocka_unit_test(flags_are_dead_where_they_are_written_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
