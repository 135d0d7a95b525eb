#include "report/events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "report/losses.h"
#include "report/text.h"

/* Text of one event that is the same on each of its lines. */
struct event_text {
	char *name;
	char *fields[KYMO_EVENT_MAX_ARGS];	/* " size=" */
};

struct writer {
	const struct page *page;
	const struct kymo_ctf_reader *reader;
	const struct kymo_ctf_trace *trace;
	const struct names *names;
	struct event_text *texts;	/* as trace->events */
	bool wall;
	bool started;
	uint64_t first;			/* TSC of the first record, if started */
	time_t date_second;		/* what `date` says */
	char date[64];
	size_t n_losses;		/* that were written */
	struct loss_total written;
	int32_t tid;			/* of the last record; its text: */
	char thread[128];
};

static void deinit_texts(struct writer *w)
{
	for (size_t i = 0; w->texts && i < w->trace->n_events; i++) {
		free(w->texts[i].name);
		for (size_t j = 0; j < KYMO_EVENT_MAX_ARGS; j++)
			free(w->texts[i].fields[j]);
	}
	free(w->texts);
}

static bool init_texts(struct writer *w)
{
	w->texts = calloc(w->trace->n_events + 1, sizeof(*w->texts));
	if (!w->texts)
		return false;
	for (size_t i = 0; i < w->trace->n_events; i++) {
		const struct kymo_ctf_event *event = &w->trace->events[i];

		w->texts[i].name = kymo_text_escape(event->name, w->page->unicode);
		if (!w->texts[i].name)
			return false;
		for (uint32_t j = 0; j < event->n_fields; j++) {
			kymo_cleanup_free char *safe = kymo_text_escape(event->fields[j].name, w->page->unicode);

			if (!safe || asprintf(&w->texts[i].fields[j], " %s=", safe) < 0)
				return false;
		}
	}
	return true;
}

static void write_wall_time(struct writer *w, uint64_t tsc)
{
	uint64_t ns = kymo_ctf_wall_ns(w->trace, tsc);
	time_t second = (time_t)(ns / 1000000000);
	struct tm parts;

	if (!*w->date || second != w->date_second) {
		w->date_second = second;
		if (!localtime_r(&second, &parts) || !strftime(w->date, sizeof(w->date), "%Y-%m-%d %H:%M:%S", &parts))
			snprintf(w->date, sizeof(w->date), "%" PRIu64, (uint64_t)second);
	}
	kymo_page_printf(w->page, INK_DIM, "%s.%09" PRIu64, w->date, ns % 1000000000);
}

static void write_time(struct writer *w, uint64_t tsc)
{
	char number[TEXT_NUMBER];
	int64_t ns;

	if (w->wall) {
		write_wall_time(w, tsc);
		return;
	}
	ns = tsc >= w->first ? (int64_t)kymo_ctf_duration_ns(w->trace, tsc - w->first) :
			       (int64_t)(0 - kymo_ctf_duration_ns(w->trace, w->first - tsc));
	kymo_text_seconds(number, ns, 9);
	kymo_page_right(w->page, INK_DIM, number, 14);
}

static void write_loss(struct writer *w, const struct kymo_ctf_loss *loss)
{
	uint64_t ticks = loss->end > loss->begin ? loss->end - loss->begin : 0;
	char number[TEXT_NUMBER], span[TEXT_NUMBER];

	write_time(w, loss->begin);
	kymo_page_printf(w->page, INK_PLAIN, " [%03" PRIu32 "] ", loss->cpu);
	kymo_text_span(span, kymo_ctf_duration_ns(w->trace, ticks), w->page->unicode);
	kymo_text_count(number, loss->events ? loss->events : loss->packets);
	kymo_page_printf(w->page, INK_ALARM, loss->events ? "--- lost %s %s" : "--- overwritten: %s %s", number,
			 loss->events ? (loss->events == 1 ? "event" : "events") :
					(loss->packets == 1 ? "packet" : "packets"));
	/* What was overwritten before the first packet has no beginning. */
	if (ticks)
		kymo_page_printf(w->page, INK_ALARM, " within %s", span);
	kymo_page_text(w->page, INK_ALARM, " ---");
	putc('\n', w->page->out);
	w->written.events += loss->events;
	w->written.packets += loss->packets;
}

