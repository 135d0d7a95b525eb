/*
 * Guards on the system calls that make threads and processes. What they are for is said in arch/pad.h.
 *
 * A guard displaces `mov $number,%eax; syscall`. In general nothing is displaced with a system call: a thread that was
 * stopped in the call restarts it two bytes back, in the middle of the jump. These calls do not sleep, but for a parent
 * that waits for its vfork child, and such a parent can't be stopped; a thread may be stopped right after the call with
 * an order to restart it: that is checked when the guard is put in (kymo_remote_restarts()).
 *
 * Between the two instructions rax, rcx, r11 and the flags are free: the first is written, the others are clobbered by
 * `syscall`. After them, code that looks at the result first writes the flags, which kymo_guard_find() checks. So a
 * guard needs no stack, which matters: the child may have another one, or share its parent's.
 */
#include <errno.h>
#include <linux/sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/guard.h"
#include "arch/pad.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/mute.h"
#include "base/page.h"
#include "wire/shared.h"

#define MOV_OPCODE 0xb8
#define MOV_SIZE 5
#define GUARD_SIZE 7
#define RSEQ_CPU_ID 4

/* The call's number if a guard's two instructions are at `bytes`, else 0. */
static uint32_t number_at(const uint8_t *bytes, size_t size)
{
	uint32_t number;

	if (size < GUARD_SIZE || bytes[0] != MOV_OPCODE || bytes[5] != 0x0f || bytes[6] != 0x05)
		return 0;
	memcpy(&number, bytes + 1, sizeof(number));
	return number == SYS_clone || number == SYS_clone3 || number == SYS_vfork || number == SYS_prctl ? number : 0;
}

bool kymo_guard_mutes(const struct kymo_plan *plan)
{
	return number_at(plan->original, plan->window) == SYS_prctl;
}

/* push %rdi (vfork keeps its return address there), or nothing; then an instruction that writes all flags. */
static bool is_result_tested(const uint8_t *bytes, size_t size)
{
	if (size && bytes[0] == 0x57)
		bytes++, size--;
	if (size && (bytes[0] & 0xfe) == 0x48)
		bytes++, size--;
	return size && (bytes[0] == 0x3d || bytes[0] == 0x85 || bytes[0] == 0x83);
}

static bool is_guardable(const struct kymo_entry_map *map, uint64_t vaddr, const uint8_t *bytes, size_t size)
{
	if (!x86_test(map, X86_STARTS, vaddr) || !kymo_page_has(vaddr, KYMO_JUMP_SIZE))
		return false;
	for (unsigned int i = 1; i < GUARD_SIZE; i++)
		if (kymo_entry_map_has(map, vaddr + i))
			return false;
	return is_result_tested(bytes + GUARD_SIZE, size - GUARD_SIZE);
}

int kymo_guard_find(const struct kymo_module_code *code, const struct kymo_entry_map *map, struct kymo_plan *ret,
		    size_t max)
{
	size_t n = 0;

	for (size_t k = 0; k < code->n_text; k++) {
		const struct kymo_span *span = &code->text[k];

		for (size_t i = 0; i + GUARD_SIZE <= span->size; i++) {
			const uint8_t *mov = memchr(span->bytes + i, MOV_OPCODE, span->size - i);
			uint32_t number;

			if (!mov)
				break;
			i = (size_t)(mov - span->bytes);
			number = number_at(mov, span->size - i);
			if (!number)
				continue;
			if (!is_guardable(map, span->vaddr + i, span->bytes + i, span->size - i)) {
				if (number == SYS_prctl) /* sequences are sound without */
					continue;
				return -EPERM;
			}
			if (n == max)
				return -ENOSPC;
			ret[n] = (struct kymo_plan){
				.tactic = KYMO_TACTIC_GROUP,
				.vaddr = span->vaddr + i,
				.window = GUARD_SIZE,
				.patch_size = KYMO_JUMP_SIZE,
				.lock_size = GUARD_SIZE,
				.n_insns = 2,
				.insn_offset = { 0, MOV_SIZE, GUARD_SIZE },
			};
			memcpy(ret[n++].original, span->bytes + i, GUARD_SIZE);
		}
	}
	return (int)n;
}

