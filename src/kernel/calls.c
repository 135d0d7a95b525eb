#include "kernel/calls.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/attach.h"
#include "kernel/call_load.h"
#include "kernel/call_ring.h"
#include "kernel/kernel.h"
#include "kernel/program.h"
#include "kernel/refused.h"
#include "kernel/state.h"

enum { DRAIN_MAX = 65536 };

struct kymo_kernel_calls {
	struct kymo_kernel base; /* processes, state, and what is attached */
	struct kymo_kernel_calls_options options;
	struct call_ring ring;
	bool is_detached;
	uint32_t n_cpus;
	uint8_t *copy; /* with options.overwrite: of the sample at hand */
	bool has_gap;  /* in front of it, and not told */
	struct bpf_object
		*object; /* open to the end: arrays of programs are emptied when their last descriptor is closed */
	struct kernel_call_rows *rows; /* of `object`, until it is loaded */
	bool is_large[2];              /* some entry, some exit has copies that may be large */
};

/* ---- programs -------------------------------------------------------------------------------- */

static void put_row(struct kymo_kernel_calls *calls, int table, unsigned int number, const struct kymo_copy *copies,
		    size_t n)
{
	struct kernel_call_row *row = &calls->rows->rows[table][number];

	row->is_seen = true;
	row->n = (uint8_t)n;
	row->room = call_load_room(copies, n);
	for (size_t i = 0; i < n; i++)
		row->copies[i] = call_load_copy(&copies[i]);
	if (row->room < 0)
		calls->is_large[table != KERNEL_CALL_ENTER] = true;
}

static void put_call(struct kymo_kernel_calls *calls, unsigned int number)
{
	const struct kymo_kernel_calls_options *o = &calls->options;
	struct kymo_copy copies[KERNEL_CALL_COPIES_MAX];
	const size_t n_leaving = o->copies(o->context, number, true, copies);
	const size_t n_entering = o->copies(o->context, number, false, copies + n_leaving);
	const size_t n_again = o->replaces_memory(o->context, number) ? 0 : n_entering;

	put_row(calls, KERNEL_CALL_ENTER, number, copies + n_leaving, n_entering);
	put_row(calls, KERNEL_CALL_LEAVE, number, copies, n_leaving);
	put_row(calls, KERNEL_CALL_AGAIN, number, copies, n_leaving + n_again);
}

static bool wants_signal_returns(const struct kymo_kernel_calls_options *o)
{
	enum { I386_SIGRETURN = 119, I386_RT_SIGRETURN = 173 };

	return o->wants(o->context, SYS_rt_sigreturn) || o->wants_i386(o->context, I386_RT_SIGRETURN) ||
	       o->wants_i386(o->context, I386_SIGRETURN);
}

/* rt_sigreturn has no number any more when it returns. Exits without one are not seen unless they are wanted: they
 * would fill the ring, and be counted where that is full. */
static void put_rows(struct kymo_kernel_calls *calls)
{
	const struct kymo_kernel_calls_options *o = &calls->options;
	struct kernel_call_row(*rows)[KERNEL_CALL_NUMBERS] = calls->rows->rows;
	const unsigned int last = KERNEL_CALL_NUMBERS - 1;

	for (unsigned int i = 0; i < KERNEL_CALL_NUMBERS; i++) {
		const bool wants_i386 = i < last && o->wants_i386(o->context, i);

		if (o->wants(o->context, i))
			put_call(calls, i);
		rows[KERNEL_CALL_I386 + KERNEL_CALL_ENTER][i].is_seen = wants_i386;
		rows[KERNEL_CALL_I386 + KERNEL_CALL_LEAVE][i].is_seen = wants_i386;
	}
	if (wants_signal_returns(o))
		rows[KERNEL_CALL_LEAVE][last].is_seen = true;
	rows[KERNEL_CALL_I386 + KERNEL_CALL_ENTER][last].is_seen = rows[KERNEL_CALL_ENTER][last].is_seen;
	rows[KERNEL_CALL_I386 + KERNEL_CALL_LEAVE][last].is_seen = rows[KERNEL_CALL_LEAVE][last].is_seen;
	rows[KERNEL_CALL_AGAIN][last].is_seen = rows[KERNEL_CALL_LEAVE][last].is_seen;
}

static struct kymo_error *run_program(struct kymo_kernel_calls *calls, const char *program)
{
	int fd;
	struct kymo_error *error = call_load_run(calls->object, program, &fd);

