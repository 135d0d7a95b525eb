/*
 * Text to tree, by precedence climbing: each operator takes what binds at least as tightly as itself (ISO C 6.5). There
 * are no tokens: what a "%", "-" or "(" means depends on whether an operand or an operator is expected, and that is
 * known where it is read.
 */
#include "expr/parse.h"

#include <string.h>

#include "base/cleanup.h"
#include "expr/number.h"
#include "expr/parse_type.h"
#include "expr/reader.h"
#include "expr/typename.h"

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

static uint8_t read_operand(struct expr_reader *reader);
static uint8_t read_from(struct expr_reader *reader, unsigned int binds);
static uint8_t read_postfixes(struct expr_reader *reader, uint8_t of);

/* Its number; 0 with an error set. */
static uint8_t add_node(struct expr_reader *reader, struct expr_node node)
{
	struct expr_tree *tree = reader->tree;

	if (tree->n == EXPR_NODES_MAX)
		return expr_fail(reader, node.at, "the expression is too long: %d values and operators are the most",
				 EXPR_NODES_MAX);
	tree->nodes[tree->n] = node;
	return (uint8_t)tree->n++;
}

/* ---- operands -------------------------------------------------------------------------------- */

/* The operations of a name's form, in the tree. */
static bool keep_form(struct expr_reader *reader, const struct kymo_form *form, struct expr_node *node)
{
	struct expr_tree *tree = reader->tree;

	if (form->n > EXPR_OPS_MAX - tree->n_ops)
		return expr_fail(reader, node->at, "the expression is too long: its names take more than %d steps",
				 EXPR_OPS_MAX);
	memcpy(&tree->ops[tree->n_ops], form->ops, form->n * sizeof(form->ops[0]));
	node->first_op = (uint16_t)tree->n_ops;
	node->n_ops = (uint16_t)form->n;
	tree->n_ops += form->n;
	return true;
}

/* A name alone may be an enumerator, which is known when its type is: by what it is compared with. */
static bool may_be_enumerator(const struct expr_reader *reader, const struct kymo_error *error)
{
	return reader->tree->names->enumerators && error->code == KYMO_ERROR_USAGE && expr_is_letter(*reader->at);
}

/* A text of at most `size` bytes, at the address that `name` is. */
static uint8_t add_string(struct expr_reader *reader, struct expr_node name, uint32_t size)
{
	struct expr_node node = { .kind = EXPR_STRING, .at = name.at, .sign = "str", .value = size };

	name.type = (struct kymo_expr_type){ .size = 8 };
	node.a = add_node(reader, name);
	return reader->error ? 0 : add_node(reader, node);
}

static uint8_t read_identifier(struct expr_reader *reader)
{
	const struct kymo_expr_names *names = reader->tree->names;
	struct expr_node node = { .kind = EXPR_NAME, .at = reader->at };
	const size_t n_signs = !expr_is_letter(*reader->at); /* of "%di", "$retval" */
	const char *end = expr_skip_name(reader->at + n_signs, reader->tree->source.end);
	struct kymo_expr_meaning meaning = { .form.n = 0 };

	node.size = (uint16_t)(end - reader->at);
	reader->error = names->find(names->data, reader->tree->source.text, reader->at, node.size, &meaning);
	if (reader->error && may_be_enumerator(reader, reader->error)) {
		kymo_error_destroy(reader->error);
		reader->error = NULL;
		node.kind = EXPR_UNKNOWN;
	} else if (reader->error || !keep_form(reader, &meaning.form, &node)) {
		return 0;
	}
	node.type = meaning.type;
	node.is_lvalue = meaning.is_address;
	node.bit_size = meaning.bit_size;
	node.bit_shift = meaning.bit_shift;
	reader->tree->is_later |= meaning.type.of == &kymo_expr_later;
	reader->at = end;
	return meaning.type.is_string ? add_string(reader, node, meaning.type.n) : add_node(reader, node);
}

static uint8_t read_constant(struct expr_reader *reader)
{
	struct expr_node node = { .kind = EXPR_CONSTANT };

	reader->error = expr_read_constant(reader->tree, reader->at, &reader->at, &node);
	return reader->error ? 0 : add_node(reader, node);
}

