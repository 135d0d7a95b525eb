/*
 * System calls that may take memory away from readers (docs/design/fast-reads.md): made here, in place of the program's
 * own instruction, after the memory was struck from the table. Like guest.c copied into targets.
 *
 * Signals are blocked from before the table is touched until the call is made. So no handler leaps out of here, makes
 * such a call itself, or forks a child that would go on here and has no table.
 */
#include "arch/x86_64/guest_strike.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include "arch/x86_64/guest_calls.h"
#include "arch/x86_64/guest_read.h"
#include "base/page.h"
#include "wire/readable.h"

#define USERFAULTFD_NEW 0xaa00u /* of ioctl(2): USERFAULTFD_IOC_NEW */
#define ADVICE_HARMS 100        /* MADV_HWPOISON, …, MADV_GUARD_INSTALL */
#define HUGE (UINT64_C(2) << 20)
#define HUGEST (UINT64_C(1) << 30)
#define X32 UINT64_C(0x40000000) /* in a call's number */

#define READ_MAX 1024 /* bytes from a reader's address on */
#define NAP_NS 100000
#define NAPS 100000 /* ten seconds: more than any page fault takes that ends at all */
#define SPINS (UINT64_C(1) << 24)
#define PAUSES 2000 /* some ten microseconds, in which stores of other threads become visible */

/* What a call takes away: up to two ranges. */
struct loss {
	uint64_t low[2], high[2];
	int closes, for_good;
	int moves; /* the first range; code may become more by that */
	int waits; /* the call may sleep, and is left to the program's own instruction */
};

GUEST_INLINE uint64_t page_up(uint64_t address)
{
	return address > UINT64_MAX - KYMO_PAGE_SIZE ? UINT64_MAX
						     : (address + KYMO_PAGE_SIZE - 1) & ~(uint64_t)(KYMO_PAGE_SIZE - 1);
}

/* More than a heap that shrinks has had. No word of the code is a 64-bit address, or looks like one. */
GUEST_INLINE uint64_t tebibyte(void)
{
	uint64_t size = 1;

	__asm__("" : "+r"(size));
	return size << 40;
}

GUEST_INLINE void take(struct loss *loss, int i, uint64_t address, uint64_t size)
{
	loss->low[i] = address & ~(uint64_t)(KYMO_PAGE_SIZE - 1);
	loss->high[i] = size > UINT64_MAX - address ? UINT64_MAX : page_up(address + size);
}

/* The same of memory that is mapped over: of huge pages the kernel takes whole ones. */
GUEST_INLINE void take_huge(struct loss *loss, int i, uint64_t address, uint64_t size)
{
	take(loss, i, address, size);
	if (address % HUGE == 0 && loss->high[i] < UINT64_MAX - HUGEST)
		loss->high[i] = (loss->high[i] + HUGEST - 1) & ~(HUGEST - 1);
}

/* What the call may take away; false: nothing. */
GUEST_INLINE int find_loss(const struct kymo_guest_frame *frame, const struct kymo_guest_saved *saved, struct loss *ret)
{
	const uint64_t a = saved->rdi, b = saved->rsi, c = frame->rdx, d = frame->r10, e = saved->r8;
	struct loss loss = { .closes = 0 };

	switch ((uint32_t)frame->rax & ~X32) { /* as the kernel takes it */
	case SYS_munmap:
		take(&loss, 0, a, b);
		break;
	case SYS_mmap:
		loss.closes = (c & PROT_EXEC) != 0;
		if ((d & MAP_FIXED) && !(d & MAP_FIXED_NOREPLACE))
			take_huge(&loss, 0, a, b);
		break;
	case SYS_mprotect:
		loss.closes = (c & PROT_EXEC) != 0;
		if (!(c & PROT_READ))
			take(&loss, 0, a, b);
		if (!(c & PROT_READ) && (c & PROT_GROWSDOWN))
			loss.low[0] = 0;
		break;
	case SYS_mremap:
		loss.moves = 1;
		take_huge(&loss, 0, a, b ? b : 1);
		if (d & MREMAP_FIXED)
			take_huge(&loss, 1, e, c);
		break;
	case SYS_brk:
		if (a)
			take(&loss, 0, a, tebibyte());
		break;
	case SYS_madvise:
		if ((uint32_t)c >= ADVICE_HARMS)
			take(&loss, 0, a, b);
		break;
	case SYS_shmat:
		loss.for_good = (c & (SHM_REMAP | SHM_EXEC)) != 0;
		break;
	case SYS_personality:
		loss.for_good = (a & READ_IMPLIES_EXEC) && (uint32_t)a != UINT32_MAX;
		break;
	case SYS_process_madvise:
		loss.for_good = (uint32_t)d >= ADVICE_HARMS;
		break;
	case SYS_ioctl:
		loss.for_good = (uint32_t)b == USERFAULTFD_NEW;
		break;
	case SYS_io_uring_enter:
		loss.for_good = loss.waits = 1;
		break;
	case SYS_userfaultfd:
	case SYS_pkey_mprotect:
	case SYS_pkey_alloc:
	case SYS_io_uring_setup:
		loss.for_good = 1;
		break;
	}
	loss.closes |= loss.for_good;
	*ret = loss;
	return loss.closes || loss.high[0] || loss.high[1];
}

