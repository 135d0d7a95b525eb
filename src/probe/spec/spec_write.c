#include "probe/spec/spec_write.h"

#include <stdio.h>
#include <stdlib.h>

#include "arch/writes.h"
#include "base/caret.h"
#include "base/cleanup.h"
#include "probe/spec/spec_arg.h"
#include "probe/spec/spec_arg_name.h"
#include "probe/spec/spec_value.h"
#include "sym/glob.h"

/* The byte after what gets the value: the first blank or "=" outside of brackets. */
static const char *skip_target(const char *at)
{
	const char *end = at + strlen(at);
	int depth = 0;

	for (; *at && (depth > 0 || (!kymo_spec_is_space(*at) && *at != '=')); at++) {
		at = kymo_spec_skip_quoted(at, end);
		depth += (*at == '(' || *at == '[') - (*at == ')' || *at == ']');
	}
	return at;
}

/* The end of what stands before a "=" that is no comparison; NULL where there is none. A name with the "=" at once is
 * that of an argument. */
static const char *end_of_target(const char *at)
{
	const char *end = skip_target(at), *equals = kymo_spec_skip_blanks(end), *bad;

	if (*equals != '=' || equals[1] == '=' || end == at ||
	    (equals == end && kymo_spec_is_name((struct kymo_spec_piece){ at, end }, &bad)))
		return NULL;
	return end;
}

bool kymo_spec_is_write(const char *at)
{
	const char *set = kymo_spec_skip_word(at, "set");

	return kymo_spec_skip_word(at, "return") || (set && end_of_target(kymo_spec_skip_blanks(set)));
}

static struct kymo_error *check_return(const char *text, const char *at, const struct kymo_spec *spec)
{
	if (!spec->symbol || spec->offset || spec->every_instruction)
		return kymo_error_at(text, at,
				     "'return' is for the entry of a function, where it is not run: name the function "
				     "alone, as in 'libc:malloc return 0'");
	if (kymo_is_glob(spec->symbol))
		return kymo_error_at(text, at, "'return' is for one function, not for a glob");
	return NULL;
}

static struct kymo_error *check_probe(const char *text, const char *at, const struct kymo_spec *spec)
{
	if (spec->is_return)
		return kymo_error_at(text, at,
				     "a return probe writes nothing: a function is left by several instructions; write "
				     "'set' at one of them, with -p");
	if (spec->marker)
		return kymo_error_at(text, at, "markers write nothing: write 'set' at an instruction, with -p");
	return NULL;
}

static struct kymo_error *read_register(const char *text, struct kymo_spec_piece name, struct kymo_spec_target *ret)
{
	const size_t size = kymo_spec_piece_size(name);
	enum kymo_type type = KYMO_TYPE_X64;
	int number;

	number = kymo_register_parse(name.start + 1, size - 1, &type);
	if (number < 0)
		return kymo_error_at(text, name.start, "no register '%.*s' on x86-64; write %%ax, %%eax, %%r8 …",
				     (int)size, name.start);
	if (number >= KYMO_FETCH_REGISTERS || number == KYMO_STACK_POINTER)
		return kymo_error_at(text, name.start,
				     "'%.*s' is not written: only general registers are, without the "
				     "stack pointer",
				     (int)size, name.start);
	if (kymo_type_size(type) < 4)
		return kymo_error_at(text, name.start,
				     "'%.*s' is a part of a register; write all of it, or the lower four bytes, which "
				     "clears the others",
				     (int)size, name.start);
	ret->writes = KYMO_WRITE_OF(number);
	ret->is_half = kymo_type_size(type) == 4;
	return NULL;
}

struct kymo_error *kymo_spec_write_parse(const char *text, const char **at, const struct kymo_spec *spec,
					 struct kymo_spec_target *ret)
{
	struct kymo_spec_target target = { .at = kymo_spec_skip_blanks(*at), .writes = KYMO_WRITE_RETURN };
	const char *behind = kymo_spec_skip_word(target.at, "return");
	struct kymo_error *error = check_probe(text, target.at, spec);

