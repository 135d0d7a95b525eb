/* The summary's numbers as one JSON object; kymo-report(1) documents its members. */
#ifndef KYMO_REPORT_JSON_H
#define KYMO_REPORT_JSON_H

#include <stdio.h>

#include "report/summary.h"

/* A string with its quotes; what is no UTF-8 becomes U+FFFD: JSON knows no bytes. */
void kymo_json_string(FILE *out, const char *text);

struct kymo_error *kymo_json_write(const struct summary *summary, FILE *out);

#endif
