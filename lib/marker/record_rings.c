/*
 * The rings' memory: one private mapping.
 *
 *	page 0 and on		struct record_rings and struct kymo_pad_rings; never unmapped, never wiped
 *	then			struct kymo_wire_ring [n_rings], KYMO_WIRE_RING_STRIDE apart; never unmapped
 *	then			sub-buffers
 *
 * Geometry is that of pads' rings (docs/internals/rings.md). All of it is populated when it is made, so that producers
 * don't fault.
 *
 * How it ends. Locations get other rings, but a thread may have loaded these and been interrupted. So the ender takes
 * all locks and keeps them; then no thread holds one any more. It stores an `end` of 0 in the rings that sequences
 * drive, and has the kernel restart all sequences (membarrier): they find no room, go to rings.slow, and find all locks
 * taken. From then on no thread writes sub-buffers any more, and they are unmapped. The control blocks become zeros: a
 * ring of no sub-buffers, which is always full.
 *
 * A forked child has zeros there, too (MADV_WIPEONFORK), also when it was made by a system call that no fork handler
 * sees.
 */
#include "record_rings.h"

#include <cpuid.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "base/page.h"
#include "dispatch.h"
#include "record_slow.h"
#include "trace/clock.h"

#define SUBBUFFERS 8
#define SPARE_SUBBUFFERS 4
#define SPARE_SUBBUFFER_SIZE (UINT64_C(64) << 10)
#define SPARE_MIN 4
#define LOCK_NS 200000000 /* the holder of a lock has a few instructions to go; unless it does not go on */

_Static_assert(sizeof(struct record_rings) % 8 == 0, "the geometry comes after it");

/* Bytes of what is for ever. */
static size_t head_size(size_t n_rings)
{
	return kymo_page_up(sizeof(struct record_rings) + kymo_pad_rings_size((uint32_t)n_rings));
}

/* ---- threads --------------------------------------------------------------------------------- */

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
__typeof__(dlvsym) dlvsym __attribute__((weak));

static struct kymo_marker_rings idle = { .slow = kymo_lib_nothing };
static int64_t tid_offset; /* 0: not known */

/* What glibc tells debuggers of struct pthread.tid: bits, count, offset (nptl_db's DB_STRUCT_FIELD). */
void kymo_record_find_threads(void)
{
	const uint32_t *tid = dlvsym ? dlvsym(RTLD_DEFAULT, "_thread_db_pthread_tid", "GLIBC_PRIVATE") : NULL;

	if (tid && tid[0] == 32 && tid[2] && tid[2] < 65536 && tid[2] % 4 == 0 &&
	    *(const int32_t *)((const char *)__builtin_thread_pointer() + tid[2]) == gettid())
		tid_offset = tid[2];
	idle.tid_offset = tid_offset;
	idle.rseq_offset = &__rseq_offset ? __rseq_offset : 0;
}

const struct kymo_marker_rings *kymo_record_idle(void)
{
	return &idle;
}

static int membarrier(int command, unsigned int flags, int cpu)
{
	return (int)syscall(SYS_membarrier, command, flags, cpu);
}

/* Threads are registered for sequences, the compiled code can tell their ids, and packets can be closed under them. */
static bool has_sequences(void)
{
	if (!tid_offset || !&__rseq_size || !__rseq_size)
		return false;
	return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0) == 0;
}

static bool has_rdpid(void)
{
	unsigned int a, b, c, d;

	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & 1u << 22);
}

/* ---- making them ----------------------------------------------------------------------------- */

struct shape {
	uint32_t n_cpus, n_sequenced, n_rings;
	uint64_t own; /* bytes of a sub-buffer of the CPUs' own rings */
};

static struct shape make_shape(uint64_t buffer_size)
{
	long n_cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct shape shape = { .n_cpus = n_cpus < 1 ? 1 : (uint32_t)n_cpus };

	shape.n_sequenced = has_sequences() ? shape.n_cpus : 0;
	shape.n_rings = shape.n_sequenced + shape.n_cpus + (shape.n_cpus < SPARE_MIN ? SPARE_MIN : shape.n_cpus);
	shape.own = kymo_page_down(buffer_size / SUBBUFFERS);
	if (shape.own < KYMO_PAGE_SIZE)
		shape.own = KYMO_PAGE_SIZE;
	return shape;
}

static uint64_t subbuffer_size(const struct shape *shape, size_t i, uint32_t *n_ret)
{
	uint64_t less = kymo_page_down(shape->own / 4);

	*n_ret = i < shape->n_sequenced + shape->n_cpus ? SUBBUFFERS : SPARE_SUBBUFFERS;
	if (i < shape->n_cpus)
		return shape->own;
	if (*n_ret == SUBBUFFERS && less > SPARE_SUBBUFFER_SIZE)
		return less;
	return SPARE_SUBBUFFER_SIZE;
}

static uint64_t size_of(const struct shape *shape)
{
	uint64_t size = head_size(shape->n_rings) + kymo_page_up((uint64_t)shape->n_rings * KYMO_WIRE_RING_STRIDE);

	for (size_t i = 0; i < shape->n_rings; i++) {
		uint32_t n;
		uint64_t one = subbuffer_size(shape, i, &n);

		size += n * one;
	}
	return size;
}

/* Sequences of the CPU see the end of their sub-buffer before this returns a stamp. 0 where the kernel can't do it: the
 * packet waits until it is full. */
