/* A record of one event: by a restartable sequence, or by a lock. emit.c has the reasons why this is right. */
#include "arch/x86_64/event.h"

#include <stddef.h>
#include <string.h>

#include "arch/writes.h"
#include "arch/x86_64/arguments.h"
#include "arch/x86_64/chain.h"
#include "arch/x86_64/context.h"
#include "arch/x86_64/frame.h"
#include "arch/x86_64/guest.h"
#include "arch/x86_64/reads.h"
#include "arch/x86_64/writes.h"
#include "wire/event.h"
#include "wire/shared.h"

#define RSEQ_SIGNATURE 0x53053053 /* glibc's, in front of abort handlers */

/* struct rseq of linux/rseq.h */
#define RSEQ_CPU_ID 4
#define RSEQ_CS 8

#define TRIES 8 /* of a sequence whose sub-buffer was changed: then a ring with a lock is used */

/* r10 = the ring of this CPU. */
static void ring_of_cpu(struct code *c, const struct kymo_pad_env *env)
{
	x86_load_cpu(c);
	EMIT(c, 0x3d); /* cmp $n_cpus,%eax */
	imm32(c, env->n_cpus);
	EMIT(c, 0x72, 0x02, 0x31, 0xc0); /* jb 1f; xor %eax,%eax; 1: */
	movabs(c, R10, env->rings);
	_Static_assert(KYMO_WIRE_RING_STRIDE == 1 << 10, "the shift below");
	EMIT(c, 0xc1, 0xe0, 0x0a); /* shl $10,%eax */
	EMIT(c, 0x49, 0x01, 0xc2); /* add %rax,%r10 */
}

/* r11 = where struct rseq is, from the thread pointer */
static void load_rseq(struct code *c, const struct kymo_pad_env *env)
{
	x86_load_live(c, env, R11, KYMO_PAD_LIVE_RSEQ_OFFSET);
}

static void clear_rseq(struct code *c, const struct kymo_pad_env *env)
{
	load_rseq(c, env);
	EMIT(c, 0x64, 0x49, 0xc7, 0x43, RSEQ_CS, 0, 0, 0, 0); /* movq $0,%fs:RSEQ_CS(%r11) */
}

_Static_assert(offsetof(struct kymo_wire_ring, lock) == 0 && offsetof(struct kymo_wire_ring, cur) == 8 &&
		       offsetof(struct kymo_wire_ring, end) == 16 && offsetof(struct kymo_wire_ring, last_tsc) == 24 &&
		       offsetof(struct kymo_wire_ring, subbuffer_size) < 128,
	       "offsets in the code below");
#define THREAD_TSC 40
#define THREAD_AT 48
#define THREAD 56
_Static_assert(offsetof(struct kymo_wire_ring, thread_tsc) == THREAD_TSC &&
		       offsetof(struct kymo_wire_ring, thread_at) == THREAD_AT &&
		       offsetof(struct kymo_wire_ring, thread) == THREAD,
	       "offsets in the code below");
_Static_assert(KYMO_EVENT_ID_BITS == 20 &&
		       KYMO_PACKED_KIND_BITS + KYMO_EVENT_ID_BITS + KYMO_PACKED_WIDE_TIME_BITS == 64 &&
		       KYMO_PACKED_KIND_BITS + KYMO_PACKED_COMPACT_TIME_BITS == 32 &&
		       KYMO_PACKED_KIND_BITS + KYMO_PACKED_THREAD_TIME_BITS == 64,
	       "the shifts below");
_Static_assert(KYMO_WIRE_RING_STRIDE == 1 << 10, "the shifts below");

/* rax = stamp */
static void read_tsc(struct code *c)
{
	EMIT(c, 0x0f, 0x31);                               /* rdtsc */
	EMIT(c, 0x48, 0xc1, 0xe2, 0x20, 0x48, 0x09, 0xd0); /* shl $32,%rdx; or %rdx,%rax */
}

/* edx = the tid of the record */
static void load_tid(struct code *c, const struct kymo_pad_env *env, bool from_slot)
{
	if (!from_slot) {
		x86_load_tid(c, env, RDX);
		return;
	}
	EMIT(c, 0x8b); /* mov tid(%rsp),%edx */
	rsp_operand(c, RDX, SLOT_TID);
}

