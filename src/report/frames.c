#include "report/frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/text.h"
#include "sym/demangle.h"

#define SOURCES_MAX 64 /* of a place */

static const enum kymo_type frame_types[KYMO_CTF_FRAME_FIELDS] = {
	[KYMO_CTF_FRAME_ID] = KYMO_TYPE_U32,          [KYMO_CTF_FRAME_CALLER] = KYMO_TYPE_U32,
	[KYMO_CTF_FRAME_WHAT] = KYMO_TYPE_U8,         [KYMO_CTF_FRAME_FILE] = KYMO_TYPE_STRING,
	[KYMO_CTF_FRAME_FUNCTION] = KYMO_TYPE_STRING, [KYMO_CTF_FRAME_OFFSET] = KYMO_TYPE_U64,
	[KYMO_CTF_FRAME_ADDRESS] = KYMO_TYPE_X64,     [KYMO_CTF_FRAME_PLACE] = KYMO_TYPE_U32,
};

static const enum kymo_type source_types[KYMO_CTF_SOURCE_FIELDS] = {
	[KYMO_CTF_SOURCE_PLACE] = KYMO_TYPE_U32,       [KYMO_CTF_SOURCE_IS_INLINED] = KYMO_TYPE_U8,
	[KYMO_CTF_SOURCE_FUNCTION] = KYMO_TYPE_STRING, [KYMO_CTF_SOURCE_FILE] = KYMO_TYPE_STRING,
	[KYMO_CTF_SOURCE_LINE] = KYMO_TYPE_U32,
};

/* Whether the first fields, of which the event has `n`, have those types. */
static bool are_of(const struct kymo_ctf_event *event, const enum kymo_type *types, uint32_t n)
{
	bool are = event->n_fields == n;

	for (uint32_t i = 0; i < n && are; i++)
		are = event->fields[i].type == types[i];
	return are;
}

static uint32_t field_text(struct kymo_frame_tree *rows, const struct kymo_ctf_record *record, uint32_t field)
{
	const char *text = kymo_ctf_string(record, field);

	return *text ? kymo_strings_number(&rows->texts, text) : 0;
}

static bool take_frame(struct kymo_frame_tree *tree, const struct kymo_ctf_record *record)
{
	const uint64_t caller = record->values[KYMO_CTF_FRAME_CALLER];
	const bool has_place = are_of(record->event, frame_types, KYMO_CTF_FRAME_FIELDS);
	const struct kymo_frame_node *above;
	struct kymo_frame_node row;

	if ((!has_place && !are_of(record->event, frame_types, KYMO_CTF_FRAME_PLACE)) ||
	    record->values[KYMO_CTF_FRAME_ID] != tree->nodes.n + 1)
		return true;
	above = kymo_frame_at(tree, caller);
	/* Of a hostile trace: as if it had no caller. */
	if (caller && above && above->depth >= FRAMES_DEPTH_MAX)
		above = NULL;
	row = (struct kymo_frame_node){
		.caller = above ? (uint32_t)caller : 0,
		.depth = above ? above->depth + 1 : 1,
		.what = record->values[KYMO_CTF_FRAME_WHAT] == KYMO_CTF_FRAME_LOST  ? KYMO_CTF_FRAME_LOST
			: record->values[KYMO_CTF_FRAME_WHAT] == KYMO_CTF_FRAME_CUT ? KYMO_CTF_FRAME_CUT
										    : KYMO_CTF_FRAME_CODE,
		.file = field_text(tree, record, KYMO_CTF_FRAME_FILE),
		.function = field_text(tree, record, KYMO_CTF_FRAME_FUNCTION),
		.offset = record->values[KYMO_CTF_FRAME_OFFSET],
		.address = record->values[KYMO_CTF_FRAME_ADDRESS],
		.place = has_place ? (uint32_t)record->values[KYMO_CTF_FRAME_PLACE] : 0,
	};
	return kymo_vec_push(&tree->nodes, row);
}

/* Each place comes once, in order; numbers that do not come are places without sources. */
static bool take_source(struct kymo_frame_tree *tree, const struct kymo_ctf_record *record)
{
	const uint64_t place = record->values[KYMO_CTF_SOURCE_PLACE];
	struct kymo_frame_sources *last;
	struct kymo_frame_source source;

	if (!are_of(record->event, source_types, KYMO_CTF_SOURCE_FIELDS) || !place || place > KYMO_FRAMES_MAX ||
	    place < tree->places.n || tree->sources.n == KYMO_FRAMES_MAX)
		return true;
	while (tree->places.n < place)
		if (!kymo_vec_push(&tree->places, (struct kymo_frame_sources){ (uint32_t)tree->sources.n, 0 }))
			return false;
	last = &tree->places.items[place - 1];
	/* Of a hostile trace. */
	if (last->n == SOURCES_MAX || (last->n && !tree->sources.items[tree->sources.n - 1].is_inlined))
		return true;
	source = (struct kymo_frame_source){
		.function = field_text(tree, record, KYMO_CTF_SOURCE_FUNCTION),
		.file = field_text(tree, record, KYMO_CTF_SOURCE_FILE),
		.line = (uint32_t)record->values[KYMO_CTF_SOURCE_LINE],
		.is_inlined = record->values[KYMO_CTF_SOURCE_IS_INLINED],
	};
	last->n++;
	return kymo_vec_push(&tree->sources, source);
}

