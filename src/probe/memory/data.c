/*
 * What pads write: the head of the data memory, and the rings (docs/internals/memory.md). A forked child has none of
 * it; a followed process gets its own, at the same address.
 */
#include "probe/memory/data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/pad.h"
#include "arch/remote.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "probe/memory/ahead.h"
#include "probe/memory/remote_memory.h"
#include "probe/memory/shared.h"
#include "probe/memory/spent.h"
#include "probe/options.h"
#include "probe/probes.h"
#include "probe/spec/spec.h"
#include "proc/batch.h"
#include "proc/call.h"
#include "proc/process.h"

#define SUBBUFFERS 8
#define SPARE_SUBBUFFERS 4
#define SPARE_SUBBUFFER_SIZE (64ull << 10)
#define MANYS_SPARE_SIZE (16ull << 10) /* of a program that a followed one executes; holds the largest record */
/* Of a forked child: a tree has many of those, and the memory that is there at once is what a fork costs. */
#define CHILD_SUBBUFFER_SIZE (256ull << 10)
#define CHILD_SPARE_SIZE (64ull << 10)
#define SUBBUFFER_LEAST (8ull << 10) /* holds the largest record without a stack */
#define AT_ONCE_SIZE \
	(4ull << 20) /* of a CPU's working ring, which the fastest producer fills in some milliseconds; the rest comes \
			with use */
#define USED_SIZE (32ull << 10) /* so much in one ring says that a process is no short command with a few hits */
#define CHILD_AT_ONCE 4         /* sub-buffers of a child's, and of a program that a followed one executes */
#define GROWTH 2                /* sub-buffers that come at a time: the other rings wait meanwhile */
#define CHILD_AT_ONCE_SIZE (2ull << 20) /* of all CPUs' first rings, at the most, if the least is not more */

/* ---- geometry -------------------------------------------------------------------------------- */

static uint64_t subbuffer_size(const struct kymo_probes_options *options)
{
	uint64_t size = kymo_page_down(options->buffer_size / SUBBUFFERS);

	return size ? size : KYMO_PAGE_SIZE;
}

static uint64_t subbuffer_least(const struct kymo_spec *specs, size_t n)
{
	uint64_t stack = 0;

	for (size_t i = 0; i < n; i++)
		if (specs[i].stack_size > stack)
			stack = specs[i].stack_size;
	return SUBBUFFER_LEAST + kymo_page_up(stack);
}

uint64_t kymo_data_buffer_least(const struct kymo_spec *specs, size_t n)
{
	return SUBBUFFERS * subbuffer_least(specs, n);
}

/* What ring `i` is like: the CPUs' rings for sequences, if any; the CPUs' rings with locks; spare ones. */
struct shape {
	uint32_t n_subbuffers;
	uint64_t subbuffer_size;
};

static struct shape usual_shape(const struct kymo_shared *shared, const struct kymo_probes_options *options, size_t i)
{
	uint64_t own = subbuffer_size(options), less = kymo_page_down(own / 4),
		 spare = options->is_one_of_many ? MANYS_SPARE_SIZE : SPARE_SUBBUFFER_SIZE;

	if (i < shared->n_cpus)
		return (struct shape){ SUBBUFFERS, own };
	/* Beside sequences locks serve the few threads that have none, and threads that come while a sub-buffer is
	 * being changed. */
	if (i < shared->n_sequenced + shared->n_cpus)
		return (struct shape){ SUBBUFFERS, less > spare ? less : spare };
	return (struct shape){ SPARE_SUBBUFFERS, spare };
}

static struct shape shape_of(const struct kymo_shared *shared, const struct kymo_probes_options *options, size_t i)
{
	struct shape shape = usual_shape(shared, options, i);
	uint64_t own = subbuffer_size(options);

	if (options->is_tight && shape.subbuffer_size > own)
		shape.subbuffer_size = own;
	return shape;
}

static uint64_t bytes_of(const struct kymo_shared *shared, const struct kymo_probes_options *options, size_t i)
{
	const struct shape shape = shape_of(shared, options, i);

	return shape.n_subbuffers * shape.subbuffer_size;
}

