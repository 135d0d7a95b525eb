#include "kernel/calls.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "kernel/attach.h"
#include "kernel/call_program.h"
#include "kernel/call_ring.h"
#include "kernel/follow.h"
#include "kernel/kernel.h"
#include "kernel/program.h"
#include "kernel/refused.h"
#include "kernel/state.h"

enum {
	THREADS_MAX = 32768, /* in calls of which copies have failed */
	DRAIN_MAX = 65536,
};

/* A program that was loaded, and what it copies: calls with the same copies share it. */
struct loaded {
	enum kernel_call_what what;
	struct kymo_copy copies[2 * KYMO_COPIES_MAX];
	size_t n;
	int fd;
};

struct kymo_kernel_calls {
	struct kymo_kernel base; /* processes, state, and what is attached */
	struct kymo_kernel_calls_options options;
	struct call_ring ring;
	bool is_detached;
	int scratch_fd, again_fd, plain_fd, entries_fd, exits_fd;
	uint64_t plain[KERNEL_CALL_PLAIN / 64];
	uint32_t n_cpus;
	uint8_t *copy; /* with options.overwrite: of the sample at hand */
	bool has_gap;  /* in front of it, and not told */
	KYMO_VEC(struct loaded) loaded;
	struct bpf_insn *insns;
	uint32_t status_at; /* in task_struct */
	struct kernel_call_task task;
	uint32_t sys_enter, sys_exit; /* ids of the tracepoints, in the kernel's description of itself */
	struct kernel_call_program program;
};

/* ---- programs -------------------------------------------------------------------------------- */

/* `n` instructions that were made, for a tracepoint of which the kernel knows the types of its arguments (its id; else
 * 0). */
static struct kymo_error *load_program(struct kymo_kernel_calls *calls, int n, uint32_t tracepoint, int *ret)
{
	LIBBPF_OPTS(bpf_prog_load_opts, options, .attach_btf_id = tracepoint,
		    .expected_attach_type = tracepoint ? BPF_TRACE_RAW_TP : 0);

	if (n < 0)
		return kymo_error_errno(n, "cannot make a BPF program for system calls");
	*ret = bpf_prog_load(tracepoint ? BPF_PROG_TYPE_TRACING : BPF_PROG_TYPE_RAW_TRACEPOINT, "kymo_syscalls",
			     KERNEL_LICENSE, calls->insns, (size_t)n, &options);
	return *ret < 0 ? kernel_refused(errno, "load BPF programs") : NULL;
}

static const struct loaded *find_loaded(const struct kymo_kernel_calls *calls, const struct loaded *wanted)
{
	for (size_t i = 0; i < calls->loaded.n; i++) {
		const struct loaded *item = &calls->loaded.items[i];

		if (item->what == wanted->what && item->n == wanted->n &&
		    !memcmp(item->copies, wanted->copies, sizeof(item->copies)))
			return item;
	}
	return NULL;
}

/* The program that makes these copies into the array `map`. */
static struct kymo_error *put_program(struct kymo_kernel_calls *calls, struct loaded *wanted, int map, uint32_t at)
{
	const struct loaded *found = find_loaded(calls, wanted);
	struct kymo_error *error;

	if (!found) {
		error = load_program(
			calls, kernel_call_make(&calls->program, wanted->what, wanted->copies, wanted->n, calls->insns),
			wanted->what == KERNEL_CALL_ENTER ? calls->sys_enter : calls->sys_exit, &wanted->fd);
		if (error)
			return error;
		if (!kymo_vec_push(&calls->loaded, *wanted)) {
			close(wanted->fd);
			return &kymo_error_no_memory;
		}
		found = &calls->loaded.items[calls->loaded.n - 1];
	}
	return bpf_map_update_elem(map, &at, &found->fd, BPF_ANY) ? kernel_refused(errno, "fill BPF maps") : NULL;
}

static void set_bit(struct kymo_kernel_calls *calls, unsigned int bit)
{
	calls->plain[bit / 64] |= 1ull << bit % 64;
}

/* Without copies it is plain, as bit `plain` says then; there is none for the last number. */
static struct kymo_error *put_call(struct kymo_kernel_calls *calls, struct loaded *wanted, int map, unsigned int number,
				   unsigned int plain)
{
	if (wanted->n || number == KERNEL_CALL_NUMBERS - 1)
		return put_program(calls, wanted, map, number);
	set_bit(calls, plain);
	return NULL;
}

static struct kymo_error *put_programs(struct kymo_kernel_calls *calls, unsigned int number)
{
	const struct kymo_kernel_calls_options *o = &calls->options;
	struct loaded enter = { .what = KERNEL_CALL_ENTER }, leave = { .what = KERNEL_CALL_LEAVE };
	struct kymo_error *error;

