/* Histories of branches as JSON; kymo-branches(1) documents it. */
#ifndef KYMO_REPORT_BRANCHES_JSON_H
#define KYMO_REPORT_BRANCHES_JSON_H

#include <stdio.h>

#include "base/error.h"

struct history;
struct kymo_branches_view;

/* One object. */
struct kymo_error *kymo_branches_json_write(FILE *out, const struct history *history,
					    const struct kymo_branches_view *view, const char *dir);

#endif
