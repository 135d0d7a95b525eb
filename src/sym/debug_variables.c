#include "sym/debug_variables.h"

#include <string.h>

#include "sym/debug_die.h"
#include "sym/debug_entry.h"
#include "sym/debug_location.h"
#include "sym/debug_memory.h"
#include "sym/debug_names.h"
#include "sym/debug_returned.h"
#include "sym/debug_types.h"
#include "sym/debug_unit.h"
#include "sym/module.h"
#include "sym/module_state.h"

#define VARIABLES_MAX 16384

struct gathering {
	struct kymo_debug *debug;
	struct sym_scopes scopes;
	struct sym_context context;
	KYMO_VEC(struct kymo_variable) variables;
};

/* ---- one variable ---------------------------------------------------------------------------- */

static struct kymo_variable describe_variable(struct kymo_debug *debug, Dwarf_Die *die)
{
	return (struct kymo_variable){
		.name = sym_die_name(debug, die),
		.type = sym_type_of(debug, die),
		.declared_type = sym_declared_type(debug, die),
		.is_parameter = dwarf_tag(die) == DW_TAG_formal_parameter,
	};
}

/* An entry in a scope; `passing` is set for the parameters of a function that is entered. */
static void add_variable(struct gathering *gathering, Dwarf_Die *die, size_t scope, const char *inlined,
			 struct sym_passing *passing)
{
	struct kymo_variable variable = describe_variable(gathering->debug, die);
	struct sym_location where;

	sym_location_find(&gathering->context, die, variable.type->size, gathering->scopes.entry, &where);
	if (passing && variable.is_parameter)
		sym_passing_next(passing, die, &where);
	else if (gathering->context.is_entry && !variable.is_parameter)
		sym_entry_local(&where);
	variable.location = where.location;
	variable.is_static = where.is_fixed && !variable.is_parameter;
	variable.depth = (unsigned int)scope;
	variable.inlined = inlined;
	if (variable.name && gathering->variables.n < VARIABLES_MAX && !kymo_vec_push(&gathering->variables, variable))
		gathering->debug->is_out_of_memory = true;
}

/* Static variables of a function that is inlined stand in what its instances have in common, once. */
static void gather_statics(struct gathering *gathering, size_t scope, const char *inlined)
{
	Dwarf_Die origin, die;

	if (!sym_die_reference(&gathering->scopes.dies[scope], DW_AT_abstract_origin, &origin))
		return;
	for (bool is_there = sym_die_first(&origin, &die); is_there && !gathering->debug->is_out_of_memory;
	     is_there = sym_die_next(&die))
		if (dwarf_tag(&die) == DW_TAG_variable && dwarf_hasattr(&die, DW_AT_location))
			add_variable(gathering, &die, scope, inlined, NULL);
}

static void gather_scope(struct gathering *gathering, size_t scope, const char *inlined)
{
	struct sym_passing passing;
	const bool is_passing = !scope && gathering->context.is_entry;
	Dwarf_Die die;

	if (is_passing)
		sym_passing_init(&passing, &gathering->scopes.dies[0], gathering->scopes.unit);
	for (bool is_there = sym_die_first(&gathering->scopes.dies[scope], &die);
	     is_there && !gathering->debug->is_out_of_memory; is_there = sym_die_next(&die)) {
		const int tag = dwarf_tag(&die);

		if ((tag == DW_TAG_formal_parameter || tag == DW_TAG_variable) &&
		    !sym_die_flag(&die, DW_AT_declaration))
			add_variable(gathering, &die, scope, inlined, is_passing ? &passing : NULL);
	}
	gather_statics(gathering, scope, inlined);
}

/* The name of the inlined function that scope `i` is or is in, or NULL. */
static const char *inlined_at(struct gathering *gathering, size_t i)
{
	const char *name;

	while (i && !sym_is_inlined(&gathering->scopes.dies[i]))
		i--;
	name = i ? sym_scope_name(gathering->debug, &gathering->scopes, i) : NULL;
	return i && !name ? "an inlined function" : name;
}

