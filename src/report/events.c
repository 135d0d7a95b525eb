#include "report/events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "report/lines.h"
#include "report/losses.h"
#include "report/text.h"

struct writer {
	const struct page *page;
	const struct kymo_ctf_reader *reader;
	const struct kymo_ctf_trace *trace;
	const struct names *names;
	struct event_text *texts;	/* as trace->events */
	struct threads threads;
	bool wall;
	bool started;
	uint64_t first;			/* TSC of the first record, if started */
	time_t date_second;		/* what `date` says */
	char date[64];
	size_t n_losses;		/* that were written */
	struct loss_total written;
	size_t labelled;		/* the thread that `label` is of, if it has text; */
	const struct kymo_ctf_process *labelled_process;	/* and its process then */
	char label[THREAD_LABEL];
};

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
	write_time(w, loss->begin);
	if (kymo_loss_is_in_vforks(loss))
		kymo_page_text(w->page, INK_PLAIN, " [---] ");
	else
		kymo_page_printf(w->page, INK_PLAIN, " [%03" PRIu32 "] ", loss->cpu);
	kymo_loss_write(w->page, w->trace, loss);
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

static struct kymo_error *thread_text(struct writer *w, const struct kymo_ctf_record *record, const char **ret)
{
	const struct thread *thread;
	struct kymo_error *error;
	size_t at;

	error = kymo_threads_find(&w->threads, record, &at);
	if (error)
		return error;
	*ret = w->label;
	if (at == NO_THREAD) {
		kymo_names_label(w->names, &(struct thread){ .tid = record->tid }, w->label);
		w->labelled = NO_THREAD;
		return NULL;
	}
	thread = &w->threads.items.items[at];
	if (*w->label && w->labelled == at && w->labelled_process == thread->process)
		return NULL;
	kymo_names_label(w->names, thread, w->label);
	w->labelled = at;
	w->labelled_process = thread->process;
	return NULL;
}

static struct kymo_error *write_record(struct writer *w, const struct kymo_ctf_record *record)
{
	const struct event_text *text = &w->texts[record->event - w->trace->events];
	FILE *out = w->page->out;
	const char *thread;
	struct kymo_error *error = thread_text(w, record, &thread);

	if (error)
		return error;
	write_time(w, record->tsc);
	fprintf(out, " [%03" PRIu32 "] ", record->cpu);
	fputs_unlocked(thread, out);
	putc_unlocked(' ', out);
	kymo_page_text(w->page, INK_HEAD, text->name);
	for (uint32_t i = 0; i < record->event->n_fields; i++) {
		putc_unlocked(' ', out);
		fputs_unlocked(text->fields[i], out);
		putc_unlocked('=', out);
		kymo_value_write(w->page, record, i);
	}
	putc_unlocked('\n', out);
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
		error = write_record(w, &record);
		if (error)
			return error;
		/* A reader that has gone away (a pipe to head) is found out by the caller. */
		if (ferror_unlocked(w->page->out))
			return NULL;
	}
	if (error)
		return error;
	write_losses(w, UINT64_MAX);
	return kymo_lines_finish(w->page, w->reader, &w->written);
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
	struct kymo_error *error = kymo_threads_init(&w.threads, w.trace);

	if (!error)
		error = kymo_event_texts_create(w.trace, page->unicode, &w.texts);
	if (!error)
		error = write_all(&w, reader);
	kymo_event_texts_destroy(w.texts, w.trace);
	kymo_threads_deinit(&w.threads);
	return error;
}
