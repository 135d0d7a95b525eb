/*
 * Aggregations of a recording (docs/internals/aggregations.md): pads write records as ever, and the recorder takes
 * those of aggregated probes out of the packets, into tables. Private to the room.
 */
#ifndef KYMO_RECORD_AGGREGATE_H
#define KYMO_RECORD_AGGREGATE_H

#include "aggr/calls.h"
#include "aggr/table.h"
#include "record/aggregate_direct.h"
#include "record/packet_copy.h"
#include "record/recording.h"

/* An aggregation that is asked for. */
struct aggregation {
	struct kymo_aggr aggr;         /* the options', with types; texts are theirs */
	const struct kymo_spec *leave; /* of KYMO_AGGR_CALLS: the probe of its returns */
	uint64_t n_forgotten;          /* … open calls, the record of whose entry found no room */
	struct kymo_aggr_table table;
	uint32_t events[KYMO_CTF_N_ROWS]; /* ids of the events of its rows */
};

/* How the records of an event are read. */
struct hit_layout {
	uint32_t function; /* the same for all events of one function */
	uint32_t aggregated;
	uint8_t texts;   /* bit i: field i is a text among keys */
	bool has_values; /* its fields are asked for: those of a marker may be the author's own */
	struct aggregate_direct direct;
};

struct aggregating {
	struct aggregation *items;
	size_t n;
	bool has_calls, has_conditions;
	KYMO_VEC(struct hit_layout) layouts; /* as the trace's events */
	struct packet_copy packet;
	struct kymo_trace_position position; /* of rows */
	struct kymo_aggr_strings texts;      /* of records: values of these are their numbers */
	struct {
		const struct kymo_aggr *aggr; /* NULL: none has held since the last one was dealt with */
		uint64_t tsc;                 /* when */
		int32_t tid;                  /* in which thread */
	} condition;                          /* of those that end the recording */
	uint64_t n_packets, rows_tsc;
	uint64_t hits;
	uint64_t next_table_ns, next_rows_ns, next_flush_ns;
};

/* A record that waited for the duration of its call. */
struct kept_record {
	uint64_t tsc;
	size_t at; /* in the bytes */
	uint32_t size;
};

/* Of a ring: records that waited for the durations of their calls, and are to be written. */
struct kept_calls {
	struct kymo_trace_position position;
	KYMO_VEC(uint8_t) bytes;
	KYMO_VEC(struct kept_record) records;
	KYMO_VEC(uint8_t) packet;
	uint64_t tsc_begin; /* of the packet */
	uint64_t tsc_end;   /* of the last record */
	uint64_t n_packets;
	uint64_t lost, lost_written; /* records that came too late; what the last packet said */
};

/* Of a source: calls that are open, and up to where its rings are known. */
struct source_hits {
	struct kymo_open_calls *calls; /* as the aggregations */
	size_t n_calls;
	uint64_t *known, *lost; /* a ring: no older record will come; what was lost up to then, as its packets say */
	uint64_t *noted;        /* a ring: of what was lost, what calls know of */
	size_t n_rings;
	struct kept_calls *kept; /* a ring */
	uint64_t next_mark;      /* stamp up to which rings are known when waiting records are looked at next */
	int32_t tid;             /* whose name and process these are */
	bool has_comm;
	char comm[32];
	int32_t pid;
};

/* Make tables and events, if something is aggregated. To be called before the specs are divided. */
struct kymo_error *aggregate_begin(struct recording *recording);
void aggregate_end(struct recording *recording);

/* As kymo_trace_drain() of ring `i`: records of aggregated probes go into the tables, or wait, and others are written.
 */
struct kymo_error *aggregate_drain(struct recording *recording, struct record_source *source, size_t i, size_t *n_ret);

/* The same of a ring of which nothing may be read yet: calls of the other rings are paired meanwhile, if it is idle. */
struct kymo_error *aggregate_pass_over(struct recording *recording, struct record_source *source, size_t i);

/* Whether it has a table: it is no condition, and its records are not written. */
static inline bool aggregation_has_table(const struct aggregation *aggregation)
{
	return aggregation->aggr.kind < KYMO_AGGR_N_KINDS;
}

/* After a round over all rings of a source: what no older record can come before is taken. `ends`: none will come. */
struct kymo_error *aggregate_settle(struct recording *recording, struct record_source *source, bool ends);

/* The next round settles all that it can, also soon after the last one that did. */
void aggregate_hurry(const struct recording *recording);

/* Whether it is time to close packets, so that calls can be paired. */
bool aggregate_wants_flush(struct recording *recording);

/* Rows and tables whose time has come. */
struct kymo_error *aggregate_now_and_then(struct recording *recording);

/* Show the tables to the caller, and write their rows: `is_last`, all of them for good. */
struct kymo_error *aggregate_write(struct recording *recording, bool is_last);

/* How many hits were for tables; for how many of them there was no room, the most of any table. */
uint64_t aggregate_hits(const struct recording *recording);
uint64_t aggregate_in_no_row(const struct recording *recording);

#endif
