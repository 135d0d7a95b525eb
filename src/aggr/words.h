/*
 * The user's words for an aggregation, in pieces:
 *
 *	TEXT	:= [PROBE [ SPACE "/" FILTER "/" ]] [VALUE] [ "by" KEY { "," KEY } ]
 *	VALUE	:= EXPR | "duration"; of lhist: EXPR "," LOW "," HIGH "," STEP
 *	KEY	:= "tid" | "pid" | "comm" | "probe" | EXPR
 *
 * PROBE is where a SPEC says that a probe is put (probe/spec/spec.h). It is the first word if that has a ":"
 * that separates.
 */
#ifndef KYMO_AGGR_WORDS_H
#define KYMO_AGGR_WORDS_H

#include "aggr/aggr.h"
#include "base/error.h"

struct kymo_aggr_piece {
	const char *start, *end; /* of the text; NULL: there is none */
};

struct kymo_aggr_pieces {
	struct kymo_aggr_piece probe; /* with its filter */
	struct kymo_aggr_piece value;
	struct kymo_aggr_piece keys[KYMO_AGGR_KEYS_MAX];
	size_t n_keys;
	int64_t low, high, step; /* of KYMO_AGGR_LHIST */
};

/* Take it to pieces. USAGE with a caret. */
struct kymo_error *kymo_aggr_split(enum kymo_aggr_kind kind, const char *text, struct kymo_aggr_pieces *ret);

/* The meaning of a piece that is one word: TID ... DURATION, or VALUE for all others. */
enum kymo_aggr_what kymo_aggr_what_of(struct kymo_aggr_piece piece);

/* Whether an expression has the name, with or without "$". */
bool kymo_aggr_has_name(struct kymo_aggr_piece piece, const char *name);

#endif
