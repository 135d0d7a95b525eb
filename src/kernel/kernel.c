#include "kernel/kernel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "kernel/attach.h"
#include "kernel/follow.h"
#include "kernel/program.h"
#include "kernel/refused.h"
#include "kernel/state.h"

#define MAX_CPUS 8192

/* ---- CPUs ------------------------------------------------------------------------------------ */

/* The list "0-3,8" of online CPUs as a fresh array. */
static struct kymo_error *online_cpus(uint32_t **ret, size_t *n_ret)
{
	kymo_cleanup_free char *text = NULL;
	KYMO_VEC(uint32_t) cpus = { 0 };
	char *at;
	int err = kymo_read_file(AT_FDCWD, "/sys/devices/system/cpu/online", 1 << 16, &text, NULL);

	if (err)
		return kymo_error_errno(err, "cannot tell which CPUs there are");
	for (at = text; *at && *at != '\n'; at += *at == ',') {
		char *end;
		unsigned long first = strtoul(at, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (end == at || last >= MAX_CPUS || first > last)
			break;
		for (unsigned long cpu = first; cpu <= last; cpu++) {
			if (!kymo_vec_push(&cpus, (uint32_t)cpu)) {
				kymo_vec_deinit(&cpus);
				return &kymo_error_no_memory;
			}
		}
		at = end;
	}
	if (!cpus.n || (*at && *at != '\n')) {
		kymo_vec_deinit(&cpus);
		return kymo_error_create(KYMO_ERROR_FAILED, "the kernel's list of CPUs makes no sense");
	}
	*ret = cpus.items;
	*n_ret = cpus.n;
	return NULL;
}

/* ---- maps ------------------------------------------------------------------------------------ */

static struct kymo_error *create_rings(struct kymo_kernel *kernel, uint32_t n_possible)
{
	LIBBPF_OPTS(bpf_map_create_opts, outer);
	struct kymo_error *error;
	uint32_t *cpus;

	error = online_cpus(&cpus, &kernel->n_rings);
	if (error)
		return error;
	kernel->rings = calloc(kernel->n_rings, sizeof(*kernel->rings));
	for (size_t i = 0; kernel->rings && i < kernel->n_rings; i++)
		kernel->rings[i] = (struct kernel_ring){ .kernel = kernel, .index = i, .cpu = cpus[i], .fd = -1 };
	free(cpus);
	if (!kernel->rings)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < kernel->n_rings; i++) {
		struct kernel_ring *ring = &kernel->rings[i];

		ring->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "kymo_ring", 0, 0,
					  kernel_ring_size(kernel->options.buffer_size), NULL);
		if (ring->fd < 0)
			return kernel_refused(errno, "make BPF ring buffers");
		if (!i) {
			outer.inner_map_fd = (uint32_t)ring->fd;
			kernel->rings_fd =
				bpf_map_create(BPF_MAP_TYPE_ARRAY_OF_MAPS, "kymo_rings", 4, 4, n_possible, &outer);
			if (kernel->rings_fd < 0)
				return kernel_refused(errno, "make BPF maps");
		}
		if (ring->cpu >= n_possible || bpf_map_update_elem(kernel->rings_fd, &ring->cpu, &ring->fd, BPF_ANY))
			return kernel_refused(errno, "fill BPF maps");
	}
	return NULL;
}

static struct kymo_error *create_state(struct kymo_kernel *kernel, uint32_t n_possible)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *state;

	kernel->n_state = n_possible;
	kernel->state_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "kymo_state", 4, sizeof(struct kernel_state),
					  (uint32_t)kernel->n_state, &options);
	if (kernel->state_fd < 0)
		return kernel_refused(errno, "make BPF maps");
	kernel->state_size = (kernel->n_state * sizeof(struct kernel_state) + page - 1) / page * page;
	state = mmap(NULL, kernel->state_size, PROT_READ, MAP_SHARED, kernel->state_fd, 0);
	if (state == MAP_FAILED)
		return kernel_refused(errno, "map BPF maps");
	kernel->state = state;
	return NULL;
}

