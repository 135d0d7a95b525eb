/*
 * Pads. What runs at a probe, in order:
 *
 *	step over the red zone; keep rax, rdx, r10, r11 and the flags
 *	the live byte: in a forked child nothing is recorded
 *	for each event:
 *		r10 = the ring of this CPU; take its lock with an exchange, or any other ring's
 *		room for the record? else change the sub-buffer (guest.c)
 *		time stamp, header, tid, arguments: stored behind the ring's `cur`
 *		move `cur`: from here on the record counts; release the lock
 *	restore; the displaced instructions; jump back
 *
 * Why this is right:
 *
 * 1. Nothing here faults. Stores go to rings whose memory was allocated before (fallocate), loads to the ring, the live
 *    page, the thread control block (in state LIVE only) and, checked, the stack.
 * 2. Nothing waits. A taken lock sends the producer to another ring; no ring at all counts a loss.
 * 3. A signal handler that runs probes in the middle of a pad finds that ring locked and uses another. A thread that never comes
 *    back (longjmp out of the handler, death) leaves a locked ring with whole records in it.
 * 4. Stamps of one ring never decrease: rdtsc may run ahead of the exchange on an out-of-order CPU, so
 *    the value is raised to the ring's last one, under the lock.
 * 5. x86-TSO keeps the order of stores: record before `cur`, `cur` before `lock`.
 * 6. The flags come back by sahf and an addition that sets OF; DF, AC and the rest are never changed. Vector and x87
 *    state is not touched.
 *
 * The choice of an exchange per record, where a restartable sequence would be cheaper, is argued in docs/rings.md.
 */
#include <cpuid.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "arch/pad.h"
#include "arch/x86_64/guest.h"
#include "wire/event.h"
#include "wire/shared.h"

_Static_assert(KYMO_WIRE_PATCH == KYMO_PATCH_SIZE, "the journal holds a patch");

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15, RIP, RFLAGS };

/* The pad's frame below the red zone. */
enum {
	SLOT_RDX = 0,
	SLOT_RAX = 8,
	SLOT_R10 = 16,
	SLOT_R11 = 24,
	SLOT_FLAGS = 32,	/* ax as lahf and seto left it */
	SLOT_TID = 36,
	SLOT_RFLAGS = 40,	/* whole, only where an argument wants them */
	FRAME = 128 + 48,
};

#define EVENT_SIZE_MAX 640u	/* code bytes of one event, 8 stack arguments; asserted at emission */
#define FIXED_SIZE_MAX 160u

/* ---- a small assembler ------------------------------------------------------------------------------------------ */

struct code {
	uint8_t *out;
	size_t size, n;
	uint64_t address;	/* runtime address of out[0] */
	bool full, far;
};

static void bytes(struct code *c, const void *data, size_t n)
{
	if (n > c->size - c->n) {
		c->full = true;
		return;
	}
	memcpy(c->out + c->n, data, n);
	c->n += n;
}

#define EMIT(c, ...)                                            \
	do {                                                    \
		static const uint8_t literal_[] = { __VA_ARGS__ }; \
		bytes(c, literal_, sizeof(literal_));           \
	} while (0)

static void byte(struct code *c, unsigned int value)
{
	uint8_t one = (uint8_t)value;

	bytes(c, &one, 1);
}

static void imm32(struct code *c, int64_t value)
{
	int32_t four = (int32_t)value;

	bytes(c, &four, 4);
}

static void imm64(struct code *c, uint64_t value)
{
	bytes(c, &value, 8);
}

static void rel32_to(struct code *c, uint64_t target)
{
	int64_t distance = (int64_t)(target - (c->address + c->n + 4));

	if (distance != (int32_t)distance)
		c->far = true;
	imm32(c, distance);
}

/* A forward branch: emitted with a hole, closed at its label. */
struct label {
	size_t at[24];
	unsigned int n;
};

