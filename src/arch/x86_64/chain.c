/*
 * The callers of a location, by frame pointers: each leads to the caller's one, and to the return address behind that.
 *
 * No word of the stack is believed. A frame pointer is followed if it is a multiple of 8, and further up than the one
 * before it. The first may be at the stack pointer. Both words that it leads to must be below the end of what can be
 * read for certain (copy.c). The pad has it in a register from when it looks at it until it uses it: no other thread
 * and no signal handler can change it between.
 *
 * The chain goes into the ring as it is followed, behind the rest of the record, which has room for the longest. The
 * record ends where the chain has ended, and counts from then on. So nothing is below the frame but three words, a
 * restart of the sequence begins anew, and no word is read twice.
 */
#include "arch/x86_64/chain.h"

#include <stddef.h>

#include "arch/x86_64/copy.h"
#include "arch/x86_64/frame.h"
#include "wire/event.h"

#define WORDS_AT 24 /* in struct kymo_wire_chain */
_Static_assert(sizeof(struct kymo_wire_chain) == 40 && offsetof(struct kymo_wire_chain, words) == WORDS_AT,
	       "the offsets below");

const struct kymo_fetch *x86_chain(const struct kymo_pad_event *event)
{
	const struct kymo_fetch *last = event->n_args ? &event->args[event->n_args - 1] : NULL;

	return last && last->kind == KYMO_FETCH_CHAIN ? last : NULL;
}

uint32_t x86_chain_size(const struct kymo_pad_event *event)
{
	const struct kymo_fetch *chain = x86_chain(event);

	return chain ? (uint32_t)sizeof(struct kymo_wire_chain) + 8u * chain->limit : 0;
}

/* mov %reg,disp(%r11) */
static void put(struct code *c, unsigned int reg, unsigned int disp)
{
	byte(c, 0x49 | (reg >> 3) << 2);
	byte(c, 0x89);
	byte(c, 0x43 | (reg & 7) << 3);
	byte(c, disp);
}

/* Word `i` at the stack pointer, which is in rax, if that is not above r10; else 0. */
static void put_word(struct code *c, unsigned int i)
{
	struct label none = { .n = 0 };

	EMIT(c, 0x31, 0xd2);       /* xor %edx,%edx */
	EMIT(c, 0x4c, 0x39, 0xd0); /* cmp %r10,%rax */
	JA(c, &none);
	EMIT(c, 0x48, 0x8b, 0x50); /* mov 8 * i(%rax),%rdx */
	byte(c, 8 * i);
	bind(c, &none);
	put(c, RDX, WORDS_AT + 8 * i);
}

/* rax: the stack pointer; r10: the last place of two words; r11: where the chain goes, and behind it then. */
static void follow(struct code *c)
{
	struct label done = { .n = 0 };
	size_t again;

	EMIT(c, 0x48, 0xff, 0xc8); /* dec %rax: the first may be at the stack pointer */
	EMIT(c, 0x48, 0x89, 0xea); /* mov %rbp,%rdx */
	again = c->n;
	EMIT(c, 0x48, 0x39, 0xc2);       /* cmp %rax,%rdx */
	branch(c, &done, "\x0f\x86", 2); /* jbe */
	EMIT(c, 0x4c, 0x39, 0xd2);       /* cmp %r10,%rdx */
	JA(c, &done);
	EMIT(c, 0xf6, 0xc2, 0x07); /* test $7,%dl */
	JNE(c, &done);
	EMIT(c, 0x48, 0x89, 0xd0);       /* mov %rdx,%rax */
	EMIT(c, 0x48, 0x8b, 0x50, 0x08); /* mov 8(%rax),%rdx */
	put(c, RDX, 0);
	EMIT(c, 0x48, 0x8b, 0x10);               /* mov (%rax),%rdx */
	EMIT(c, 0x49, 0x83, 0xc3, 0x08);         /* add $8,%r11 */
	rsp_slot(c, 0x3b, R11, BELOW_CHAIN_END); /* cmp last(%rsp),%r11 */
	branch_back(c, "\x0f\x82", 2, again);    /* jb */
	bind(c, &done);
}

void x86_store_chain(struct code *c, const struct kymo_pad_env *env, const struct x86_pad_site *site,
		     const struct kymo_fetch *fetch)
{
	rsp_slot(c, 0x89, R10, BELOW_RING);
	EMIT(c, 0x4d, 0x01, 0xd3); /* add %r10,%r11 */
	rsp_slot(c, 0x89, R11, BELOW_CHAIN);
	x86_find_stack_end(c, env);
	rsp_slot(c, 0x8b, R11, BELOW_CHAIN);
	movabs(c, RDX, site->address);
	put(c, RDX, 0);
	put(c, RAX, 8);
	put(c, RBP, 16);
	EMIT(c, 0x49, 0x83, 0xea, 0x08); /* sub $8,%r10: the last place of a word */
	put_word(c, 0);
	EMIT(c, 0x49, 0x83, 0xea, 0x08);
	put_word(c, 1);
	EMIT(c, 0x49, 0x83, 0xc3, sizeof(struct kymo_wire_chain)); /* add $40,%r11 */
	if (fetch->limit) {
		EMIT(c, 0x49, 0x8d, 0x93); /* lea 8 * limit(%r11),%rdx */
		imm32(c, 8 * fetch->limit);
		rsp_slot(c, 0x89, RDX, BELOW_CHAIN_END);
		follow(c);
	}
	rsp_slot(c, 0x8b, RAX, BELOW_CHAIN);
	EMIT(c, 0x4c, 0x89, 0xda);              /* mov %r11,%rdx */
	EMIT(c, 0x29, 0xc2);                    /* sub %eax,%edx */
	EMIT(c, 0x66, 0x89, 0x50, (uint8_t)-2); /* mov %dx,-2(%rax) */
	rsp_slot(c, 0x8b, R10, BELOW_RING);
	EMIT(c, 0x4d, 0x29, 0xd3); /* sub %r10,%r11 */
}
