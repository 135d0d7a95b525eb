#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "record/recording.h"

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

struct kymo_error *recording_describe_target(struct recording *recording)
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

void recording_note_threads(struct recording *recording)
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

struct kymo_error *recording_write_metadata(struct recording *recording)
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