/*
 * A thread's record at r10 + r11, which is behind it then. It counts with the event's, so what the ring says of it does
 * not hold before: `thread_at` first. The stamp stays in rax.
 */
static void store_thread(struct code *c, const struct kymo_pad_env *env, bool from_slot)
{
	EMIT(c, 0x4d, 0x89, 0x5a, THREAD_AT);  /* mov %r11,thread_at(%r10) */
	EMIT(c, 0x49, 0x89, 0x42, THREAD_TSC); /* mov %rax,thread_tsc(%r10) */
	load_tid(c, env, from_slot);
	EMIT(c, 0x41, 0x89, 0x52, THREAD); /* mov %edx,thread(%r10) */
	store(c, RDX, 4, KYMO_PACKED_TID_OFFSET);
	EMIT(c, 0x48, 0x89, 0xc2);                          /* mov %rax,%rdx */
	EMIT(c, 0x48, 0xc1, 0xe2, KYMO_PACKED_KIND_BITS);   /* shl $5,%rdx */
	store(c, RDX, 8, 0);                                /* KYMO_PACKED_THREAD is 0 */
	EMIT(c, 0x49, 0x83, 0xc3, KYMO_PACKED_THREAD_SIZE); /* add $12,%r11 */
}

/*
 * The record's header from the stamp in rax. A thread's record comes before it, unless the last one is of this packet
 * and thread and not too old for the stamp's bits. wire/event.h has the rule. r11 is where the record begins then. All
 * of this is within the sequence: no jump leaves it.
 */
static void store_header(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
			 bool from_slot)
{
	const bool is_wide = x86_header_size(event) == KYMO_PACKED_WIDE_SIZE;
	struct label thread = { .n = 0 }, stored = { .n = 0 };
	size_t header;

	EMIT(c, 0x48, 0x89, 0xc2);             /* mov %rax,%rdx */
	EMIT(c, 0x49, 0x2b, 0x52, THREAD_TSC); /* sub thread_tsc(%r10),%rdx */
	EMIT(c, 0x48, 0xc1, 0xea);             /* shr $bits,%rdx */
	byte(c, is_wide ? KYMO_PACKED_WIDE_TIME_BITS : KYMO_PACKED_COMPACT_TIME_BITS);
	JNE(c, &thread);
	load_tid(c, env, from_slot);
	EMIT(c, 0x41, 0x3b, 0x52, THREAD); /* cmp thread(%r10),%edx */
	JNE(c, &thread);
	EMIT(c, 0x4d, 0x3b, 0x5a, THREAD_AT); /* cmp thread_at(%r10),%r11 */
	branch(c, &thread, "\x0f\x86", 2);    /* jbe */
	header = c->n;
	if (is_wide) {
		EMIT(c, 0x48, 0xc1, 0xe0, 64 - KYMO_PACKED_WIDE_TIME_BITS); /* shl $25,%rax */
		EMIT(c, 0x48, 0x0d);                                        /* or $id,%rax */
		imm32(c, KYMO_PACKED_WIDE | (int64_t)event->id << KYMO_PACKED_KIND_BITS);
	} else {
		EMIT(c, 0xc1, 0xe0, KYMO_PACKED_KIND_BITS); /* shl $5,%eax */
		EMIT(c, 0x83, 0xc8);                        /* or $id,%eax */
		byte(c, event->id);
	}
	if (event->adds_number) {
		x86_load_saved(c, RDX, RAX);
		EMIT(c, 0x48, 0xc1, 0xe2, KYMO_PACKED_KIND_BITS); /* shl $5,%rdx */
		EMIT(c, 0x48, 0x01, 0xd0);                        /* add %rdx,%rax */
	}
	store(c, RAX, x86_header_size(event), 0);
	JMP(c, &stored);
	bind(c, &thread);
	store_thread(c, env, from_slot);
	jump_back(c, header);
	bind(c, &stored);
}

_Static_assert(sizeof(struct kymo_pad_ring) == 32 && offsetof(struct kymo_pad_ring, end) == 0 &&
		       offsetof(struct kymo_pad_ring, data_offset) == 8,
	       "offsets and shifts below");

/* r11 = what is known of the rings from number `i` on */
static void load_geometry(struct code *c, const struct kymo_pad_env *env, uint32_t i)
{
	rip_to(c, "\x4c\x8d\x1d", 3, env->geometry + kymo_pad_rings_size(i), 0); /* lea rings(%rip),%r11 */
}

