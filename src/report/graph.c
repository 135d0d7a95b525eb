/*
 * Lines stand in the order in which calls begin. Whether a call is one line or opens a block is known only when its
 * thread's next record has come; until then its line waits, and all later lines, also of other threads, wait with it. A
 * call that waits for longer than MAX_LINES of others opens a block.
 */
#include "report/graph.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "report/calls.h"
#include "report/frames.h"
#include "report/latency.h"
#include "report/lines.h"
#include "report/syscalls.h"
#include "sym/demangle.h"

#define MAX_LINES 4096u /* a power of two */
#define MAX_INDENT 64u  /* levels */
#define HELD_MAX (1u << 17)
#define HELD_BYTES_MAX ((off_t)16 << 20)
#define THREAD_COLUMNS 24
#define PROCESS_COLUMNS 32

enum line_kind {
	LINE_WAITS, /* the entry of a call; one of the next three will be known */
	LINE_LEAF,
	LINE_OPEN,
	LINE_LEFT, /* without a return, with nothing in it */
	LINE_CLOSE,
	LINE_CALL, /* of a function whose returns are not recorded */
	LINE_PLACE,
	LINE_LOSS,
};

struct line {
	enum line_kind kind;
	uint32_t level;
	struct thread thread;               /* as it was; a copy, since threads move */
	const struct kymo_ctf_event *entry; /* of CLOSE, which may have no record of it */
	struct kymo_ctf_record record;      /* but of CLOSE */
	struct kymo_ctf_record leave;       /* of LEAF and CLOSE, if has_leave */
	char *strings, *leave_strings;      /* theirs; may be NULL */
	bool has_leave, has_ns;
	uint64_t ns;
	const char *note; /* or NULL */
	struct kymo_ctf_loss loss;
};

struct graph {
	const struct page *page;
	/* What is written of the first HELD_MAX records is held back, as they may have to be read anew with fates. */
	const struct page *shown;
	struct page held; /* of `held_text`; without `out` where nothing is held */
	char *held_text;
	size_t held_size;
	uint32_t n_held; /* records */
	const struct kymo_ctf_trace *trace;
	const struct kymo_ctf_reader *reader;
	const struct names *names;
	struct filter *filter;
	bool *matches; /* likewise; what the function's glob says */
	struct threads threads;
	struct calls calls;
	struct syscalls syscalls;
	struct kymo_line text;      /* of the line that is being written */
	KYMO_VEC(uint64_t) waiting; /* as threads.items: the line of the last entry, or 0 */
	struct line *lines;         /* a ring */
	uint64_t first, next;       /* numbers of lines; from 1 */
	bool has_threads;           /* a column of them */
	bool has_tid;               /* there was a record, of `tid` */
	int32_t tid;
	size_t n_losses; /* that were written */
	struct loss_total written;
	bool no_memory;
};

/* ---- writing a line -------------------------------------------------------------------------- */

static void write_duration(const struct page *page, uint64_t ns)
{
	double value = (double)ns / 1e3;
	const char *unit = page->unicode ? "µs" : "us";

	if (ns >= 1000000000) {
		value = (double)ns / 1e9;
		unit = "s ";
	} else if (ns >= 1000000) {
		value = (double)ns / 1e6;
		unit = "ms";
	}
	kymo_page_printf(page, INK_PLAIN, "%7.3f %s", value, unit);
}

static void write_call_thread(const struct graph *g, const struct line *line)
{
	char label[THREAD_LABEL];

	if (!g->has_threads)
		return;
	kymo_names_label(g->names, &line->thread, label);
	kymo_page_left(g->page, INK_DIM, label, g->names->has_processes ? PROCESS_COLUMNS : THREAD_COLUMNS);
	kymo_page_spaces(g->page, 1);
}

static void write_fields(const struct graph *g, const struct kymo_ctf_record *record, const char *separator)
{
	const struct event_text *text = &g->names->events[record->event - g->trace->events];

	for (uint32_t i = 0; i < record->event->n_fields; i++) {
		fprintf(g->page->out, "%s%s=", i ? separator : "", text->fields[i]);
		kymo_value_write(g->page, record, i);
	}
}