	if (error || kymo_vec_push(&calls->base.fds, fd))
		return error;
	close(fd);
	return &kymo_error_no_memory;
}

static struct kymo_error *load_object(struct kymo_kernel_calls *calls)
{
	const struct call_ring_shape *ring = &calls->ring.shape;
	const struct kymo_kernel_calls_options *o = &calls->options;
	const struct call_load load = {
		.ring_fd = ring->fd,
		.processes_fd = calls->base.processes_fd,
		.n_cpus = calls->n_cpus,
		.is_large = { calls->is_large[0], calls->is_large[1] },
		.signals = o->signals,
		.follow = o->follow,
		.options = { .ns_dev = calls->base.ids.ns_dev,
			     .ns_ino = calls->base.ids.ns_ino,
			     .not_tgid = calls->base.ids.not_tgid,
			     .thread = o->thread,
			     .n_lines = ring->n_lines,
			     .size = ring->size,
			     .capacity = ring->capacity,
			     .record_max = ring->record_max,
			     .section_shift = (uint32_t)__builtin_ctz(ring->size / CALL_RING_SECTIONS),
			     .i386_shift = (uint32_t)__builtin_ctz((uint32_t)o->layout->is_32_bits),
			     .overwrite = ring->overwrite,
			     .has_processes = calls->base.processes_fd >= 0,
			     .has_times = o->has_times,
			     .has_names = o->names,
			     .layout = *o->layout },
	};

	return call_load(calls->object, &load);
}

static struct kymo_error *load_programs(struct kymo_kernel_calls *calls)
{
	struct kymo_error *error = call_load_open(&calls->object, &calls->rows);

	if (error)
		return error;
	put_rows(calls);
	return load_object(calls);
}

/* At an exit the programs run in this order: a process is counted as ended after its end is in the ring. */
static struct kymo_error *attach_all(struct kymo_kernel_calls *calls)
{
	struct kymo_error *error = run_program(calls, "see_end");

