/*
 * The recorder has no mapping of the arena: it reads and writes the file. So no page that can't be had, and nothing
 * that the process does with it, is a fault here.
 */
#include "probe/memory/arena.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/batch.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "probe/memory/remote_memory.h"
#include "proc/batch.h"
#include "proc/call.h"
#include "wire/shared.h"

void kymo_arena_deinit(struct kymo_arena *arena)
{
	if (arena->fd >= 0)
		close(arena->fd);
	*arena = (struct kymo_arena){ .fd = -1 };
}

struct kymo_error *kymo_arena_create(struct kymo_process *process, struct kymo_arena *arena, int64_t *remote_ret)
{
	uint64_t inode;
	struct kymo_error *error = kymo_remote_memfd(process, KYMO_WIRE_ARENA_NAME, remote_ret);
	int err;

	if (!error)
		error = kymo_take_memfd(process, KYMO_WIRE_ARENA_NAME, *remote_ret, &arena->fd, &inode);
	if (!error)
		error = kymo_give_size(arena->fd, kymo_page_up(KYMO_WIRE_ARENA_SIZE));
	if (error)
		return error;
	err = kymo_allocate(arena->fd, 0, KYMO_WIRE_ARENA_FIRST);
	return err ? kymo_error_errno(err, "cannot allocate the rings of function clones") : NULL;
}

/* A dump of the process' memory would allocate all of it. */
struct kymo_error *kymo_arena_map(struct kymo_process *process, const struct kymo_arena *arena, int64_t remote,
				  struct kymo_remote_mapping *made_ret)
{
	const struct kymo_remote_mapping mapping = {
		arena->address, kymo_page_up(KYMO_WIRE_ARENA_SIZE), PROT_READ | PROT_WRITE, MAP_SHARED, remote, 0
	};
	struct kymo_batch_call calls[] = { kymo_remote_map_call(&mapping),
					   { .number = SYS_madvise,
					     .args = { mapping.address, mapping.size, MADV_DONTDUMP } } };
	struct kymo_error *error = kymo_remote_calls(process, 0, calls, kymo_countof(calls));

	if (!error)
		error = kymo_remote_check_map(process, &mapping, calls[0].result);
	if (!error)
		*made_ret = mapping;
	return error;
}

struct kymo_error *kymo_arena_part(struct kymo_process *child, const struct kymo_arena *arena)
{
	struct kymo_batch_call call = {
		.number = SYS_mmap,
		.args = { arena->address, kymo_page_up(KYMO_WIRE_ARENA_SIZE), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, (uint64_t)-1, 0 }
	};
	struct kymo_error *error = kymo_remote_begin(child);

	if (error)
		return error;
	error = kymo_remote_calls(child, 0, &call, 1);
	error = kymo_error_first(error, kymo_remote_end(child));
	if (!error && (uint64_t)call.result != arena->address)
		error = kymo_remote_failed("map memory of its own", call.result);
	return error;
}

static uint64_t offset_of(uint32_t ring)
{
	return KYMO_WIRE_ARENA_FIRST + (uint64_t)ring * KYMO_WIRE_ARENA_STRIDE;
}

int kymo_arena_grow(struct kymo_arena *arena, uint32_t n)
{
	uint32_t ready = n < KYMO_WIRE_ARENA_RINGS ? n : KYMO_WIRE_ARENA_RINGS;
	int err = 0;

	/* With the four bytes after it. */
	for (uint32_t i = arena->ready; i < ready && !err; i++)
		err = kymo_allocate(arena->fd, offset_of(i), KYMO_WIRE_ARENA_RING_SIZE + KYMO_PAGE_SIZE);
	if (err || ready <= arena->ready)
		return -err;
	if (pwrite(arena->fd, &ready, sizeof(ready), offsetof(struct kymo_wire_arena, ready)) != sizeof(ready))
		return -EIO;
	arena->ready = ready;
	return 0;
}

int kymo_arena_give(const struct kymo_arena *arena, const struct kymo_wire_arena_thread *threads, size_t n,
		    uint64_t *words_ret)
{
	const size_t n_given = n < arena->ready ? n : arena->ready, size = n_given * sizeof(*threads);
	const struct kymo_wire_arena head = { .next = (uint32_t)n_given,
					      .ready = arena->ready,
					      .sunk = (uint32_t)(n - n_given) };

	for (size_t i = 0; i < n; i++)
		words_ret[i] = arena->address + (i < n_given ? offset_of((uint32_t)i) : KYMO_WIRE_ARENA_SINK);
	if (pwrite(arena->fd, threads, size, KYMO_WIRE_ARENA_TABLE) != (ssize_t)size ||
	    pwrite(arena->fd, &head, sizeof(head), 0) != sizeof(head))
		return -EIO;
	return 0;
}

bool kymo_arena_may_be_word(uint64_t word)
{
	const uint64_t at = word % KYMO_WIRE_ARENA_ALIGN;

	return !word || (word < UINT64_C(1) << 47 && word > KYMO_WIRE_ARENA_ALIGN && !(word % sizeof(uint32_t)) &&
			 at >= KYMO_WIRE_ARENA_SINK && at < KYMO_WIRE_ARENA_SIZE &&
			 (at - KYMO_WIRE_ARENA_SINK) % KYMO_WIRE_ARENA_STRIDE < KYMO_WIRE_ARENA_RING_SIZE);
}

uint32_t kymo_arena_used(const struct kymo_arena *arena, uint32_t *sunk_ret)
{
	struct kymo_wire_arena head = { 0 };

	if (pread(arena->fd, &head, sizeof(head), 0) != sizeof(head))
		head = (struct kymo_wire_arena){ 0 };
	*sunk_ret = head.sunk;
	return head.next < arena->ready ? head.next : arena->ready;
}

bool kymo_arena_thread(const struct kymo_arena *arena, uint32_t i, struct kymo_wire_arena_thread *ret)
{
	return pread(arena->fd, ret, sizeof(*ret), (off_t)(KYMO_WIRE_ARENA_TABLE + i * sizeof(*ret))) == sizeof(*ret);
}

bool kymo_arena_ring(const struct kymo_arena *arena, uint32_t i,
		     uint32_t ret[KYMO_WIRE_ARENA_RING_SIZE / sizeof(uint32_t)])
{
	return pread(arena->fd, ret, KYMO_WIRE_ARENA_RING_SIZE, (off_t)offset_of(i)) == KYMO_WIRE_ARENA_RING_SIZE;
}
