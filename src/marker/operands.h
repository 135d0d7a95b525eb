/* Operands of SDT arguments. */
#ifndef KYMO_MARKER_OPERANDS_H
#define KYMO_MARKER_OPERANDS_H

#include <stdbool.h>
#include <stddef.h>

#include "wire/types.h"

struct kymo_fetch;
struct kymo_module;

/*
 * The operand of an SDT argument, "-4@%edi", "8@$5", "4@-20(%rbp)", "8@counter(%rip)", "8@8(%rax,%rbx,4)", `length`
 * bytes. Symbols are looked up in the module. -EINVAL.
 */
int kymo_marker_parse_operand(struct kymo_module *module, const char *text, size_t length, struct kymo_fetch *ret);

/*
 * As kymo_marker_parse_operand(); where that is -EINVAL `why_ret` is the rest of the sentence "its argument …", static,
 * and `type_ret` the type that is implied all the same.
 */
int marker_parse_operand(struct kymo_module *module, const char *text, size_t length, struct kymo_fetch *ret,
			 enum kymo_type *type_ret, const char **why_ret);

/* The next operand of the list at `*at`, which is put after it: blanks part them, but not those within parentheses.
 * False at the end. */
bool marker_next_operand(const char **at, const char **ret, size_t *length_ret);

#endif
