/* Types of expressions. */
#ifndef KYMO_EXPR_TYPE_H
#define KYMO_EXPR_TYPE_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/types.h"

/* An integer of 1, 2, 4 or 8 bytes. */
struct kymo_expr_type {
	uint8_t size;
	bool is_signed;
};

/* The type of a record's value. */
enum kymo_type kymo_expr_record_type(struct kymo_expr_type type);

/* "unsigned int" … Static. */
const char *kymo_expr_type_name(struct kymo_expr_type type);

#endif
