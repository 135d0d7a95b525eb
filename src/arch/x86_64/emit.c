/*
 * Pads. What runs at a probe, in order:
 *
 *	step over the red zone; keep rax, rdx, r10, r11 and the flags
 *	for each event:
 *		the live byte: what kind of process this is, and how threads are told apart; in a forked child nothing is recorded
 *		by a restartable sequence: the ring of this CPU, room for the record, stamp, header, tid, arguments, and at last the
 *			store of the ring's new position, with which the record counts
 *		or by a lock, where the thread has no such sequence: the same between an exchange and a store
 *	restore; the displaced instructions; jump back
 *
 * Why this is right:
 *
 * 1. Nothing here faults. Stores go to rings whose memory was allocated before (fallocate), loads to rings, the live
 *    page, the thread control block (in the states that say it is there) and, checked, the stack.
 * 2. Nothing waits. A taken lock sends the producer to another ring; no ring at all counts a loss.
 * 3. A record counts with one store at its end. A thread that never gets there (a signal handler that longjmps, death) leaves nothing behind but,
 *    if it used a lock, a locked ring with whole records in it.
 * 4. The kernel restarts a sequence that was preempted, migrated or interrupted by a signal before its last store (rseq(2)), so a ring of this kind
 *    has one producer at a time: the threads of its CPU. This holds for threads that are registered with the kernel. A thread
 *    that is not has a cpu_id that says so: guard.c sees to it for new threads, and keeps a list of those that wait for
 *    a vfork child, which has its parent's thread control block but is not registered.
 * 5. A sequence loads `end` before `cur`, and whoever changes the sub-buffer stores `cur` before `end` (x86-TSO keeps both orders), with `end` zero before:
 *    so `cur` is never taken for one sub-buffer and `end` for another.
 * 6. Stamps of one ring never decrease. Sequences of one CPU are in order, and guest.c waits out the reordering of rdtsc when it opens a
 *    sub-buffer. Under a lock the value is raised to the ring's last one, because rdtsc may run ahead of the exchange.
 * 7. The sequence's descriptor pointer is zero whenever a thread is outside of a pad: each way out clears it, and the kernel does when it
 *    aborts a sequence or delivers a signal. So the descriptor may be unmapped with the pad.
 * 8. The flags come back by sahf and an addition that sets OF; DF, AC and the rest are never changed. Vector and x87
 *    state is not touched.
 *
 * docs/rings.md has the measurements behind this.
 */
#include <cpuid.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "arch/pad.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/guest.h"
#include "wire/event.h"
#include "wire/shared.h"

_Static_assert(KYMO_WIRE_PATCH == KYMO_PATCH_SIZE, "the journal holds a patch");

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

#define EVENT_SIZE_MAX 2560u	/* code bytes of one event in both forms, with 8 arguments from the stack */
#define FIXED_SIZE_MAX 128u
#define RSEQ_SIGNATURE 0x53053053	/* glibc's, in front of abort handlers */

/* struct rseq of linux/rseq.h */
#define RSEQ_CPU_ID 4
#define RSEQ_CS 8

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
		fetch.value = fetch.value > 6 ? fetch.value - 6 : -1;
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

/* mov `at` in the live page, %reg */
static void load_live(struct code *c, const struct kymo_pad_env *env, unsigned int reg, unsigned int at)
{
	uint8_t opcode[] = { (uint8_t)(0x48 | (reg >> 3) << 2), 0x8b, (uint8_t)(0x05 | (reg & 7) << 3) };

	rip_to(c, (const char *)opcode, sizeof(opcode), env->live + at, 0);
}

/* eax = this thread's id, from its control block */
static void load_tid(struct code *c, const struct kymo_pad_env *env)
{
	load_live(c, env, RAX, KYMO_PAD_LIVE_TID_OFFSET);
	EMIT(c, 0x64, 0x8b, 0x00);				/* mov %fs:(%rax),%eax */
}

/* r11 = where struct rseq is, from the thread pointer */
static void load_rseq(struct code *c, const struct kymo_pad_env *env)
{
	load_live(c, env, R11, KYMO_PAD_LIVE_RSEQ_OFFSET);
}

static void clear_rseq(struct code *c, const struct kymo_pad_env *env)
{
	load_rseq(c, env);
	EMIT(c, 0x64, 0x49, 0xc7, 0x43, RSEQ_CS, 0, 0, 0, 0);	/* movq $0,%fs:RSEQ_CS(%r11) */
}

