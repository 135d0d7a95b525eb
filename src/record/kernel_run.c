/*
 * A recording from outside: no process' memory is touched.
 *
 * Through the kernel no process is stopped or traced, except a command while it starts, so that its libraries are known
 * before they run; where nothing but system calls is recorded, not that either. System calls alone may be recorded by
 * tracing (hub.c).
 */
#include "record/kernel_run.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/io.h"
#include "hub/launch.h"
#include "kernel/kernel.h"
#include "proc/launch.h"
#include "proc/linker.h"
#include "proc/process.h"
#include "proc/startup.h"
#include "proc/stop.h"
#include "procfs/info.h"
#include "record/describe.h"
#include "record/fallback.h"
#include "record/kernel.h"
#include "record/mixed.h"
#include "record/packets.h"
#include "record/pool.h"
#include "record/progress.h"
#include "record/recording.h"
#include "record/several.h"
#include "record/snapshot.h"
#include "record/targets.h"
#include "record/wanted.h"
#include "record/warnings.h"
#include "strace/recorded/hub.h"
#include "strace/recorded/kernel.h"
#include "trace/kernel_stream.h"

#define SECOND_NS 1000000000u
#define PROGRESS_NS (SECOND_NS / 5)
#define RECORDER_NICE (-10)
#define FASTEST_PRODUCER 200 /* bytes a microsecond that one CPU can write */
#define POLL_MAX_MS 20

static bool is_traced(const struct recording *recording)
{
	return recording->wanted.backend == KYMO_RECORD_PTRACE;
}

static bool is_followed(const struct recording *recording)
{
	return recording->wanted.options->follow && !recording->wanted.options->all;
}

/* ---- probes in ------------------------------------------------------------------------------- */

/* System calls stand after them, if there are any. */
static size_t n_probes(const struct recording *recording)
{
	return recording->wanted.options->n_specs - (recording->wanted.calls_spec ? 1 : 0);
}

static struct kymo_error *open_calls(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	const struct kymo_call_source_options calls = {
		.wanted = recording->wanted.calls_spec ? recording->wanted.calls_spec->syscalls : NULL,
		.events = recording->run.events,
		.threads = recording->run.kernel ? recording_kernel_threads(recording->run.kernel) : NULL,
		.pid = options->all           ? 0
		       : is_traced(recording) ? options->pid
					      : recording->run.pid,
		.is_command = recording->run.child,
		.follow = is_followed(recording),
		.string_size = options->string_size,
		.buffer_size = recording_outside_buffer(options),
		.overwrite = recording_is_flight_recorder(options),
		.pool = recording->run.pool,
		.stop = &options->control->stop,
		.warn = options->warn,
		.data = options->data,
	};

	if (!recording->wanted.calls_spec)
		return NULL;
	if (is_traced(recording))
		return kymo_call_source_open_hub(&calls, options->command, &recording->run.pid, &recording->run.calls);
	return kymo_call_source_open_kernel(&calls, &recording->run.calls);
}

/* Why it goes this way comes before what that costs. */
static void tell_many(size_t n, void *data)
{
	struct recording *recording = data;

	if (recording->wanted.refusal && !recording->wanted.has_told_refusal)
		recording_tell_reasons(recording, recording->wanted.refusal);
	recording->wanted.has_told_refusal = true;
	recording_warn(recording,
		       "the kernel sets breakpoints at %zu locations, %s, before anything is recorded; "
		       "ask for fewer, or wait",
		       n, kymo_kernel_cost_of_sites());
}

static struct kymo_error *open_source(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	const struct recording_kernel_options kernel = {
		.specs = recording->wanted.specs,
		.n_specs = n_probes(recording),
		.events = recording->run.events,
		.pid = options->all ? 0 : recording->run.pid,
		.follow = is_followed(recording),
		.buffer_size = recording_outside_buffer(options),
		.overwrite = recording_is_flight_recorder(options),
		.pool = recording->run.pool,
		.is_shut = !options->command, /* each file of a command has its probes before anything in it runs */
		.warn = options->warn,
		.data = options->data,
		.tell_many = tell_many,
		.recording = recording,
	};

	return kernel.n_specs ? recording_kernel_open(&kernel, &recording->run.kernel) : NULL;
}

/* The one process that was asked for is in the trace's table even when it never meets a probe. */
static struct kymo_error *note_process(struct recording *recording)
{
	struct kymo_ctf_trace *trace = &recording->output.files.trace;
	const char *command = kymo_ctf_trace_env(trace, "command");
	struct kymo_process_info info;
	struct kymo_error *error;
	pid_t pid = recording->run.pid;

	if (recording->wanted.options->all)
		return NULL;
	error = kymo_process_info(pid, &info);
	if (!error && !is_followed(recording) && !is_traced(recording))
		pid = info.inner_pid;
	kymo_error_destroy(error);
	return kymo_ctf_trace_add_process(trace, pid, 0, 0, command ? command : "");
}

