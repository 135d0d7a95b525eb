#include "report/filter.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/demangle.h"

#define RETURN "%return"

static bool matches_name(const char *glob, const char *name)
{
	return name && (!strcmp(glob, name) || !fnmatch(glob, name, 0));
}

/* The same of the entry's name: the return goes with it. */
static bool matches_entry(const char *glob, const char *name)
{
	const size_t n = strlen(name), tail = strlen(RETURN);
	kymo_cleanup_free char *entry = NULL;

	if (n <= tail || strcmp(name + n - tail, RETURN))
		return false;
	entry = strndup(name, n - tail);
	return entry && matches_name(glob, entry);
}

/* "openat" of "syscall:openat" */
static const char *short_name(const char *name)
{
	const char *colon = strchr(name, ':');

	return colon ? colon + 1 : name;
}

bool kymo_filter_matches(const char *glob, const struct kymo_pattern *pattern, const struct kymo_ctf_event *event,
			 const struct event_text *text)
{
	return matches_name(glob, short_name(event->name)) || matches_name(glob, event->name) ||
	       matches_name(glob, event->symbol) || matches_name(glob, text->name) ||
	       matches_name(glob, text->function) ||
	       (pattern && event->symbol && kymo_pattern_means(pattern, event->symbol));
}

static bool select_events(struct filter *filter, const char *glob, const struct names *names)
{
	struct kymo_pattern *pattern = kymo_pattern_create(glob);
	bool found = false;

	for (size_t i = 0; i < filter->trace->n_events; i++) {
		const struct kymo_ctf_event *event = &filter->trace->events[i];
		const struct event_text *text = &names->events[i];

		if (!kymo_filter_matches(glob, pattern, event, text) &&
		    !(event->kind == KYMO_CTF_RETURN &&
		      (matches_entry(glob, event->name) || matches_entry(glob, short_name(event->name)) ||
		       matches_entry(glob, text->name))))
			continue;
		filter->is_selected[i] = found = true;
	}
	kymo_pattern_destroy(pattern);
	return found;
}

static bool is_id(const char *word, int32_t *ret)
{
	char *end;
	const long number = strtol(word, &end, 10);

	*ret = (int32_t)number;
	return *word && !*end && number > 0 && number <= INT32_MAX;
}

/* A number, or a glob for the name. */
static bool has_who(const char *const *words, size_t n, int32_t id, const char *name)
{
	for (size_t i = 0; i < n; i++) {
		int32_t wanted;

		if (is_id(words[i], &wanted) ? wanted == id : matches_name(words[i], name))
			return true;
	}
	return false;
}

/* "nginx" of "/usr/sbin/nginx -g daemon off;", and of the title "nginx: worker process". */
static bool has_command(const char *const *words, size_t n, const struct kymo_ctf_process *process)
{
	const size_t length = strcspn(process->command, " ");
	kymo_cleanup_free char *path = strndup(process->command, length);

	if (has_who(words, n, process->pid, path ? basename(path) : NULL))
		return true;
	if (!path || length < 2 || path[length - 1] != ':')
		return false;
	path[length - 1] = '\0';
	return has_who(words, n, process->pid, basename(path));
}

/* The name of a thread that has none of its own is not known; an id may be that of such a one. */
static bool knows_thread(const struct kymo_ctf_trace *trace, const char *word)
{
	int32_t id;

	for (size_t i = 0; i < trace->n_threads; i++)
		if (matches_name(word, trace->threads[i].comm))
			return true;
	return is_id(word, &id);
}

static bool knows_process(const struct kymo_ctf_trace *trace, const char *const *word)
{
	for (size_t i = 0; i < trace->n_processes; i++)
		if (has_command(word, 1, &trace->processes[i]))
			return true;
	return false;
}

static struct kymo_error *check_who(const struct kymo_ctf_trace *trace, const struct kymo_report_filter *words)
{
	for (size_t i = 0; i < words->n_threads; i++)
		if (!knows_thread(trace, words->threads[i]))
			return kymo_error_create(
				KYMO_ERROR_NOT_FOUND,
				"no thread of this recording has the name '%s': 'kymo report --all' shows all",
				words->threads[i]);
	for (size_t i = 0; i < words->n_processes; i++)
		if (!knows_process(trace, &words->processes[i]))
			return kymo_error_create(KYMO_ERROR_NOT_FOUND,
						 "no process of this recording has the id or the program '%s': 'kymo "
						 "report --all' shows all",
						 words->processes[i]);
	return NULL;
}

struct kymo_error *kymo_filter_init(struct filter *filter, const struct kymo_report_filter *words,
				    const struct kymo_ctf_trace *trace, const struct names *names)
{
	struct kymo_error *error = check_who(trace, words);

	*filter = (struct filter){ .words = words, .trace = trace, .to = UINT64_MAX };
	if (error || !words->n_probes)
		return error;
	filter->is_selected = calloc(trace->n_events + 1, sizeof(*filter->is_selected));
	if (!filter->is_selected)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < words->n_probes; i++) {
		if (select_events(filter, words->probes[i], names))
			continue;
		kymo_filter_deinit(filter);
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "no probe of this recording matches '%s': 'kymo report --all' names them all",
					 words->probes[i]);
	}
	return NULL;
}

void kymo_filter_deinit(struct filter *filter)
{
	free(filter->is_selected);
	filter->is_selected = NULL;
}

static uint64_t ticks_of(const struct filter *filter, uint64_t ns)
{
	const unsigned __int128 ticks = (unsigned __int128)ns * filter->trace->clock_frequency / 1000000000;

	return ticks > UINT64_MAX - filter->origin ? UINT64_MAX - filter->origin : (uint64_t)ticks;
}

/* Times are told from the first record. */
static void set_origin(struct filter *filter, uint64_t tsc)
{
	filter->has_origin = true;
	filter->origin = tsc;
	if (filter->words->has_from && filter->words->from_ns)
		filter->from = tsc + ticks_of(filter, filter->words->from_ns);
	if (filter->words->has_to)
		filter->to = tsc + ticks_of(filter, filter->words->to_ns);
}

bool kymo_filter_is_one_thread(const struct filter *filter)
{
	int32_t id;

	return filter->words->n_threads == 1 && is_id(filter->words->threads[0], &id);
}

struct kymo_error *kymo_filter_check(const struct filter *filter)
{
	if (!filter->words->n_threads || filter->has_met_thread || !filter->has_origin)
		return NULL;
	return kymo_error_create(KYMO_ERROR_NOT_FOUND,
				 "this recording has no record of thread %s: 'kymo report --by-thread --all' shows all",
				 filter->words->threads[0]);
}

bool kymo_filter_takes(struct filter *filter, const struct kymo_ctf_record *record)
{
	const struct kymo_report_filter *words = filter->words;
	const struct kymo_ctf_thread *thread;
	const struct kymo_ctf_process *process;

	if (!filter->has_origin)
		set_origin(filter, record->tsc);
	if (words->n_threads) {
		thread = kymo_ctf_trace_thread(filter->trace, record->tid, record->tsc);
		if (!has_who(words->threads, words->n_threads, record->tid, thread ? thread->comm : NULL))
			return false;
		filter->has_met_thread = true;
	}
	if (!words->n_processes)
		return true;
	process = kymo_ctf_trace_process_of(filter->trace, record->tid, record->tsc);
	return process && has_command(words->processes, words->n_processes, process);
}
