/*
 * Text to tree, by precedence climbing: each operator takes what binds at least as tightly as itself (ISO C 6.5). There
 * are no tokens: what a "%", "-" or "(" means depends on whether an operand or an operator is expected, and that is
 * known where it is read.
 */
#include <string.h>

#include "base/caret.h"
#include "base/cleanup.h"
#include "expr/number.h"
#include "expr/parse.h"
#include "expr/typename.h"

struct reader {
	struct expr_tree *tree;
	const char *at;
	unsigned int depth;
	struct kymo_error *error;
};

/* Binary operators, longer ones before those that they begin with. */
static const struct infix {
	const char *sign;
	unsigned int binds; /* higher: more tightly */
	enum expr_kind kind;
	enum kymo_form_code code;
	bool swaps;
} infixes[] = {
	{ "||", 2, EXPR_OR, 0, false },
	{ "&&", 3, EXPR_AND, 0, false },
	{ "==", 7, EXPR_BINARY, KYMO_FORM_EQUAL, false },
	{ "!=", 7, EXPR_BINARY, KYMO_FORM_DIFFERENT, false },
	{ "<<", 9, EXPR_BINARY, KYMO_FORM_SHIFT_LEFT, false },
	{ ">>", 9, EXPR_BINARY, KYMO_FORM_SHIFT_RIGHT, false },
	{ "<=", 8, EXPR_BINARY, KYMO_FORM_LESS_OR_EQUAL, false },
	{ ">=", 8, EXPR_BINARY, KYMO_FORM_LESS_OR_EQUAL, true },
	{ "<", 8, EXPR_BINARY, KYMO_FORM_LESS, false },
	{ ">", 8, EXPR_BINARY, KYMO_FORM_LESS, true },
	{ "|", 4, EXPR_BINARY, KYMO_FORM_OR, false },
	{ "^", 5, EXPR_BINARY, KYMO_FORM_XOR, false },
	{ "&", 6, EXPR_BINARY, KYMO_FORM_AND, false },
	{ "+", 10, EXPR_BINARY, KYMO_FORM_ADD, false },
	{ "-", 10, EXPR_BINARY, KYMO_FORM_SUBTRACT, false },
	{ "*", 11, EXPR_BINARY, KYMO_FORM_MULTIPLY, false },
	{ "/", 11, EXPR_BINARY, KYMO_FORM_DIVIDE, false },
	{ "%", 11, EXPR_BINARY, KYMO_FORM_REMAINDER, false },
};

#define BINDS_CHOICE 1
#define BINDS_ALL 0

static uint8_t read_operand(struct reader *reader);
static uint8_t read_from(struct reader *reader, unsigned int binds);

static const char *skip_blanks(struct reader *reader)
{
	while (reader->at < reader->tree->source.end && expr_is_blank(*reader->at))
		reader->at++;
	return reader->at;
}

static bool next_is(struct reader *reader, const char *sign)
{
	const size_t n = strlen(sign);

	skip_blanks(reader);
	return (size_t)(reader->tree->source.end - reader->at) >= n && !memcmp(reader->at, sign, n);
}

static uint8_t fail_with(struct reader *reader, struct kymo_error *error)
{
	reader->error = error;
	return 0;
}

#define fail(reader, at, ...) fail_with(reader, kymo_error_at((reader)->tree->source.text, at, __VA_ARGS__))

/* Its number; 0 with an error set. */
static uint8_t add(struct reader *reader, struct expr_node node)
{
	struct expr_tree *tree = reader->tree;

	if (tree->n == EXPR_NODES_MAX)
		return fail(reader, node.at, "the expression is too long: %d values and operators are the most",
			    EXPR_NODES_MAX);
	tree->nodes[tree->n] = node;
	return (uint8_t)tree->n++;
}

/* ---- operands ---------------------------------------------------------------------------------------------------- */

