/*
 * The slow half of a pad: what a probe does when its ring is taken or its sub-buffer is full.
 *
 * This code runs inside of targets. It is compiled separately (general registers only, no stack protector, no calls
 * out, no data), into a section of its own. It is copied from the controller's image to the start of every pad region;
 * so it may refer to nothing outside of that section. Pads reach it through the two entries at its start, whose
 * convention is not the ABI's: arguments and results in r10 and rax, every other register preserved but rdx and r11,
 * the stack free below rsp.
 *
 * What reads memory that may not be there is here, too: a system call. It is never made within a sequence, nor with a
 * ring's lock held (docs/internals/reading.md).
 *
 * Time: a sub-buffer is changed once in some ten thousand records; nothing here is worth a trick.
 */
#include "arch/x86_64/guest.h"

#include <stddef.h>
#include <stdint.h>

#include "arch/pad.h"
#include "base/page.h"
#include "wire/shared.h"

#define REORDER_TICKS 1000

#define GUEST __attribute__((section("kymo_guest"), used, noinline, visibility("hidden")))

uint64_t kymo_guest_is_vfork_child(const struct kymo_wire_vforks *vforks);
int64_t kymo_guest_read(char *to, uint64_t process, uint64_t size, uint64_t address);
int64_t kymo_guest_string(char *to, uint64_t process, uint64_t limit, uint64_t address);
int64_t kymo_guest_block(char *to, uint64_t process, uint64_t size, uint64_t address);
int64_t kymo_guest_list(char *to, uint64_t process, uint64_t size, uint64_t address);
int64_t kymo_guest_ask(char *to, uint64_t process, uint64_t number, uint64_t first);

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

/* ---- memory that may not be there ------------------------------------------------------------ */

#define CERTAIN UINT64_MAX /* in place of a process: it can be read for certain */

struct stretch {
	uint64_t address, size;
};