static void branch(struct code *c, struct label *label, const char *opcode, size_t size)
{
	bytes(c, opcode, size);
	if (label->n == sizeof(label->at) / sizeof(label->at[0])) {
		c->full = true;
		return;
	}
	label->at[label->n++] = c->n;
	imm32(c, 0);
}

#define JMP(c, l) branch(c, l, "\xe9", 1)
#define JA(c, l) branch(c, l, "\x0f\x87", 2)
#define JAE(c, l) branch(c, l, "\x0f\x83", 2)
#define JB(c, l) branch(c, l, "\x0f\x82", 2)
#define JE(c, l) branch(c, l, "\x0f\x84", 2)
#define JNE(c, l) branch(c, l, "\x0f\x85", 2)

static void place(struct code *c, struct label *label)
{
	for (unsigned int i = 0; i < label->n; i++) {
		int32_t distance = (int32_t)(c->n - (label->at[i] + 4));

		if (label->at[i] + 4 <= c->size)
			memcpy(c->out + label->at[i], &distance, 4);
	}
	label->n = 0;
}

static void jump_back(struct code *c, size_t to)
{
	byte(c, 0xe9);
	imm32(c, (int64_t)to - (int64_t)(c->n + 4));
}

/* `opcode` with `reg` and disp(%rsp), 64 bits: 0x89 stores, 0x8b loads, 0x8d is lea */
static void rsp_slot(struct code *c, unsigned int opcode, unsigned int reg, int32_t disp)
{
	bool is_short = disp == (int8_t)disp;

	byte(c, 0x48 | (reg >> 3) << 2);
	byte(c, opcode);
	byte(c, (is_short ? 0x44u : 0x84u) | (reg & 7) << 3);
	byte(c, 0x24);
	if (is_short)
		byte(c, (uint8_t)disp);
	else
		imm32(c, disp);
}

/* mov %reg (of `size` bytes), disp8(%r10,%r11) */
static void store(struct code *c, unsigned int reg, unsigned int size, unsigned int disp)
{
	if (size == 2)
		byte(c, 0x66);
	byte(c, 0x43 | (size == 8) << 3 | (reg >> 3) << 2);
	byte(c, size == 1 ? 0x88 : 0x89);
	byte(c, 0x44 | (reg & 7) << 3);
	byte(c, 0x1a);
	byte(c, disp);
}

static void movabs(struct code *c, unsigned int reg, uint64_t value)
{
	byte(c, 0x48 | reg >> 3);
	byte(c, 0xb8 | (reg & 7));
	imm64(c, value);
}

/* ---- arguments -------------------------------------------------------------------------------------------------- */

static const uint8_t argument_register[] = { RDI, RSI, RDX, RCX, R8, R9 };

/* Registers and stack words alike: what an argument is once $argN is resolved. */
static struct kymo_fetch resolve(struct kymo_fetch fetch)
{
	if (fetch.kind != KYMO_FETCH_ARGUMENT)
		return fetch;
	if (fetch.value >= 1 && fetch.value <= 6) {
		fetch.kind = KYMO_FETCH_REGISTER;
		fetch.value = argument_register[fetch.value - 1];
	} else {
		fetch.kind = KYMO_FETCH_STACK;
		fetch.value -= 6;
	}
	return fetch;
}

static bool is_valid(const struct kymo_fetch *fetch)
{
	struct kymo_fetch f = resolve(*fetch);

	if ((unsigned int)f.type >= KYMO_N_TYPES)
		return false;
	switch (f.kind) {
	case KYMO_FETCH_REGISTER:
		return f.value >= RAX && f.value <= RFLAGS;
	case KYMO_FETCH_STACK:
		return f.value >= 0 && f.value <= KYMO_FETCH_STACK_MAX;
	case KYMO_FETCH_STACK_POINTER:
	case KYMO_FETCH_IMMEDIATE:
		return true;
	default:
		return false;
	}
}

