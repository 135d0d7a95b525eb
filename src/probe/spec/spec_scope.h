/* What names of the source mean where a probe is, by the debug information of its file. */
#ifndef KYMO_PROBE_SPEC_SPEC_SCOPE_H
#define KYMO_PROBE_SPEC_SPEC_SCOPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "expr/expr.h"
#include "expr/shape.h"
#include "probe/spec/spec.h"

struct kymo_debug;

/* A location, and what is known of it. */
struct kymo_spec_scope {
	struct kymo_debug *debug;        /* or NULL */
	const char *why;                 /* where there is none: "./app has no debug information" */
	struct kymo_debug *const *types; /* of other files, whose types are known, too */
	size_t n_types;
	uint64_t vaddr;
	struct kymo_shape_limits limits; /* of structures that are recorded as a whole */
	bool is_return;                  /* of the function that is entered at `vaddr` */
};

/* Whether it is for one location of a file, so that names of the source can mean something. */
bool kymo_spec_has_scope(const struct kymo_spec *spec);

/*
 * The meaning of a name: a variable that is visible there, a member of C++'s `this`, a variable of the file or of
 * others. USAGE with a caret where there is none, with the nearest names; and if it is not available at this address,
 * with what the debug information says. `exists_ret` tells these apart: something has that name. It is set with an
 * error, too.
 */
struct kymo_error *kymo_scope_find(const struct kymo_spec_scope *scope, const char *text, const char *name, size_t size,
				   bool *exists_ret, struct kymo_expr_meaning *ret);

/* The type of what the function returns, and whether a vector register has it; both are unchanged where that is not
 * known. USAGE if it is not in a single register, or the register is not certain. */
struct kymo_error *kymo_scope_return_type(const struct kymo_spec_scope *scope, const char *text, const char *name,
					  size_t size, struct kymo_expr_type *ret, bool *is_vector_ret);

/* As struct kymo_expr_names has them. */
struct kymo_error *kymo_scope_type(const struct kymo_spec_scope *scope, const char *name, size_t size,
				   const struct kymo_ctype **ret);
const char *kymo_scope_near_type(const struct kymo_spec_scope *scope, const char *name, size_t size);
struct kymo_error *kymo_scope_members(const struct kymo_spec_scope *scope, const struct kymo_ctype *type,
				      const struct kymo_ctype_member **ret, size_t *n_ret);
struct kymo_error *kymo_scope_parts(const struct kymo_spec_scope *scope, const struct kymo_ctype *type,
				    const struct kymo_ctype_member **ret, size_t *n_ret);
struct kymo_error *kymo_scope_enumerators(const struct kymo_spec_scope *scope, const struct kymo_ctype *type,
					  const struct kymo_ctype_enumerator **ret, size_t *n_ret);
struct kymo_error *kymo_scope_enumerator(const struct kymo_spec_scope *scope, const char *text, const char *name,
					 size_t size, const struct kymo_ctype **type_ret, int64_t *value_ret);

#endif
