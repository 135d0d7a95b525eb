/*
 * A call becomes a record as wire/event.h has it: of an entry the arguments, the stack pointer and what was copied; of
 * an exit the result, the call's number and the same.
 *
 * A thread is in one call at a time, so an exit is recorded only where the entry of the same call was: calls that began
 * before kymo attached, children that return from fork, and calls outside of the set (an exit without a number) are not
 * recorded. Where entries were lost their exits are left out, too: the loss is told.
 */
#include "strace/recorded/writer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "probe/code/events.h"
#include "syscall/call.h"
#include "syscall/names.h"
#include "trace/clock.h"
#include "trace/kernel_stream.h"
#include "trace/kernel_threads.h"

enum { N_ARGS = 6 };

struct strace_writer {
	struct kymo_call_source_options options;
	uint64_t keep;
	struct kymo_kernel_threads *own_threads;
	struct kymo_kernel_stream **streams; /* by CPU; NULL: nothing has come from it */
	uint64_t *lost_of;                   /* likewise: what was lost, as far as it is told */
	size_t n_streams;
	uint32_t ids[KYMO_SYSCALL_MAX], exit_id;
	uint64_t lost; /* told */
	bool has_told_i386;
	bool has_begun;    /* the command has executed its program */
	char own_name[16]; /* of this thread */
	uint8_t *record;
};

bool strace_writer_wants(const struct strace_writer *writer, uint64_t number)
{
	return number < KYMO_SYSCALL_MAX && writer->options.wanted[number / 64] >> number % 64 & 1;
}

bool strace_writer_knows(const struct strace_writer *writer, int32_t tid, int32_t pid)
{
	return kymo_kernel_threads_knows(writer->options.threads, tid, pid);
}

void strace_writer_tell_i386(struct strace_writer *writer)
{
	if (writer->has_told_i386)
		return;
	writer->has_told_i386 = true;
	if (writer->options.warn)
		writer->options.warn("32-bit calls are made: they are recorded under their names, without memory, "
				     "where there are 64-bit ones of that name",
				     writer->options.data);
}

static void take_events(struct strace_writer *writer)
{
	size_t n;
	const struct kymo_probe_event *events = kymo_events_items(writer->options.events, &n);

	for (size_t i = 0; i < n; i++) {
		const struct kymo_probe_event *event = &events[i];

		if (event->kind == KYMO_EVENT_SYSRET)
			writer->exit_id = event->id;
		else if (event->kind == KYMO_EVENT_SYSCALL && strace_writer_wants(writer, event->offset))
			writer->ids[event->offset] = event->id;
		else
			continue;
		kymo_events_use(writer->options.events, i);
	}
}

static struct kymo_error *set_up_writer(struct strace_writer *writer)
{
	struct kymo_error *error = NULL;

	writer->record = malloc(KYMO_CTF_MAX_RECORD_OF_BYTES);
	if (!writer->record)
		return &kymo_error_no_memory;
	if (!writer->options.threads)
		error = kymo_kernel_threads_create(&writer->own_threads);
	if (error)
		return error;
	if (!writer->options.threads)
		writer->options.threads = writer->own_threads;
	take_events(writer);
	return NULL;
}

uint64_t strace_writer_buffer(const struct kymo_call_source_options *options)
{
	const long n = sysconf(_SC_NPROCESSORS_ONLN);

	return options->buffer_size * (uint64_t)(n > 0 ? n : 1);
}

struct kymo_error *strace_writer_create(const struct kymo_call_source_options *options, uint64_t keep,
					struct strace_writer **ret)
{
	struct strace_writer *writer = calloc(1, sizeof(*writer));
	struct kymo_error *error;

	if (!writer)
		return &kymo_error_no_memory;
	writer->options = *options;
	writer->keep = keep;
	writer->has_begun = !options->is_command;
	prctl(PR_GET_NAME, writer->own_name);
	error = set_up_writer(writer);
	if (error)
		strace_writer_destroy(writer);
	else
		*ret = writer;
	return error;
}

void strace_writer_destroy(struct strace_writer *writer)
{
	if (!writer)
		return;
	kymo_kernel_threads_destroy(writer->own_threads);
	for (size_t i = 0; i < writer->n_streams; i++)
		kymo_kernel_stream_destroy(writer->streams[i]);
	free(writer->streams);
	free(writer->lost_of);
	free(writer->record);
	free(writer);
}

