#include "report/spans.h"

#include <stdlib.h>

void kymo_spans_deinit(struct spans *spans)
{
	for (size_t i = 0; i < spans->stacks.n; i++)
		kymo_vec_deinit(&spans->stacks.items[i].begins);
	kymo_vec_deinit(&spans->stacks);
	free(spans->index);
	*spans = (struct spans){ 0 };
}

static uint32_t *find_slot(const struct spans *spans, size_t thread, uint32_t function)
{
	const uint64_t hash = (((uint64_t)thread << 32 | function) + 1) * 0x9e3779b97f4a7c15u;
	size_t slot = (size_t)(hash >> 40) & (spans->index_size - 1);

	for (; spans->index[slot]; slot = (slot + 1) & (spans->index_size - 1)) {
		const struct span_stack *stack = &spans->stacks.items[spans->index[slot] - 1];

		if (stack->thread == thread && stack->function == function)
			break;
	}
	return &spans->index[slot];
}

static bool grow_index(struct spans *spans)
{
	const size_t size = spans->index_size ? spans->index_size * 2 : 64;
	uint32_t *grown = calloc(size, sizeof(*grown));

	if (!grown)
		return false;
	free(spans->index);
	spans->index = grown;
	spans->index_size = size;
	for (size_t i = 0; i < spans->stacks.n; i++)
		*find_slot(spans, spans->stacks.items[i].thread, spans->stacks.items[i].function) = (uint32_t)i + 1;
	return true;
}

struct span_stack *kymo_spans_find(struct spans *spans, size_t thread, uint32_t function)
{
	uint32_t *slot;

	if (spans->stacks.n * 2 >= spans->index_size && !grow_index(spans))
		return NULL;
	slot = find_slot(spans, thread, function);
	if (!*slot) {
		if (!kymo_vec_push(&spans->stacks, (struct span_stack){ .thread = thread, .function = function }))
			return NULL;
		*slot = (uint32_t)spans->stacks.n;
	}
	return &spans->stacks.items[*slot - 1];
}
