/*
 * Names in a column that is too narrow for some of them. What is shortened is still told apart from every other: a name
 * loses its file, or its middle, or it stays whole and its row is longer than the page.
 */
#ifndef KYMO_REPORT_LABELS_H
#define KYMO_REPORT_LABELS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What to show for `names` (safe, each of one line) in `columns`; a fresh array of fresh strings, for
 * kymo_labels_destroy(). `longest_ret`: the columns of the longest, which may be more. NULL when memory is out.
 */
char **kymo_labels_create(const char *const *names, size_t n, unsigned int columns, bool unicode,
			  unsigned int *longest_ret);
void kymo_labels_destroy(char **labels, size_t n);

#endif
