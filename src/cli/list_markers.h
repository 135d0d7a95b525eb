/*
 * The markers and SDT probes of a file, as `kymo list` shows them: one line for all locations of one marker with one
 * format.
 */
#ifndef KYMO_CLI_LIST_MARKERS_H
#define KYMO_CLI_LIST_MARKERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct kymo_module;

struct cli_marker_lister {
	const char *glob;  /* as kymo_marker_matches() takes it, or NULL: all */
	bool json;         /* each as an element of an array that has been begun where *n_printed is not 0 */
	bool names_file;   /* at the end of each line; there are several */
	size_t *n_printed; /* lines of the whole list */
};

/* Print those of `module` that match. BAD_DATA. */
struct kymo_error *cli_list_markers(const struct cli_marker_lister *lister, struct kymo_module *module);

#endif