static struct kymo_error *make_output(struct recording *recording)
{
	struct kymo_error *error = NULL;

	if (recording->output.exists)
		kymo_trace_restart(&recording->output.files); /* the attempt in the process has made it */
	else
		error = kymo_trace_init(recording->wanted.options->directory, &recording->output.files);
	if (error)
		return error;
	recording->output.exists = true;
	error = recording_describe_target(recording);
	if (!error)
		error = note_process(recording);
	return error ? error : recording_write_metadata(recording);
}

/* The dynamic linker maps file after file: each gets its probes before anything in it runs. */
static struct kymo_error *start_up(struct recording *recording)
{
	enum kymo_startup_event event = KYMO_STARTUP_MAPPED;
	struct kymo_error *error = NULL;

	while (!error) {
		if (event == KYMO_STARTUP_MAPPED)
			error = recording_kernel_look(recording->run.kernel, recording->run.pid);
		if (error || event == KYMO_STARTUP_LOADED || event == KYMO_STARTUP_ENDED)
			break;
		error = kymo_process_startup(recording->run.process, &event);
	}
	return error;
}

/* What waits at its beginning. */
static struct kymo_error *fork_command(struct recording *recording)
{
	int err =
		kymo_command_fork(recording->wanted.options->command, NULL, &recording->run.child, &recording->run.go);

	recording->run.pid = recording->run.child;
	return err ? kymo_error_errno(err, "cannot run %s", recording->wanted.options->command[0]) : NULL;
}

static struct kymo_error *find_process(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	struct kymo_error *error = NULL;

	if (is_traced(recording))
		return NULL; /* its tracer finds it */
	if (options->command && !n_probes(recording))
		return fork_command(recording);
	if (options->command)
		error = kymo_process_launch(options->command, &recording->run.process);
	else if (!options->all)
		error = kymo_process_look(options->pid, &recording->run.process);
	if (!error && recording->run.process)
		recording->run.pid = kymo_process_pid(recording->run.process);
	if (!error && options->command && recording->wanted.calls_spec)
		kymo_process_startup_without_stub(recording->run.process);
	return error;
}

static struct kymo_error *put_probes_in(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	struct kymo_error *error = NULL;

	if (!recording->run.kernel)
		return NULL;
	if (options->command)
		error = start_up(recording);
	else if (!options->all)
		error = recording_kernel_look(recording->run.kernel, recording->run.pid);
	if (!error)
		error = recording_kernel_find(recording->run.kernel);
	return error ? error : recording_kernel_tell_refused(recording->run.kernel);
}

static struct kymo_error *begin_kernel(struct recording *recording)
{
	struct kymo_error *error = recording_check_directory(recording);

	if (!error)
		error = find_process(recording);
	if (!error)
		error = recording_make_pool(recording);
	if (!error)
		error = open_source(recording);
	if (!error)
		error = open_calls(recording);
	recording_progress(recording, KYMO_RECORD_PLANNING);
	if (!error)
		error = put_probes_in(recording);
	if (!error)
		error = make_output(recording);
	if (!error)
		recording_tell_left_out(recording);
	recording->run.has_begun = !error;
	return error;
}

/* What runs already is recorded from here on: before the recording is announced, as its user may act on that. */
static struct kymo_error *let_in(struct recording *recording)
{
	if (recording->run.kernel)
		recording_kernel_let_in(recording->run.kernel);
	return recording->run.calls && !recording->wanted.options->command
		       ? kymo_call_source_begin(recording->run.calls, &recording->output.files)
		       : NULL;
}

static struct kymo_error *let_command_go(struct recording *recording)
{
	if (recording->run.process)
		kymo_process_resume(recording->run.process);
	if (recording->run.child && kymo_write_all(recording->run.go, "", 1))
		return kymo_error_create(KYMO_ERROR_GONE, "%s has ended before it was begun",
					 recording->wanted.options->command[0]);
	return recording->run.calls ? kymo_call_source_begin(recording->run.calls, &recording->output.files) : NULL;
}

/* ---- while it goes on ------------------------------------------------------------------------ */

static int poll_ms(const struct recording *recording)
{
	uint64_t ms = recording->wanted.options->buffer_size / 2 / FASTEST_PRODUCER / 1000;

	return ms < 1 ? 1 : ms > POLL_MAX_MS ? POLL_MAX_MS : (int)ms;
}

bool recording_child_ended(struct recording *recording)
{
	struct kymo_record_result *result = &recording->result;
	int status;

	if (recording->run.child && !result->command_ended &&
	    waitpid(recording->run.child, &status, WNOHANG) == recording->run.child) {
		result->command_ended = true;
		result->command_status = status;
	}
	return recording->run.child && result->command_ended;
}

