#include "record/describe.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "probe/code/events.h"
#include "probe/spec/spec_sample.h"
#include "probe/spec/spec_write.h"
#include "probe/threads/threads.h"
#include "proc/process.h"
#include "procfs/info.h"
#include "record/recording.h"
#include "record/wanted.h"
#include "trace/command.h"

static enum kymo_ctf_kind kind_of(const struct kymo_probe_event *event)
{
	switch (event->kind) {
	case KYMO_EVENT_ENTRY:
		return KYMO_CTF_ENTRY;
	case KYMO_EVENT_RETURN:
		return KYMO_CTF_RETURN;
	case KYMO_EVENT_MARKER:
		return KYMO_CTF_MARKER;
	case KYMO_EVENT_SYSCALL:
		return KYMO_CTF_SYSCALL;
	case KYMO_EVENT_SYSRET:
		return KYMO_CTF_SYSRET;
	case KYMO_EVENT_AGGREGATION:
		return KYMO_CTF_AGGREGATION;
	case KYMO_EVENT_FRAME:
		return KYMO_CTF_FRAME;
	case KYMO_EVENT_SOURCE:
		return KYMO_CTF_SOURCE;
	case KYMO_EVENT_BRANCH:
		return KYMO_CTF_BRANCH;
	case KYMO_EVENT_BRANCH_CODE:
		return KYMO_CTF_BRANCH_CODE;
	case KYMO_EVENT_BRANCH_THREAD:
		return KYMO_CTF_BRANCH_THREAD;
	default:
		return KYMO_CTF_PLACE;
	}
}

static struct kymo_error *describe_event(const struct kymo_probe_event *event, struct kymo_ctf_event *ret)
{
	size_t n = event->n_fields;

	*ret = (struct kymo_ctf_event){
		.id = event->id,
		.name = strdup(event->name),
		.fields = calloc(n ? n : 1, sizeof(*ret->fields)),
		.has_faults = kymo_pad_has_faults(event->args, event->n_args),
		.path = strdup(event->path),
		.offset = event->offset,
		.symbol = strdup(event->symbol),
		.build_id = strdup(event->build_id),
		.kind = kind_of(event),
		.aggregated = event->spec ? event->spec->aggregated : 0,
		.waits = event->spec && event->spec->waits,
		.duration = event->spec ? event->spec->duration : 0,
		.source = event->source ? strdup(event->source) : NULL,
		.format = event->format ? strdup(event->format) : NULL,
		.sample = event->spec ? kymo_spec_sample_text(event->spec) : NULL,
		.writes = event->spec ? kymo_spec_write_text(event->spec) : NULL,
		.is_filtered = event->spec && (event->spec->filter || event->spec->is_limited),
		.function_offset = event->function_offset,
	};
	if (!ret->name || !ret->fields || !ret->path || !ret->symbol || !ret->build_id ||
	    !event->source != !ret->source || !event->format != !ret->format ||
	    (event->spec && event->spec->sampling && !ret->sample) ||
	    (event->spec && kymo_spec_writes(event->spec) && !ret->writes))
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++) {
		ret->fields[i].name = strdup(event->fields[i].name);
		ret->fields[i].type = event->fields[i].type;
		ret->fields[i].array_of = event->fields[i].array_of;
		ret->fields[i].naming = kymo_naming_share(event->fields[i].naming);
		ret->fields[i].shape = kymo_shape_share(event->fields[i].shape);
		ret->fields[i].is_list = event->fields[i].is_list;
		ret->has_faults |=
			ret->fields[i].type == KYMO_TYPE_BYTES; /* copies may be a part of what was to be copied */
		ret->n_fields++;
		if (!ret->fields[i].name)
			return &kymo_error_no_memory;
	}
	ret->has_faults |= event->kind == KYMO_EVENT_AGGREGATION; /* keys that were not available */
	ret->has_stack_pointer = event->has_stack_pointer;
	ret->has_stack = event->has_stack;
	ret->n_fields -= ret->has_stack_pointer + ret->has_stack;
	kymo_ctf_event_measure(ret);
	return NULL;
}

/* Bring the schema up to the events that there are by now. */
static struct kymo_error *describe_events(struct recording *recording)
{
	struct kymo_ctf_trace *trace = &recording->output.files.trace;
	const struct kymo_probe_event *events;
	struct kymo_ctf_event *grown;
	struct kymo_error *error = NULL;
	size_t n;

