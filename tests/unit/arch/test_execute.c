/* Windows of plain jumps, run: snippets of assembler, then code of libc with plans of all tactics in it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "execute.h"
#include "load.h"
#include "room.h"

/* ---- by hand --------------------------------------------------------------------------------- */

/* Each line is a function of its own, planned at its start. */
/* clang-format off */
#define SNIPPETS                                                  \
	X("call *(%rsp)\n nop\n nop\n", 0)                        \
	X("nop\n nop\n call *(%rsp)\n", 1)                        \
	X("call *-136(%rsp)\n", 1)                                \
	X("nop\n call *120(%rsp)\n", 1)                           \
	X("nop\n call *127(%rsp)\n", 1)                           \
	X("call *0x120(%rsp)\n", 1)                               \
	X("nop\n nop\n call *(%rsp,%rcx,8)\n", 1)                 \
	X("nop\n call *8(%rsp,%rcx,8)\n", 1)                      \
	X("call *-16(%rsp)\n nop\n", 0)                           \
	X("nop\n call *-16(%rsp)\n", 1)                           \
	X("nop\n nop\n call *(%r12)\n", 1)                        \
	X("nop\n nop\n nop\n call *%rax\n", 1)                    \
	X("call *0x4000(%rip)\n", 1)                              \
	X("call .+0x4000\n", 1)                                   \
	X("call .-0x4000\n", 1)                                   \
	X("push (%rsp)\n push %rsp\n pop (%rsp)\n", 1)            \
	X("push 8(%rsp)\n push 0x4000(%rip)\n", 1)                \
	X("push %rsp\n pop %rsp\n ret $24\n", 1)                  \
	X("mov $5, %ecx\n", 1)                                    \
	X("nop\n nop\n loop .+0x20\n nop\n", 1)                   \
	X("nop\n nop\n loope .+0x20\n nop\n", 1)                  \
	X("nop\n nop\n loopne .-0x20\n nop\n", 1)                 \
	X("nop\n nop\n jrcxz .+0x20\n nop\n", 1)                  \
	X("nop\n nop\n jecxz .+0x20\n", 1)                        \
	X("addr32 loop .+0x20\n nop\n nop\n", 1)                  \
	X("dec %cl\n jnz .-2\n nop\n", 1)                         \
	X("jo .+0x20\n js .+0x20\n jp .+0x20\n", 1)               \
	X("jb .+0x20\n jbe .+0x20\n jl .+0x20\n", 1)              \
	X("jg .+0x4000\n", 1)                                     \
	X("jne .+0x4000\n", 1)                                    \
	X("jmp .+0x4000\n", 1)                                    \
	X("nop\n jmp .+0x20\n nop\n nop\n", 1)                    \
	X("jmp *0x4000(%rip)\n", 1)                               \
	X("nop\n nop\n jmp *(%rsp)\n", 1)                         \
	X("lea 0x4000(%rip), %rax\n", 1)                          \
	X("cmpl $0x12345678, 0x4000(%rip)\n", 1)                  \
	X("cmpb $1, 0x4000(%rip)\n", 1)                           \
	X("lock cmpxchg %rdx, 0x4000(%rip)\n", 1)                 \
	X("lock xaddl %edx, 0x4000(%rip)\n", 1)                   \
	X("movups 0x4000(%rip), %xmm3\n", 1)                      \
	X("pshufd $27, 0x4000(%rip), %xmm1\n", 1)                 \
	X("movl $7, 0x4000(%rip)\n", 1)                           \
	X("imul $1000, 0x4000(%rip), %ecx\n", 1)                  \
	X("rep movsb\n rep stosb\n nop\n", 1)                     \
	X("pushf\n adc %rax, %rbx\n sbb %rcx, %rdx\n", 1)         \
	X("push %rbp\n mov %rsp, %rbp\n leave\n ret\n", 1)        \
	X("mov %edi, -4(%rsp)\n mov -4(%rsp), %eax\n", 1)

/* clang-format on */

#define X(text, planned) ".balign 16\n .quad 1f - ., 2f - 1f\n 1: " text " 2:\n"
__asm__(".pushsection .rodata\n .balign 16\n snippets:\n" SNIPPETS ".balign 16\n snippets_end:\n .popsection\n");
#undef X

extern const uint8_t snippets[], snippets_end[];

#define X(text, planned) { text, planned },
static const struct {
	const char *text;
	bool planned;
} snippet_texts[] = { SNIPPETS };
#undef X

/* Plan the start of a function that is all there is of its module. */
static bool plan_alone(const uint8_t *code, size_t size, struct kymo_plan *ret)
{
	struct kymo_span text = { 0x1100, code, size };
	struct kymo_extent function = { 0x1100, 0x1100 + size };
	struct kymo_module_code module = {
		.text = &text,
		.n_text = 1,
		.functions = &function,
		.n_functions = 1,
		.position_independent = true,
	};
	struct kymo_refusal refusals[KYMO_N_TACTICS];
	struct kymo_plan plans[KYMO_PLANS_MAX];
	struct kymo_entry_map *map;
	size_t n, n_plans;
	int err;

	assert_int_equal(kymo_entry_map_create(&module, &map), 0);
	err = kymo_plan(&module, map, NULL, 0x1100, plans, &n_plans, refusals, &n);
	if (!err)
		*ret = plans[0];
	kymo_entry_map_destroy(map);
	return !err;
}