bool kymo_frame_rows_take(struct kymo_frame_tree *tree, const struct kymo_ctf_record *record)
{
	return record->event->kind == KYMO_CTF_SOURCE ? take_source(tree, record) : take_frame(tree, record);
}

char *kymo_frame_name(const struct kymo_frame_tree *rows, const struct kymo_frame_node *row, bool unicode)
{
	const char *function = kymo_strings_text(&rows->texts, row->function);
	const char *file = kymo_strings_text(&rows->texts, row->file), *slash = strrchr(file, '/');
	kymo_cleanup_free char *text = NULL;
	int n = 0;

	if (row->what == KYMO_CTF_FRAME_CUT)
		n = asprintf(&text, "[stack cut at %" PRIu64 " bytes]", row->offset);
	else if (row->what == KYMO_CTF_FRAME_LOST)
		n = asprintf(&text, "[unknown]");
	else if (row->function)
		text = kymo_shown(function);
	else if (*file == '[')
		text = strdup(file);
	else if (row->file)
		n = asprintf(&text, "[%s]", slash ? slash + 1 : file);
	else
		n = asprintf(&text, "[no file]");
	if (n < 0)
		text = NULL;
	return text ? kymo_text_escape(text, unicode) : NULL;
}

char *kymo_source_name(const struct kymo_frame_tree *rows, const struct kymo_frame_source *source, bool unicode)
{
	kymo_cleanup_free char *text = NULL, *shown = kymo_shown(kymo_strings_text(&rows->texts, source->function));

	if (!source->function)
		text = strdup("[no name]" KYMO_INLINED);
	else if (!shown || asprintf(&text, "%s" KYMO_INLINED, shown) < 0)
		text = NULL;
	return text ? kymo_text_escape(text, unicode) : NULL;
}

/* " at app.c:12". */
static void write_source(const struct page *page, const struct kymo_frame_tree *rows,
			 const struct kymo_frame_source *source)
{
	const char *file = kymo_strings_text(&rows->texts, source->file), *slash = strrchr(file, '/');

	if (!source->file)
		return;
	fputs_unlocked(" at ", page->out);
	kymo_text_write(page->out, slash ? slash + 1 : file, page->unicode);
	fprintf(page->out, ":%" PRIu32, source->line);
}

/* " (/srv/app) at app.c:12", and the line ends. */
static void finish_line(const struct page *page, const struct kymo_frame_tree *rows, const struct kymo_frame_node *row,
			const struct kymo_frame_source *source)
{
	const char *file = kymo_strings_text(&rows->texts, row->file);

	if (*file) {
		fputs_unlocked(" (", page->out);
		kymo_text_write(page->out, file, page->unicode);
		putc_unlocked(')', page->out);
	}
	if (source)
		write_source(page, rows, source);
	putc_unlocked('\n', page->out);
}

static void write_inlined_line(const struct page *page, const struct kymo_frame_tree *rows,
			       const struct kymo_frame_node *row, const struct kymo_frame_source *source)
{
	kymo_cleanup_free char *name = kymo_source_name(rows, source, page->unicode);

	kymo_page_text(page, INK_HEAD, name ? name : "?");
	finish_line(page, rows, row, source);
}

static void write_frame_line(const struct page *page, const struct kymo_frame_tree *rows,
			     const struct kymo_frame_node *row, const struct kymo_frame_source *source)
{
	kymo_cleanup_free char *name = kymo_frame_name(rows, row, page->unicode);

	if (row->function || row->what == KYMO_CTF_FRAME_CUT)
		kymo_page_text(page, INK_HEAD, name ? name : "?");
	else
		fprintf(page->out, "0x%" PRIx64, row->address);
	if (row->function && row->offset)
		fprintf(page->out, "+0x%" PRIx64, row->offset);
	if (row->what == KYMO_CTF_FRAME_LOST)
		fputs_unlocked(" (nothing is known of this address)", page->out);
	finish_line(page, rows, row, source);
}

void kymo_stack_write(const struct page *page, const struct kymo_frame_tree *rows, uint64_t number, unsigned int indent)
{
	const struct kymo_frame_node *row = kymo_frame_at(rows, number);

	if (!row) {
		kymo_page_spaces(page, indent);
		fputs_unlocked("[stack not known]\n", page->out);
	}
	for (; row; row = kymo_frame_at(rows, row->caller)) {
		uint32_t n, i;
		const struct kymo_frame_source *sources = kymo_frame_sources(rows, row, &n);

		for (i = 0; i < n && sources[i].is_inlined; i++) {
			kymo_page_spaces(page, indent);
			write_inlined_line(page, rows, row, &sources[i]);
		}
		kymo_page_spaces(page, indent);
		write_frame_line(page, rows, row, i < n ? &sources[i] : NULL);
	}
}

bool kymo_next_record(struct kymo_ctf_reader *reader, struct kymo_frame_tree *rows, struct kymo_ctf_record *record,
		      struct kymo_error **error_ret)
{
	while (kymo_ctf_next(reader, record, error_ret)) {
		if (kymo_ctf_is_of_branches(record->event))
			continue; /* report/branches.c reads them */
		if (!kymo_ctf_is_of_stacks(record->event))
			return true;
		if (rows && !kymo_frame_rows_take(rows, record)) {
			*error_ret = &kymo_error_no_memory;
			return false;
		}
	}
	return false;
}

bool kymo_trace_has_stacks(const struct kymo_ctf_trace *trace)
{
	for (size_t i = 0; i < trace->n_events; i++)
		if (trace->events[i].has_stack)
			return true;
	return false;
}
