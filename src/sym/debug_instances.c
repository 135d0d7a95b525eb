/* Functions by their names, with all that they are inlined into. */
#include "sym/debug_instances.h"

#include <stdlib.h>

#include "sym/debug_die.h"
#include "sym/debug_memory.h"
#include "sym/debug_names.h"
#include "sym/debug_unit.h"

#define INSTANCES_MAX 65536
#define ORIGINS_MAX 4096

struct search {
	struct kymo_debug *debug;
	KYMO_VEC(const void *) origins; /* of the functions that are called so; sorted */
	KYMO_VEC(struct kymo_instance) instances;
	const char *function; /* that is walked through */
	const void *last;     /* entry that the walk has come to */
};

static int by_value(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int compare_instances(const void *a, const void *b)
{
	const struct kymo_instance *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->is_inlined - y->is_inlined;
}

/* Declarations and instances of a function lead to one entry. */
static void find_origins(struct search *search, const char *name, size_t length)
{
	const struct sym_name *found = NULL;

	while ((found = sym_name_find(search->debug, name, length, found)) && search->origins.n < ORIGINS_MAX) {
		Dwarf_Die die = found->die, origin;

		if (found->kind != SYM_NAME_FUNCTION)
			continue;
		sym_die_origin(&die, &origin);
		if (!kymo_vec_push(&search->origins, origin.addr))
			search->debug->is_out_of_memory = true;
	}
	if (search->origins.n)
		qsort(search->origins.items, search->origins.n, sizeof(*search->origins.items), by_value);
}

static bool is_wanted_die(const struct search *search, Dwarf_Die *die)
{
	const void *address;
	Dwarf_Die origin;

	sym_die_origin(die, &origin);
	address = origin.addr;
	return bsearch(&address, search->origins.items, search->origins.n, sizeof(address), by_value);
}

static void add_instance(struct search *search, Dwarf_Die *die)
{
	struct kymo_instance instance = { .function = search->function, .is_inlined = sym_is_inlined(die) };

	if (sym_die_entry(die, &instance.vaddr) && search->instances.n < INSTANCES_MAX &&
	    !kymo_vec_push(&search->instances, instance))
		search->debug->is_out_of_memory = true;
}

static void walk_dies(struct search *search, Dwarf_Die *parent, unsigned int depth)
{
	Dwarf_Die die;

	for (bool is_there = sym_die_first(parent, &die);
	     is_there && !search->debug->is_out_of_memory && sym_die_pass(&search->last, &die);
	     is_there = sym_die_next(&die)) {
		const int tag = dwarf_tag(&die);
		const bool is_function = tag == DW_TAG_subprogram;
		const char *outer = search->function;

		if (is_function)
			search->function = sym_die_name(search->debug, &die);
		if ((is_function || sym_is_inlined(&die)) && is_wanted_die(search, &die))
			add_instance(search, &die);
		if (depth < SYM_DEPTH_MAX && (sym_holds_functions(tag) || sym_is_inlined(&die)))
			walk_dies(search, &die, depth + 1);
		search->function = outer;
	}
}

/* Two instances that begin at one address are one place. */
static size_t drop_doubles(struct kymo_instance *items, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!kept || items[kept - 1].vaddr != items[i].vaddr)
			items[kept++] = items[i];
	return kept;
}

struct kymo_error *kymo_debug_instances(struct kymo_debug *debug, const char *name, size_t length,
					const struct kymo_instance **ret, size_t *n_ret)
{
	struct search search = { .debug = debug };
	struct kymo_error *error;

	find_origins(&search, name, length);
	for (size_t i = 0; i < debug->units.n && search.origins.n; i++)
		if (!debug->units.items[i].is_partial) {
			search.last = NULL;
			walk_dies(&search, &debug->units.items[i].die, 0);
		}
	if (search.instances.n)
		qsort(search.instances.items, search.instances.n, sizeof(*search.instances.items), compare_instances);
	*n_ret = drop_doubles(search.instances.items, search.instances.n);
	*ret = sym_debug_copy(debug, search.instances.items, *n_ret, sizeof(struct kymo_instance));
	kymo_vec_deinit(&search.origins);
	kymo_vec_deinit(&search.instances);
	error = sym_debug_end(debug);
	return error;
}