static uint8_t read_name(struct reader *reader)
{
	struct expr_node node = { .kind = EXPR_NAME, .at = reader->at };
	const char *end = reader->at + 1;
	struct kymo_expr_meaning meaning;

	while (end < reader->tree->source.end && (expr_is_letter(*end) || expr_is_digit(*end)))
		end++;
	reader->error = reader->tree->names->find(reader->tree->names->data, reader->tree->source.text, reader->at,
						  (size_t)(end - reader->at), &meaning);
	if (reader->error)
		return 0;
	node.op = meaning.op;
	node.type = meaning.type;
	reader->at = end;
	return add(reader, node);
}

static uint8_t read_constant(struct reader *reader)
{
	struct expr_node node = { .kind = EXPR_CONSTANT };

	reader->error = expr_read_constant(reader->tree, reader->at, &reader->at, &node);
	return reader->error ? 0 : add(reader, node);
}

/* Behind the name of a type: no pointer, and the bracket. */
static bool close_type(struct reader *reader)
{
	if (next_is(reader, "*"))
		return fail(
			reader, reader->at,
			"memory behind a pointer is not supported yet; write the type of an integer, as in (int)arg0");
	if (!next_is(reader, ")"))
		return fail(reader, reader->at, "expected ')' behind the type");
	reader->at++;
	return true;
}

static uint8_t read_sizeof(struct reader *reader)
{
	struct expr_node node = { .kind = EXPR_CONSTANT, .at = reader->at, .type = { 8, false } };
	struct kymo_expr_type type;
	const char *behind;

	reader->at += strlen("sizeof");
	if (!next_is(reader, "("))
		return fail(reader, reader->at, "expected '(' and a type behind sizeof, such as sizeof(long)");
	reader->at++;
	skip_blanks(reader);
	behind = expr_read_type(reader->at, reader->tree->source.end, &type);
	if (!behind)
		return fail(reader, reader->at, "expected a type, such as long or u32");
	reader->at = behind;
	if (!close_type(reader))
		return 0;
	node.value = type.size;
	return add(reader, node);
}

static uint8_t read_brackets(struct reader *reader)
{
	struct expr_node node = { .kind = EXPR_CAST, .at = reader->at };
	const char *behind;
	uint8_t inner;

	reader->at++;
	skip_blanks(reader);
	behind = expr_read_type(reader->at, reader->tree->source.end, &node.type);
	if (behind) {
		reader->at = behind;
		if (!close_type(reader))
			return 0;
		node.a = read_operand(reader);
		return reader->error ? 0 : add(reader, node);
	}
	inner = read_from(reader, BINDS_ALL);
	if (reader->error)
		return 0;
	if (!next_is(reader, ")"))
		return fail(reader, reader->at, "expected ')' or an operator");
	reader->at++;
	return inner;
}

static uint8_t read_unary(struct reader *reader, const char *sign, enum kymo_form_code code)
{
	struct expr_node node = { .kind = EXPR_UNARY, .code = code, .at = reader->at, .sign = sign };

	reader->at++;
	node.a = read_operand(reader);
	return reader->error ? 0 : add(reader, node);
}

static bool is_word(const struct reader *reader, const char *word)
{
	const size_t n = strlen(word), rest = (size_t)(reader->tree->source.end - reader->at);

	return rest >= n && !memcmp(reader->at, word, n) &&
	       (rest == n || (!expr_is_letter(reader->at[n]) && !expr_is_digit(reader->at[n])));
}

static uint8_t read_one(struct reader *reader)
{
	const char *at = skip_blanks(reader);

	if (at == reader->tree->source.end)
		return fail(reader, at, "expected a value, such as arg0, %%di or 42");
	switch (*at) {
	case '(':
		return read_brackets(reader);
	case '-':
		return read_unary(reader, "-", KYMO_FORM_NEGATE);
	case '~':
		return read_unary(reader, "~", KYMO_FORM_COMPLEMENT);
	case '!':
		return read_unary(reader, "!", KYMO_FORM_NOT);
	case '+':
		reader->at++;
		return read_operand(reader);
	case '*':
	case '&':
		return fail(reader, at,
			    "memory behind a pointer is not supported yet; write a value, such as "
			    "arg0, %%di or 42");
	case '\'':
	case '0' ... '9':
		return read_constant(reader);
	default:
		if (is_word(reader, "sizeof"))
			return read_sizeof(reader);
		if (expr_is_letter(*at) || *at == '%' || *at == '$')
			return read_name(reader);
		return fail(reader, at, "expected a value, such as arg0, %%di or 42");
	}
}

