/*
 * The slow half of a pad: what a probe does when its ring is taken or its sub-buffer is full.
 *
 * This code runs inside of targets. It is compiled separately (general registers only, no stack protector, no calls
 * out, no data), into a section of its own. It is copied from the controller's image to the start of every pad region;
 * so it may refer to nothing outside of that section. Pads reach it through the two entries at its start, whose
 * convention is not the ABI's: arguments and results in r10 and rax, every other register preserved but rdx and r11,
 * the stack free below rsp.
 *
 * guest_read.c has what reads memory that may not be there, and guest_strike.c what makes calls that take memory away.
 * Neither is done within a sequence of a record, nor with a ring's lock held.
 *
 * Time: a sub-buffer is changed once in some ten thousand records; nothing here is worth a trick.
 */
#include "arch/x86_64/guest.h"

#include <stddef.h>
#include <stdint.h>

#include "arch/pad.h"
#include "arch/x86_64/guest_calls.h"
#include "wire/shared.h"

#define REORDER_TICKS 1000

static inline __attribute__((always_inline)) uint64_t stamp(void)
{
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
}

/*
 * An out-of-order CPU may run a sequence's rdtsc before the load of `end` that admits it, as far as its reorder buffer
 * allows. The stamp must not come before `now`: so `end` is stored that much later.
 */
static inline __attribute__((always_inline)) void wait_out_reordering(uint64_t now)
{
	while (stamp() - now < REORDER_TICKS)
		;
}

static inline __attribute__((always_inline)) struct kymo_wire_ring *ring_at(char *rings, uint32_t index)
{
	return (struct kymo_wire_ring *)(rings + (uint64_t)index * KYMO_WIRE_RING_STRIDE);
}

/*
 * Any ring whose lock is free, locked; NULL when all are taken, which is counted as a loss on the first. `rings` is the
 * address of ring 0. Two rounds, because a holder on another CPU is done within nanoseconds.
 */
GUEST struct kymo_wire_ring *kymo_guest_take(char *rings, uint32_t n)
{
	for (uint32_t i = 0; i < 2 * n; i++) {
		struct kymo_wire_ring *ring = ring_at(rings, i < n ? i : i - n);

		if (!__atomic_load_n(&ring->lock, __ATOMIC_RELAXED) &&
		    !__atomic_exchange_n(&ring->lock, 1, __ATOMIC_ACQUIRE))
			return ring;
	}
	__atomic_fetch_add(&ring_at(rings, 0)->lost, 1, __ATOMIC_RELAXED);
	return 0;
}

/* What is used of a ring: as much as its words say, and never more than it has. */
struct use {
	const struct kymo_pad_ring *most;
	uint64_t size;
	uint32_t n;
};

/* Each word is loaded once: another process may change it at any moment. */
static inline __attribute__((always_inline)) struct use use_of(const struct kymo_wire_ring *ring,
							       const struct kymo_pad_rings *geometry)
{
	struct use use = {
		.most = &geometry->rings[((uint64_t)(const char *)ring - geometry->first) / KYMO_WIRE_RING_STRIDE]
	};

	use.size = __atomic_load_n(&ring->subbuffer_size, __ATOMIC_RELAXED);
	use.n = __atomic_load_n(&ring->n_subbuffers, __ATOMIC_RELAXED);
	if (use.size > use.most->subbuffer_size)
		use.size = use.most->subbuffer_size;
	if (use.n > use.most->n_subbuffers)
		use.n = use.most->n_subbuffers;
	return use;
}

/* Packet `opened - 1` is complete. What its entry says is for the recorder, which checks it. */
static inline __attribute__((always_inline)) void close_packet(struct kymo_wire_ring *ring, const struct use *use,
							       uint64_t opened, uint64_t now)
{
	uint32_t k = (uint32_t)((opened - 1) % use->n);
	struct kymo_wire_subbuffer *sub = &ring->subbuffers[k];

	sub->size = ring->cur - (use->most->data_offset + k * use->size);
	sub->tsc_end = now;
	sub->lost = __atomic_load_n(&ring->lost, __ATOMIC_RELAXED);
	/* First of all, for a death in between: a packet that is closed twice is nothing, one that never is would be
	 * lost. */
	__atomic_store_n(&ring->closed, opened, __ATOMIC_RELEASE);
	ring->is_open = 0;
	ring->end = 0;
}

/*
 * Called with the lock of `ring` held and no room for a record. Closes the packet that is open and opens the next:
 * returns `ring`. When the recorder has not yet copied the sub-buffer that comes next, the record is counted as lost,
 * the lock released, NULL returned.
 */
