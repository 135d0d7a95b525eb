#include "sym/debug_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/nearest.h"
#include "sym/debug_die.h"
#include "sym/debug_memory.h"
#include "sym/debug_typename.h"
#include "sym/debug_unit.h"

#define NAMES_MAX (8u << 20)
#define PREFIX_MAX 400

struct walk {
	struct kymo_debug *debug;
	uint32_t unit;
	const void *last; /* entry that the walk has come to */
	bool has_tags;    /* structures have names of their own, as in C: "struct conn" */
};

static void add_name(struct walk *walk, Dwarf_Die *die, enum sym_name_kind kind, const char *name)
{
	struct sym_name entry = { .name = name, .unit = walk->unit, .kind = kind, .die = *die };

	entry.hash = (uint32_t)kymo_hash_text(KYMO_HASH_FIRST, name);
	entry.is_declaration = sym_die_flag(die, DW_AT_declaration);
	if (walk->debug->names.n < NAMES_MAX && !kymo_vec_push(&walk->debug->names, entry))
		walk->debug->is_out_of_memory = true;
}

static void add_enumeration(struct walk *walk, Dwarf_Die *die)
{
	const struct sym_enumeration enumeration = { walk->unit, *die };

	if (walk->debug->enumerations.n < NAMES_MAX && !kymo_vec_push(&walk->debug->enumerations, enumeration))
		walk->debug->is_out_of_memory = true;
}

static const char *qualify(struct walk *walk, const char *prefix, const char *name)
{
	return *prefix ? sym_debug_format(walk->debug, "%s%s", prefix, name) : name;
}

static bool name_kind(int tag, enum sym_name_kind *ret)
{
	switch (tag) {
	case DW_TAG_variable:
		*ret = SYM_NAME_VARIABLE;
		return true;
	case DW_TAG_subprogram:
		*ret = SYM_NAME_FUNCTION;
		return true;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_typedef:
	case DW_TAG_base_type:
		*ret = SYM_NAME_TYPE;
		return true;
	default:
		return false;
	}
}

/* The part of a name that one is in: those of namespaces without one are not written. */
static void walk_in(struct walk *walk, Dwarf_Die *parent, const char *prefix, unsigned int depth);

static void walk_down(struct walk *walk, Dwarf_Die *die, const char *name, const char *prefix, unsigned int depth)
{
	char longer[PREFIX_MAX];
	const bool is_open = !name || walk->has_tags; /* members of C's structures are in the scope of the file */
	const size_t length = strlen(prefix) + (is_open ? 0 : strlen(name) + 2);

	if (length >= sizeof(longer))
		return;
	memcpy(longer, prefix, strlen(prefix) + 1);
	if (!is_open) {
		strcat(longer, name);
		strcat(longer, "::");
	}
	walk_in(walk, die, longer, depth + 1);
}

static void walk_in(struct walk *walk, Dwarf_Die *parent, const char *prefix, unsigned int depth)
{
	Dwarf_Die die;

	for (bool is_there = sym_die_first(parent, &die);
	     is_there && !walk->debug->is_out_of_memory && sym_die_pass(&walk->last, &die);
	     is_there = sym_die_next(&die)) {
		const int tag = dwarf_tag(&die);
		const char *name = NULL;
		enum sym_name_kind kind;
		bool is_named = name_kind(tag, &kind);

		if (is_named || sym_tag_is_scope(tag))
			name = sym_die_name(walk->debug, &die);
		/* What completes a declaration elsewhere has the name of that, with its namespaces. Clang has static
		 * members of classes beside these. */
		if (is_named && name && (*prefix == '\0' || kind == SYM_NAME_VARIABLE) && !walk->has_tags &&
		    dwarf_hasattr(&die, DW_AT_specification))
			add_name(walk, &die, kind, sym_qualified_name(walk->debug, &die));
		else if (is_named && name)
			add_name(walk, &die, kind, qualify(walk, prefix, name));
		if (tag == DW_TAG_enumeration_type)
			add_enumeration(walk, &die);
		if (sym_tag_is_scope(tag) && depth < SYM_DEPTH_MAX / 4)
			walk_down(walk, &die, name, prefix, depth);
	}
}

static void make_buckets(struct kymo_debug *debug)
{
	size_t n = 64;

	while (n < debug->names.n)
		n *= 2;
	debug->name_buckets = calloc(n, sizeof(*debug->name_buckets));
	if (!debug->name_buckets) {
		debug->is_out_of_memory = true;
		return;
	}
	debug->n_name_buckets = n;
	for (size_t i = debug->names.n; i > 0; i--) {
		struct sym_name *name = &debug->names.items[i - 1];
		uint32_t *bucket = &debug->name_buckets[name->hash & (n - 1)];

		name->next = *bucket;
		*bucket = (uint32_t)i;
	}
}

void sym_names_read(struct kymo_debug *debug)
{
	if (debug->names_are_read)
		return;
	debug->names_are_read = true;
	for (size_t i = 0; i < debug->units.n; i++) {
		struct walk walk = { .debug = debug,
				     .unit = (uint32_t)i,
				     .has_tags = sym_language_has_tags(debug->units.items[i].language) };

		walk_in(&walk, &debug->units.items[i].die, "", 0);
	}
	make_buckets(debug);
}

const struct sym_name *sym_name_find(struct kymo_debug *debug, const char *name, size_t length,
				     const struct sym_name *last)
{
	const uint32_t hash = (uint32_t)kymo_hash_bytes(KYMO_HASH_FIRST, name, length);
	uint32_t i;

	sym_names_read(debug);
	if (!debug->n_name_buckets)
		return NULL;
	i = last ? last->next : debug->name_buckets[hash & (debug->n_name_buckets - 1)];
	for (; i; i = debug->names.items[i - 1].next) {
		const struct sym_name *found = &debug->names.items[i - 1];

		if (found->hash == hash && !strncmp(found->name, name, length) && !found->name[length])
			return found;
	}
	return NULL;
}

const struct sym_name *sym_name_near(struct kymo_debug *debug, const char *name, size_t length, unsigned int least,
				     bool (*fits)(const struct sym_name *name, int data), int data)
{
	const struct sym_name *near = NULL;

	sym_names_read(debug);
	for (size_t i = 0; i < debug->names.n && length <= KYMO_EDITED_MAX; i++) {
		const struct sym_name *at = &debug->names.items[i];
		const size_t size = strlen(at->name);
		unsigned int distance;

		if (size > KYMO_EDITED_MAX || !fits(at, data))
			continue;
		distance = kymo_edit_distance(name, length, at->name, size);
		if (distance < least) {
			least = distance;
			near = at;
		}
	}
	return near;
}
