#include "report/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/text.h"

/* A comm has 15 bytes; a hostile trace's may have more. */
#define NAME_COLUMNS 24
#define NAME_BYTES 100

static bool escape_all(struct names *names, bool unicode)
{
	const struct kymo_ctf_trace *trace = names->trace;

	for (size_t i = 0; i < trace->n_threads; i++) {
		names->threads[i] = kymo_text_escape(trace->threads[i].comm, unicode);
		if (!names->threads[i])
			return false;
	}
	for (size_t i = 0; i < trace->n_processes; i++) {
		names->processes[i] = kymo_text_escape(trace->processes[i].command, unicode);
		if (!names->processes[i])
			return false;
	}
	return true;
}

struct kymo_error *kymo_names_init(struct names *names, const struct kymo_ctf_trace *trace, bool unicode)
{
	struct kymo_error *error;

	*names = (struct names){
		.trace = trace,
		.threads = calloc(trace->n_threads + 1, sizeof(char *)),
		.processes = calloc(trace->n_processes + 1, sizeof(char *)),
		.has_processes = kymo_ctf_trace_n_pids(trace) > 1,
	};
	if (names->threads && names->processes && escape_all(names, unicode))
		error = kymo_event_texts_create(trace, unicode, &names->events);
	else
		error = &kymo_error_no_memory;
	if (error)
		kymo_names_deinit(names);
	return error;
}

void kymo_names_deinit(struct names *names)
{
	for (size_t i = 0; names->threads && i < names->trace->n_threads; i++)
		free(names->threads[i]);
	for (size_t i = 0; names->processes && i < names->trace->n_processes; i++)
		free(names->processes[i]);
	if (names->events)
		kymo_event_texts_destroy(names->events, names->trace);
	free(names->threads);
	free(names->processes);
	*names = (struct names){ 0 };
}

const char *kymo_names_thread(const struct names *names, const struct thread *thread)
{
	return thread->entry ? names->threads[thread->entry - names->trace->threads] : NULL;
}

void kymo_names_label(const struct names *names, const struct thread *thread, char label[THREAD_LABEL])
{
	const char *name = kymo_names_thread(names, thread);
	unsigned int columns;
	size_t fits = name ? kymo_text_fit(name, NAME_COLUMNS, &columns) : 0;
	const char *space = name ? " " : "";

	/* Not within a character. */
	fits = fits < NAME_BYTES ? fits : 0;
	if (!names->has_processes)
		snprintf(label, THREAD_LABEL, "%6" PRId32 "%s%.*s", thread->tid, space, (int)fits, name ? name : "");
	else if (thread->process)
		snprintf(label, THREAD_LABEL, "%6" PRId32 "/%-6" PRId32 "%s%.*s", thread->process->pid, thread->tid,
			 space, (int)fits, name ? name : "");
	else
		snprintf(label, THREAD_LABEL, "     -/%-6" PRId32 "%s%.*s", thread->tid, space, (int)fits,
			 name ? name : "");
}
