/*
 * Aggregations: what hits of probes come to, by keys, in place of a record for each hit.
 *
 *	words.c		the user's words in pieces
 *	table.c		keys to counts, sums, extremes and histograms, of bounded size
 *	strings.c	the texts among keys, each once
 *	frame_tree.c	the frames of stacks, each once
 *	calls.c		entries and returns of calls in pairs, of records that come from several rings
 *	stacks.c	the calls that a thread is in
 *
 * The room knows no process and no trace. docs/internals/aggregations.md says which process uses it, and when.
 */
#ifndef KYMO_AGGR_AGGR_H
#define KYMO_AGGR_AGGR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/naming.h"
#include "wire/types.h"

#define KYMO_AGGR_KEYS_MAX 4
#define KYMO_AGGR_STEPS_MAX 100 /* of KYMO_AGGR_LHIST */
#define KYMO_AGGR_ROWS_DEFAULT 16384u

enum kymo_aggr_kind {
	KYMO_AGGR_COUNT,
	KYMO_AGGR_SUM,
	KYMO_AGGR_MIN,
	KYMO_AGGR_MAX,
	KYMO_AGGR_AVG,
	KYMO_AGGR_HIST,  /* by powers of two */
	KYMO_AGGR_LHIST, /* by steps of one size */
	KYMO_AGGR_TOP,   /* as SUM; the first ten are shown */
	KYMO_AGGR_N_KINDS,
	/* without a table */
	KYMO_AGGR_UNTIL = KYMO_AGGR_N_KINDS, /* a hit ends the recording, or takes a snapshot */
	KYMO_AGGR_CALLS,                     /* the record of a call's return is written once its duration is known */
};

enum kymo_aggr_what {
	KYMO_AGGR_VALUE, /* of an expression, that is an argument of a record */
	KYMO_AGGR_TID,
	KYMO_AGGR_PID,
	KYMO_AGGR_COMM,
	KYMO_AGGR_PROBE,    /* the name of the event */
	KYMO_AGGR_FUNC,     /* the function that it is in */
	KYMO_AGGR_DURATION, /* nanoseconds from a function's entry to its return */
	KYMO_AGGR_STACK,    /* the thread's stack: the number of its innermost frame */
};

/* A key, or what is added up. */
struct kymo_aggr_word {
	enum kymo_aggr_what what;
	char *text;                 /* the user's */
	bool is_of_return;          /* VALUE: the record of the return has it, not that of the entry or hit */
	uint8_t argument;           /* VALUE: its place in that record */
	enum kymo_type type;        /* of its values; KYMO_TYPE_STRING of texts, KYMO_TYPE_U32 of STACK */
	struct kymo_naming *naming; /* of VALUE; or NULL */
};

/* An aggregation that is asked for. Hits are those of probes by number (struct kymo_spec). */
struct kymo_aggr {
	enum kymo_aggr_kind kind;
	char *probe; /* the user's words for it */
	struct kymo_aggr_word keys[KYMO_AGGR_KEYS_MAX];
	size_t n_keys;
	struct kymo_aggr_word value; /* of all but COUNT, and TOP without one */
	bool has_value;
	int64_t low, high, step; /* of LHIST: values of [low, high), and a row each for what is below and above */
	bool has_limits;         /* only calls of these durations count */
	uint64_t duration_min, duration_max; /* nanoseconds; both are within */
	uint32_t hit;                        /* number of the probe; 0: the hits are calls */
	uint32_t entry, leave;               /* of calls: those of its entry and its return */
	uint8_t entry_value; /* of CALLS: the first argument of its entry that the record of its return gets */
	bool has_entry_values;
};

/* "count", "sum", ...; "until". */
const char *kymo_aggr_kind_name(enum kymo_aggr_kind kind);

/* Whether it has a value that is signed. */
static inline bool kymo_aggr_is_signed(const struct kymo_aggr *aggr)
{
	return aggr->has_value && aggr->value.what == KYMO_AGGR_VALUE && kymo_type_is_signed(aggr->value.type);
}

/* Whether rows have buckets. */
static inline bool kymo_aggr_is_histogram(enum kymo_aggr_kind kind)
{
	return kind == KYMO_AGGR_HIST || kind == KYMO_AGGR_LHIST;
}

/* Whether rows have stacks. */
static inline bool kymo_aggr_has_stacks(const struct kymo_aggr *aggr)
{
	bool has = false;

	for (size_t i = 0; i < aggr->n_keys; i++)
		has |= aggr->keys[i].what == KYMO_AGGR_STACK;
	return has;
}

/* Free what the members point to. */
void kymo_aggr_deinit(struct kymo_aggr *aggr);

#endif
