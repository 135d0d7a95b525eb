#include "cli/explain_value.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "expr/form_dump.h"
#include "probe/spec_value.h"

/* At the entry of a function, or at its return. The types go to `out`. */
static struct kymo_error *compile(const char *text, bool is_return, FILE *out, struct kymo_form **form_ret)
{
	struct kymo_spec spec = { .is_return = is_return };
	struct kymo_expr_type type;

	return kymo_spec_value_compile(text, (struct kymo_spec_piece){ text, text + strlen(text) }, &spec, out,
				       form_ret, &type);
}

struct kymo_error *cli_explain_value(const char *text)
{
	kymo_cleanup_free struct kymo_form *form = NULL;
	struct kymo_error *error = compile(text, false, NULL, &form);
	bool is_return = false;

	if (error) { /* it may have what is known at a return only */
		struct kymo_error *other = compile(text, true, NULL, &form);

		is_return = !other;
		if (is_return)
			kymo_error_destroy(error);
		else
			kymo_error_destroy(other);
		if (!is_return)
			return error;
	}
	free(kymo_take(form));
	puts(is_return ? "At a function's return; types:" : "Types:");
	error = compile(text, is_return, stdout, &form);
	if (error)
		return error;
	puts("\nOperations, on a stack of 64-bit values:");
	kymo_form_dump(form, kymo_register_name, stdout);
	if (kymo_form_can_fault(form))
		puts("\nIt may have no value: by a division by zero, or a word that is not there. A filter lets "
		     "nothing "
		     "through then, and\nan argument is recorded as (fault).");
	return NULL;
}
