#include "report/samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "report/functions.h"
#include "report/text.h"
#include "sym/demangle.h"

#define SHOWN_MAX 10

/* Events of one name and sample side by side, as they stand in the trace. */
static int compare_samples(const void *a, const void *b)
{
	const struct kymo_ctf_event *x = *(const struct kymo_ctf_event *const *)a;
	const struct kymo_ctf_event *y = *(const struct kymo_ctf_event *const *)b;
	int order = strcmp(x->name, y->name);

	if (!order)
		order = strcmp(x->sample, y->sample);
	return order ? order : x < y ? -1 : x > y;
}

static int compare_events(const void *a, const void *b)
{
	const struct kymo_ctf_event *x = *(const struct kymo_ctf_event *const *)a;
	const struct kymo_ctf_event *y = *(const struct kymo_ctf_event *const *)b;

	return x < y ? -1 : x > y;
}

/* The sampled events, as they stand in the trace: several locations of one function are told once. A fresh array;
 * NULL when memory is out. */
static const struct kymo_ctf_event **sampled_events(const struct kymo_ctf_trace *trace, size_t *n_ret)
{
	const struct kymo_ctf_event **events = calloc(trace->n_events + 1, sizeof(struct kymo_ctf_event *));
	size_t n = 0, kept = 0;

	for (size_t i = 0; events && i < trace->n_events; i++)
		if (trace->events[i].sample)
			events[n++] = &trace->events[i];
	if (n)
		qsort(events, n, sizeof(struct kymo_ctf_event *), compare_samples);
	for (size_t i = 0; i < n; i++)
		if (!i || strcmp(events[i]->name, events[kept - 1]->name) ||
		    strcmp(events[i]->sample, events[kept - 1]->sample))
			events[kept++] = events[i];
	if (kept)
		qsort(events, kept, sizeof(struct kymo_ctf_event *), compare_events);
	*n_ret = kept;
	return events;
}

/* "one in 100 hits is recorded"; the words of the trace where they are others. Safe. NULL when memory is out. */
static char *sentence_of(const char *sample, bool unicode)
{
	const size_t digits = strspn(sample, "0123456789");
	char *text = NULL;
	int n;

	if (!strncmp(sample, "1/", 2) && sample[2] && strspn(sample + 2, "0123456789") == strlen(sample + 2))
		n = asprintf(&text, "one in %s hits is recorded, counted in each process", sample + 2);
	else if (digits && !strcmp(sample + digits, "/s"))
		n = asprintf(&text, "at most %.*s hits a second of each process are recorded, on the average",
			     (int)digits, sample);
	else if (!strncmp(sample, "first ", 6) && sample[6] && strspn(sample + 6, "0123456789") == strlen(sample + 6))
		n = asprintf(&text, "the first %s hits of each process are recorded", sample + 6);
	else
		return kymo_text_escape(sample, unicode);
	return n < 0 ? NULL : text;
}

/* Functions whose calls can't be paired for that. */
static struct kymo_error *write_partial(const struct page *page, const struct kymo_ctf_trace *trace)
{
	struct functions functions;
	struct kymo_error *error = kymo_functions_init(&functions, trace);

	if (error)
		return error;
	if (functions.n_partial)
		kymo_page_printf(page, INK_ALARM,
				 "no durations of %zu function%s: that takes all entries, or all returns, without "
				 "a sample or a filter\n",
				 functions.n_partial, functions.n_partial > 1 ? "s" : "");
	kymo_functions_deinit(&functions);
	return NULL;
}

/* Whether the event writes, and is the first of several locations of one function that stand side by side. */
static bool is_told_to_write(const struct kymo_ctf_trace *trace, size_t i)
{
	const struct kymo_ctf_event *event = &trace->events[i], *before = i ? event - 1 : NULL;

	return event->writes && !(before && before->writes && !strcmp(before->writes, event->writes) &&
				  !strcmp(before->name, event->name));
}

static struct kymo_error *write_writes(const struct page *page, const struct kymo_ctf_trace *trace)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->n_events; i++) {
		kymo_cleanup_free char *shown = NULL, *name = NULL, *what = NULL;

		if (!is_told_to_write(trace, i) || n++ >= SHOWN_MAX)
			continue;
		shown = kymo_shown(trace->events[i].name);
		name = shown ? kymo_text_escape(shown, page->unicode) : NULL;
		what = kymo_text_escape(trace->events[i].writes, page->unicode);
		if (!name || !what)
			return &kymo_error_no_memory;
		kymo_page_printf(page, INK_ALARM,
				 "written: %s: hits change what the program does (%s), but not those with (fault)\n",
				 name, what);
	}
	if (n > SHOWN_MAX)
		kymo_page_printf(page, INK_ALARM, "written: %zu more functions; --json has all\n", n - SHOWN_MAX);
	return NULL;
}

struct kymo_error *kymo_samples_write(const struct page *page, const struct kymo_ctf_trace *trace)
{
	size_t n;
	kymo_cleanup_free const struct kymo_ctf_event **events = sampled_events(trace, &n);
	struct kymo_error *error = events ? write_writes(page, trace) : &kymo_error_no_memory;

	if (error)
		return error;
	for (size_t i = 0; i < n && i < SHOWN_MAX; i++) {
		kymo_cleanup_free char *shown = kymo_shown(events[i]->name), *name = NULL, *sentence = NULL;

		name = shown ? kymo_text_escape(shown, page->unicode) : NULL;
		sentence = sentence_of(events[i]->sample, page->unicode);
		if (!name || !sentence)
			return &kymo_error_no_memory;
		kymo_page_printf(page, INK_ALARM, "sampled: %s: %s\n", name, sentence);
	}
	if (n > SHOWN_MAX)
		kymo_page_printf(page, INK_ALARM, "sampled: %zu more functions; --json has all\n", n - SHOWN_MAX);
	return write_partial(page, trace);
}

void kymo_samples_write_json(FILE *out, const struct kymo_ctf_trace *trace)
{
	size_t n;
	kymo_cleanup_free const struct kymo_ctf_event **events = sampled_events(trace, &n);

	for (size_t i = 0; i < trace->n_events; i++) {
		kymo_cleanup_free char *shown = NULL;

		if (!is_told_to_write(trace, i))
			continue;
		shown = kymo_shown(trace->events[i].name);
		if (!shown)
			continue;
		fputs("{\"event\": \"written\", \"name\": ", out);
		kymo_json_string(out, shown);
		fputs(", \"what\": ", out);
		kymo_json_string(out, trace->events[i].writes);
		fputs("}\n", out);
	}
	for (size_t i = 0; events && i < n; i++) {
		kymo_cleanup_free char *shown = kymo_shown(events[i]->name);

		if (!shown)
			continue;
		fputs("{\"event\": \"sampled\", \"name\": ", out);
		kymo_json_string(out, shown);
		fputs(", \"sample\": ", out);
		kymo_json_string(out, events[i]->sample);
		fputs("}\n", out);
	}
}

bool kymo_trace_is_sampled(const struct kymo_ctf_trace *trace)
{
	for (size_t i = 0; i < trace->n_events; i++)
		if (trace->events[i].sample)
			return true;
	return false;
}
