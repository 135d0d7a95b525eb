/*
 * A terminal or a file that is written in columns.
 */
#ifndef KYMO_REPORT_PAGE_H
#define KYMO_REPORT_PAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

struct page {
	FILE *out;
	unsigned int width;
	bool color, unicode;
	bool whole; /* no name and no column of a table is cut or left out, whatever the width */
};

enum ink {
	INK_PLAIN,
	INK_HEAD, /* headings and names */
	INK_DIM,  /* what is beside the point */
	INK_BAR,
	INK_ALARM, /* losses, faults, damage */
};

void kymo_page_spaces(const struct page *page, unsigned int n);

/* Write `text` (safe, of one line) in `columns`, filled up with spaces on the right; cut where it is longer. */
void kymo_page_left(const struct page *page, enum ink ink, const char *text, unsigned int columns);

/* As kymo_page_left(), filled up on the left. */
void kymo_page_right(const struct page *page, enum ink ink, const char *text, unsigned int columns);

/* All of `text`. */
void kymo_page_text(const struct page *page, enum ink ink, const char *text);

__attribute__((format(printf, 3, 4))) void kymo_page_printf(const struct page *page, enum ink ink, const char *format,
							    ...);

/* A bar of `part` of `whole` in at most `columns`; returns the columns that it takes. What is more than nothing
 * shows. */
unsigned int kymo_page_bar(const struct page *page, uint64_t part, uint64_t whole, unsigned int columns);

/* All that was written is out, or why not. */
struct kymo_error *kymo_page_flush(FILE *out);

#endif
