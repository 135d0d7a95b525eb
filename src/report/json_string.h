#ifndef KYMO_REPORT_JSON_STRING_H
#define KYMO_REPORT_JSON_STRING_H

#include <stdio.h>

/* A string with its quotes; what is no UTF-8 becomes U+FFFD: JSON knows no bytes. */
void kymo_json_string(FILE *out, const char *text);

#endif