	enter.n = o->copies(o->context, number, false, enter.copies);
	leave.n = o->copies(o->context, number, true, leave.copies);
	error = put_call(calls, &enter, calls->entries_fd, number, number);
	if (!error)
		error = put_call(calls, &leave, calls->exits_fd, number, number + KERNEL_CALL_PLAIN_EXIT);
	if (error || !enter.n || o->replaces_memory(o->context, number))
		return error;
	memcpy(leave.copies + leave.n, enter.copies, enter.n * sizeof(*enter.copies));
	leave.n += enter.n;
	return put_program(calls, &leave, calls->exits_fd, KERNEL_CALL_NUMBERS + number);
}

static void set_bits_of_i386(struct kymo_kernel_calls *calls)
{
	const struct kymo_kernel_calls_options *o = &calls->options;

	for (unsigned int i = 0; i < KYMO_KERNEL_CALLS_MAX; i++) {
		if (!o->wants_i386(o->context, i))
			continue;
		set_bit(calls, i + KERNEL_CALL_PLAIN_I386);
		set_bit(calls, i + KERNEL_CALL_PLAIN_I386 + KERNEL_CALL_PLAIN_EXIT);
	}
}

static bool wants_signal_returns(const struct kymo_kernel_calls_options *o)
{
	enum { I386_SIGRETURN = 119, I386_RT_SIGRETURN = 173 };

	return o->wants(o->context, SYS_rt_sigreturn) || o->wants_i386(o->context, I386_RT_SIGRETURN) ||
	       o->wants_i386(o->context, I386_SIGRETURN);
}

/* rt_sigreturn has no number any more when it returns. Exits without one are not seen unless they are wanted: they
 * would fill the ring, and be counted where that is full. */
static struct kymo_error *put_all_programs(struct kymo_kernel_calls *calls)
{
	const struct kymo_kernel_calls_options *o = &calls->options;
	struct loaded plain = { .what = KERNEL_CALL_LEAVE };
	struct kymo_error *error = NULL;

	if (wants_signal_returns(o))
		error = put_program(calls, &plain, calls->exits_fd, KERNEL_CALL_NUMBERS - 1);
	for (unsigned int i = 0; i < KERNEL_CALL_NUMBERS && !error; i++)
		if (o->wants(o->context, i))
			error = put_programs(calls, i);
	set_bits_of_i386(calls);
	if (!error && bpf_map_update_elem(calls->plain_fd, &(uint32_t){ 0 }, calls->plain, BPF_ANY))
		error = kernel_refused(errno, "fill BPF maps");
	return error;
}

static struct kymo_error *attach_tracepoint(struct kymo_kernel_calls *calls, const char *tracepoint, uint32_t id, int n)
{
	kymo_cleanup_close int program = -1;
	struct kymo_error *error = load_program(calls, n, id, &program);
	int fd;

	if (error)
		return error;
	fd = bpf_raw_tracepoint_open(id ? NULL : tracepoint, program);
	if (fd < 0)
		return kernel_refused(errno, "run BPF programs at tracepoints");
	if (kymo_vec_push(&calls->base.fds, fd))
		return NULL;
	close(fd);
	return &kymo_error_no_memory;
}

static uint32_t id_of_tracepoint(const struct btf *btf, const char *name)
{
	const int id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);

	return id > 0 ? (uint32_t)id : 0;
}

static bool look_at_task_struct(const struct btf *btf, struct kernel_call_task *ret)
{
	uint32_t info, status;

	if (kernel_offset_of(btf, "task_struct", "pid", &ret->pid) ||
	    kernel_offset_of(btf, "task_struct", "tgid", &ret->tgid) ||
	    kernel_offset_of(btf, "task_struct", "thread_info", &info) ||
	    kernel_offset_of(btf, "thread_info", "status", &status))
		return false;
	ret->mode = info + status;
	return true;
}

/* What is to be known of this kernel. */
static struct kymo_error *look_at_kernel(struct kymo_kernel_calls *calls)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool is_known = btf && !kernel_offset_of(btf, "task_struct", "exit_code", &calls->status_at) &&
			look_at_task_struct(btf, &calls->task);

	if (is_known) {
		calls->sys_enter = id_of_tracepoint(btf, "btf_trace_sys_enter");
		calls->sys_exit = id_of_tracepoint(btf, "btf_trace_sys_exit");
		is_known = calls->sys_enter && calls->sys_exit;
	}
	btf__free(btf);
	if (!is_known)
		return kymo_error_create(
			KYMO_ERROR_NOT_FOUND,
			"this kernel does not describe its structures (/sys/kernel/btf/vmlinux), so system calls "
			"cannot be seen through it; leave --backend kernel and --all out");
	return NULL;
}

