/*
 * An entry map as bytes. The bytes are for the same program on the same machine: numbers are as the CPU has them, and a
 * change of a struct shows in the sizes of the head. The code that reads them back has checked a sum of them; counts
 * are compared with those of the module all the same.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "arch/x86_64/entries.h"
#include "arch/x86_64/map.h"

struct packed_head {
	uint64_t size; /* of everything */
	uint64_t n_functions, n_tables, n_bits;
	uint32_t function_size, stack_size;
	uint32_t n_bitmaps, has_stacks;
};

struct part {
	void *bytes;
	size_t size;
};

#define MAX_PARTS (3 + X86_N_BITMAPS)

/* What a map is made of beside its areas, which come with the module's text. Returns how many parts. */
static size_t parts_of(const struct kymo_entry_map *map, struct part parts[MAX_PARTS])
{
	size_t n = 0;

	parts[n++] = (struct part){ map->functions, map->n_functions * sizeof(*map->functions) };
	if (map->stacks)
		parts[n++] = (struct part){ map->stacks, map->n_functions * sizeof(*map->stacks) };
	parts[n++] = (struct part){ map->tables, map->n_tables * sizeof(*map->tables) };
	for (int i = 0; i < X86_N_BITMAPS; i++)
		parts[n++] = (struct part){ map->bits[i], (map->n_bits / 64 + 1) * sizeof(uint64_t) };
	return n;
}

int kymo_entry_map_pack(const struct kymo_entry_map *map, void **ret, size_t *size_ret)
{
	struct packed_head head = {
		.size = sizeof(head),
		.n_functions = map->n_functions,
		.n_tables = map->n_tables,
		.n_bits = map->n_bits,
		.function_size = sizeof(struct x86_function),
		.stack_size = sizeof(struct x86_stack),
		.n_bitmaps = X86_N_BITMAPS,
		.has_stacks = map->stacks != NULL,
	};
	struct part parts[MAX_PARTS];
	size_t n = parts_of(map, parts);
	uint8_t *bytes, *at;

	for (size_t i = 0; i < n; i++)
		head.size += parts[i].size;
	bytes = malloc(head.size);
	if (!bytes)
		return -ENOMEM;
	at = memcpy(bytes, &head, sizeof(head));
	at += sizeof(head);
	for (size_t i = 0; i < n; i++) {
		if (parts[i].size)
			memcpy(at, parts[i].bytes, parts[i].size);
		at += parts[i].size;
	}
	*ret = bytes;
	*size_ret = head.size;
	return 0;
}

/* Whether the head agrees with what the map, which has been begun for the module, knows. */
static bool does_fit(const struct kymo_entry_map *map, const struct packed_head *head, size_t size)
{
	return head->size == size && head->function_size == sizeof(struct x86_function) &&
	       head->stack_size == sizeof(struct x86_stack) && head->n_bitmaps == X86_N_BITMAPS &&
	       head->has_stacks <= 1 && head->n_functions == map->n_functions && head->n_bits == map->n_bits &&
	       head->n_tables <= size;
}

/* The parts are where they lie. */
static bool take_parts(struct kymo_entry_map *map, const struct packed_head *head, uint8_t *at, size_t left)
{
	struct part parts[MAX_PARTS];
	size_t n;

	_Static_assert(sizeof(struct packed_head) % 8 == 0 && sizeof(struct x86_function) % 8 == 0 &&
			       sizeof(struct x86_stack) % 8 == 0,
		       "all parts are aligned");
	map->n_tables = head->n_tables;
	map->stacks = head->has_stacks ? (struct x86_stack *)(void *)at : NULL; /* which says that there are some */
	n = parts_of(map, parts);
	for (size_t i = 0; i < n; i++) {
		if (parts[i].size > left)
			return false;
		parts[i].bytes = at;
		at += parts[i].size;
		left -= parts[i].size;
	}
	n = 0;
	map->functions = parts[n++].bytes;
	if (head->has_stacks)
		map->stacks = parts[n++].bytes;
	map->tables = parts[n++].bytes;
	for (int i = 0; i < X86_N_BITMAPS; i++)
		map->bits[i] = parts[n++].bytes;
	return !left;
}

int kymo_entry_map_unpack(const struct kymo_module_code *code, void *bytes, size_t size, struct kymo_entry_map **ret)
{
	struct kymo_entry_map *map = NULL;
	struct packed_head head;
	int err;

	if (size < sizeof(head))
		return -EINVAL;
	memcpy(&head, bytes, sizeof(head));
	err = x86_entry_map_begin(code, &map);
	if (err)
		return err;
	if (!does_fit(map, &head, size) ||
	    !take_parts(map, &head, (uint8_t *)bytes + sizeof(head), size - sizeof(head))) {
		x86_entry_map_forget(map);
		return -EINVAL;
	}
	map->packed = bytes;
	map->packed_size = size;
	*ret = map;
	return 0;
}
