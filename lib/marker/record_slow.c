/*
 * rings.slow: a record that the sequence of compiled code can't make. It has found no room, or the arguments have
 * strings, or the thread has no restartable sequences.
 *
 * A record is made by a sequence here, too, the payload copied within it; where there is no room the sub-buffer is
 * changed as pads do it (arch/x86_64/guest.c, which is linked into this library). A thread that can't use a sequence
 * takes a ring with a lock, and never waits: a lock that is taken means another ring. src/arch/x86_64/emit.c says why
 * that is right.
 *
 * This runs wherever a marker is: below any signal handler, with anything in the vector registers. So this file is
 * compiled for general registers only, is not instrumented, and calls nothing but guest.c.
 */
#include "record_slow.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "arch/x86_64/guest.h"
#include "record_rings.h"
#include "wire/event.h"

#define TRIES 64 /* of a sequence: each time preempted, or on another CPU than the one whose sub-buffer was changed */
#define RSEQ_CPU_ID 4

const uint32_t *kymo_record_types[RECORD_CHUNKS];
_Thread_local uint32_t kymo_record_tid __attribute__((tls_model("initial-exec")));

/* What the sequence reads; its offsets are in the assembly. */
struct record {
	uint64_t first, n_cpus;               /* rings for sequences */
	const struct kymo_pad_ring *geometry; /* of them */
	uint64_t id;
	const void *payload;
	uint64_t size; /* bytes of it */
	uint32_t tid;
};
_Static_assert(offsetof(struct record, n_cpus) == 8 && offsetof(struct record, geometry) == 16 &&
		       offsetof(struct record, id) == 24 && offsetof(struct record, payload) == 32 &&
		       offsetof(struct record, size) == 40 && offsetof(struct record, tid) == 48 &&
		       sizeof(struct kymo_pad_ring) == 32 && offsetof(struct kymo_pad_ring, end) == 0 &&
		       offsetof(struct kymo_pad_ring, data_offset) == 8,
	       "offsets in the code below");
_Static_assert(offsetof(struct kymo_wire_ring, cur) == 8 && offsetof(struct kymo_wire_ring, end) == 16 &&
		       offsetof(struct kymo_wire_ring, last_tsc) == 24 && KYMO_WIRE_RING_STRIDE == 1 << 10,
	       "offsets in the code below");
_Static_assert(KYMO_EVENT_ID_BITS == 20 && KYMO_EVENT_TID_OFFSET == 8 && KYMO_EVENT_ARGS_OFFSET == 12,
	       "a record's header below");

struct __attribute__((packed)) header {
	uint64_t stamp_and_id;
	uint32_t tid;
};

struct __attribute__((packed)) word4 {
	uint32_t value;
};

struct __attribute__((packed)) word8 {
	uint64_t value;
};

/* ---- by a sequence --------------------------------------------------------------------------- */

enum outcome {
	DONE,
	FULL,
	UNREGISTERED, /* the thread has no sequences */
	RESTARTED,
};

/* `area` is the thread's struct rseq. FULL: `ring_ret` has no room. */
static inline __attribute__((always_inline)) enum outcome store_in_sequence(const struct record *record, char *area,
									    struct kymo_wire_ring **ring_ret)
{
	uint64_t outcome;
	register struct kymo_wire_ring *ring __asm__("r10");