static uint8_t read_operand(struct reader *reader)
{
	uint8_t node;

	if (reader->depth == EXPR_DEPTH_MAX)
		return fail(reader, reader->at, "too many brackets and signs within each other");
	reader->depth++;
	node = read_one(reader);
	reader->depth--;
	return node;
}

/* ---- operators --------------------------------------------------------------------------------------------------- */

static const struct infix *find_infix(struct reader *reader)
{
	for (size_t i = 0; i < kymo_countof(infixes); i++)
		if (next_is(reader, infixes[i].sign))
			return &infixes[i];
	return NULL;
}

static uint8_t read_choice(struct reader *reader, uint8_t condition)
{
	struct expr_node node = { .kind = EXPR_CHOICE, .at = reader->at, .a = condition, .sign = "?:" };

	reader->at++;
	node.b = read_from(reader, BINDS_ALL);
	if (reader->error)
		return 0;
	if (!next_is(reader, ":"))
		return fail(reader, reader->at, "expected ':' and what the value is otherwise");
	reader->at++;
	node.c = read_from(reader, BINDS_CHOICE);
	return reader->error ? 0 : add(reader, node);
}

static bool is_assignment(struct reader *reader, const struct infix *infix)
{
	const size_t n = infix ? strlen(infix->sign) : 0;

	return (!infix && next_is(reader, "=")) ||
	       (infix && infix->kind == EXPR_BINARY && reader->at + n < reader->tree->source.end &&
		reader->at[n] == '=' && !strchr("=!<>", infix->sign[n - 1]));
}

static uint8_t read_from(struct reader *reader, unsigned int binds)
{
	uint8_t left;

	if (reader->depth == EXPR_DEPTH_MAX)
		return fail(reader, reader->at, "too many brackets and signs within each other");
	reader->depth++;
	left = read_operand(reader);
	while (!reader->error) {
		const struct infix *infix = find_infix(reader);
		struct expr_node node = { .at = reader->at, .a = left };

		if (is_assignment(reader, infix)) {
			fail(reader, reader->at, "nothing can be changed; write == to compare");
		} else if (infix && infix->binds >= binds) {
			reader->at += strlen(infix->sign);
			node.kind = infix->kind;
			node.code = infix->code;
			node.swaps = infix->swaps;
			node.sign = infix->sign;
			node.b = read_from(reader, infix->binds + 1);
			left = reader->error ? 0 : add(reader, node);
		} else if (!infix && binds <= BINDS_CHOICE && next_is(reader, "?")) {
			left = read_choice(reader, left);
		} else {
			break;
		}
	}
	reader->depth--;
	return left;
}

struct kymo_error *expr_parse(struct expr_tree *tree)
{
	struct reader reader = { .tree = tree, .at = tree->source.start };
	const uint8_t root = read_from(&reader, BINDS_ALL);

	if (!reader.error && (next_is(&reader, "->") || next_is(&reader, ".") || next_is(&reader, "[")))
		fail(&reader, reader.at, "memory behind a pointer is not supported yet; write a value, such as arg0");
	if (!reader.error && skip_blanks(&reader) != tree->source.end)
		fail(&reader, reader.at, "expected an operator, such as == or &&, or the end");
	if (!reader.error && root != tree->n - 1) /* the root is the last that was made */
		return kymo_error_at(tree->source.text, tree->source.start, "the expression has no value");
	return reader.error;
}
