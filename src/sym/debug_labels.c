#include "sym/debug_labels.h"

#include <inttypes.h>

#include "base/vec.h"
#include "sym/debug_die.h"
#include "sym/debug_memory.h"
#include "sym/debug_unit.h"

#define LABELS_MAX 65536

struct search {
	struct kymo_debug *debug;
	const void *last; /* entry that the walk has come to */
	KYMO_VEC(struct kymo_label) labels;
};

static void walk_dies(struct search *search, Dwarf_Die *parent, unsigned int depth)
{
	Dwarf_Die die;

	for (bool is_there = sym_die_first(parent, &die);
	     is_there && !search->debug->is_out_of_memory && sym_die_pass(&search->last, &die);
	     is_there = sym_die_next(&die)) {
		const int tag = dwarf_tag(&die);

		if (tag == DW_TAG_label && search->labels.n < LABELS_MAX) {
			struct kymo_label label = { .name = sym_die_name(search->debug, &die) };

			label.has_address = sym_die_entry(&die, &label.vaddr);
			if (label.name && !kymo_vec_push(&search->labels, label))
				search->debug->is_out_of_memory = true;
		}
		if (depth < SYM_DEPTH_MAX && (tag == DW_TAG_lexical_block || sym_is_inlined(&die)))
			walk_dies(search, &die, depth + 1);
	}
}

struct kymo_error *kymo_debug_labels(struct kymo_debug *debug, uint64_t vaddr, const struct kymo_label **ret,
				     size_t *n_ret)
{
	struct search search = { .debug = debug };
	struct sym_scopes scopes;

	if (!sym_scopes_find(debug, vaddr, &scopes))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "the debug information describes no function at 0x%" PRIx64, vaddr);
	walk_dies(&search, &scopes.dies[0], 0);
	*n_ret = search.labels.n;
	*ret = sym_debug_copy(debug, search.labels.items, search.labels.n, sizeof(*search.labels.items));
	kymo_vec_deinit(&search.labels);
	return sym_debug_end(debug);
}