/* r11 = what is known of the ring in r10, one with a lock */
static void find_geometry(struct code *c, const struct kymo_pad_env *env)
{
	load_geometry(c, env, env->n_sequenced);
	movabs(c, RDX, env->rings);
	EMIT(c, 0x4c, 0x89, 0xd0);       /* mov %r10,%rax */
	EMIT(c, 0x48, 0x29, 0xd0);       /* sub %rdx,%rax */
	EMIT(c, 0x48, 0xc1, 0xe8, 0x05); /* shr $5,%rax */
	EMIT(c, 0x49, 0x01, 0xc3);       /* add %rax,%r11 */
}

/* Whether the record has bytes whose number is known before its first is stored: a payload, or what was composed. */
static bool has_payload(const struct kymo_pad_event *event)
{
	return x86_payload(event) || x86_is_composed(event);
}

/* Whether the size of the record is known in the pad only. */
static bool varies(const struct kymo_pad_event *event)
{
	return has_payload(event) || x86_chain(event);
}

/* Bytes of the record, as far as they are known here. */
static uint32_t fixed_size(const struct kymo_pad_event *event)
{
	return x86_header_size(event) + (has_payload(event) ? 0 : kymo_pad_body_size(event->args, event->n_args));
}

/* Ways out of find_room(). */
struct no_room {
	struct label *full;   /* the sub-buffer has no room: r11 and rax are set */
	struct label *broken; /* the ring's words make no sense: to be treated as full */
	struct label *large;  /* the payload is larger than any may be */
};

/*
 * r11: what is known of the ring in r10 (struct kymo_pad_ring). After it r11 = the ring's position, rax = the one
 * behind the record, and a thread's record before it; both lie within the ring, whatever its words say: data_offset <=
 * position (signed, so the addition cannot wrap), and the position behind <= `end` <= the ring's end. Each word is
 * loaded once. A record with a chain may turn out shorter.
 */
static void find_room(struct code *c, const struct kymo_pad_event *event, const struct no_room *ways)
{
	const struct kymo_fetch *payload = x86_payload(event);

	if (payload && payload->base >= 0) {
		x86_load_saved(c, RAX, (unsigned int)payload->value);
		x86_load_saved(c, RDX, (unsigned int)payload->base);
		EMIT(c, 0x48, 0x39, 0xd0); /* cmp %rdx,%rax */
		JNE(c, ways->large);
	}
	EMIT(c, 0x49, 0x8b, 0x52, 0x10); /* mov end(%r10),%rdx */
	EMIT(c, 0x49, 0x3b, 0x13);       /* cmp ring's end(%r11),%rdx */
	JA(c, ways->broken);
	EMIT(c, 0x49, 0x8b, 0x42, 0x08);        /* mov cur(%r10),%rax */
	EMIT(c, 0x49, 0x3b, 0x43, 0x08);        /* cmp data_offset(%r11),%rax */
	branch(c, ways->broken, "\x0f\x8c", 2); /* jl */
	EMIT(c, 0x49, 0x89, 0xc3);              /* mov %rax,%r11 */
	if (has_payload(event)) {
		if (payload)
			x86_load_saved(c, RAX, (unsigned int)payload->index);
		else
			rsp_slot(c, 0x8b, RAX, BELOW_COMPOSED_SIZE);
		if (x86_copy(event))
			rsp_slot(c, 0x03, RAX, BELOW_COPY_SIZE); /* add size(%rsp),%rax */
		EMIT(c, 0x48, 0x3d);                             /* cmp $KYMO_PAYLOAD_MAX,%rax */
		imm32(c, x86_copy(event) ? KYMO_PAYLOAD_MAX + KYMO_FETCH_COPY_MAX : KYMO_PAYLOAD_MAX);
		JA(c, ways->large);
		EMIT(c, 0x49, 0x8d, 0x84, 0x03); /* lea size(%r11,%rax),%rax */
	} else {
		EMIT(c, 0x49, 0x8d, 0x83); /* lea size(%r11),%rax */
	}
	imm32(c, KYMO_PACKED_THREAD_SIZE + fixed_size(event) + x86_chain_size(event));
	EMIT(c, 0x48, 0x39, 0xd0); /* cmp %rdx,%rax */
	JA(c, ways->full);
}

