/* Parts of a function. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_PARTS_H
#define KYMO_ARCH_X86_64_PARTS_H

#include <stdbool.h>

struct x86_body;

/* Follow each path of a body that has its first part, and add the parts that are found. -EPERM, -ENOMEM. */
int x86_find_parts(struct x86_body *body);

/* Whether other functions, or what lies between functions, lead into the middle of the parts. */
bool x86_is_entered_from_outside(const struct x86_body *body);

/* -EPERM where a part begins within a function. */
int x86_check_starts(struct x86_body *body);

/* The same, and -EPERM where other functions lead into the middle of the parts. */
int x86_check_sources(struct x86_body *body);

#endif
