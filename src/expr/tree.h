/* The tree of an expression. Private to the room. */
#ifndef KYMO_EXPR_TREE_H
#define KYMO_EXPR_TREE_H

#include "expr/expr.h"

#define EXPR_NODES_MAX 128
#define EXPR_DEPTH_MAX 100 /* of brackets and unary operators within each other */

enum expr_kind {
	EXPR_CONSTANT, /* value */
	EXPR_NAME,     /* meaning */
	EXPR_CAST,     /* of `a` to the node's type */
	EXPR_UNARY,    /* code: NEGATE, COMPLEMENT, NOT */
	EXPR_BINARY,   /* code, of `a` and `b`; `swaps`: the form has b first */
	EXPR_AND,      /* a && b */
	EXPR_OR,       /* a || b */
	EXPR_CHOICE,   /* a ? b : c */
};

/* Children are numbers of nodes; they come before their parents. */
struct expr_node {
	enum expr_kind kind;
	enum kymo_form_code code;
	bool swaps;
	uint8_t a, b, c;
	struct kymo_expr_type type; /* of its value; of operators known after check.c */
	int64_t value;
	struct kymo_form_op op; /* of NAME */
	const char *at;         /* in the text */
	const char *sign;       /* of operators, as it is written */
};

struct expr_tree {
	struct kymo_expr_source source;
	const struct kymo_expr_names *names;
	struct expr_node nodes[EXPR_NODES_MAX];
	unsigned int n; /* the last one is the root */
};

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

#endif
