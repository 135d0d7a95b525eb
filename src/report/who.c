#include "report/who.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "report/labels.h"
#include "report/table.h"
#include "report/text.h"

#define TOP_PROCESSES 10
#define TOP_THREADS 10
#define TOP_PROBES 10 /* of a thread */

/* "PREFIX NAME", whole: the table shortens names so that they differ. NULL when memory is out. */
static char *make_label(const char *prefix, const char *name)
{
	char *label;

	return asprintf(&label, "%s%s%s", prefix, name ? " " : "", name ? name : "") < 0 ? NULL : label;
}

/* Of a table that counts no threads. */
static struct kymo_error *plan_columns(const struct summary *summary, const struct page *page, const char *const *texts,
				       size_t n, struct columns *ret, char ***labels_ret)
{
	struct kymo_error *error = kymo_table_plan(summary, page, texts, n, ret, labels_ret);

	if (error)
		return error;
	ret->threads = 0;
	putc('\n', page->out);
	return NULL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct who_row {
	char *name; /* the row's own */
	uint64_t count, recent, first, last;
	bool has_times;
};

static void write_who_row(const struct summary *summary, const struct page *page, const struct columns *c,
			  const char *label, const struct who_row *row)
{
	unsigned int owed = kymo_table_counts(summary, page, c, label, row->count, row->recent, summary->model->count);

	if (c->time) {
		kymo_page_spaces(page, owed + (c->threads ? 2 + c->threads : 0));
		kymo_table_times(summary, page, c, row->first, row->last);
	}
	putc('\n', page->out);
}

struct rows {
	KYMO_VEC(struct who_row) items;
};

static void deinit_rows(struct rows *rows)
{
	for (size_t i = 0; i < rows->items.n; i++)
		free(rows->items.items[i].name);
	kymo_vec_deinit(&rows->items);
}

/* Takes `name`, also on failure; NULL when memory is out, as where `name` is NULL. */
static struct who_row *push_row(struct rows *rows, char *name, uint64_t count, uint64_t recent)
{
	if (name && kymo_vec_push(&rows->items, (struct who_row){ .name = name, .count = count, .recent = recent }))
		return &rows->items.items[rows->items.n - 1];
	free(name);
	return NULL;
}

static struct kymo_error *write_rows(const struct summary *summary, const struct page *page, const struct rows *rows,
				     const char *heading)
{
	const size_t n = rows->items.n;
	kymo_cleanup_free const char **names = calloc(n + 1, sizeof(char *));
	struct columns c;
	char **labels;
	struct kymo_error *error;

	if (!names)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++)
		names[i] = rows->items.items[i].name;
	error = plan_columns(summary, page, names, n, &c, &labels);
	if (error)
		return error;
	kymo_table_heading(page, &c, heading);
	for (size_t i = 0; i < n; i++) {
		const struct who_row *row = &rows->items.items[i];

		if (row->has_times) {
			write_who_row(summary, page, &c, labels[i], row);
			continue;
		}
		kymo_table_counts(summary, page, &c, labels[i], row->count, row->recent,
				  kymo_model_of_probes(summary->model));
		putc('\n', page->out);
	}
	kymo_labels_destroy(labels, n);
	return NULL;
}

/* ---- processes ------------------------------------------------------------------------------- */

static char *process_label(const struct summary *summary, const struct process_count *process)
{
	char pid[TEXT_NUMBER];

	snprintf(pid, sizeof(pid), "%" PRId32, process->process->pid);
	return make_label(pid, summary->names->processes[process->process - summary->trace->processes]);
}

static struct kymo_error *write_process_rows(const struct summary *summary, const struct page *page,
					     const struct process_count *const *processes, size_t shown)
{
	struct rows rows = { 0 };
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < shown && !error; i++) {
		struct who_row *row = push_row(&rows, process_label(summary, processes[i]), processes[i]->count,
					       processes[i]->recent);

		if (!row) {
			error = &kymo_error_no_memory;
			break;
		}
		row->first = processes[i]->first;
		row->last = processes[i]->last;
		row->has_times = true;
	}
	if (!error)
		error = write_rows(summary, page, &rows, "PROCESS");
	deinit_rows(&rows);
	return error;
}

struct kymo_error *kymo_who_processes(const struct summary *summary, const struct page *page)
{
	kymo_cleanup_free const struct process_count **processes = NULL;
	uint64_t rest = summary->model->count, others = summary->model->count;
	char number[TEXT_NUMBER];
	struct kymo_error *error;
	size_t n, shown;

