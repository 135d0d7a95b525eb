/* Types by their names. */
#include "sym/debug_typelookup.h"

#include <string.h>

#include "base/cleanup.h"
#include "sym/debug_names.h"
#include "sym/debug_types.h"

#define STARS_MAX 8

/* The same name by any order of its words: "long unsigned int" is "unsigned long". */
static const char *const spellings[][2] = {
	{ "unsigned", "unsigned int" },
	{ "short", "short int" },
	{ "unsigned short", "short unsigned int" },
	{ "unsigned short int", "short unsigned int" },
	{ "signed", "int" },
	{ "long", "long int" },
	{ "unsigned long", "long unsigned int" },
	{ "unsigned long int", "long unsigned int" },
	{ "long long", "long long int" },
	{ "unsigned long long", "long long unsigned int" },
	{ "unsigned long long int", "long long unsigned int" },
	/* as clang spells them */
	{ "short int", "short" },
	{ "short unsigned int", "unsigned short" },
	{ "long int", "long" },
	{ "long unsigned int", "unsigned long" },
	{ "long long int", "long long" },
	{ "long long unsigned int", "unsigned long long" },
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

/* Take a word and the blanks after it off the beginning. */
static bool skip_word(const char **text, size_t *length, const char *word)
{
	const size_t n = strlen(word);

	if (*length <= n || strncmp(*text, word, n) != 0 || !is_space((*text)[n]))
		return false;
	*text += n;
	*length -= n;
	while (*length && is_space(**text)) {
		++*text;
		--*length;
	}
	return true;
}

static bool has_tag(int tag, int wanted)
{
	if (!wanted)
		return true;
	return tag == wanted || (wanted == DW_TAG_structure_type && tag == DW_TAG_class_type) ||
	       (wanted == DW_TAG_class_type && tag == DW_TAG_structure_type);
}

static bool is_tagged(int tag)
{
	return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_enumeration_type;
}

/* A definition before a declaration; without a tag, what C calls so before what only has a tag. */
static const struct sym_name *find_named(struct kymo_debug *debug, const char *name, size_t length, int wanted)
{
	const struct sym_name *found = NULL, *best = NULL;
	int best_rank = 0;

	while ((found = sym_name_find(debug, name, length, found))) {
		Dwarf_Die die = found->die;
		const int tag = dwarf_tag(&die);
		const int rank = 1 + 2 * !found->is_declaration + (wanted || !is_tagged(tag) ? 4 : 0);

		if (found->kind == SYM_NAME_TYPE && has_tag(tag, wanted) && rank > best_rank) {
			best = found;
			best_rank = rank;
		}
	}
	return best;
}

static const struct sym_name *find_base(struct kymo_debug *debug, const char *name, size_t length)
{
	for (size_t i = 0; i < kymo_countof(spellings); i++) {
		const struct sym_name *found;

		if (strlen(spellings[i][0]) != length || strncmp(spellings[i][0], name, length) != 0)
			continue;
		found = find_named(debug, spellings[i][1], strlen(spellings[i][1]), 0);
		if (found)
			return found;
	}
	return NULL;
}

static int take_tag(const char **text, size_t *length)
{
	if (skip_word(text, length, "struct"))
		return DW_TAG_structure_type;
	if (skip_word(text, length, "class"))
		return DW_TAG_class_type;
	if (skip_word(text, length, "union"))
		return DW_TAG_union_type;
	return skip_word(text, length, "enum") ? DW_TAG_enumeration_type : 0;
}

/* Take all before the name off the beginning. Returns the tag. */
static int take_beginning(const char **text, size_t *length)
{
	while (*length && is_space(**text)) {
		++*text;
		--*length;
	}
	while (skip_word(text, length, "const") || skip_word(text, length, "volatile"))
		;
	return take_tag(text, length);
}

/* Take blanks and stars off the end. */
static unsigned int take_stars(const char *text, size_t *length)
{
	unsigned int n = 0;

	while (*length && (is_space(text[*length - 1]) || text[*length - 1] == '*'))
		n += text[--*length] == '*';
	return n;
}

struct kymo_error *kymo_debug_type(struct kymo_debug *debug, const char *text, size_t length,
				   const struct kymo_ctype **ret)
{
	const struct kymo_ctype *type = NULL;
	const struct sym_name *found;
	unsigned int stars;
	int tag;

	*ret = NULL;
	stars = take_stars(text, &length);
	tag = take_beginning(&text, &length);
	if (!length || stars > STARS_MAX)
		return NULL;
	found = find_named(debug, text, length, tag);
	if (!found && !tag)
		found = find_base(debug, text, length);
	if (found) {
		Dwarf_Die die = found->die;

		type = sym_type_at(debug, &die);
	} else if (!tag && length == 4 && !strncmp(text, "void", 4)) {
		type = sym_type_void();
	}
	for (; type && stars; stars--)
		type = kymo_debug_pointer(debug, type);
	*ret = type;
	return sym_debug_end(debug);
}

static bool is_type(const struct sym_name *name, int tag)
{
	Dwarf_Die die = name->die;

	return name->kind == SYM_NAME_TYPE && has_tag(dwarf_tag(&die), tag);
}

const char *kymo_debug_near_type(struct kymo_debug *debug, const char *text, size_t length)
{
	const struct sym_name *near;
	int tag;

	take_stars(text, &length);
	tag = take_beginning(&text, &length);
	near = sym_name_near(debug, text, length, length < 6 ? 3 : (unsigned int)length / 3 + 1, is_type, tag);
	return near ? near->name : NULL;
}
