#include "report/who.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "report/labels.h"
#include "report/table.h"
#include "report/text.h"

#define TOP_PROCESSES 10
#define TOP_THREADS 10
#define LABEL_SIZE 320
#define LABEL_COLUMNS 240

/* "PREFIX NAME", not cut within a character. */
static void make_label(char label[LABEL_SIZE], const char *prefix, const char *name, unsigned int columns)
{
	unsigned int used;
	size_t fits = name ? kymo_text_fit(name, columns, &used) : 0;

	snprintf(label, LABEL_SIZE, "%s%s%.*s", prefix, name ? " " : "", fits < 240 ? (int)fits : 0, name ? name : "");
}

/* Of a table that counts no threads. */
static struct kymo_error *plan(const struct summary *summary, const struct page *page, char (*names)[LABEL_SIZE], size_t n,
			       struct columns *ret, char ***labels_ret)
{
	kymo_cleanup_free const char **texts = calloc(n + 1, sizeof(char *));
	struct kymo_error *error;

	if (!texts)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++)
		texts[i] = names[i];
	error = kymo_table_plan(summary, page, texts, n, ret, labels_ret);
	if (error)
		return error;
	ret->threads = 0;
	putc('\n', page->out);
	return NULL;
}

static void write_row(const struct summary *summary, const struct page *page, const struct columns *c,
		      const char *label, uint64_t count, uint64_t first, uint64_t last)
{
	unsigned int owed = kymo_table_counts(summary, page, c, label, count);

	if (c->time) {
		kymo_page_spaces(page, owed + (c->threads ? 2 + c->threads : 0));
		kymo_table_times(summary, page, c, first, last);
	}
	putc('\n', page->out);
}

/* ---- processes --------------------------------------------------------------------------------------------------- */

static void process_label(const struct summary *summary, const struct page *page, const struct process_count *process, char label[LABEL_SIZE])
{
	char pid[TEXT_NUMBER];

	snprintf(pid, sizeof(pid), "%" PRId32, process->process->pid);
	make_label(label, pid, summary->names->processes[process->process - summary->trace->processes], page->whole ? LABEL_COLUMNS : 60);
}

static struct kymo_error *write_process_rows(const struct summary *summary, const struct page *page,
					     const struct process_count *const *processes, size_t shown)
{
	kymo_cleanup_free char (*names)[LABEL_SIZE] = calloc(shown + 1, sizeof(*names));
	struct columns c;
	char **labels;
	struct kymo_error *error;

	if (!names)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < shown; i++)
		process_label(summary, page, processes[i], names[i]);
	error = plan(summary, page, names, shown, &c, &labels);
	if (error)
		return error;
	kymo_table_heading(page, &c, "PROCESS");
	for (size_t i = 0; i < shown; i++)
		write_row(summary, page, &c, labels[i], processes[i]->count, processes[i]->first, processes[i]->last);
	kymo_labels_destroy(labels, shown);
	return NULL;
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

/* ---- threads ----------------------------------------------------------------------------------------------------- */

static void thread_label(const struct summary *summary, const struct page *page, const struct thread *thread, char label[LABEL_SIZE])
{
	char ids[TEXT_NUMBER];

	if (summary->names->has_processes && thread->process)
		snprintf(ids, sizeof(ids), "%" PRId32 "/%" PRId32, thread->process->pid, thread->tid);
	else
		snprintf(ids, sizeof(ids), "%" PRId32, thread->tid);
	make_label(label, ids, kymo_names_thread(summary->names, thread), page->whole ? LABEL_COLUMNS : 60);
}

static struct kymo_error *write_thread_rows(const struct summary *summary, const struct page *page, struct thread *const *threads,
					    size_t shown)
{
	kymo_cleanup_free char (*names)[LABEL_SIZE] = calloc(shown + 1, sizeof(*names));
	struct columns c;
	char **labels;
	struct kymo_error *error;

	if (!names)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < shown; i++)
		thread_label(summary, page, threads[i], names[i]);
	error = plan(summary, page, names, shown, &c, &labels);
	if (error)
		return error;
	kymo_table_heading(page, &c, "THREAD");
	for (size_t i = 0; i < shown; i++)
		write_row(summary, page, &c, labels[i], threads[i]->count, threads[i]->first, threads[i]->last);
	kymo_labels_destroy(labels, shown);
	return NULL;
}

struct kymo_error *kymo_who_threads(const struct summary *summary, const struct page *page)
{
	const struct model *model = summary->model;
	kymo_cleanup_free struct thread **threads = kymo_model_sorted_threads(model);
	size_t n = model->threads.items.n, shown = summary->all || n <= TOP_THREADS ? n : TOP_THREADS;
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
