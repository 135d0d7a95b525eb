/* How wide a report is, and what it may be made of, on stdout. */
#ifndef KYMO_CLI_PAGE_H
#define KYMO_CLI_PAGE_H

#include "report/report.h"

#define CLI_WIDTH_MIN 20
#define CLI_WIDTH_MAX 1000

/* Columns, within these bounds; the whole text or false. */
bool cli_page_parse_width(const char *text, unsigned int *ret);

/* Width, colors and characters, as the terminal and the user's environment have them. */
void cli_page_options(struct kymo_report_options *options);

#endif
