/* Code that the program has made. */
#ifndef KYMO_ARCH_X86_64_MADE_H
#define KYMO_ARCH_X86_64_MADE_H

#include "arch/plan.h"
#include "arch/x86_64/site.h"

/* In code that the program has made: whether it can be trusted to leave the `span` bytes from the site on as they are.
 */
int x86_check_made(const struct x86_site *site, unsigned int span, struct kymo_refusal *refusal);

#endif
