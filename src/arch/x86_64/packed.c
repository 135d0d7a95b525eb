/*
 * An entry map as bytes. The bytes are for the same program on the same machine: numbers are as the CPU has them, and a
 * change of a struct shows in the sizes of the head. Whoever reads them back has checked a sum of them; counts are
 * compared with those of the module all the same.
 */
#include <errno.h>
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

static size_t words_of(const struct kymo_entry_map *map)
{
	return map->n_bits / 64 + 1;
}

/* What a map is made of beside its areas, which come with the module's text. Returns how many parts. */
static size_t parts_of(const struct kymo_entry_map *map, struct part parts[MAX_PARTS])
{
	size_t n = 0;

	parts[n++] = (struct part){ map->functions, map->n_functions * sizeof(*map->functions) };
	if (map->stacks)
		parts[n++] = (struct part){ map->stacks, map->n_functions * sizeof(*map->stacks) };
	parts[n++] = (struct part){ map->tables, map->n_tables * sizeof(*map->tables) };
	for (int i = 0; i < X86_N_BITMAPS; i++)
		parts[n++] = (struct part){ map->bits[i], words_of(map) * sizeof(uint64_t) };
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

/* Memory for the parts that the head tells of. The map has been begun for the module: what it knows has to agree. */
static int allocate_parts(struct kymo_entry_map *map, const struct packed_head *head, size_t size)
{
	if (head->size != size || head->function_size != sizeof(struct x86_function) ||
	    head->stack_size != sizeof(struct x86_stack) || head->n_bitmaps != X86_N_BITMAPS ||
	    head->n_functions != map->n_functions || head->n_bits != map->n_bits || head->n_tables > size)
		return -EINVAL;
	map->n_tables = head->n_tables;
	map->tables = calloc(map->n_tables + 1, sizeof(*map->tables));
	if (head->has_stacks)
		map->stacks = calloc(map->n_functions + 1, sizeof(*map->stacks));
	return map->tables && (map->stacks || !head->has_stacks) ? 0 : -ENOMEM;
}

int kymo_entry_map_unpack(const struct kymo_module_code *code, const void *bytes, size_t size,
			  struct kymo_entry_map **ret)
{
	struct kymo_entry_map *map = NULL;
	struct packed_head head;
	struct part parts[MAX_PARTS];
	const uint8_t *at = bytes;
	size_t n, left;
	int err;

	if (size < sizeof(head))
		return -EINVAL;
	memcpy(&head, bytes, sizeof(head));
	err = x86_entry_map_begin(code, &map);
	if (!err)
		err = allocate_parts(map, &head, size);
	at += sizeof(head);
	left = size - sizeof(head);
	n = err ? 0 : parts_of(map, parts);
	for (size_t i = 0; i < n && !err; i++) {
		if (parts[i].size > left) {
			err = -EINVAL;
			break;
		}
		if (parts[i].size)
			memcpy(parts[i].bytes, at, parts[i].size);
		at += parts[i].size;
		left -= parts[i].size;
	}
	if (!err && left)
		err = -EINVAL;
	if (err) {
		kymo_entry_map_destroy(map);
		return err;
	}
	*ret = map;
	return 0;
}
