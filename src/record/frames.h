/*
 * The frames of a recording's stacks, each once: a tree, in which a frame hangs on the one that has called it. A stack
 * is the number of its innermost frame. Private to the room.
 */
#ifndef KYMO_RECORD_FRAMES_H
#define KYMO_RECORD_FRAMES_H

#include "aggr/strings.h"
#include "base/vec.h"
#include "ctf/ctf.h"

#define FRAMES_MAX (1u << 20)

struct frame_node {
	uint32_t caller; /* 0: it is the outermost */
	enum kymo_ctf_frame_kind what;
	uint32_t file, function; /* in `texts`; 0: none */
	uint64_t offset, address;
};

/* Zeroed: no frames yet. */
struct frame_tree {
	KYMO_VEC(struct frame_node) nodes; /* of number i + 1 */
	uint32_t *index;                   /* numbers, or 0 */
	size_t index_size;                 /* a power of two, or 0 */
	struct kymo_aggr_strings texts;
};

/* The number of a frame; 0 where memory is out, or there are FRAMES_MAX of them. */
uint32_t frame_tree_number(struct frame_tree *tree, const struct frame_node *node);

void frame_tree_deinit(struct frame_tree *tree);

#endif
