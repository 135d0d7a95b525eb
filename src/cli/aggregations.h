/* The aggregations of a command line, and the probes that they are of. */
#ifndef KYMO_CLI_AGGREGATIONS_H
#define KYMO_CLI_AGGREGATIONS_H

#include <stddef.h>
#include <stdint.h>

#include "aggr/aggr.h"
#include "base/error.h"
#include "base/vec.h"

struct kymo_aggr_pieces;
struct kymo_spec;

struct cli_probes {
	struct kymo_spec *items; /* as KYMO_VEC */
	size_t n, cap;
};

struct cli_aggregations {
	KYMO_VEC(struct kymo_aggr) items;
	KYMO_VEC(uint32_t) entries; /* by number of a probe of returns: that of its entries; 0: none yet */
	uint32_t n_numbers;
	size_t last_spec; /* the probe that the user has named last, plus 1; 0: none yet */
	size_t n_last;    /* the specs that it is: one for each location of a line of source */
};

/*
 * Take in "--count TEXT" and the like. Probes that TEXT names, and entries of functions whose returns it is of, are
 * added to `specs`. USAGE with a caret, NOT_FOUND (names of a file that is not there), NO_MEMORY.
 */
struct kymo_error *cli_aggregations_add(struct cli_aggregations *aggregations, enum kymo_aggr_kind kind,
					const char *text, struct cli_probes *specs);

/*
 * The probe that the user has named last is of a function's returns, and its records or its filter have the duration of
 * the call: `limits` are those of kymo_aggr_find_limits(). A probe at the entry is added to `specs`. Nothing happens
 * where the duration is not asked for. USAGE, NOT_FOUND, NO_MEMORY.
 */
struct kymo_error *cli_aggregations_add_calls(struct cli_aggregations *aggregations,
					      const struct kymo_aggr_pieces *limits, struct cli_probes *specs);

/* The user has named a probe: the last `n` of `specs`. */
void cli_aggregations_note_probe(struct cli_aggregations *aggregations, const struct cli_probes *specs, size_t n);

void cli_aggregations_deinit(struct cli_aggregations *aggregations);

#endif
