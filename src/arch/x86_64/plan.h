/* What plan.c, pun.c and evict.c share: a place under examination, and bytes under construction. */
#ifndef KYMO_ARCH_X86_64_PLAN_H
#define KYMO_ARCH_X86_64_PLAN_H

#include "arch/x86_64/x86.h"

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
	unsigned int budget; /* addresses that may still be asked for: what bounds a tactic's search */
};

typedef int x86_tactic(struct x86_site *site, struct kymo_plan *plans, size_t *n, struct kymo_refusal *refusal);

x86_tactic x86_try_jump, x86_try_group; /* window.c */
x86_tactic x86_try_first, x86_try_pun, x86_try_prefix; /* pun.c */
x86_tactic x86_try_successor, x86_try_neighbour; /* evict.c */

/* An address for a message, "%s0x%lx": what is below 0 has a sign. */
#define X86_ADDRESS(address) \
	(int64_t)(address) < 0 ? "-" : "", (int64_t)(address) < 0 ? -(uint64_t)(address) : (uint64_t)(address)

/* Fill `refusal`; -EPERM. */
int x86_refuse(struct kymo_refusal *refusal, uint64_t vaddr, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- plan.c ------------------------------------------------------------------------------------------------------ */

/* The instruction at `vaddr` of the site's function, in full. -EINVAL. */
int x86_decode_in(const struct x86_site *site, uint64_t vaddr, struct x86_insn *ret);

bool x86_is_nop(const struct x86_insn *insn);

/* Whether the instruction, one of a window that starts at the site and ends at `end`, works when it is displaced,
 * alone or with others. */
int x86_check_insn(const struct x86_site *site, const struct x86_insn *insn, uint64_t end, bool alone,
		   struct kymo_refusal *refusal);

/* [low, high) has nothing of a restartable sequence. */
int x86_check_rseq(const struct x86_site *site, uint64_t low, uint64_t high, struct kymo_refusal *refusal);

bool x86_is_locked(const struct x86_site *site, uint64_t vaddr, uint64_t size);

/* Make `ret` the instruction at `vaddr`, seen from `site`, if it can be displaced to make room for another's jump. */
int x86_find_evictable(const struct x86_site *site, uint64_t vaddr, struct x86_site *ret, struct kymo_refusal *refusal);

/* How many bytes of the instruction may be changed in one write, from its first on: up to the end of the page, and to
 * what is entered, read, or another plan's. */
unsigned int x86_changeable(const struct x86_site *site);

/* The refusal where x86_changeable() is 0. */
int x86_refuse_fixed(const struct x86_site *site, struct kymo_refusal *refusal);

/* ---- made.c ------------------------------------------------------------------------------------------------------ */

/* In code that the program has made: whether it can be trusted to leave the `span` bytes from the site on as they are. */
int x86_check_made(const struct x86_site *site, unsigned int span, struct kymo_refusal *refusal);

/* ---- faults.c ---------------------------------------------------------------------------------------------------- */

/* KYMO_FAULT_…: what the instruction, one of the site's function, may cause in a sound program. */
unsigned int x86_faults(const struct x86_site *site, const struct x86_insn *insn);

/* The same where nothing is known of its function. */
unsigned int x86_faults_anywhere(const struct x86_insn *insn);

/* Whether the code from `vaddr` on writes the arithmetic flags before it reads them. */
bool x86_flags_are_dead(const struct kymo_entry_map *map, uint64_t vaddr);

/* Whether the instruction may be displaced as far as that goes. */
int x86_check_faults(const struct x86_site *site, const struct x86_insn *insn, struct kymo_refusal *refusal);

/* ---- stacks.c ---------------------------------------------------------------------------------------------------- */

/* Whether the stack has room for a pad at the site, whoever calls its function. */
int x86_check_stack(const struct x86_site *site, struct kymo_refusal *refusal);

/* ---- pun.c ------------------------------------------------------------------------------------------------------- */

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

/* An instruction with more bytes is none. */
#define X86_INSN_MAX 15u

#endif
