/*
 * Memory that is copied into a sample, and the room for that. The functions return whether they could; the position is
 * where in the sample the next copy goes.
 *
 * Memory that is not there yet, such as an untouched page of a file, is not available here: programs do not wait for
 * it. What fails at the entry is noted, and copied once more at the exit, when the kernel itself has read it.
 *
 * Private to the room.
 */
#ifndef KYMO_KERNEL_CALL_COPIES_BPF_H
#define KYMO_KERNEL_CALL_COPIES_BPF_H

#include "base/page.h"
#include "kernel/call_ring.bpf.h"

enum {
	PAGES_MAX = KYMO_COPY_SIZE_MAX / KYMO_PAGE_SIZE + 1,
	ROOM = KERNEL_CALL_SCRATCH - PAGES_MAX * (KYMO_PAGE_SIZE + KERNEL_CALL_PIECE_HEADER + 8) - 64,
};

/*
 * `value`, of which the verifier knows nothing any more. It follows each path on which it knows something else of a
 * value: paths that meet after this are followed once. `unknown` is anything of which it knows nothing.
 */
static __always_inline uint64_t forget(uint64_t value, uint64_t unknown)
{
	value += unknown;
	barrier_var(value);
	return value - unknown;
}

static __always_inline uint64_t behind(uint64_t position, uint64_t size)
{
	return (position + KERNEL_CALL_PIECE_HEADER + size + 7) & ~7ull;
}

static __always_inline struct kymo_copied *piece_at(struct kernel_call *sample, uint64_t position)
{
	return (void *)((uint8_t *)sample + position);
}

/*
 * In a sample that is in the ring, up to KERNEL_CALL_PIECE_MIN bytes go by way of the stack. The kernel checks where it
 * is to copy to (HARDENED_USERCOPY): a stack at once, what it has mapped, as the ring, by some functions more. All of
 * the buffer is stored, so only a copy's first piece goes this way: the room of each copy (call_load_room()) has that
 * much.
 */
static __always_inline bool copy_piece(struct kernel_call *sample, uint64_t position, uint64_t address, uint64_t size,
				       bool is_by_stack)
{
	struct kymo_copied *piece = piece_at(sample, position);

	piece->address = address;
	piece->size = size;
	if (is_by_stack && size <= KERNEL_CALL_PIECE_MIN) {
		uint64_t buffer[KERNEL_CALL_PIECE_MIN / 8] = { 0 };

		if (bpf_probe_read_user(buffer, size, (void *)address))
			return false;
		__builtin_memcpy(piece + 1, buffer, sizeof(buffer));
		return true;
	}
	return !bpf_probe_read_user(piece + 1, size, (void *)address);
}

/* What lies in one page. */
static __always_inline bool copy_page(struct kernel_call *sample, uint64_t *position, uint64_t *address, uint64_t *size,
				      bool is_by_stack)
{
	uint64_t n = KYMO_PAGE_SIZE - *address % KYMO_PAGE_SIZE, next;

	n = forget(n < *size ? n : *size, *address);
	if (n > KYMO_PAGE_SIZE)
		return false;
	barrier_var(n); /* no copy of what was compared: older verifiers don't know that it is one */
	next = behind(*position, n);
	barrier_var(next); /* now: below are two ways, on which the verifier knows more of `n` */
	if (!copy_piece(sample, *position, *address, n, is_by_stack))
		return false;
	*position = next;
	*address += n;
	*size -= n;
	return true;
}

/* Page by page: the next one may not be there. */
static __always_inline bool copy_bytes(struct kernel_call *sample, uint64_t *position, uint64_t address, uint64_t size,
				       int n_pages, bool is_in_ring)
{
	if (address < KYMO_COPY_LOWEST || !size)
		return true;
	if (*position > ROOM || !copy_page(sample, position, &address, &size, is_in_ring))
		return false;
	for (int i = 1; i < n_pages && size; i++)
		if (!copy_page(sample, position, &address, &size, false))
			return false;
	return !size;
}

/* The NUL that the kernel ends a longer string with is not the string's. */
static __always_inline bool copy_string(struct kernel_call *sample, uint64_t *position, uint64_t address, uint64_t max,
					bool is_in_ring)
{
	struct kymo_copied *piece;
	long n;

	if (address < KYMO_COPY_LOWEST)
		return true;
	if (*position > ROOM)
		return false;
	piece = piece_at(sample, *position);
	if (max > KYMO_PAGE_SIZE + 8)
		return false;
	n = bpf_probe_read_user_str(piece + 1, max, (void *)address);
	if (n <= 0)
		return false;
	if ((uint64_t)n == max)
		n--;
	piece->address = address;
	piece->size = n;
	*position = behind(*position, n);
	return true;
}

static __always_inline uint64_t word(const struct kernel_call *sample, uint32_t i)
{
	return i < KERNEL_CALL_WORDS ? sample->words[i] : 0;
}

/* Where, and how many; false: nothing is to be copied. */
static __always_inline bool find_range(const struct kernel_call *sample, const struct kernel_call_copy *copy,
				       uint64_t *address_ret, uint64_t *n_ret, bool *is_done_ret)
{
	uint64_t address = word(sample, copy->arg), n;

	if (address < KYMO_COPY_LOWEST)
		return false;
	address += copy->offset;
	if (copy->is_pointer && bpf_probe_read_user(&address, sizeof(address), (void *)address)) {
		*is_done_ret = false;
		return false;
	}
	*address_ret = address;
	if (copy->times == KYMO_COPY_ONCE) {
		n = copy->size;
	} else {
		n = copy->times == KYMO_COPY_RESULT ? sample->value : word(sample, copy->times - 1u);
		if (copy->times == KYMO_COPY_RESULT && (int64_t)n <= 0)
			return false;
		if (copy->what == KYMO_COPY_BYTES)
			n = (n < copy->most ? n : copy->most) * copy->size;
	}
	*n_ret = forget(n, address);
	return true;
}

static __always_inline uint64_t make_small_copies(struct kernel_call *sample, const struct kernel_call_row *row)
{
	uint64_t position = offsetof(struct kernel_call, copies);

	for (int i = 0; i < KERNEL_CALL_SMALL_COPIES && i < row->n; i++) {
		const struct kernel_call_copy *copy = &row->copies[i];
		uint64_t address, n;
		bool is_done = true;

		if (find_range(sample, copy, &address, &n, &is_done))
			is_done = copy->what == KYMO_COPY_BYTES
					  ? copy_bytes(sample, &position, address, n, 2, true)
					  : copy_string(sample, &position, address, copy->max, true);
		if (!is_done)
			sample->is_incomplete = 1;
		/*
		 * The verifier follows each path with what it knows of the position on that one, unless it knows the
		 * same on all of them: so it is made to forget, by way of the map's memory.
		 */
		ONCE(sample->position) = position;
		position = ONCE(sample->position);
	}
	return position;
}

#endif