bool kymo_pad_has_faults(const struct kymo_fetch *args, size_t n_args)
{
	for (size_t i = 0; i < n_args; i++)
		if (resolve(args[i]).kind == KYMO_FETCH_STACK)
			return true;
	return false;
}

uint32_t kymo_pad_record_size(const struct kymo_fetch *args, size_t n_args)
{
	uint32_t size = KYMO_EVENT_ARGS_OFFSET + kymo_pad_has_faults(args, n_args);

	for (size_t i = 0; i < n_args; i++)
		size += kymo_type_size(args[i].type);
	return size;
}

static bool wants_flags(const struct kymo_pad_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < events[i].n_args; k++)
			if (events[i].args[k].kind == KYMO_FETCH_REGISTER && events[i].args[k].value == RFLAGS)
				return true;
	return false;
}

static void load_register(struct code *c, unsigned int reg, uint64_t site)
{
	switch (reg) {
	case RAX:
		rsp_slot(c, 0x8b, RAX, SLOT_RAX);
		break;
	case RDX:
		rsp_slot(c, 0x8b, RAX, SLOT_RDX);
		break;
	case R10:
		rsp_slot(c, 0x8b, RAX, SLOT_R10);
		break;
	case R11:
		rsp_slot(c, 0x8b, RAX, SLOT_R11);
		break;
	case RSP:
		rsp_slot(c, 0x8d, RAX, FRAME);
		break;
	case RFLAGS:
		rsp_slot(c, 0x8b, RAX, SLOT_RFLAGS);
		break;
	case RIP:
		movabs(c, RAX, site);
		break;
	}
}

/*
 * rax = the stack word `n` above the stack pointer, if it can be read for certain: it lies on the page that the stack pointer points
 * to, or between the stack pointer and the end of the initial thread's stack. Else 0, and the fault bit.
 */
static void load_stack(struct code *c, const struct kymo_pad_env *env, int64_t n, unsigned int bit, unsigned int faults)
{
	struct label readable = { .n = 0 }, fault = { .n = 0 }, done = { .n = 0 };
	int32_t disp = (int32_t)(FRAME + 8 * n);

	rsp_slot(c, 0x8d, RAX, disp + 7);		/* last byte of the word */
	rsp_slot(c, 0x8d, RDX, FRAME);
	EMIT(c, 0x48, 0x31, 0xc2);			/* xor %rax,%rdx */
	EMIT(c, 0x48, 0x81, 0xfa, 0xff, 0x0f, 0, 0);	/* cmp $4095,%rdx */
	branch(c, &readable, "\x0f\x86", 2);		/* jbe */
	if (env->stack_high) {
		movabs(c, RDX, env->stack_high);
		EMIT(c, 0x48, 0x39, 0xd0);		/* cmp %rdx,%rax */
		JAE(c, &fault);
		movabs(c, RDX, env->stack_low);
		EMIT(c, 0x48, 0x39, 0xd4);		/* cmp %rdx,%rsp */
		JAE(c, &readable);
	}
	place(c, &fault);
	EMIT(c, 0x31, 0xc0);				/* xor %eax,%eax */
	EMIT(c, 0x43, 0x80, 0x4c, 0x1a);		/* orb $bit,faults(%r10,%r11) */
	byte(c, faults);
	byte(c, bit);
	JMP(c, &done);
	place(c, &readable);
	rsp_slot(c, 0x8b, RAX, disp);
	place(c, &done);
}

