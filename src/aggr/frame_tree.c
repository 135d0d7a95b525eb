#include "aggr/frame_tree.h"

#include <stdlib.h>

#include "base/hash.h"

static uint64_t hash_frame(const struct kymo_frame_node *node)
{
	uint64_t hash = kymo_hash_number(node->caller, node->address);

	hash = kymo_hash_number(hash, node->offset);
	hash = kymo_hash_number(hash, (uint64_t)node->file << 32 | node->function);
	return kymo_hash_number(hash, (uint64_t)node->place << 8 | node->what);
}

static bool are_same(const struct kymo_frame_node *a, const struct kymo_frame_node *b)
{
	return a->caller == b->caller && a->what == b->what && a->file == b->file && a->function == b->function &&
	       a->place == b->place && a->offset == b->offset && a->address == b->address;
}

uint32_t kymo_frame_tree_number(struct kymo_frame_tree *tree, const struct kymo_frame_node *node)
{
	const struct kymo_frame_node *caller = kymo_frame_at(tree, node->caller);
	const uint32_t depth = caller ? caller->depth + 1 : 1;
	const uint64_t hash = hash_frame(node);
	const uint32_t known = kymo_index_find(&tree->index, hash, i, are_same(&tree->nodes.items[i - 1], node));

	if (known)
		return known;
	if (tree->nodes.n == KYMO_FRAMES_MAX ||
	    !kymo_index_reserve(&tree->index, tree->nodes.n, i, hash_frame(&tree->nodes.items[i - 1])) ||
	    !kymo_vec_push(&tree->nodes, *node))
		return 0;
	tree->nodes.items[tree->nodes.n - 1].depth = depth;
	kymo_index_put(&tree->index, hash, tree->nodes.n);
	return (uint32_t)tree->nodes.n;
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
	struct kymo_frame_tree pruned = { 0 };
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
	kymo_index_deinit(&tree->index);
	kymo_strings_deinit(&tree->texts);
	kymo_vec_deinit(&tree->sources);
	kymo_vec_deinit(&tree->places);
}