GUEST_OWN int64_t make(const struct kymo_guest_frame *frame, const struct kymo_guest_saved *saved)
{
	return guest_call6((int64_t)frame->rax, saved->rdi, saved->rsi, frame->rdx, frame->r10, saved->r8, saved->r9);
}

/* Bytes [from, to) become 0; whether one was not. */
GUEST_INLINE int clear(uint8_t *pages, uint64_t from, uint64_t to)
{
	int found = 0;

	for (uint64_t i = from; i < to;) {
		if (i % 8 == 0 && i + 8 <= to && !*(const volatile uint64_t *)(const void *)(pages + i)) {
			i += 8;
			continue;
		}
		if (*(const volatile uint8_t *)(pages + i)) {
			__atomic_store_n(pages + i, 0, __ATOMIC_RELAXED);
			found = 1;
		}
		i++;
	}
	return found;
}

/* Bytes of [low, high) become 0; whether one was not. */
GUEST_OWN int clear_range(struct kymo_wire_readable *table, uint64_t low, uint64_t high)
{
	int found = 0;

	for (uint32_t i = 0; i < KYMO_WIRE_READABLE_GIB; i++) {
		const uint64_t gib = __atomic_load_n(&table->gib[i], __ATOMIC_RELAXED);
		const uint64_t begin = (gib - 1) << KYMO_WIRE_GIB_SHIFT, end = gib << KYMO_WIRE_GIB_SHIFT;

		if (!gib || end <= low || begin >= high)
			continue;
		found |= clear(table->pages[i], low > begin ? (low - begin) >> 12 : 0,
			       high < end ? (high - begin) >> 12 : KYMO_WIRE_GIB_PAGES);
	}
	return found;
}

GUEST_INLINE int is_code(const struct kymo_wire_readable *table, uint64_t low, uint64_t high)
{
	for (uint32_t i = 0; i < KYMO_WIRE_READABLE_CODE; i++)
		if (__atomic_load_n(&table->code[i].low, __ATOMIC_RELAXED) < high &&
		    __atomic_load_n(&table->code[i].high, __ATOMIC_RELAXED) > low)
			return 1;
	return 0;
}

/* Whether the thread may be in the kernel for a load of a reader's sequence. Its memory may be gone, and it with it. */
GUEST_INLINE int is_in_sequence(const char *live, uint64_t thread)
{
	const uint64_t at = thread + guest_live_word(live, KYMO_PAD_LIVE_RSEQ_OFFSET) + 8;
	uint64_t sequence = 0, mark = 0;
	int64_t n = kymo_guest_read_by_call((char *)&sequence, live, sizeof(sequence), at);

	if (n == sizeof(sequence) && sequence)
		n = kymo_guest_read_by_call((char *)&mark, live, sizeof(mark),
					    sequence + offsetof(struct guest_sequence, mark));
	else if (n == sizeof(sequence))
		return 0;
	return n == sizeof(mark) ? mark == GUEST_SEQUENCE_MARK : n != -EFAULT;
}

/* No reader is in [low, high) any more that has seen the bytes before they were 0. Without the right to make calls (a
 * filter may punish them) what is seen of the slots has to do. */
