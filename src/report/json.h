/* The summary's numbers as one JSON object; kymo-report(1) documents its members. */
#ifndef KYMO_REPORT_JSON_H
#define KYMO_REPORT_JSON_H

#include <stdio.h>

#include "report/summary.h"

struct kymo_error *kymo_json_write(const struct summary *summary, FILE *out);

#endif
