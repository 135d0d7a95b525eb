/* JIT code. */
#ifndef KYMO_ARCH_X86_64_JIT_H
#define KYMO_ARCH_X86_64_JIT_H

#include "arch/plan.h"
#include "arch/x86_64/site.h"

/* In JIT code: whether the program can be trusted to leave the `span` bytes from the site on as they are. */
int x86_check_jit(const struct x86_site *site, unsigned int span, struct kymo_refusal *refusal);

#endif