static struct kymo_error *create_gate(struct kymo_kernel *kernel)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);
	void *gate;

	kernel->gate_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "kymo_gate", 4, sizeof(*kernel->gate), 1, &options);
	if (kernel->gate_fd < 0)
		return kernel_refused(errno, "make BPF maps");
	gate = mmap(NULL, sizeof(*kernel->gate), PROT_READ | PROT_WRITE, MAP_SHARED, kernel->gate_fd, 0);
	if (gate == MAP_FAILED)
		return kernel_refused(errno, "map BPF maps");
	kernel->gate = gate;
	*kernel->gate = !kernel->options.is_shut;
	return NULL;
}

void kymo_kernel_let_in(struct kymo_kernel *kernel)
{
	__atomic_store_n(kernel->gate, 1, __ATOMIC_SEQ_CST);
}

void kymo_kernel_shut(struct kymo_kernel *kernel)
{
	__atomic_store_n(kernel->gate, 0, __ATOMIC_SEQ_CST);
}

/* ---- samples --------------------------------------------------------------------------------- */

/* A string of the `size` bytes at `slot`, which has a NUL, as records have it. Returns its size. */
static size_t pack_string(const uint8_t *slot, size_t size, uint16_t limit, uint8_t *out)
{
	const size_t length = strnlen((const char *)slot, size);

	if (length <= limit) {
		memcpy(out, slot, length);
		out[length] = 0;
		return length + 1;
	}
	memcpy(out, slot, limit);
	memcpy(out + limit, KYMO_STRING_CUT, sizeof(KYMO_STRING_CUT));
	return limit + sizeof(KYMO_STRING_CUT);
}

/* Bytes of the arguments in a sample. */
static size_t size_of_values(const struct kernel_shape *shape)
{
	size_t size = 0;

	for (size_t i = 0; i < shape->n_args; i++)
		size += kernel_slot_size(shape->types[i], shape->limits[i]);
	return size;
}

/* Pack the values as wire/event.h wants them. Returns the size. */
static size_t pack(const struct kernel_shape *shape, const struct kernel_sample *sample, uint8_t *out)
{
	const uint8_t *slot = sample->values;
	uint64_t header = sample->id;
	size_t at = KYMO_EVENT_ARGS_OFFSET;

	memcpy(out, &header, sizeof(header));
	memcpy(out + KYMO_EVENT_TID_OFFSET, &sample->tid, sizeof(sample->tid));
	if (shape->has_faults)
		out[at++] = (uint8_t)sample->faults;
	for (size_t i = 0; i < shape->n_args; i++) {
		const size_t size = kernel_slot_size(shape->types[i], shape->limits[i]);

		if (shape->types[i] == KYMO_TYPE_STRING) {
			at += pack_string(slot, size, shape->limits[i], out + at);
		} else {
			memcpy(out + at, slot, kymo_type_size(shape->types[i]));
			at += kymo_type_size(shape->types[i]);
		}
		slot += size;
	}
	return at;
}

static int on_sample(void *data, void *bytes, size_t size)
{
	struct kernel_ring *ring = data;
	struct kymo_kernel *kernel = ring->kernel;
	const struct kernel_sample *sample = bytes;
	const struct kernel_shape *shape;
	uint8_t record[KYMO_KERNEL_RECORD_MAX];
	char name[KERNEL_NAME_SIZE] = "";
	struct kymo_kernel_sample seen;

	if (size < sizeof(*sample) || sample->id >= kernel->shape_of.n || !kernel->shape_of.items[sample->id])
		return 0;
	shape = &kernel->shapes.items[kernel->shape_of.items[sample->id] - 1];
	if (size < kernel_sample_size(kernel->options.names) + size_of_values(shape))
		return 0;
	if (kernel->options.names)
		memcpy(name, sample->values + size_of_values(shape), sizeof(name) - 1);
	seen = (struct kymo_kernel_sample){
		.ring = ring->index,
		.ns = sample->ns,
		.lost = sample->lost,
		.tid = sample->tid,
		.pid = sample->pid,
		.name = kernel->options.names ? name : NULL,
		.record = record,
		.size = pack(shape, sample, record),
	};
	kernel->error = kernel->see(&seen, kernel->data);
	return kernel->error ? -ECANCELED : 0;
}

