/*
 * The frames of the stacks of a recording or a trace, each once: a tree, in which a frame hangs on the one that has
 * called it. A stack is the number of its innermost frame.
 */
#ifndef KYMO_AGGR_FRAME_TREE_H
#define KYMO_AGGR_FRAME_TREE_H

#include "aggr/strings.h"
#include "base/index.h"
#include "base/vec.h"
#include "ctf/ctf.h"

#define KYMO_FRAMES_MAX (1u << 20)

struct kymo_frame_node {
	uint32_t caller; /* 0: it is the outermost */
	uint32_t depth;  /* from 1, of the outermost; set by kymo_frame_tree_number() */
	enum kymo_ctf_frame_kind what;
	uint32_t file, function; /* in `texts`; 0: none */
	uint32_t place;          /* of a trace: which sources it has, 0: none. Of a recording: record/sources.h */
	uint64_t offset, address;
};

/* What debug information says of a place. */
struct kymo_frame_source {
	uint32_t function; /* in `texts`; 0: it has no name */
	uint32_t file;     /* … of source; 0: the line is not known */
	uint32_t line;
	bool is_inlined; /* else it is the frame's own function, which goes by its symbol */
};

/* Those of a place, the innermost first. */
struct kymo_frame_sources {
	uint32_t first, n;
};

/* Zeroed: no frames yet. */
struct kymo_frame_tree {
	KYMO_VEC(struct kymo_frame_node) nodes; /* of number i + 1 */
	struct kymo_index index;                /* of `nodes` */
	struct kymo_aggr_strings texts;
	KYMO_VEC(struct kymo_frame_source) sources;
	KYMO_VEC(struct kymo_frame_sources) places; /* of number i + 1 */
};

/* The number of a text in `texts`, 0 for NULL. False where memory is out, or there are KYMO_STRINGS_MAX of them. */
bool kymo_frame_tree_text(struct kymo_frame_tree *tree, const char *text, uint32_t *ret);

/* The number of a frame; 0 where memory is out, or there are KYMO_FRAMES_MAX of them. */
uint32_t kymo_frame_tree_number(struct kymo_frame_tree *tree, const struct kymo_frame_node *node);

/*
 * Leave out frames without a name: `numbers` has a place for each frame, which is not 0 where it is named. Callers of
 * frames that stay, stay. Afterwards `numbers` has the new number of each, or 0. False when memory is out: the tree is
 * as it was, and `numbers` mean nothing.
 */
bool kymo_frame_tree_prune(struct kymo_frame_tree *tree, uint32_t *numbers);

void kymo_frame_tree_deinit(struct kymo_frame_tree *tree);

/* The frame of a number; NULL where there is none. */
static inline const struct kymo_frame_node *kymo_frame_at(const struct kymo_frame_tree *tree, uint64_t number)
{
	return number && number <= tree->nodes.n ? &tree->nodes.items[number - 1] : NULL;
}

/* The sources of a frame; NULL: it has none. */
static inline const struct kymo_frame_source *kymo_frame_sources(const struct kymo_frame_tree *tree,
								 const struct kymo_frame_node *node, uint32_t *n_ret)
{
	*n_ret = node->place && node->place <= tree->places.n ? tree->places.items[node->place - 1].n : 0;
	return *n_ret ? &tree->sources.items[tree->places.items[node->place - 1].first] : NULL;
}

#endif
