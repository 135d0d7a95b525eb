#include "kernel/call_ring.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <unistd.h>

#include "base/page.h"
#include "kernel/refused.h"
#include "kernel/state.h"

enum {
	SIZE_MAX_ = 1 << 28,  /* programs reach no further from one pointer than twice that */
	TOLD_EACH = 64 << 10, /* the line of the tail is the producers': it is written seldom */
};

static uint64_t margin_of(uint32_t n_cpus)
{
	return (uint64_t)n_cpus * CALL_RING_RECORD_MAX;
}

static uint32_t ring_bytes(uint64_t wanted, uint32_t n_cpus)
{
	return (uint32_t)MIN(kernel_ring_size(MAX(wanted, 4 * margin_of(n_cpus))), SIZE_MAX_);
}

static size_t memory_size(const struct call_ring_shape *shape)
{
	return CALL_RING_BYTES(shape->n_lines) + shape->size + CALL_RING_RECORD_MAX;
}

/* Older kernels (up to 6.0) have no elements of more than 4 MiB. */
static int create_map(struct call_ring_shape *shape, uint32_t n_cpus)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	int fd;

	do
		fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "kymo_ring", 4, (uint32_t)memory_size(shape), 1, &options);
	while (fd == -E2BIG && (shape->size /= 2) >= 2 * (uint64_t)n_cpus * CALL_RING_RECORD_MAX_LEAST);
	while (2 * (uint64_t)n_cpus * shape->record_max > shape->size ||
	       CALL_RING_SECTIONS * (uint64_t)shape->record_max > shape->size)
		shape->record_max /= 2;
	return fd;
}

static struct call_ring_line *lines(const struct call_ring *ring)
{
	return (struct call_ring_line *)((uint8_t *)ring->memory + CALL_RING_LINES);
}

static struct kymo_error *too_many(uint32_t n_cpus)
{
	return kymo_error_create(KYMO_ERROR_FAILED,
				 "this machine may have %u CPUs, which is more than one buffer can serve; leave "
				 "--backend kernel and --all out",
				 n_cpus);
}

struct kymo_error *call_ring_init(struct call_ring *ring, uint64_t wanted, uint32_t n_cpus, bool overwrite)
{
	struct call_ring_shape *shape = &ring->shape;
	void *memory;

	*ring = (struct call_ring){ .shape = { .fd = -1,
					       .n_lines = 1,
					       .size = ring_bytes(wanted, n_cpus),
					       .record_max = CALL_RING_RECORD_MAX,
					       .overwrite = overwrite } };
	while (shape->n_lines < n_cpus)
		shape->n_lines *= 2;
	if (shape->size < 2 * margin_of(n_cpus))
		return too_many(n_cpus);
	shape->fd = create_map(shape, n_cpus);
	if (shape->fd == -E2BIG)
		return too_many(n_cpus);
	if (shape->fd < 0)
		return kernel_refused(errno, "make BPF maps");
	shape->capacity = shape->size - n_cpus * shape->record_max;
	ring->memory_size = kymo_page_up(memory_size(shape));
	memory = mmap(NULL, ring->memory_size, PROT_READ | PROT_WRITE, MAP_SHARED, shape->fd, 0);
	if (memory == MAP_FAILED)
		return kernel_refused(errno, "map BPF maps");
	ring->memory = memory;
	for (uint32_t i = 0; i < shape->n_lines; i++)
		lines(ring)[i].begun = CALL_RING_IDLE;
	return NULL;
}

void call_ring_deinit(struct call_ring *ring)
{
	if (ring->memory)
		munmap(ring->memory, ring->memory_size);
	if (ring->shape.fd >= 0)
		close(ring->shape.fd);
	ring->memory = NULL;
	ring->shape.fd = -1;
}

struct call_ring_head *call_ring_head(const struct call_ring *ring)
{
	return ring->memory;
}

uint64_t call_ring_limit(const struct call_ring *ring, bool *is_head_ret)
{
	const uint64_t head = __atomic_load_n(&call_ring_head(ring)->head, __ATOMIC_ACQUIRE);
	uint64_t limit = head;

	for (uint32_t i = 0; i < ring->shape.n_lines; i++) {
		const uint64_t begun = __atomic_load_n(&lines(ring)[i].begun, __ATOMIC_ACQUIRE);

		limit = MIN(limit, begun);
	}
	*is_head_ret = limit == head;
	return limit;
}

const void *call_ring_peek(const struct call_ring *ring, uint64_t limit)
{
	if (ring->read >= limit)
		return NULL;
	return (const uint8_t *)ring->memory + CALL_RING_BYTES(ring->shape.n_lines) +
	       (ring->read & (ring->shape.size - 1));
}

/* What the size of a record says is not known to be true before the tail is looked at again. */
const void *call_ring_copy(struct call_ring *ring, uint64_t limit, void *room, bool *has_gap_ret)
{
	for (;;) {
		const uint64_t tail = __atomic_load_n(&call_ring_head(ring)->tail, __ATOMIC_ACQUIRE);
		const void *record;
		uint32_t stride;

		if (tail > ring->read) {
			ring->read = tail;
			*has_gap_ret = true;
		}
		record = call_ring_peek(ring, limit);
		if (!record)
			return NULL;
		stride = __atomic_load_n((const uint32_t *)record, __ATOMIC_RELAXED);
		memcpy(room, record, MIN(stride, CALL_RING_RECORD_MAX));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&call_ring_head(ring)->tail, __ATOMIC_RELAXED) <= ring->read)
			return room;
	}
}

void call_ring_next(struct call_ring *ring, uint32_t stride)
{
	ring->read += stride;
	if (ring->read - call_ring_head(ring)->tail >= TOLD_EACH)
		call_ring_tell(ring);
}

void call_ring_tell(struct call_ring *ring)
{
	uint64_t tail = __atomic_load_n(&call_ring_head(ring)->tail, __ATOMIC_RELAXED);

	if (!ring->shape.overwrite)
		__atomic_store_n(&call_ring_head(ring)->tail, ring->read, __ATOMIC_RELEASE);
	/* Producers move it, too, and never back. */
	while (ring->shape.overwrite && tail < ring->read &&
	       !__atomic_compare_exchange_n(&call_ring_head(ring)->tail, &tail, ring->read, false, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}
