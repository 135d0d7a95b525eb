/* Forms as text. */
#ifndef KYMO_EXPR_FORM_DUMP_H
#define KYMO_EXPR_FORM_DUMP_H

#include <stdio.h>

#include "wire/form.h"

/* The operations, a line each: number, name, and what it has. `register_name` gives the name of a register, or NULL. */
void kymo_form_dump(const struct kymo_form *form, const char *(*register_name)(int number), FILE *out);

#endif
