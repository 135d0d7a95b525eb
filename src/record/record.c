/*
 * A recording: launch or attach, probes in, packets out, probes out.
 */
#include "record/record.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "probe/remove.h"
#include "record/recording.h"

#define SECOND_NS 1000000000u
#define PROGRESS_NS (SECOND_NS / 5)
#define FLUSH_NS SECOND_NS
#define RECORDER_NICE (-10)
#define SEAL_NS (1200ull * SECOND_NS)	/* stamps in a packet are told apart for an hour and more: wire/event.h */
#define FASTEST_PRODUCER 800		/* bytes a microsecond that one CPU can write */
#define POLL_MAX_MS 20

volatile int kymo_record_stop;

static void warn(struct recording *recording, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void warn(struct recording *recording, const char *format, ...)
{
	char sentence[1024];
	va_list args;

	if (!recording->options->warn)
		return;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	recording->options->warn(sentence, recording->options->data);
}

/* ---- while it goes on ---------------------------------------------------------------------------------------------- */

static void progress(struct recording *recording, const char *phase)
{
	struct kymo_record_progress now = {
		.seconds = recording->begin_ns ? (double)(kymo_now_ns() - recording->begin_ns) / SECOND_NS : 0,
		.bytes = recording->output.bytes,
		.events = recording->output.events,
		.lost = recording_lost(recording),
		.n_sites = recording->probes ? kymo_probes_n_sites(recording->probes) : 0,
		.phase = phase,
	};

	if (recording->options->progress)
		recording->options->progress(&now, recording->options->data);
}

/* What is not done with every packet. */
static void now_and_then(struct recording *recording)
{
	uint64_t now = kymo_now_ns();

	if (now >= recording->next_progress_ns) {
		recording->next_progress_ns = now + PROGRESS_NS;
		progress(recording, "recording");
		kymo_probes_publish(recording->probes, recording->output.bytes, recording_lost(recording));
	}
	if (now >= recording->next_flush_ns) {
		recording->next_flush_ns = now + FLUSH_NS;
		recording_note_threads(recording);
		if (!recording->options->overwrite || now >= recording->next_seal_ns)
			recording_flush(recording);
		if (now >= recording->next_seal_ns)
			recording->next_seal_ns = now + SEAL_NS;
	}
}

/* A producer that never pauses fills half of its buffer in this time. */
static int poll_ms(const struct recording *recording)
{
	uint64_t ms = recording->options->buffer_size / 2 / FASTEST_PRODUCER / 1000;

	return ms < 1 ? 1 : ms > POLL_MAX_MS ? POLL_MAX_MS : (int)ms;
}

static bool is_time_up(const struct recording *recording)
{
	return kymo_record_stop ||
	       (recording->options->seconds > 0 &&
		(double)(kymo_now_ns() - recording->begin_ns) >= recording->options->seconds * SECOND_NS);
}

/* Until the end of time, process, disk. `alive_ret`: there is a process to take probes out of. */
static struct kymo_error *record_until_end(struct recording *recording, bool *alive_ret)
{
	struct pollfd ended = { .fd = kymo_process_pidfd(recording->process), .events = POLLIN };
	int timeout = poll_ms(recording), status;
	size_t n = 0;

	*alive_ret = true;
	while (!is_time_up(recording)) {
		struct kymo_error *error = NULL;

		poll(&ended, 1, n ? 0 : timeout);	/* where there was something to write, more has come meanwhile */
		/* Producers that overwrite wait for nobody: what they may be writing is not read before they are gone. */
		if (!recording->options->overwrite)
			error = recording_drain(recording, &n);
		if (error)
			return error;
		if (kymo_process_ended(recording->process, &status)) {
			*alive_ret = false;
			return NULL;
		}
		if (kymo_now_ns() >= recording->next_flush_ns && !kymo_probes_are_mapped(recording->probes)) {
			warn(recording, "process %d has become another program (exec), which is not recorded; what it did before is",
			     kymo_process_pid(recording->process));
			*alive_ret = false;
			return NULL;
		}
		now_and_then(recording);
	}
	return NULL;
}

/* ---- probes in ----------------------------------------------------------------------------------------------------- */

static struct kymo_error *make_output(struct recording *recording)
{
	struct kymo_error *error;

	if (recording->has_output)
		return NULL;
	error = output_init(recording->options->directory, &recording->output);
	if (error)
		return error;
	recording->has_output = true;
	error = recording_describe_target(recording);
	return error ? error : recording_write_metadata(recording);
}

/* A command that is refused in the end, as its last file lacks a function, leaves no directory and the earlier recording in place. */
static struct kymo_error *install(struct recording *recording)
{
	struct kymo_error *error = kymo_probes_resolve(recording->probes);

	if (!error && kymo_probes_pending(recording->probes))
		error = recording->options->command ? output_check(recording->options->directory) : make_output(recording);
	return error ? error : kymo_probes_install(recording->probes, &recording->result.stopped_ns);
}

static struct kymo_error *create_probes(struct recording *recording)
{
	const struct kymo_record_options *options = recording->options;
	kymo_cleanup_free char *directory = NULL;
	struct kymo_probes_options probe_options = {
		.buffer_size = options->buffer_size,
		.overwrite = options->overwrite,
		.no_rseq = options->no_rseq,
		.warn = options->warn,
		.data = options->data,
	};

	if (options->directory[0] == '/') {
		probe_options.directory = options->directory;
	} else {
		kymo_cleanup_free char *cwd = realpath(".", NULL);

		if (asprintf(&directory, "%s/%s", cwd ? cwd : "", options->directory) < 0)
			return &kymo_error_no_memory;
		probe_options.directory = directory;
	}
	return kymo_probes_create(recording->process, options->specs, options->n_specs, &probe_options, &recording->probes);
}

/* What an earlier recorder left is taken out first; a living one has the process for itself. */
static struct kymo_error *clear_remains(struct recording *recording)
{
	struct kymo_detach_result result = { .note = NULL };
	struct kymo_remains remains;
	struct kymo_error *error = kymo_remains_read(recording->process, &remains);
	pid_t pid = kymo_process_pid(recording->process);

	if (error)
		return error;
	if (kymo_remains_have_recorder(&remains))
		error = kymo_error_create(KYMO_ERROR_BUSY, "process %d is being recorded by kymo process %u already (into %s)", pid,
					  remains.header.recorder_pid, remains.header.directory);
	else if (remains.found)
		error = kymo_remove(recording->process, &result);
	if (!error && result.pads_left)
		error = kymo_error_create(KYMO_ERROR_BUSY, "a thread of process %d still stands in a pad of an earlier recording", pid);
	free(result.note);
	kymo_remains_deinit(&remains);
	return error;
}

static struct kymo_error *attach(struct recording *recording)
{
	struct kymo_error *error = kymo_process_open(recording->options->pid, &recording->process);

	if (!error)
		error = clear_remains(recording);
	if (!error)
		error = create_probes(recording);
	if (error)
		return error;
	recording->has_begun = true;
	progress(recording, "planning");
	error = kymo_probes_resolve(recording->probes);
	if (!error)
		error = kymo_probes_check_all_found(recording->probes);
	if (!error)
		error = kymo_probes_set_live(recording->probes);
	if (!error)
		error = install(recording);
	return error ? error : recording_open_rings(recording);
}

/* Follow the dynamic linker from file to file. */
static struct kymo_error *start_up(struct recording *recording)
{
	enum kymo_startup_event event = KYMO_STARTUP_MAPPED;
	struct kymo_error *error = NULL;
	bool has_threads = false;

	kymo_probes_starting(recording->probes);
	while (!error) {
		if (event == KYMO_STARTUP_MAPPED)
			error = install(recording);
		else if (event == KYMO_STARTUP_TLS)
			error = kymo_probes_set_live(recording->probes), has_threads = true;
		if (event == KYMO_STARTUP_LOADED || event == KYMO_STARTUP_ENDED || error)
			break;
		error = kymo_process_startup(recording->process, &event);
	}
	if (error || event == KYMO_STARTUP_ENDED)
		return error;
	if (!has_threads)
		warn(recording, "this program sets up its threads without the dynamic linker: all records carry the process id");
	error = kymo_probes_check_all_found(recording->probes);
	return error ? error : kymo_probes_started(recording->probes);
}

static struct kymo_error *launch(struct recording *recording)
{
	struct kymo_error *error = kymo_process_launch(recording->options->command, &recording->process);

	if (!error)
		error = create_probes(recording);
	if (!error)
		error = start_up(recording);
	if (!error)
		error = make_output(recording);
	if (!error)
		error = recording_open_rings(recording);
	recording->has_begun = !error;
	return error;
}

/* ---- the end ------------------------------------------------------------------------------------------------------- */

static struct kymo_error *take_out(struct recording *recording)
{
	struct kymo_detach_result result = { .note = NULL };
	struct kymo_error *error;
	int status;

	progress(recording, "stopping");
	error = kymo_remove(recording->process, &result);
	if (error && kymo_process_ended(recording->process, &status)) {
		kymo_error_destroy(error);
		return NULL;
	}
	if (!error && result.pads_left)
		warn(recording, "a signal handler of process %d still runs on top of a pad: kymo's memory stays mapped; 'kymo detach %d' removes it later",
		     kymo_process_pid(recording->process), kymo_process_pid(recording->process));
	if (!error && result.note)
		warn(recording, "%s", result.note);
	free(result.note);
	return kymo_error_prefix(error, "some probes are still in process %d, and 'kymo detach %d' takes them out",
				 kymo_process_pid(recording->process), kymo_process_pid(recording->process));
}

/* Before its first instruction a command whose recording failed is ended; afterwards it runs on. */
static void end_command(struct recording *recording)
{
	int status;

	if (!recording->process || !recording->options->command || recording->has_begun ||
	    kymo_process_ended(recording->process, &status))
		return;
	kill(kymo_process_pid(recording->process), SIGKILL);
	waitpid(kymo_process_pid(recording->process), &status, __WALL);
}

static void note_command_end(struct recording *recording)
{
	int status;

	recording->result.command_ended = kymo_process_ended(recording->process, &status);
	if (recording->result.command_ended)
		recording->result.command_status = status;
}

/* The first error counts; others only if there was none. */
static void keep_first(struct kymo_error **first, struct kymo_error *error)
{
	if (*first)
		kymo_error_destroy(error);
	else
		*first = error;
}

static void deinit(struct recording *recording)
{
	kymo_probes_destroy(recording->probes);
	kymo_process_destroy(recording->process);
	if (recording->has_output)
		output_deinit(&recording->output);
	free(recording->rings);
	free(recording->shared);
}

static struct kymo_error *run(struct recording *recording)
{
	struct kymo_error *error = NULL;
	bool alive;
	int status;

	/* On a busy machine a recorder that gets its turn late loses records; it sleeps when there is nothing to write. May be refused. */
	setpriority(PRIO_PROCESS, 0, RECORDER_NICE);
	recording->begin_ns = kymo_now_ns();
	recording->next_seal_ns = recording->begin_ns + SEAL_NS;
	progress(recording, "recording");
	recording_note_threads(recording);
	kymo_process_resume(recording->process);
	error = record_until_end(recording, &alive);
	recording->result.seconds = (double)(kymo_now_ns() - recording->begin_ns) / SECOND_NS;
	if (alive && !kymo_process_ended(recording->process, &status)) {
		recording_note_threads(recording);
		keep_first(&error, take_out(recording));
	}
	keep_first(&error, recording_finish_rings(recording));
	return error;
}

struct kymo_error *kymo_record(const struct kymo_record_options *options, struct kymo_record_result *ret)
{
	struct recording recording = { .options = options, .begin = clock_sample() };
	struct kymo_error *error;

	error = options->command ? launch(&recording) : attach(&recording);
	if (!error) {
		error = run(&recording);
	} else if (recording.process && recording.probes && (recording.has_begun || !options->command)) {
		struct kymo_detach_result result = { .note = NULL };

		kymo_process_resume(recording.process);
		kymo_error_destroy(kymo_remove(recording.process, &result));
		free(result.note);
	}
	end_command(&recording);
	if (recording.has_output)
		keep_first(&error, recording_write_metadata(&recording));
	recording.result.bytes = recording.output.bytes;
	recording.result.events = recording.output.events;
	recording.result.lost = recording_lost(&recording);
	recording.result.n_sites = recording.probes ? kymo_probes_n_sites(recording.probes) : 0;
	if (!error)
		progress(&recording, "done");
	if (!error && options->command)
		note_command_end(&recording);
	deinit(&recording);
	if (error)
		return error;
	*ret = recording.result;
	return NULL;
}
