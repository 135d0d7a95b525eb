/* Numbers of stacks that came a moment ago: programs come to most probes by few ways. Private to the room. */
#ifndef KYMO_RECORD_STACK_CACHE_H
#define KYMO_RECORD_STACK_CACHE_H

#include <stdint.h>

struct stack_bytes;
struct stack_cache;

/* An empty one; NULL: memory is out, or nothing was made. All below take that, and remember nothing then. */
struct stack_cache *stack_cache_create(void);
void stack_cache_destroy(struct stack_cache *cache);

/* The number of the same chain of this process; 0: it is not known. Copies are never known. */
uint32_t stack_cache_find(const struct stack_cache *cache, const struct stack_bytes *stack);

/* Remember the number of a chain. Others may be forgotten for it. */
void stack_cache_put(struct stack_cache *cache, const struct stack_bytes *stack, uint32_t number);

/* Forget all: another process comes, code may have been mapped, or numbers have changed. */
void stack_cache_forget(struct stack_cache *cache);

#endif