static uint64_t close_ring(struct kymo_wire_ring *shared, uint32_t cpu)
{
	__atomic_store_n(&shared->end, 0, __ATOMIC_SEQ_CST);
	if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, MEMBARRIER_CMD_FLAG_CPU, (int)cpu))
		return 0;
	return kymo_clock_tsc();
}

static void lay_out(const struct shape *shape, struct record_memory *memory)
{
	struct kymo_pad_rings *geometry = (void *)(memory->shared + 1);
	char *control = (char *)memory->shared + head_size(shape->n_rings);
	uint8_t *data = (uint8_t *)control + kymo_page_up((uint64_t)shape->n_rings * KYMO_WIRE_RING_STRIDE);

	for (size_t i = 0; i < shape->n_rings; i++) {
		struct kymo_wire_ring *ring = (void *)(control + i * KYMO_WIRE_RING_STRIDE);
		uint32_t n;
		uint64_t size = subbuffer_size(shape, i, &n);

		ring->data_offset = (uint64_t)(data - (uint8_t *)ring);
		ring->subbuffer_size = size;
		ring->n_subbuffers = n;
		ring->cpu = (uint32_t)(i % shape->n_cpus);
		geometry->rings[i] =
			(struct kymo_pad_ring){ ring->data_offset + n * size, ring->data_offset, size, n, ring->cpu };
		ring->is_sequenced = i < shape->n_sequenced;
		kymo_ring_init(&memory->rings[i], ring, data, size, n, false);
		memory->rings[i].cpu = ring->cpu;
		if (ring->is_sequenced)
			memory->rings[i].close = close_ring;
		memory->positions[i].ring = i;
		data += n * size;
	}
	*geometry = (struct kymo_pad_rings){ .first = (uintptr_t)control, .n = shape->n_rings };
	*memory->shared = (struct record_rings){
		.geometry = geometry,
		.rings = { (uintptr_t)control, shape->n_sequenced, idle.rseq_offset, tid_offset, kymo_record_slow },
		.locked = (void *)(control + (size_t)shape->n_sequenced * KYMO_WIRE_RING_STRIDE),
		.n_locked = shape->n_rings - shape->n_sequenced,
		.n_cpus = shape->n_cpus,
		.has_rdpid = has_rdpid(),
		.pid = getpid(),
	};
}

int kymo_record_memory_create(uint64_t buffer_size, struct record_memory *ret)
{
	struct shape shape = make_shape(buffer_size);
	struct record_memory memory = {
		.size = size_of(&shape),
		.n_rings = shape.n_rings,
		.rings = calloc(shape.n_rings, sizeof(*memory.rings)),
		.positions = calloc(shape.n_rings, sizeof(*memory.positions)),
	};
	void *map = MAP_FAILED;

	if (memory.rings && memory.positions)
		map = mmap(NULL, memory.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
			   0);
	if (map == MAP_FAILED) {
		free(memory.rings);
		free(memory.positions);
		return -ENOMEM;
	}
	madvise((char *)map + head_size(shape.n_rings), memory.size - head_size(shape.n_rings), MADV_WIPEONFORK);
	memory.shared = map;
	lay_out(&shape, &memory);
	*ret = memory;
	return 0;
}

/* ---- the end --------------------------------------------------------------------------------- */

static bool take_lock(struct kymo_wire_ring *ring, uint64_t until_ns)
{
	while (__atomic_exchange_n(&ring->lock, 1, __ATOMIC_ACQUIRE)) {
		if (kymo_now_ns() > until_ns)
			return false;
		nanosleep(&(struct timespec){ 0, 20000 }, NULL);
	}
	return true;
}

bool kymo_record_memory_seal(struct record_memory *memory)
{
	uint64_t until_ns = kymo_now_ns() + LOCK_NS;
	bool is_sealed = true, is_sequenced = memory->shared->rings.n_cpus > 0;

	for (size_t i = 0; i < memory->n_rings; i++) {
		struct kymo_wire_ring *ring = memory->rings[i].shared;

		is_sealed &= take_lock(ring, until_ns);
		if (ring->is_sequenced)
			__atomic_store_n(&ring->end, 0, __ATOMIC_SEQ_CST);
	}
	if (is_sequenced && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0))
		is_sealed = false;
	return is_sealed;
}

void kymo_record_memory_release(struct record_memory *memory, bool is_sealed)
{
	size_t head = head_size(memory->n_rings), keep = head + kymo_page_up(memory->n_rings * KYMO_WIRE_RING_STRIDE);

	if (memory->shared && is_sealed) {
		munmap((char *)memory->shared + keep, memory->size - keep);
		madvise((char *)memory->shared + head, keep - head, MADV_DONTNEED);
	}
	free(memory->rings);
	free(memory->positions);
	*memory = (struct record_memory){ .shared = NULL };
}

/*
 * The thread may be below a signal handler that has interrupted a change of sub-buffers, and go on with it: that
 * divides by the number of sub-buffers. One of no bytes is as full as none.
 */
void kymo_record_memory_forked(struct record_rings *rings)
{
	char *control = (char *)rings + head_size(rings->geometry->n);

	for (size_t i = 0; i < rings->rings.n_cpus + rings->n_locked; i++)
		((struct kymo_wire_ring *)(void *)(control + i * KYMO_WIRE_RING_STRIDE))->n_subbuffers = 1;
}