	if (error)
		return error;
	if (behind) {
		error = check_return(text, target.at, spec);
	} else {
		struct kymo_spec_piece name;

		name.start = kymo_spec_skip_blanks(kymo_spec_skip_word(target.at, "set"));
		name.end = end_of_target(name.start);
		target.name = name;
		if (*name.start == '%')
			error = read_register(text, name, &target);
		else
			target.writes = KYMO_WRITE_MEMORY;
		behind = kymo_spec_skip_blanks(name.end) + 1;
	}
	if (error)
		return error;
	*at = behind;
	*ret = target;
	return NULL;
}

/* The number of the register that a write changes. */
static int register_of(uint8_t writes)
{
	return writes == KYMO_WRITE_RETURN ? 0 : writes - 1;
}

static struct kymo_error *check_writes(const char *text, const struct kymo_spec_target *target,
				       const struct kymo_spec *spec)
{
	size_t n = 0;

	if (spec->n_args == KYMO_EVENT_MAX_ARGS)
		return kymo_error_at(text, target->at,
				     "a probe records at most %d arguments, and what it writes is one",
				     KYMO_EVENT_MAX_ARGS);
	for (size_t i = 0; i < spec->n_args; i++) {
		const uint8_t other = spec->args[i].fetch.writes;

		n += other != 0;
		if (other && other != KYMO_WRITE_MEMORY && target->writes != KYMO_WRITE_MEMORY &&
		    register_of(other) == register_of(target->writes))
			return kymo_error_at(text, target->at,
					     "a probe writes a register once, and 'return' is a write "
					     "of %%ax");
	}
	if (n == KYMO_WRITES_MAX)
		return kymo_error_at(text, target->at, "a probe writes at most %d registers and values in memory",
				     KYMO_WRITES_MAX);
	return NULL;
}

static struct kymo_error *check_value(const char *text, struct kymo_spec_piece piece, const struct kymo_form *form,
				      struct kymo_expr_type type)
{
	const enum kymo_expr_class class = kymo_expr_class_of(type);

	if (class != KYMO_EXPR_INTEGER && class != KYMO_EXPR_POINTER)
		return kymo_error_at(text, piece.start, "a register gets a number, such as -1 or (arg0 + 1)");
	if (!kymo_form_can_be_written(form))
		return kymo_error_at(text, piece.start,
				     "what is written is computed of constants and registers, and can always be "
				     "computed: no memory, no stack, no division by a register");
	return NULL;
}

#define NUMBER_SIZE 3 /* "_8" */

/* "set_flags" for "c->flags"; of several with one name the later ones are numbered. */
static char *name_of_memory(struct kymo_spec_piece target, const struct kymo_spec *spec)
{
	const struct kymo_spec_piece word = kymo_spec_arg_word(target);
	const size_t size = kymo_spec_piece_size(word);
	char name[KYMO_SPEC_NAME_MAX + 1];
	int n;

	if (size && size + strlen("set_") + NUMBER_SIZE <= KYMO_SPEC_NAME_MAX)
		n = snprintf(name, sizeof(name), "set_%.*s", (int)size, word.start);
	else
		n = snprintf(name, sizeof(name), "set_memory");
	for (int i = 2; i <= KYMO_WRITES_MAX && kymo_spec_arg_is_taken(spec, kymo_spec_piece_of(name)); i++)
		snprintf(name + n, sizeof(name) - (size_t)n, "_%d", i);
	return strdup(name);
}

static struct kymo_error *make_name(const char *text, const struct kymo_spec_target *target,
				    const struct kymo_spec *spec, char **ret)
{
	kymo_cleanup_free char *name = NULL;

	if (target->writes == KYMO_WRITE_RETURN)
		name = strdup("returned");
	else if (target->writes == KYMO_WRITE_MEMORY)
		name = name_of_memory(target->name, spec);
	else if (asprintf(&name, "set_%s", kymo_register_name(register_of(target->writes))) < 0)
		name = NULL;
	if (!name)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < spec->n_args; i++)
		if (!strcmp(spec->args[i].name, name))
			return kymo_error_at(text, target->at,
					     "what is written is recorded as '%s', as another argument is called; give "
					     "that argument another name: NAME=...",
					     name);
	*ret = kymo_take(name);
	return NULL;
}

