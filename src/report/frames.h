/* The frames of a trace's stacks, and reading records without them. */
#ifndef KYMO_REPORT_FRAMES_H
#define KYMO_REPORT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "aggr/frame_tree.h"
#include "ctf/ctf.h"
#include "report/page.h"

#define FRAMES_DEPTH_MAX 512u

#define KYMO_INLINED " (inlined)"

/* Take in a record of kind KYMO_CTF_FRAME or KYMO_CTF_SOURCE. What makes no sense is left out. False when memory is
 * out. */
bool kymo_frame_rows_take(struct kymo_frame_tree *tree, const struct kymo_ctf_record *record);

/* The number of the innermost frame of a record's stack; 0: none is known. */
static inline uint32_t kymo_ctf_stack(const struct kymo_ctf_record *record)
{
	return record->event->has_stack ? (uint32_t)record->values[record->event->n_fields] : 0;
}

/* "malloc", "[libc.so.6]", "[stack cut at 4096 bytes]": what stacks are added up by, for a user, safe on a terminal. A
 * fresh string, or NULL when memory is out. */
char *kymo_frame_name(const struct kymo_frame_tree *rows, const struct kymo_frame_node *row, bool unicode);

/* "parse (inlined)", of an inlined function; likewise. */
char *kymo_source_name(const struct kymo_frame_tree *rows, const struct kymo_frame_source *source, bool unicode);

/* A stack by the number of its innermost frame: a line a frame, that one first, each indented by so many columns. */
void kymo_stack_write(const struct page *page, const struct kymo_frame_tree *rows, uint64_t number,
		      unsigned int indent);

/* As kymo_ctf_next(); frames are taken into `rows`, which may be NULL, and passed over. */
bool kymo_next_record(struct kymo_ctf_reader *reader, struct kymo_frame_tree *rows, struct kymo_ctf_record *record,
		      struct kymo_error **error_ret);

/* Whether some event of the trace has stacks. */
bool kymo_trace_has_stacks(const struct kymo_ctf_trace *trace);

#endif
