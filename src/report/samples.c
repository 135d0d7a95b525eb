#include "report/samples.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "report/text.h"
#include "sym/demangle.h"

#define SHOWN_MAX 10

/* Several places of one probe are told once. */
static bool is_first(const struct kymo_ctf_trace *trace, size_t at)
{
	const struct kymo_ctf_event *event = &trace->events[at];

	for (size_t i = 0; i < at; i++)
		if (trace->events[i].sample && !strcmp(trace->events[i].sample, event->sample) &&
		    !strcmp(trace->events[i].name, event->name))
			return false;
	return true;
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
		n = asprintf(&text, "at most %.*s hits a second of each process are recorded, on the average", (int)digits, sample);
	else if (!strncmp(sample, "first ", 6) && sample[6] && strspn(sample + 6, "0123456789") == strlen(sample + 6))
		n = asprintf(&text, "the first %s hits of each process are recorded", sample + 6);
	else
		return kymo_text_escape(sample, unicode);
	return n < 0 ? NULL : text;
}

struct kymo_error *kymo_samples_write(const struct page *page, const struct kymo_ctf_trace *trace)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->n_events; i++) {
		const struct kymo_ctf_event *event = &trace->events[i];
		kymo_cleanup_free char *shown = NULL, *name = NULL, *sentence = NULL;

		if (!event->sample || !is_first(trace, i) || n++ >= SHOWN_MAX)
			continue;
		shown = kymo_shown(event->name);
		name = shown ? kymo_text_escape(shown, page->unicode) : NULL;
		sentence = sentence_of(event->sample, page->unicode);
		if (!name || !sentence)
			return &kymo_error_no_memory;
		kymo_page_printf(page, INK_ALARM, "sampled: %s: %s\n", name, sentence);
	}
	if (n > SHOWN_MAX)
		kymo_page_printf(page, INK_ALARM, "sampled: %zu more probes; --json has all\n", n - SHOWN_MAX);
	return NULL;
}

void kymo_samples_write_json(FILE *out, const struct kymo_ctf_trace *trace)
{
	for (size_t i = 0; i < trace->n_events; i++) {
		const struct kymo_ctf_event *event = &trace->events[i];
		kymo_cleanup_free char *shown = event->sample && is_first(trace, i) ? kymo_shown(event->name) : NULL;

		if (!shown)
			continue;
		fputs("{\"event\": \"sampled\", \"name\": ", out);
		kymo_json_string(out, shown);
		fputs(", \"sample\": ", out);
		kymo_json_string(out, event->sample);
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
