#include "probe/spec/spec_scope.h"

#include <string.h>

#include "arch/fetch.h"
#include "base/caret.h"
#include "base/nearest.h"
#include "sym/debug.h"
#include "sym/glob.h"

#define LISTED_MAX 256

bool kymo_spec_has_scope(const struct kymo_spec *spec)
{
	return spec->file && !spec->every_instruction && !(spec->symbol && kymo_is_glob(spec->symbol));
}

/* What is asked for, and where. */
struct query {
	const struct kymo_spec_scope *scope;
	const char *text, *name;
	size_t size;
};

#define refuse(query, ...) kymo_error_at((query)->text, (query)->name, __VA_ARGS__)

static bool is_name(const struct query *query, const char *name)
{
	return name && strlen(name) == query->size && !memcmp(name, query->name, query->size);
}

/* What says that there is nothing of the kind leaves the name to others. */
static struct kymo_error *forgive(struct kymo_error *error)
{
	if (!error || error->code != KYMO_ERROR_NOT_FOUND)
		return error;
	kymo_error_destroy(error);
	return NULL;
}

/* ---- where they are -------------------------------------------------------------------------- */

/* The form, with the registers that the machine's code knows. False: it has others. */
static bool translate(struct kymo_form *form)
{
	for (uint32_t i = 0; i < form->n; i++) {
		struct kymo_form_op *op = &form->ops[i];
		int number;

		if (op->code != KYMO_FORM_REGISTER)
			continue;
		number = kymo_register_of_dwarf((int)op->value);
		if (number < 0 || number >= KYMO_FETCH_REGISTERS)
			return false;
		op->value = number;
	}
	return true;
}

static struct kymo_error *mean(const struct query *query, const struct kymo_variable *variable,
			       struct kymo_expr_meaning *ret)
{
	const struct kymo_location *location = &variable->location;

	if (location->kind == KYMO_LOCATION_NOWHERE)
		return refuse(query, "'%s' %s", variable->name,
			      location->why ? location->why : "is not available at this address");
	*ret = (struct kymo_expr_meaning){
		.form = location->form,
		.type = kymo_expr_type_of(variable->type),
		.is_address = location->kind == KYMO_LOCATION_MEMORY,
	};
	if (!translate(&ret->form))
		return refuse(query, "'%s' is in a register which expressions do not have", variable->name);
	if (query->scope->is_return && !variable->is_static)
		return refuse(query, "'%s' is gone at the return; entry(%s) is what the entry had", variable->name,
			      variable->name);
	return NULL;
}

/* ---- members without "this" ------------------------------------------------------------------ */

static const struct kymo_variable *find_this(const struct kymo_variable *variables, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (variables[i].name && !strcmp(variables[i].name, "this") && variables[i].type &&
		    variables[i].type->kind == KYMO_CTYPE_POINTER && variables[i].type->of)
			return &variables[i];
	return NULL;
}

static struct kymo_error *find_in_this(const struct query *query, const struct kymo_variable *this, bool *is_found_ret,
				       struct kymo_expr_meaning *ret)
{
	const struct kymo_ctype_member *members = NULL;
	struct kymo_error *error;
	size_t n = 0, i = 0;

	error = forgive(kymo_debug_members(query->scope->debug, this->type->of, &members, &n));
	while (!error && i < n && !is_name(query, members[i].name))
		i++;
	*is_found_ret = !error && i < n;
	if (error || i == n)
		return error;
	error = mean(query, this, ret);
	if (error)
		return error;
	if (ret->form.n + 3 > KYMO_FORM_OPS_MAX)
		return refuse(query, "the location of 'this' is too long");
	if (ret->is_address)
		ret->form.ops[ret->form.n++] = (struct kymo_form_op){ .code = KYMO_FORM_LOAD, .size = 8 };
	ret->form.ops[ret->form.n++] =
		(struct kymo_form_op){ .code = KYMO_FORM_VALUE, .value = (int64_t)members[i].offset };
	ret->form.ops[ret->form.n++] = (struct kymo_form_op){ .code = KYMO_FORM_ADD, .size = 8 };
	ret->is_address = true;
	ret->type = kymo_expr_type_of(members[i].type);
	ret->bit_size = members[i].bit_size;
	ret->bit_shift = members[i].bit_shift;
	return NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* How many bytes differ from the nearest of the names; of a word so long a third may. */
static unsigned int least_distance(const struct query *query, const char *const *names, size_t n)
{
	unsigned int least = (unsigned int)(query->size + 1) / 3 + 1;

	for (size_t i = 0; i < n && query->size <= KYMO_EDITED_MAX; i++) {
		const size_t size = names[i] ? strlen(names[i]) : KYMO_EDITED_MAX + 1;
		unsigned int distance =
			size > KYMO_EDITED_MAX ? least : kymo_edit_distance(query->name, query->size, names[i], size);

		least = distance < least ? distance : least;
	}
	return least;
}

static struct kymo_error *refuse_unknown(const struct query *query, const struct kymo_variable *variables, size_t n)
{
	const char *missing = kymo_debug_missing_file(query->scope->debug, query->scope->vaddr);
	const char *names[LISTED_MAX], *global;
	char list[KYMO_NEAREST_MAX];

