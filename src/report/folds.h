/* Stacks added up by the names of their functions: a tree from the outermost ones. */
#ifndef KYMO_REPORT_FOLDS_H
#define KYMO_REPORT_FOLDS_H

#include <stdbool.h>
#include <stdint.h>

#include "aggr/strings.h"
#include "base/index.h"
#include "base/vec.h"

struct fold {
	uint32_t parent; /* index; the root, at 0, is its own */
	uint32_t name;   /* in `names`; 0 of the root */
	uint32_t depth;  /* 0 of the root */
	uint64_t self;   /* records whose stack ends here */
	uint64_t total;  /* and those of all below it; kymo_folds_sum() */
};

struct folds {
	KYMO_VEC(struct fold) items; /* a parent comes before its children */
	struct kymo_index index;     /* of items 1 and on, by parent and name */
	struct kymo_aggr_strings names;
};

/* With the root alone. False when memory is out. */
bool kymo_folds_init(struct folds *folds);
void kymo_folds_deinit(struct folds *folds);

/* The index of `name` below `parent`; 0 when memory is out. */
uint32_t kymo_folds_find(struct folds *folds, uint32_t parent, const char *name);

/* The name of one of them, "" of the root. */
const char *kymo_folds_name(const struct folds *folds, uint32_t at);

/* Add up the totals. */
void kymo_folds_sum(struct folds *folds);

/* All indices but the root's, children of one parent side by side: by name, or those with the largest totals first. A
 * fresh array of items.n - 1, or NULL when memory is out. */
uint32_t *kymo_folds_sorted(const struct folds *folds, bool by_total);

#endif