_Static_assert(offsetof(struct kymo_wire_ring, lock) == 0 && offsetof(struct kymo_wire_ring, cur) == 8 &&
	       offsetof(struct kymo_wire_ring, end) == 16 && offsetof(struct kymo_wire_ring, last_tsc) == 24,
	       "offsets in the code below");
_Static_assert(KYMO_EVENT_ID_BITS == 20, "the shifts below");
_Static_assert(KYMO_WIRE_RING_STRIDE == 1 << 10, "the shifts below");

/* rax = stamp */
static void read_tsc(struct code *c)
{
	EMIT(c, 0x0f, 0x31);					/* rdtsc */
	EMIT(c, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0);	/* shl $32,%rdx; or %rdx,%rax */
}

/* the record's first word from the stamp in rax */
static void store_header(struct code *c, uint32_t id)
{
	EMIT(c, 0x48, 0xc1, 0xe0, 0x14);			/* shl $20,%rax */
	EMIT(c, 0x48, 0x0d);					/* or $id,%rax */
	imm32(c, id);
	store(c, RAX, 8, 0);
}

/* mov end(%r10),%rdx; mov cur(%r10),%r11; a jump to `full` unless `size` bytes fit in between */
static void find_room(struct code *c, uint32_t size, struct label *full)
{
	EMIT(c, 0x49, 0x8b, 0x52, 0x10);			/* mov end(%r10),%rdx */
	EMIT(c, 0x4d, 0x8b, 0x5a, 0x08);			/* mov cur(%r10),%r11 */
	EMIT(c, 0x49, 0x8d, 0x83);				/* lea size(%r11),%rax */
	imm32(c, size);
	EMIT(c, 0x48, 0x39, 0xd0);				/* cmp %rdx,%rax */
	JA(c, full);
}

/* The ring moves behind the record: it counts. */
static void commit(struct code *c, uint32_t size)
{
	EMIT(c, 0x49, 0x81, 0xc3);				/* add $size,%r11 */
	imm32(c, size);
	EMIT(c, 0x4d, 0x89, 0x5a, 0x08);			/* mov %r11,cur(%r10) */
}

static void call_guest(struct code *c, const struct kymo_pad_env *env, uint32_t entry)
{
	byte(c, 0xe8);
	rel32_to(c, env->guest + entry);
}

/* Where an event's parts are: the hot ones are emitted in line, the cold ones behind the pad. */
struct event_code {
	struct label state, full, unregistered, foreign, vfork;	/* hot code's ways out */
	struct label locked;		/* to the form with a lock, the tid in its slot */
	size_t restart, end;		/* of the hot code */
};

/* ---- by a lock ---- */

/*
 * The tid is in its slot. Emitted in line where no thread has restartable sequences, else behind. Ends with a fall through or a jump to `end`.
 */
static void emit_locked(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event, uint64_t site)
{
	uint32_t size = kymo_pad_record_size(event->args, event->n_args);
	struct label take = { .n = 0 }, full = { .n = 0 }, clear = { .n = 0 }, lost = { .n = 0 }, done = { .n = 0 };
	struct kymo_guest_image guest;
	size_t got;

	kymo_guest_image(&guest);
	ring_of_cpu(c, env);
	EMIT(c, 0x41, 0xbb, 1, 0, 0, 0);			/* mov $1,%r11d */
	EMIT(c, 0x45, 0x87, 0x1a);				/* xchg %r11d,lock(%r10) */
	EMIT(c, 0x45, 0x85, 0xdb);				/* test %r11d,%r11d */
	JNE(c, &take);
	got = c->n;
	find_room(c, size, &full);
	read_tsc(c);
	EMIT(c, 0x49, 0x8b, 0x52, 0x18);			/* mov last_tsc(%r10),%rdx */
	EMIT(c, 0x48, 0x39, 0xd0, 0x48, 0x0f, 0x42, 0xc2);	/* cmp %rdx,%rax; cmovb %rdx,%rax */
	EMIT(c, 0x49, 0x89, 0x42, 0x18);			/* mov %rax,last_tsc(%r10) */
	store_header(c, event->id);
	EMIT(c, 0x8b, 0x44, 0x24, SLOT_TID);			/* mov tid(%rsp),%eax */
	store(c, RAX, 4, KYMO_EVENT_TID_OFFSET);
	store_arguments(c, env, event, site);
	commit(c, size);
	place(c, &clear);
	EMIT(c, 0x41, 0xc7, 0x02, 0, 0, 0, 0);			/* movl $0,lock(%r10) */
	JMP(c, &done);
	place(c, &take);
	movabs(c, R10, env->rings);
	EMIT(c, 0x41, 0xbb);					/* mov $n,%r11d */
	imm32(c, env->n_rings);
	call_guest(c, env, guest.take);
	EMIT(c, 0x4d, 0x85, 0xd2);				/* test %r10,%r10 */
	JE(c, &lost);
	jump_back(c, got);
	place(c, &full);
	call_guest(c, env, guest.switch_);
	EMIT(c, 0x4d, 0x85, 0xd2);
	JE(c, &lost);
	jump_back(c, got);
	place(c, &lost);
	place(c, &done);
}

