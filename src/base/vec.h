/*
 * A growing array of any type, in the caller's storage:
 *
 *	KYMO_VEC(int) v = { 0 };
 *	if (!kymo_vec_push(&v, 7))
 *		return &kymo_error_no_memory;
 *	for (size_t i = 0; i < v.n; i++) ... v.items[i]
 *	kymo_vec_deinit(&v);
 */
#ifndef KYMO_BASE_VEC_H
#define KYMO_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define KYMO_VEC(type) \
	struct { \
		type *items; \
		size_t n; \
		size_t cap; \
	}

/* Make room for `want` items of `size` bytes. False when memory is out; nothing changes then. */
bool kymo_vec_reserve_(void **items, size_t *cap, size_t want, size_t size);

#define kymo_vec_reserve(vec, want) \
	kymo_vec_reserve_((void **)&(vec)->items, &(vec)->cap, (want), sizeof(*(vec)->items))

/* Append one item. False when memory is out; the vector is unchanged then. */
#define kymo_vec_push(vec, ...) \
	(kymo_vec_reserve((vec), (vec)->n + 1) && ((vec)->items[(vec)->n++] = (__VA_ARGS__), true))

#define kymo_vec_deinit(vec) \
	do { \
		free((vec)->items); \
		(vec)->items = NULL; \
		(vec)->n = (vec)->cap = 0; \
	} while (0)

#endif
