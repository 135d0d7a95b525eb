/* Expressions that are compiled, or refused. Include after cmocka.h; the test defines `names`, and KYMO_ASSIGNS if what
 * it compiles are assignments. */
#ifndef KYMO_TESTS_EXPR_COMPILING_H
#define KYMO_TESTS_EXPR_COMPILING_H

#include <string.h>

#include "base/cleanup.h"
#include "expr/expr.h"
#include "expr/form_dump.h"

#ifndef KYMO_ASSIGNS
#define KYMO_ASSIGNS false
#endif

/* A name that is a value. */
struct known {
	const char *name;
	struct kymo_form_op op;
	struct kymo_expr_type type;
};

static const struct kymo_expr_names names;

static inline bool find_known(const struct known *known, size_t n, const char *name, size_t size,
			      struct kymo_expr_meaning *ret)
{
	for (size_t k = 0; k < n; k++) {
		if (strlen(known[k].name) != size || memcmp(known[k].name, name, size) != 0)
			continue;
		*ret = (struct kymo_expr_meaning){ .type = known[k].type };
		ret->form.n = 1;
		ret->form.ops[0] = known[k].op;
		return true;
	}
	return false;
}

static inline struct kymo_error *compile(const char *text, FILE *out, struct kymo_form *form,
					 struct kymo_expr_type *type)
{
	const struct kymo_expr_source source = { text, text, text + strlen(text), KYMO_ASSIGNS };

	return kymo_expr_compile(&source, &names, out, form, type);
}

static inline void refused(const char *text, const char *message)
{
	struct kymo_expr_type type;
	struct kymo_form form;
	struct kymo_error *error = compile(text, NULL, &form, &type);

	if (!error)
		fail_msg("%s is not refused", text);
	assert_int_equal(error->code, KYMO_ERROR_USAGE);
	assert_string_equal(error->message, message);
	kymo_error_destroy(error);
}

/* Tree and form, as they are shown. */
static inline void becomes(const char *text, const char *expected)
{
	kymo_cleanup_free char *shown = NULL;
	struct kymo_expr_type type;
	struct kymo_error *error;
	struct kymo_form form;
	size_t size;
	FILE *out = open_memstream(&shown, &size);

	assert_non_null(out);
	error = compile(text, out, &form, &type);
	if (error)
		fail_msg("%s: %s", text, error->message);
	assert_true(kymo_form_check(&form, 16, 255));
	kymo_form_dump(&form, NULL, out);
	fclose(out);
	assert_string_equal(shown, expected);
}

#endif