GUEST struct kymo_wire_ring *kymo_guest_switch(struct kymo_wire_ring *ring, char *unused,
					       const struct kymo_pad_rings *geometry)
{
	uint64_t now = stamp(), opened = __atomic_load_n(&ring->opened, __ATOMIC_RELAXED),
		 last = __atomic_load_n(&ring->last_tsc, __ATOMIC_RELAXED), start;
	struct use use = use_of(ring, geometry);
	struct kymo_wire_subbuffer *sub;

	if (now < last)
		now = last;
	if (use.n && ring->is_open)
		close_packet(ring, &use, opened, now);
	if (!use.n || (!geometry->overwrite && opened - __atomic_load_n(&ring->consumed, __ATOMIC_ACQUIRE) >= use.n)) {
		__atomic_fetch_add(&ring->lost, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&ring->lock, 0, __ATOMIC_RELEASE);
		return 0;
	}
	sub = &ring->subbuffers[opened % use.n];
	start = use.most->data_offset + (opened % use.n) * use.size;
	sub->sequence = opened;
	sub->tsc_begin = now;
	ring->last_tsc = now;
	ring->thread_at = KYMO_WIRE_NO_THREAD;
	ring->cur = start;
	ring->is_open = 1;
	__atomic_store_n(&ring->opened, opened + 1, __ATOMIC_RELEASE);
	wait_out_reordering(now);
	__atomic_store_n(&ring->end, start + use.size, __ATOMIC_RELEASE);
	return ring;
}

/*
 * As a sequence on CPU `cpu`: `end` of its ring becomes 0. From then on no other sequence there gets past its look for
 * room, and none that was under way commits: it was preempted, so it begins anew. The descriptor may lie on the stack
 * (rseq(2)): it is read when the thread is preempted.
 */
static inline __attribute__((always_inline)) int close_on(struct kymo_wire_ring *ring, char *area, uint32_t cpu)
{
	struct {
		uint32_t version, flags;
		uint64_t start, size, abort;
	} descriptor __attribute__((aligned(32)));
	int closed;

	__asm__ volatile("movq $0, (%[descriptor])\n"
			 "lea 1f(%%rip), %%rax\n"
			 "mov %%rax, 8(%[descriptor])\n"
			 "movq $2f - 1f, 16(%[descriptor])\n"
			 "lea 3f(%%rip), %%rax\n"
			 "mov %%rax, 24(%[descriptor])\n"
			 "mov %[descriptor], 8(%[area])\n"
			 "1: cmp %[cpu], 4(%[area])\n"
			 "jne 4f\n"
			 "movq $0, %c[end](%[ring])\n"
			 "2: mov $1, %%eax\n"
			 "jmp 5f\n"
			 ".long 0x53053053\n"
			 "3:\n"
			 "4: xor %%eax, %%eax\n"
			 "5: movq $0, 8(%[area])\n"
			 : "=&a"(closed)
			 : [descriptor] "r"(&descriptor), [area] "r"(area), [cpu] "r"(cpu), [ring] "r"(ring),
			   [end] "i"(__builtin_offsetof(struct kymo_wire_ring, end))
			 : "memory", "cc");
	return closed;
}

/* A sequence found no room in `ring`. The thread that gets the lock changes the sub-buffer. */
GUEST uint64_t kymo_guest_change(struct kymo_wire_ring *ring, char *area, const struct kymo_pad_rings *geometry)
{
	uint64_t i = ((uint64_t)(char *)ring - geometry->first) / KYMO_WIRE_RING_STRIDE;

	if (__atomic_exchange_n(&ring->lock, 1, __ATOMIC_ACQUIRE))
		return KYMO_GUEST_LOCKED;
	if (close_on(ring, area, geometry->rings[i].cpu) && !kymo_guest_switch(ring, area, geometry))
		return 0;
	__atomic_store_n(&ring->lock, 0, __ATOMIC_RELEASE);
	return KYMO_GUEST_AGAIN;
}

/* Some thread waits for a child that has its control block. A running thread with the same one is that child. */
GUEST uint64_t kymo_guest_is_vfork_child(const struct kymo_wire_vforks *vforks)
{
	uint64_t self;

	__asm__("mov %%fs:16, %0" : "=r"(self));
	for (uint32_t i = 0; i < KYMO_WIRE_MAX_VFORKS; i++)
		if (__atomic_load_n(&vforks->threads[i], __ATOMIC_ACQUIRE) == self)
			return 1;
	return 0;
}

/*
 * The entries. The stack is not aligned: code without vector registers does not rely on that. The registers that C may
 * change are saved, except rax, rdx and r11, which a pad has saved already. r10 comes back as the ring (or 0), and rax
 * too.
 *
 *	kymo_guest_take_entry	r10: ring 0, r11d: number of rings
 *	kymo_guest_switch_entry	r10: ring, rdx: struct kymo_pad_rings
 *	kymo_guest_change_entry	r10: ring, r11: struct rseq of the thread, rdx: as above; KYMO_GUEST_… comes back
 *	kymo_guest_vfork_entry	r10: struct kymo_wire_vforks; not 0 comes back in a vfork child
 *	kymo_guest_read_entry, …_string_entry, …_block_entry, …_list_entry
 *				r10: where to, r11: the live page, rdx: bytes, or of a string KYMO_GUEST_STRING(),
 *				rax: address; what C gives comes back
 *	kymo_guest_write_entry	r10: from where, r11: the live page, rdx: bytes, rax: address
 *	kymo_guest_ask_entry	r10: where to, r11: the live page, rdx: number of the call, rax: its first argument
 *	kymo_guest_strike_entry	r10: the pad's frame, r11: the live page; what C gives comes back, in rax and rdx
 */