/* Rings of one kind have one size. */
static uint64_t data_offset(const struct kymo_shared *shared, const struct kymo_probes_options *options, size_t i)
{
	const size_t of_cpus = i < shared->n_cpus ? i : shared->n_cpus, rest = i - of_cpus,
		     beside = rest < shared->n_sequenced ? rest : shared->n_sequenced;

	return KYMO_WIRE_RINGS_OFFSET + kymo_page_up((uint64_t)shared->n_rings * KYMO_WIRE_RING_STRIDE) +
	       of_cpus * bytes_of(shared, options, 0) + beside * bytes_of(shared, options, shared->n_cpus) +
	       (rest - beside) * bytes_of(shared, options, shared->n_cpus + shared->n_sequenced);
}

uint64_t kymo_data_size(const struct kymo_shared *shared, const struct kymo_probes_options *options)
{
	return data_offset(shared, options, shared->n_rings);
}

/* A CPU's ring for threads that are alone on it: that for sequences, or, where none are used, that with a lock. */
static bool is_working(const struct kymo_shared *shared, const struct kymo_data *data, size_t i)
{
	size_t first = data->is_locked ? shared->n_sequenced : 0;

	return i >= first && i < first + shared->n_cpus;
}

/* A forked child's are at the same addresses, and use less of them. */
static struct shape shape_in_child(const struct kymo_shared *shared, const struct kymo_data *data, struct shape parents,
				   size_t i)
{
	uint64_t most = is_working(shared, data, i) ? CHILD_SUBBUFFER_SIZE : CHILD_SPARE_SIZE;

	while (most > data->least && CHILD_AT_ONCE * most * shared->n_cpus > CHILD_AT_ONCE_SIZE)
		most /= 2;
	if (most < data->least)
		most = data->least;
	if (data->most && most > data->most)
		most = data->most;
	return (struct shape){ parents.n_subbuffers, parents.subbuffer_size < most ? parents.subbuffer_size : most };
}

struct kymo_shared_ring kymo_data_ring(const struct kymo_shared *shared, const struct kymo_probes_options *options,
				       const struct kymo_data *data, size_t i)
{
	struct shape shape = data->is_childs ? shape_in_child(shared, data, shape_of(shared, options, i), i)
					     : shape_of(shared, options, i);
	uint8_t *base = (uint8_t *)data->head;

	return (struct kymo_shared_ring){
		.shared = (struct kymo_wire_ring *)(void *)(base + KYMO_WIRE_RINGS_OFFSET + i * KYMO_WIRE_RING_STRIDE),
		.data = base + data_offset(shared, options, i),
		.subbuffer_size = shape.subbuffer_size,
		.n_subbuffers = shape.n_subbuffers,
		.cpu = (uint32_t)(i % shared->n_cpus),
		.is_sequenced = i < shared->n_sequenced,
	};
}

/* ---- making it ------------------------------------------------------------------------------- */

struct kymo_error *kymo_data_open(const struct kymo_shared *shared, struct kymo_process *process,
				  struct kymo_data *data)
{
	int err = kymo_allocate(data->fd, 0, KYMO_WIRE_RINGS_OFFSET);
	void *base;

	if (err)
		return kymo_error_errno(err, "cannot allocate the shared memory");
	base = mmap(NULL, shared->data_size, PROT_READ | PROT_WRITE, MAP_SHARED, data->fd, 0);
	if (base == MAP_FAILED)
		return kymo_error_errno(errno, "cannot map the shared memory");
	data->size = shared->data_size;
	data->head = base;
	data->head->recorder_pid = (uint32_t)getpid();
	data->head->target_pid = (uint32_t)kymo_process_pid(process);
	data->head->watch.given_up = data->head->handlers.given_up = 1; /* no process answers yet */
	__atomic_store_n(&data->head->magic, KYMO_WIRE_MAGIC, __ATOMIC_RELEASE);
	return NULL;
}

