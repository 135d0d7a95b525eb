/* A flame graph: a page of HTML that needs nothing else. */
#ifndef KYMO_REPORT_FLAME_H
#define KYMO_REPORT_FLAME_H

#include <stdio.h>

#include "base/error.h"
#include "report/folds.h"

/* Of folds that are added up; `title` and `note` are any text. */
struct kymo_error *kymo_flame_write(const struct folds *folds, const char *title, const char *note, FILE *out);

/* `text` with what HTML reads as its own replaced. */
void kymo_flame_escape(const char *text, FILE *out);

#endif
