#include "report/report.h"

#include <errno.h>

#include "base/cleanup.h"
#include "report/events.h"
#include "report/json.h"
#include "report/model.h"
#include "report/names.h"
#include "report/summary.h"

static void close_cleanup(struct kymo_ctf_reader **reader)
{
	kymo_ctf_close(*reader);
}

static struct kymo_error *gather(struct kymo_ctf_reader *reader, struct model *model)
{
	struct kymo_ctf_record record;
	struct kymo_error *error;

	while (kymo_ctf_next(reader, &record, &error)) {
		error = kymo_model_add(model, &record);
		if (error)
			return error;
	}
	return error;
}

static struct kymo_error *write_model(const char *dir, const struct kymo_report_options *options,
				      const struct kymo_ctf_reader *reader, struct model *model,
				      const struct names *names, const struct page *page)
{
	struct summary summary = {
		.dir = dir,
		.reader = reader,
		.trace = model->trace,
		.model = model,
		.names = names,
		.all = options->all,
	};

	if (options->mode == KYMO_REPORT_JSON)
		return kymo_json_write(dir, reader, model, names, page->out);
	return kymo_summary_write(&summary, page);
}

static struct kymo_error *report(const char *dir, const struct kymo_report_options *options,
				 struct kymo_ctf_reader *reader, const struct names *names, const struct page *page)
{
	struct model model;
	struct kymo_error *error;

	if (options->mode == KYMO_REPORT_EVENTS)
		return kymo_events_write(reader, names, options->wall, page);
	error = kymo_model_init(&model, kymo_ctf_reader_trace(reader));
	if (error)
		return error;
	error = gather(reader, &model);
	if (!error)
		error = write_model(dir, options, reader, &model, names, page);
	kymo_model_deinit(&model);
	return error;
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
	};
	struct names names;

	if (error)
		return error;
	/* Wider than any line that makes sense, and small enough for sums of columns. */
	page.width = page.width > 1000 ? 1000 : page.width < 20 ? 20 : page.width;
	error = kymo_names_init(&names, kymo_ctf_reader_trace(reader), page.unicode);
	if (error)
		return error;
	error = report(dir, options, reader, &names, &page);
	kymo_names_deinit(&names);
	errno = 0;
	if (!error && (fflush(out) || ferror(out)))
		error = kymo_error_errno(errno ? errno : EIO, "can't write the report");
	return error;
}