struct kymo_error *kymo_data_map(const struct kymo_shared *shared, struct kymo_process *process, uint64_t code,
				 int64_t remote, struct kymo_remote_mapping *made_ret)
{
	const struct kymo_remote_mapping mapping = {
		shared->data_address, shared->data_size, PROT_READ | PROT_WRITE, MAP_SHARED, remote, 0
	};
	struct kymo_batch_call calls[] = { kymo_remote_map_call(&mapping),
					   { .number = SYS_madvise,
					     .args = { mapping.address, mapping.size, MADV_DONTFORK } } };
	struct kymo_error *error = kymo_remote_calls(process, code, calls, kymo_countof(calls));

	if (!error)
		error = kymo_remote_check_map(process, &mapping, calls[0].result);
	if (!error)
		*made_ret = mapping;
	if (!error && calls[1].result)
		error = kymo_error_errno((int)calls[1].result,
					 "the process could not keep the rings from its children");
	return error;
}

void kymo_data_deinit(struct kymo_data *data)
{
	if (data->ahead)
		kymo_ahead_end(data->ahead);
	free(data->coming);
	if (data->head && data->fd >= 0 && data->size <= KYMO_SPENT_SIZE_MAX)
		kymo_spent_put(data->head, data->size, data->fd);
	else if (data->fd >= 0)
		kymo_free_aside(data->head, data->size, data->fd);
	free(data->have);
	*data = (struct kymo_data){ .fd = -1 };
}

/* Where the next `n` sub-buffers of ring `i` are. */
static struct kymo_range next_range(const struct kymo_data *data, const struct kymo_shared_ring *ring, size_t i,
				    uint32_t n)
{
	return (struct kymo_range){ (uint64_t)(ring->data - (const uint8_t *)data->head) +
					    data->have[i] * ring->subbuffer_size,
				    n * ring->subbuffer_size };
}

/* Memory for `n` sub-buffers more of ring `i`. */
static int allocate_ring(struct kymo_data *data, const struct kymo_shared_ring *ring, size_t i, uint32_t n)
{
	struct kymo_range range = next_range(data, ring, i, n);
	int err = kymo_allocate(data->fd, range.offset, range.size);

	if (!err)
		data->have[i] += n;
	return err;
}

/* Sub-buffers that ring `i` has before anything is written. Producers that overwrite do not wait until more are there.
 */
static uint32_t at_once(const struct kymo_shared *shared, const struct kymo_probes_options *options,
			const struct kymo_data *data, size_t i, const struct kymo_shared_ring *ring)
{
	uint64_t some = data->is_childs || options->is_one_of_many
				? CHILD_AT_ONCE
				: (AT_ONCE_SIZE + ring->subbuffer_size - 1) / ring->subbuffer_size;

	/* The other rings are for moments. Two at least: the recorder closes a packet now and then, and is not back at
	 * once with more memory. */
	if (!is_working(shared, data, i) || some < 2)
		some = 2;
	return options->overwrite || some > ring->n_subbuffers ? ring->n_subbuffers : (uint32_t)some;
}

static void tell_size(struct kymo_data *data, const struct kymo_shared_ring *ring, size_t i)
{
	/* Before the first packet, as many of which nothing is copied yet as there are sub-buffers without memory:
	 * no thread gets that far. */
	__atomic_store_n(&ring->shared->consumed, (uint64_t)data->have[i] - ring->n_subbuffers, __ATOMIC_RELEASE);
}

void kymo_data_prepare_ahead(const struct kymo_shared *shared, const struct kymo_probes_options *options,
			     struct kymo_data *data, bool is_locked)
{
	kymo_cleanup_free struct kymo_range *ranges = calloc(shared->n_rings, sizeof(*ranges));
	kymo_cleanup_free uint32_t *coming = calloc(shared->n_rings, sizeof(*coming));
	size_t n = 0;

	if (data->ahead && data->is_locked == is_locked)
		return;
	kymo_data_settle(shared, options, data);
	data->is_locked = is_locked;
	for (size_t i = 0; ranges && coming && i < shared->n_rings; i++) {
		struct kymo_shared_ring ring = kymo_data_ring(shared, options, data, i);
		uint32_t most = at_once(shared, options, data, i, &ring);

		if (most <= data->have[i])
			continue;
		coming[i] = most - data->have[i];
		ranges[n++] = next_range(data, &ring, i, coming[i]);
	}
	data->ahead = n ? kymo_ahead_begin(data->fd, ranges, n) : NULL;
	if (data->ahead)
		data->coming = kymo_take(coming);
}

