/*
 * Memory that may not be there, read and written within targets. Like guest.c, whose entries lead here: copied into
 * them, so nothing outside of the section is referred to.
 *
 * Three ways, the cheapest first: a plain load from the thread's own stack; one within a restartable sequence where the
 * table of readable memory says so (docs/design/fast-reads.md); a system call (docs/internals/reading.md).
 */
#include "arch/x86_64/guest_read.h"

#include <stddef.h>
#include <sys/syscall.h>

#include "arch/x86_64/guest.h"
#include "arch/x86_64/guest_calls.h"
#include "base/page.h"
#include "wire/readable.h"
#include "wire/shared.h"

#define TRIES 4 /* a sequence is begun anew when the thread is preempted or gets a signal */
#define IN_PLACE_MAX 1024
#define RSEQ_CPU_ID 4
#define RSEQ_CS 8

int64_t kymo_guest_string(char *to, const char *live, uint64_t limits, uint64_t address);
int64_t kymo_guest_block(char *to, const char *live, uint64_t size, uint64_t address);
int64_t kymo_guest_list(char *to, const char *live, uint64_t size, uint64_t address);
int64_t kymo_guest_ask(char *to, const char *live, uint64_t number, uint64_t first);

/* In place of a live page: it can be read for certain. */
GUEST_INLINE int is_certain(const char *live)
{
	return (uint64_t)live == UINT64_MAX;
}

GUEST_INLINE uint64_t thread_pointer(void)
{
	uint64_t self;

	__asm__("mov %%fs:16, %0" : "=r"(self));
	return self;
}

/*
 * Whether the thread is one of glibc's, which has told the kernel of its struct rseq where that control block says; and
 * is no vfork child, which has its parent's. Threads that are made without glibc count as vfork children do
 * (arch/guard.h), and may have no thread pointer at all. So the order matters.
 */
GUEST_INLINE int has_sequences(const char *live)
{
	const uint32_t *n_vforks;
	uint64_t first;

	if (__atomic_load_n(live, __ATOMIC_RELAXED) != KYMO_PAD_RSEQ)
		return 0;
	n_vforks = (const uint32_t *)guest_live_word(live, KYMO_PAD_LIVE_VFORKS);
	if (!n_vforks || __atomic_load_n(n_vforks, __ATOMIC_RELAXED))
		return 0;
	__asm__("mov %%fs:0, %0" : "=r"(first));
	return first == thread_pointer();
}

/* Whether it lies on a stack of glibc's that this thread runs on: that ends at the thread's control block, which points
 * to itself. */
GUEST_INLINE int is_on_stack(const char *live, uint64_t size, uint64_t address)
{
	const uint64_t word = guest_live_word(live, KYMO_PAD_LIVE_THREAD_STACK);
	uint64_t self, low, sp;

	if (!word || !has_sequences(live))
		return 0;
	self = thread_pointer();
	__asm__("mov %%rsp, %0" : "=r"(sp));
	__asm__("mov %%fs:(%1), %0" : "=r"(low) : "r"(word));
	return low && sp >= low && sp < self && address >= sp && size <= self - sp && address <= self - size;
}

/*
 * The sequence: what docs/design/fast-reads.md calls a reader. The descriptor may lie on the stack (rseq(2)). Nothing
 * of the table is touched outside of the sequence: in a child that a signal handler forked there is none.
 *
 *	rdi, rsi, rdx	to, from, bytes		r8, r9	the live page, struct rseq
 *	r10		the table		r11	this thread's slot
 *
 * What comes back: OUTCOME_…
 */
enum { OUTCOME_ELSE, OUTCOME_DONE, OUTCOME_AGAIN };