/* ---- streams --------------------------------------------------------------------------------- */

static struct kymo_error *grow_streams(struct strace_writer *writer, size_t n)
{
	struct kymo_kernel_stream **streams = reallocarray(writer->streams, n, sizeof(struct kymo_kernel_stream *));
	uint64_t *lost_of;

	if (!streams)
		return &kymo_error_no_memory;
	writer->streams = streams;
	lost_of = reallocarray(writer->lost_of, n, sizeof(*lost_of));
	if (!lost_of)
		return &kymo_error_no_memory;
	writer->lost_of = lost_of;
	for (; writer->n_streams < n; writer->n_streams++) {
		streams[writer->n_streams] = NULL;
		lost_of[writer->n_streams] = 0;
	}
	return NULL;
}

static struct kymo_error *stream_of(struct strace_writer *writer, uint32_t cpu, struct kymo_kernel_stream **ret)
{
	const uint64_t keep = writer->options.overwrite ? writer->keep : 0;
	struct kymo_error *error = cpu < writer->n_streams ? NULL : grow_streams(writer, (size_t)cpu + 1);

	if (!error && !writer->streams[cpu])
		error = kymo_kernel_stream_create("calls", cpu, cpu, keep, writer->options.pool, &writer->streams[cpu]);
	if (!error)
		*ret = writer->streams[cpu];
	return error;
}

/* ---- records --------------------------------------------------------------------------------- */

static void put_bytes(uint8_t *record, size_t *at, const void *bytes, size_t size)
{
	if (size)
		memcpy(record + *at, bytes, size);
	*at += size;
}

/* Its size. The time is added by the stream. */
static size_t make_record(struct strace_writer *writer, const struct kymo_kernel_call *call, int32_t tid)
{
	const bool is_entry = call->event == KYMO_KERNEL_CALL_ENTERED;
	const uint64_t header = is_entry ? writer->ids[call->number] : writer->exit_id;
	const uint16_t length = call->copies.size <= UINT16_MAX ? (uint16_t)call->copies.size : 0;
	const uint8_t faults =
		call->is_incomplete || length != call->copies.size ? 1u << (is_entry ? N_ARGS + 1 : 2) : 0;
	size_t at = 0;

	put_bytes(writer->record, &at, &header, sizeof(header));
	put_bytes(writer->record, &at, &tid, sizeof(tid));
	put_bytes(writer->record, &at, &faults, sizeof(faults));
	if (is_entry) {
		put_bytes(writer->record, &at, call->args, sizeof(call->args));
		put_bytes(writer->record, &at, &call->stack_pointer, sizeof(call->stack_pointer));
	} else {
		put_bytes(writer->record, &at, &call->result, sizeof(call->result));
		put_bytes(writer->record, &at, &call->number, sizeof(call->number));
	}
	put_bytes(writer->record, &at, &length, sizeof(length));
	put_bytes(writer->record, &at, call->copies.bytes, length);
	return at;
}

static struct kymo_error *write_record(struct strace_writer *writer, struct kymo_trace *output,
				       const struct kymo_kernel_call *call, int32_t tid, uint64_t tsc)
{
	const size_t size = make_record(writer, call, tid);
	struct kymo_kernel_stream *stream;
	struct kymo_error *error = stream_of(writer, call->cpu, &stream);

	if (error)
		return error;
	if (call->lost > writer->lost) { /* by whatever CPU: it is told here */
		writer->lost_of[call->cpu] += call->lost - writer->lost;
		writer->lost = call->lost;
	}
	return kymo_kernel_stream_add(stream, output, writer->record, size, tsc, writer->lost_of[call->cpu]);
}

/* Before it executes its program, a command is called as this one is; whether it does may not be in the set. */
static struct kymo_error *see_thread(struct strace_writer *writer, struct kymo_trace *output,
				     const struct kymo_kernel_call *call, uint64_t tsc)
{
	if (!call->name)
		return NULL;
	writer->has_begun |= call->tid == writer->options.pid && strcmp(call->name, writer->own_name) != 0;
	if (!writer->has_begun && call->tid == writer->options.pid)
		return NULL;
	return kymo_kernel_threads_see(writer->options.threads, &output->trace, call->tid, call->pid, call->name, tsc);
}

