/*
 * The aggregations of a trace: their tables, as they were when their rows were written last. Private to the room.
 */
#ifndef KYMO_REPORT_AGGREGATIONS_H
#define KYMO_REPORT_AGGREGATIONS_H

#include <stdio.h>

#include "aggr/table.h"
#include "base/error.h"
#include "base/vec.h"
#include "ctf/ctf.h"
#include "report/page.h"

/* An aggregation of the trace. It does not move: its tables point into it. */
struct trace_aggregation {
	struct kymo_aggr aggr;         /* texts are its own */
	struct kymo_aggr_table coming; /* rows of a moment of which the end has not come yet */
	struct kymo_aggr_table table;  /* of the last moment that is whole */
	uint64_t coming_tsc;
	bool is_whole; /* there was one */
};

struct aggregations {
	const struct kymo_ctf_trace *trace;
	KYMO_VEC(struct trace_aggregation *) items;
	struct kymo_frame_tree frames; /* of the stacks among keys */
	bool has_stacks;
	uint32_t *by_event; /* as the trace's events: index in `items` + 1; 0: no aggregation */
};

/* It does not move from then on: tables point into it. */
struct kymo_error *kymo_aggregations_init(struct aggregations *aggregations, const struct kymo_ctf_trace *trace);
void kymo_aggregations_deinit(struct aggregations *aggregations);

/* Take in a record of kind KYMO_CTF_AGGREGATION. What makes no sense is left out. */
void kymo_aggregations_take(struct aggregations *aggregations, const struct kymo_ctf_record *record);

/* The tables on the page; `all` their rows, not the first few. */
struct kymo_error *kymo_aggregations_write(const struct aggregations *aggregations, const struct page *page, bool all);

/* The same as a member of a JSON object, with a comma after it. */
struct kymo_error *kymo_aggregations_write_json(const struct aggregations *aggregations, FILE *out);

#endif
