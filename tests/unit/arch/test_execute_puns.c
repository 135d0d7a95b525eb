/* Puns of all kinds over instructions of all kinds, run. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "execute.h"
#include "load.h"
#include "room.h"

/*
 * The site is what stands between the two labels; what follows is what jumps rely on. Every instruction is said to be
 * entered from elsewhere, so that none is displaced with others.
 */
/* clang-format off */
#define PUNS                                                                          \
	X("", "push %rbx\n", "mov %rax, %rcx\n xor $0x44332211, %ecx\n ret\n")       \
	X("", "pop %rdi\n", "lea 0x11(%rsp,%rcx), %rax\n mov $7, %ecx\n")            \
	X("", "ret\n", "mov $0x44332211, %ecx\n mov $7, %ecx\n")                     \
	X("", "leave\n", "mov $0x44332211, %ecx\n mov $7, %ecx\n")                   \
	X("", "pushf\n", "adc $0x44332211, %ecx\n mov $7, %ecx\n")                   \
	X("", "movsb\n", "mov $0x44332211, %ecx\n mov $7, %ecx\n")                   \
	X("", "xor %eax, %eax\n", "adc $0x22, %al\n mov $0x1234, %ecx\n ret\n")     \
	X("", "rep stosb\n", "mov $0x1234, %ecx\n mov $7, %edx\n ret\n")            \
	X("", "je 1f\n", "1: adc $0x44332211, %eax\n mov $7, %edx\n")                \
	X("", "jne 1f\n", "mov $0x44332211, %eax\n 1: mov $7, %edx\n")               \
	X("", "jrcxz 1f\n", "mov $0x44332211, %eax\n 1: mov $7, %edx\n")             \
	X("", "loop 1f\n", "mov $0x44332211, %eax\n 1: mov $7, %edx\n")              \
	X("", "loopne 1f\n", "mov $0x44332211, %eax\n 1: mov $7, %edx\n")            \
	X("", "jecxz 1f\n", "mov $0x44332211, %eax\n 1: mov $7, %edx\n")             \
	X("", "jmp 1f\n", "mov $0x44332211, %eax\n 1: mov $7, %edx\n")               \
	X("", "call *%rax\n", "mov $0x44332211, %eax\n mov $7, %edx\n")              \
	X("", "call *(%rsp)\n", "mov $0x44332211, %eax\n mov $7, %edx\n")            \
	X("", "call *0x40(%rsp)\n", "mov $0x44332211, %eax\n mov $7, %edx\n")        \
	X("", "call .+0x4000\n", "mov $0x44332211, %eax\n mov $7, %edx\n")           \
	X("", "jmp *%rdx\n", "mov $0x44332211, %eax\n mov $7, %edx\n")               \
	X("", "ret $16\n", "mov $0x44332211, %eax\n mov $7, %edx\n")                 \
	X("", "mov %rsi, %rbx\n", "mov $0x44332211, %eax\n mov $7, %edx\n")          \
	X("", "mov 8(%rdi), %rax\n", "mov %rax, 0x10(%rdi,%rcx)\n mov $7, %edx\n")   \
	X("", "lock xadd %eax, (%rdi)\n", "mov $0x44332211, %ecx\n mov $7, %edx\n")  \
	X("", "movups (%rdi), %xmm2\n", "mov $0x44332211, %ecx\n mov $7, %edx\n")    \
	X("", "lea 0x4000(%rip), %rax\n", "mov $0x44332211, %ecx\n mov $7, %edx\n")  \
	X("", "cmpl $0x55667788, 0x4000(%rip)\n", "mov $0x44332211, %ecx\n ret\n")   \
	X("", "movabs $0x1122334455667788, %r9\n", "mov $0x44332211, %ecx\n ret\n")  \
	X("mov $102, %eax\n", "syscall\n", "mov $0x22, %cl\n mov $7, %ecx\n ret\n")  \
	X("mov $7, %edx\n dec %rsi\n", "dec %cl\n", "jnz .-2\n mov $0x44332211, %eax\n ret\n") \
	X("movabs $0x1122334455667788, %rdx\n", "xor %ebx, %ebx\n", "ret\n mov $7, %edx\n ret\n")

/* clang-format on */

#define X(before, site, after) \
	".balign 16\n .quad 2f - ., 4f - 2f, 3f - 2f, 5f - 2f\n 2: " before " 3: " site " 4: " after " 5:\n"
__asm__(".pushsection .rodata\n .balign 16\n puns:\n" PUNS ".balign 16\n puns_end:\n .popsection\n");
#undef X

extern const uint8_t puns[], puns_end[];

#define X(before, site, after) before site "| " after,
static const char *const pun_texts[] = { PUNS };
#undef X

