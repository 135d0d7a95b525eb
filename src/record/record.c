/*
 * A recording: launch or attach, probes in, packets out, probes out.
 */
#include "record/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "probe/remove.h"
#include "probe/session.h"
#include "proc/proc.h"
#include "record/clock.h"
#include "record/output.h"
#include "ring/ring.h"

#define SECOND_NS 1000000000u
#define PROGRESS_NS (SECOND_NS / 5)
#define FLUSH_NS SECOND_NS
#define FASTEST_PRODUCER 800		/* bytes a microsecond that one CPU can write */
#define POLL_MAX_MS 20

volatile int kymo_record_stop;

struct recording {
	const struct kymo_record_options *options;
	struct kymo_process *process;
	struct kymo_probes *probes;
	struct output output;
	bool has_output;
	struct kymo_ring *rings;
	struct kymo_shared_ring *shared;
	size_t n_rings;
	struct clock_sample begin;
	uint64_t begin_ns, next_progress_ns, next_flush_ns;
	bool has_begun;			/* a launched command has run its first instruction of its own */
	struct kymo_record_result result;
};

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

/* ---- what the metadata says ---------------------------------------------------------------------------------------- */

static struct kymo_error *describe_event(const struct kymo_probe_event *event, struct kymo_ctf_event *ret)
{
	size_t n = event->spec->n_args;

	*ret = (struct kymo_ctf_event){
		.id = event->id,
		.name = strdup(event->name),
		.fields = calloc(n ? n : 1, sizeof(*ret->fields)),
		.has_faults = kymo_pad_has_faults(event->args, n),
		.path = strdup(event->path),
		.offset = event->offset,
		.symbol = strdup(event->symbol),
		.build_id = strdup(event->build_id),
	};
	if (!ret->name || !ret->fields || !ret->path || !ret->symbol || !ret->build_id)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++) {
		ret->fields[i].name = strdup(event->spec->args[i].name);
		ret->fields[i].type = event->args[i].type;
		ret->n_fields++;
		if (!ret->fields[i].name)
			return &kymo_error_no_memory;
	}
	ret->size = kymo_ctf_event_size(ret);
	return NULL;
}

/* Bring the schema up to the events that the probes have by now. */
static struct kymo_error *describe_events(struct recording *recording)
{
	struct kymo_ctf_trace *trace = &recording->output.trace;
	const struct kymo_probe_event *events;
	struct kymo_ctf_event *grown;
	struct kymo_error *error = NULL;
	size_t n;

	events = kymo_probes_events(recording->probes, &n);
	if (n <= trace->n_events)
		return NULL;
	grown = realloc(trace->events, n * sizeof(*grown));
	if (!grown)
		return &kymo_error_no_memory;
	trace->events = grown;
	while (trace->n_events < n && !error) {
		error = describe_event(&events[trace->n_events], &trace->events[trace->n_events]);
		trace->n_events++;
	}
	return error ? error : output_sizes(&recording->output);
}

static struct kymo_error *set_env(struct recording *recording, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static struct kymo_error *set_env(struct recording *recording, const char *key, const char *format, ...)
{
	kymo_cleanup_free char *value = NULL;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&value, format, args);
	va_end(args);
	if (n < 0) {
		value = NULL;
		return &kymo_error_no_memory;
	}
	return kymo_ctf_trace_set_env(&recording->output.trace, key, value);
}

static char *joined(char *const *argv)
{
	size_t size = 1;
	char *text;

	for (int i = 0; argv[i]; i++)
		size += strlen(argv[i]) + 1;
	text = calloc(1, size);
	for (int i = 0; text && argv[i]; i++) {
		strcat(text, i ? " " : "");
		strcat(text, argv[i]);
	}
	return text;
}

/* The command line of a running process, arguments separated by spaces. */
static char *command_of(pid_t pid)
{
	char name[64], *text;
	size_t size;

	snprintf(name, sizeof(name), "/proc/%d/cmdline", pid);
	if (kymo_read_file(AT_FDCWD, name, 1 << 20, &text, &size))
		return strdup("");
	for (size_t i = 0; i + 1 < size; i++)
		if (!text[i])
			text[i] = ' ';
	return text;
}

static struct kymo_error *describe_target(struct recording *recording)
{
	kymo_cleanup_free char *command = recording->options->command ? joined(recording->options->command) :
								       command_of(kymo_process_pid(recording->process));
	struct kymo_error *error;

	if (!command)
		return &kymo_error_no_memory;
	error = set_env(recording, "kymo_version", "%s", KYMO_VERSION);
	if (!error)
		error = set_env(recording, "pid", "%d", kymo_process_pid(recording->process));
	if (!error)
		error = set_env(recording, "command", "%s", command);
	if (!error)
		error = set_env(recording, "mode", "%s", recording->options->overwrite ? "overwrite" : "discard");
	return error;
}

/* Names of the threads that live now. Those that come and go between two looks stay without a name. */
static void note_thread_names(struct recording *recording)
{
	char name[64], key[32];
	struct dirent *entry;
	DIR *tasks;

	snprintf(name, sizeof(name), "/proc/%d/task", kymo_process_pid(recording->process));
	tasks = opendir(name);
	while (tasks && (entry = readdir(tasks))) {
		kymo_cleanup_free char *comm = NULL;
		char path[400];

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s/comm", name, entry->d_name);
		if (kymo_read_file(AT_FDCWD, path, 256, &comm, NULL))
			continue;
		comm[strcspn(comm, "\n")] = '\0';
		snprintf(key, sizeof(key), "thread_%.20s", entry->d_name);
		kymo_error_destroy(kymo_ctf_trace_set_env(&recording->output.trace, key, comm));
	}
	if (tasks)
		closedir(tasks);
}