GUEST_OWN void wait_for_readers(const struct kymo_wire_readable *table, const char *live, uint64_t low, uint64_t high)
{
	uint64_t nap[2] = { 0 };

	/* A constant array would be read from outside of the section. */
	__asm__("movq %1, %0" : "=m"(nap[1]) : "i"(NAP_NS));
	for (uint32_t i = 0; i < KYMO_WIRE_READERS; i++) {
		const struct kymo_wire_reader *reader = &table->readers[i];
		const uint64_t address = __atomic_load_n(&reader->address, __ATOMIC_ACQUIRE),
			       thread = __atomic_load_n(&reader->thread, __ATOMIC_RELAXED);

		if (!address || address >= high || address + READ_MAX <= low)
			continue;
		for (uint64_t k = 0; k < SPINS; k++) {
			const int may_call = guest_live_word(live, KYMO_PAD_LIVE_READER) != 0;

			if (__atomic_load_n(&reader->address, __ATOMIC_ACQUIRE) != address ||
			    (may_call && (k >= NAPS || !is_in_sequence(live, thread))))
				break;
			if (may_call)
				guest_call6(SYS_nanosleep, (uint64_t)nap, 0, 0, 0, 0, 0);
			else
				__asm__ volatile("pause");
		}
	}
}

/* Each reader that has begun before this is thrown out, or is in the kernel for its load, and its slot is visible. */
GUEST_INLINE void fence(const char *live)
{
	if (guest_live_word(live, KYMO_PAD_LIVE_READER) &&
	    !guest_call6(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0, 0, 0, 0))
		return;
	for (int i = 0; i < PAUSES; i++)
		__asm__ volatile("pause");
}

/* What the call takes away is struck from the table, and no reader is there any more. */
GUEST_INLINE void strike(struct kymo_wire_readable *table, const char *live, const struct loss *loss)
{
	int was_open = 0, found = 0, closes = loss->closes;
	uint64_t begun;

	__atomic_fetch_add(&table->begun, 1, __ATOMIC_SEQ_CST);
	closes |= loss->moves && is_code(table, loss->low[0], loss->high[0]);
	if (loss->for_good)
		__atomic_store_n(&table->is_closed_for_good, 1, __ATOMIC_RELAXED);
	if (closes)
		was_open = kymo_wire_close_readable(table);
	for (int i = 0; i < 2; i++)
		found |= clear_range(table, loss->low[i], loss->high[i]);
	/* As a program begins there is no reader, and perhaps no thread pointer. */
	if (__atomic_load_n(live, __ATOMIC_RELAXED) == KYMO_PAD_EARLY ||
	    (!found && !was_open && kymo_wire_losses_under_way(table, &begun) == 1)) /* this one alone */
		return;
	fence(live);
	/* Of new code it is not known what that takes away. */
	for (int i = 0; i < 2; i++)
		if (closes ? !i : loss->high[i] != 0)
			wait_for_readers(table, live, closes ? 0 : loss->low[i], closes ? UINT64_MAX : loss->high[i]);
}

GUEST struct kymo_guest_call kymo_guest_strike(const struct kymo_guest_frame *frame, const char *live, uint64_t unused,
					       const struct kymo_guest_saved *saved)
{
	struct kymo_wire_readable *table;
	const uint64_t all = UINT64_MAX;
	struct loss loss;
	struct kymo_guest_call call = { 0, 0 };
	uint64_t before;

	if (!guest_live_word(live, KYMO_PAD_LIVE_READABLE) || !find_loss(frame, saved, &loss))
		return call;
	guest_call6(SYS_rt_sigprocmask, SIG_SETMASK, (uint64_t)&all, (uint64_t)&before, 8, 0, 0);
	table = (void *)guest_live_word(live, KYMO_PAD_LIVE_READABLE); /* 0 in a child that a handler forked just now */
	if (table)
		strike(table, live, &loss);
	if (!loss.waits)
		call = (struct kymo_guest_call){ make(frame, saved), 1 };
	if (table)
		__atomic_add_fetch(&table->ended, 1, __ATOMIC_SEQ_CST);
	guest_call6(SYS_rt_sigprocmask, SIG_SETMASK, (uint64_t)&before, 0, 8, 0, 0);
	return call;
}
