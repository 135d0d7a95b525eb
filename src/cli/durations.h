/* Probes whose filters have limits of the duration of calls. */
#ifndef KYMO_CLI_DURATIONS_H
#define KYMO_CLI_DURATIONS_H

#include <stdbool.h>

#include "aggr/words.h"
#include "base/error.h"
#include "cli/spec_source.h"

/*
 * The specs that the text of -p (or of -r: `is_return`) means, as cli_specs_parse(), without the limits of the duration
 * that the filter of a return probe has: those are in `limits_ret`. USAGE, NOT_FOUND.
 */
struct kymo_error *cli_durations_parse(const char *text, bool is_return, struct cli_specs *ret,
				       struct kymo_aggr_pieces *limits_ret);

#endif