static void store_arguments(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event, uint64_t site)
{
	unsigned int at = KYMO_EVENT_ARGS_OFFSET;

	if (kymo_pad_has_faults(event->args, event->n_args)) {
		EMIT(c, 0x43, 0xc6, 0x44, 0x1a);	/* movb $0,at(%r10,%r11) */
		byte(c, at++);
		byte(c, 0);
	}
	for (size_t i = 0; i < event->n_args; i++) {
		struct kymo_fetch f = resolve(event->args[i]);
		unsigned int size = kymo_type_size(f.type), reg = RAX;

		switch (f.kind) {
		case KYMO_FETCH_REGISTER:
			if (f.value == RAX || f.value == RDX || f.value == RSP || f.value == R10 || f.value == R11 ||
			    f.value >= RIP)
				load_register(c, (unsigned int)f.value, site);
			else
				reg = (unsigned int)f.value;
			break;
		case KYMO_FETCH_STACK_POINTER:
			load_register(c, RSP, site);
			break;
		case KYMO_FETCH_IMMEDIATE:
			movabs(c, RAX, (uint64_t)f.value);
			break;
		default:
			load_stack(c, env, f.value, 1u << i, KYMO_EVENT_ARGS_OFFSET);
			break;
		}
		store(c, reg, size, at);
		at += size;
	}
}

/* ---- the pad ---------------------------------------------------------------------------------------------------- */

static bool has_rdpid(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & 1u << 22);
}

/* r10 = the ring of this CPU. The CPU's number is in the low 12 bits of TSC_AUX and of the limit of segment 0x7b
 * (arch/x86/include/asm/segment.h, VDSO_CPUNODE_BITS). */
static void ring_of_cpu(struct code *c, const struct kymo_pad_env *env)
{
	if (has_rdpid())
		EMIT(c, 0xf3, 0x0f, 0xc7, 0xf8);				/* rdpid %rax */
	else
		EMIT(c, 0xb8, 0x7b, 0, 0, 0, 0x0f, 0x03, 0xc0);			/* mov $0x7b,%eax; lsl %eax,%eax */
	EMIT(c, 0x25, 0xff, 0x0f, 0, 0);					/* and $0xfff,%eax */
	EMIT(c, 0x3d);								/* cmp $n_cpus,%eax */
	imm32(c, env->n_cpus);
	EMIT(c, 0x72, 0x02, 0x31, 0xc0);					/* jb 1f; xor %eax,%eax; 1: */
	movabs(c, R10, env->rings);
	_Static_assert(KYMO_WIRE_RING_STRIDE == 1 << 10, "the shift below");
	EMIT(c, 0xc1, 0xe0, 0x0a);						/* shl $10,%eax */
	EMIT(c, 0x49, 0x01, 0xc2);						/* add %rax,%r10 */
}

static void call_guest(struct code *c, const struct kymo_pad_env *env, uint32_t entry)
{
	byte(c, 0xe8);
	rel32_to(c, env->guest + entry);
	EMIT(c, 0x4d, 0x85, 0xd2);		/* test %r10,%r10 */
}

/* What a hot path leaves to be emitted behind the pad. */
struct cold {
	struct label take, change;
	size_t got;		/* where both come back */
	struct label lost;	/* or not */
};

static void emit_event(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event, uint64_t site,
		       struct cold *cold)
{
	uint32_t size = kymo_pad_record_size(event->args, event->n_args);