struct kymo_error *kymo_kernel_drain(struct kymo_kernel *kernel,
				     struct kymo_error *(*see)(const struct kymo_kernel_sample *sample, void *data),
				     void *data)
{
	struct kymo_error *error;
	int n;

	kernel->see = see;
	kernel->data = data;
	n = ring_buffer__consume(kernel->reader);
	error = kernel->error;
	kernel->error = NULL;
	if (!error && n < 0)
		error = kymo_error_errno(n, "cannot read the kernel's ring buffers");
	return error;
}

static struct kymo_error *open_reader(struct kymo_kernel *kernel)
{
	for (size_t i = 0; i < kernel->n_rings; i++) {
		struct kernel_ring *ring = &kernel->rings[i];
		int err = 0;

		if (!kernel->reader) {
			kernel->reader = ring_buffer__new(ring->fd, on_sample, ring, NULL);
			err = kernel->reader ? 0 : -errno;
		} else {
			err = ring_buffer__add(kernel->reader, ring->fd, on_sample, ring);
		}
		if (err)
			return kymo_error_errno(err, "cannot map the kernel's ring buffers");
	}
	return NULL;
}

size_t kymo_kernel_n_rings(const struct kymo_kernel *kernel)
{
	return kernel->n_rings;
}

uint32_t kymo_kernel_cpu(const struct kymo_kernel *kernel, size_t ring)
{
	return kernel->rings[ring].cpu;
}

uint64_t kymo_kernel_lost(const struct kymo_kernel *kernel, size_t ring)
{
	return __atomic_load_n(&kernel->state[kernel->rings[ring].cpu].count, __ATOMIC_RELAXED);
}

bool kymo_kernel_has_processes(const struct kymo_kernel *kernel)
{
	return __atomic_load_n(&kernel->processes->n, __ATOMIC_ACQUIRE);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static struct kymo_error *set_up_uprobes(struct kymo_kernel *kernel)
{
	int n_possible = libbpf_num_possible_cpus();
	struct kymo_error *error;

	if (n_possible <= 0 || n_possible > MAX_CPUS)
		return kymo_error_create(KYMO_ERROR_FAILED, "cannot tell how many CPUs there are");
	error = kernel_choose_namespace(kernel);
	if (!error)
		error = create_state(kernel, (uint32_t)n_possible);
	if (!error)
		error = create_gate(kernel);
	if (!error)
		error = create_rings(kernel, (uint32_t)n_possible);
	if (!error)
		error = open_reader(kernel);
	if (!error && kernel->options.follow)
		error = kernel_create_processes(kernel);
	if (!error && kernel->options.follow)
		error = kernel_follow(kernel);
	return error;
}

struct kymo_error *kymo_kernel_create(const struct kymo_kernel_options *options, struct kymo_kernel **ret)
{
	struct kymo_kernel *kernel = calloc(1, sizeof(*kernel));
	struct kymo_error *error;

	if (!kernel)
		return &kymo_error_no_memory;
	libbpf_set_print(kernel_silence);
	kernel->options = *options;
	kernel->attach_pid = options->follow ? 0 : options->pid;
	if (kernel->attach_pid && options->thread)
		kernel->attach_pid = options->thread;
	kernel->ids.not_tgid = options->pid ? 0 : getpid();
	kernel->rings_fd = kernel->state_fd = kernel->processes_fd = kernel->gate_fd = -1;
	error = set_up_uprobes(kernel);
	if (error) {
		kymo_kernel_destroy(kernel);
		return error;
	}
	/* Links know a process by its first thread, perf events by any. */
	kernel->has_multi =
		!options->no_multi && (options->follow || kernel->attach_pid == options->pid) && kernel_has_multi();
	*ret = kernel;
	return NULL;
}

const char *kymo_kernel_cost_of_sites(void)
{
	return kernel_has_multi() ? "about 1 ms each" : "some 50 ms each";
}

void kymo_kernel_destroy(struct kymo_kernel *kernel)
{
	if (kernel)
		kernel_deinit(kernel);
	free(kernel);
}
