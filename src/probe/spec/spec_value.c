#include "probe/spec/spec_value.h"

#include <stdio.h>
#include <string.h>

#include "base/caret.h"
#include "base/cleanup.h"
#include "probe/spec/spec_operand.h"
#include "probe/spec/spec_scope.h"

/* ---- names ----------------------------------------------------------------------------------- */

/* What is asked for, and where. */
struct name {
	const char *text, *start;
	size_t size;
	struct kymo_spec *spec;
	struct kymo_expr_meaning *ret;
};

static const struct kymo_expr_type wide = { .size = 8, .is_signed = true };

static bool is_name(const struct name *name, const char *word)
{
	return name->size == strlen(word) && !memcmp(name->start, word, name->size);
}

static bool starts(const struct name *name, const char *word)
{
	return name->size > strlen(word) && !memcmp(name->start, word, strlen(word));
}

static void mean(const struct name *name, enum kymo_form_code code, int64_t value, struct kymo_expr_type type)
{
	struct kymo_expr_meaning *ret = name->ret;

	ret->form.n = 1;
	ret->form.ops[0] = (struct kymo_form_op){ .code = (uint8_t)code, .value = value };
	ret->type = type;
}

static struct kymo_error *find_register(const struct name *name)
{
	enum kymo_type type;
	const int number = kymo_register_parse(name->start + 1, name->size - 1, &type);

	if (number < 0)
		return kymo_error_at(name->text, name->start,
				     "no register '%.*s' on x86-64; write %%di, %%edi, %%al, %%r8 …", (int)name->size,
				     name->start);
	if (number >= KYMO_FETCH_REGISTERS)
		return kymo_error_at(name->text, name->start,
				     "'%.*s' is recorded as an argument of its own, and not known in expressions",
				     (int)name->size, name->start);
	mean(name, KYMO_FORM_REGISTER, number,
	     (struct kymo_expr_type){ .size = (uint8_t)kymo_type_size(type), .is_signed = true });
	return NULL;
}

/* Digits after the first `skip` bytes; false where there are others, or a number of more than three. */
static bool read_index(const struct name *name, size_t skip, unsigned int *ret)
{
	unsigned int value = 0;

	for (size_t i = skip; i < name->size; i++) {
		if (!kymo_spec_is_digit(name->start[i]) || i - skip == 3)
			return false;
		value = 10 * value + (unsigned int)(name->start[i] - '0');
	}
	*ret = value;
	return name->size > skip;
}

/* Argument `n` of the function or the SDT probe, 1 for the first. */
static struct kymo_error *find_argument(const struct name *name, unsigned int n)
{
	struct kymo_spec *spec = name->spec;

	if (spec->marker)
		return kymo_spec_operand(spec, name->text, name->start, n, name->ret);
	if (spec->is_return)
		return kymo_error_at(name->text, name->start,
				     "arguments are gone at the return; entry(arg0) is what the entry had");
	if (spec->every_instruction || (spec->symbol && spec->offset))
		return kymo_error_at(name->text, name->start,
				     "'%.*s' is known at the first instruction of a function only; write a register, "
				     "such as %%di",
				     (int)name->size, name->start);
	name->ret->type = wide;
	name->ret->form.n = 1;
	if (kymo_argument_operation(n, &name->ret->form.ops[0]))
		return kymo_error_at(name->text, name->start, "arguments are numbered arg0 to arg%d",
				     5 + KYMO_FETCH_STACK_MAX);
	return NULL;
}

/* Its type is what the function returns; without debug information the whole register. */
static struct kymo_error *find_retval(const struct name *name)
{
	struct kymo_spec *spec = name->spec;
	struct kymo_expr_type type = wide;
	bool is_vector = false;

	if (!spec->is_return)
		return kymo_error_at(name->text, name->start,
				     "'%.*s' is known at a function's return only; write -r or %%return",
				     (int)name->size, name->start);
	spec->wants_names |= !spec->scope && kymo_spec_has_scope(spec);
	spec->has_raw_retval |= !spec->scope;
	spec->computes_raw_retval |= !spec->scope;
	if (spec->scope) {
		struct kymo_error *error =
			kymo_scope_return_type(spec->scope, name->text, name->start, name->size, &type, &is_vector);

		spec->needs_names |= type.of || (error && error->code == KYMO_ERROR_USAGE); /* %ax may be none of it */
		if (error)
			return error;
	}
	mean(name, KYMO_FORM_RETVAL, is_vector, type);
	return NULL;
}

/* ---- names of the source --------------------------------------------------------------------- */