	ring_of_cpu(c, env);
	EMIT(c, 0x41, 0xbb, 1, 0, 0, 0);			/* mov $1,%r11d */
	EMIT(c, 0x45, 0x87, 0x1a);				/* xchg %r11d,lock(%r10) */
	EMIT(c, 0x45, 0x85, 0xdb);				/* test %r11d,%r11d */
	JNE(c, &cold->take);
	cold->got = c->n;
	_Static_assert(offsetof(struct kymo_wire_ring, lock) == 0 && offsetof(struct kymo_wire_ring, cur) == 8 &&
		       offsetof(struct kymo_wire_ring, end) == 16 && offsetof(struct kymo_wire_ring, last_tsc) == 24,
		       "offsets below");
	EMIT(c, 0x4d, 0x8b, 0x5a, 0x08);			/* mov cur(%r10),%r11 */
	EMIT(c, 0x49, 0x8d, 0x83);				/* lea size(%r11),%rax */
	imm32(c, size);
	EMIT(c, 0x49, 0x3b, 0x42, 0x10);			/* cmp end(%r10),%rax */
	JA(c, &cold->change);
	EMIT(c, 0x0f, 0x31);					/* rdtsc */
	EMIT(c, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0);	/* shl $32,%rdx; or %rdx,%rax */
	EMIT(c, 0x49, 0x8b, 0x52, 0x18);			/* mov last_tsc(%r10),%rdx */
	EMIT(c, 0x48, 0x39, 0xd0, 0x48, 0x0f, 0x42, 0xc2);	/* cmp %rdx,%rax; cmovb %rdx,%rax */
	EMIT(c, 0x49, 0x89, 0x42, 0x18);			/* mov %rax,last_tsc(%r10) */
	_Static_assert(KYMO_EVENT_ID_BITS == 20, "the shift below");
	EMIT(c, 0x48, 0xc1, 0xe0, 0x14);			/* shl $20,%rax */
	EMIT(c, 0x48, 0x0d);					/* or $id,%rax */
	imm32(c, event->id);
	store(c, RAX, 8, 0);
	EMIT(c, 0x8b, 0x44, 0x24, SLOT_TID);			/* mov tid(%rsp),%eax */
	store(c, RAX, 4, KYMO_EVENT_TID_OFFSET);
	store_arguments(c, env, event, site);
	EMIT(c, 0x49, 0x81, 0xc3);				/* add $size,%r11 */
	imm32(c, size);
	EMIT(c, 0x4d, 0x89, 0x5a, 0x08);			/* mov %r11,cur(%r10) */
	EMIT(c, 0x41, 0xc7, 0x02, 0, 0, 0, 0);			/* movl $0,lock(%r10) */
	place(c, &cold->lost);
}

/* Behind the hot code. A record that was lost goes on where its event ends. */
static void emit_cold(struct code *c, const struct kymo_pad_env *env, struct cold *cold, size_t event_end)
{
	struct kymo_guest_image guest;

	kymo_guest_image(&guest);
	place(c, &cold->take);
	movabs(c, R10, env->rings);
	EMIT(c, 0x41, 0xbb);					/* mov $n,%r11d */
	imm32(c, env->n_rings);
	call_guest(c, env, guest.take);
	EMIT(c, 0x74, 0x05);					/* je +5 */
	jump_back(c, cold->got);
	jump_back(c, event_end);
	place(c, &cold->change);
	call_guest(c, env, guest.switch_);
	EMIT(c, 0x74, 0x05);
	jump_back(c, cold->got);
	jump_back(c, event_end);
}

static void emit_save(struct code *c, bool flags)
{
	rsp_slot(c, 0x8d, RSP, -FRAME);		/* lea -FRAME(%rsp),%rsp: no flags */
	if (flags) {
		EMIT(c, 0x9c);			/* pushfq */
		EMIT(c, 0x8f, 0x44, 0x24, SLOT_RFLAGS);	/* pop SLOT(%rsp) */
	}
	rsp_slot(c, 0x89, RAX, SLOT_RAX);
	EMIT(c, 0x9f, 0x0f, 0x90, 0xc0);	/* lahf; seto %al */
	EMIT(c, 0x89, 0x44, 0x24, SLOT_FLAGS);	/* mov %eax,FLAGS(%rsp) */
	rsp_slot(c, 0x89, RDX, SLOT_RDX);
	rsp_slot(c, 0x89, R10, SLOT_R10);
	rsp_slot(c, 0x89, R11, SLOT_R11);
}

static void emit_restore(struct code *c)
{
	EMIT(c, 0x8b, 0x44, 0x24, SLOT_FLAGS);	/* mov FLAGS(%rsp),%eax */
	EMIT(c, 0x04, 0x7f, 0x9e);		/* add $0x7f,%al; sahf */
	rsp_slot(c, 0x8b, RAX, SLOT_RAX);
	rsp_slot(c, 0x8b, RDX, SLOT_RDX);
	rsp_slot(c, 0x8b, R10, SLOT_R10);
	rsp_slot(c, 0x8b, R11, SLOT_R11);
	rsp_slot(c, 0x8d, RSP, FRAME);
}