	events = kymo_events_items(recording->run.events, &n);
	grown = realloc(trace->events, (n ? n : 1) * sizeof(*grown));
	if (!grown)
		return &kymo_error_no_memory;
	trace->events = grown;
	for (size_t i = 0; i < n && !error; i++) {
		bool described = i < recording->output.described.n && recording->output.described.items[i];

		if (described || !events[i].is_used)
			continue;
		while (recording->output.described.n <= i)
			if (!kymo_vec_push(&recording->output.described, false))
				return &kymo_error_no_memory;
		error = describe_event(&events[i], &trace->events[trace->n_events]);
		/* With branches each record is an anchor among them, and no record waits for a duration. */
		trace->events[trace->n_events].is_written = recording->wanted.options->n_branches > 0;
		trace->n_events++;
		recording->output.described.items[i] = true;
	}
	return error ? error : kymo_trace_index_events(&recording->output.files);
}

static struct kymo_error *set_env(struct recording *recording, const char *key, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static struct kymo_error *set_env(struct recording *recording, const char *key, const char *format, ...)
{
	kymo_cleanup_free char *value = NULL;
	va_list args;

	va_start(args, format);
	value = kymo_format(format, args);
	va_end(args);
	if (!value)
		return &kymo_error_no_memory;
	return kymo_ctf_trace_set_env(&recording->output.files.trace, key, value);
}

/* "3 processes: 12, 13, 14", those that are asked for. */
static char *join_pids(const struct kymo_record_options *options)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fprintf(out, "%zu processes", options->n_pids);
	for (size_t i = 0; i < options->n_pids; i++)
		fprintf(out, "%s%d", i ? ", " : ": ", options->pids[i]);
	return fclose(out) ? NULL : text;
}

/* For 'kymo snapshot': whose directory it is, as the recorder knows itself, and that this is no snapshot. */
static struct kymo_error *describe_recorder(struct recording *recording)
{
	struct kymo_process_info self;
	struct kymo_error *error = set_env(recording, KYMO_ENV_RECORDER, "%d", getpid());

	if (!kymo_process_peek(getpid(), &self)) /* there is no /proc of its PID namespace */
		self.start_time = 0;
	if (!error)
		error = set_env(recording, KYMO_ENV_RECORDER_START, "%" PRIu64, self.start_time);
	return error ? error : set_env(recording, KYMO_ENV_SNAPSHOT, "0");
}

struct kymo_error *recording_describe_target(struct recording *recording)
{
	static const char *const ways[] = {
		[KYMO_RECORD_INPROC] = "inproc", [KYMO_RECORD_KERNEL] = "kernel", [KYMO_RECORD_PTRACE] = "ptrace"
	};
	pid_t pid = recording->wanted.options->n_pids > 1 ? 0
		    : recording->run.process              ? kymo_process_pid(recording->run.process)
							  : recording->run.pid;
	kymo_cleanup_free char *command = recording->wanted.options->command
						  ? kymo_command_join(recording->wanted.options->command)
					  : recording->wanted.options->n_pids > 1 ? join_pids(recording->wanted.options)
					  : pid                                   ? kymo_command_of(pid)
										  : strdup("every process");
	struct kymo_error *error;

	if (!command)
		return &kymo_error_no_memory;
	error = set_env(recording, "kymo_version", "%s", KYMO_VERSION);
	if (!error)
		error = set_env(recording, KYMO_ENV_STATE, KYMO_STATE_RECORDING);
	if (!error && pid)
		error = set_env(recording, "pid", "%d", pid);
	if (!error)
		error = set_env(recording, "command", "%s", command);
	if (!error)
		error = set_env(recording, "mode", "%s",
				recording_is_flight_recorder(recording->wanted.options) ? "overwrite" : "discard");
	if (!error && recording_is_flight_recorder(recording->wanted.options))
		error = describe_recorder(recording);
	if (!error && recording_has_syscalls(recording->wanted.options))
		error = set_env(recording, "system_calls", "%s", ways[recording->wanted.backend]);
	if (!error && recording->wanted.calls_spec)
		error = set_env(recording, "string_size", "%zu", recording->wanted.options->string_size);
	return error;
}

/* ---- which processes were there --------------------------------------------------------------------------- */

/* Processes from before the recording, and those that later looks find, come before everything. */
static uint64_t stamp(const struct recording *recording)
{
	return recording->run.begin_ns && recording->run.tree ? kymo_clock_tsc() : 0;
}

void recording_note_begin(struct recording *recording, const struct target *target, const struct target *maker)
{
	struct kymo_ctf_trace *trace = &recording->output.files.trace;
	const struct kymo_ctf_process *known =
		maker ? kymo_ctf_trace_process(trace, maker->inner_pid, UINT64_MAX) : NULL;
	kymo_cleanup_free char *command = NULL;

	if (!recording->output.exists)
		return;
	command = known ? strdup(known->command) : kymo_command_of(target->pid);
	kymo_error_destroy(kymo_ctf_trace_add_process(trace, target->inner_pid, target->parent, stamp(recording),
						      command ? command : ""));
}

