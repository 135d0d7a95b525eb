/*
 * Memory of processes that have ended, with no other user, until there is time to free it: the kernel takes 0.5 us for
 * each page, for which others that have just been let go would wait. Each thread of the recorder has its own.
 */
#ifndef KYMO_PROBE_MEMORY_SPENT_H
#define KYMO_PROBE_MEMORY_SPENT_H

#include <stdbool.h>
#include <stdint.h>

#define KYMO_SPENT_SIZE_MAX (4ull << 20) /* bytes of one that is worth to be kept */

/* A mapping and the descriptor that it is of, to be freed later. */
void kymo_spent_put(void *head, uint64_t size, int fd);

/* Free one of them. False: there was none. */
bool kymo_spent_free(void);

#endif
