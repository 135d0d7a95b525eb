#include "report/events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "report/event_json.h"
#include "report/frames.h"
#include "report/lines.h"
#include "report/losses.h"
#include "report/syscalls.h"
#include "report/text.h"

enum { SECONDS_COLUMNS = 14, WALL_COLUMNS = 29 };

struct writer {
	const struct page *page;
	const struct kymo_ctf_reader *reader;
	const struct kymo_ctf_trace *trace;
	const struct names *names;
	struct filter *filter;
	struct threads threads;
	bool wall, json, raw;
	struct kymo_frame_tree rows;
	bool started;
	uint64_t first;     /* TSC of the first record, if started */
	time_t date_second; /* what `date` says */
	char date[64];
	size_t n_losses; /* that were written */
	struct loss_total written;
	size_t labeled;                                 /* the thread that `label` is of, if it has text; */
	const struct kymo_ctf_process *labeled_process; /* and its process then */
	char label[THREAD_LABEL];
	/* Where system calls are lines: */
	bool joins;
	struct calls calls;
	struct syscalls syscalls;
	size_t n_known;                       /* threads that have a record */
	const struct kymo_ctf_record *record; /* at hand; NULL after the last */
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
	ns = tsc >= w->first ? (int64_t)kymo_ctf_duration_ns(w->trace, tsc - w->first)
			     : (int64_t)(0 - kymo_ctf_duration_ns(w->trace, w->first - tsc));
	kymo_text_seconds(number, ns, 9);
	kymo_page_right(w->page, INK_DIM, number, SECONDS_COLUMNS);
}

/* Before a line of its own. */
static void end_line(struct writer *w)
{
	if (kymo_syscalls_interrupt(&w->syscalls))
		fputs_unlocked(" <unfinished ...>\n", w->page->out);
}

static void write_loss(struct writer *w, const struct kymo_ctf_loss *loss)
{
	w->written.events += loss->events;
	w->written.packets += loss->packets;
	if (loss->end < w->filter->from || loss->begin > w->filter->to)
		return;
	if (w->json) {
		kymo_event_json_loss(w->page->out, w->trace, loss);
		return;
	}
	end_line(w);
	write_time(w, loss->begin < w->first ? w->first : loss->begin);
	if (kymo_loss_is_in_vforks(loss))
		kymo_page_text(w->page, INK_PLAIN, " [---] ");
	else
		kymo_page_printf(w->page, INK_PLAIN, " [%03" PRIu32 "] ", loss->cpu);
	kymo_loss_write(w->page, w->trace, loss);
}

/* Write the losses that began up to `until`. */
static void write_losses_until(struct writer *w, uint64_t until)
{
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(w->reader, &n);

	for (; w->n_losses < n && losses[w->n_losses].begin <= until; w->n_losses++)
		write_loss(w, &losses[w->n_losses]);
}

static struct thread thread_at(const struct writer *w, size_t at, int32_t tid)
{
	return at == NO_THREAD ? (struct thread){ .tid = tid } : w->threads.items.items[at];
}

static void write_event_thread(struct writer *w, size_t at, int32_t tid)
{
	const struct thread found = thread_at(w, at, tid), *thread = &found;

	if (at == NO_THREAD || !*w->label || w->labeled != at || w->labeled_process != thread->process)
		kymo_names_label(w->names, thread, w->label);
	w->labeled = at;
	w->labeled_process = thread->process;
	fputs_unlocked(w->label, w->page->out);
	putc_unlocked(' ', w->page->out);
}

/* A line of this thread, at the time of the record at hand. What is known only at the end has no time, and a row of a
 * table has no thread. */
static void begin_line(struct writer *w, size_t thread, int32_t tid)
{
	end_line(w);
	if (w->record && w->record->cpu == KYMO_CTF_NO_CPU) {
		write_time(w, w->record->tsc);
		fputs_unlocked(" [---] ", w->page->out);
		if (w->record->event->kind == KYMO_CTF_AGGREGATION)
			return;
	} else if (w->record) {
		write_time(w, w->record->tsc);
		fprintf(w->page->out, " [%03" PRIu32 "] ", w->record->cpu);
	} else {
		kymo_page_spaces(w->page, w->wall ? WALL_COLUMNS : SECONDS_COLUMNS);
		fputs_unlocked(" [---] ", w->page->out);
	}
	write_event_thread(w, thread, tid);
}

