#include "report/frames.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/text.h"
#include "sym/demangle.h"

static const enum kymo_type types[] = {
	[KYMO_CTF_FRAME_ID] = KYMO_TYPE_U32,          [KYMO_CTF_FRAME_CALLER] = KYMO_TYPE_U32,
	[KYMO_CTF_FRAME_WHAT] = KYMO_TYPE_U8,         [KYMO_CTF_FRAME_FILE] = KYMO_TYPE_STRING,
	[KYMO_CTF_FRAME_FUNCTION] = KYMO_TYPE_STRING, [KYMO_CTF_FRAME_OFFSET] = KYMO_TYPE_U64,
	[KYMO_CTF_FRAME_ADDRESS] = KYMO_TYPE_X64,
};

static bool is_whole(const struct kymo_ctf_event *event)
{
	bool is = event->n_fields == KYMO_CTF_FRAME_FIELDS;

	for (uint32_t i = 0; i < KYMO_CTF_FRAME_FIELDS && is; i++)
		is = event->fields[i].type == types[i];
	return is;
}

static uint32_t field_text(struct kymo_frame_tree *rows, const struct kymo_ctf_record *record, uint32_t field)
{
	const char *text = kymo_ctf_string(record, field);

	return *text ? kymo_strings_number(&rows->texts, text) : 0;
}

bool kymo_frame_rows_take(struct kymo_frame_tree *tree, const struct kymo_ctf_record *record)
{
	const uint64_t caller = record->values[KYMO_CTF_FRAME_CALLER];
	const struct kymo_frame_node *above;
	struct kymo_frame_node row;

	if (!is_whole(record->event) || record->values[KYMO_CTF_FRAME_ID] != tree->nodes.n + 1)
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
	};
	return kymo_vec_push(&tree->nodes, row);
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

static void write_frame_line(const struct page *page, const struct kymo_frame_tree *rows,
			     const struct kymo_frame_node *row)
{
	kymo_cleanup_free char *name = kymo_frame_name(rows, row, page->unicode);
	const char *file = kymo_strings_text(&rows->texts, row->file);

	if (row->function || row->what == KYMO_CTF_FRAME_CUT)
		kymo_page_text(page, INK_HEAD, name ? name : "?");
	else
		fprintf(page->out, "0x%" PRIx64, row->address);
	if (row->function && row->offset)
		fprintf(page->out, "+0x%" PRIx64, row->offset);
	if (row->what == KYMO_CTF_FRAME_LOST)
		fputs_unlocked(" (nothing is known of this address)", page->out);
	if (*file) {
		fputs_unlocked(" (", page->out);
		kymo_text_write(page->out, file, page->unicode);
		putc_unlocked(')', page->out);
	}
	putc_unlocked('\n', page->out);
}

void kymo_stack_write(const struct page *page, const struct kymo_frame_tree *rows, uint64_t number, unsigned int indent)
{
	const struct kymo_frame_node *row = kymo_frame_at(rows, number);

	if (!row) {
		kymo_page_spaces(page, indent);
		fputs_unlocked("[stack not known]\n", page->out);
	}
	for (; row; row = kymo_frame_at(rows, row->caller)) {
		kymo_page_spaces(page, indent);
		write_frame_line(page, rows, row);
	}
}

bool kymo_next_record(struct kymo_ctf_reader *reader, struct kymo_frame_tree *rows, struct kymo_ctf_record *record,
		      struct kymo_error **error_ret)
{
	while (kymo_ctf_next(reader, record, error_ret)) {
		if (kymo_ctf_is_of_branches(record->event))
			continue; /* report/branches.c reads them */
		if (record->event->kind != KYMO_CTF_FRAME)
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