void recording_note_refused(struct recording *recording, const struct target *target)
{
	if (recording->output.exists)
		kymo_ctf_trace_drop_process(&recording->output.files.trace, target->inner_pid);
}

void recording_note_end(struct recording *recording, const struct target *target)
{
	kymo_ctf_trace_end_process(&recording->output.files.trace, target->inner_pid, kymo_clock_tsc());
}

/* What the thread's own process calls it. Looked up only where that can differ. */
static int32_t inner_tid(const struct target *target, pid_t tid)
{
	if (target->inner_pid == target->pid)
		return tid;
	return tid == target->pid ? target->inner_pid : kymo_inner_tid(tid);
}

void recording_note_thread(struct recording *recording, const struct target *target, pid_t tid, bool is_new,
			   const char *comm)
{
	struct kymo_ctf_trace *trace = &recording->output.files.trace;
	const struct kymo_ctf_thread *known;
	int32_t inner;
	uint64_t begin;

	if (!recording->output.exists || !*comm)
		return;
	inner = inner_tid(target, tid);
	known = is_new ? NULL : kymo_ctf_trace_thread(trace, inner, UINT64_MAX);
	if (known && known->pid == target->inner_pid && !strcmp(known->comm, comm))
		return;
	begin = known && known->pid == target->inner_pid ? known->begin : stamp(recording);
	kymo_error_destroy(kymo_ctf_trace_add_thread(trace, inner, target->inner_pid, begin, comm));
}

static bool is_noted(const struct recording *recording, const struct target *target, pid_t tid)
{
	const struct kymo_ctf_thread *known =
		kymo_ctf_trace_thread(&recording->output.files.trace, inner_tid(target, tid), UINT64_MAX);

	return known && known->pid == target->inner_pid;
}

static void note_threads_of(struct recording *recording, const struct target *target, bool all)
{
	struct dirent *entry;
	char name[64];
	DIR *tasks;

	snprintf(name, sizeof(name), "/proc/%d/task", target->pid);
	tasks = opendir(name);
	while (tasks && (entry = readdir(tasks))) {
		kymo_cleanup_free char *comm = NULL;
		pid_t tid = (pid_t)atoi(entry->d_name);
		char path[400];

		if (entry->d_name[0] == '.' || (!all && !is_noted(recording, target, tid)))
			continue;
		snprintf(path, sizeof(path), "%s/%s/comm", name, entry->d_name);
		if (kymo_read_file(AT_FDCWD, path, 256, &comm, NULL))
			continue;
		comm[strcspn(comm, "\n")] = '\0';
		recording_note_thread(recording, target, tid, false, comm);
	}
	if (tasks)
		closedir(tasks);
}

void recording_note_threads(struct recording *recording, bool all)
{
	for (size_t i = 0; i < recording->run.targets.n; i++)
		if (!recording->run.targets.items[i]->is_sharing)
			note_threads_of(recording, recording->run.targets.items[i], all);
}

void recording_note_thread_ids(struct recording *recording, const struct record_source *source)
{
	recording->run.lacks_thread_ids |= kymo_probes_lack_thread_ids(source->probes);
}

/* ---- the metadata ---------------------------------------------------------------------------- */

struct kymo_error *recording_write_metadata(struct recording *recording)
{
	struct kymo_clock_sample now;
	struct kymo_error *error = describe_events(recording);

	for (size_t i = 0; i < recording->run.sources.n; i++)
		recording_note_thread_ids(recording, recording->run.sources.items[i]);
	if (!error && recording->run.lacks_thread_ids)
		error = set_env(recording, "thread_ids", "process");
	if (error)
		return error;
	kymo_clock_settle(&recording->output.begin);
	now = kymo_clock_sample();
	kymo_clock_describe(&recording->output.begin, &now, &recording->output.files.trace);
	error = kymo_trace_metadata(&recording->output.files);
	if (!error)
		recording->output.n_described = recording->output.files.trace.n_events;
	return error;
}

struct kymo_error *recording_update_metadata(struct recording *recording)
{
	const struct kymo_probe_event *events;
	size_t n, used = 0;

	events = kymo_events_items(recording->run.events, &n);
	for (size_t i = 0; i < n; i++)
		used += events[i].is_used;
	return recording->output.exists && used > recording->output.n_described ? recording_write_metadata(recording)
										: NULL;
}