GUEST_INLINE int read_in_sequence(char *to, const char *live, char *area, uint64_t size, uint64_t address)
{
	struct guest_sequence descriptor; /* the kernel does not ask for its alignment */
	register const char *r8 __asm__("r8") = live;
	register char *r9 __asm__("r9") = area;
	register void *rbx __asm__("rbx") = &descriptor;
	int outcome;

	descriptor.mark = GUEST_SEQUENCE_MARK;
	__asm__ volatile(
		"movq $0, (%[descriptor])\n"
		"lea 1f(%%rip), %%rax\n"
		"mov %%rax, 8(%[descriptor])\n"
		"movq $2f - 1f, 16(%[descriptor])\n"
		"lea 3f(%%rip), %%rax\n"
		"mov %%rax, 24(%[descriptor])\n"
		"mov %[descriptor], %c[cs](%%r9)\n"
		/* The process is recorded, may be read, has no vfork child, has a table, and that is open. */
		"1: cmpb %[uses_sequences], (%%r8)\n"
		"jne 4f\n"
		"cmpq $0, %c[reader](%%r8)\n"
		"je 4f\n"
		"mov %c[vforks](%%r8), %%rax\n"
		"cmpl $0, (%%rax)\n"
		"jne 4f\n"
		"mov %c[readable](%%r8), %%r10\n"
		"test %%r10, %%r10\n"
		"je 4f\n"
		"testb $1, %c[state](%%r10)\n"
		"je 4f\n"
		/* The slot: one of a pair. */
		"mov %%fs:16, %%rcx\n"
		"mov %%rcx, %%rax\n"
		"shr $6, %%rax\n"
		"imul $0x9e3779b1, %%eax, %%eax\n"
		"shr $22, %%eax\n"
		"shl $4, %%eax\n"
		"lea %c[readers](%%r10, %%rax), %%r11\n"
		"cmp %%rcx, (%%r11)\n"
		"je 5f\n"
		"xor %%eax, %%eax\n"
		"lock cmpxchg %%rcx, (%%r11)\n"
		"je 5f\n"
		"xor $16, %%r11\n"
		"cmp %%rcx, (%%r11)\n"
		"je 5f\n"
		"xor %%eax, %%eax\n"
		"lock cmpxchg %%rcx, (%%r11)\n"
		"jne 4f\n"
		"5: mov %%rsi, 8(%%r11)\n"
		/* The block of that GiB, and the bytes of the first and the last page. */
		"mov %%rsi, %%rax\n"
		"shr %[gib_shift], %%rax\n"
		"mov %%eax, %%ecx\n"
		"and %[gib_mask], %%ecx\n"
		"inc %%rax\n"
		"cmp %%rax, %c[gib](%%r10, %%rcx, 8)\n"
		"jne 6f\n"
		"shl %[block_shift], %%rcx\n"
		"lea %c[pages](%%r10, %%rcx), %%rcx\n"
		"mov %%esi, %%eax\n"
		"and %[in_gib], %%eax\n"
		"shr $12, %%eax\n"
		"cmpb %[is_readable], (%%rcx, %%rax)\n"
		"jne 6f\n"
		"mov %%esi, %%eax\n"
		"and %[in_gib], %%eax\n"
		"lea -1(%%rax, %%rdx), %%rax\n"
		"shr $12, %%eax\n"
		"cmp %[gib_pages], %%eax\n"
		"jae 7f\n"
		"cmpb %[is_readable], (%%rcx, %%rax)\n"
		"je 8f\n"
		/* They are wanted. */
		"6: mov %%rsi, %%rax\n"
		"shr $12, %%rax\n"
		"mov %%eax, %%ecx\n"
		"and %[wanted_mask], %%ecx\n"
		"mov %%rax, %c[wanted](%%r10, %%rcx, 8)\n"
		"lea -1(%%rsi, %%rdx), %%rax\n"
		"shr $12, %%rax\n"
		"mov %%eax, %%ecx\n"
		"and %[wanted_mask], %%ecx\n"
		"mov %%rax, %c[wanted](%%r10, %%rcx, 8)\n"
		"7: movq $0, 8(%%r11)\n"
		"jmp 4f\n"
		"8: cmp $8, %%rdx\n"
		"jb 9f\n"
		"mov (%%rsi), %%rax\n"
		"mov %%rax, (%%rdi)\n"
		"add $8, %%rsi\n"
		"add $8, %%rdi\n"
		"sub $8, %%rdx\n"
		"jmp 8b\n"
		"9: test $4, %%dl\n"
		"je 10f\n"
		"mov (%%rsi), %%eax\n"
		"mov %%eax, (%%rdi)\n"
		"add $4, %%rsi\n"
		"add $4, %%rdi\n"
		"10: test $2, %%dl\n"
		"je 11f\n"
		"movzwl (%%rsi), %%eax\n"
		"mov %%ax, (%%rdi)\n"
		"add $2, %%rsi\n"
		"add $2, %%rdi\n"
		"11: test $1, %%dl\n"
		"je 12f\n"
		"movzbl (%%rsi), %%eax\n"
		"mov %%al, (%%rdi)\n"
		"12: movq $0, 8(%%r11)\n"
		"2: mov %[done], %%eax\n"
		"jmp 13f\n"
		".long 0x53053053\n"
		"3: mov %[again], %%eax\n"
		"jmp 13f\n"
		"4: mov %[else_], %%eax\n"
		"13: movq $0, %c[cs](%%r9)\n"
		: "=&a"(outcome), "+D"(to), "+S"(address), "+d"(size)
		: "r"(r8), "r"(r9), [descriptor] "r"(rbx), [cs] "i"(RSEQ_CS), [uses_sequences] "i"(KYMO_PAD_RSEQ),
		  [reader] "i"(KYMO_PAD_LIVE_READER), [vforks] "i"(KYMO_PAD_LIVE_VFORKS),
		  [readable] "i"(KYMO_PAD_LIVE_READABLE), [state] "i"(offsetof(struct kymo_wire_readable, state)),
		  [readers] "i"(offsetof(struct kymo_wire_readable, readers)),
		  [gib] "i"(offsetof(struct kymo_wire_readable, gib)),
		  [pages] "i"(offsetof(struct kymo_wire_readable, pages)),
		  [wanted] "i"(offsetof(struct kymo_wire_readable, wanted)), [gib_shift] "i"(KYMO_WIRE_GIB_SHIFT),
		  [gib_mask] "i"(KYMO_WIRE_READABLE_GIB - 1), [block_shift] "i"(KYMO_WIRE_GIB_SHIFT - 12),
		  [in_gib] "i"((1u << KYMO_WIRE_GIB_SHIFT) - 1), [gib_pages] "i"(KYMO_WIRE_GIB_PAGES),
		  [wanted_mask] "i"(KYMO_WIRE_WANTED - 1), [is_readable] "i"(KYMO_WIRE_PAGE_READABLE),
		  [done] "i"(OUTCOME_DONE), [again] "i"(OUTCOME_AGAIN), [else_] "i"(OUTCOME_ELSE)
		: "rcx", "r10", "r11", "memory", "cc");
	return outcome;
}

