/*
 * A sample becomes a record as wire/event.h has it: of an entry the arguments, the stack pointer and what was copied; of an exit the result, the call's number and the same.
 *
 * A thread is in one call at a time, so an exit is recorded only where the entry of the same call was: what was begun before anybody looked, a child that comes back from its
 * parent's fork, and what the set does not have (an exit without a number) are none of the trace's. Where entries were lost their exits are left out, too: the loss is told.
 */
#include "record/kernel_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "arch/uprobe.h"
#include "base/cleanup.h"
#include "kernel/calls.h"
#include "record/ktime.h"
#include "syscall/syscall.h"

enum { N_ARGS = 6 };

struct recording_calls {
	struct recording_calls_options options;
	struct kymo_kernel_calls *calls;
	struct kernel_threads *own_threads;
	struct kernel_stream **streams;	/* by CPU; NULL: nothing has come from it */
	uint64_t *lost_of;		/* likewise: what was lost, as far as it is told */
	size_t n_streams;
	uint32_t ids[KYMO_SYSCALL_MAX], exit_id;
	struct ktime ktime;
	uint64_t lost;			/* told */
	bool has_begun;			/* the command has executed its program */
	char own_name[16];		/* of this thread */
	uint8_t *record;
	struct output *output;		/* of the drain that goes on */
};

/* ---- what is wanted ------------------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct recording_calls *source, uint64_t number)
{
	return number < KYMO_SYSCALL_MAX && source->options.wanted[number / 64] >> number % 64 & 1;
}

static bool wants(void *context, unsigned int number)
{
	return is_wanted(context, number);
}

static size_t copies(void *context, unsigned int number, bool is_leaving, struct kymo_copy *ret)
{
	return kymo_syscall_copies(number, is_leaving, KYMO_SYSCALL_STRING_SIZE, ret);
}

static bool replaces_memory(void *context, unsigned int number)
{
	return kymo_syscall_replaces_memory(number);
}

static void take_events(struct recording_calls *source)
{
	size_t n;
	const struct kymo_probe_event *events = kymo_events_items(source->options.events, &n);

	for (size_t i = 0; i < n; i++) {
		const struct kymo_probe_event *event = &events[i];

		if (event->kind == KYMO_EVENT_SYSRET)
			source->exit_id = event->id;
		else if (event->kind == KYMO_EVENT_SYSCALL && is_wanted(source, event->offset))
			source->ids[event->offset] = event->id;
		else
			continue;
		kymo_events_use(source->options.events, i);
	}
}

/* ---- begin and end -------------------------------------------------------------------------------------------------------- */

static void add_sample(struct recording_calls *source)
{
	const struct clock_sample sample = clock_sample();

	ktime_add(&source->ktime, &sample);
}

/* One ring is for all CPUs. */
static uint64_t ring_size(const struct recording_calls_options *options)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	return options->buffer_size * (uint64_t)(n > 0 ? n : 1);
}

static struct kymo_error *set_up(struct recording_calls *source)
{
	const struct recording_calls_options *o = &source->options;
	const struct kymo_kernel_calls_options options = {
		.pid = o->pid,
		.follow = o->pid && o->follow,
		.names = true,
		.has_times = true,
		.buffer_size = ring_size(o),
		.layout = &kymo_call_layout,
		.context = source,
		.wants = wants,
		.copies = copies,
		.replaces_memory = replaces_memory,
	};
	struct kymo_error *error = NULL;

	source->record = malloc(KYMO_CTF_MAX_RECORD_OF_BYTES);
	if (!source->record)
		return &kymo_error_no_memory;
	if (!o->threads)
		error = kernel_threads_create(&source->own_threads);
	if (error)
		return error;
	if (!o->threads)
		source->options.threads = source->own_threads;
	take_events(source);
	return kymo_kernel_calls_create(&options, &source->calls);
}

struct kymo_error *recording_calls_open(const struct recording_calls_options *options, struct recording_calls **ret)
{
	struct recording_calls *source = calloc(1, sizeof(*source));
	struct kymo_error *error;