	if (!summary->names->has_processes)
		return NULL;
	processes = kymo_model_sorted_processes(summary->model, &n);
	if (!processes)
		return &kymo_error_no_memory;
	shown = summary->all || n <= TOP_PROCESSES ? n : TOP_PROCESSES;
	error = write_process_rows(summary, page, processes, shown);
	if (error)
		return error;
	for (size_t i = 0; i < n; i++) {
		others -= processes[i]->count;
		rest -= i < shown ? processes[i]->count : 0;
	}
	if (shown < n)
		kymo_page_printf(page, INK_DIM, "%zu more %s, %s events (--all shows them)\n", n - shown,
				 n - shown == 1 ? "process" : "processes", kymo_text_count(number, rest - others));
	if (others)
		kymo_page_printf(page, INK_DIM, "%s %s of threads whose process is not known\n",
				 kymo_text_count(number, others), others == 1 ? "event" : "events");
	if (n < summary->trace->n_processes)
		kymo_page_printf(page, INK_DIM, "%zu %s without an event\n", summary->trace->n_processes - n,
				 summary->trace->n_processes - n == 1 ? "process" : "processes");
	return NULL;
}

/* ---- threads --------------------------------------------------------------------------------- */

static char *thread_label(const struct summary *summary, const struct thread *thread)
{
	char ids[TEXT_NUMBER];

	if (summary->names->has_processes && thread->process)
		snprintf(ids, sizeof(ids), "%" PRId32 "/%" PRId32, thread->process->pid, thread->tid);
	else
		snprintf(ids, sizeof(ids), "%" PRId32, thread->tid);
	return make_label(ids, kymo_names_thread(summary->names, thread));
}

/* The thread's probes, those that were hit most often first. */
static bool push_probes(const struct summary *summary, const struct pair *sorted, size_t thread, struct rows *rows)
{
	size_t n;
	const struct pair *pairs = kymo_pairs_of(sorted, summary->model->pairs.n, thread, &n);
	const size_t shown = summary->all || n <= TOP_PROBES ? n : TOP_PROBES;
	uint64_t rest = 0, recent_rest = 0;
	char *more;

	for (size_t i = 0; i < shown; i++)
		if (!push_row(rows, make_label(" ", summary->names->events[pairs[i].probe].name), pairs[i].count,
			      pairs[i].recent))
			return false;
	for (size_t i = shown; i < n; i++) {
		rest += pairs[i].count;
		recent_rest += pairs[i].recent;
	}
	if (!rest)
		return true;
	if (asprintf(&more, "  %zu more (--all shows them)", n - shown) < 0)
		return false;
	return push_row(rows, more, rest, recent_rest);
}

static struct kymo_error *fill_thread_rows(const struct summary *summary, struct thread *const *threads, size_t shown,
					   struct rows *rows)
{
	const struct model *model = summary->model;
	kymo_cleanup_free struct pair *sorted = model->has_pairs ? kymo_pairs_sorted(&model->pairs) : NULL;

	if (model->has_pairs && !sorted)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < shown; i++) {
		struct who_row *row =
			push_row(rows, thread_label(summary, threads[i]), threads[i]->count, threads[i]->recent);

		if (!row)
			return &kymo_error_no_memory;
		row->first = threads[i]->first;
		row->last = threads[i]->last;
		row->has_times = true;
		if (sorted && !push_probes(summary, sorted, (size_t)(threads[i] - model->threads.items.items), rows))
			return &kymo_error_no_memory;
	}
	return NULL;
}

static struct kymo_error *write_thread_rows(const struct summary *summary, const struct page *page,
					    struct thread *const *threads, size_t shown)
{
	struct rows rows = { 0 };
	struct kymo_error *error = fill_thread_rows(summary, threads, shown, &rows);

	if (!error)
		error = write_rows(summary, page, &rows, summary->model->has_pairs ? "THREAD, PROBE" : "THREAD");
	deinit_rows(&rows);
	return error;
}

struct kymo_error *kymo_who_threads(const struct summary *summary, const struct page *page)
{
	const struct model *model = summary->model;
	kymo_cleanup_free struct thread **threads = kymo_model_sorted_threads(model);
	size_t n = model->n_threads, shown = summary->all || n <= TOP_THREADS ? n : TOP_THREADS;
	char number[TEXT_NUMBER];
	uint64_t rest = model->count;
	struct kymo_error *error;

	if (!threads)
		return &kymo_error_no_memory;
	error = write_thread_rows(summary, page, threads, shown);
	if (error)
		return error;
	for (size_t i = 0; i < shown; i++)
		rest -= threads[i]->count;
	if (rest)
		kymo_page_printf(page, INK_DIM, "%zu%s more %s, %s events%s\n", n - shown,
				 model->other_threads ? "+" : "", n - shown == 1 ? "thread" : "threads",
				 kymo_text_count(number, rest), summary->all ? "" : " (--all shows them)");
	return NULL;
}