	__asm__ volatile("lea 988f(%%rip), %%rax\n"
			 "mov %%rax, 8(%[area])\n"
			 "984: mov 4(%[area]), %%r10d\n"
			 "cmp 8(%[record]), %%r10\n"
			 "jae 2f\n"
			 "mov %%r10, %%rsi\n"
			 "shl $5, %%rsi\n"
			 "add 16(%[record]), %%rsi\n"
			 "shl $10, %%r10\n"
			 "add (%[record]), %%r10\n"
			 "mov 40(%[record]), %%rcx\n"
			 "mov 16(%%r10), %%rdx\n" /* `end` before `cur` */
			 "cmp (%%rsi), %%rdx\n"   /* both within the ring, whatever they say */
			 "ja 1f\n"
			 "mov 8(%%r10), %%rdi\n"
			 "cmp 8(%%rsi), %%rdi\n"
			 "jl 1f\n"
			 "lea 12(%%rdi,%%rcx), %%r11\n"
			 "cmp %%rdx, %%r11\n"
			 "ja 1f\n"
			 "add %%r10, %%rdi\n"
			 "mov 48(%[record]), %%eax\n"
			 "mov %%eax, 8(%%rdi)\n"
			 "rdtsc\n"
			 "shl $32, %%rdx\n"
			 "or %%rdx, %%rax\n"
			 "mov %%rax, 24(%%r10)\n"
			 "shl $20, %%rax\n"
			 "or 24(%[record]), %%rax\n"
			 "mov %%rax, (%%rdi)\n"
			 "add $12, %%rdi\n"
			 "mov 32(%[record]), %%rsi\n"
			 "rep movsb\n"
			 "mov %%r11, 8(%%r10)\n" /* it counts */
			 "985: mov %[done], %%eax\n"
			 "jmp 3f\n"
			 "1: mov %[full], %%eax\n"
			 "jmp 3f\n"
			 "2: mov %[unregistered], %%eax\n"
			 "jmp 3f\n"
			 ".byte 0x0f, 0xb9, 0x3d\n" /* ud1: the signature disassembles as its operand */
			 ".4byte 0x53053053\n"
			 "986: mov %[restarted], %%eax\n"
			 "3: movq $0, 8(%[area])\n"
			 ".pushsection __rseq_cs,\"aw\"\n"
			 ".balign 32\n"
			 "988: .4byte 0, 0\n"
			 ".8byte 984b, 985b - 984b, 986b\n"
			 ".popsection\n"
			 : "=&a"(outcome), "=&r"(ring)
			 : [area] "r"(area), [record] "r"(record), [done] "i"(DONE), [full] "i"(FULL),
			   [unregistered] "i"(UNREGISTERED), [restarted] "i"(RESTARTED)
			 : "rcx", "rdx", "rsi", "rdi", "r11", "memory", "cc");
	*ring_ret = ring;
	return (enum outcome)outcome;
}

/* ---- by a lock ------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void copy(void *to, const void *from, uint64_t size)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size)::"memory");
}

static inline __attribute__((always_inline)) uint64_t read_tsc(void)
{
	uint32_t low, high;

	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

/* The CPU's number is in the low 12 bits of TSC_AUX and of the limit of segment 0x7b. */
static uint32_t current_cpu(const struct record_rings *rings)
{
	uint64_t number;

	if (rings->has_rdpid)
		__asm__ volatile(".byte 0xf3, 0x0f, 0xc7, 0xf8" : "=a"(number)); /* rdpid %rax */
	else
		__asm__ volatile("lsl %1, %0" : "=r"(number) : "r"(UINT64_C(0x7b)) : "cc");
	number &= 0xfff;
	return number < rings->n_cpus ? (uint32_t)number : 0;
}

static struct kymo_wire_ring *take_ring(const struct record_rings *rings)
{
	char *first = (char *)rings->locked;
	struct kymo_wire_ring *ring = (void *)(first + (uint64_t)current_cpu(rings) * KYMO_WIRE_RING_STRIDE);

	if (!__atomic_exchange_n(&ring->lock, 1, __ATOMIC_ACQUIRE))
		return ring;
	return kymo_guest_take(first, rings->n_locked);
}

/* Where a record of `size` bytes goes, within the ring whatever its words say; 0: there is no room. */
static uint64_t find_room(const struct record_rings *rings, const struct kymo_wire_ring *ring, uint64_t size)
{
	const struct kymo_pad_ring *most =
		&rings->geometry->rings[((uint64_t)(uintptr_t)ring - rings->geometry->first) / KYMO_WIRE_RING_STRIDE];
	uint64_t end = __atomic_load_n(&ring->end, __ATOMIC_ACQUIRE),
		 cur = __atomic_load_n(&ring->cur, __ATOMIC_RELAXED);

	return end <= most->end && cur >= most->data_offset && cur <= end && size <= end - cur ? cur : 0;
}