/* Words of bpftrace's. A variable of that name comes before them, also one that is not available there. */
static const struct {
	const char *word;
	enum kymo_form_code code;
	int64_t value;
	struct kymo_expr_type type;
} contexts[] = {
	{ "pid", KYMO_FORM_CONTEXT, KYMO_FORM_PID, { .size = 4, .is_signed = true } },
	{ "tid", KYMO_FORM_CONTEXT, KYMO_FORM_TID, { .size = 4, .is_signed = true } },
	{ "cpu", KYMO_FORM_CONTEXT, KYMO_FORM_CPU, { .size = 4 } },
	{ "comm", KYMO_FORM_ASK, KYMO_FORM_NAME, { .size = 8, .is_string = true, .n = KYMO_FORM_NAME_SIZE } },
	{ "nsecs", KYMO_FORM_ASK, KYMO_FORM_CLOCK, { .size = 8, .is_signed = true } },
	{ "func", KYMO_FORM_FUNC, 0, { .size = 8, .is_string = true, .n = KYMO_FORM_TEXT_MAX } },
	{ "probe", KYMO_FORM_PROBE, 0, { .size = 8, .is_string = true, .n = KYMO_FORM_TEXT_MAX } },
};

static bool find_context(const struct name *name)
{
	for (size_t i = 0; i < kymo_countof(contexts); i++) {
		if (is_name(name, contexts[i].word)) {
			mean(name, contexts[i].code, contexts[i].value, contexts[i].type);
			return true;
		}
	}
	return false;
}

/* The duration of a call, where the source has nothing of that name. */
static struct kymo_error *refuse_duration(const struct name *name)
{
	if (name->spec->aggregated)
		return kymo_error_at(
			name->text, name->start,
			"the duration of calls is aggregated as it is, in nanoseconds: write it alone, as in "
			"'libc:read duration'");
	if (name->spec->is_return)
		return kymo_error_at(name->text, name->start,
				     "a pad does not know the duration of its call: record it alone, as in 'libc:read "
				     "duration', or compare it in the filter after the function, as in /duration > "
				     "5ms/");
	return kymo_error_at(name->text, name->start,
			     "'duration' is known where the function returns; write -r in place of -p");
}

/* A name of the source: what it is is known when the file is. */
static struct kymo_error *find_variable(const struct name *name)
{
	struct kymo_spec *spec = name->spec;
	struct kymo_error *error = NULL;
	bool exists;

	if (spec->scope) {
		error = kymo_scope_find(spec->scope, name->text, name->start, name->size, &exists, name->ret);
		if (!error)
			return NULL;
		if (exists) {
			spec->needs_names = true;
			return error;
		}
		if (find_context(name)) {
			kymo_error_destroy(error);
			return NULL;
		}
		if (is_name(name, "duration") && !spec->marker) {
			kymo_error_destroy(error);
			return refuse_duration(name);
		}
	} else if (find_context(name)) {
		spec->wants_names |= kymo_spec_has_scope(spec);
		return NULL;
	} else if (*name->start != '$' && kymo_spec_has_scope(spec)) {
		spec->needs_names = true;
		mean(name, KYMO_FORM_VALUE, 0, (struct kymo_expr_type){ .size = 8, .of = &kymo_expr_later });
		return NULL;
	}
	if (error)
		return error;
	if (is_name(name, "duration") && !spec->marker)
		return refuse_duration(name);
	if (spec->marker)
		return kymo_error_at(name->text, name->start,
				     "variables by name ('%.*s') are not known at markers; write arg0 for the first "
				     "argument of an SDT probe",
				     (int)name->size, name->start);
	return kymo_error_at(name->text, name->start,
			     "variables by name ('%.*s') are known at one location of a file; write arg0, retval, "
			     "%%REGISTER or $stack0",
			     (int)name->size, name->start);
}

static struct kymo_error *find_name(void *data, const char *text, const char *start, size_t size,
				    struct kymo_expr_meaning *ret)
{
	const struct name name = { text, start, size, data, ret };
	unsigned int n;

	if (*start == '%')
		return find_register(&name);
	if (is_name(&name, "retval") || is_name(&name, "$retval"))
		return find_retval(&name);
	if (starts(&name, "$arg") && read_index(&name, 4, &n))
		return find_argument(&name, n);
	if (starts(&name, "arg") && read_index(&name, 3, &n))
		return find_argument(&name, n + 1);
	if (is_name(&name, "$stack")) {
		mean(&name, KYMO_FORM_REGISTER, KYMO_STACK_POINTER, wide);
		return NULL;
	}
	if (starts(&name, "$stack") && read_index(&name, 6, &n) && n <= KYMO_FETCH_STACK_MAX) {
		mean(&name, KYMO_FORM_STACK, n, wide);
		return NULL;
	}
	if (is_name(&name, "duration") && name.spec->is_return)
		return refuse_duration(&name);
	return find_variable(&name);
}

static struct kymo_error *find_type(void *data, const char *name, size_t size, const struct kymo_ctype **ret)
{
	struct kymo_spec *spec = data;

	if (spec->scope)
		return kymo_scope_type(spec->scope, name, size, ret);
	*ret = NULL;
	if (kymo_spec_has_scope(spec)) {
		spec->needs_names = true;
		*ret = &kymo_expr_later;
	}
	return NULL;
}

static const char *find_near_type(void *data, const char *name, size_t size)
{
	const struct kymo_spec *spec = data;

	return spec->scope ? kymo_scope_near_type(spec->scope, name, size) : NULL;
}