/* ---- by a restartable sequence ---- */

static void emit_sequence(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event, uint64_t site,
			  struct event_code *parts, uint64_t descriptor[3])
{
	uint32_t size = kymo_pad_record_size(event->args, event->n_args);

	compare_byte(c, env->live, KYMO_PAD_RSEQ);
	JNE(c, &parts->state);
	EMIT(c, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0, 0);	/* mov %fs:16,%rax: a control block of glibc's points to itself */
	EMIT(c, 0x64, 0x48, 0x3b, 0x04, 0x25, 0, 0, 0, 0);	/* cmp %fs:0,%rax */
	JNE(c, &parts->foreign);
	movabs(c, R10, env->vforks);
	EMIT(c, 0x41, 0x83, 0x3a, 0x00);			/* cmpl $0,n(%r10) */
	JNE(c, &parts->vfork);
	parts->restart = c->n;
	load_rseq(c, env);
	rip_to(c, "\x48\x8d\x05", 3, c->address + descriptor[2], 0);	/* lea descriptor(%rip),%rax */
	EMIT(c, 0x64, 0x49, 0x89, 0x43, RSEQ_CS);		/* mov %rax,%fs:RSEQ_CS(%r11) */
	descriptor[0] = c->n;
	EMIT(c, 0x64, 0x41, 0x8b, 0x43, RSEQ_CPU_ID);		/* mov %fs:RSEQ_CPU_ID(%r11),%eax */
	EMIT(c, 0x3d);						/* cmp $n_cpus,%eax */
	imm32(c, env->n_cpus);
	JAE(c, &parts->unregistered);
	movabs(c, R10, env->rseq_rings);
	EMIT(c, 0xc1, 0xe0, 0x0a);				/* shl $10,%eax */
	EMIT(c, 0x49, 0x01, 0xc2);				/* add %rax,%r10 */
	find_room(c, size, &parts->full);
	read_tsc(c);
	store_header(c, event->id);
	load_tid(c, env);
	store(c, RAX, 4, KYMO_EVENT_TID_OFFSET);
	store_arguments(c, env, event, site);
	commit(c, size);
	descriptor[1] = c->n;
	clear_rseq(c, env);
	parts->end = c->n;
}

/* The tid goes to its slot on the way to the form with a lock. */
static void tid_to_slot(struct code *c, const struct kymo_pad_env *env, bool from_thread)
{
	if (from_thread) {
		load_tid(c, env);
		EMIT(c, 0x89, 0x44, 0x24, SLOT_TID);		/* mov %eax,tid(%rsp) */
	} else {
		EMIT(c, 0xc7, 0x44, 0x24, SLOT_TID);		/* movl $pid,tid(%rsp) */
		imm32(c, env->pid);
	}
}

/* The states other than the one that the hot code is for. */
static void emit_states(struct code *c, const struct kymo_pad_env *env, struct event_code *parts)
{
	struct label early = { .n = 0 };

	place(c, &parts->state);
	compare_byte(c, env->live, KYMO_PAD_LIVE);
	JNE(c, &early);
	tid_to_slot(c, env, true);
	JMP(c, &parts->locked);
	place(c, &early);
	compare_byte(c, env->live, KYMO_PAD_EARLY);
	branch(c, &parts->foreign, "\x0f\x84", 2);		/* je */
	jump_back(c, parts->end);
	place(c, &parts->foreign);
	tid_to_slot(c, env, false);
	JMP(c, &parts->locked);
}

static void emit_cold(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event, uint64_t site,
		      struct event_code *parts)
{
	struct label handled = { .n = 0 }, again = { .n = 0 };
	struct kymo_guest_image guest;

	kymo_guest_image(&guest);
	emit_states(c, env, parts);

	place(c, &parts->vfork);				/* r10: the list */
	call_guest(c, env, guest.vfork);
	EMIT(c, 0x4d, 0x85, 0xd2);				/* test %r10,%r10 */
	JNE(c, &handled);
	tid_to_slot(c, env, true);
	JMP(c, &parts->locked);

	place(c, &parts->unregistered);
	clear_rseq(c, env);
	tid_to_slot(c, env, true);
	JMP(c, &parts->locked);