	if (!source)
		return &kymo_error_no_memory;
	source->options = *options;
	source->has_begun = !options->is_command;
	prctl(PR_GET_NAME, source->own_name);
	add_sample(source);
	error = set_up(source);
	if (error)
		recording_calls_destroy(source);
	else
		*ret = source;
	return error;
}

void recording_calls_destroy(struct recording_calls *source)
{
	if (!source)
		return;
	kymo_kernel_calls_destroy(source->calls);
	kernel_threads_destroy(source->own_threads);
	for (size_t i = 0; i < source->n_streams; i++)
		kernel_stream_destroy(source->streams[i]);
	free(source->streams);
	free(source->lost_of);
	free(source->record);
	free(source);
}

/* ---- records out ---------------------------------------------------------------------------------------------------------- */

static struct kymo_error *grow_streams(struct recording_calls *source, size_t n)
{
	struct kernel_stream **streams = reallocarray(source->streams, n, sizeof(struct kernel_stream *));
	uint64_t *lost_of;

	if (!streams)
		return &kymo_error_no_memory;
	source->streams = streams;
	lost_of = reallocarray(source->lost_of, n, sizeof(*lost_of));
	if (!lost_of)
		return &kymo_error_no_memory;
	source->lost_of = lost_of;
	for (; source->n_streams < n; source->n_streams++) {
		streams[source->n_streams] = NULL;
		lost_of[source->n_streams] = 0;
	}
	return NULL;
}

static struct kymo_error *stream_of(struct recording_calls *source, uint32_t cpu, struct kernel_stream **ret)
{
	const uint64_t keep = source->options.overwrite ? source->options.buffer_size : 0;
	struct kymo_error *error = cpu < source->n_streams ? NULL : grow_streams(source, (size_t)cpu + 1);

	if (!error && !source->streams[cpu])
		error = kernel_stream_create("calls", cpu, cpu, keep, &source->streams[cpu]);
	if (!error)
		*ret = source->streams[cpu];
	return error;
}

static void put(uint8_t *record, size_t *at, const void *bytes, size_t size)
{
	if (size)
		memcpy(record + *at, bytes, size);
	*at += size;
}

/* Its size. The time is added by the stream. */
static size_t make_record(struct recording_calls *source, const struct kymo_kernel_call *call, int32_t tid)
{
	const bool is_entry = call->event == KYMO_KERNEL_CALL_ENTERED;
	const uint64_t header = is_entry ? source->ids[call->number] : source->exit_id;
	const uint16_t length = call->copies.size <= UINT16_MAX ? (uint16_t)call->copies.size : 0;
	const uint8_t faults = call->is_incomplete || length != call->copies.size ? 1u << (is_entry ? N_ARGS + 1 : 2) : 0;
	size_t at = 0;

	put(source->record, &at, &header, sizeof(header));
	put(source->record, &at, &tid, sizeof(tid));
	put(source->record, &at, &faults, sizeof(faults));
	if (is_entry) {
		put(source->record, &at, call->args, sizeof(call->args));
		put(source->record, &at, &call->stack_pointer, sizeof(call->stack_pointer));
	} else {
		put(source->record, &at, &call->result, sizeof(call->result));
		put(source->record, &at, &call->number, sizeof(call->number));
	}
	put(source->record, &at, &length, sizeof(length));
	put(source->record, &at, call->copies.bytes, length);
	return at;
}

static struct kymo_error *write_record(struct recording_calls *source, const struct kymo_kernel_call *call, int32_t tid, uint64_t tsc)
{
	const size_t size = make_record(source, call, tid);
	struct kernel_stream *stream;
	struct kymo_error *error = stream_of(source, call->cpu, &stream);

	if (error)
		return error;
	if (call->lost > source->lost) {	/* by whatever CPU: it is told here */
		source->lost_of[call->cpu] += call->lost - source->lost;
		source->lost = call->lost;
	}
	return kernel_stream_add(stream, source->output, source->record, size, tsc, source->lost_of[call->cpu]);
}