static uint8_t read_string_literal(struct expr_reader *reader)
{
	struct expr_node node = { .kind = EXPR_TEXT, .at = reader->at };
	char text[EXPR_TEXT_MAX + 1];
	size_t size;

	reader->error = expr_read_text(reader->tree, reader->at, &reader->at, text, &size);
	node.type = (struct kymo_expr_type){ .size = 8, .is_string = true };
	return reader->error ? 0 : add_node(reader, node);
}

static uint8_t read_sizeof(struct expr_reader *reader)
{
	struct expr_node node = { .kind = EXPR_SIZEOF, .at = reader->at, .sign = "sizeof" };
	struct kymo_expr_type type;

	reader->at += strlen("sizeof");
	if (!expr_next_is(reader, "("))
		return expr_fail(reader, reader->at,
				 "expected '(' and a type or a value after sizeof, such as sizeof(long)");
	reader->at++;
	if (expr_read_any_type(reader, false, &type)) {
		const uint64_t bytes = kymo_expr_type_bytes(type);

		if (!expr_close_type(reader))
			return 0;
		if (!bytes && !reader->tree->is_later)
			return expr_fail(reader, node.at, "the size of this type is not known");
		node.kind = EXPR_CONSTANT;
		node.value = (int64_t)bytes;
		node.type = (struct kymo_expr_type){ .size = 8 };
		return add_node(reader, node);
	}
	if (reader->error)
		return 0;
	node.a = read_from(reader, BINDS_ALL);
	return reader->error || !expr_close_type(reader) ? 0 : add_node(reader, node);
}

static uint8_t read_brackets(struct expr_reader *reader)
{
	struct expr_node node = { .kind = EXPR_CAST, .at = reader->at };
	uint8_t inner;

	reader->at++;
	if (expr_read_any_type(reader, true, &node.type)) {
		if (!expr_close_type(reader))
			return 0;
		node.a = read_operand(reader);
		return reader->error ? 0 : add_node(reader, node);
	}
	if (reader->error)
		return 0;
	inner = read_from(reader, BINDS_ALL);
	if (reader->error)
		return 0;
	if (!expr_next_is(reader, ")"))
		return expr_fail(reader, reader->at, "expected ')' or an operator");
	reader->at++;
	return read_postfixes(reader, inner);
}

/* ---- what is after a value ------------------------------------------------------------------ */

/* A number that has to be known: of elements or bytes. */
static bool read_count(struct expr_reader *reader, int64_t *ret)
{
	struct expr_node node;

	if (expr_skip_blanks(reader) == reader->tree->source.end || !expr_is_digit(*reader->at))
		return expr_fail(reader, reader->at, "expected a number, such as 8");
	reader->error = expr_read_constant(reader->tree, reader->at, &reader->at, &node);
	*ret = node.value;
	return !reader->error;
}

static uint8_t read_member(struct expr_reader *reader, uint8_t of, const char *sign)
{
	struct expr_node node = { .kind = EXPR_MEMBER, .a = of, .at = reader->at, .sign = sign };

	node.is_arrow = *sign == '-';
	reader->at += strlen(sign);
	node.name = expr_skip_blanks(reader);
	if (node.name == reader->tree->source.end || !expr_is_letter(*node.name))
		return expr_fail(reader, reader->at, "expected the name of a member after '%s'", sign);
	reader->at = expr_skip_name(reader->at, reader->tree->source.end);
	node.size = (uint16_t)(reader->at - node.name);
	return add_node(reader, node);
}

/* After "a[" or "a[from": "..to]", "..]". A piece with one end, or without any, goes up to a NULL. */
static bool read_piece(struct expr_reader *reader, bool has_from, struct expr_node *node)
{
	const struct expr_node *from = &reader->tree->nodes[node->b];

	node->kind = EXPR_PIECE;
	node->sign = "[..]";
	if (has_from && from->kind != EXPR_CONSTANT) {
		expr_fail(reader, from->at, "expected a number, such as 0: the size of a record is fixed");
		return false;
	}
	node->value = has_from ? from->value : 0;
	node->b = 0;
	reader->at += strlen("..");
	node->ends_at_null = !has_from || expr_next_is(reader, "]");
	if (!has_from && !expr_next_is(reader, "]"))
		return read_count(reader, &node->last);
	if (!expr_next_is(reader, "]")) {
		node->kind = EXPR_PIECE_OF;
		node->b = read_from(reader, BINDS_ALL);
		return !reader->error;
	}
	if (__builtin_add_overflow(node->value, EXPR_UP_TO_NULL - 1, &node->last))
		node->last = node->value;
	return true;
}

