/*
 * A recording in two halves: what the process refuses goes through the kernel, the rest does not
 * (docs/internals/kernel.md).
 *
 * Each spec goes one way as a whole. The kernel's half is put in first, with the process stopped: its sites are the
 * file's text, and what is planned afterwards keeps away from them.
 */
#include "record/mixed.h"

#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "kernel/kernel.h"
#include "probe/install/install.h"
#include "probe/resolve/syscalls.h"
#include "record/kernel.h"
#include "record/packets.h"
#include "probe/spec/spec_pair.h"
#include "proc/process.h"
#include "proc/stop.h"
#include "proc/thread.h"
#include "record/pool.h"
#include "record/recording.h"
#include "record/wanted.h"
#include "record/warnings.h"
#include "syscall/names.h"

/* The process's own, the kernel's, or system calls that are seen from outside. */
enum part { INPROC, KERNEL, CALLS };

static enum part part_of(const struct recording *recording, size_t i)
{
	if (recording->wanted.backend != KYMO_RECORD_INPROC && recording->wanted.options->specs[i].syscalls)
		return CALLS;
	return recording->wanted.reasons[i] ? KERNEL : INPROC;
}

/* Take the calls of one part after the first `at`; returns how many. */
static size_t take_part(struct recording *recording, enum part part, size_t at)
{
	size_t n = 0;

	for (size_t i = 0; i < recording->wanted.options->n_specs; i++)
		if (part_of(recording, i) == part)
			recording->wanted.specs[at + n++] = recording->wanted.options->specs[i];
	return n;
}

struct kymo_error *recording_divide(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	size_t n = options->n_specs, n_probes;

	if (!recording->wanted.specs) {
		recording->wanted.specs = calloc(n ? n : 1, sizeof(*recording->wanted.specs));
		recording->wanted.reasons = calloc(n ? n : 1, sizeof(*recording->wanted.reasons));
	}
	if (!recording->wanted.specs || !recording->wanted.reasons)
		return &kymo_error_no_memory;
	recording->wanted.n_inproc = take_part(recording, INPROC, 0);
	recording->wanted.n_kernel = take_part(recording, KERNEL, recording->wanted.n_inproc);
	n_probes = recording->wanted.n_inproc + recording->wanted.n_kernel;
	kymo_specs_pair(recording->wanted.specs, n_probes);
	recording->wanted.calls_spec =
		take_part(recording, CALLS, n_probes) ? &recording->wanted.specs[n_probes] : NULL;
	for (size_t i = 0; i < n; i++)
		if (recording->wanted.specs[i].syscalls)
			return kymo_events_add_syscalls(recording->run.events, &recording->wanted.specs[i],
							kymo_syscall_name, recording->wanted.calls_spec);
	return NULL;
}

static void warn(const char *sentence, void *data)
{
	recording_warn(data, "%s", sentence);
}

static void tell_many(size_t n, void *data)
{
	recording_warn(data,
		       "the kernel sets breakpoints at %zu locations, %s, before anything is recorded; "
		       "ask for fewer, or wait",
		       n, kymo_kernel_cost_of_sites());
}

struct kymo_error *recording_open_mix(struct recording *recording)
{
	struct kymo_error *error = recording->wanted.n_kernel ? recording_make_pool(recording) : NULL;
	const struct recording_kernel_options options = {
		.specs = recording->wanted.specs + recording->wanted.n_inproc,
		.n_specs = recording->wanted.n_kernel,
		.events = recording->run.events,
		.pid = recording->run.pid,
		.buffer_size = recording_outside_buffer(recording->wanted.options),
		.overwrite = recording_is_flight_recorder(recording->wanted.options),
		.pool = recording->run.pool,
		.is_shut = !recording->wanted.options->command,
		.warn = warn,
		.data = recording,
		.tell_many = tell_many,
		.recording = recording,
	};