/* Those that began up to `until`. */
static void write_losses(struct writer *w, uint64_t until)
{
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(w->reader, &n);

	for (; w->n_losses < n && losses[w->n_losses].begin <= until; w->n_losses++)
		write_loss(w, &losses[w->n_losses]);
}

static const char *thread_text(struct writer *w, int32_t tid)
{
	const struct thread_name *name;
	unsigned int columns;
	size_t fits = 0;

	if (w->tid == tid && *w->thread)
		return w->thread;
	name = kymo_names_find(w->names, tid);
	if (name)
		fits = kymo_text_fit(name->safe, 24, &columns);
	fits = fits < 100 ? fits : 0;
	snprintf(w->thread, sizeof(w->thread), "%6" PRId32 "%s%.*s", tid, name ? " " : "", (int)fits,
		 name ? name->safe : "");
	w->tid = tid;
	return w->thread;
}

static void write_value(FILE *out, uint64_t value, enum kymo_type type)
{
	char digits[24], *at = digits + sizeof(digits);
	bool is_hex = kymo_type_is_hex(type), negative = kymo_type_is_signed(type) && (int64_t)value < 0;
	unsigned int base = is_hex ? 16 : 10;

	if (negative)
		value = 0 - value;
	*--at = '\0';
	do {
		*--at = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	if (negative)
		*--at = '-';
	if (is_hex) {
		*--at = 'x';
		*--at = '0';
	}
	fputs_unlocked(at, out);
}

static void write_record(struct writer *w, const struct kymo_ctf_record *record)
{
	const struct event_text *text = &w->texts[record->event - w->trace->events];
	FILE *out = w->page->out;

	write_time(w, record->tsc);
	fprintf(out, " [%03" PRIu32 "] ", record->cpu);
	fputs_unlocked(thread_text(w, record->tid), out);
	putc_unlocked(' ', out);
	kymo_page_text(w->page, INK_HEAD, text->name);
	for (uint32_t i = 0; i < record->event->n_fields; i++) {
		fputs_unlocked(text->fields[i], out);
		if (record->faults & 1u << i)
			kymo_page_text(w->page, INK_ALARM, "(fault)");
		else
			write_value(out, record->values[i], record->event->fields[i].type);
	}
	putc_unlocked('\n', out);
}

/* Losses whose place in time came to light only when later records had been written. */
static void write_missed_losses(struct writer *w)
{
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(w->reader, &n);
	struct loss_total total = kymo_losses_total(losses, n);

	if (total.events != w->written.events)
		kymo_page_printf(w->page, INK_ALARM, "--- lost %" PRIu64 " events in all ---\n", total.events);
	if (total.packets != w->written.packets)
		kymo_page_printf(w->page, INK_ALARM, "--- %" PRIu64 " packets overwritten in all ---\n", total.packets);
}

static struct kymo_error *write_warnings(const struct writer *w)
{
	size_t n;
	const char *const *warnings = kymo_ctf_reader_warnings(w->reader, &n);

	for (size_t i = 0; i < n; i++) {
		kymo_cleanup_free char *safe = kymo_text_escape(warnings[i], w->page->unicode);

		if (!safe)
			return &kymo_error_no_memory;
		kymo_page_printf(w->page, INK_ALARM, "--- damaged: %s ---\n", safe);
	}
	return NULL;
}

static struct kymo_error *write_all(struct writer *w, struct kymo_ctf_reader *reader)
{
	struct kymo_ctf_record record;
	struct kymo_error *error;

	while (kymo_ctf_next(reader, &record, &error)) {
		if (!w->started) {
			w->started = true;
			w->first = record.tsc;
		}
		write_losses(w, record.tsc);
		write_record(w, &record);
		/* A reader that has gone away (a pipe to head) is found out by the caller. */
		if (ferror_unlocked(w->page->out))
			return NULL;
	}
	if (error)
		return error;
	write_losses(w, UINT64_MAX);
	write_missed_losses(w);
	return write_warnings(w);
}

struct kymo_error *kymo_events_write(struct kymo_ctf_reader *reader, const struct names *names, bool wall,
				     const struct page *page)
{
	struct writer w = {
		.page = page,
		.reader = reader,
		.trace = kymo_ctf_reader_trace(reader),
		.names = names,
		.wall = wall,
	};
	struct kymo_error *error = &kymo_error_no_memory;

	if (init_texts(&w))
		error = write_all(&w, reader);
	deinit_texts(&w);
	return error;
}