	place(c, &parts->full);					/* r10: the ring */
	clear_rseq(c, env);
	EMIT(c, 0x64, 0x4c, 0x03, 0x1c, 0x25, 0, 0, 0, 0);	/* add %fs:0,%r11 */
	call_guest(c, env, guest.change);
	EMIT(c, 0x49, 0x83, 0xfa, KYMO_GUEST_AGAIN);		/* cmp $AGAIN,%r10 */
	branch(c, &again, "\x0f\x84", 2);
	EMIT(c, 0x4d, 0x85, 0xd2);
	JE(c, &handled);
	tid_to_slot(c, env, true);

	place(c, &parts->locked);
	emit_locked(c, env, event, site);
	place(c, &handled);
	jump_back(c, parts->end);
	place(c, &again);
	jump_back(c, parts->restart);
}

/* struct rseq_cs, and the abort handler with the signature in front. */
static void emit_descriptor(struct code *c, const uint64_t descriptor[3], size_t restart)
{
	uint64_t abort_at = c->n + 4;

	imm32(c, RSEQ_SIGNATURE);
	jump_back(c, restart);
	if (descriptor[2] + 32 > c->size) {
		c->full = true;
		return;
	}
	memset(c->out + descriptor[2], 0, 8);
	memcpy(c->out + descriptor[2] + 8, &(uint64_t){ c->address + descriptor[0] }, 8);
	memcpy(c->out + descriptor[2] + 16, &(uint64_t){ descriptor[1] - descriptor[0] }, 8);
	memcpy(c->out + descriptor[2] + 24, &(uint64_t){ c->address + abort_at }, 8);
}

/* ---- without sequences: one form, in line ---- */

static void emit_plain(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event, uint64_t site,
		       struct event_code *parts)
{
	compare_byte(c, env->live, KYMO_PAD_LIVE);
	JNE(c, &parts->state);
	tid_to_slot(c, env, true);
	place(c, &parts->locked);
	parts->restart = c->n;
	emit_locked(c, env, event, site);
	parts->end = c->n;
}

static void emit_plain_states(struct code *c, const struct kymo_pad_env *env, struct event_code *parts)
{
	struct label skip = { .n = 0 };

	place(c, &parts->state);
	compare_byte(c, env->live, KYMO_PAD_EARLY);
	JNE(c, &skip);
	tid_to_slot(c, env, false);
	jump_back(c, parts->restart);
	place(c, &skip);
	jump_back(c, parts->end);
}

/* ---- around ---- */

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

size_t kymo_pad_size_max(size_t n_events)
{
	return FIXED_SIZE_MAX + KYMO_RELOCATED_MAX + n_events * (EVENT_SIZE_MAX + 32);
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
	size_t table = env->rseq_rings ? 32 * n_events : 0;	/* descriptors come first: they want 32-byte alignment */
	struct code c = { .out = out, .size = size, .address = pad, .n = table };
	struct event_code parts[KYMO_PAD_MAX_EVENTS];
	uint64_t descriptors[KYMO_PAD_MAX_EVENTS][3];
	int moved;

	if (!are_valid(events, n_events) || n_events > KYMO_PAD_MAX_EVENTS || (table && pad % 32))
		return -EINVAL;
	if (size < table + FIXED_SIZE_MAX)
		return -ENOSPC;
	memset(parts, 0, sizeof(parts));
	emit_save(&c, wants_flags(events, n_events));
	for (size_t i = 0; i < n_events; i++) {
		descriptors[i][2] = 32 * i;
		if (table)
			emit_sequence(&c, env, &events[i], site, &parts[i], descriptors[i]);
		else
			emit_plain(&c, env, &events[i], site, &parts[i]);
	}
	emit_restore(&c);
	if (c.full)
		return -ENOSPC;
	moved = kymo_relocate(plan, site, pad + c.n, out + c.n, size - c.n, insn_at);
	if (moved < 0)
		return moved;
	for (unsigned int i = 0; i <= plan->n_insns; i++)
		insn_at[i] = (uint16_t)(insn_at[i] + c.n);
	c.n += (size_t)moved;
	for (size_t i = 0; i < n_events; i++) {
		if (table) {
			emit_cold(&c, env, &events[i], site, &parts[i]);
			emit_descriptor(&c, descriptors[i], parts[i].restart);
		} else {
			emit_plain_states(&c, env, &parts[i]);
		}
	}
	if (c.full)
		return -ENOSPC;
	return c.far ? -ERANGE : (int)c.n;
}

size_t kymo_pad_entry(const struct kymo_pad_env *env, size_t n_events)
{
	return env->rseq_rings ? 32 * n_events : 0;
}