/* On the way from find_room() to change the sub-buffer: a jump to `large` if an empty one has no room either. */
static void find_large(struct code *c, struct label *large)
{
	EMIT(c, 0x4c, 0x29, 0xd8);                                                  /* sub %r11,%rax */
	EMIT(c, 0x49, 0x3b, 0x42, offsetof(struct kymo_wire_ring, subbuffer_size)); /* cmp subbuffer_size(%r10),%rax */
	JA(c, large);
}

static void count_loss(struct code *c)
{
	EMIT(c, 0xf0, 0x49, 0xff, 0x42, offsetof(struct kymo_wire_ring, lost)); /* lock incq lost(%r10) */
}

/* What comes after the header. Then the ring moves after the record, with the last instruction: it counts. */
static void store_rest(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		       const struct x86_pad_site *site)
{
	if (has_payload(event)) {
		x86_store_payload(c, event);
	} else {
		x86_store_arguments(c, env, event, site);
		EMIT(c, 0x49, 0x81, 0xc3); /* add $size,%r11 */
		imm32(c, fixed_size(event));
	}
	if (x86_chain(event))
		x86_store_chain(c, env, site, x86_chain(event));
	EMIT(c, 0x4d, 0x89, 0x5a, 0x08); /* mov %r11,cur(%r10) */
}

static void call_guest(struct code *c, const struct kymo_pad_env *env, uint32_t entry)
{
	rip_to(c, "\x48\x8d\x15", 3, env->geometry, 0); /* lea geometry(%rip),%rdx */
	byte(c, 0xe8);
	rel32_to(c, env->guest + entry);
}

/* ---- by a lock ------------------------------------------------------------------------------- */

static void emit_unlock(struct code *c)
{
	EMIT(c, 0x41, 0xc7, 0x02, 0, 0, 0, 0); /* movl $0,lock(%r10) */
}

/*
 * The tid is in its slot. Emitted in line where no thread has restartable sequences, else behind. Ends with a fall
 * through or a jump to `end`.
 */
static void emit_locked(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
			const struct x86_pad_site *site)
{
	struct label take = { .n = 0 }, full = { .n = 0 }, broken = { .n = 0 }, large = { .n = 0 }, lost = { .n = 0 },
		     done = { .n = 0 };
	const struct no_room first = { &full, &broken, &large }, second = { &large, &large, &large };
	struct kymo_guest_image guest;
	size_t got, room, unlock;

	kymo_guest_image(&guest);
	ring_of_cpu(c, env);
	EMIT(c, 0x41, 0xbb, 1, 0, 0, 0); /* mov $1,%r11d */
	EMIT(c, 0x45, 0x87, 0x1a);       /* xchg %r11d,lock(%r10) */
	EMIT(c, 0x45, 0x85, 0xdb);       /* test %r11d,%r11d */
	JNE(c, &take);
	got = c->n;
	find_geometry(c, env);
	find_room(c, event, &first);
	room = c->n;
	read_tsc(c);
	EMIT(c, 0x49, 0x8b, 0x52, 0x18);                   /* mov last_tsc(%r10),%rdx */
	EMIT(c, 0x48, 0x39, 0xd0, 0x48, 0x0f, 0x42, 0xc2); /* cmp %rdx,%rax; cmovb %rdx,%rax */
	EMIT(c, 0x49, 0x89, 0x42, 0x18);                   /* mov %rax,last_tsc(%r10) */
	if (env->position && !kymo_pad_writes(event))      /* which has other things there */
		rsp_slot(c, 0x89, RAX, SLOT_TSC);
	store_header(c, env, event, true);
	store_rest(c, env, event, site);
	unlock = c->n;
	emit_unlock(c);
	x86_commit_writes(c, env, event, site);
	JMP(c, &done);
	bind(c, &take);
	movabs(c, R10, env->rings);
	EMIT(c, 0x41, 0xbb); /* mov $n,%r11d */
	imm32(c, env->n_rings);
	call_guest(c, env, guest.take);
	EMIT(c, 0x4d, 0x85, 0xd2); /* test %r10,%r10 */
	JE(c, &lost);
	jump_back(c, got);
	bind(c, &full);
	if (varies(event))
		find_large(c, &large);
	bind(c, &broken);
	call_guest(c, env, guest.switch_);
	EMIT(c, 0x4d, 0x85, 0xd2);
	JE(c, &lost);
	find_geometry(c, env);
	find_room(c, event, &second); /* once: other writers of the ring do not keep the thread here */
	jump_back(c, room);
	bind(c, &large);
	count_loss(c);
	if (kymo_pad_writes(event))
		emit_unlock(c); /* nothing was committed, and nothing is written */
	else
		jump_back(c, unlock);
	bind(c, &lost);
	bind(c, &done);
}