_Static_assert(KYMO_WIRE_READERS == 1 << 10, "the slot's shift");

GUEST_INLINE int read_in_place(char *to, const char *live, uint64_t size, uint64_t address)
{
	char *area;
	int outcome = OUTCOME_AGAIN;

	if (!guest_live_word(live, KYMO_PAD_LIVE_READABLE) || size - 1 >= IN_PLACE_MAX || !has_sequences(live))
		return 0;
	area = (char *)(thread_pointer() + guest_live_word(live, KYMO_PAD_LIVE_RSEQ_OFFSET));
	/* A thread that is not registered; a sequence of the program's, in which the probe is. */
	if (__atomic_load_n((int32_t *)(void *)(area + RSEQ_CPU_ID), __ATOMIC_RELAXED) < 0 ||
	    __atomic_load_n((uint64_t *)(void *)(area + RSEQ_CS), __ATOMIC_RELAXED))
		return 0;
	for (int i = 0; i < TRIES && outcome == OUTCOME_AGAIN; i++)
		outcome = read_in_sequence(to, live, area, size, address);
	return outcome == OUTCOME_DONE;
}

struct stretch {
	uint64_t address, size;
};

/* Bytes that were read from `address` on: fewer than `size` where there is a hole, and none, or an errno, at one. What
 * crosses a page is asked for as two stretches: a stretch is read as a whole or not (process_vm_readv(2)). */
GUEST int64_t kymo_guest_read_by_call(char *to, const char *live, uint64_t size, uint64_t address)
{
	const uint64_t in_page = KYMO_PAGE_SIZE - address % KYMO_PAGE_SIZE, first = in_page < size ? in_page : size;
	const struct stretch from[2] = { { address, first }, { address + first, size - first } };
	const struct stretch local = { (uint64_t)to, size };
	const uint64_t process = guest_live_word(live, KYMO_PAD_LIVE_READER);
	int64_t n;

	if (!process)
		return 0;
	n = guest_call6(SYS_process_vm_readv, process, (uint64_t)&local, 1, (uint64_t)from, 2, 0);
	if (n == -3) /* ESRCH: the initial thread has ended, and has no memory any more: by this one's id */
		n = guest_call6(SYS_process_vm_readv, (uint64_t)guest_call6(SYS_gettid, 0, 0, 0, 0, 0, 0),
				(uint64_t)&local, 1, (uint64_t)from, 2, 0);
	return n;
}