	if (missing)
		return refuse(query,
			      "'%.*s' is not known: %s, which has the debug information of this code, is missing (kymo "
			      "reads no .dwp)",
			      (int)query->size, query->name, missing);
	n = n < LISTED_MAX ? n : LISTED_MAX;
	for (size_t i = 0; i < n; i++)
		names[i] = variables[i].name;
	kymo_nearest_list(query->name, query->size, names, n, list);
	global = kymo_debug_near_global(query->scope->debug, query->name, query->size, least_distance(query, names, n));
	return refuse(query, "there is no variable '%.*s' here; %s%s%s%s", (int)query->size, query->name,
		      *list ? "visible are: " : "the function has none with a name", list,
		      global ? "; the nearest global variable is " : "", global ? global : "");
}

static struct kymo_error *find_global(const struct query *query, const struct kymo_variable **ret)
{
	*ret = NULL;
	return forgive(kymo_debug_global(query->scope->debug, query->scope->vaddr, query->name, query->size, ret));
}

struct kymo_error *kymo_scope_find(const struct kymo_spec_scope *scope, const char *text, const char *name, size_t size,
				   bool *exists_ret, struct kymo_expr_meaning *ret)
{
	const struct query query = { scope, text, name, size };
	const struct kymo_variable *variables = NULL, *found = NULL, *this;
	struct kymo_error *error;
	bool is_member = false;
	size_t n = 0;

	*exists_ret = false;
	if (!scope->debug)
		return refuse(&query, "'%.*s' is not known: %s; write arg0, arg1 ... for parameters", (int)size, name,
			      scope->why);
	error = forgive(kymo_debug_variables(scope->debug, scope->vaddr, &variables, &n));
	for (size_t i = 0; !error && i < n && !found; i++)
		if (is_name(&query, variables[i].name))
			found = &variables[i];
	this = found || error ? NULL : find_this(variables, n);
	if (this)
		error = find_in_this(&query, this, &is_member, ret);
	*exists_ret = found || is_member;
	if (error || is_member)
		return error;
	if (!found)
		error = find_global(&query, &found);
	*exists_ret = found;
	if (error)
		return error;
	return found ? mean(&query, found, ret) : refuse_unknown(&query, variables, n);
}

/* ---- what functions return ------------------------------------------------------------------- */

static struct kymo_error *need_register(const struct query *query, const struct kymo_ctype *type,
					enum kymo_returned returned)
{
	if (returned == KYMO_RETURNED_MEMORY)
		return refuse(query,
			      "the function returns a '%s' in memory; %%ax has its address, so write a member as in "
			      "((%s *)%%ax)->x",
			      type->name, type->name);
	if (type->size > 8)
		return refuse(query,
			      "the function returns a '%s' of more than 8 bytes, which one register does not have",
			      type->name);
	if (returned == KYMO_RETURNED_UNKNOWN)
		return refuse(query,
			      "the function returns a '%s', and it is not certain in which register; %%ax has integers "
			      "and addresses",
			      type->name);
	return NULL;
}

struct kymo_error *kymo_scope_return_type(const struct kymo_spec_scope *scope, const char *text, const char *name,
					  size_t size, struct kymo_expr_type *ret, bool *is_vector_ret)
{
	const struct query query = { scope, text, name, size };
	const struct kymo_ctype *ctype = NULL;
	enum kymo_returned returned;
	struct kymo_expr_type type;
	struct kymo_error *error;

	if (!scope->debug)
		return NULL;
	error = kymo_debug_return_type(scope->debug, scope->vaddr, &ctype, &returned);
	if (error && error->code == KYMO_ERROR_NOT_FOUND)
		return forgive(error);
	if (!error && returned == KYMO_RETURNED_NOTHING)
		return refuse(&query,
			      "the function returns nothing (void); write %%ax for what it happens to leave in the "
			      "register");
	if (error || !ctype)
		return error;
	type = kymo_expr_type_of(ctype);
	switch (kymo_expr_class_of(type)) {
	case KYMO_EXPR_FLOAT:
		if (type.of->size == 4 || type.of->size == 8)
			break;
		return refuse(&query, "the function returns a '%s', which is not supported; float and double are",
			      ctype->name);
	case KYMO_EXPR_STRUCT:
		error = need_register(&query, ctype, returned);
		if (error)
			return error;
		break;
	default:
		break;
	}
	*ret = type;
	*is_vector_ret = returned == KYMO_RETURNED_VECTOR;
	return NULL;
}

/* ---- types ----------------------------------------------------------------------------------- */

struct kymo_error *kymo_scope_type(const struct kymo_spec_scope *scope, const char *name, size_t size,
				   const struct kymo_ctype **ret)
{
	struct kymo_error *error = NULL;

	*ret = NULL;
	if (scope->debug)
		error = forgive(kymo_debug_type(scope->debug, name, size, ret));
	for (size_t i = 0; i < scope->n_types && !error && !*ret; i++)
		error = forgive(kymo_debug_type(scope->types[i], name, size, ret));
	return error;
}

const char *kymo_scope_near_type(const struct kymo_spec_scope *scope, const char *name, size_t size)
{
	const char *near = scope->debug ? kymo_debug_near_type(scope->debug, name, size) : NULL;

	for (size_t i = 0; i < scope->n_types && !near; i++)
		near = kymo_debug_near_type(scope->types[i], name, size);
	return near;
}

typedef struct kymo_error *find_members(struct kymo_debug *debug, const struct kymo_ctype *type,
					const struct kymo_ctype_member **ret, size_t *n_ret);

/* Of the debug information that the type is of: the others know no members of it. */
static struct kymo_error *members_of(const struct kymo_spec_scope *scope, find_members *find,
				     const struct kymo_ctype *type, const struct kymo_ctype_member **ret, size_t *n_ret)
{
	struct kymo_error *error = NULL;

	if (scope->debug)
		error = forgive(find(scope->debug, type, ret, n_ret));
	for (size_t i = 0; i < scope->n_types && !error && !*n_ret; i++)
		error = forgive(find(scope->types[i], type, ret, n_ret));
	return error;
}

struct kymo_error *kymo_scope_members(const struct kymo_spec_scope *scope, const struct kymo_ctype *type,
				      const struct kymo_ctype_member **ret, size_t *n_ret)
{
	return members_of(scope, kymo_debug_members, type, ret, n_ret);
}

struct kymo_error *kymo_scope_parts(const struct kymo_spec_scope *scope, const struct kymo_ctype *type,
				    const struct kymo_ctype_member **ret, size_t *n_ret)
{
	return members_of(scope, kymo_debug_parts, type, ret, n_ret);
}

struct kymo_error *kymo_scope_enumerators(const struct kymo_spec_scope *scope, const struct kymo_ctype *type,
					  const struct kymo_ctype_enumerator **ret, size_t *n_ret)
{
	struct kymo_error *error = NULL;

	if (scope->debug)
		error = forgive(kymo_debug_enumerators(scope->debug, type, ret, n_ret));
	for (size_t i = 0; i < scope->n_types && !error && !*n_ret; i++)
		error = forgive(kymo_debug_enumerators(scope->types[i], type, ret, n_ret));
	return error;
}

struct kymo_error *kymo_scope_enumerator(const struct kymo_spec_scope *scope, const char *text, const char *name,
					 size_t size, const struct kymo_ctype **type_ret, int64_t *value_ret)
{
	struct kymo_ctype_enumerator found = { .value = 0 };
	struct kymo_error *error = NULL;
	bool is_one = true;

	*type_ret = NULL;
	if (scope->debug)
		error = kymo_debug_enumerator(scope->debug, scope->vaddr, name, size, type_ret, &found, &is_one);
	for (size_t i = 0; i < scope->n_types && !error && !*type_ret; i++)
		error = kymo_debug_enumerator(scope->types[i], scope->vaddr, name, size, type_ret, &found, &is_one);
	*value_ret = found.value;
	if (!error && !is_one)
		error = kymo_error_at(
			text, name, "several enumerations have '%.*s', with other values; write the number%s",
			(int)size, name, memchr(name, ':', size) ? "" : ", or NAMESPACE::ENUMERATION::NAME");
	return error;
}
