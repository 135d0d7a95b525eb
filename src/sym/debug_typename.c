/*
 * A declarator is written from the inside: "inner" is what stands around the name so far, "*" or "(*)[3]", and each
 * step to the type below puts its part before or after it.
 */
#include "sym/debug_typename.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/debug_die.h"
#include "sym/debug_memory.h"
#include "sym/debug_unit.h"

#define PARAMETERS_MAX 16
#define DEPTH_MAX 12
#define STEPS_MAX 200 /* types that one name is made of: functions whose parameters are functions become many */

static void spell(struct kymo_debug *debug, Dwarf_Die *type, unsigned int depth, const char *inner, char *out);

/* Write a name, or as much of it as fits. */
static void __attribute__((format(printf, 2, 3))) put_name(char out[SYM_TYPENAME_MAX], const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(out, SYM_TYPENAME_MAX, format, args);
	va_end(args);
}

/* ---- qualified names ------------------------------------------------------------------------- */

/* The entries from the unit down to `die`, or 0. */
static size_t find_path(Dwarf_Die *die, Dwarf_Die path[SYM_DEPTH_MAX])
{
	Dwarf_Die at;
	size_t n = 0;

	if (!dwarf_diecu(die, &at, NULL, NULL))
		return 0;
	while (n < SYM_DEPTH_MAX) {
		Dwarf_Die child, before;
		bool has_before = false;

		path[n++] = at;
		if (at.addr == die->addr)
			return n;
		/* Siblings lie one after the other: the last that does not lie after `die` has it. */
		for (bool is_there = sym_die_first(&at, &child); is_there && child.addr <= die->addr;
		     is_there = sym_die_next(&child)) {
			before = child;
			has_before = true;
		}
		if (!has_before)
			return 0;
		at = before;
	}
	return 0;
}

const char *sym_qualified_name(struct kymo_debug *debug, Dwarf_Die *die)
{
	Dwarf_Die origin, path[SYM_DEPTH_MAX];
	const char *name = sym_die_name(debug, die);
	char out[SYM_TYPENAME_MAX] = "";
	size_t n, at = 0;

	if (!name || sym_language_has_tags(sym_die_language(die)))
		return name;
	sym_die_origin(die, &origin);
	n = find_path(&origin, path);
	for (size_t i = 1; i + 1 < n && at < sizeof(out); i++) {
		const char *part = sym_die_name(debug, &path[i]);

		if (sym_tag_is_scope(dwarf_tag(&path[i])))
			at += (size_t)snprintf(out + at, sizeof(out) - at,
					       "%s::", part ? part : "(anonymous namespace)");
	}
	return at && at < sizeof(out) ? sym_debug_format(debug, "%s%s", out, name) : name;
}

/* ---- types ----------------------------------------------------------------------------------- */

static void join_parts(char *out, const char *before, const char *inner)
{
	put_name(out, "%s%s%s", before, *inner ? " " : "", inner);
}

static const char *tag_word(int tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
		return "struct";
	case DW_TAG_class_type:
		return "class";
	case DW_TAG_union_type:
		return "union";
	case DW_TAG_enumeration_type:
		return "enum";
	default:
		return NULL;
	}
}

/* Compilers name a type by its words in any order; gdb and people write them so. */
static const char *usual_spelling(const char *name)
{
	static const char *const names[][2] = {
		{ "short int", "short" },         { "short unsigned int", "unsigned short" },
		{ "long int", "long" },           { "long unsigned int", "unsigned long" },
		{ "long long int", "long long" }, { "long long unsigned int", "unsigned long long" },
	};

	for (size_t i = 0; i < kymo_countof(names); i++)
		if (!strcmp(names[i][0], name))
			return names[i][1];
	return name;
}

static void spell_named(struct kymo_debug *debug, Dwarf_Die *type, const char *inner, char *out)
{
	const char *name = sym_qualified_name(debug, type), *word = tag_word(dwarf_tag(type));
	char full[SYM_TYPENAME_MAX];

	if (!name && !word)
		put_name(full, "(type without a name)");
	else if (!name)
		put_name(full, "%s {...}", word);
	else if (word && sym_language_has_tags(sym_die_language(type)))
		put_name(full, "%s %s", word, name);
	else
		put_name(full, "%s", dwarf_tag(type) == DW_TAG_base_type ? usual_spelling(name) : name);
	join_parts(out, full, inner);
}

/* What `type` is made of, or void. */
static void spell_below(struct kymo_debug *debug, Dwarf_Die *type, unsigned int depth, const char *inner, char *out)
{
	Dwarf_Die below;

	if (sym_die_reference(type, DW_AT_type, &below))
		spell(debug, &below, depth + 1, inner, out);
	else
		join_parts(out, "void", inner);
}

static void spell_pointer(struct kymo_debug *debug, Dwarf_Die *type, unsigned int depth, const char *sign,
			  const char *inner, char *out)
{
	char wrapped[SYM_TYPENAME_MAX];
	Dwarf_Die below;
	int tag = 0;

	if (dwarf_hasattr(type, DW_AT_name)) {
		spell_named(debug, type, inner, out); /* Rust: "*mut net::Conn", "&str" */
		return;
	}
	if (sym_die_reference(type, DW_AT_type, &below))
		tag = dwarf_tag(&below);
	if (tag == DW_TAG_array_type || tag == DW_TAG_subroutine_type)
		put_name(wrapped, "(%s%s)", sign, inner);
	else
		put_name(wrapped, "%s%s", sign, inner);
	spell_below(debug, type, depth, wrapped, out);
}