__asm__(".pushsection kymo_guest,\"ax\",@progbits\n"
	".irp entry, take,switch,change,vfork,read,string,block,list,write,ask,strike\n"
	".globl kymo_guest_\\entry\\()_entry\n	.hidden kymo_guest_\\entry\\()_entry\n"
	".endr\n"
	".macro kymo_enter function, fourth=rax\n"
	"	push %rcx\n	push %rsi\n	push %rdi\n	push %r8\n	push %r9\n"
	"	mov %r10, %rdi\n	mov %r11, %rsi\n	mov %\\fourth, %rcx\n"
	"	call \\function\n"
	"	mov %rax, %r10\n"
	"	pop %r9\n	pop %r8\n	pop %rdi\n	pop %rsi\n	pop %rcx\n"
	"	ret\n"
	".endm\n"
	".balign 16\n"
	"kymo_guest_take_entry: kymo_enter kymo_guest_take\n"
	".balign 16\n"
	"kymo_guest_switch_entry: kymo_enter kymo_guest_switch\n"
	".balign 16\n"
	"kymo_guest_change_entry: kymo_enter kymo_guest_change\n"
	".balign 16\n"
	"kymo_guest_vfork_entry: kymo_enter kymo_guest_is_vfork_child\n"
	".balign 16\n"
	"kymo_guest_read_entry: kymo_enter kymo_guest_read\n"
	".balign 16\n"
	"kymo_guest_string_entry: kymo_enter kymo_guest_string\n"
	".balign 16\n"
	"kymo_guest_block_entry: kymo_enter kymo_guest_block\n"
	".balign 16\n"
	"kymo_guest_list_entry: kymo_enter kymo_guest_list\n"
	".balign 16\n"
	"kymo_guest_write_entry: kymo_enter kymo_guest_write\n"
	".balign 16\n"
	"kymo_guest_ask_entry: kymo_enter kymo_guest_ask\n"
	".balign 16\n"
	"kymo_guest_strike_entry: kymo_enter kymo_guest_strike, rsp\n"
	/* Only a thread that makes a remote call comes here, if each other system call has a probe (proc/call.c). */
	".balign 16\n"
	"	syscall\n	ret\n"
	".popsection\n");

extern const uint8_t __start_kymo_guest[], __stop_kymo_guest[];
extern const uint8_t kymo_guest_take_entry[], kymo_guest_switch_entry[], kymo_guest_change_entry[],
	kymo_guest_vfork_entry[], kymo_guest_read_entry[], kymo_guest_string_entry[], kymo_guest_block_entry[],
	kymo_guest_list_entry[], kymo_guest_write_entry[], kymo_guest_ask_entry[], kymo_guest_strike_entry[];

void kymo_guest_image(struct kymo_guest_image *ret)
{
	ret->bytes = __start_kymo_guest;
	ret->size = (uint32_t)(__stop_kymo_guest - __start_kymo_guest);
	ret->take = (uint32_t)(kymo_guest_take_entry - __start_kymo_guest);
	ret->switch_ = (uint32_t)(kymo_guest_switch_entry - __start_kymo_guest);
	ret->change = (uint32_t)(kymo_guest_change_entry - __start_kymo_guest);
	ret->vfork = (uint32_t)(kymo_guest_vfork_entry - __start_kymo_guest);
	ret->read = (uint32_t)(kymo_guest_read_entry - __start_kymo_guest);
	ret->string = (uint32_t)(kymo_guest_string_entry - __start_kymo_guest);
	ret->block = (uint32_t)(kymo_guest_block_entry - __start_kymo_guest);
	ret->list = (uint32_t)(kymo_guest_list_entry - __start_kymo_guest);
	ret->write = (uint32_t)(kymo_guest_write_entry - __start_kymo_guest);
	ret->ask = (uint32_t)(kymo_guest_ask_entry - __start_kymo_guest);
	ret->strike = (uint32_t)(kymo_guest_strike_entry - __start_kymo_guest);
}

/* The recorder's own use of the same sequence; an image of this file is in it, too. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

bool kymo_pad_close_ring(struct kymo_wire_ring *ring, uint32_t cpu)
{
	if (!&__rseq_offset || !__rseq_size)
		return false;
	return close_on(ring, (char *)__builtin_thread_pointer() + __rseq_offset, cpu);
}
