/* The frames of a trace's stacks, and reading records without them. */
#ifndef KYMO_REPORT_FRAMES_H
#define KYMO_REPORT_FRAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "aggr/strings.h"
#include "base/vec.h"
#include "ctf/ctf.h"

#define FRAMES_DEPTH_MAX 512u

struct frame_row {
	uint32_t caller; /* 0: it is the outermost */
	uint32_t depth;  /* from 1, of the outermost */
	enum kymo_ctf_frame_kind what;
	uint32_t file, function; /* in `texts`, or 0 */
	uint64_t offset, address;
};

/* Zeroed: none yet. */
struct frame_rows {
	KYMO_VEC(struct frame_row) items; /* of number i + 1 */
	struct kymo_aggr_strings texts;   /* as the trace has them */
};

void kymo_frame_rows_deinit(struct frame_rows *rows);

/* Take in a record of kind KYMO_CTF_FRAME. What makes no sense is left out. False when memory is out. */
bool kymo_frame_rows_take(struct frame_rows *rows, const struct kymo_ctf_record *record);

/* The frame of a number; NULL where there is none. */
const struct frame_row *kymo_frame_row(const struct frame_rows *rows, uint64_t number);

/* The number of the innermost frame of a record's stack; 0: none is known. */
static inline uint32_t kymo_ctf_stack(const struct kymo_ctf_record *record)
{
	return record->event->has_stack ? (uint32_t)record->values[record->event->n_fields] : 0;
}

/* "malloc", "[libc.so.6]", "[stack cut at 4096 bytes]": what stacks are added up by, for a user, safe on a terminal. A
 * fresh string, or NULL when memory is out. */
char *kymo_frame_name(const struct frame_rows *rows, const struct frame_row *row, bool unicode);

/* As kymo_ctf_next(); frames are taken into `rows`, which may be NULL, and passed over. */
bool kymo_next_record(struct kymo_ctf_reader *reader, struct frame_rows *rows, struct kymo_ctf_record *record,
		      struct kymo_error **error_ret);

/* Whether some event of the trace has stacks. */
bool kymo_trace_has_stacks(const struct kymo_ctf_trace *trace);

#endif