/* " = 0x55…", " = {ptr=0x55…, errno=2}" */
static void write_result(const struct graph *g, const struct kymo_ctf_record *record)
{
	if (!record->event->n_fields)
		return;
	fputs(" = ", g->page->out);
	if (record->event->n_fields == 1) {
		kymo_value_write(g->page, record, 0);
		return;
	}
	putc('{', g->page->out);
	write_fields(g, record, ", ");
	putc('}', g->page->out);
}

/* After a name that has its parameters the values stand apart: "shop::Cart::add(int) (price=3)". */
static void write_call(const struct graph *g, const struct kymo_ctf_record *record)
{
	const char *function = g->names->events[record->event - g->trace->events].function;
	const bool has_parameters = strchr(function, '(');

	kymo_page_text(g->page, INK_HEAD, function);
	if (has_parameters && !record->event->n_fields)
		return;
	fputs(has_parameters ? " (" : "(", g->page->out);
	write_fields(g, record, ", ");
	putc(')', g->page->out);
}

static void write_place(const struct graph *g, const struct kymo_ctf_record *record)
{
	kymo_page_printf(g->page, INK_DIM, "* %s", g->names->events[record->event - g->trace->events].name);
	if (record->event->n_fields)
		putc(' ', g->page->out);
	write_fields(g, record, " ");
}

/* "openat(AT_FDCWD, ...", as the events have it. False where the records cannot be shown so. */
static bool write_syscall(struct graph *g, const struct line *line)
{
	const bool is_call =
		kymo_syscalls_text(&g->syscalls, &line->record, line->has_leave ? &line->leave : NULL, &g->text);

	g->no_memory |= g->text.is_cut;
	fwrite(g->text.data, 1, g->text.n, g->page->out);
	return is_call;
}

/* " = 3" */
static bool write_syscall_result(struct graph *g, const struct line *line)
{
	const struct kymo_ctf_event *entry = line->entry;

	if (!entry || entry->kind != KYMO_CTF_SYSCALL ||
	    !kymo_syscalls_result_text(&g->syscalls, entry->offset, &line->leave, &g->text))
		return false;
	g->no_memory |= g->text.is_cut;
	fprintf(g->page->out, " = %.*s", (int)g->text.n, g->text.data);
	return true;
}

static void write_call_text(struct graph *g, const struct line *line)
{
	bool is_whole = false;

	switch (line->kind) {
	case LINE_PLACE:
		write_place(g, &line->record);
		break;
	case LINE_CLOSE:
		fputs("} ", g->page->out);
		kymo_page_text(g->page, INK_HEAD, g->names->events[line->entry - g->trace->events].function);
		is_whole = line->has_leave && write_syscall_result(g, line);
		break;
	default:
		is_whole = line->record.event->kind == KYMO_CTF_SYSCALL && write_syscall(g, line);
		if (!is_whole)
			write_call(g, &line->record);
	}
	if (line->has_leave && !is_whole)
		write_result(g, &line->leave);
	if (line->kind == LINE_OPEN)
		fputs(" {", g->page->out);
	if (line->note)
		kymo_page_printf(g->page, INK_ALARM, "  (%s)", line->note);
}

static void write_line(struct graph *g, const struct line *line)
{
	const struct page *page = g->page;

	if (line->kind == LINE_LOSS) {
		kymo_loss_write(page, g->trace, &line->loss);
		return;
	}
	write_call_thread(g, line);
	if (line->has_ns)
		write_duration(page, line->ns);
	else
		kymo_page_spaces(page, 10);
	kymo_page_text(page, INK_DIM, page->unicode ? " │ " : " | ");
	kymo_page_spaces(page, 2 * (line->level < MAX_INDENT ? line->level : MAX_INDENT));
	write_call_text(g, line);
	putc('\n', page->out);
}

/* ---- lines that wait ------------------------------------------------------------------------- */

static struct line *line_at(const struct graph *g, uint64_t number)
{
	return &g->lines[number & (MAX_LINES - 1)];
}

static void free_strings(struct line *line)
{
	free(line->strings);
	free(line->leave_strings);
}

static void flush_lines(struct graph *g)
{
	for (; g->first < g->next && line_at(g, g->first)->kind != LINE_WAITS; g->first++) {
		write_line(g, line_at(g, g->first));
		free_strings(line_at(g, g->first));
	}
}