/* What takes 1 for its third argument, 2 and 0 for the last; or takes none. */
static inline __attribute__((always_inline)) int64_t call(int64_t number, uint64_t a, uint64_t b, uint64_t c)
{
	register uint64_t r10 __asm__("r10") = c;
	register uint64_t r8 __asm__("r8") = 2;
	register uint64_t r9 __asm__("r9") = 0;
	int64_t ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(number), "D"(a), "S"(b), "d"(1L), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define PROCESS_VM_READV 310
#define GETTID 186
#define NO_SUCH_PROCESS (-3)

/* Bytes that were read from `address` on: fewer than `size` where there is a hole, and none, or an errno, at one. What
 * crosses a page is asked for as two stretches: a stretch is read as a whole or not (process_vm_readv(2)). */
static inline __attribute__((always_inline)) int64_t read_memory(char *to, uint64_t process, uint64_t size,
								 uint64_t address)
{
	const uint64_t in_page = KYMO_PAGE_SIZE - address % KYMO_PAGE_SIZE, first = in_page < size ? in_page : size;
	const struct stretch from[2] = { { address, first }, { address + first, size - first } };
	const struct stretch local = { (uint64_t)to, size };
	int64_t n;

	if (!process)
		return 0;
	n = call(PROCESS_VM_READV, process, (uint64_t)&local, (uint64_t)from);
	if (n == NO_SUCH_PROCESS) /* the initial thread has ended, and has no memory any more: by this one's id */
		n = call(PROCESS_VM_READV, (uint64_t)call(GETTID, 0, 0, 0), (uint64_t)&local, (uint64_t)from);
	return n;
}

GUEST int64_t kymo_guest_read(char *to, uint64_t process, uint64_t size, uint64_t address)
{
	return read_memory(to, process, size, address);
}

/* The same where nothing can fault; up to a NUL, if `is_string`. */
static inline __attribute__((always_inline)) int64_t copy(char *to, uint64_t size, uint64_t address, int is_string)
{
	const volatile char *from = (const volatile char *)address;
	volatile char *at = to;

	for (uint64_t i = 0; i < size; i++) {
		char c = from[i];

		at[i] = c;
		if (is_string && !c)
			return (int64_t)i + 1;
	}
	return (int64_t)size;
}

/*
 * A string at `to`, with its NUL; there is room for `limit` + 4 bytes. Its length comes back, or -1: it could not be
 * read up to its NUL or its limit, and is empty now.
 */
GUEST int64_t kymo_guest_string(char *to, uint64_t process, uint64_t limit, uint64_t address)
{
	int64_t n = process == CERTAIN ? copy(to, limit + 1, address, 1) : read_memory(to, process, limit + 1, address);

	for (int64_t i = 0; i < n; i++)
		if (!to[i])
			return i;
	if (n != (int64_t)limit + 1) {
		*to = 0;
		return -1;
	}
	for (int i = 0; i < 4; i++)
		((volatile char *)to)[limit + (uint64_t)i] = (char)(0xa680e2u >> 8 * i); /* KYMO_STRING_CUT, NUL */
	return n + 2;
}

/* Bytes at `to`, after their number, a u16. That comes back, n, if it is `size`, else -1 - n. */
GUEST int64_t kymo_guest_block(char *to, uint64_t process, uint64_t size, uint64_t address)
{
	int64_t n = process == CERTAIN ? copy(to + 2, size, address, 0) : read_memory(to + 2, process, size, address);

	if (n < 0)
		n = 0;
	to[0] = (char)n;
	to[1] = (char)(n >> 8);
	return n == (int64_t)size ? n : -1 - n;
}

typedef uint64_t __attribute__((aligned(1), may_alias)) element;

/* The same of pointers that a NULL may end, in `size` bytes or less: what is after it is not looked at, and may be no
 * memory. */
GUEST int64_t kymo_guest_list(char *to, uint64_t process, uint64_t size, uint64_t address)
{
	int64_t n = process == CERTAIN ? copy(to + 2, size, address, 0) : read_memory(to + 2, process, size, address);

	for (int64_t i = 0; i + 8 <= n; i += 8)
		if (!*(const volatile element *)(to + 2 + i)) {
			n = i;
			size = (uint64_t)i;
		}
	if (n < 0)
		n = 0;
	to[0] = (char)n;
	to[1] = (char)(n >> 8);
	return n == (int64_t)size ? n : -1 - n;
}

/* A system call about the thread itself, which waits for nothing: of `first`, and the address of what it answers. 0:
 * it is there. Where memory may not be read by a call, none is made. */
GUEST int64_t kymo_guest_ask(char *to, uint64_t process, uint64_t number, uint64_t first)
{
	return process ? call((int64_t)number, first, (uint64_t)to, 0) : -1;
}

/*
 * The entries. The stack is aligned by hand. The registers that C may change are saved, except rax, rdx and r11, which
 * a pad has saved already. r10 comes back as the ring (or 0), and rax too.
 *
 *	kymo_guest_take_entry	r10: ring 0, r11d: number of rings
 *	kymo_guest_switch_entry	r10: ring, rdx: struct kymo_pad_rings
 *	kymo_guest_change_entry	r10: ring, r11: struct rseq of the thread, rdx: as above; KYMO_GUEST_… comes back
 *	kymo_guest_vfork_entry	r10: struct kymo_wire_vforks; not 0 comes back in a vfork child
 *	kymo_guest_read_entry, …_string_entry, …_block_entry, …_list_entry
 *				r10: where to, r11: the process, rdx: bytes, rax: address; what C gives comes back
 *	kymo_guest_ask_entry	r10: where to, r11: the process, rdx: number of the call, rax: its first argument
 */
__asm__(".pushsection kymo_guest,\"ax\",@progbits\n"
	".irp entry, take,switch,change,vfork,read,string,block,list,ask\n"
	".globl kymo_guest_\\entry\\()_entry\n	.hidden kymo_guest_\\entry\\()_entry\n"
	".endr\n"
	".macro kymo_enter function\n"
	"	push %rbp\n	mov %rsp, %rbp\n	and $-16, %rsp\n"
	"	push %rcx\n	push %rsi\n	push %rdi\n	push %r8\n	push %r9\n	push %r9\n"
	"	mov %r10, %rdi\n	mov %r11, %rsi\n	mov %rax, %rcx\n"
	"	call \\function\n"
	"	mov %rax, %r10\n"
	"	pop %r9\n	pop %r9\n	pop %r8\n	pop %rdi\n	pop %rsi\n	pop %rcx\n"
	"	mov %rbp, %rsp\n	pop %rbp\n	ret\n"
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
	"kymo_guest_ask_entry: kymo_enter kymo_guest_ask\n"
	/* Only a thread that makes a remote call comes here, if each other system call has a probe (proc/call.c). */
	".balign 16\n"
	"	syscall\n	ret\n"
	".popsection\n");

extern const uint8_t __start_kymo_guest[], __stop_kymo_guest[];
extern const uint8_t kymo_guest_take_entry[], kymo_guest_switch_entry[], kymo_guest_change_entry[],
	kymo_guest_vfork_entry[], kymo_guest_read_entry[], kymo_guest_string_entry[], kymo_guest_block_entry[],
	kymo_guest_list_entry[], kymo_guest_ask_entry[];

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
	ret->ask = (uint32_t)(kymo_guest_ask_entry - __start_kymo_guest);
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
