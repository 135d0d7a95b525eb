#include "cli/explain_value.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/debug_files.h"
#include "cli/scope.h"
#include "expr/form_dump.h"
#include "probe/spec/spec_piece.h"
#include "probe/spec/spec_value.h"

/* An expression, and where its names are from. */
struct value {
	const char *text;
	struct kymo_spec spec;
	struct cli_scope scope;
};

/* At the entry of a function, or at its return. The types go to `out`. */
static struct kymo_error *compile(struct value *value, bool is_return, FILE *out, struct kymo_form **form_ret)
{
	const struct kymo_spec_piece piece = { value->text, value->text + strlen(value->text) };
	struct kymo_expr_type type;

	value->spec.is_return = is_return;
	value->scope.scope.is_return = is_return;
	return kymo_spec_value_compile(value->text, piece, &value->spec, out, form_ret, &type);
}

static struct kymo_error *explain(struct value *value)
{
	kymo_cleanup_free struct kymo_form *form = NULL;
	struct kymo_error *error = compile(value, false, NULL, &form);
	bool is_return = false;

	if (error) { /* it may have what is known at a return only */
		struct kymo_error *other = compile(value, true, NULL, &form);

		is_return = !other;
		kymo_error_destroy(is_return ? error : other);
		if (!is_return)
			return error;
	}
	free(kymo_take(form));
	puts(is_return ? "At a function's return; types:" : "Types:");
	error = compile(value, is_return, stdout, &form);
	if (error)
		return error;
	puts("\nOperations, on a stack of 64-bit values:");
	kymo_form_dump(form, kymo_register_name, stdout);
	if (kymo_form_can_fault(form))
		puts("\nIt may have no value: by a division by zero, by memory that is not there, or where the kernel "
		     "may not be asked.\nA filter lets nothing through then, and an argument is recorded as (fault).");
	return NULL;
}

struct kymo_error *cli_explain_value(const char *text, const struct kymo_spec *spec, const char *path)
{
	struct value value = { .text = text };
	struct kymo_error *error;

	if (!spec)
		return explain(&value);
	error = cli_scope_open(spec, path, &value.scope);
	if (error)
		return error;
	value.spec = *spec;
	value.spec.scope = &value.scope.scope;
	error = cli_debug_files_check();
	if (!error)
		error = explain(&value);
	cli_scope_close(&value.scope);
	return error;
}
