/* A site for which a plan is made: the instruction there, and what is known around it. */
#ifndef KYMO_ARCH_X86_64_SITE_H
#define KYMO_ARCH_X86_64_SITE_H

#include "arch/plan.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/map.h"

/* An instruction with more bytes is none. */
#define X86_INSN_MAX 15u

/* The instruction at `vaddr`, and all that is known around it. */
struct x86_site {
	const struct kymo_module_code *code;
	const struct kymo_entry_map *map;
	const struct kymo_plan_room *room; /* or NULL */
	ZydisDecoder decoder;
	const struct kymo_extent *function;
	const struct x86_function *about; /* the function */
	uint64_t vaddr;
	struct x86_insn insn;
	unsigned int watched_faults; /* KYMO_FAULT_…: what may cause one of these is not displaced */
	unsigned int budget;         /* addresses that may still be asked for: what bounds a tactic's search */
};

/* A way to displace the instruction of `site`: up to KYMO_PLANS_MAX plans into `plans`, or a refusal and -EPERM. */
typedef int x86_tactic(struct x86_site *site, struct kymo_plan *plans, size_t *n, struct kymo_refusal *refusal);

/* An address for a message, "%s0x%lx": what is below 0 has a sign. */
#define X86_ADDRESS(address) \
	(int64_t)(address) < 0 ? "-" : "", (int64_t)(address) < 0 ? -(uint64_t)(address) : (uint64_t)(address)

/* Fill `refusal`; -EPERM. */
int x86_refuse(struct kymo_refusal *refusal, uint64_t vaddr, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The instruction at `vaddr` of the site's function, in full. -EINVAL. */
int x86_decode_in(const struct x86_site *site, uint64_t vaddr, struct x86_insn *ret);

bool x86_is_nop(const struct x86_insn *insn);

/* Whether another plan has taken one of the `size` bytes at `vaddr`, or relies on it. */
bool x86_is_locked(const struct x86_site *site, uint64_t vaddr, uint64_t size);

/* [low, high) has nothing of a restartable sequence. */
int x86_check_rseq(const struct x86_site *site, uint64_t low, uint64_t high, struct kymo_refusal *refusal);

#endif