/* ---- by a restartable sequence --------------------------------------------------------------- */

/* rax = the record's stamp */
static void stamp(struct code *c, struct x86_stamp_use use)
{
	struct label fresh = { .n = 0 }, have = { .n = 0 };

	if (use.takes) {
		rsp_slot(c, 0x8b, RAX, SLOT_TSC);
		EMIT(c, 0x48, 0x85, 0xc0); /* test %rax,%rax */
		JE(c, &fresh);
		EMIT(c, 0x49, 0x3b, 0x42, 0x18); /* cmp last_tsc(%r10),%rax */
		JAE(c, &have);
		bind(c, &fresh);
	}
	read_tsc(c);
	if (use.leaves)
		rsp_slot(c, 0x89, RAX, SLOT_TSC);
	bind(c, &have);
}

void x86_event_sequence(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
			const struct x86_pad_site *site, struct x86_event_code *parts, uint64_t descriptor[3],
			struct x86_stamp_use use)
{
	compare_byte(c, env->live, KYMO_PAD_RSEQ);
	JNE(c, &parts->state);
	EMIT(c, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x10, 0, 0,
	     0); /* mov %fs:16,%rax: a control block of glibc's points to itself */
	EMIT(c, 0x64, 0x48, 0x3b, 0x04, 0x25, 0, 0, 0, 0); /* cmp %fs:0,%rax */
	JNE(c, &parts->not_glibcs);
	x86_load_live(c, env, R10, KYMO_PAD_LIVE_VFORKS);
	EMIT(c, 0x41, 0x83, 0x3a, 0x00); /* cmpl $0,n(%r10) */
	JNE(c, &parts->vfork);
	EMIT(c, 0xc7); /* movl $TRIES,tid(%rsp) */
	rsp_operand(c, 0, SLOT_TID);
	imm32(c, TRIES);
	parts->restart = c->n;
	load_rseq(c, env);
	rip_to(c, "\x48\x8d\x05", 3, c->address + descriptor[2], 0); /* lea descriptor(%rip),%rax */
	EMIT(c, 0x64, 0x49, 0x89, 0x43, RSEQ_CS);                    /* mov %rax,%fs:RSEQ_CS(%r11) */
	descriptor[0] = c->n;
	EMIT(c, 0x64, 0x41, 0x8b, 0x43, RSEQ_CPU_ID); /* mov %fs:RSEQ_CPU_ID(%r11),%eax */
	EMIT(c, 0x3d);                                /* cmp $n_cpus,%eax */
	imm32(c, env->n_cpus);
	JAE(c, &parts->unregistered);
	load_geometry(c, env, 0);
	EMIT(c, 0xc1, 0xe0, 0x05); /* shl $5,%eax */
	EMIT(c, 0x49, 0x01, 0xc3); /* add %rax,%r11 */
	movabs(c, R10, env->rseq_rings);
	EMIT(c, 0xc1, 0xe0, 0x05); /* shl $5,%eax */
	EMIT(c, 0x49, 0x01, 0xc2); /* add %rax,%r10 */
	find_room(c, event, &(struct no_room){ &parts->full, &parts->broken, &parts->large });
	stamp(c, use);
	EMIT(c, 0x49, 0x89, 0x42, 0x18); /* mov %rax,last_tsc(%r10) */
	store_header(c, env, event, false);
	store_rest(c, env, event, site);
	descriptor[1] = c->n;
	clear_rseq(c, env);
	x86_commit_writes(c, env, event, site);
	parts->end = c->n;
}

/* The tid goes to its slot on the way to the form with a lock. */
static void tid_to_slot(struct code *c, const struct kymo_pad_env *env, bool from_thread)
{
	if (from_thread)
		x86_load_tid(c, env, RAX);
	else
		x86_load_live(c, env, RAX, KYMO_PAD_LIVE_PID);
	EMIT(c, 0x89); /* mov %eax,tid(%rsp) */
	rsp_operand(c, RAX, SLOT_TID);
}

