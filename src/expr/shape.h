/* The shapes of structures that are recorded as a whole. */
#ifndef KYMO_EXPR_SHAPE_H
#define KYMO_EXPR_SHAPE_H

#include <stdint.h>

#include "base/error.h"
#include "base/shape.h"
#include "expr/expr.h"

/* How much of a structure is recorded. */
struct kymo_shape_limits {
	unsigned int depth; /* structures within structures: of one that is deeper the members are left out. 1: no
			       members of members; KYMO_SHAPE_DEPTH_MAX at most */
	uint32_t size;      /* bytes: members that end after them are left out; KYMO_SHAPE_SIZE_MAX at most */
};

/*
 * The shape of a value of `type`, a STRUCT. Members stand as memory has them, which Rust orders otherwise than its
 * source. Left out are flexible arrays, what is static, and what the limits leave out: the shape is cut then, and its
 * size is that of what is left. NULL in `ret`: no member is known, or the first one is larger than the limit. Errors
 * come from `names` alone.
 */
struct kymo_error *kymo_expr_shape(const struct kymo_expr_names *names, struct kymo_expr_type type,
				   struct kymo_shape_limits limits, struct kymo_shape **ret);

/*
 * The shape of what an array of several dimensions has, such as "int[3]" of "int[2][3]": a structure with one member,
 * an array without a name, which stands for that array itself. NULL in `ret` for other types.
 */
struct kymo_error *kymo_expr_row_shape(const struct kymo_expr_names *names, struct kymo_expr_type type,
				       struct kymo_shape_limits limits, struct kymo_shape **ret);

#endif
