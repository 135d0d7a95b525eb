/* All functions of a perf map that grows while its program runs. */
#ifndef KYMO_SYM_PERFTABLE_H
#define KYMO_SYM_PERFTABLE_H

#include <stdbool.h>
#include <stdint.h>

/* Not for use from several threads at a time. */
struct kymo_perf_table;

/* Of the map that is open at `fd`, which is the table's from then on, also on failure. NULL when memory is out. */
struct kymo_perf_table *kymo_perf_table_create(int fd);
void kymo_perf_table_destroy(struct kymo_perf_table *table); /* NULL is allowed */

/*
 * Read the lines that the map has got since the last time, up to 1 MiB of them. Whether there were any; where the map
 * was written anew it is read from its beginning. Nothing in the map is trusted: lines that are none are left out, and
 * functions beyond 131,072 at a time have no names. Names that were returned before the last
 * reading are not valid any more.
 */
bool kymo_perf_table_read(struct kymo_perf_table *table);

/* The function that has `address`: of several the one whose line came last. Its name, which is the table's; NULL where
 * there is none. */
const char *kymo_perf_table_at(const struct kymo_perf_table *table, uint64_t address, uint64_t *start_ret);

#endif