static struct kymo_error *find_members(void *data, const struct kymo_ctype *type, const struct kymo_ctype_member **ret,
				       size_t *n_ret)
{
	const struct kymo_spec *spec = data;

	return spec->scope ? kymo_scope_members(spec->scope, type, ret, n_ret) : NULL;
}

static struct kymo_error *find_enumerators(void *data, const struct kymo_ctype *type,
					   const struct kymo_ctype_enumerator **ret, size_t *n_ret)
{
	const struct kymo_spec *spec = data;

	return spec->scope ? kymo_scope_enumerators(spec->scope, type, ret, n_ret) : NULL;
}

static struct kymo_error *find_enumerator(void *data, const char *text, const char *name, size_t size,
					  const struct kymo_ctype **type_ret, int64_t *value_ret)
{
	const struct kymo_spec *spec = data;

	*type_ret = NULL;
	return spec->scope ? kymo_scope_enumerator(spec->scope, text, name, size, type_ret, value_ret) : NULL;
}

static struct kymo_error *find_parts(void *data, const struct kymo_ctype *type, const struct kymo_ctype_member **ret,
				     size_t *n_ret)
{
	const struct kymo_spec *spec = data;

	return spec->scope ? kymo_scope_parts(spec->scope, type, ret, n_ret) : NULL;
}

struct kymo_expr_names kymo_spec_value_names(struct kymo_spec *spec)
{
	const struct kymo_spec_scope *scope = spec->scope;

	return (struct kymo_expr_names){
		find_name,       find_type,  find_near_type,
		find_members,    find_parts, find_enumerators,
		find_enumerator, spec,       scope && !scope->debug && !scope->n_types ? scope->why : NULL
	};
}

/* ---- the whole ------------------------------------------------------------------------------- */

/* Types that are not known yet may make it right. */
static struct kymo_error *put_off(struct kymo_error *error, struct kymo_spec *spec, struct kymo_form *form,
				  struct kymo_expr_type *type)
{
	if (spec->scope || !spec->wants_names || error->code != KYMO_ERROR_USAGE)
		return error;
	kymo_error_destroy(error);
	spec->needs_names = true;
	form->n = 1;
	form->ops[0] = (struct kymo_form_op){ .code = KYMO_FORM_VALUE };
	*type = (struct kymo_expr_type){ .size = 8, .of = &kymo_expr_later };
	return NULL;
}

static struct kymo_error *compile(const struct kymo_expr_source *source, struct kymo_spec *spec, FILE *tree_dump,
				  struct kymo_form **form_ret, struct kymo_expr_type *type_ret)
{
	const struct kymo_expr_names names = kymo_spec_value_names(spec);
	struct kymo_form *form = malloc(sizeof(*form));
	struct kymo_error *error;

	if (!form)
		return &kymo_error_no_memory;
	error = kymo_expr_compile(source, &names, tree_dump, form, type_ret);
	if (error)
		error = put_off(error, spec, form, type_ret);
	if (error)
		free(form);
	else
		*form_ret = form;
	return error;
}

struct kymo_error *kymo_spec_value_compile(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec,
					   FILE *tree_dump, struct kymo_form **form_ret,
					   struct kymo_expr_type *type_ret)
{
	const struct kymo_expr_source source = { text, piece.start, piece.end, false };

	return compile(&source, spec, tree_dump, form_ret, type_ret);
}

struct kymo_error *kymo_spec_assignment_compile(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec,
						struct kymo_form **form_ret, struct kymo_expr_type *type_ret)
{
	const struct kymo_expr_source source = { text, piece.start, piece.end, true };

	return compile(&source, spec, NULL, form_ret, type_ret);
}

/* ---- filters --------------------------------------------------------------------------------- */

static bool is_end(char c)
{
	return !c || kymo_spec_is_space(c);
}

/* The slash that closes the filter, or NULL. */
static const char *find_slash(const char *start)
{
	const char *last = NULL, *end = start + strlen(start);
	int depth = 0;

	for (const char *c = start; *c; c++) {
		c = kymo_spec_skip_quoted(c, end);
		depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
		if (*c != '/' || depth > 0 || !is_end(c[1]))
			continue;
		if (!kymo_spec_is_space(c[-1]))
			return c;
		last = c;
	}
	return last;
}

struct kymo_error *kymo_spec_filter_find(const char *text, const char *at, struct kymo_spec_piece *piece_ret,
					 const char **behind_ret)
{
	const char *slash;

	*behind_ret = NULL;
	while (kymo_spec_is_space(*at))
		at++;
	if (at[0] == 'i' && at[1] == 'f' && is_end(at[2])) {
		*piece_ret = (struct kymo_spec_piece){ at + 2, at + strlen(at) };
		*behind_ret = piece_ret->end;
		return NULL;
	}
	if (*at != '/')
		return NULL;
	slash = find_slash(at + 1);
	if (!slash)
		return kymo_error_at(text, at, "expected '/' at the end of the filter, as in /arg0 > 4K/%s",
				     is_end(at[1]) ? "; an expression with blanks stands in brackets, as in (a / b)"
						   : "");
	*piece_ret = (struct kymo_spec_piece){ at + 1, slash };
	*behind_ret = slash + 1;
	return NULL;
}
