#include "aggr/frame_tree.h"

#include <stdlib.h>

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 29;
}

static uint64_t hash_of(const struct kymo_frame_node *node)
{
	uint64_t hash = mix(node->caller, node->address);

	hash = mix(hash, node->offset);
	hash = mix(hash, (uint64_t)node->file << 32 | node->function);
	return mix(hash, node->what);
}

static bool are_same(const struct kymo_frame_node *a, const struct kymo_frame_node *b)
{
	return a->caller == b->caller && a->what == b->what && a->file == b->file && a->function == b->function &&
	       a->offset == b->offset && a->address == b->address;
}

/* Where the frame is in the index, or where it goes. */
static size_t find(const struct kymo_frame_tree *tree, const struct kymo_frame_node *node)
{
	size_t at = hash_of(node) & (tree->index_size - 1);

	while (tree->index[at] && !are_same(&tree->nodes.items[tree->index[at] - 1], node))
		at = (at + 1) & (tree->index_size - 1);
	return at;
}

/* At most half of the index is used. */
static bool grow(struct kymo_frame_tree *tree)
{
	const size_t size = tree->index_size ? 2 * tree->index_size : 1024;
	uint32_t *index = calloc(size, sizeof(*index));

	if (!index)
		return false;
	free(tree->index);
	tree->index = index;
	tree->index_size = size;
	for (size_t i = 0; i < tree->nodes.n; i++)
		index[find(tree, &tree->nodes.items[i])] = (uint32_t)i + 1;
	return true;
}

uint32_t kymo_frame_tree_number(struct kymo_frame_tree *tree, const struct kymo_frame_node *node)
{
	const struct kymo_frame_node *caller = kymo_frame_at(tree, node->caller);
	const uint32_t depth = caller ? caller->depth + 1 : 1;
	size_t at;

	if (2 * (tree->nodes.n + 1) > tree->index_size && !grow(tree))
		return 0;
	at = find(tree, node);
	if (tree->index[at])
		return tree->index[at];
	if (tree->nodes.n == KYMO_FRAMES_MAX || !kymo_vec_push(&tree->nodes, *node))
		return 0;
	tree->nodes.items[tree->nodes.n - 1].depth = depth;
	tree->index[at] = (uint32_t)tree->nodes.n;
	return tree->index[at];
}

bool kymo_frame_tree_text(struct kymo_frame_tree *tree, const char *text, uint32_t *ret)
{
	*ret = text ? kymo_strings_number(&tree->texts, text) : 0;
	return !text || *ret;
}

static bool copy_text(const struct kymo_frame_tree *from, struct kymo_frame_tree *to, uint32_t *text)
{
	return kymo_frame_tree_text(to, *text ? kymo_strings_text(&from->texts, *text) : NULL, text);
}

bool kymo_frame_tree_prune(struct kymo_frame_tree *tree, uint32_t *numbers)
{
	struct kymo_frame_tree pruned = { .index = NULL };
	const uint32_t n = (uint32_t)tree->nodes.n;

	/* A caller has a lower number than what it calls. */
	for (uint32_t i = n; i-- > 0;)
		if (numbers[i] && tree->nodes.items[i].caller)
			numbers[tree->nodes.items[i].caller - 1] = 1;
	for (uint32_t i = 0; i < n; i++) {
		struct kymo_frame_node node = tree->nodes.items[i];

		if (!numbers[i])
			continue;
		node.caller = node.caller ? numbers[node.caller - 1] : 0;
		numbers[i] = copy_text(tree, &pruned, &node.file) && copy_text(tree, &pruned, &node.function)
				     ? kymo_frame_tree_number(&pruned, &node)
				     : 0;
		if (!numbers[i]) {
			kymo_frame_tree_deinit(&pruned);
			return false;
		}
	}
	kymo_frame_tree_deinit(tree);
	*tree = pruned;
	return true;
}

void kymo_frame_tree_deinit(struct kymo_frame_tree *tree)
{
	kymo_vec_deinit(&tree->nodes);
	free(tree->index);
	kymo_strings_deinit(&tree->texts);
}
