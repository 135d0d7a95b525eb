/* Branches and anchors of a history, a line each, for a terminal. */
#ifndef KYMO_REPORT_BRANCH_LINES_H
#define KYMO_REPORT_BRANCH_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "report/page.h"

struct history;
struct history_branch;
struct kymo_branches_view;

struct branch_view {
	const struct kymo_branches_view *options;
	struct page page;
};

/* "app:main+0x12 app.c:20". A fresh string, or NULL when memory is out. */
char *branch_location(const struct branch_view *view, const struct history *history, uint32_t number);

/* Of an anchor: which event it is of. */
const char *branch_event(const struct history *history, const struct history_branch *anchor);

/* Equal ones of equal branches, and of anchors of equal events, for loops.h and parting.h. */
uint64_t branch_symbol(const struct history_branch *branch);

/* `n` of them in their order, loops folded. NO_MEMORY. */
struct kymo_error *branch_lines_write(const struct branch_view *view, const struct history *history,
				      const struct history_branch *branches, size_t n);

#endif