/* Where sequences are used, hits of vfork children are counted and not recorded. */
GUEST_INLINE int is_left_out(const char *live)
{
	const struct kymo_wire_vforks *vforks;

	if (__atomic_load_n(live, __ATOMIC_RELAXED) != KYMO_PAD_RSEQ)
		return 0;
	vforks = (const struct kymo_wire_vforks *)guest_live_word(live, KYMO_PAD_LIVE_VFORKS);
	return !vforks || (__atomic_load_n(&vforks->n, __ATOMIC_RELAXED) && kymo_guest_is_vfork_child(vforks));
}

/*
 * Of two pages one could be written and the other not. The memory is the thread's own, by its own id: a signal handler
 * may fork here, or it may be in a namespace where the process's id is that of another one.
 */
GUEST int64_t kymo_guest_write(char *from, const char *live, uint64_t size, uint64_t address)
{
	const struct stretch local = { (uint64_t)from, size }, to = { address, size };

	if (size > KYMO_PAGE_SIZE - address % KYMO_PAGE_SIZE || !guest_live_word(live, KYMO_PAD_LIVE_READER) ||
	    is_left_out(live))
		return 0;
	return guest_call6(SYS_process_vm_writev, (uint64_t)guest_call6(SYS_gettid, 0, 0, 0, 0, 0, 0), (uint64_t)&local,
			   1, (uint64_t)&to, 1, 0);
}

/* The same where nothing can fault; up to a NUL, if `is_string`. */
GUEST_INLINE int64_t copy(char *to, uint64_t size, uint64_t address, int is_string)
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

/* As kymo_guest_read_by_call(). */
GUEST_OWN int64_t read_memory(char *to, const char *live, uint64_t size, uint64_t address, int is_string)
{
	if (!size) /* wherever that is */
		return 0;
	if (is_certain(live) || is_on_stack(live, size, address))
		return copy(to, size, address, is_string);
	if (read_in_place(to, live, size, address))
		return (int64_t)size;
	return kymo_guest_read_by_call(to, live, size, address);
}

GUEST int64_t kymo_guest_read(char *to, const char *live, uint64_t size, uint64_t address)
{
	return read_memory(to, live, size, address, 0);
}

/*
 * A string at `to`, with its NUL; there is room for `limit` + 4 bytes. `limits` is KYMO_GUEST_STRING() of that and of
 * the bytes that are wanted: with one more than the limit, a string that does not end in them is cut; with fewer, it
 * ends after them. Its length comes back, or -1: it could not be read as far, and is empty now.
 */
GUEST int64_t kymo_guest_string(char *to, const char *live, uint64_t limits, uint64_t address)
{
	const int64_t limit = (int64_t)(limits >> 16), wanted = (int64_t)(limits & 0xffff);
	int64_t n = read_memory(to, live, (uint64_t)wanted, address, 1);

	for (int64_t i = 0; i < n; i++)
		if (!to[i])
			return i;
	if (n != wanted) {
		*to = 0;
		return -1;
	}
	if (n <= limit) {
		to[n] = 0;
		return n;
	}
	for (int i = 0; i < 4; i++)
		((volatile char *)to)[limit + i] = (char)(0xa680e2u >> 8 * i); /* KYMO_STRING_CUT, NUL */
	return n + 2;
}

/* Bytes at `to`, after their number, a u16. That comes back, n, if it is `size`, else -1 - n. */
GUEST int64_t kymo_guest_block(char *to, const char *live, uint64_t size, uint64_t address)
{
	int64_t n = read_memory(to + 2, live, size, address, 0);

	if (n < 0)
		n = 0;
	to[0] = (char)n;
	to[1] = (char)(n >> 8);
	return n == (int64_t)size ? n : -1 - n;
}

typedef uint64_t __attribute__((aligned(1), may_alias)) element;

/* The same of pointers that a NULL may end, in `size` bytes or less: what is after it is not looked at, and may be no
 * memory. */
GUEST int64_t kymo_guest_list(char *to, const char *live, uint64_t size, uint64_t address)
{
	int64_t n = read_memory(to + 2, live, size, address, 0);

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
GUEST int64_t kymo_guest_ask(char *to, const char *live, uint64_t number, uint64_t first)
{
	return guest_live_word(live, KYMO_PAD_LIVE_READER)
		       ? guest_call6((int64_t)number, first, (uint64_t)to, 1, 0, 2, 0)
		       : -1;
}
