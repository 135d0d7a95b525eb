/* How much of the stack is left. */
#ifndef KYMO_ARCH_X86_64_STACKS_H
#define KYMO_ARCH_X86_64_STACKS_H

#include <stdbool.h>
#include <stddef.h>

#include "arch/x86_64/site.h"

struct kymo_module_code;
struct x86_builder;

/* Whether the stack has room for a pad at the site, for every caller of its function. */
int x86_check_stack(const struct x86_site *site, struct kymo_refusal *refusal);

/* How much is left of small stacks, once functions and sources are known. -ENOMEM, -EINVAL. */
int x86_find_stacks(struct x86_builder *builder);

/* Whether function `function` runs on a small stack. */
bool x86_has_small_stack(const struct kymo_module_code *code, size_t function);

#endif
