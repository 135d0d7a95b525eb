#include "report/who.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "report/table.h"
#include "report/text.h"

#define TOP_PROCESSES 10
#define TOP_THREADS 10
#define LABEL_SIZE 320

/* "PREFIX NAME", not cut within a character. */
static void make_label(char label[LABEL_SIZE], const char *prefix, const char *name, unsigned int columns)
{
	unsigned int used;
	size_t fits = name ? kymo_text_fit(name, columns, &used) : 0;

	snprintf(label, LABEL_SIZE, "%s%s%.*s", prefix, name ? " " : "", fits < 240 ? (int)fits : 0, name ? name : "");
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

static void process_label(const struct summary *summary, const struct process_count *process, char label[LABEL_SIZE])
{
	char pid[TEXT_NUMBER];

	snprintf(pid, sizeof(pid), "%" PRId32, process->process->pid);
	make_label(label, pid, summary->names->processes[process->process - summary->trace->processes], 60);
}

static void write_process_rows(const struct summary *summary, const struct page *page,
			       const struct process_count *const *processes, size_t shown)
{
	unsigned int longest = 12;
	char label[LABEL_SIZE];
	struct columns c;

	for (size_t i = 0; i < shown; i++) {
		process_label(summary, processes[i], label);
		longest = kymo_at_least(kymo_text_columns(label), longest);
	}
	c = kymo_table_plan(summary, page, longest);
	c.threads = 0;
	putc('\n', page->out);
	kymo_table_heading(page, &c, "PROCESS");
	for (size_t i = 0; i < shown; i++) {
		process_label(summary, processes[i], label);
		write_row(summary, page, &c, label, processes[i]->count, processes[i]->first, processes[i]->last);
	}
}

struct kymo_error *kymo_who_processes(const struct summary *summary, const struct page *page)
{
	kymo_cleanup_free const struct process_count **processes = NULL;
	uint64_t rest = summary->model->count, others = summary->model->count;
	char number[TEXT_NUMBER];
	size_t n, shown;

	if (!summary->names->has_processes)
		return NULL;
	processes = kymo_model_sorted_processes(summary->model, &n);
	if (!processes)
		return &kymo_error_no_memory;
	shown = summary->all || n <= TOP_PROCESSES ? n : TOP_PROCESSES;
	write_process_rows(summary, page, processes, shown);
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

static void thread_label(const struct summary *summary, const struct thread *thread, char label[LABEL_SIZE])
{
	char ids[TEXT_NUMBER];

	if (summary->names->has_processes && thread->process)
		snprintf(ids, sizeof(ids), "%" PRId32 "/%" PRId32, thread->process->pid, thread->tid);
	else
		snprintf(ids, sizeof(ids), "%" PRId32, thread->tid);
	make_label(label, ids, kymo_names_thread(summary->names, thread), 60);
}

static unsigned int longest_thread(const struct summary *summary, struct thread *const *threads, size_t n)
{
	unsigned int longest = 12;

	for (size_t i = 0; i < n; i++) {
		const char *name = kymo_names_thread(summary->names, threads[i]);

		if (name)
			longest = kymo_at_least(12 + kymo_text_columns(name), longest);
		if (summary->names->has_processes)
			longest = kymo_at_least(19 + (name ? kymo_text_columns(name) : 0), longest);
	}
	return longest;
}

struct kymo_error *kymo_who_threads(const struct summary *summary, const struct page *page)
{
	const struct model *model = summary->model;
	kymo_cleanup_free struct thread **threads = kymo_model_sorted_threads(model);
	size_t n = model->threads.items.n, shown = summary->all || n <= TOP_THREADS ? n : TOP_THREADS;
	char number[TEXT_NUMBER], label[LABEL_SIZE];
	uint64_t rest = model->count;
	struct columns c;

	if (!threads)
		return &kymo_error_no_memory;
	c = kymo_table_plan(summary, page, longest_thread(summary, threads, shown));
	putc('\n', page->out);
	c.threads = 0;
	kymo_table_heading(page, &c, "THREAD");
	for (size_t i = 0; i < shown; i++) {
		thread_label(summary, threads[i], label);
		write_row(summary, page, &c, label, threads[i]->count, threads[i]->first, threads[i]->last);
		rest -= threads[i]->count;
	}
	if (rest)
		kymo_page_printf(page, INK_DIM, "%zu%s more %s, %s events%s\n", n - shown,
				 model->other_threads ? "+" : "", n - shown == 1 ? "thread" : "threads",
				 kymo_text_count(number, rest), summary->all ? "" : " (--all shows them)");
	return NULL;
}
