#include "expr/naming.h"

#include <errno.h>
#include <string.h>

/* Names of an enumeration's values, as records have them. None where there are too many. */
static struct kymo_error *name_values(const struct kymo_expr_names *names, struct kymo_expr_type type,
				      struct kymo_naming **ret)
{
	const unsigned int unused = 64 - 8 * type.size;
	const struct kymo_ctype_enumerator *items = NULL;
	struct kymo_naming *naming;
	struct kymo_error *error;
	size_t n = 0;

	if (!names->enumerators)
		return NULL;
	error = names->enumerators(names->data, type.of, &items, &n);
	if (error || !n || n > KYMO_NAMING_NAMES_MAX)
		return error;
	naming = kymo_naming_create();
	for (size_t i = 0; naming && i < n; i++) {
		const uint64_t top = (uint64_t)items[i].value << unused;
		const int64_t value = type.is_signed ? (int64_t)top >> unused : (int64_t)(top >> unused);

		if (kymo_naming_add(naming, items[i].name, strlen(items[i].name), value) == -ENOMEM) {
			kymo_naming_release(naming);
			naming = NULL;
		}
	}
	*ret = naming;
	return naming ? NULL : &kymo_error_no_memory;
}

bool kymo_expr_is_character(const struct kymo_ctype *of)
{
	return of->kind == KYMO_CTYPE_CHARACTER && of->size == 1 && of->name && !strcmp(of->name, "char");
}

struct kymo_error *kymo_expr_naming(const struct kymo_expr_names *names, struct kymo_expr_type type,
				    struct kymo_naming **ret)
{
	*ret = NULL;
	if (kymo_expr_class_of(type) != KYMO_EXPR_INTEGER || !type.of)
		return NULL;
	if (type.of->kind == KYMO_CTYPE_ENUM)
		return name_values(names, type, ret);
	if (type.of->kind == KYMO_CTYPE_BOOLEAN)
		*ret = kymo_naming_truth();
	else if (kymo_expr_is_character(type.of))
		*ret = kymo_naming_characters();
	return NULL;
}
