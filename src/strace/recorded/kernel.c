/*
 * Samples are stamped by the kernel's clock, and taken out of one ring for all CPUs in the order in which they were put
 * in.
 */
#include "strace/recorded/kernel.h"

#include <stdlib.h>
#include <unistd.h>

#include "arch/uprobe.h"
#include "kernel/calls.h"
#include "strace/recorded/writer.h"
#include "syscall/call.h"
#include "syscall/copies.h"
#include "syscall/names.h"
#include "trace/ktime.h"

#define CHECK_BUFFER (UINT64_C(64) << 10)
#define OVERWRITE_RING (UINT64_C(4) << 20)

struct kernel_source {
	struct kymo_call_source base; /* the first member */
	struct kymo_call_source_options options;
	struct kymo_kernel_calls *calls;
	struct strace_writer *writer;
	struct kymo_ktime ktime;
	struct kymo_trace *output; /* of the drain that goes on */
};

/* ---- what is wanted -------------------------------------------------------------------------- */

static bool recorded_wants(void *context, unsigned int number)
{
	const struct kernel_source *source = context;

	return strace_writer_wants(source->writer, number);
}

static bool recorded_wants_i386(void *context, unsigned int number)
{
	const struct kernel_source *source = context;

	return strace_writer_wants(source->writer, kymo_syscall_from_i386(number));
}

static size_t recorded_copies(void *context, unsigned int number, bool is_leaving, struct kymo_copy *ret)
{
	const struct kernel_source *source = context;

	return kymo_syscall_copies(number, is_leaving, source->options.string_size, ret);
}

static bool recorded_replaces_memory(void *context, unsigned int number)
{
	return kymo_syscall_replaces_memory(number);
}

/* ---- begin and end --------------------------------------------------------------------------- */

static void add_sample(struct kernel_source *source)
{
	const struct kymo_clock_sample sample = kymo_clock_sample();

	kymo_ktime_add(&source->ktime, &sample);
}

/*
 * What a flight recorder keeps it keeps by CPU, and the ring is one for all: where the recorder comes late, a busy CPU
 * overwrites what another one has to keep. So the ring has room for half a second of a busy system, in which the
 * recorder comes, however little is kept.
 */
static uint64_t ring_size(const struct kymo_call_source_options *o)
{
	const uint64_t size = strace_writer_buffer(o);

	return o->overwrite && size < OVERWRITE_RING ? OVERWRITE_RING : size;
}

static struct kymo_error *set_up_kernel(struct kernel_source *source)
{
	const struct kymo_call_source_options *o = &source->options;
	const struct kymo_kernel_calls_options options = {
		.pid = o->pid,
		.follow = o->pid && o->follow,
		.names = true,
		.has_times = true,
		.buffer_size = ring_size(o), /* one ring is for all CPUs */
		.overwrite = o->overwrite,
		.layout = &kymo_call_layout,
		.context = source,
		.wants = recorded_wants,
		.wants_i386 = recorded_wants_i386,
		.copies = recorded_copies,
		.replaces_memory = recorded_replaces_memory,
	};
	struct kymo_error *error = strace_writer_create(o, o->buffer_size, &source->writer);

	return error ? error : kymo_kernel_calls_create(&options, &source->calls);
}

static void destroy_calls(struct kymo_call_source *calls)
{
	struct kernel_source *source = (struct kernel_source *)calls;

	kymo_kernel_calls_destroy(source->calls);
	strace_writer_destroy(source->writer);
	free(source);
}

static bool wants_none(void *context, unsigned int number)
{
	return false;
}

struct kymo_error *kymo_call_source_check_kernel(void)
{
	const struct kymo_kernel_calls_options options = {
		.pid = getpid(),
		.follow = true,
		.names = true,
		.has_times = true,
		.buffer_size = CHECK_BUFFER,
		.layout = &kymo_call_layout,
		.wants = wants_none,
		.wants_i386 = wants_none,
	};
	struct kymo_kernel_calls *calls = NULL;
	struct kymo_error *error = kymo_kernel_calls_create(&options, &calls);

	kymo_kernel_calls_destroy(calls);
	return error;
}

/* ---- records out ----------------------------------------------------------------------------- */

static struct kymo_error *on_call(const struct kymo_kernel_call *call, void *data)
{
	struct kernel_source *source = data;
	struct kymo_kernel_call renumbered;

	while (source->ktime.n < 2 || !kymo_ktime_reaches(&source->ktime, call->ns))
		add_sample(source);
	if (call->is_i386) {
		strace_writer_tell_i386(source->writer);
		renumbered = *call;
		renumbered.number = kymo_syscall_from_i386(call->number);
		call = &renumbered;
	}
	return strace_writer_add(source->writer, source->output, call, kymo_ktime_tsc(&source->ktime, call->ns));
}

static struct kymo_error *drain_rings(struct kymo_call_source *calls, struct kymo_trace *output, bool *is_empty_ret)
{
	struct kernel_source *source = (struct kernel_source *)calls;

	source->output = output;
	add_sample(source);
	return kymo_kernel_calls_drain(source->calls, on_call, source, is_empty_ret);
}

static struct kymo_error *flush_rings(struct kymo_call_source *calls, struct kymo_trace *output)
{
	return strace_writer_flush(((struct kernel_source *)calls)->writer, output);
}

static struct kymo_error *copy_kept(struct kymo_call_source *calls, struct kymo_trace *output, struct kymo_trace *copy)
{
	return strace_writer_copy(((struct kernel_source *)calls)->writer, output, copy);
}

static struct kymo_error *finish_calls(struct kymo_call_source *calls, struct kymo_trace *output)
{
	struct kernel_source *source = (struct kernel_source *)calls;
	struct kymo_error *error = NULL;
	bool is_empty = false;

	kymo_kernel_calls_detach(source->calls);
	while (!error && !is_empty)
		error = drain_rings(calls, output, &is_empty);
	return error ? error : strace_writer_finish(source->writer, output, kymo_kernel_calls_lost(source->calls));
}

static uint64_t lost(const struct kymo_call_source *calls)
{
	return kymo_kernel_calls_lost(((const struct kernel_source *)calls)->calls);
}

static bool has_processes(const struct kymo_call_source *calls)
{
	return kymo_kernel_calls_has_processes(((const struct kernel_source *)calls)->calls);
}

static const struct kymo_call_source_ops ops = {
	.drain = drain_rings,
	.flush = flush_rings,
	.copy = copy_kept,
	.finish = finish_calls,
	.lost = lost,
	.has_processes = has_processes,
	.destroy = destroy_calls,
};

struct kymo_error *kymo_call_source_open_kernel(const struct kymo_call_source_options *options,
						struct kymo_call_source **ret)
{
	struct kernel_source *source = calloc(1, sizeof(*source));
	struct kymo_error *error;

	if (!source)
		return &kymo_error_no_memory;
	source->base.ops = &ops;
	source->options = *options;
	add_sample(source);
	error = set_up_kernel(source);
	if (error)
		destroy_calls(&source->base);
	else
		*ret = &source->base;
	return error;
}