/* A fresh line after all others; its number is g->next - 1. */
static struct line *push_line(struct graph *g, enum line_kind kind, size_t thread, uint32_t level)
{
	struct line *line;

	if (g->next - g->first == MAX_LINES)
		flush_lines(g);
	if (g->next - g->first == MAX_LINES) {
		line_at(g, g->first)->kind = LINE_OPEN;
		flush_lines(g);
	}
	line = line_at(g, g->next++);
	*line = (struct line){ .kind = kind, .level = level };
	if (thread != NO_THREAD)
		line->thread = g->threads.items.items[thread];
	return line;
}

/* The line of that number, if it still waits. */
static struct line *find_waiting(const struct graph *g, uint64_t number)
{
	struct line *line = line_at(g, number);

	return number >= g->first && number < g->next && line->kind == LINE_WAITS ? line : NULL;
}

/* The thread's last record was an entry, and what comes now is within that call. */
static void open_block(struct graph *g, size_t thread)
{
	struct line *line = find_waiting(g, g->waiting.items[thread]);

	if (line)
		line->kind = LINE_OPEN;
	g->waiting.items[thread] = 0;
}

/* ---- records --------------------------------------------------------------------------------- */

/* The call that a thread is in, or NULL, and the level of what happens there. */
static const struct frame *innermost(const struct graph *g, size_t thread, uint32_t *level_ret)
{
	const struct stack *stack = thread < g->calls.stacks.n ? &g->calls.stacks.items[thread] : NULL;
	const struct frame *frame;
	uint32_t height;

	*level_ret = 0;
	if (!stack || !stack->now.n)
		return NULL;
	height = stack->now.n - 1;
	frame = kymo_stack_at(stack, height);
	/* Calls beneath that have left the stack took their levels with them. */
	if (frame->is_shown)
		*level_ret = (frame->level < height ? frame->level : height) + 1;
	return frame;
}

static void left_without_return(void *data, size_t thread, const struct frame *frame)
{
	struct graph *g = data;
	struct line *line = find_waiting(g, frame->line);
	uint32_t level;

	innermost(g, thread, &level);
	if (!frame->is_shown)
		return;
	if (line) {
		line->kind = LINE_LEFT;
	} else {
		line = push_line(g, LINE_CLOSE, thread, level - 1);
		line->entry = g->calls.functions.items[frame->function].entry;
	}
	line->note = "no return";
}

/* Where memory is out the line has no record and is never written. */
static bool keep_record(struct graph *g, const struct kymo_ctf_record *record, struct kymo_ctf_record *ret,
			char **strings_ret)
{
	bool done = kymo_record_copy(record, ret, strings_ret);

	g->no_memory |= !done;
	return done;
}

static void add_entry(struct graph *g, size_t thread, const struct kymo_ctf_record *record, const struct step *step)
{
	const struct stack *stack = &g->calls.stacks.items[thread];
	const struct frame *outer = stack->now.n > 1 ? kymo_stack_at(stack, stack->now.n - 2) : NULL;
	bool is_within = outer && outer->is_shown;
	uint32_t height = stack->now.n - 1;
	struct line *line;

	step->entered->is_shown =
		(is_within || g->matches[record->event - g->trace->events]) && kymo_filter_shows(g->filter, record);
	if (!step->entered->is_shown)
		return;
	step->entered->level = is_within ? outer->level + 1 : 0;
	if (step->entered->level > height)
		step->entered->level = height;
	line = push_line(g, LINE_WAITS, thread, step->entered->level);
	keep_record(g, record, &line->record, &line->strings);
	step->entered->line = g->waiting.items[thread] = g->next - 1;
}

static const char *note_of(enum step_kind kind)
{
	switch (kind) {
	case STEP_LEAVE_OVER_LOSS:
		return "spans a loss";
	case STEP_LEAVE_TOO_DEEP:
		return "nested too deep";
	case STEP_LEAVE_WITHOUT_ENTRY:
		return "no entry";
	default:
		return NULL;
	}
}

