/* How much of the stack is left. */
#ifndef KYMO_ARCH_X86_64_STACKS_H
#define KYMO_ARCH_X86_64_STACKS_H

#include "arch/x86_64/site.h"

/* Whether the stack has room for a pad at the site, whoever calls its function. */
int x86_check_stack(const struct x86_site *site, struct kymo_refusal *refusal);

#endif