static struct kymo_error *attach_all(struct kymo_kernel_calls *calls)
{
	/* In front of the program that takes a process out of the table with its last thread: this one asks the table.
	 */
	struct kymo_error *error = attach_tracepoint(
		calls, "sched_process_exit", 0, kernel_call_end_make(&calls->program, calls->status_at, calls->insns));

	if (!error && calls->options.follow)
		error = kernel_follow(&calls->base);
	if (!error && calls->options.signals)
		error = attach_tracepoint(calls, "signal_deliver", 0,
					  kernel_call_signal_make(&calls->program, calls->insns));
	if (!error)
		error = attach_tracepoint(calls, "sys_exit", calls->sys_exit,
					  kernel_call_pick(&calls->program, calls->exits_fd, true, calls->insns));
	if (!error)
		error = attach_tracepoint(calls, "sys_enter", calls->sys_enter,
					  kernel_call_pick(&calls->program, calls->entries_fd, false, calls->insns));
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

/* ---- begin and end --------------------------------------------------------------------------- */

static struct kymo_error *create_maps(struct kymo_kernel_calls *calls)
{
	struct kymo_error *error =
		call_ring_init(&calls->ring, calls->options.buffer_size, calls->n_cpus, calls->options.overwrite);

	if (error)
		return error;
	calls->scratch_fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "kymo_scratch", 4, KERNEL_CALL_SCRATCH, calls->n_cpus, NULL);
	calls->again_fd = bpf_map_create(BPF_MAP_TYPE_HASH, "kymo_again", 4, 4, THREADS_MAX, NULL);
	calls->plain_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "kymo_plain", 4, sizeof(calls->plain), 1, NULL);
	calls->entries_fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "kymo_entries", 4, 4, KERNEL_CALL_NUMBERS, NULL);
	calls->exits_fd = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "kymo_exits", 4, 4, 2 * KERNEL_CALL_NUMBERS, NULL);
	if (calls->scratch_fd < 0 || calls->again_fd < 0 || calls->plain_fd < 0 || calls->entries_fd < 0 ||
	    calls->exits_fd < 0)
		return kernel_refused(errno, "make BPF maps");
	return NULL;
}

static struct kymo_error *set_up_calls(struct kymo_kernel_calls *calls)
{
	int n_cpus = libbpf_num_possible_cpus();
	struct kymo_error *error;

	if (n_cpus <= 0)
		return kymo_error_create(KYMO_ERROR_FAILED, "cannot tell how many CPUs there are");
	calls->n_cpus = (uint32_t)n_cpus;
	calls->insns = calloc(KERNEL_CALL_PROGRAM_MAX, sizeof(*calls->insns));
	if (calls->options.overwrite)
		calls->copy = malloc(CALL_RING_RECORD_MAX);
	if (!calls->insns || (calls->options.overwrite && !calls->copy))
		return &kymo_error_no_memory;
	error = kernel_choose_namespace(&calls->base);
	if (!error && calls->options.pid)
		error = kernel_create_processes(&calls->base);
	if (!error)
		error = create_maps(calls);
	if (error)
		return error;
	calls->program = (struct kernel_call_program){
		.ring = calls->ring.shape,
		.scratch = calls->scratch_fd,
		.again = calls->again_fd,
		.plain = calls->plain_fd,
		.processes = calls->base.processes_fd,
		.thread = calls->options.thread,
		.has_times = calls->options.has_times,
		.ids = calls->base.ids,
		.names = calls->options.names,
		.layout = calls->options.layout,
	};
	error = look_at_kernel(calls);
	calls->program.task = calls->task;
	if (!error)
		error = put_all_programs(calls);
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
	calls->ring.shape.fd = calls->scratch_fd = calls->again_fd = calls->plain_fd = calls->entries_fd =
		calls->exits_fd = -1;
	error = set_up_calls(calls);
	if (error)
		kymo_kernel_calls_destroy(calls);
	else
		*ret = calls;
	return error;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

void kymo_kernel_calls_destroy(struct kymo_kernel_calls *calls)
{
	if (!calls)
		return;
	kernel_deinit(&calls->base);
	call_ring_deinit(&calls->ring);
	for (size_t i = 0; i < calls->loaded.n; i++)
		close(calls->loaded.items[i].fd);
	kymo_vec_deinit(&calls->loaded);
	close_if_open(calls->scratch_fd);
	close_if_open(calls->again_fd);
	close_if_open(calls->plain_fd);
	close_if_open(calls->entries_fd);
	close_if_open(calls->exits_fd);
	free(calls->insns);
	free(calls->copy);
	free(calls);
}