static void add_exit(struct graph *g, size_t thread, const struct kymo_ctf_record *record, const struct step *step)
{
	const struct kymo_ctf_event *entry = g->calls.functions.items[step->function].entry;
	/* That of a coroutine which began in another thread waits there. */
	struct line *line = step->has_frame && step->frame.line == g->waiting.items[thread]
				    ? find_waiting(g, step->frame.line)
				    : NULL;
	uint32_t level, height = kymo_calls_depth(&g->calls, thread);
	const struct frame *outer = innermost(g, thread, &level);

	if (step->has_frame)
		level = step->frame.level < height ? step->frame.level : height;
	if (step->has_frame ? !step->frame.is_shown
			    : (!(outer && outer->is_shown) && !g->matches[entry - g->trace->events]) ||
				      !kymo_filter_shows(g->filter, record))
		return;
	if (line)
		line->kind = LINE_LEAF;
	else
		line = push_line(g, LINE_CLOSE, thread, level);
	line->entry = entry;
	line->has_leave = keep_record(g, record, &line->leave, &line->leave_strings);
	line->has_ns = step->has_frame;
	line->ns = step->ns;
	line->note = note_of(step->kind);
}

/* A record that is no part of a pair. */
static void add_other(struct graph *g, size_t thread, const struct kymo_ctf_record *record)
{
	const struct role *role = &g->calls.functions.roles[record->event - g->trace->events];
	uint32_t level;
	const struct frame *outer = innermost(g, thread, &level);
	bool is_call = record->event->kind == KYMO_CTF_ENTRY && !role->is_second;
	struct line *line;

	if ((!(outer && outer->is_shown) && !g->matches[record->event - g->trace->events]) ||
	    !kymo_filter_shows(g->filter, record))
		return;
	line = push_line(g, is_call ? LINE_CALL : LINE_PLACE, thread, level);
	keep_record(g, record, &line->record, &line->strings);
	/* There are too many threads to know each. */
	if (thread == NO_THREAD)
		line->thread.tid = record->tid;
}

static struct kymo_error *add_record(struct graph *g, const struct kymo_ctf_record *record)
{
	struct kymo_error *error;
	struct step step;
	size_t thread;

	error = kymo_threads_find(&g->threads, record, &thread);
	while (!error && thread != NO_THREAD && g->waiting.n <= thread)
		if (!kymo_vec_push(&g->waiting, 0))
			error = &kymo_error_no_memory;
	if (!error)
		error = kymo_calls_add(&g->calls, thread, record, &step);
	if (error)
		return error;
	g->has_threads |= g->has_tid && g->tid != record->tid;
	g->has_tid = true;
	g->tid = record->tid;
	if (thread != NO_THREAD && !(step.has_frame && step.frame.line == g->waiting.items[thread]))
		open_block(g, thread);
	if (step.kind == STEP_ENTER)
		add_entry(g, thread, record, &step);
	else if (step.kind == STEP_NONE)
		add_other(g, thread, record);
	else
		add_exit(g, thread, record, &step);
	return g->no_memory ? &kymo_error_no_memory : NULL;
}

static void add_losses(struct graph *g, uint64_t until)
{
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(g->reader, &n);

	for (; g->n_losses < n && losses[g->n_losses].begin <= until; g->n_losses++) {
		if (losses[g->n_losses].end >= g->filter->from && losses[g->n_losses].begin <= g->filter->to)
			push_line(g, LINE_LOSS, NO_THREAD, 0)->loss = losses[g->n_losses];
		g->written.events += losses[g->n_losses].events;
		g->written.packets += losses[g->n_losses].packets;
	}
}

static struct kymo_error *finish_graph(struct graph *g)
{
	struct notes notes;

	add_losses(g, UINT64_MAX);
	for (uint64_t number = g->first; number < g->next; number++)
		if (line_at(g, number)->kind == LINE_WAITS)
			line_at(g, number)->kind = LINE_OPEN;
	flush_lines(g);
	kymo_calls_finish(&g->calls);
	kymo_latency_notes(&g->calls, &notes);
	for (unsigned int i = 0; i < notes.n; i++)
		kymo_page_printf(g->page, INK_ALARM, "--- %s ---\n", notes.texts[i]);
	if (!g->calls.functions.n)
		kymo_page_text(g->page, INK_ALARM,
			       "--- no function has a probe at its entry (-p) and one at its return (-r) ---\n");
	return kymo_lines_finish(g->page, g->reader, &g->written);
}