static bool is_pointer(int tag)
{
	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

static void spell_qualified(struct kymo_debug *debug, Dwarf_Die *type, unsigned int depth, const char *word,
			    const char *inner, char *out)
{
	char part[SYM_TYPENAME_MAX];
	Dwarf_Die below;

	if (sym_die_reference(type, DW_AT_type, &below) && is_pointer(dwarf_tag(&below))) {
		put_name(part, " %s%s%s", word, *inner && *inner != ' ' ? " " : "", inner);
		spell(debug, &below, depth + 1, part, out);
		return;
	}
	spell_below(debug, type, depth, inner, part);
	if (!strncmp(part, word, strlen(word)) && part[strlen(word)] == ' ') /* an array is what its elements are */
		put_name(out, "%s", part);
	else
		put_name(out, "%s %s", word, part);
}

bool sym_array_dimension(Dwarf_Die *array, unsigned int i, uint64_t *ret)
{
	Dwarf_Die die;

	for (bool is_there = sym_die_first(array, &die); is_there; is_there = sym_die_next(&die)) {
		uint64_t n, low = 0;

		if (dwarf_tag(&die) != DW_TAG_subrange_type || i--)
			continue;
		*ret = 0;
		if (sym_die_number(&die, DW_AT_count, &n))
			*ret = n;
		else if (sym_die_number(&die, DW_AT_upper_bound, &n) && n != UINT64_MAX &&
			 (!sym_die_number(&die, DW_AT_lower_bound, &low) || low <= n) && n < UINT32_MAX * 4ull)
			*ret = n - low + 1;
		return true;
	}
	return false;
}

static void spell_array(struct kymo_debug *debug, Dwarf_Die *type, unsigned int depth, unsigned int from,
			const char *inner, char *out)
{
	char part[SYM_TYPENAME_MAX];
	size_t at = (size_t)snprintf(part, sizeof(part), "%s", inner);
	uint64_t n;

	for (unsigned int i = from; i < 8 && at < sizeof(part) && sym_array_dimension(type, i, &n); i++)
		if (n)
			at += (size_t)snprintf(part + at, sizeof(part) - at, "[%" PRIu64 "]", n);
		else
			at += (size_t)snprintf(part + at, sizeof(part) - at, "[]");
	spell_below(debug, type, depth, part, out);
}

static void spell_function(struct kymo_debug *debug, Dwarf_Die *type, unsigned int depth, const char *inner, char *out)
{
	char part[SYM_TYPENAME_MAX], one[SYM_TYPENAME_MAX];
	size_t at = (size_t)snprintf(part, sizeof(part), "%s(", inner);
	unsigned int n = 0;
	Dwarf_Die die, below;

	for (bool is_there = sym_die_first(type, &die); is_there && at < sizeof(part) && n < PARAMETERS_MAX;
	     is_there = sym_die_next(&die)) {
		*one = '\0';
		if (dwarf_tag(&die) == DW_TAG_unspecified_parameters)
			put_name(one, "...");
		else if (dwarf_tag(&die) == DW_TAG_formal_parameter && sym_die_reference(&die, DW_AT_type, &below))
			spell(debug, &below, depth + 1, "", one);
		if (*one)
			at += (size_t)snprintf(part + at, sizeof(part) - at, "%s%s", n++ ? ", " : "", one);
	}
	if (at < sizeof(part))
		snprintf(part + at, sizeof(part) - at, "%s)", !n && sym_die_flag(type, DW_AT_prototyped) ? "void" : "");
	spell_below(debug, type, depth, part, out);
}

static void spell(struct kymo_debug *debug, Dwarf_Die *type, unsigned int depth, const char *inner, char *out)
{
	if (depth > DEPTH_MAX || !debug->steps) {
		join_parts(out, "...", inner);
		return;
	}
	debug->steps--;
	switch (dwarf_tag(type)) {
	case DW_TAG_pointer_type:
		spell_pointer(debug, type, depth, "*", inner, out);
		break;
	case DW_TAG_reference_type:
		spell_pointer(debug, type, depth, "&", inner, out);
		break;
	case DW_TAG_rvalue_reference_type:
		spell_pointer(debug, type, depth, "&&", inner, out);
		break;
	case DW_TAG_const_type:
		spell_qualified(debug, type, depth, "const", inner, out);
		break;
	case DW_TAG_volatile_type:
		spell_qualified(debug, type, depth, "volatile", inner, out);
		break;
	case DW_TAG_restrict_type:
		spell_qualified(debug, type, depth, "restrict", inner, out);
		break;
	case DW_TAG_atomic_type:
		spell_qualified(debug, type, depth, "_Atomic", inner, out);
		break;
	case DW_TAG_array_type:
		spell_array(debug, type, depth, 0, inner, out);
		break;
	case DW_TAG_subroutine_type:
		spell_function(debug, type, depth, inner, out);
		break;
	default:
		spell_named(debug, type, inner, out);
	}
}

const char *sym_typename(struct kymo_debug *debug, Dwarf_Die *type)
{
	char out[SYM_TYPENAME_MAX] = "";

	if (!type)
		return "void";
	debug->steps = STEPS_MAX;
	spell(debug, type, 0, "", out);
	return sym_debug_format(debug, "%s", out);
}

const char *sym_typename_of_array(struct kymo_debug *debug, Dwarf_Die *array, unsigned int from)
{
	char out[SYM_TYPENAME_MAX] = "";

	debug->steps = STEPS_MAX;
	spell_array(debug, array, 0, from, "", out);
	return sym_debug_format(debug, "%s", out);
}
