/* What holds for any tactic. Each function that returns an int gives 0, or fills `refusal` and returns -EPERM. */
#ifndef KYMO_ARCH_X86_64_CHECK_H
#define KYMO_ARCH_X86_64_CHECK_H

#include "arch/plan.h"
#include "arch/x86_64/site.h"

/* Find the instruction at `site->vaddr`: sets `function`, `about` and `insn`. */
int x86_find_insn(struct x86_site *site, struct kymo_refusal *refusal);

/* Go on to the instruction after an endbr64, which has to stay, where it is entered from nowhere else: it runs as
 * often. */
int x86_skip_endbr(struct x86_site *site, struct kymo_refusal *refusal);

/* Whether the site's instruction can be displaced. */
int x86_check_site(const struct x86_site *site, struct kymo_refusal *refusal);

/* Whether the instruction, one of a window that starts at the site and ends at `end`, works when it is displaced,
 * alone or with others. */
int x86_check_insn(const struct x86_site *site, const struct x86_insn *insn, uint64_t end, bool alone,
		   struct kymo_refusal *refusal);

/* Make `ret` the instruction at `vaddr`, seen from `site`, if it can be displaced to make room for another's jump. */
int x86_find_evictable(const struct x86_site *site, uint64_t vaddr, struct x86_site *ret, struct kymo_refusal *refusal);

/* How many bytes of the instruction may be changed in one write, from its first on: up to the end of the page, and to
 * what is entered, read, or another plan's. */
unsigned int x86_changeable(const struct x86_site *site);

/* The refusal where x86_changeable() is 0. */
int x86_refuse_fixed(const struct x86_site *site, struct kymo_refusal *refusal);

#endif