static struct kymo_error *write_metadata(struct recording *recording)
{
	struct clock_sample now;
	struct kymo_error *error = describe_events(recording);

	if (error)
		return error;
	clock_settle(&recording->begin);
	now = clock_sample();
	clock_describe(&recording->begin, &now, &recording->output.trace);
	return output_metadata(&recording->output);
}

/* ---- packets ------------------------------------------------------------------------------------------------------- */

/* A ring of sequences is closed from its own CPU. Where this process may not run there, the packet waits until it is full. */
static uint64_t close_on_cpu(struct kymo_wire_ring *shared, uint32_t cpu)
{
	cpu_set_t before, here;
	uint64_t stamp = 0;

	if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before), &before))
		return 0;
	CPU_ZERO(&here);
	CPU_SET(cpu, &here);
	if (sched_setaffinity(0, sizeof(here), &here))
		return 0;
	if (kymo_pad_close_ring(shared, cpu))
		stamp = clock_tsc();
	sched_setaffinity(0, sizeof(before), &before);
	return stamp;
}

static struct kymo_error *open_rings(struct recording *recording)
{
	size_t n = kymo_probes_n_rings(recording->probes);

	if (recording->rings || !n)
		return NULL;
	recording->rings = calloc(n, sizeof(*recording->rings));
	recording->shared = calloc(n, sizeof(*recording->shared));
	if (!recording->rings || !recording->shared)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++) {
		struct kymo_shared_ring *ring = &recording->shared[i];

		*ring = kymo_probes_ring(recording->probes, i);
		kymo_ring_init(&recording->rings[i], ring->shared, ring->data, ring->subbuffer_size, ring->n_subbuffers,
			       recording->options->overwrite);
		if (ring->is_sequenced)
			recording->rings[i].close = close_on_cpu;
		recording->rings[i].cpu = ring->cpu;
	}
	recording->n_rings = n;
	return output_rings(&recording->output, n);
}

static struct kymo_error *drain(struct recording *recording, size_t *n_ret)
{
	*n_ret = 0;
	for (size_t i = 0; i < recording->n_rings; i++) {
		size_t n;
		struct kymo_error *error =
			output_drain(&recording->output, i, &recording->rings[i], recording->shared[i].cpu, &n);

		if (error)
			return error;
		*n_ret += n;
	}
	return NULL;
}

static uint64_t lost_so_far(const struct recording *recording)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < recording->n_rings; i++)
		lost += kymo_ring_lost(&recording->rings[i]);
	return lost;
}

/* No producer is left: what lies in open packets, and losses behind the last one. */
static struct kymo_error *finish_rings(struct recording *recording)
{
	struct kymo_error *error;
	size_t n;

	for (size_t i = 0; i < recording->n_rings; i++)
		kymo_ring_finish(&recording->rings[i], clock_tsc());
	do {
		error = drain(recording, &n);
	} while (!error && n);
	for (size_t i = 0; i < recording->n_rings && !error; i++)
		error = output_finish(&recording->output, i, &recording->rings[i], recording->shared[i].cpu, clock_tsc());
	return error;
}

/* ---- while it goes on ---------------------------------------------------------------------------------------------- */

static void progress(struct recording *recording, const char *phase)
{
	struct kymo_record_progress now = {
		.seconds = recording->begin_ns ? (double)(kymo_now_ns() - recording->begin_ns) / SECOND_NS : 0,
		.bytes = recording->output.bytes,
		.events = recording->output.events,
		.lost = lost_so_far(recording),
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
		kymo_probes_publish(recording->probes, recording->output.bytes, lost_so_far(recording));
	}
	if (now >= recording->next_flush_ns) {
		recording->next_flush_ns = now + FLUSH_NS;
		note_thread_names(recording);
		for (size_t i = 0; i < recording->n_rings && !recording->options->overwrite; i++)
			kymo_ring_flush(&recording->rings[i], clock_tsc());
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

	*alive_ret = true;
	while (!is_time_up(recording)) {
		struct kymo_error *error = NULL;
		size_t n;

		poll(&ended, 1, timeout);
		/* Producers that overwrite wait for nobody: what they may be writing is not read before they are gone. */
		if (!recording->options->overwrite)
			error = drain(recording, &n);
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
	error = describe_target(recording);
	return error ? error : write_metadata(recording);
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
	return error ? error : open_rings(recording);
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
		error = open_rings(recording);
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

	recording->begin_ns = kymo_now_ns();
	progress(recording, "recording");
	note_thread_names(recording);
	kymo_process_resume(recording->process);
	error = record_until_end(recording, &alive);
	recording->result.seconds = (double)(kymo_now_ns() - recording->begin_ns) / SECOND_NS;
	if (alive && !kymo_process_ended(recording->process, &status)) {
		note_thread_names(recording);
		keep_first(&error, take_out(recording));
	}
	keep_first(&error, finish_rings(recording));
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
		keep_first(&error, write_metadata(&recording));
	recording.result.bytes = recording.output.bytes;
	recording.result.events = recording.output.events;
	recording.result.lost = lost_so_far(&recording);
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