/* Without memory nothing is held. */
static void hold(struct graph *g, struct fates *fates)
{
	g->shown = g->page;
	g->held = *g->page;
	g->held.out = !fates || fates->is_known ? NULL : open_memstream(&g->held_text, &g->held_size);
	if (g->held.out)
		g->page = &g->held;
	kymo_calls_foresee(&g->calls, g->held.out || (fates && fates->is_known) ? fates : NULL);
}

static void drop_held(struct graph *g)
{
	if (g->held.out)
		(void)fclose(g->held.out);
	free(g->held_text);
	g->held.out = NULL;
	g->held_text = NULL;
	g->page = g->shown;
}

/* Write what is held. From now on it is too late for fates. */
static struct kymo_error *release(struct graph *g)
{
	if (!g->held.out)
		return NULL;
	if (fflush(g->held.out) || ferror(g->held.out))
		return &kymo_error_no_memory;
	fwrite(g->held_text, 1, g->held_size, g->shown->out);
	drop_held(g);
	kymo_calls_foresee(&g->calls, NULL);
	return NULL;
}

static struct kymo_error *write_calls(struct graph *g, struct kymo_ctf_reader *reader)
{
	struct kymo_ctf_record record;
	struct kymo_error *error;

	while (kymo_next_record(reader, NULL, &record, &error)) {
		add_losses(g, record.tsc);
		if (kymo_filter_takes(g->filter, &record))
			error = add_record(g, &record);
		if (error)
			return error;
		if (kymo_calls_need_fates(&g->calls))
			return NULL;
		flush_lines(g);
		if (g->held.out && (++g->n_held == HELD_MAX || ftello(g->held.out) > HELD_BYTES_MAX))
			error = release(g);
		if (error)
			return error;
		/* A reader that has gone away (a pipe to head) is found out by the caller. */
		if (ferror_unlocked(g->page->out))
			return g->held.out ? &kymo_error_no_memory : NULL;
	}
	return error ? error : finish_graph(g);
}

static struct kymo_error *init_graph(struct graph *g, const char *function)
{
	struct kymo_pattern *pattern;
	struct kymo_error *error;

	kymo_threads_init(&g->threads, g->trace);
	error = kymo_calls_init(&g->calls, g->reader, &g->threads);
	if (error)
		return error;
	kymo_calls_filter(&g->calls, g->filter);
	kymo_syscalls_init(&g->syscalls, g->trace, false);
	g->calls.left = left_without_return;
	g->calls.data = g;
	g->lines = calloc(MAX_LINES, sizeof(*g->lines));
	g->matches = calloc(g->trace->n_events + 1, sizeof(*g->matches));
	if (!g->lines || !g->matches)
		return &kymo_error_no_memory;
	pattern = function ? kymo_pattern_create(function) : NULL;
	for (size_t i = 0; i < g->trace->n_events; i++)
		g->matches[i] =
			!function || kymo_filter_matches(function, pattern, &g->trace->events[i], &g->names->events[i]);
	kymo_pattern_destroy(pattern);
	return NULL;
}

static void deinit_graph(struct graph *g)
{
	drop_held(g);
	for (; g->first < g->next; g->first++)
		free_strings(line_at(g, g->first));
	free(g->lines);
	free(g->matches);
	kymo_vec_deinit(&g->waiting);
	kymo_syscalls_deinit(&g->syscalls);
	kymo_line_deinit(&g->text);
	if (g->calls.trace)
		kymo_calls_deinit(&g->calls);
	kymo_threads_deinit(&g->threads);
}

struct kymo_error *kymo_graph_write(struct kymo_ctf_reader *reader, const struct names *names, struct filter *filter,
				    struct fates *fates, const char *function, const struct page *page)
{
	struct graph g = {
		.page = page,
		.shown = page,
		.reader = reader,
		.trace = kymo_ctf_reader_trace(reader),
		.names = names,
		.filter = filter,
		.first = 1,
		.next = 1,
	};
	struct kymo_error *error;

	g.has_threads = !kymo_filter_is_one_thread(filter) && g.trace->n_threads != 1;
	error = init_graph(&g, function);
	hold(&g, fates);
	if (!error)
		error = write_calls(&g, reader);
	if (!kymo_calls_need_fates(&g.calls))
		error = kymo_error_first(error, release(&g));
	deinit_graph(&g);
	return error;
}