/* After "a[": "b]", or a piece. */
static uint8_t read_index(struct expr_reader *reader, uint8_t of)
{
	struct expr_node node = { .kind = EXPR_INDEX, .a = of, .at = reader->at, .sign = "[]" };
	bool has_from;

	reader->at++;
	has_from = !expr_next_is(reader, "..");
	if (has_from)
		node.b = read_from(reader, BINDS_ALL);
	if (reader->error || (expr_next_is(reader, "..") && !read_piece(reader, has_from, &node)))
		return 0;
	if (!expr_next_is(reader, "]"))
		return expr_fail(reader, reader->at, "expected ']' or an operator");
	reader->at++;
	return add_node(reader, node);
}

static uint8_t read_postfixes(struct expr_reader *reader, uint8_t of)
{
	while (!reader->error) {
		if (expr_next_is(reader, "->"))
			of = read_member(reader, of, "->");
		else if (expr_next_is(reader, ".") && !expr_next_is(reader, ".."))
			of = read_member(reader, of, ".");
		else if (expr_next_is(reader, "["))
			of = read_index(reader, of);
		else
			break;
	}
	return reader->error ? 0 : of;
}

/* str(a), str(a, b), buf(a, b) */
static uint8_t read_str_or_buf(struct expr_reader *reader, enum expr_kind kind, const char *word)
{
	struct expr_node node = { .kind = kind, .at = reader->at, .sign = word };

	reader->at += strlen(word);
	expr_skip_blanks(reader);
	reader->at++;
	node.a = read_from(reader, BINDS_ALL);
	if (reader->error)
		return 0;
	if (expr_next_is(reader, ",")) {
		reader->at++;
		node.kind = kind == EXPR_STRING ? EXPR_STRING_OF : EXPR_BUFFER_OF;
		node.b = read_from(reader, BINDS_ALL);
		if (reader->error)
			return 0;
	} else if (kind == EXPR_BUFFER) {
		return expr_fail(reader, reader->at, "expected ',' and a number of bytes, as in buf(arg0, 64)");
	}
	if (!expr_next_is(reader, ")"))
		return expr_fail(reader, reader->at, "expected ')' or an operator");
	reader->at++;
	return add_node(reader, node);
}

/* ---- operands -------------------------------------------------------------------------------- */

static uint8_t read_unary(struct expr_reader *reader, const char *sign, enum kymo_form_code code)
{
	struct expr_node node = { .kind = EXPR_UNARY, .code = code, .at = reader->at, .sign = sign };

	reader->at++;
	node.a = read_operand(reader);
	return reader->error ? 0 : add_node(reader, node);
}

static uint8_t read_indirection(struct expr_reader *reader, const char *sign, enum expr_kind kind)
{
	struct expr_node node = { .kind = kind, .at = reader->at, .sign = sign };

	reader->at++;
	node.a = read_operand(reader);
	return reader->error ? 0 : add_node(reader, node);
}

static bool is_call(struct expr_reader *reader, const char *word)
{
	const char *at = reader->at + strlen(word);

	if (!expr_is_word(reader, word))
		return false;
	while (at < reader->tree->source.end && expr_is_blank(*at))
		at++;
	return at < reader->tree->source.end && *at == '(';
}

static uint8_t read_word(struct expr_reader *reader)
{
	uint8_t node;

	if (expr_is_word(reader, "sizeof"))
		return read_sizeof(reader);
	if (is_call(reader, "str"))
		return read_str_or_buf(reader, EXPR_STRING, "str");
	if (is_call(reader, "entry"))
		return expr_fail(reader, reader->at,
				 "entry() stands alone among the values of a return, as in -r 'libc:read entry(arg0) "
				 "retval'");
	if (is_call(reader, "buf"))
		return read_str_or_buf(reader, EXPR_BUFFER, "buf");
	node = read_identifier(reader);
	return reader->error ? 0 : read_postfixes(reader, node);
}

static uint8_t read_one(struct expr_reader *reader)
{
	const char *at = expr_skip_blanks(reader);

	if (at == reader->tree->source.end)
		return expr_fail(reader, at, "expected a value, such as arg0, %%di or 42");
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
		return read_indirection(reader, "*", EXPR_DEREF);
	case '&':
		return read_indirection(reader, "&", EXPR_ADDRESS);
	case '"':
		return read_string_literal(reader);
	case '\'':
	case '0' ... '9':
		return read_constant(reader);
	default:
		if (*at == '.' && at + 1 < reader->tree->source.end && expr_is_digit(at[1]))
			return read_constant(reader);
		if (expr_is_letter(*at) || *at == '%' || *at == '$')
			return read_word(reader);
		return expr_fail(reader, at, "expected a value, such as arg0, %%di or 42");
	}
}