void kymo_data_settle(const struct kymo_shared *shared, const struct kymo_probes_options *options,
		      struct kymo_data *data)
{
	kymo_cleanup_free uint32_t *coming = kymo_take(data->coming);
	struct kymo_ahead *ahead = kymo_take(data->ahead);

	if (!ahead || kymo_ahead_end(ahead))
		return;
	for (size_t i = 0; i < shared->n_rings; i++) {
		struct kymo_shared_ring ring = kymo_data_ring(shared, options, data, i);

		data->have[i] += coming[i];
		if (coming[i])
			tell_size(data, &ring, i);
	}
}

struct kymo_error *kymo_data_prepare(const struct kymo_shared *shared, const struct kymo_probes_options *options,
				     struct kymo_data *data, bool is_locked)
{
	int err = 0;

	kymo_data_settle(shared, options, data);
	data->is_locked = is_locked;
	for (size_t i = 0; i < shared->n_rings && !err; i++) {
		struct kymo_shared_ring ring = kymo_data_ring(shared, options, data, i);
		uint32_t n = at_once(shared, options, data, i, &ring);

		if (n <= data->have[i])
			continue;
		err = allocate_ring(data, &ring, i, n - data->have[i]);
		if (!err)
			tell_size(data, &ring, i);
	}
	return err ? kymo_error_errno(err,
				      "cannot allocate %" PRIu64 " MiB for the rings; a smaller --buffer needs less",
				      data->size >> 20)
		   : NULL;
}

struct kymo_error *kymo_data_format(const struct kymo_shared *shared, const struct kymo_probes_options *options,
				    struct kymo_data *data)
{
	int err;

	data->have = calloc(shared->n_rings, sizeof(*data->have));
	if (!data->have)
		return &kymo_error_no_memory;
	err = kymo_allocate(data->fd, KYMO_WIRE_RINGS_OFFSET, (uint64_t)shared->n_rings * KYMO_WIRE_RING_STRIDE);
	if (err)
		return kymo_error_errno(err, "cannot allocate the heads of the rings");
	for (size_t i = 0; i < shared->n_rings; i++) {
		struct kymo_shared_ring ring = kymo_data_ring(shared, options, data, i);

		ring.shared->data_offset = (uint64_t)(ring.data - (const uint8_t *)ring.shared);
		ring.shared->subbuffer_size = ring.subbuffer_size;
		ring.shared->n_subbuffers = ring.n_subbuffers;
		ring.shared->overwrite = options->overwrite;
		ring.shared->cpu = ring.cpu;
		ring.shared->is_sequenced = ring.is_sequenced;
		tell_size(data, &ring, i);
	}
	return NULL;
}

/* Whether a little has been written. What the process says of that decides when it gets memory, and nothing else. */
static bool is_used(const struct kymo_shared_ring *ring)
{
	uint64_t opened = __atomic_load_n(&ring->shared->opened, __ATOMIC_RELAXED),
		 cur = __atomic_load_n(&ring->shared->cur, __ATOMIC_RELAXED);
	uint64_t least = ring->subbuffer_size / 4 < USED_SIZE ? ring->subbuffer_size / 4 : USED_SIZE;

	return opened > 1 || __atomic_load_n(&ring->shared->closed, __ATOMIC_RELAXED) ||
	       (opened && cur - (uint64_t)(ring->data - (const uint8_t *)ring->shared) > least);
}

/* Bytes that ring `i` still has memory for. What the process says of that decides which ring grows first. */
static uint64_t left_in(const struct kymo_data *data, const struct kymo_shared_ring *ring, size_t i)
{
	uint64_t opened = __atomic_load_n(&ring->shared->opened, __ATOMIC_RELAXED), have = data->have[i],
		 at = __atomic_load_n(&ring->shared->cur, __ATOMIC_RELAXED) -
		      (uint64_t)(ring->data - (const uint8_t *)ring->shared);

	if (!opened)
		return have * ring->subbuffer_size;
	if (opened > have || at > opened * ring->subbuffer_size)
		return 0;
	return have * ring->subbuffer_size - at;
}

