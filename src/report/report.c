#include "report/report.h"

#include <errno.h>

#include "base/cleanup.h"
#include "report/aggregation_table.h"
#include "report/aggregations.h"
#include "report/calls.h"
#include "report/diff.h"
#include "report/ended.h"
#include "report/events.h"
#include "report/fates.h"
#include "report/filter.h"
#include "report/frames.h"
#include "report/graph.h"
#include "report/json.h"
#include "report/model.h"
#include "report/names.h"
#include "report/page.h"
#include "report/stacks.h"
#include "report/summary.h"
#include "report/tree.h"

/* A trace that is read, and what was gathered from it. It stays where it is: its parts point at one another. */
struct report_input {
	struct kymo_ctf_reader *reader;
	struct names names;
	struct filter filter;
	struct model model;
	struct calls calls;
	struct aggregations aggregations;
	struct summary summary;
};

static void source_deinit(struct report_input *source)
{
	kymo_aggregations_deinit(&source->aggregations);
	kymo_calls_deinit(&source->calls);
	kymo_model_deinit(&source->model);
	kymo_filter_deinit(&source->filter);
	kymo_names_deinit(&source->names);
	kymo_ctf_close(source->reader);
}

static struct kymo_error *source_open(struct report_input *source, const char *dir,
				      const struct kymo_report_options *options)
{
	struct kymo_error *error = kymo_ctf_open(dir, &source->reader);
	const struct kymo_ctf_trace *trace;

	if (error)
		return error;
	trace = kymo_ctf_reader_trace(source->reader);
	error = kymo_names_init(&source->names, trace, options->unicode);
	if (!error)
		error = kymo_error_prefix(kymo_filter_init(&source->filter, &options->filter, trace, &source->names),
					  "%s", dir);
	return error;
}

static struct kymo_error *gather_model(struct kymo_ctf_reader *reader, struct filter *filter, struct model *model,
				       struct calls *calls, struct aggregations *aggregations)
{
	struct kymo_ctf_record record;
	struct kymo_error *error = NULL;
	struct step step;
	size_t thread;

	while (!kymo_calls_need_fates(calls) &&
	       kymo_next_record(reader, aggregations->has_stacks ? &aggregations->frames : NULL, &record, &error)) {
		if (record.event->kind == KYMO_CTF_AGGREGATION) {
			kymo_aggregations_take(aggregations, &record);
			continue;
		}
		if (!model->has_zero)
			kymo_model_begin(model, kymo_ctf_reader_whole_since(reader));
		kymo_model_see(model, record.tsc);
		if (!kymo_filter_takes(filter, &record))
			continue;
		error = kymo_filter_shows(filter, &record) ? kymo_model_add(model, &record, &thread)
							   : kymo_threads_find(&model->threads, &record, &thread);
		if (!error)
			error = kymo_calls_add(calls, thread, &record, &step);
		if (error)
			return error;
	}
	kymo_calls_finish(calls);
	return error;
}

/* Read all of it for source->summary. If `fates` are needed and not known, it is not read to its end. */
static struct kymo_error *source_gather(struct report_input *source, const char *dir,
					const struct kymo_report_options *options, struct fates *fates)
{
	const struct kymo_ctf_trace *trace = kymo_ctf_reader_trace(source->reader);
	struct kymo_error *error = kymo_model_init(&source->model, trace);

	if (!error)
		error = kymo_calls_init(&source->calls, source->reader, &source->model.threads);
	if (!error)
		error = kymo_aggregations_init(&source->aggregations, trace);
	if (error)
		return error;
	kymo_calls_foresee(&source->calls, fates);
	kymo_model_filter(&source->model, &source->filter, options->by_thread);
	kymo_calls_filter(&source->calls, &source->filter);
	source->summary = (struct summary){
		.dir = dir,
		.reader = source->reader,
		.trace = trace,
		.model = &source->model,
		.calls = &source->calls,
		.aggregations = &source->aggregations,
		.names = &source->names,
		.all = options->all,
	};
	return gather_model(source->reader, &source->filter, &source->model, &source->calls, &source->aggregations);
}

/* Widths beyond these are wider than any line that makes sense, or too small for sums of columns. */
static struct page page_of(const struct kymo_report_options *options, FILE *out)
{
	unsigned int width = options->width ? options->width : 80;