/* rcx = this thread's pointer. Its control block is glibc's: the caller is glibc. */
static void load_self(struct code *c)
{
	EMIT(c, 0x64, 0x48, 0x8b, 0x0c, 0x25, 0x10, 0, 0, 0); /* mov %fs:16,%rcx */
}

/* r11 = first place of the list; then the loop's end */
static void each_place(struct code *c, const struct kymo_pad_env *env)
{
	movabs(c, R11, env->vforks + offsetof(struct kymo_wire_vforks, threads));
}

static void emit_count(struct code *c, const struct kymo_pad_env *env, bool up)
{
	movabs(c, R11, env->vforks + offsetof(struct kymo_wire_vforks, n));
	EMIT(c, 0xf0);
	if (up)
		EMIT(c, 0x41, 0xff, 0x03); /* lock incl (%r11) */
	else
		EMIT(c, 0x41, 0xff, 0x0b); /* lock decl (%r11) */
}

/* The list gets this thread. A full list is as good as unsafe: `n` stays up for ever. Ends after the loop, `n`
 * counted. */
static void enlist(struct code *c, const struct kymo_pad_env *env)
{
	struct label found = { .n = 0 };
	size_t again;

	emit_count(c, env, true);
	load_self(c);
	each_place(c, env);
	again = c->n;
	EMIT(c, 0x31, 0xc0);                   /* xor %eax,%eax */
	EMIT(c, 0xf0, 0x49, 0x0f, 0xb1, 0x0b); /* lock cmpxchg %rcx,(%r11) */
	JE(c, &found);
	EMIT(c, 0x49, 0x83, 0xc3, 0x08); /* add $8,%r11 */
	movabs(c, RAX, env->vforks + sizeof(struct kymo_wire_vforks));
	EMIT(c, 0x49, 0x39, 0xc3); /* cmp %rax,%r11 */
	EMIT(c, 0x0f, 0x82);       /* jb again */
	imm32(c, (int64_t)again - (int64_t)(c->n + 4));
	bind(c, &found);
}

/* The list forgets this thread, if it was on it; then `n` counts down. rax is kept. */
static void delist(struct code *c, const struct kymo_pad_env *env)
{
	struct label found = { .n = 0 }, done = { .n = 0 };

	load_self(c);
	each_place(c, env);
	for (unsigned int i = 0; i < KYMO_WIRE_MAX_VFORKS; i++) {
		EMIT(c, 0x49, 0x39, 0x0b); /* cmp %rcx,(%r11) */
		JE(c, &found);
		EMIT(c, 0x49, 0x83, 0xc3, 0x08);
	}
	JMP(c, &done);
	bind(c, &found);
	EMIT(c, 0x49, 0xc7, 0x03, 0, 0, 0, 0); /* movq $0,(%r11) */
	emit_count(c, env, false);
	bind(c, &done);
}

/*
 * A new thread with a control block of its own in rcx: mark it as unregistered, if the block looks like glibc's
 * (aligned to 64, so that its first words are in one page; points to itself). Else sequences are not safe any more.
 */
static void mark_thread(struct code *c, const struct kymo_pad_env *env)
{
	struct label not_glibcs = { .n = 0 }, done = { .n = 0 };

	EMIT(c, 0xf6, 0xc1, 0x3f); /* test $63,%cl */
	JNE(c, &not_glibcs);
	EMIT(c, 0x48, 0x39, 0x49, 0x10); /* cmp %rcx,16(%rcx) */
	JNE(c, &not_glibcs);
	rip_to(c, "\x48\x8b\x05", 3, env->live + KYMO_PAD_LIVE_RSEQ_OFFSET, 0); /* mov live+16(%rip),%rax */
	EMIT(c, 0x48, 0x85, 0xc0);                                              /* test %rax,%rax: not known yet */
	JE(c, &done);
	EMIT(c, 0xc7, 0x44, 0x01, RSEQ_CPU_ID, 0xff, 0xff, 0xff, 0xff); /* movl $-1,CPU_ID(%rcx,%rax) */
	JMP(c, &done);
	bind(c, &not_glibcs);
	emit_count(c, env, true);
	bind(c, &done);
}

