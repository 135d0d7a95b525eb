/*
 * The user's words for an aggregation, in pieces:
 *
 *	TEXT	:= [PROBE [ SPACE "/" FILTER "/" ] [ SAMPLE ]] [VALUE] [ "by" KEY { "," KEY } ]
 *	FILTER	:= TERM { "&&" TERM }
 *	SAMPLE	:= SPACE ( "sample" | "first" ) SPACE DIGIT...
 *	TERM	:= EXPR | "duration" ( ">" | ">=" | "<" | "<=" ) NUMBER
 *	VALUE	:= EXPR | "duration"; of lhist: EXPR "," LOW "," HIGH "," STEP
 *	KEY	:= "tid" | "pid" | "comm" | "probe" | "func" | "stack" | EXPR
 *
 * PROBE may be "m" SPACE GLOB, of markers; their filters have limits of the duration alone. Else it is where a SPEC
 * says that a probe is put (probe/spec/spec.h). It is the first word if that has a ":" that separates.
 */
#ifndef KYMO_AGGR_WORDS_H
#define KYMO_AGGR_WORDS_H

#include "aggr/aggr.h"
#include "base/error.h"

#define KYMO_AGGR_LIMITS_MAX 4

struct kymo_aggr_piece {
	const char *start, *end; /* of the text; NULL: there is none */
};

struct kymo_aggr_pieces {
	struct kymo_aggr_piece probe;  /* with its filter, and its samples */
	struct kymo_aggr_piece filter; /* with its slashes, where it has limits */
	struct kymo_aggr_piece marker; /* the glob, where it is of markers */
	bool has_sample;
	struct kymo_aggr_piece value;
	struct kymo_aggr_piece keys[KYMO_AGGR_KEYS_MAX];
	size_t n_keys;
	int64_t low, high, step;                             /* of KYMO_AGGR_LHIST */
	uint64_t duration_min, duration_max;                 /* nanoseconds that the filter allows; both are within */
	struct kymo_aggr_piece limits[KYMO_AGGR_LIMITS_MAX]; /* the terms of the filter that say so */
	size_t n_limits, n_terms;
};

/* Take it to pieces. USAGE with a caret. */
struct kymo_error *kymo_aggr_split(enum kymo_aggr_kind kind, const char *text, struct kymo_aggr_pieces *ret);

/*
 * The limits of the duration in the filter of a SPEC of a return probe (probe/spec/spec.h): the filter comes after
 * where the probe is put, or as "if" at the end. `probe` of what is returned is all of the text. USAGE with a caret.
 */
struct kymo_error *kymo_aggr_find_limits(const char *text, struct kymo_aggr_pieces *ret);

/* The text of the probe without limits of the duration, which no probe knows: blanks are in their place, so that
 * columns stay the same. The caller frees it; NULL where memory is out. */
char *kymo_aggr_probe_text(const struct kymo_aggr_pieces *pieces);

/* The meaning of a piece that is one word: TID ... STACK, or VALUE for all others. */
enum kymo_aggr_what kymo_aggr_what_of(struct kymo_aggr_piece piece);

/* Whether an expression has the name, with or without "$". */
bool kymo_aggr_has_name(struct kymo_aggr_piece piece, const char *name);

#endif