static void snippets_do_the_same_elsewhere(void **state)
{
	const uint8_t *at = snippets;

	for (size_t i = 0; i < kymo_countof(snippet_texts); i++) {
		struct kymo_plan plan;
		unsigned int compared = 0;
		struct kymo_span text = { .vaddr = 0x1100 };
		uint64_t start, size;

		memcpy(&start, at, 8);
		memcpy(&size, at + 8, 8);
		text.bytes = at + start;
		text.size = size;
		if (plan_alone(at + start, size, &plan) != snippet_texts[i].planned)
			fail_msg("%s: the plan is not as told", snippet_texts[i].text);
		for (uint64_t seed = 1; seed <= 64 && compared < 6 && snippet_texts[i].planned; seed++)
			compared += both_do_the_same(&plan, 1, &text, 0x1100, seed * 1000 + i);
		if (snippet_texts[i].planned && !compared)
			fail_msg("%s: never compared", snippet_texts[i].text);
		at += (start + size + 15) / 16 * 16;
	}
	assert_ptr_equal(at, snippets_end);
}

/* ---- from libc ------------------------------------------------------------------------------- */

/* What differs from run to run, or touches what the child itself lives on. */
static bool is_repeatable(const uint8_t *bytes, size_t size)
{
	static const char *const words[] = { "rdtsc",  "rdrand", "rdseed", "cpuid",  "rdpid",  "xgetbv",
					     "xsave",  "xrstor", "popf",   "fs:",    "gs:",    "fsbase",
					     "gsbase", "pkru",   "env",    "fxsave", "fnsave", "ssp" };
	char text[128];

	/* From any byte on, since nothing is known of where control goes. */
	for (size_t i = 0; i < size; i++) {
		bool is_wide = bytes[i] == 0x0f && i + 1 < size;

		if (bytes[i] == 0xcd || (is_wide && (bytes[i + 1] == 0x05 || bytes[i + 1] == 0x34)))
			return false;
		kymo_disassemble(bytes + i, size - i, 0, text, sizeof(text));
		for (size_t w = 0; w < kymo_countof(words); w++) {
			if (strstr(text, words[w]))
				return false;
		}
	}
	return true;
}

static const struct kymo_span *text_of(const struct kymo_module_code *code, uint64_t vaddr)
{
	const struct kymo_span *span = code->text;

	while (vaddr < span->vaddr || vaddr >= span->vaddr + span->size)
		span++;
	return span;
}

/* All bytes that run with the plans, and all that are relied on. */
static bool can_run(const struct kymo_plan *plans, size_t n, const struct kymo_span *text)
{
	uint64_t low = plans[0].vaddr, high = low + plans[0].lock_size;

	for (size_t i = 1; i < n; i++) {
		low = plans[i].vaddr < low ? plans[i].vaddr : low;
		high = plans[i].vaddr + plans[i].lock_size > high ? plans[i].vaddr + plans[i].lock_size : high;
	}
	return high <= text->vaddr + text->size &&
	       is_repeatable(text->bytes + (low - text->vaddr), (size_t)(high - low));
}

static void code_of_libc_does_the_same_with_plans_in_it(void **state)
{
	unsigned int planned[KYMO_N_TACTICS] = { 0 }, compared = 0, all = 0;
	struct kymo_entry_map *map;
	struct loaded libc;
	struct room room;

	if (!load("/lib/x86_64-linux-gnu/libc.so.6", &libc)) {
		print_message("skipped: there is no /lib/x86_64-linux-gnu/libc.so.6\n");
		skip();
	}
	assert_int_equal(kymo_entry_map_create(&libc.code, &map), 0);
	room_init(&room, &libc.code);
	for (uint64_t seed = 1; all < 480 && seed < 20000; seed++) {
		const struct kymo_extent *function = &libc.code.functions[mix(seed) % libc.code.n_functions];
		uint64_t vaddr = function->start + mix(seed + 7) % (function->end - function->start);
		int64_t corner = ((int64_t)(mix(seed + 9) % 200) - 100) * 0x1000000;
		struct kymo_plan plans[KYMO_PLANS_MAX];
		const struct kymo_span *text = text_of(&libc.code, vaddr);
		size_t n = 0;

		/* Small rooms and large ones, so that all tactics have their turn; but not where displaced copies
		 * or libc are. */
		room.n_free = room.n_taken = 0;
		if (corner == -0x2000000 || (corner >= 0xc000000 && corner <= 0x10000000))
			continue;
		if (seed % 2) {
			room_free(&room, corner + 0x2000000, corner + 0x2f00000);
		} else {
			room_free(&room, -0x60000000, -0x100000);
			room_free(&room, 0x2000000, 0xe000000);
			room_free(&room, 0x13000000, 0x60000000);
		}
		if (kymo_plan(&libc.code, map, &room.ops, vaddr, plans, &n, NULL, NULL) || !can_run(plans, n, text) ||
		    planned[plans[n - 1].tactic] >= 80)
			continue;
		planned[plans[n - 1].tactic]++;
		all++;
		compared += both_do_the_same(plans, n, text, plans[seed % n].vaddr, seed);
	}
	for (int tactic = KYMO_TACTIC_NONE + 1; tactic < KYMO_N_TACTICS; tactic++) {
		print_message("%u %s\n", planned[tactic], kymo_tactic_name((enum kymo_tactic)tactic));
		assert_true(planned[tactic] >= 10);
	}
	print_message("%u sites, %u compared\n", all, compared);
	assert_true(compared >= all * 3 / 4);
	room_deinit(&room);
	kymo_entry_map_destroy(map);
	unload(&libc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(snippets_do_the_same_elsewhere),
		cmocka_unit_test(code_of_libc_does_the_same_with_plans_in_it),
	};

	return execute_init() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