static uint8_t read_operand(struct expr_reader *reader)
{
	uint8_t node;

	if (reader->depth == EXPR_DEPTH_MAX)
		return expr_fail(reader, reader->at, "too many brackets and signs within each other");
	reader->depth++;
	node = read_one(reader);
	reader->depth--;
	return node;
}

/* ---- operators ------------------------------------------------------------------------------- */

static const struct infix *find_infix(struct expr_reader *reader)
{
	for (size_t i = 0; i < kymo_countof(infixes); i++)
		if (expr_next_is(reader, infixes[i].sign))
			return &infixes[i];
	return NULL;
}

static uint8_t read_choice(struct expr_reader *reader, uint8_t condition)
{
	struct expr_node node = { .kind = EXPR_CHOICE, .at = reader->at, .a = condition, .sign = "?:" };

	reader->at++;
	node.b = read_from(reader, BINDS_ALL);
	if (reader->error)
		return 0;
	if (!expr_next_is(reader, ":"))
		return expr_fail(reader, reader->at, "expected ':' and what the value is otherwise");
	reader->at++;
	node.c = read_from(reader, BINDS_CHOICE);
	return reader->error ? 0 : add_node(reader, node);
}

static bool is_assignment(struct expr_reader *reader, const struct infix *infix)
{
	const size_t n = infix ? strlen(infix->sign) : 0;

	return (!infix && expr_next_is(reader, "=")) ||
	       (infix && infix->kind == EXPR_BINARY && reader->at + n < reader->tree->source.end &&
		reader->at[n] == '=' && !strchr("=!<>", infix->sign[n - 1]));
}

static uint8_t read_from(struct expr_reader *reader, unsigned int binds)
{
	uint8_t left;

	if (reader->depth == EXPR_DEPTH_MAX)
		return expr_fail(reader, reader->at, "too many brackets and signs within each other");
	reader->depth++;
	left = read_operand(reader);
	while (!reader->error) {
		const struct infix *infix = find_infix(reader);
		struct expr_node node = { .at = reader->at, .a = left };

		if (is_assignment(reader, infix)) {
			if (!infix && reader->tree->source.assigns && reader->depth == 1)
				break;
			expr_fail(reader, reader->at, "nothing can be changed; write == to compare");
		} else if (infix && infix->binds >= binds) {
			reader->at += strlen(infix->sign);
			node.kind = infix->kind;
			node.code = infix->code;
			node.swaps = infix->swaps;
			node.sign = infix->sign;
			node.b = read_from(reader, infix->binds + 1);
			left = reader->error ? 0 : add_node(reader, node);
		} else if (!infix && binds <= BINDS_CHOICE && expr_next_is(reader, "?")) {
			left = read_choice(reader, left);
		} else {
			break;
		}
	}
	reader->depth--;
	return left;
}

static uint8_t read_assignment(struct expr_reader *reader)
{
	struct expr_node node = { .kind = EXPR_ASSIGN, .sign = "=" };

	node.a = read_from(reader, BINDS_ALL);
	if (reader->error)
		return 0;
	if (!expr_next_is(reader, "="))
		return expr_fail(reader, reader->at, "expected '=' and the value, as in c->flags = 1");
	node.at = reader->at++;
	reader->depth++; /* a second "=" is none */
	node.b = read_from(reader, BINDS_ALL);
	reader->depth--;
	return reader->error ? 0 : add_node(reader, node);
}

struct kymo_error *expr_parse(struct expr_tree *tree)
{
	struct expr_reader reader = { .tree = tree, .at = tree->source.start };
	const uint8_t root = tree->source.assigns ? read_assignment(&reader) : read_from(&reader, BINDS_ALL);

	if (!reader.error && expr_skip_blanks(&reader) != tree->source.end)
		expr_fail(&reader, reader.at, "expected an operator, such as == or &&, or the end");
	if (!reader.error && root != tree->n - 1) /* the root is the last that was made */
		return kymo_error_at(tree->source.text, tree->source.start, "the expression has no value");
	return reader.error;
}
