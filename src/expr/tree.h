/* The tree of an expression. Private to the room. */
#ifndef KYMO_EXPR_TREE_H
#define KYMO_EXPR_TREE_H

#include "expr/expr.h"

#define EXPR_NODES_MAX 128
#define EXPR_DEPTH_MAX 100 /* of brackets and unary operators within each other */
#define EXPR_OPS_MAX 192   /* of all names together */
#define EXPR_TEXT_MAX 48   /* of a text that is compared */

/* By the number of their children: none, `a`, `a` and `b`, all three. */
enum expr_kind {
	EXPR_CONSTANT, /* value */
	EXPR_NAME,     /* meaning: its operations push it, or its address */
	EXPR_UNKNOWN,  /* a name that `names` does not know: an enumerator, if anything */
	EXPR_TEXT,     /* "text" */

	EXPR_CAST,    /* of `a` to the node's type */
	EXPR_UNARY,   /* code: NEGATE, COMPLEMENT, NOT */
	EXPR_DEREF,   /* *a */
	EXPR_ADDRESS, /* &a */
	EXPR_MEMBER,  /* a.name, or by `is_arrow` a->name */
	EXPR_SIZEOF,  /* of the type of `a` */
	EXPR_PIECE,   /* a[from..to]: `value` and `last` */
	EXPR_STRING,  /* str(a), or str(a, value) */
	EXPR_BUFFER,  /* buf(a, value) */

	EXPR_STRING_OF, /* str(a, b): of b bytes at most; with a number for b check.c makes a STRING of it */
	EXPR_BUFFER_OF, /* buf(a, b), likewise */
	EXPR_PIECE_OF,  /* a[from..b], likewise; from is `value` */
	EXPR_BINARY,    /* code, of `a` and `b`; `swaps`: the form has b first */
	EXPR_MATCH,     /* str(a) == "text", or by `code` != */
	EXPR_AND,       /* a && b */
	EXPR_OR,        /* a || b */
	EXPR_INDEX,     /* a[b] */
	EXPR_ASSIGN,    /* a = b, at the root alone */

	EXPR_CHOICE, /* a ? b : c */
};

static inline unsigned int expr_n_children(enum expr_kind kind)
{
	return (kind >= EXPR_CAST) + (kind >= EXPR_STRING_OF) + (kind >= EXPR_CHOICE);
}

#define EXPR_UP_TO_NULL 32 /* elements that a piece without an end has at the most */

/* Children are numbers of nodes; they come before their parents. */
struct expr_node {
	enum expr_kind kind;
	enum kymo_form_code code;
	bool swaps, is_arrow;
	bool ends_at_null; /* of PIECE */
	uint8_t a, b, c;
	struct kymo_expr_type type;  /* of its value; of operators known after check.c */
	bool is_lvalue;              /* its form pushes an address: the value is there */
	bool is_reference;           /* what its form finds there is the address of the value */
	uint8_t bit_size, bit_shift; /* of a bit-field */
	uint16_t first_op, n_ops;    /* of NAME */
	uint16_t size;               /* of the name, of NAME, UNKNOWN and MEMBER: at `at`, of a MEMBER at `name` */
	int64_t value, last;
	uint64_t offset;  /* of MEMBER, in bytes */
	const char *at;   /* in the text */
	const char *name; /* of MEMBER */
	const char *sign; /* of operators, as it is written */
};

struct expr_tree {
	struct kymo_expr_source source;
	const struct kymo_expr_names *names;
	struct expr_node nodes[EXPR_NODES_MAX];
	unsigned int n; /* the last one is the root */
	struct kymo_form_op ops[EXPR_OPS_MAX];
	unsigned int n_ops;
	bool is_later; /* it has what is not known yet */
};

/* Whether it is as long as a value says. */
static inline bool expr_is_of_length(const struct expr_node *node)
{
	return node->kind == EXPR_STRING_OF || node->kind == EXPR_BUFFER_OF || node->kind == EXPR_PIECE_OF;
}

static inline bool expr_is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool expr_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool expr_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool expr_is_comparison(enum kymo_form_code code)
{
	return code >= KYMO_FORM_EQUAL && code <= KYMO_FORM_LESS_OR_EQUAL;
}

#endif
