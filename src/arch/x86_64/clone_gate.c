/*
 * Gates: what each catch leads to, before the copy.
 *
 *	cmpl $high,%fs:position+4	does the word point into this arena?
 *	je   the copy
 *	lea  -128(%rsp),%rsp		no: below the red zone
 *	call slow
 *	lea  128(%rsp),%rsp
 *	jmp  the copy
 *
 * Where code of the function may read the flags, they are kept in a register that is saved below the red zone. The word
 * is 0 in a new thread, in which `slow` sets it. It has the address of another arena after a recorder was killed.
 *
 * `slow` asks the kernel for nothing, as a program may be forbidden to. It takes a ring only if that has memory
 * already.
 */
#include "arch/x86_64/clone_gate.h"

#include <string.h>

#include "arch/clone.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/emit.h"
#include "wire/clones.h"

#define RING_SHIFT 17
_Static_assert(KYMO_WIRE_ARENA_STRIDE == 1u << RING_SHIFT, "rings are counted by a shift");
_Static_assert(sizeof(struct kymo_wire_arena_thread) == 16, "so are threads");

static void emit_compare(struct code *c, const struct kymo_clone_env *env)
{
	EMIT(c, 0x64, 0x81, 0x3c, 0x25); /* cmpl $high,%fs:position+4 */
	imm32(c, (int64_t)env->position + 4);
	imm32(c, (int64_t)(env->arena >> 32));
}

static void emit_lower(struct code *c)
{
	EMIT(c, 0x48, 0x8d, 0x64, 0x24, 0x80); /* lea -128(%rsp),%rsp */
}

static void emit_raise(struct code *c)
{
	EMIT(c, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00); /* lea 128(%rsp),%rsp */
}

static void emit_call(struct code *c, uint64_t target)
{
	byte(c, 0xe8);
	rel32_to(c, target);
}

bool kymo_clone_is_gate_call(const uint8_t bytes[KYMO_CLONE_GATE_CALL], uint64_t back, uint64_t slow)
{
	int32_t distance;

	memcpy(&distance, bytes + 1, sizeof(distance));
	return bytes[0] == 0xe8 && back + (uint64_t)(int64_t)distance == slow;
}

void x86_clone_emit_gate(struct code *c, const struct kymo_clone_env *env, bool keeps_flags, uint64_t copy)
{
	struct label is_in = { .n = 0 };

	if (!keeps_flags) {
		emit_compare(c, env);
		EMIT(c, 0x0f, 0x84); /* je */
		rel32_to(c, copy);
		emit_lower(c);
		emit_call(c, env->slow);
		emit_raise(c);
		return;
	}
	emit_lower(c);
	EMIT(c, 0x50);                   /* push %rax */
	EMIT(c, 0x9f, 0x0f, 0x90, 0xc0); /* lahf; seto %al */
	emit_compare(c, env);
	JE(c, &is_in);
	emit_call(c, env->slow);
	bind(c, &is_in);
	EMIT(c, 0x04, 0x7f, 0x9e); /* add $0x7f,%al; sahf */
	EMIT(c, 0x58);             /* pop %rax */
	emit_raise(c);
}

/* The ring's number is in eax, and the arena in rdx: note in the table of which thread it is. */
static void emit_note(struct code *c, int32_t tid)
{
	EMIT(c, 0x89, 0xc1);                                           /* mov %eax,%ecx */
	EMIT(c, 0x48, 0xc1, 0xe1, 0x04);                               /* shl $4,%rcx */
	EMIT(c, 0x64, 0x48, 0x8b, 0x34, 0x25, 0x00, 0x00, 0x00, 0x00); /* mov %fs:0,%rsi */
	EMIT(c, 0x48, 0x89, 0xb4, 0x0a);                               /* mov %rsi,TABLE(%rdx,%rcx) */
	imm32(c, KYMO_WIRE_ARENA_TABLE);
	EMIT(c, 0x64, 0x8b, 0x34, 0x25); /* mov %fs:tid,%esi */
	imm32(c, tid);
	EMIT(c, 0x89, 0xb4, 0x0a); /* mov %esi,TABLE+8(%rdx,%rcx) */
	imm32(c, KYMO_WIRE_ARENA_TABLE + 8);
}

int kymo_clone_emit_slow(const struct kymo_clone_env *env, int32_t tid, uint8_t *out, size_t size)
{
	struct code code = { .out = out, .size = size }, *c = &code;
	struct label sink = { .n = 0 }, has = { .n = 0 };

	EMIT(c, 0x50, 0x51, 0x52, 0x56); /* push %rax, %rcx, %rdx, %rsi */
	movabs(c, RDX, env->arena);
	EMIT(c, 0x8b, 0x02);       /* mov next(%rdx),%eax */
	EMIT(c, 0x3b, 0x42, 0x04); /* cmp ready(%rdx),%eax */
	JAE(c, &sink);
	EMIT(c, 0xb8, 0x01, 0x00, 0x00, 0x00); /* mov $1,%eax */
	EMIT(c, 0xf0, 0x0f, 0xc1, 0x02);       /* lock xadd %eax,next(%rdx) */
	EMIT(c, 0x3b, 0x42, 0x04);             /* cmp ready(%rdx),%eax */
	JAE(c, &sink);
	emit_note(c, tid);
	EMIT(c, 0x48, 0xc1, 0xe0, RING_SHIFT); /* shl $RING_SHIFT,%rax */
	EMIT(c, 0x48, 0x8d, 0x84, 0x02);       /* lea FIRST(%rdx,%rax),%rax */
	imm32(c, KYMO_WIRE_ARENA_FIRST);
	JMP(c, &has);
	bind(c, &sink);
	EMIT(c, 0xf0, 0xff, 0x42, 0x08); /* lock incl sunk(%rdx) */
	EMIT(c, 0x48, 0x8d, 0x82);       /* lea SINK(%rdx),%rax */
	imm32(c, KYMO_WIRE_ARENA_SINK);
	bind(c, &has);
	EMIT(c, 0x64, 0x48, 0x89, 0x04, 0x25); /* mov %rax,%fs:position */
	imm32(c, env->position);
	EMIT(c, 0x5e, 0x5a, 0x59, 0x58, 0xc3); /* pop %rsi, %rdx, %rcx, %rax; ret */
	return code.full ? -ENOSPC : (int)code.n;
}

int kymo_clone_emit_hop(uint64_t gate, uint64_t to, uint8_t *out, size_t size)
{
	struct code code = { .out = out, .size = size, .address = to }, *c = &code;

	x86_emit_restore(c);
	byte(c, 0xe9); /* jmp gate */
	rel32_to(c, gate);
	return code.full ? -ENOSPC : (int)code.n;
}