/* The lock is held, and there is room at `cur`. */
static void store(struct kymo_wire_ring *ring, uint64_t cur, const struct record *record)
{
	uint8_t *at = (uint8_t *)ring + cur;
	struct header *header = (struct header *)at;
	uint64_t now = read_tsc();

	/* rdtsc may run ahead of the exchange. */
	if (now < ring->last_tsc)
		now = ring->last_tsc;
	ring->last_tsc = now;
	header->stamp_and_id = now << KYMO_EVENT_ID_BITS | record->id;
	header->tid = record->tid;
	copy(at + sizeof(*header), record->payload, record->size);
	__atomic_store_n(&ring->cur, cur + sizeof(*header) + record->size, __ATOMIC_RELEASE);
}

/* True where a sub-buffer was changed. */
static bool record_by_lock(const struct record_rings *rings, const struct record *record)
{
	uint64_t size = sizeof(struct header) + record->size;
	struct kymo_wire_ring *ring = take_ring(rings);
	bool is_changed = false;
	uint64_t cur;

	if (!ring)
		return false;
	cur = find_room(rings, ring, size);
	if (!cur) {
		is_changed = true;
		if (!kymo_guest_switch(ring, NULL, rings->geometry))
			return true;
		cur = find_room(rings, ring, size);
	}
	if (cur)
		store(ring, cur, record);
	else
		__atomic_fetch_add(&ring->lost, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&ring->lock, 0, __ATOMIC_RELEASE);
	return is_changed;
}

/* ---- both ------------------------------------------------------------------------------------ */

/* True where a sub-buffer was changed. */
static bool make_record(const struct record_rings *rings, const struct record *record)
{
	char *area = (char *)__builtin_thread_pointer() + rings->rings.rseq_offset;
	struct kymo_wire_ring *ring;

	for (int i = 0; i < TRIES && record->n_cpus; i++) {
		enum outcome outcome = store_in_sequence(record, area, &ring);
		uint64_t change;

		if (outcome == DONE)
			return i > 0;
		if (outcome == UNREGISTERED)
			break;
		if (outcome == RESTARTED)
			continue;
		change = kymo_guest_change(ring, area, rings->geometry);
		if (!change)
			return true;
		if (change == KYMO_GUEST_LOCKED)
			break;
	}
	return record_by_lock(rings, record);
}

static inline __attribute__((always_inline)) long system_call(long number, long a, long b, long c)
{
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
	return result;
}

static uint32_t thread_id(const struct record_rings *rings)
{
	if (rings->rings.tid_offset)
		return *(const uint32_t *)((const char *)__builtin_thread_pointer() + rings->rings.tid_offset);
	if (!kymo_record_tid)
		kymo_record_tid = (uint32_t)system_call(SYS_gettid, 0, 0, 0);
	return kymo_record_tid;
}

/* Arguments of the frame, 8 bytes each, as a record has them. Returns their size. */
static uint64_t pack(uint32_t types, const uint64_t *arguments, uint8_t *out)
{
	uint8_t *at = out;

	for (; types; types >>= 4, arguments++) {
		/* s32, u32, 32-bit pointer */
		if (0x106u >> (types & 15) & 1) {
			((struct word4 *)at)->value = (uint32_t)*arguments;
			at += 4;
		} else {
			((struct word8 *)at)->value = *arguments;
			at += 8;
		}
	}
	return (uint64_t)(at - out);
}

static void wake_writer(struct record_rings *rings)
{
	if (__atomic_load_n(&rings->is_asleep, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&rings->is_asleep, 0, __ATOMIC_SEQ_CST))
		system_call(SYS_futex, (long)&rings->is_asleep, FUTEX_WAKE_PRIVATE, 1);
}

