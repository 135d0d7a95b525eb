/*
 * A recording through the kernel alone: nobody's memory is touched, nobody is stopped or traced, but for a command
 * while it starts, so that the files it is linked with are known before they run.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/io.h"
#include "record/kernel.h"
#include "record/recording.h"

#define SECOND_NS 1000000000u
#define PROGRESS_NS (SECOND_NS / 5)
#define RECORDER_NICE (-10)
#define FASTEST_PRODUCER 200 /* bytes a microsecond that one CPU can write */
#define POLL_MAX_MS 20

static bool is_followed(const struct recording *recording)
{
	return recording->options->follow && !recording->options->all;
}

/* ---- probes in -------------------------------------------------------------------------------------------------- */

static struct kymo_error *open_source(struct recording *recording)
{
	const struct kymo_record_options *options = recording->options;
	const struct recording_kernel_options kernel = {
		.specs = options->specs,
		.n_specs = options->n_specs,
		.events = recording->events,
		.pid = options->all ? 0 : recording->pid,
		.follow = is_followed(recording),
		.buffer_size = options->buffer_size,
		.overwrite = options->overwrite,
		.warn = options->warn,
		.data = options->data,
	};

	return recording_kernel_open(&kernel, &recording->kernel);
}

/* The one process that was asked for is in the trace's table even when it never meets a probe. */
static struct kymo_error *note_process(struct recording *recording)
{
	struct kymo_ctf_trace *trace = &recording->output.trace;
	const char *command = kymo_ctf_trace_env(trace, "command");
	struct kymo_process_info info;
	struct kymo_error *error;
	pid_t pid = recording->pid;

	if (recording->options->all)
		return NULL;
	error = kymo_process_info(pid, &info);
	if (!error && !is_followed(recording))
		pid = info.inner_pid;
	kymo_error_destroy(error);
	return kymo_ctf_trace_add_process(trace, pid, 0, 0, command ? command : "");
}

static struct kymo_error *make_output(struct recording *recording)
{
	struct kymo_error *error = NULL;

	if (recording->has_output)
		output_restart(&recording->output);	/* the attempt in the process has made it */
	else
		error = output_init(recording->options->directory, &recording->output);
	if (error)
		return error;
	recording->has_output = true;
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
			error = recording_kernel_look(recording->kernel, recording->pid);
		if (error || event == KYMO_STARTUP_LOADED || event == KYMO_STARTUP_ENDED)
			break;
		error = kymo_process_startup(recording->process, &event);
	}
	return error;
}

static struct kymo_error *begin(struct recording *recording)
{
	const struct kymo_record_options *options = recording->options;
	struct kymo_error *error = output_check(options->directory);

	if (!error && options->command)
		error = kymo_process_launch(options->command, &recording->process);
	else if (!error && !options->all)
		error = kymo_process_look(options->pid, &recording->process);
	if (!error && recording->process)
		recording->pid = kymo_process_pid(recording->process);
	if (!error)
		error = open_source(recording);
	recording_progress(recording, "planning");
	if (!error && options->command)
		error = start_up(recording);
	else if (!error && !options->all)
		error = recording_kernel_look(recording->kernel, recording->pid);
	if (!error)
		error = recording_kernel_find(recording->kernel);
	if (!error)
		error = recording_kernel_tell_refused(recording->kernel);
	if (!error)
		error = make_output(recording);
	recording->has_begun = !error;
	return error;
}

/* ---- while it goes on ------------------------------------------------------------------------------------------- */

static int poll_ms(const struct recording *recording)
{
	uint64_t ms = recording->options->buffer_size / 2 / FASTEST_PRODUCER / 1000;

	return ms < 1 ? 1 : ms > POLL_MAX_MS ? POLL_MAX_MS : (int)ms;
}

/* Everybody who is recorded. The command's end alone is none where its children are, too. */
static bool has_ended(struct recording *recording)
{
	int status;

	if (!recording->process || !kymo_process_ended(recording->process, &status))
		return false;
	if (recording->options->command) {
		recording->result.command_ended = true;
		recording->result.command_status = status;
	}
	return !is_followed(recording) || !recording_kernel_has_processes(recording->kernel);
}

static struct kymo_error *now_and_then(struct recording *recording)
{
	uint64_t now = kymo_now_ns();

	if (now >= recording->next_progress_ns) {
		recording->next_progress_ns = now + PROGRESS_NS;
		recording_progress(recording, "recording");
	}
	if (now < recording->next_flush_ns)
		return NULL;
	recording->next_flush_ns = now + SECOND_NS;
	return recording_kernel_flush(recording->kernel, &recording->output);
}

static struct kymo_error *record_until_end(struct recording *recording)
{
	struct pollfd ended = { .fd = recording->process ? kymo_process_pidfd(recording->process) : -1,
				.events = POLLIN };
	int timeout = poll_ms(recording);
	struct kymo_error *error = NULL;
	size_t n;

	while (!error && !recording_is_time_up(recording) && !has_ended(recording)) {
		/*
		 * When the first process has ended and others are waited for, its descriptor would not let anybody
		 * sleep.
		 */
		if (poll(&ended, 1, timeout) > 0 && is_followed(recording))
			ended.fd = -1;
		error = recording_kernel_drain(recording->kernel, &recording->output, &n);
		if (!error)
			error = now_and_then(recording);
	}
	return error;
}

struct kymo_error *recording_run_kernel(struct recording *recording)
{
	struct kymo_error *error = recording_fell_back(recording, begin(recording)), *last;

	if (error)
		return error;
	setpriority(PRIO_PROCESS, 0, RECORDER_NICE);
	recording->begin_ns = kymo_now_ns();
	recording->next_flush_ns = recording->begin_ns + SECOND_NS;
	recording_progress(recording, "recording");
	if (recording->process)
		kymo_process_resume(recording->process);
	error = record_until_end(recording);
	recording->result.seconds = (double)(kymo_now_ns() - recording->begin_ns) / SECOND_NS;
	recording_progress(recording, "stopping");
	last = recording_kernel_finish(recording->kernel, &recording->output);
	recording->result.were_full = recording_lost(recording) > 0;
	if (!error)
		return last;
	kymo_error_destroy(last);
	return error;
}
