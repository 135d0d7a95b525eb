/* Operations of a form, one after the other. Private to the room. */
#ifndef KYMO_EXPR_EMIT_H
#define KYMO_EXPR_EMIT_H

#include "expr/expr.h"

struct expr_code {
	struct kymo_form *form;
	unsigned int depth, depth_max; /* of the form's stack */
	unsigned int n_faults;
	uint32_t joined; /* jumps lead here: what is before belongs to one way of several */
	bool is_full;
};

/* Append it. The operation is valid until the next call. */
struct kymo_form_op *expr_emit(struct expr_code *to, struct kymo_form_op op);

/* Emit the code, of `type`'s size and sign. */
void expr_emit_code(struct expr_code *to, enum kymo_form_code code, struct kymo_expr_type type);

void expr_emit_value(struct expr_code *to, int64_t value);

/* The `n` operations of a form of its own. */
void expr_emit_ops(struct expr_code *to, const struct kymo_form_op *ops, unsigned int n);

/* Where that asks for the thread's name, do not ask again: the form has come by the same question. */
void expr_emit_again(struct expr_code *to);

/* Add to the address, or the number, that was pushed last. */
void expr_emit_offset(struct expr_code *to, uint64_t offset);

/* Multiply what was pushed last. */
void expr_emit_scale(struct expr_code *to, uint64_t factor);

/* Push the value of `type` at the address that was pushed last. */
void expr_emit_load(struct expr_code *to, struct kymo_expr_type type);

/* Of the value that was pushed last `n` bits from `shift` on, with the sign or zeros before them. */
void expr_emit_bits(struct expr_code *to, unsigned int shift, unsigned int n, bool is_signed);

/* 0 or 1: whether what was pushed last, of `type`, is not 0. */
void expr_emit_truth(struct expr_code *to, struct kymo_expr_type type);

/* The operation of two floating-point numbers of `type` for one of whole numbers: a sum or product, or a comparison. */
void expr_emit_real(struct expr_code *to, enum kymo_form_code code, struct kymo_expr_type type);

/* From one type to another. */
void expr_emit_conversion(struct expr_code *to, struct kymo_expr_type from, struct kymo_expr_type type);

/* The first condition leads by JUMP_IF_ZERO to the third; each way leaves one value. */
struct expr_choice {
	uint32_t to_other, to_end; /* operations: their values are set when they are known */
};

void expr_begin_choice(struct expr_code *to, struct expr_choice *choice);
void expr_other_choice(struct expr_code *to, struct expr_choice *choice);
void expr_end_choice(struct expr_code *to, struct expr_choice *choice);

#endif