/* Before it executes its program, a command is called as this one is; whether it does may not be in the set. */
static struct kymo_error *see_thread(struct recording_calls *source, const struct kymo_kernel_call *call, uint64_t tsc)
{
	source->has_begun |= call->tid == source->options.pid && strcmp(call->name, source->own_name) != 0;
	if (!source->has_begun && call->tid == source->options.pid)
		return NULL;
	return kernel_threads_see(source->options.threads, &source->output->trace, call->tid, call->pid, call->name, tsc);
}

static struct kymo_error *enter(struct recording_calls *source, const struct kymo_kernel_call *call, uint64_t tsc)
{
	struct kymo_error *error;

	if (!is_wanted(source, call->number))
		return NULL;
	error = see_thread(source, call, tsc);
	if (!error)
		error = kernel_threads_enter(source->options.threads, call->tid, call->pid, call->number);
	return error ? error : write_record(source, call, call->tid, tsc);
}

/* What the thread is called now it was called behind the call only, and so was what the process is: both begin behind the record. */
static struct kymo_error *leave(struct recording_calls *source, const struct kymo_kernel_call *call, uint64_t tsc)
{
	const bool has_executed = !call->result && kymo_syscall_replaces_memory(call->number);
	struct kymo_error *error;
	int32_t tid = call->tid;

	if (!kernel_threads_leave(source->options.threads, &tid, call->pid, call->number, has_executed))
		return NULL;
	source->has_begun |= has_executed && call->tid == source->options.pid;
	error = write_record(source, call, tid, tsc);
	return error ? error : see_thread(source, call, tsc + 1);
}

static struct kymo_error *on_call(const struct kymo_kernel_call *call, void *data)
{
	struct recording_calls *source = data;
	uint64_t tsc;

	while (source->ktime.n < 2 || !ktime_reaches(&source->ktime, call->ns))
		add_sample(source);
	tsc = ktime_tsc(&source->ktime, call->ns);
	switch (call->event) {
	case KYMO_KERNEL_CALL_ENTERED:
		return enter(source, call, tsc);
	case KYMO_KERNEL_CALL_LEFT:
		return leave(source, call, tsc);
	case KYMO_KERNEL_CALL_ENDED:
		kernel_threads_end(source->options.threads, call->tid, tsc);
		return NULL;
	default:
		return NULL;
	}
}

static struct kymo_error *drain(struct recording_calls *source, struct output *output, bool *is_empty_ret)
{
	source->output = output;
	add_sample(source);
	return kymo_kernel_calls_drain(source->calls, on_call, source, is_empty_ret);
}

struct kymo_error *recording_calls_drain(struct recording_calls *source, struct output *output, bool *is_empty_ret)
{
	return drain(source, output, is_empty_ret);
}

struct kymo_error *recording_calls_flush(struct recording_calls *source, struct output *output)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < source->n_streams && !error && !source->options.overwrite; i++)
		if (source->streams[i])
			error = kernel_stream_flush(source->streams[i], output);
	return error;
}

/* Losses behind the last sample belong to no CPU that is known: the first one tells them. */
static struct kymo_error *tell_last_losses(struct recording_calls *source)
{
	const uint64_t lost = kymo_kernel_calls_lost(source->calls);
	struct kernel_stream *stream;
	struct kymo_error *error;

	if (lost <= source->lost)
		return NULL;
	error = stream_of(source, 0, &stream);
	if (error)
		return error;
	source->lost_of[0] += lost - source->lost;
	source->lost = lost;
	return NULL;
}

struct kymo_error *recording_calls_finish(struct recording_calls *source, struct output *output)
{
	struct kymo_error *error = NULL;
	bool is_empty = false;

	kymo_kernel_calls_detach(source->calls);
	while (!error && !is_empty)
		error = drain(source, output, &is_empty);
	if (!error)
		error = tell_last_losses(source);
	for (size_t i = 0; i < source->n_streams && !error; i++)
		if (source->streams[i])
			error = kernel_stream_finish(source->streams[i], output, clock_tsc(), source->lost_of[i]);
	return error;
}

uint64_t recording_calls_lost(const struct recording_calls *source)
{
	return kymo_kernel_calls_lost(source->calls);
}

bool recording_calls_has_processes(const struct recording_calls *source)
{
	return kymo_kernel_calls_has_processes(source->calls);
}
