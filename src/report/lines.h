/*
 * What lists of records have in common: names, values, losses and damage as they stand on a line.
 */
#ifndef KYMO_REPORT_LINES_H
#define KYMO_REPORT_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "ctf/ctf.h"
#include "report/losses.h"
#include "report/page.h"

/* Text of one event that is the same on each of its lines, safe. */
struct event_text {
	char *name;
	char *function;   /* the symbol, or the name where there is none */
	char *plain_name; /* for what is no terminal; demangled, as the others are */
	char *fields[KYMO_EVENT_MAX_ARGS];
};

/* As trace->events. */
struct kymo_error *kymo_event_texts_create(const struct kymo_ctf_trace *trace, bool unicode, struct event_text **ret);
void kymo_event_texts_destroy(struct event_text *texts, const struct kymo_ctf_trace *trace);

/* A record that outlives its reader's next one. `strings_ret`: its strings and bytes, for the caller to free; NULL
 * where it has none. False when memory is out. */
bool kymo_record_copy(const struct kymo_ctf_record *record, struct kymo_ctf_record *ret, char **strings_ret);

/* Value `i` of a record; (fault) where it could not be read, (unknown) where a function had not returned it yet: it was
 * left by a jump to another. */
void kymo_value_write(const struct page *page, const struct kymo_ctf_record *record, uint32_t i);

/* "--- lost 5 events within 1.0s ---" and the end of the line. */
void kymo_loss_write(const struct page *page, const struct kymo_ctf_trace *trace, const struct kymo_ctf_loss *loss);

/* At the end of a list: losses whose place in time came to light only when later records had been written, and damage.
 * `written` is what was written in its place. */
struct kymo_error *kymo_lines_finish(const struct page *page, const struct kymo_ctf_reader *reader,
				     const struct loss_total *written);

#endif