static struct kymo_error *add_of_memory(const char *text, struct kymo_spec_piece value,
					const struct kymo_spec_target *target, struct kymo_spec *spec)
{
	const struct kymo_spec_piece both = { target->name.start, value.end };
	kymo_cleanup_free char *name = NULL, *shown = NULL;
	struct kymo_error *error;

	if (value.start == value.end)
		return kymo_error_at(text, value.start, "expected the value, such as 1 or (arg0 + 1)");
	error = make_name(text, target, spec, &name);
	if (error)
		return error;
	shown = strndup(target->name.start, kymo_spec_piece_size(target->name));
	if (!shown)
		return &kymo_error_no_memory;
	error = kymo_spec_arg_assign(text, both, spec, name);
	if (error)
		return error;
	(void)kymo_take(name);
	spec->args[spec->n_args - 1].target = kymo_take(shown);
	return NULL;
}

struct kymo_error *kymo_spec_write_add(const char *text, struct kymo_spec_piece piece,
				       const struct kymo_spec_target *target, struct kymo_spec *spec)
{
	kymo_cleanup_free struct kymo_form *form = NULL;
	kymo_cleanup_free char *name = NULL;
	const char *value_text = text;
	struct kymo_fetch fetch = { .kind = KYMO_FETCH_FORM,
				    .type = target->is_half                       ? KYMO_TYPE_X32
					    : target->writes == KYMO_WRITE_RETURN ? KYMO_TYPE_S64
										  : KYMO_TYPE_X64,
				    .writes = target->writes };
	struct kymo_expr_type type;
	struct kymo_error *error = check_writes(text, target, spec);

	if (error)
		return error;
	if (target->writes == KYMO_WRITE_MEMORY)
		return add_of_memory(text, piece, target, spec);
	spec->leaves_function |= target->writes == KYMO_WRITE_RETURN;
	if (piece.start == piece.end && target->writes == KYMO_WRITE_RETURN) {
		/* The register gets what it has. */
		value_text = "%ax";
		piece = (struct kymo_spec_piece){ value_text, value_text + strlen(value_text) };
		spec->returns_as_is = true;
	}
	if (piece.start == piece.end)
		return kymo_error_at(text, piece.start, "expected the value, such as -1 or (arg0 + 1)");
	error = kymo_spec_value_compile(value_text, piece, spec, NULL, &form, &type);
	if (!error && type.of != &kymo_expr_later)
		error = check_value(value_text, piece, form, type);
	if (!error)
		error = make_name(text, target, spec, &name);
	if (error)
		return error;
	fetch.form = form;
	spec->args[spec->n_args++] =
		(struct kymo_spec_arg){ .name = kymo_take(name), .fetch = fetch, .form = kymo_take(form) };
	return NULL;
}

void kymo_spec_writes_last(struct kymo_spec *spec)
{
	struct kymo_spec_arg writes[KYMO_EVENT_MAX_ARGS];
	size_t n = 0, n_writes = 0;

	for (size_t i = 0; i < spec->n_args; i++)
		if (spec->args[i].fetch.writes == KYMO_WRITE_MEMORY)
			writes[n_writes++] = spec->args[i];
		else
			spec->args[n++] = spec->args[i];
	memcpy(&spec->args[n], writes, n_writes * sizeof(writes[0]));
}

bool kymo_spec_writes(const struct kymo_spec *spec)
{
	for (size_t i = 0; i < spec->n_args; i++)
		if (spec->args[i].fetch.writes)
			return true;
	return false;
}

const struct kymo_spec *kymo_spec_that_writes(const struct kymo_spec *specs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (kymo_spec_writes(&specs[i]))
			return &specs[i];
	return NULL;
}

char *kymo_spec_write_text(const struct kymo_spec *spec)
{
	const char *separator = "";
	char *text = NULL;
	size_t size;
	FILE *out;

	if (!kymo_spec_writes(spec))
		return NULL;
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	for (size_t i = 0; i < spec->n_args; i++) {
		const uint8_t writes = spec->args[i].fetch.writes;

		if (!writes)
			continue;
		if (writes == KYMO_WRITE_RETURN)
			fprintf(out, "%sreturn", separator);
		else if (writes == KYMO_WRITE_MEMORY)
			fprintf(out, "%sset %s", separator, spec->args[i].target);
		else
			fprintf(out, "%sset %%%s", separator, kymo_register_name(register_of(writes)));
		separator = ", ";
	}
	return fclose(out) ? NULL : text;
}
