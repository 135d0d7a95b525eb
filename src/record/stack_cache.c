#include "record/stack_cache.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "record/stack_number.h"
#include "wire/event.h"

enum { ENTRIES = 128, CHAIN_SIZE_MAX = sizeof(struct kymo_wire_chain) + sizeof(uint64_t) * KYMO_WIRE_CHAIN_MAX };

struct entry {
	uint64_t round; /* of the cache when it was put */
	uint32_t number;
	uint16_t size;
	uint8_t bytes[CHAIN_SIZE_MAX];
};

struct stack_cache {
	uint64_t round;
	struct entry entries[ENTRIES];
};

struct stack_cache *stack_cache_create(void)
{
	struct stack_cache *cache = calloc(1, sizeof(*cache));

	stack_cache_forget(cache);
	return cache;
}

void stack_cache_destroy(struct stack_cache *cache)
{
	free(cache);
}

void stack_cache_forget(struct stack_cache *cache)
{
	if (cache)
		cache->round++;
}

static bool is_cached(const struct stack_cache *cache, const struct stack_bytes *stack)
{
	return cache && stack->is_chain && stack->size <= CHAIN_SIZE_MAX;
}

/* Where such a chain is, if it is there. Its size is a multiple of 8. */
static size_t place_of(const struct stack_bytes *stack)
{
	uint64_t hash = KYMO_HASH_FIRST, word;

	for (size_t i = 0; i + sizeof(word) <= stack->size; i += sizeof(word)) {
		memcpy(&word, stack->bytes + i, sizeof(word));
		hash = kymo_hash_number(hash, word);
	}
	return hash % ENTRIES;
}

uint32_t stack_cache_find(const struct stack_cache *cache, const struct stack_bytes *stack)
{
	const struct entry *entry;

	if (!is_cached(cache, stack))
		return 0;
	entry = &cache->entries[place_of(stack)];
	return entry->round == cache->round && entry->size == stack->size &&
			       !memcmp(entry->bytes, stack->bytes, stack->size)
		       ? entry->number
		       : 0;
}

void stack_cache_put(struct stack_cache *cache, const struct stack_bytes *stack, uint32_t number)
{
	struct entry *entry;

	if (!is_cached(cache, stack))
		return;
	entry = &cache->entries[place_of(stack)];
	entry->round = cache->round;
	entry->number = number;
	entry->size = stack->size;
	memcpy(entry->bytes, stack->bytes, stack->size);
}