/* The states other than the one that the hot code is for. */
static void emit_states(struct code *c, const struct kymo_pad_env *env, struct x86_event_code *parts)
{
	struct label early = { .n = 0 };

	bind(c, &parts->state);
	compare_byte(c, env->live, KYMO_PAD_LIVE);
	JNE(c, &early);
	tid_to_slot(c, env, true);
	JMP(c, &parts->locked);
	bind(c, &early);
	compare_byte(c, env->live, KYMO_PAD_EARLY);
	branch(c, &parts->not_glibcs, "\x0f\x84", 2); /* je */
	jump_back(c, parts->end);
	bind(c, &parts->not_glibcs);
	tid_to_slot(c, env, false);
	JMP(c, &parts->locked);
}

void x86_event_cold(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		    const struct x86_pad_site *site, struct x86_event_code *parts)
{
	struct label handled = { .n = 0 }, again = { .n = 0 }, parent = { .n = 0 };
	struct kymo_guest_image guest;
	size_t locked;

	kymo_guest_image(&guest);
	emit_states(c, env, parts);

	bind(c, &parts->vfork); /* r10: the list */
	call_guest(c, env, guest.vfork);
	EMIT(c, 0x4d, 0x85, 0xd2); /* test %r10,%r10 */
	JE(c, &parent);
	movabs(c, R10, env->data + offsetof(struct kymo_wire_data, lost_in_vforks));
	EMIT(c, 0xf0, 0x49, 0xff, 0x02); /* lock incq (%r10) */
	jump_back(c, parts->end);
	bind(c, &parent);
	tid_to_slot(c, env, true);
	JMP(c, &parts->locked);

	bind(c, &parts->unregistered);
	clear_rseq(c, env);
	tid_to_slot(c, env, true);
	JMP(c, &parts->locked);

	bind(c, &parts->full); /* r10: the ring */
	if (varies(event))
		find_large(c, &parts->large);
	bind(c, &parts->broken);
	clear_rseq(c, env);
	EMIT(c, 0x64, 0x4c, 0x03, 0x1c, 0x25, 0, 0, 0, 0); /* add %fs:0,%r11 */
	call_guest(c, env, guest.change);
	EMIT(c, 0x49, 0x83, 0xfa, KYMO_GUEST_AGAIN); /* cmp $AGAIN,%r10 */
	branch(c, &again, "\x0f\x84", 2);
	EMIT(c, 0x4d, 0x85, 0xd2);
	JE(c, &handled);
	tid_to_slot(c, env, true);

	bind(c, &parts->locked);
	locked = c->n;
	emit_locked(c, env, event, site);
	bind(c, &handled);
	jump_back(c, parts->end);
	bind(c, &again); /* a few times: another process may write the ring's words, and keep them full */
	EMIT(c, 0xff);   /* decl tid(%rsp) */
	rsp_operand(c, 1, SLOT_TID);
	branch_back(c, "\x0f\x85", 2, parts->restart); /* jne */
	tid_to_slot(c, env, true);
	jump_back(c, locked);
	if (varies(event)) {
		bind(c, &parts->large); /* r10: the ring */
		clear_rseq(c, env);
		count_loss(c);
		jump_back(c, parts->end);
	}
}

/* struct rseq_cs, and the abort handler with the signature in front. */
void x86_event_descriptor(struct code *c, const uint64_t descriptor[3], size_t restart)
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

/* ---- without sequences: one form, in line ---------------------------------------------------- */

void x86_event_plain(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		     const struct x86_pad_site *site, struct x86_event_code *parts)
{
	compare_byte(c, env->live, KYMO_PAD_LIVE);
	JNE(c, &parts->state);
	tid_to_slot(c, env, true);
	bind(c, &parts->locked);
	parts->restart = c->n;
	emit_locked(c, env, event, site);
	parts->end = c->n;
}

void x86_event_plain_states(struct code *c, const struct kymo_pad_env *env, struct x86_event_code *parts)
{
	struct label skip = { .n = 0 };

	bind(c, &parts->state);
	compare_byte(c, env->live, KYMO_PAD_EARLY);
	JNE(c, &skip);
	tid_to_slot(c, env, false);
	jump_back(c, parts->restart);
	bind(c, &skip);
	jump_back(c, parts->end);
}
