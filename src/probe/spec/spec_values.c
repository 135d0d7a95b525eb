#include "probe/spec/spec_values.h"

#include "base/caret.h"
#include "probe/spec/spec_arg.h"
#include "probe/spec/spec_piece.h"
#include "probe/spec/spec_sample.h"
#include "probe/spec/spec_value.h"
#include "probe/spec/spec_write.h"

/* The next run of bytes without white space outside of brackets; empty at the end of the text. Moves `at` after it. */
static struct kymo_spec_piece next_value(const char **at)
{
	struct kymo_spec_piece piece;
	const char *end = *at + strlen(*at);
	int depth = 0;

	while (kymo_spec_is_space(**at))
		++*at;
	piece.start = *at;
	for (; **at && (depth > 0 || !kymo_spec_is_space(**at)); ++*at) {
		*at = kymo_spec_skip_quoted(*at, end);
		depth += (**at == '(' || **at == '[') - (**at == ')' || **at == ']');
	}
	piece.end = *at;
	return piece;
}

static struct kymo_error *parse_filter(const char *text, struct kymo_spec_piece piece, struct kymo_spec *spec)
{
	struct kymo_expr_type type;
	enum kymo_expr_class class;
	struct kymo_error *error;

	if (spec->filter)
		return kymo_error_at(text, piece.start, "a probe has one filter; join two conditions with &&");
	error = kymo_spec_value_compile(text, piece, spec, NULL, &spec->filter, &type);
	if (error || type.of == &kymo_expr_later)
		return error;
	class = kymo_expr_class_of(type);
	if (class != KYMO_EXPR_INTEGER && class != KYMO_EXPR_POINTER)
		return kymo_error_at(
			text, piece.start,
			"a filter is a number or a comparison, such as /arg0 > 4K/ or /str(arg0) == \"x\"/");
	return NULL;
}

static struct kymo_error *parse_write(const char *text, const char **at, struct kymo_spec *spec)
{
	struct kymo_spec_target target;
	struct kymo_error *error = kymo_spec_write_parse(text, at, spec, &target);

	return error ? error : kymo_spec_write_add(text, next_value(at), &target, spec);
}

struct kymo_error *kymo_spec_values_parse(const char *text, const char *at, struct kymo_spec *spec)
{
	for (;;) {
		struct kymo_spec_piece piece;
		const char *behind;
		struct kymo_error *error = kymo_spec_filter_find(text, at, &piece, &behind);

		if (!error && behind) {
			error = parse_filter(text, piece, spec);
			at = behind;
		} else if (!error && kymo_spec_is_sample(at) && spec->marker) {
			error = kymo_error_at(text, at + strspn(at, " \t"), "markers are not sampled: leave '%s' out",
					      at + strspn(at, " \t"));
		} else if (!error && kymo_spec_is_sample(at)) {
			error = kymo_spec_sample_parse(text, &at, spec);
		} else if (!error && kymo_spec_is_write(at)) {
			error = parse_write(text, &at, spec);
		} else if (!error) {
			piece = next_value(&at);
			if (piece.start == piece.end) {
				kymo_spec_writes_last(spec);
				return NULL;
			}
			error = kymo_spec_arg_parse(text, piece, spec);
		}
		if (error)
			return error;
	}
}