/* `payload` is NULL where there are no strings: then the frame has the arguments. */
void kymo_record_late(struct record_rings *rings, const struct kymo_marker_slots *slots, const uint64_t *arguments,
		      const uint8_t *payload, uint64_t size);
void kymo_record_late(struct record_rings *rings, const struct kymo_marker_slots *slots, const uint64_t *arguments,
		      const uint8_t *payload, uint64_t size)
{
	uint64_t id = __atomic_load_n(&slots->event_id, __ATOMIC_RELAXED);
	uint8_t packed[8 * KYMO_MARKER_MAX_ARGUMENTS];
	const uint32_t *types;

	if (!id || id > KYMO_EVENT_ID_MAX)
		return;
	types = __atomic_load_n(&kymo_record_types[id / RECORD_CHUNK], __ATOMIC_ACQUIRE);
	if (!types)
		return;
	if (!size) {
		size = pack(types[id % RECORD_CHUNK], arguments, packed);
		payload = packed;
	}
	struct record record = {
		.first = rings->rings.first,
		.n_cpus = rings->rings.n_cpus,
		.geometry = rings->geometry->rings,
		.id = id,
		.payload = payload,
		.size = size,
		.tid = thread_id(rings),
	};
	if (make_record(rings, &record))
		wake_writer(rings);
}

/*
 * rax: the rings, rdx: the slots, r10 and r11: payload and size. All registers but rax, rdx, r10, r11 are preserved;
 * the stack is aligned by hand. What the unwinder is told is in marker_x86_64.h: the caller's stack pointer is above
 * the return address by the sizes of frame (224 bytes, the arguments at 32) and payload (2,048).
 */
__asm__(".macro kymo_late above, arguments\n"
	"	.cfi_def_cfa %rsp, 8 + \\above\n"
	"	.cfi_offset %rip, -8 - \\above\n"
	"	push %rbp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	.cfi_offset %rbp, -16 - \\above\n"
	"	mov %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	push %rcx\n	push %rsi\n	push %rdi\n	push %r8\n	push %r9\n"
	"	.cfi_offset %rcx, -24 - \\above\n	.cfi_offset %rsi, -32 - \\above\n	.cfi_offset %rdi, -40 "
	"- \\above\n"
	"	.cfi_offset %r8, -48 - \\above\n	.cfi_offset %r9, -56 - \\above\n"
	"	and $-16, %rsp\n"
	"	mov %rax, %rdi\n	mov %rdx, %rsi\n	lea \\arguments(%rbp), %rdx\n	mov %r10, "
	"%rcx\n	mov %r11, %r8\n"
	"	call kymo_record_late\n"
	"	mov -8(%rbp), %rcx\n	mov -16(%rbp), %rsi\n	mov -24(%rbp), %rdi\n	mov -32(%rbp), %r8\n	mov "
	"-40(%rbp), %r9\n"
	"	mov %rbp, %rsp\n"
	"	pop %rbp\n"
	"	.cfi_def_cfa %rsp, 8 + \\above\n"
	"	ret\n"
	".endm\n"
	"	.text\n"
	"	.globl kymo_record_slow\n"
	"	.hidden kymo_record_slow\n"
	"	.type kymo_record_slow, @function\n"
	"	.p2align 4\n"
	"kymo_record_slow:\n"
	"	.cfi_startproc\n"
	"	.cfi_def_cfa %rsp, 8 + 224\n"
	"	.cfi_offset %rip, -8 - 224\n"
	"	endbr64\n"
	"	test %r11, %r11\n"
	"	jne 1f\n"
	"	.cfi_remember_state\n"
	"	kymo_late 224, 16 + 32\n"
	"	.cfi_restore_state\n"
	"1:	kymo_late 224 + 2048, 16 + 2048 + 32\n"
	"	.cfi_endproc\n"
	"	.size kymo_record_slow, . - kymo_record_slow\n");