	if (error || !recording->wanted.n_kernel)
		return error;
	return recording_kernel_open(&options, &recording->run.kernel);
}

/* Held, so that no other recording puts a jump where a breakpoint is about to be: the kernel would not look. */
static struct kymo_error *look_held(struct recording *recording, struct record_source *source)
{
	uint64_t begin = kymo_now_ns();
	struct kymo_error *error = kymo_probes_freeze(source->probes);

	if (error)
		return error;
	error = recording_kernel_look(recording->run.kernel, kymo_process_pid(source->process));
	kymo_process_resume(source->process);
	recording->result.stopped_ns += kymo_now_ns() - begin;
	return error;
}

struct kymo_error *recording_mix(struct recording *recording, struct record_source *source, bool *new_ret)
{
	pid_t pid = kymo_process_pid(source->process);
	struct kymo_error *error;
	bool has_new = false;
	size_t n;

	if (!recording->run.kernel)
		return NULL;
	error = recording_kernel_read(recording->run.kernel, pid, &has_new); /* while it runs: files are decoded */
	if (new_ret)
		*new_ret = !error && has_new;
	if (error || !has_new)
		return error;
	kymo_process_threads(source->process, &n);
	error = n ? recording_kernel_look(recording->run.kernel, pid) : look_held(recording, source);
	return error ? error : recording_kernel_tell_refused(recording->run.kernel);
}

struct kymo_error *recording_finish_mix(struct recording *recording)
{
	struct kymo_error *error;

	if (!recording->run.kernel)
		return NULL;
	error = recording_kernel_find(recording->run.kernel);
	return error ? error : recording_kernel_tell_refused(recording->run.kernel);
}

void recording_begin_together(void *data)
{
	struct recording *recording = data;

	if (recording->run.kernel)
		recording_kernel_let_in(recording->run.kernel);
}

/* Breakpoints are taken out one after the other, and jumps after them: what comes from either meanwhile is not
 * recorded. */
static struct kymo_error *end_stopped(struct recording *recording)
{
	struct kymo_error *error = NULL;

	recording_kernel_shut(recording->run.kernel);
	for (size_t i = 0; i < recording->run.sources.n && !error; i++)
		error = source_finish_rings(recording, recording->run.sources.items[i]);
	return error;
}

struct kymo_error *recording_end_together(struct recording *recording)
{
	struct record_source *source = recording->run.sources.items[0];
	uint64_t begin;
	struct kymo_error *error = NULL;
	size_t n;

	if (!recording->wanted.options->overwrite)
		error = recording_drain(recording, &n); /* while it runs */
	if (error)
		return error;
	begin = kymo_now_ns();
	error = kymo_probes_freeze(source->probes);
	if (error) { /* it has ended, or is traced: then each half ends when it is out */
		kymo_error_destroy(error);
		return NULL;
	}
	error = end_stopped(recording);
	kymo_process_resume(source->process);
	recording->result.stopped_ns += kymo_now_ns() - begin;
	return error;
}

static void tell_reason(struct recording *recording, const char *reason)
{
	if (recording->wanted.backend == KYMO_RECORD_PTRACE)
		recording_warn(recording,
			       "%s; its system calls are recorded by tracing it instead, which stops it twice for each",
			       reason);
	else
		recording_warn(recording, "%s; recorded through the kernel instead, a microsecond and more an event",
			       reason);
}

void recording_tell_reasons(struct recording *recording, const struct kymo_error *refusal)
{
	bool is_told = !refusal;

	for (size_t i = 0; i < recording->wanted.options->n_specs; i++) {
		if (!recording->wanted.reasons[i])
			continue;
		tell_reason(recording, recording->wanted.reasons[i]);
		is_told |= refusal && strstr(refusal->message,
					     recording->wanted.reasons[i]); /* the reasons of all specs, or another */
	}
	if (!is_told)
		tell_reason(recording, refusal->message);
}
