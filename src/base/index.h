/*
 * A hash table of the numbers of items which the caller has elsewhere, in an array: from 1 on, each once.
 *
 *	struct kymo_index index = { 0 };
 *	uint32_t number = kymo_index_find(&index, hash_of(key), i, vec.items[i - 1].key == key);
 *	if (!number) {
 *		if (!kymo_index_reserve(&index, vec.n, i, hash_of(vec.items[i - 1].key)) || !kymo_vec_push(&vec, item))
 *			return &kymo_error_no_memory;
 *		kymo_index_put(&index, hash_of(key), vec.n);
 *	}
 *	kymo_index_deinit(&index);
 *
 * Hashes (base/hash.h) have 64 bits; the low ones choose the slot, and the following slots are tried. At most half of
 * the slots are used.
 */
#ifndef KYMO_BASE_INDEX_H
#define KYMO_BASE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed: empty. */
struct kymo_index {
	uint32_t *slots; /* a number, or 0 */
	size_t size;     /* a power of two, or 0 */
};

void kymo_index_deinit(struct kymo_index *index);

/* An empty index with twice the slots, in `ret`. False when memory is out. */
bool kymo_index_grow_(const struct kymo_index *index, struct kymo_index *ret);

/*
 * The number of the item with that hash for which `is_same` is true; 0 where there is none. `is_same` is an expression
 * of the number `i`, a name that the caller chooses.
 */
#define kymo_index_find(index, hash, i, is_same) \
	__extension__({ \
		const struct kymo_index *const index_ = (index); \
		const size_t mask_ = index_->size - 1; \
		uint32_t i = 0; \
		if (index_->size) \
			for (size_t at_ = (size_t)(hash)&mask_; (i = index_->slots[at_]) && !(is_same); \
			     at_ = (at_ + 1) & mask_) \
				; \
		i; \
	})

/*
 * Make room for one more item than the `n` that are there, of numbers 1 to `n`. `hash` is an expression of the number
 * `i`, a name that the caller chooses. False when memory is out; nothing changes then.
 */
#define kymo_index_reserve(index, n, i, hash) \
	__extension__({ \
		struct kymo_index *const reserved_ = (index); \
		const size_t n_ = (n); \
		struct kymo_index grown_; \
		bool has_room_ = 2 * (n_ + 1) <= reserved_->size; \
		if (!has_room_ && kymo_index_grow_(reserved_, &grown_)) { \
			for (uint32_t i = 1; i <= n_; i++) \
				kymo_index_put(&grown_, (hash), i); \
			kymo_index_deinit(reserved_); \
			*reserved_ = grown_; \
			has_room_ = true; \
		} \
		has_room_; \
	})

/* Add an item that is not there, after kymo_index_reserve(). */
static inline void kymo_index_put(struct kymo_index *index, uint64_t hash, size_t number)
{
	size_t at = (size_t)hash & (index->size - 1);

	while (index->slots[at])
		at = (at + 1) & (index->size - 1);
	index->slots[at] = (uint32_t)number;
}

#endif