static void write_record(struct writer *w, size_t thread, const struct kymo_ctf_record *record)
{
	const struct event_text *text = &w->names->events[record->event - w->trace->events];
	const struct thread found = thread_at(w, thread, record->tid);
	FILE *out = w->page->out;

	if (w->json) {
		kymo_event_json_record(w->page->out, w->trace, &found, text->plain_name, record, &w->rows, w->raw);
		return;
	}
	begin_line(w, thread, record->tid);
	kymo_page_text(w->page, INK_HEAD, text->name);
	for (uint32_t i = 0; i < record->event->n_fields; i++) {
		putc_unlocked(' ', out);
		fputs_unlocked(text->fields[i], out);
		putc_unlocked('=', out);
		kymo_value_write(w->page, record, i);
	}
	if (w->raw && record->event->has_stack_pointer)
		fprintf(out, " " KYMO_STACK_POINTER_FIELD "=0x%" PRIx64, kymo_ctf_stack_pointer(record));
	putc_unlocked('\n', out);
	if (record->event->has_stack)
		kymo_stack_write(w->page, &w->rows, kymo_ctf_stack(record), 8);
}

/* ---- system calls ---------------------------------------------------------------------------- */

/* What is new of the text. The line is whole then, unless it is open. */
static void write_new_text(struct writer *w, bool is_open)
{
	const struct kymo_line *text = &w->syscalls.text;

	fwrite_unlocked(text->data + w->syscalls.done, 1, text->n - w->syscalls.done, w->page->out);
	if (!is_open)
		putc_unlocked('\n', w->page->out);
}

/* That has come to its end just now. */
static void write_object(struct writer *w, size_t thread, bool has_result, uint64_t ns)
{
	FILE *out = w->page->out;

	kymo_event_json_begin(out, "syscall", &w->threads.items.items[thread],
			      kymo_ctf_wall_ns(w->trace, w->syscalls.begin));
	kymo_syscalls_write_json(&w->syscalls, out, has_result, ns);
	fputs_unlocked("}\n", out);
}

static struct kymo_error *write_entry(struct writer *w, size_t thread, const struct kymo_ctf_record *record,
				      struct frame *frame)
{
	const bool waits = kymo_syscalls_waits(&w->syscalls, record);
	struct kymo_error *error;

	if (!waits)
		begin_line(w, thread, record->tid);
	error = kymo_syscalls_enter(&w->syscalls, thread, record, &frame->line);
	if (!error && !waits)
		write_new_text(w, frame->line != 0);
	else if (!error && w->json && !frame->line)
		write_object(w, thread, false, 0);
	return error;
}

static void write_exit(struct writer *w, size_t thread, const struct kymo_ctf_record *record, const struct step *step)
{
	const bool is_new = kymo_syscalls_leave(&w->syscalls, step->frame.line, record, step->ns);

	if (w->json) {
		write_object(w, thread, true, step->ns);
		return;
	}
	if (is_new)
		begin_line(w, thread, record->tid);
	write_new_text(w, false);
}

static void give_up_syscall(struct writer *w, size_t thread, uint64_t number)
{
	const bool is_new = kymo_syscalls_give_up(&w->syscalls, number);

	if (w->json) {
		write_object(w, thread, false, 0);
		return;
	}
	if (is_new)
		begin_line(w, thread, w->threads.items.items[thread].tid);
	write_new_text(w, false);
}

static void on_left(void *data, size_t thread, const struct frame *frame)
{
	struct writer *w = data;

	if (kymo_syscalls_is_open(&w->syscalls, thread, frame))
		give_up_syscall(w, thread, frame->line);
}

static void give_up_open_line(struct writer *w)
{
	if (w->syscalls.open)
		give_up_syscall(w, kymo_syscalls_at(&w->syscalls, w->syscalls.open)->thread, w->syscalls.open);
}

/* Calls of threads that had this id; or of all, at the end of the records. */
static struct kymo_error *give_up_those_of(struct writer *w, const int32_t *tid)
{
	kymo_cleanup_free uint64_t *numbers = NULL;
	size_t n;

	if (!tid)
		give_up_open_line(w);
	numbers = kymo_syscalls_left(&w->syscalls, &n);
	if (!numbers)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++) {
		const size_t thread = kymo_syscalls_at(&w->syscalls, numbers[i])->thread;

		if (!tid || *tid == w->threads.items.items[thread].tid)
			give_up_syscall(w, thread, numbers[i]);
		if (w->syscalls.text.is_cut)
			return &kymo_error_no_memory;
	}
	return NULL;
}

/* A thread that is new may have the id of one that has ended, or has become another by exec. */
static struct kymo_error *meet_thread(struct writer *w, size_t thread)
{
	if (thread == NO_THREAD || thread < w->n_known)
		return NULL;
	w->n_known = thread + 1;
	return w->threads.items.items[thread].is_fixed ? NULL
						       : give_up_those_of(w, &w->threads.items.items[thread].tid);
}