/* flags of the new task in eax, its control block in rcx */
static void load_arguments(struct code *c, uint32_t number)
{
	if (number == SYS_clone3) {
		EMIT(c, 0x48, 0x8b, 0x07);       /* mov (%rdi),%rax: struct clone_args, flags */
		EMIT(c, 0x48, 0x8b, 0x4f, 0x38); /* mov 56(%rdi),%rcx: tls */
	} else if (number == SYS_clone) {
		EMIT(c, 0x48, 0x89, 0xf8); /* mov %rdi,%rax */
		EMIT(c, 0x4c, 0x89, 0xc1); /* mov %r8,%rcx */
	} else {
		EMIT(c, 0xb8); /* mov $flags,%eax */
		imm32(c, CLONE_VM | CLONE_VFORK);
	}
}

static void emit_call(struct code *c, uint32_t number)
{
	EMIT(c, 0xb8); /* mov $number,%eax */
	imm32(c, number);
	EMIT(c, 0x0f, 0x05); /* syscall */
}

static void jump_to(struct code *c, uint64_t target)
{
	byte(c, 0xe9);
	rel32_to(c, target);
}

int kymo_guard_emit(const struct kymo_pad_env *env, const struct kymo_plan *plan, uint64_t site, uint64_t pad,
		    uint8_t *out, size_t size, struct kymo_pad_layout *ret)
{
	struct kymo_pad_layout layout = { .entry = 0 };
	struct code c = { .out = out, .size = size, .address = pad };
	struct label plain = { .n = 0 }, shares = { .n = 0 }, child = { .n = 0 }, unsafe = { .n = 0 };
	uint32_t number = number_at(plan->original, plan->window);
	size_t go;
	int err;

	if (!number)
		return -EINVAL;
	compare_byte(&c, env->live, 0); /* a forked child's list would be its parent's */
	JE(&c, &plain);
	if (number == SYS_prctl) {
		x86_emit_mute(&c, env, RCX);
		JMP(&c, &plain);
	}
	load_arguments(&c, number);
	EMIT(&c, 0xa9); /* test $CLONE_VM,%eax */
	imm32(&c, CLONE_VM);
	JE(&c, &plain);
	EMIT(&c, 0xa9); /* test $CLONE_SETTLS,%eax */
	imm32(&c, CLONE_SETTLS);
	JE(&c, &shares);
	mark_thread(&c, env);
	bind(&c, &plain);
	go = c.n;
	emit_call(&c, number);
	layout.insn_at[1] = (uint16_t)(c.n - 2);
	layout.insn_at[2] = (uint16_t)c.n;
	jump_to(&c, site + plan->window);

	bind(&c, &shares);
	EMIT(&c, 0xa9); /* test $CLONE_VFORK,%eax */
	imm32(&c, CLONE_VFORK);
	JE(&c, &unsafe);
	enlist(&c, env);
	emit_call(&c, number);
	EMIT(&c, 0x85, 0xc0); /* test %eax,%eax */
	JE(&c, &child);
	delist(&c, env);
	bind(&c, &child);
	jump_to(&c, site + plan->window);

	bind(&c, &unsafe); /* no thread waits: both run, with one control block */
	emit_count(&c, env, true);
	jump_back(&c, go);
	err = code_error(&c);
	if (err)
		return err;
	layout.size = (uint32_t)c.n;
	*ret = layout;
	return 0;
}
