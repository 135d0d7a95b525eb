/* Enumerators, read when they are asked for. */
#include "sym/debug_enumerators.h"

#include <string.h>

#include "sym/debug_die.h"
#include "sym/debug_memory.h"
#include "sym/debug_names.h"
#include "sym/debug_typename.h"
#include "sym/debug_types.h"
#include "sym/debug_unit.h"

#define ENUMERATORS_MAX 65536
#define MATCHES_MAX 256 /* enumerations with the name that are looked at: to find their namespaces takes a walk */

/* ---- of a type ------------------------------------------------------------------------------- */

static bool enumerator(struct kymo_debug *debug, Dwarf_Die *die, bool is_signed, struct kymo_ctype_enumerator *ret)
{
	uint64_t value;

	ret->name = dwarf_tag(die) == DW_TAG_enumerator ? sym_die_name(debug, die) : NULL;
	if (!ret->name)
		return false;
	if (is_signed)
		return sym_die_signed(die, DW_AT_const_value, &ret->value);
	if (!sym_die_number(die, DW_AT_const_value, &value))
		return false;
	ret->value = (int64_t)value;
	return true;
}

struct kymo_error *kymo_debug_enumerators(struct kymo_debug *debug, const struct kymo_ctype *type,
					  const struct kymo_ctype_enumerator **ret, size_t *n_ret)
{
	struct sym_type *known = sym_type_know(debug, type);
	KYMO_VEC(struct kymo_ctype_enumerator) items = { 0 };
	struct kymo_error *error;
	Dwarf_Die *of, die;

	*ret = NULL;
	*n_ret = 0;
	if (!known || !known->has_die || type->kind != KYMO_CTYPE_ENUM)
		return NULL;
	if (!known->has_enumerators) {
		sym_type_complete(debug, known);
		of = known->is_complete ? &known->complete : &known->die;
		for (bool is_there = sym_die_first(of, &die); is_there && items.n < ENUMERATORS_MAX;
		     is_there = sym_die_next(&die)) {
			struct kymo_ctype_enumerator item;

			if (enumerator(debug, &die, type->is_signed, &item) && !kymo_vec_push(&items, item))
				debug->is_out_of_memory = true;
		}
		known->enumerators = sym_debug_copy(debug, items.items, items.n, sizeof(*items.items));
		known->n_enumerators = items.n;
		kymo_vec_deinit(&items);
		error = sym_debug_end(debug);
		if (error)
			return error;
		known->has_enumerators = true;
	}
	*ret = known->enumerators;
	*n_ret = known->n_enumerators;
	return NULL;
}

/* ---- by their names -------------------------------------------------------------------------- */

struct wanted {
	struct kymo_debug *debug;
	const char *text; /* with what is before it */
	size_t length;
	const char *name; /* its last part */
	size_t name_length;
};

static struct wanted want(struct kymo_debug *debug, const char *text, size_t length)
{
	struct wanted wanted = { debug, text, length, text, length };

	for (size_t i = length; i > 2 && wanted.name == text; i--)
		if (text[i - 2] == ':' && text[i - 1] == ':') {
			wanted.name = text + i;
			wanted.name_length = length - i;
		}
	return wanted;
}

/* The last part of "a::b", or all of it; without what namespaces and types without a name are called. */
static bool take_part(const char *text, size_t *length, const char **part_ret, size_t *size_ret)
{
	static const char nameless[] = "(anonymous namespace)";
	size_t at;

	do {
		if (!*length)
			return false;
		at = *length;
		while (at > 1 && (text[at - 1] != ':' || text[at - 2] != ':'))
			at--;
		at = at > 1 ? at : 0;
		*part_ret = text + at;
		*size_ret = *length - at;
		*length = at > 2 ? at - 2 : 0;
	} while (*size_ret == strlen(nameless) && !memcmp(*part_ret, nameless, *size_ret));
	return true;
}

/* Whether the first text, as it is written, is the end of the second, which has all namespaces. */
static bool is_end_of(const char *text, size_t length, const char *full, size_t full_length)
{
	const char *part, *full_part;
	size_t size, full_size;

	while (take_part(text, &length, &part, &size))
		if (!take_part(full, &full_length, &full_part, &full_size) || size != full_size ||
		    memcmp(part, full_part, size) != 0)
			return false;
	return true;
}

/* "shop::Kind::Large" is also "shop::Large" where the enumeration is no scope of its own. */
static bool is_written_so(const struct wanted *wanted, Dwarf_Die *enumeration, Dwarf_Die *enumerator)
{
	const size_t before = wanted->length - wanted->name_length;
	const char *full, *part;
	size_t length, size;

	if (!before)
		return true;
	full = sym_qualified_name(wanted->debug, enumerator);
	length = full ? strlen(full) : 0;
	if (is_end_of(wanted->text, wanted->length, full, length))
		return true;
	return take_part(full, &length, &part, &size) && sym_die_name(wanted->debug, enumeration) &&
	       take_part(full, &length, &part, &size) && is_end_of(wanted->text, before - 2, full, length);
}

/* What was found. Headers are in many units, so one enumeration is there again and again. */
struct found {
	Dwarf_Die type;
	struct kymo_ctype_enumerator item;
	bool is_own;   /* of the unit of the address */
	bool is_other; /* there is another one with another value, as near */
	unsigned int n_looked;
};

static bool look_in(const struct wanted *wanted, Dwarf_Die *enumeration, struct found *found,
		    struct kymo_ctype_enumerator *ret)
{
	const struct kymo_ctype *type = NULL;
	Dwarf_Die die;

	for (bool is_there = sym_die_first(enumeration, &die); is_there; is_there = sym_die_next(&die)) {
		const char *name = dwarf_tag(&die) == DW_TAG_enumerator ? sym_die_name(wanted->debug, &die) : NULL;

		if (!name || strlen(name) != wanted->name_length || memcmp(name, wanted->name, wanted->name_length))
			continue;
		found->n_looked++;
		type = sym_type_at(wanted->debug, enumeration);
		return is_written_so(wanted, enumeration, &die) &&
		       enumerator(wanted->debug, &die, type->is_signed, ret);
	}
	return false;
}

static void note(struct found *found, Dwarf_Die *type, const struct kymo_ctype_enumerator *item, bool is_own)
{
	if (!found->item.name || (is_own && !found->is_own))
		*found = (struct found){ *type, *item, is_own, false, found->n_looked };
	else if (is_own == found->is_own)
		found->is_other |= item->value != found->item.value;
}

struct kymo_error *kymo_debug_enumerator(struct kymo_debug *debug, uint64_t vaddr, const char *text, size_t length,
					 const struct kymo_ctype **type_ret, struct kymo_ctype_enumerator *ret,
					 bool *is_one_ret)
{
	const struct wanted wanted = want(debug, text, length);
	const ptrdiff_t unit = sym_unit_at(debug, vaddr);
	struct found found = { .n_looked = 0 };

	sym_names_read(debug);
	for (size_t i = 0; i < debug->enumerations.n && found.n_looked < MATCHES_MAX; i++) {
		struct sym_enumeration *of = &debug->enumerations.items[i];
		struct kymo_ctype_enumerator item;

		if (look_in(&wanted, &of->die, &found, &item))
			note(&found, &of->die, &item, (ptrdiff_t)of->unit == unit);
	}
	*type_ret = found.item.name ? sym_type_at(debug, &found.type) : NULL;
	*ret = found.item;
	*is_one_ret = !found.is_other;
	return sym_debug_end(debug);
}