	return (struct page){
		.out = out,
		.width = width > 1000 ? 1000
			 : width < 20 ? 20
				      : width,
		.color = options->color,
		.unicode = options->unicode,
		.whole = options->whole,
	};
}

/* Nothing is written where `fates` are needed and not known. */
static struct kymo_error *report(struct report_input *source, const char *dir,
				 const struct kymo_report_options *options, struct fates *fates,
				 const struct page *page)
{
	struct kymo_error *error;

	switch (options->mode) {
	case KYMO_REPORT_EVENTS:
		return kymo_events_write(source->reader, &source->names, &source->filter, options, page);
	case KYMO_REPORT_GRAPH:
		return kymo_graph_write(source->reader, &source->names, &source->filter, fates, options->function,
					page);
	case KYMO_REPORT_TREE:
		return kymo_tree_write(source->reader, &source->names, &source->filter, fates, options->all, page);
	case KYMO_REPORT_FOLDED:
	case KYMO_REPORT_FLAME:
	case KYMO_REPORT_CALLERS:
	case KYMO_REPORT_CALLEES:
		return kymo_stacks_write(source->reader, dir, &source->filter, options, page);
	case KYMO_REPORT_TABLES:
		error = source_gather(source, dir, options, NULL);
		return error ? error : kymo_aggregations_write(&source->aggregations, page, options->all);
	case KYMO_REPORT_JSON:
		error = source_gather(source, dir, options, fates);
		return error || kymo_calls_need_fates(&source->calls) ? error
								      : kymo_json_write(&source->summary, page->out);
	case KYMO_REPORT_SUMMARY:
		break;
	}
	error = source_gather(source, dir, options, fates);
	return error || kymo_calls_need_fates(&source->calls) ? error : kymo_summary_write(&source->summary, page);
}

/* Read the trace from its beginning, with all that is known of how its calls end. */
static struct kymo_error *report_again(struct report_input *source, const char *dir,
				       const struct kymo_report_options *options, struct fates *fates,
				       const struct page *page)
{
	struct kymo_error *error = kymo_fates_gather(fates, dir, &source->filter);

	source_deinit(source);
	*source = (struct report_input){ 0 };
	if (!error)
		error = source_open(source, dir, options);
	return error ? error : report(source, dir, options, fates, page);
}

struct kymo_error *kymo_report(const char *dir, const struct kymo_report_options *options, FILE *out)
{
	kymo_cleanup(source_deinit) struct report_input source = { 0 };
	kymo_cleanup(kymo_fates_deinit) struct fates fates = { .is_needed = false };
	struct page page = page_of(options, out);
	struct kymo_error *error = source_open(&source, dir, options);

	/* What a recorder still writes is not the same when it is read again. */
	if (!error)
		error = report(&source, dir, options,
			       kymo_unended(kymo_ctf_reader_trace(source.reader)) ? NULL : &fates, &page);
	if (!error && fates.is_needed)
		error = report_again(&source, dir, options, &fates, &page);
	if (!error)
		error = kymo_page_flush(out);
	return error ? error : kymo_error_prefix(kymo_filter_check(&source.filter), "%s", dir);
}

struct kymo_error *kymo_report_tables(const struct kymo_aggr_table *tables, size_t n,
				      const struct kymo_report_options *options, FILE *out)
{
	const struct page page = page_of(options, out);
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < n && !error; i++)
		error = kymo_aggregation_table_write(&tables[i], &page, options->all);
	return error ? error : kymo_page_flush(out);
}

struct kymo_error *kymo_report_diff(const char *a, const char *b, const struct kymo_report_options *options, FILE *out)
{
	kymo_cleanup(source_deinit) struct report_input first = { 0 }, second = { 0 };
	struct page page = page_of(options, out);
	struct kymo_error *error = source_open(&first, a, options);

	if (!error)
		error = source_open(&second, b, options);
	if (!error)
		error = source_gather(&first, a, options, NULL);
	if (!error)
		error = source_gather(&second, b, options, NULL);
	if (!error && options->mode == KYMO_REPORT_JSON)
		error = kymo_diff_write_json(&first.summary, &second.summary, out);
	else if (!error)
		error = kymo_diff_write(&first.summary, &second.summary, &page);
	return error ? error : kymo_page_flush(out);
}