	if (!error && calls->options.follow)
		error = run_program(calls, "follow_exit");
	if (!error && calls->options.follow)
		error = run_program(calls, "follow_fork");
	if (!error && calls->options.signals)
		error = run_program(calls, "see_signal");
	if (!error)
		error = run_program(calls, "see_exit");
	if (!error)
		error = run_program(calls, "see_entry");
	return error;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* False: the sample is not as programs make them. */
static bool read_event(const struct kernel_call *sample, struct kymo_kernel_call *call, siginfo_t *info)
{
	switch (sample->what) {
	case KERNEL_CALL_ENTER:
		call->event = KYMO_KERNEL_CALL_ENTERED;
		call->number = sample->value;
		memcpy(call->args, sample->words, sizeof(call->args));
		call->stack_pointer = sample->words[KERNEL_CALL_STACK_POINTER];
		return true;
	case KERNEL_CALL_LEAVE:
		call->event = KYMO_KERNEL_CALL_LEFT;
		call->number = sample->number;
		return true;
	case KERNEL_CALL_SIGNAL:
		call->event = KYMO_KERNEL_CALL_SIGNAL;
		memcpy(info, sample->words, KERNEL_SIGINFO_SIZE);
		info->si_signo = (int)sample->value;
		return true;
	case KERNEL_CALL_END:
		call->event = KYMO_KERNEL_CALL_ENDED;
		return true;
	default:
		return false;
	}
}

static bool is_sound_sample(const struct kernel_call *sample)
{
	return sample->stride >= offsetof(struct kernel_call, words) && sample->stride <= CALL_RING_RECORD_MAX &&
	       sample->stride % 8 == 0 && sample->size <= sample->stride;
}

static struct kymo_error *hand_out(struct kymo_kernel_calls *calls, const struct kernel_call *sample,
				   struct kymo_error *(*see)(const struct kymo_kernel_call *call, void *data),
				   void *data)
{
	const size_t header = offsetof(struct kernel_call, copies);
	siginfo_t info = { 0 };
	struct kymo_kernel_call call = {
		.ns = sample->ns,
		.lost = sample->lost,
		.has_gap = calls->has_gap,
		.cpu = sample->cpu,
		.tid = sample->tid,
		.pid = sample->pid,
		.name = calls->options.names ? sample->name : NULL,
		.result = (int64_t)sample->value,
		.siginfo = &info,
		.is_incomplete = sample->is_incomplete,
		.is_i386 = sample->is_i386,
		.copies = { sample->copies, sample->size > header ? sample->size - header : 0 },
	};

	calls->has_gap = false;
	return read_event(sample, &call, &info) ? see(&call, data) : NULL;
}

static const struct kernel_call *next_sample(struct kymo_kernel_calls *calls, uint64_t limit)
{
	return calls->copy ? call_ring_copy(&calls->ring, limit, calls->copy, &calls->has_gap)
			   : call_ring_peek(&calls->ring, limit);
}

struct kymo_error *kymo_kernel_calls_drain(struct kymo_kernel_calls *calls,
					   struct kymo_error *(*see)(const struct kymo_kernel_call *call, void *data),
					   void *data, bool *is_empty_ret)
{
	bool is_head;
	const uint64_t limit = call_ring_limit(&calls->ring, &is_head);
	const struct kernel_call *sample = NULL;
	struct kymo_error *error = NULL;

	for (int i = 0; i < DRAIN_MAX && !error && (sample = next_sample(calls, limit)); i++) {
		if (!is_sound_sample(sample)) {
			error = kymo_error_create(KYMO_ERROR_FAILED,
						  "the ring of system calls holds what is no sample");
			break;
		}
		error = hand_out(calls, sample, see, data);
		call_ring_next(&calls->ring, sample->stride);
	}
	call_ring_tell(&calls->ring);
	/* What is being written now must not be missed at the end. Until then it is the next round's: while many CPUs
	 * write there always is some, and the reader would never sleep. */
	*is_empty_ret = !sample && (is_head || !calls->is_detached);
	return error;
}

void kymo_kernel_calls_detach(struct kymo_kernel_calls *calls)
{
	kymo_kernel_detach(&calls->base);
	calls->is_detached = true;
}

uint64_t kymo_kernel_calls_lost(const struct kymo_kernel_calls *calls)
{
	return __atomic_load_n(&call_ring_head(&calls->ring)->lost, __ATOMIC_RELAXED);
}

bool kymo_kernel_calls_has_processes(const struct kymo_kernel_calls *calls)
{
	return kymo_kernel_has_processes(&calls->base);
}

bool kymo_kernel_calls_may_be_late(const struct kymo_kernel_calls *calls)
{
	return __atomic_load_n(&calls->base.processes->may_be_late, __ATOMIC_RELAXED);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static struct kymo_error *set_up_calls(struct kymo_kernel_calls *calls)
{
	int n_cpus = libbpf_num_possible_cpus();
	struct kymo_error *error;

	if (n_cpus <= 0)
		return kymo_error_create(KYMO_ERROR_FAILED, "cannot tell how many CPUs there are");
	calls->n_cpus = (uint32_t)n_cpus;
	if (calls->options.overwrite)
		calls->copy = malloc(CALL_RING_RECORD_MAX);
	if (calls->options.overwrite && !calls->copy)
		return &kymo_error_no_memory;
	error = kernel_choose_namespace(&calls->base);
	if (!error && calls->options.pid)
		error = kernel_create_processes(&calls->base);
	if (!error)
		error = call_ring_init(&calls->ring, calls->options.buffer_size, calls->n_cpus,
				       calls->options.overwrite);
	if (!error)
		error = load_programs(calls);
	return error ? error : attach_all(calls);
}

struct kymo_error *kymo_kernel_calls_create(const struct kymo_kernel_calls_options *options,
					    struct kymo_kernel_calls **ret)
{
	struct kymo_kernel_calls *calls = calloc(1, sizeof(*calls));
	struct kymo_error *error;

	if (!calls)
		return &kymo_error_no_memory;
	libbpf_set_print(kernel_silence);
	calls->options = *options;
	/* The table has the machine's ids, as where descendants are followed. */
	calls->base.options = (struct kymo_kernel_options){ .pid = options->pid, .follow = options->pid };
	calls->base.ids.not_tgid = options->pid ? 0 : getpid();
	calls->base.rings_fd = calls->base.state_fd = calls->base.processes_fd = calls->base.gate_fd = -1;
	calls->ring.shape.fd = -1;
	error = set_up_calls(calls);
	if (error)
		kymo_kernel_calls_destroy(calls);
	else
		*ret = calls;
	return error;
}

void kymo_kernel_calls_destroy(struct kymo_kernel_calls *calls)
{
	if (!calls)
		return;
	kernel_deinit(&calls->base);
	call_ring_deinit(&calls->ring);
	bpf_object__close(calls->object);
	free(calls->copy);
	free(calls);
}
