#include "report/spans.h"

#include <stdlib.h>

#include "base/hash.h"

void kymo_spans_deinit(struct spans *spans)
{
	for (size_t i = 0; i < spans->stacks.n; i++)
		kymo_vec_deinit(&spans->stacks.items[i].begins);
	kymo_vec_deinit(&spans->stacks);
	kymo_index_deinit(&spans->index);
	*spans = (struct spans){ 0 };
}

static uint64_t hash_stack(const struct span_stack *stack)
{
	return kymo_hash_pair((uint32_t)stack->thread, stack->function);
}

struct span_stack *kymo_spans_find(struct spans *spans, size_t thread, uint32_t function)
{
	const struct span_stack stack = { .thread = thread, .function = function }, *items = spans->stacks.items;
	const size_t n = spans->stacks.n;
	const uint32_t known = kymo_index_find(&spans->index, hash_stack(&stack), i,
					       items[i - 1].thread == thread && items[i - 1].function == function);

	if (known)
		return &spans->stacks.items[known - 1];
	if (!kymo_index_reserve(&spans->index, n, i, hash_stack(&items[i - 1])) ||
	    !kymo_vec_push(&spans->stacks, stack))
		return NULL;
	kymo_index_put(&spans->index, hash_stack(&stack), n + 1);
	return &spans->stacks.items[n];
}
