#include "report/report.h"

#include <errno.h>

#include "base/cleanup.h"
#include "report/calls.h"
#include "report/events.h"
#include "report/filter.h"
#include "report/graph.h"
#include "report/json.h"
#include "report/model.h"
#include "report/names.h"
#include "report/summary.h"
#include "report/tree.h"

static void close_cleanup(struct kymo_ctf_reader **reader)
{
	kymo_ctf_close(*reader);
}

static struct kymo_error *gather(struct kymo_ctf_reader *reader, struct filter *filter, struct model *model, struct calls *calls)
{
	struct kymo_ctf_record record;
	struct kymo_error *error;
	struct step step;
	size_t thread;

	while (kymo_ctf_next(reader, &record, &error)) {
		kymo_model_see(model, record.tsc);
		if (!kymo_filter_takes(filter, &record))
			continue;
		error = kymo_filter_shows(filter, &record) ? kymo_model_add(model, &record, &thread) :
							     kymo_threads_find(&model->threads, &record, &thread);
		if (!error)
			error = kymo_calls_add(calls, thread, &record, &step);
		if (error)
			return error;
	}
	kymo_calls_finish(calls);
	return error;
}

/* The summary, or the same as JSON. */
static struct kymo_error *report_model(const struct kymo_report_options *options, struct kymo_ctf_reader *reader, struct filter *filter,
				       struct summary *summary, const struct page *page)
{
	struct model model;
	struct calls calls;
	struct kymo_error *error = kymo_model_init(&model, summary->trace);

	if (error)
		return error;
	error = kymo_calls_init(&calls, reader, &model.threads);
	if (error) {
		kymo_model_deinit(&model);
		return error;
	}
	kymo_model_filter(&model, filter, options->by_thread);
	kymo_calls_filter(&calls, filter);
	summary->model = &model;
	summary->calls = &calls;
	error = gather(reader, filter, &model, &calls);
	if (!error && options->mode == KYMO_REPORT_JSON)
		error = kymo_json_write(summary, page->out);
	else if (!error)
		error = kymo_summary_write(summary, page);
	kymo_calls_deinit(&calls);
	kymo_model_deinit(&model);
	return error;
}

static struct kymo_error *report(const char *dir, const struct kymo_report_options *options,
				 struct kymo_ctf_reader *reader, const struct names *names, struct filter *filter, const struct page *page)
{
	struct summary summary = {
		.dir = dir,
		.reader = reader,
		.trace = kymo_ctf_reader_trace(reader),
		.names = names,
		.all = options->all,
	};

	switch (options->mode) {
	case KYMO_REPORT_EVENTS:
		return kymo_events_write(reader, names, filter, options, page);
	case KYMO_REPORT_GRAPH:
		return kymo_graph_write(reader, names, filter, options->function, page);
	case KYMO_REPORT_TREE:
		return kymo_tree_write(reader, names, filter, options->all, page);
	default:
		return report_model(options, reader, filter, &summary, page);
	}
}

struct kymo_error *kymo_report(const char *dir, const struct kymo_report_options *options, FILE *out)
{
	kymo_cleanup(close_cleanup) struct kymo_ctf_reader *reader = NULL;
	struct kymo_error *error = kymo_ctf_open(dir, &reader);
	struct page page = {
		.out = out,
		.width = options->width ? options->width : 80,
		.colour = options->colour,
		.unicode = options->unicode,
		.whole = options->whole,
	};
	struct filter filter;
	struct names names;

	if (error)
		return error;
	/* Wider than any line that makes sense, and small enough for sums of columns. */
	page.width = page.width > 1000 ? 1000 : page.width < 20 ? 20 : page.width;
	error = kymo_names_init(&names, kymo_ctf_reader_trace(reader), page.unicode);
	if (error)
		return error;
	error = kymo_filter_init(&filter, &options->filter, kymo_ctf_reader_trace(reader), &names);
	if (!error)
		error = report(dir, options, reader, &names, &filter, &page);
	kymo_filter_deinit(&filter);
	kymo_names_deinit(&names);
	errno = 0;
	if (!error && (fflush(out) || ferror(out)))
		error = kymo_error_errno(errno ? errno : EIO, "can't write the report");
	return error;
}