static bool has_processes(const struct recording *recording)
{
	return (recording->run.kernel && recording_kernel_has_processes(recording->run.kernel)) ||
	       (recording->run.calls && kymo_call_source_has_processes(recording->run.calls));
}

static bool traced_have_ended(struct recording *recording)
{
	struct kymo_record_result *result = &recording->result;

	result->command_ended |= kymo_call_source_command_ended(recording->run.calls, &result->command_status);
	return !kymo_call_source_has_processes(recording->run.calls);
}

/* All recorded processes. The command's end alone is none where its children are, too. */
static bool has_ended(struct recording *recording)
{
	int status;

	if (is_traced(recording))
		return traced_have_ended(recording);
	if (recording->run.child) {
		if (!recording_child_ended(recording))
			return false;
	} else if (!recording->run.process || !kymo_process_ended(recording->run.process, &status)) {
		return false;
	} else if (recording->wanted.options->command) {
		recording->result.command_ended = true;
		recording->result.command_status = status;
	}
	return !is_followed(recording) || !has_processes(recording);
}

/* `is_empty_ret`: there was nothing left. */
static struct kymo_error *drain_kernel(struct recording *recording, bool *is_empty_ret)
{
	struct kymo_error *error = NULL;
	size_t n;

	*is_empty_ret = true;
	if (recording->run.kernel)
		error = recording_kernel_drain(recording->run.kernel, &recording->output.files, &n);
	return error || !recording->run.calls
		       ? error
		       : kymo_call_source_drain(recording->run.calls, &recording->output.files, is_empty_ret);
}

static struct kymo_error *flush_kernel(struct recording *recording)
{
	struct kymo_error *error = NULL;

	if (recording->run.kernel)
		error = recording_kernel_flush(recording->run.kernel, &recording->output.files);
	return error || !recording->run.calls ? error
					      : kymo_call_source_flush(recording->run.calls, &recording->output.files);
}

/* Both, whatever comes of the one. */
static struct kymo_error *finish_kernel(struct recording *recording)
{
	struct kymo_trace *output = &recording->output.files;
	struct kymo_error *error = NULL;

	if (recording->run.kernel)
		recording_kernel_shut(recording->run.kernel);
	if (recording->run.kernel)
		error = recording_kernel_finish(recording->run.kernel, output);
	if (recording->run.calls)
		error = kymo_error_first(error, kymo_call_source_finish(recording->run.calls, output));
	return kymo_error_first(error, kymo_kernel_pool_write(recording->run.pool, output));
}

static struct kymo_error *look_after_kernel(struct recording *recording)
{
	uint64_t now = kymo_now_ns();

	if (now >= recording->run.next_progress_ns) {
		recording->run.next_progress_ns = now + PROGRESS_NS;
		recording_progress(recording, KYMO_RECORD_RUNNING);
	}
	if (now < recording->run.next_flush_ns)
		return NULL;
	recording->run.next_flush_ns = now + SECOND_NS;
	return flush_kernel(recording);
}

static struct kymo_error *record_kernel(struct recording *recording)
{
	struct pollfd ended = { .fd = recording->run.process ? kymo_process_pidfd(recording->run.process) : -1,
				.events = POLLIN };
	int timeout = poll_ms(recording);
	struct kymo_error *error = NULL;
	bool is_empty = true;

	while (!error && !recording_is_time_up(recording) && !has_ended(recording)) {
		/*
		 * When the first process has ended and others are waited for, its descriptor would not let the recorder
		 * sleep.
		 */
		if (poll(&ended, 1, is_empty ? timeout : 0) > 0 && is_followed(recording))
			ended.fd = -1;
		error = drain_kernel(recording, &is_empty);
		if (!error)
			error = look_after_kernel(recording);
		if (!error)
			recording_snapshot(recording);
	}
	return error;
}

struct kymo_error *recording_run_kernel(struct recording *recording)
{
	struct kymo_error *error = recording_fell_back(recording, begin_kernel(recording)), *last;

	if (error)
		return error;
	if (!is_traced(recording))
		setpriority(PRIO_PROCESS, 0, RECORDER_NICE);
	recording->run.begin_ns = kymo_now_ns();
	recording->run.next_flush_ns = recording->run.begin_ns + SECOND_NS;
	error = let_in(recording);
	recording_progress(recording, KYMO_RECORD_RUNNING);
	if (!error && recording->wanted.options->command)
		error = let_command_go(recording);
	if (!error)
		error = record_kernel(recording);
	recording->result.seconds = (double)(kymo_now_ns() - recording->run.begin_ns) / SECOND_NS;
	recording_progress(recording, KYMO_RECORD_STOPPING);
	last = finish_kernel(recording);
	if (is_traced(recording))
		traced_have_ended(recording);
	recording->result.were_full = recording_lost(recording) > 0;
	if (!error)
		return last;
	kymo_error_destroy(last);
	return error;
}
