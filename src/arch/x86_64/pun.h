/* Jumps made of the bytes that are there, and the layouts of bytes that they are chosen by. */
#ifndef KYMO_ARCH_X86_64_PUN_H
#define KYMO_ARCH_X86_64_PUN_H

#include "arch/plan.h"
#include "arch/x86_64/site.h"

x86_tactic x86_try_first, x86_try_pun, x86_try_prefix;

#define X86_LAYOUT_MAX 48

/* Bytes at `base` as they will be: some are fixed, as they are now or by choice, and some still open. */
struct x86_layout {
	uint64_t base;
	unsigned int size; /* less than wanted where the text ends */
	uint8_t bytes[X86_LAYOUT_MAX];
	bool open[X86_LAYOUT_MAX];
};

void x86_layout_init(struct x86_layout *layout, const struct x86_site *site, uint64_t base, unsigned int size);
void x86_layout_open(struct x86_layout *layout, unsigned int at, unsigned int n);
void x86_layout_set(struct x86_layout *layout, unsigned int at, uint8_t byte);

/* Whether a jmp rel32 can be at `at`: its bytes are in the text, its first is open or right, and those it relies
 * on are steady. */
int x86_layout_check(const struct x86_layout *layout, const struct x86_site *site, unsigned int at,
		     struct kymo_refusal *refusal);

/* Where a jump at `at` leads, by the bytes that are fixed; `step` is the distance of two such addresses. */
void x86_layout_range(const struct x86_layout *layout, unsigned int at, uint64_t *low_ret, uint64_t *high_ret,
		      uint64_t *step_ret);

/* Reserve an address that a jump at `at` can lead to, and settle its bytes. 0 when none was found. */
uint64_t x86_layout_reserve(struct x86_layout *layout, struct x86_site *site, unsigned int at);

/* A plan for the instruction of `site` alone, by the layout's bytes from its start on: `patch_size` of them are
 * written, `span` are what jumps are made of. */
void x86_plan_alone(const struct x86_site *site, enum kymo_tactic tactic, const struct x86_layout *layout,
		    unsigned int patch_size, unsigned int span, uint64_t trampoline, struct kymo_plan *ret);

/* Prefixes that a jmp rel32 takes no notice of; the best known first. */
#define X86_N_PREFIXES 22
extern const uint8_t x86_prefixes[X86_N_PREFIXES];

#endif
