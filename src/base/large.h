/*
 * Memory that much is written to at once. The kernel takes longer to give a page than to fill it, and a large page
 * (Documentation/admin-guide/mm/transhuge.rst) costs as much as a few small ones. And memory of which little is used.
 */
#ifndef KYMO_BASE_LARGE_H
#define KYMO_BASE_LARGE_H

#include <stddef.h>

/* Zeroed memory, in large pages where it is large and the kernel has them; NULL when memory is out. */
void *kymo_large_alloc(size_t size);

/* `size` is what it was allocated with. NULL is allowed. */
void kymo_large_free(void *memory, size_t size);

/* Zeroed memory of which little is used: pages come at first use. NULL when memory is out. */
void *kymo_sparse_alloc(size_t size);

/* The same, where the end is used most: the last part is a large page, if the kernel has them. For kymo_sparse_free().
 */
void *kymo_sparse_alloc_to_end(size_t size);

/* `size` is what it was allocated with. NULL is allowed. */
void kymo_sparse_free(void *memory, size_t size);

/* Let malloc() take its memory in large pieces, and keep what is freed. To be called before the first malloc(), by
 * programs that end soon or use about as much memory all of the time. */
void kymo_large_heap(void);

#endif