static bool grow_ring(struct kymo_data *data, const struct kymo_shared_ring *ring, size_t i)
{
	uint32_t lacks = ring->n_subbuffers - data->have[i];

	data->growth_err = allocate_ring(data, ring, i, lacks < GROWTH ? lacks : GROWTH);
	if (data->growth_err)
		return false;
	tell_size(data, ring, i);
	return true;
}

bool kymo_data_is_whole(const struct kymo_shared *shared, const struct kymo_probes_options *options,
			const struct kymo_data *data, size_t i)
{
	struct kymo_shared_ring ring = kymo_data_ring(shared, options, data, i);

	return data->have[i] == ring.n_subbuffers;
}

bool kymo_data_has_next(const struct kymo_shared *shared, const struct kymo_probes_options *options,
			const struct kymo_data *data, size_t i)
{
	struct kymo_shared_ring ring = kymo_data_ring(shared, options, data, i);

	return data->have[i] == ring.n_subbuffers ||
	       __atomic_load_n(&ring.shared->opened, __ATOMIC_RELAXED) < data->have[i];
}

/* The ring in use that has the least left grows. Where none is in use, the next ring of another CPU: threads move. */
bool kymo_data_grow(const struct kymo_shared *shared, const struct kymo_probes_options *options, struct kymo_data *data,
		    bool is_short)
{
	size_t next = shared->n_rings, shortest = shared->n_rings;
	struct kymo_shared_ring ring;
	uint64_t least = UINT64_MAX;
	bool are_whole = true;

	if (data->ahead || data->are_whole)
		return false;
	for (size_t i = 0; i < shared->n_rings; i++) {
		uint64_t left;

		ring = kymo_data_ring(shared, options, data, i);
		if (data->have[i] == ring.n_subbuffers)
			continue;
		are_whole = false;
		left = left_in(data, &ring, i);
		if (is_short && left > data->have[i] * ring.subbuffer_size / 2)
			continue;
		if (is_used(&ring) && left < least) {
			least = left;
			shortest = i;
		} else if (next == shared->n_rings && is_working(shared, data, i)) {
			next = i;
		}
	}
	data->are_whole = are_whole;
	if (shortest < shared->n_rings)
		data->are_to_grow |= is_working(shared, data, shortest);
	else if (data->are_to_grow && !is_short)
		shortest = next;
	if (shortest == shared->n_rings)
		return false;
	ring = kymo_data_ring(shared, options, data, shortest);
	return grow_ring(data, &ring, shortest);
}

/* ---- a forked child's ------------------------------------------------------------------------ */

struct kymo_adopted {
	struct kymo_data data;
	unsigned int faults; /* kymo_adopted_faults() */
};

static struct kymo_error *map_data(const struct kymo_probes *probes, struct kymo_process *child, struct kymo_data *data)
{
	struct kymo_remote_mapping made = { .size = 0 };
	struct kymo_error *error;
	int64_t remote = -1;

	error = kymo_remote_memfd(child, KYMO_WIRE_DATA_NAME, &remote);
	if (!error)
		error = kymo_take_memfd(child, KYMO_WIRE_DATA_NAME, remote, &data->fd, &data->inode);
	if (!error)
		error = kymo_data_open(&probes->shared, child, data);
	if (!error)
		error = kymo_data_map(&probes->shared, child, 0, remote, &made);
	if (!error)
		error = kymo_give_size(data->fd, data->size);
	if (error && made.size)
		kymo_remote_unmap(child, &made);
	return kymo_remote_close(child, remote, error);
}

/* In the code that the pads of the first region share, or 0. */
static uint64_t own_syscall(const struct kymo_probes *probes)
{
	struct kymo_gadgets gadgets = { 0 };
	size_t size;
	const uint8_t *guest = kymo_pad_guest(&size);

	if (probes->shared.n_regions)
		kymo_gadgets_scan(guest, size, probes->shared.header->regions[0].address, &gadgets);
	return gadgets.syscall;
}