/* cmpb $value,live(%rip) */
static void compare_live(struct code *c, const struct kymo_pad_env *env, uint8_t value)
{
	EMIT(c, 0x80, 0x3d);
	rel32_to(c, env->live - 1);	/* the immediate follows the displacement */
	byte(c, value);
}

/* The tid goes to its slot; in a forked child to `skip`. `early` is emitted behind. */
static void emit_live(struct code *c, const struct kymo_pad_env *env, struct label *early)
{
	compare_live(c, env, KYMO_PAD_LIVE);
	JNE(c, early);
	EMIT(c, 0x48, 0x8b, 0x05);			/* mov live+8(%rip),%rax */
	rel32_to(c, env->live + KYMO_PAD_LIVE_TID_OFFSET);
	EMIT(c, 0x64, 0x8b, 0x00);			/* mov %fs:(%rax),%eax */
	EMIT(c, 0x89, 0x44, 0x24, SLOT_TID);
}

static void emit_early(struct code *c, const struct kymo_pad_env *env, size_t back, struct label *skip)
{
	compare_live(c, env, KYMO_PAD_EARLY);
	JNE(c, skip);
	EMIT(c, 0xc7, 0x44, 0x24, SLOT_TID);	/* movl $pid,TID(%rsp) */
	imm32(c, env->pid);
	jump_back(c, back);
}

size_t kymo_pad_size_max(size_t n_events)
{
	return FIXED_SIZE_MAX + KYMO_RELOCATED_MAX + n_events * EVENT_SIZE_MAX;
}

const uint8_t *kymo_pad_guest(size_t *size_ret)
{
	struct kymo_guest_image guest;

	kymo_guest_image(&guest);
	*size_ret = guest.size;
	return guest.bytes;
}

static bool are_valid(const struct kymo_pad_event *events, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (events[i].id > KYMO_EVENT_ID_MAX || events[i].n_args > KYMO_EVENT_MAX_ARGS)
			return false;
		for (size_t k = 0; k < events[i].n_args; k++)
			if (!is_valid(&events[i].args[k]))
				return false;
	}
	return n > 0;
}

int kymo_pad_emit(const struct kymo_pad_env *env, const struct kymo_plan *plan, uint64_t site, uint64_t pad,
		  const struct kymo_pad_event *events, size_t n_events, uint8_t *out, size_t size,
		  uint16_t insn_at[KYMO_WINDOW_MAX_INSNS + 1])
{
	struct code c = { .out = out, .size = size, .address = pad };
	struct label early = { .n = 0 }, skip = { .n = 0 };
	struct cold colds[16];
	size_t ends[16], back, restore;
	int moved;

	if (!are_valid(events, n_events) || n_events > 16)
		return -EINVAL;
	memset(colds, 0, sizeof(colds));
	emit_save(&c, wants_flags(events, n_events));
	emit_live(&c, env, &early);
	back = c.n;
	for (size_t i = 0; i < n_events; i++) {
		emit_event(&c, env, &events[i], site, &colds[i]);
		ends[i] = c.n;
	}
	restore = c.n;
	emit_restore(&c);
	if (c.full)
		return -ENOSPC;
	moved = kymo_relocate(plan, site, pad + c.n, out + c.n, size - c.n, insn_at);
	if (moved < 0)
		return moved;
	for (unsigned int i = 0; i <= plan->n_insns; i++)
		insn_at[i] = (uint16_t)(insn_at[i] + c.n);
	c.n += (size_t)moved;
	for (size_t i = 0; i < n_events; i++)
		emit_cold(&c, env, &colds[i], ends[i]);
	place(&c, &early);
	emit_early(&c, env, back, &skip);
	place(&c, &skip);
	jump_back(&c, restore);
	if (c.full)
		return -ENOSPC;
	return c.far ? -ERANGE : (int)c.n;
}