struct kymo_error *kymo_debug_variables(struct kymo_debug *debug, uint64_t vaddr, const struct kymo_variable **ret,
					size_t *n_ret)
{
	struct gathering gathering = { .debug = debug };
	struct kymo_error *error;

	if (!sym_scopes_find(debug, vaddr, &gathering.scopes))
		return sym_no_function(debug, vaddr);
	gathering.context = (struct sym_context){
		.debug = debug,
		.vaddr = vaddr,
		.is_entry = gathering.scopes.has_entry && gathering.scopes.entry == vaddr,
		.function = &gathering.scopes.dies[0],
	};
	for (size_t i = gathering.scopes.n; i > 0; i--)
		gather_scope(&gathering, i - 1, inlined_at(&gathering, i - 1));
	*ret = sym_debug_copy(debug, gathering.variables.items, gathering.variables.n, sizeof(struct kymo_variable));
	*n_ret = gathering.variables.n;
	kymo_vec_deinit(&gathering.variables);
	error = sym_debug_end(debug);
	return error;
}

/* ---- of files -------------------------------------------------------------------------------- */

static const struct sym_name *find_global(struct kymo_debug *debug, uint64_t vaddr, const char *name, size_t length)
{
	const ptrdiff_t unit = sym_unit_at(debug, vaddr);
	const struct sym_name *found = NULL, *best = NULL;

	while ((found = sym_name_find(debug, name, length, found))) {
		Dwarf_Die die = found->die;

		if (found->kind != SYM_NAME_VARIABLE ||
		    (!dwarf_hasattr(&die, DW_AT_location) && !dwarf_hasattr(&die, DW_AT_const_value)))
			continue;
		if ((ptrdiff_t)found->unit == unit)
			return found;
		if (!best)
			best = found;
	}
	return best;
}

struct kymo_error *kymo_debug_global(struct kymo_debug *debug, uint64_t vaddr, const char *name, size_t length,
				     const struct kymo_variable **ret)
{
	const struct sym_name *found = find_global(debug, vaddr, name, length);
	const struct sym_context context = { .debug = debug, .vaddr = vaddr };
	struct kymo_variable variable;
	struct sym_location where;
	Dwarf_Die die;

	*ret = NULL;
	if (!found)
		return sym_debug_end(debug);
	die = found->die;
	variable = describe_variable(debug, &die);
	sym_location_find(&context, &die, variable.type->size, vaddr, &where);
	variable.location = where.location;
	variable.is_static = true;
	*ret = sym_debug_copy(debug, &variable, 1, sizeof(variable));
	return sym_debug_end(debug);
}

static bool is_global(const struct sym_name *name, int unused)
{
	return name->kind == SYM_NAME_VARIABLE && !name->is_declaration;
}

const char *kymo_debug_near_global(struct kymo_debug *debug, const char *name, size_t length, unsigned int least)
{
	const struct sym_name *near = sym_name_near(debug, name, length, least, is_global, 0);

	return near ? near->name : NULL;
}

/* ---- what functions return ------------------------------------------------------------------- */

struct kymo_error *kymo_debug_return_type(struct kymo_debug *debug, uint64_t vaddr, const struct kymo_ctype **ret,
					  enum kymo_returned *returned_ret)
{
	struct sym_scopes scopes;
	const struct kymo_ctype *type;
	Dwarf_Die die;

	if (!sym_scopes_find(debug, vaddr, &scopes))
		return sym_no_function(debug, vaddr);
	if (sym_die_reference(&scopes.dies[0], DW_AT_type, &die) && dwarf_tag(&die) == DW_TAG_unspecified_type) {
		*returned_ret = KYMO_RETURNED_INTEGER; /* assemblers describe functions so */
		*ret = NULL;
		return sym_debug_end(debug);
	}
	type = sym_type_of(debug, &scopes.dies[0]);
	*returned_ret = sym_returned(debug, &scopes.dies[0], sym_unit_is_c_like(scopes.unit));
	*ret = type->kind == KYMO_CTYPE_VOID ? NULL : type;
	if (!*ret) /* Go describes results as parameters */
		*returned_ret = scopes.unit->language == DW_LANG_Go ? KYMO_RETURNED_INTEGER : KYMO_RETURNED_NOTHING;
	return sym_debug_end(debug);
}

bool kymo_debug_never_returns(struct kymo_debug *debug, uint64_t vaddr)
{
	struct sym_scopes scopes;
	Dwarf_Attribute attribute;
	bool is_set = false;

	return sym_scopes_find(debug, vaddr, &scopes) &&
	       dwarf_attr_integrate(&scopes.dies[0], DW_AT_noreturn, &attribute) &&
	       !dwarf_formflag(&attribute, &is_set) && is_set;
}

const char *kymo_debug_missing_file(struct kymo_debug *debug, uint64_t vaddr)
{
	return sym_missing_file(debug, vaddr);
}