static bool has_result(const struct kymo_ctf_record *record)
{
	return record->event->n_fields && !(record->faults & 1) && kymo_type_is_integer(record->event->fields[0].type);
}

/* `is_done_ret`: the record is shown, as a part of a call. */
static struct kymo_error *join_entry(struct writer *w, size_t thread, const struct kymo_ctf_record *record,
				     bool *is_done_ret)
{
	struct kymo_syscall_call call;
	struct step step;
	bool ends;
	struct kymo_error *error = meet_thread(w, thread);

	*is_done_ret = !kymo_filter_shows(w->filter, record);
	if (!error)
		error = kymo_calls_add(&w->calls, thread, record, &step);
	if (error)
		return error;
	ends = step.has_frame && kymo_syscalls_is_open(&w->syscalls, thread, &step.frame);
	if (step.kind == STEP_ENTER && kymo_syscalls_read(record, &call)) {
		if (!*is_done_ret)
			error = write_entry(w, thread, record, step.entered);
		*is_done_ret = true;
	} else if (ends && step.kind == STEP_LEAVE && has_result(record)) {
		*is_done_ret = true;
		write_exit(w, thread, record, &step);
	} else if (ends) { /* a loss may have taken its own return, and the entry of this one */
		give_up_syscall(w, thread, step.frame.line);
	} else if (step.has_frame && !kymo_filter_has_time(w->filter, step.frame.begin)) {
		*is_done_ret |= record->event->kind == KYMO_CTF_SYSRET;
	}
	return error ? error : w->syscalls.text.is_cut ? &kymo_error_no_memory : NULL;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static struct kymo_error *write_next(struct writer *w, const struct kymo_ctf_record *record)
{
	size_t thread;
	bool is_done = false;
	struct kymo_error *error = kymo_threads_find(&w->threads, record, &thread);

	if (error)
		return error;
	w->record = record;
	if (w->joins)
		error = join_entry(w, thread, record, &is_done);
	else
		is_done = !kymo_filter_shows(w->filter, record);
	if (!error && !is_done)
		write_record(w, thread, record);
	return error;
}

static struct kymo_error *write_records(struct writer *w, struct kymo_ctf_reader *reader)
{
	struct kymo_ctf_record record;
	struct kymo_error *error;

	while (kymo_next_record(reader, &w->rows, &record, &error)) {
		if (!w->started) {
			w->started = true;
			w->first = record.tsc;
		}
		if (!kymo_filter_takes(w->filter, &record))
			continue;
		/* After it nothing is shown but the ends of calls. */
		if (record.tsc > w->filter->to && !w->joins)
			break;
		write_losses_until(w, record.tsc);
		error = write_next(w, &record);
		if (error)
			return error;
		/* A reader that has gone away (a pipe to head) is found out by the caller. */
		if (ferror_unlocked(w->page->out))
			return NULL;
	}
	w->record = NULL;
	if (!error)
		error = give_up_those_of(w, NULL);
	if (error)
		return error;
	write_losses_until(w, UINT64_MAX);
	if (!w->json)
		return kymo_lines_finish(w->page, w->reader, &w->written);
	kymo_event_json_finish(w->page->out, w->reader, &w->written);
	return NULL;
}

static struct kymo_error *init_writer(struct writer *w)
{
	struct kymo_error *error = NULL;

	kymo_threads_init(&w->threads, w->trace);
	kymo_syscalls_init(&w->syscalls, w->trace, w->json);
	if (w->joins)
		error = kymo_calls_init(&w->calls, w->reader, &w->threads);
	w->calls.left = w->calls.forgotten = on_left;
	w->calls.data = w;
	return error;
}

static void deinit_writer(struct writer *w)
{
	kymo_calls_deinit(&w->calls);
	kymo_syscalls_deinit(&w->syscalls);
	kymo_frame_tree_deinit(&w->rows);
	kymo_threads_deinit(&w->threads);
}

struct kymo_error *kymo_events_write(struct kymo_ctf_reader *reader, const struct names *names, struct filter *filter,
				     const struct kymo_report_options *options, const struct page *page)
{
	struct writer w = {
		.page = page,
		.reader = reader,
		.trace = kymo_ctf_reader_trace(reader),
		.names = names,
		.filter = filter,
		.wall = options->wall,
		.json = options->json,
		.raw = options->raw,
		.joins = !options->raw && kymo_syscalls_has_any(kymo_ctf_reader_trace(reader)),
	};
	struct kymo_error *error = init_writer(&w);

	if (!error)
		error = write_records(&w, reader);
	deinit_writer(&w);
	return error;
}