struct pun {
	const char *name;
	struct kymo_span text;
	uint64_t site;
	uint64_t entries[16];
	size_t n_entries;
};

/* The site may stand at the end of a page: `cut` of its bytes are in front of it, or 0. */
static const uint8_t *next_pun(const uint8_t *at, unsigned int cut, struct pun *ret)
{
	uint64_t head[4];
	char name[128];

	memcpy(head, at, sizeof(head));
	ret->text.bytes = at + head[0];
	ret->text.size = head[3];
	ret->text.vaddr = cut ? 0x3000 - head[2] - cut : 0x2400;
	ret->site = ret->text.vaddr + head[2];
	ret->n_entries = 0;
	for (uint64_t i = 0; i < ret->text.size;) {
		int length = kymo_disassemble(ret->text.bytes + i, ret->text.size - i, 0, name, sizeof(name));

		assert_true(length > 0 && ret->n_entries < kymo_countof(ret->entries));
		ret->entries[ret->n_entries++] = ret->text.vaddr + i;
		i += (uint64_t)length;
	}
	return at + (head[0] + head[3] + 15) / 16 * 16;
}

/* Plan the site with `tactic`, in the first of many small rooms that leads to it. */
static size_t plan_pun(const struct pun *pun, enum kymo_tactic tactic, unsigned int salt, struct kymo_plan *plans)
{
	struct kymo_extent function = { pun->text.vaddr, pun->text.vaddr + pun->text.size };
	struct kymo_module_code module = {
		.text = &pun->text,
		.n_text = 1,
		.functions = &function,
		.n_functions = 1,
		.entries = pun->entries,
		.n_entries = pun->n_entries,
		.position_independent = true,
	};
	struct kymo_entry_map *map;
	struct room room;
	size_t n = 0;

	assert_int_equal(kymo_entry_map_create(&module, &map), 0);
	room_init(&room, &module);
	for (unsigned int i = 0; i < 256 && !n; i++) {
		int64_t low = ((int64_t)((i + salt) * 37 % 256) - 128) * 0x1000000;

		/* Not a new one each time: what ASan keeps of so many slows down each fork() that compares. */
		room.n_free = room.n_taken = 0;
		/* Copies are where the first MiB of one would be; nothing else is so near. */
		room_free(&room, low + 0x100000, low + 0x1000000);
		if (kymo_plan(&module, map, &room.ops, pun->site, plans, &n, NULL, NULL) ||
		    plans[n - 1].tactic != tactic || low < -0x60000000)
			n = 0;
	}
	room_deinit(&room);
	kymo_entry_map_destroy(map);
	return n;
}

static void puns_do_what_was_there(void **state)
{
	static const enum kymo_tactic tactics[] = { KYMO_TACTIC_PUN, KYMO_TACTIC_PREFIX, KYMO_TACTIC_SUCCESSOR,
						    KYMO_TACTIC_NEIGHBOR };
	unsigned int planned[KYMO_N_TACTICS] = { 0 }, compared[KYMO_N_TACTICS] = { 0 };
	struct kymo_plan plans[KYMO_PLANS_MAX];
	const uint8_t *at = puns, *next = at;
	struct pun pun;

	for (size_t i = 0; i < kymo_countof(pun_texts); i++, at = next) {
		unsigned int of_this = 0;

		for (unsigned int way = 0; way < kymo_countof(tactics) * 5; way++) {
			enum kymo_tactic tactic = tactics[way % kymo_countof(tactics)];
			size_t n;

			next = next_pun(at, way / kymo_countof(tactics), &pun);
			n = plan_pun(&pun, tactic, (unsigned int)i, plans);
			planned[tactic] += n > 0;
			of_this += n > 0;
			/* Where the whole text begins; and at the evicted instruction, as a branch to it does. */
			for (uint64_t seed = 1; n && seed <= 4; seed++)
				compared[tactic] +=
					both_do_the_same(plans, n, &pun.text, pun.text.vaddr, seed * 1000 + i);
			for (uint64_t seed = 5; n == 2 && seed <= 8; seed++)
				compared[tactic] +=
					both_do_the_same(plans, n, &pun.text, plans[0].vaddr, seed * 1000 + i);
		}
		if (!of_this)
			fail_msg("%s: no plan was found", pun_texts[i]);
	}
	assert_ptr_equal(at, puns_end);
	for (size_t i = 0; i < kymo_countof(tactics); i++) {
		print_message("%s: %u planned, %u compared\n", kymo_tactic_name(tactics[i]), planned[tactics[i]],
			      compared[tactics[i]]);
		assert_true(planned[tactics[i]] >= 10 && compared[tactics[i]] >= planned[tactics[i]]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puns_do_what_was_there),
	};

	return execute_init() ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