static uint64_t child_subbuffer(uint64_t buffer, uint64_t least)
{
	uint64_t size = kymo_page_down(buffer / SUBBUFFERS);

	return buffer && size < least ? least : size;
}

struct kymo_error *probes_make_data(const struct kymo_probes *probes, struct kymo_process *child,
				    const struct kymo_adopted *makers, struct kymo_adopted **ret)
{
	const uint64_t least = subbuffer_least(probes->wanted.specs, probes->wanted.n_specs);
	struct kymo_adopted *adopted = calloc(1, sizeof(*adopted));
	struct kymo_error *error;

	if (!adopted)
		return &kymo_error_no_memory;
	adopted->faults = makers ? makers->faults : 0;
	adopted->data = (struct kymo_data){ .fd = -1,
					    .is_childs = true,
					    .least = least,
					    .most = child_subbuffer(probes->wanted.child_buffer, least),
					    .is_locked = probes->shared.data.is_locked };
	kymo_remote_inherit(child, probes->process, own_syscall(probes));
	error = kymo_remote_begin(child);
	if (!error) {
		error = map_data(probes, child, &adopted->data);
		error = kymo_error_first(error, kymo_remote_end(child));
	}
	if (!error)
		error = kymo_data_format(&probes->shared, &probes->wanted.options, &adopted->data);
	if (!error)
		error = kymo_data_prepare(&probes->shared, &probes->wanted.options, &adopted->data,
					  adopted->data.is_locked);
	if (!error) /* a process that sets a handler is answered from now on, as its parent is */
		adopted->data.head->handlers.given_up = !probes->watch.has_handler_watch;
	if (error) {
		kymo_adopted_destroy(adopted);
		return error;
	}
	*ret = adopted;
	return NULL;
}

struct kymo_wire_data *probes_adopted_head(const struct kymo_adopted *adopted)
{
	return adopted->data.head;
}

unsigned int kymo_adopted_faults(const struct kymo_adopted *adopted)
{
	return adopted->faults;
}

unsigned int *probes_adopted_faults(struct kymo_adopted *adopted)
{
	return &adopted->faults;
}

void kymo_adopted_destroy(struct kymo_adopted *adopted)
{
	if (!adopted)
		return;
	kymo_data_deinit(&adopted->data);
	free(adopted);
}

struct kymo_shared_ring kymo_adopted_ring(const struct kymo_adopted *adopted, const struct kymo_probes *probes,
					  size_t i)
{
	return kymo_data_ring(&probes->shared, &probes->wanted.options, &adopted->data, i);
}

bool kymo_probes_grow(struct kymo_probes *probes, struct kymo_adopted *adopted, bool is_short)
{
	return kymo_data_grow(&probes->shared, &probes->wanted.options, adopted ? &adopted->data : &probes->shared.data,
			      is_short);
}

int kymo_probes_growth_error(const struct kymo_probes *probes, const struct kymo_adopted *adopted)
{
	return adopted ? adopted->data.growth_err : probes->shared.data.growth_err;
}

bool kymo_probes_is_ring_whole(const struct kymo_probes *probes, const struct kymo_adopted *adopted, size_t i)
{
	return kymo_data_is_whole(&probes->shared, &probes->wanted.options,
				  adopted ? &adopted->data : &probes->shared.data, i);
}

bool kymo_probes_has_next(const struct kymo_probes *probes, const struct kymo_adopted *adopted, size_t i)
{
	return kymo_data_has_next(&probes->shared, &probes->wanted.options,
				  adopted ? &adopted->data : &probes->shared.data, i);
}

bool kymo_adopted_is_muted(const struct kymo_adopted *adopted)
{
	return __atomic_load_n(&adopted->data.head->is_muted, __ATOMIC_RELAXED);
}

uint64_t kymo_adopted_lost_in_vforks(const struct kymo_adopted *adopted)
{
	return __atomic_load_n(&adopted->data.head->lost_in_vforks, __ATOMIC_RELAXED);
}