static struct kymo_error *write_enter(struct strace_writer *writer, struct kymo_trace *output,
				      const struct kymo_kernel_call *call, uint64_t tsc)
{
	struct kymo_error *error;

	if (!strace_writer_wants(writer, call->number))
		return NULL;
	error = see_thread(writer, output, call, tsc);
	if (!error)
		error = kymo_kernel_threads_enter(writer->options.threads, call->tid, call->pid, call->number);
	return error ? error : write_record(writer, output, call, call->tid, tsc);
}

/* The thread and the process have got their present names after the call: both begin after the record. */
static struct kymo_error *write_leave(struct strace_writer *writer, struct kymo_trace *output,
				      const struct kymo_kernel_call *call, uint64_t tsc)
{
	const bool has_executed = !call->result && kymo_syscall_replaces_memory(call->number);
	struct kymo_error *error;
	int32_t tid = call->tid;

	if (!kymo_kernel_threads_leave(writer->options.threads, &tid, call->pid, call->number, has_executed))
		return NULL;
	writer->has_begun |= has_executed && call->tid == writer->options.pid;
	error = write_record(writer, output, call, tid, tsc);
	return error ? error : see_thread(writer, output, call, tsc + 1);
}

/* Of which CPUs they were is not known; that they were before this record, at `tsc`, is. */
static struct kymo_error *tell_gap(struct strace_writer *writer, struct kymo_trace *output, uint64_t tsc)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < writer->n_streams && !error; i++)
		if (writer->streams[i])
			error = kymo_kernel_stream_skip(writer->streams[i], output, tsc);
	return error;
}

static struct kymo_error *add_call(struct strace_writer *writer, struct kymo_trace *output,
				   const struct kymo_kernel_call *call, uint64_t tsc)
{
	switch (call->event) {
	case KYMO_KERNEL_CALL_ENTERED:
		return write_enter(writer, output, call, tsc);
	case KYMO_KERNEL_CALL_LEFT:
		return write_leave(writer, output, call, tsc);
	case KYMO_KERNEL_CALL_ENDED:
		kymo_kernel_threads_end(writer->options.threads, call->tid, tsc);
		return NULL;
	default:
		return NULL;
	}
}

struct kymo_error *strace_writer_add(struct strace_writer *writer, struct kymo_trace *output,
				     const struct kymo_kernel_call *call, uint64_t tsc)
{
	struct kymo_error *error = call->has_gap ? tell_gap(writer, output, tsc) : NULL;

	return error ? error : add_call(writer, output, call, tsc);
}

struct kymo_error *strace_writer_rename(struct strace_writer *writer, struct kymo_trace *output,
					const struct kymo_kernel_call *call, uint64_t tsc)
{
	return see_thread(writer, output, call, tsc);
}

struct kymo_error *strace_writer_flush(struct strace_writer *writer, struct kymo_trace *output)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < writer->n_streams && !error && !writer->options.overwrite; i++)
		if (writer->streams[i])
			error = kymo_kernel_stream_flush(writer->streams[i], output);
	return error;
}

struct kymo_error *strace_writer_copy(struct strace_writer *writer, struct kymo_trace *output, struct kymo_trace *copy)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < writer->n_streams && !error; i++)
		if (writer->streams[i])
			error = kymo_kernel_stream_copy(writer->streams[i], output, copy);
	return error;
}

/* Losses after the last sample belong to no CPU that is known: the first one tells them. */
static struct kymo_error *tell_last_losses(struct strace_writer *writer, uint64_t lost)
{
	struct kymo_kernel_stream *stream;
	struct kymo_error *error;

	if (lost <= writer->lost)
		return NULL;
	error = stream_of(writer, 0, &stream);
	if (error)
		return error;
	writer->lost_of[0] += lost - writer->lost;
	writer->lost = lost;
	return NULL;
}

struct kymo_error *strace_writer_finish(struct strace_writer *writer, struct kymo_trace *output, uint64_t lost)
{
	struct kymo_error *error = tell_last_losses(writer, lost);

	for (size_t i = 0; i < writer->n_streams && !error; i++)
		if (writer->streams[i])
			error = kymo_kernel_stream_finish(writer->streams[i], output, kymo_clock_tsc(),
							  writer->lost_of[i]);
	return error;
}
