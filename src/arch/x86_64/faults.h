/* What an instruction may raise. */
#ifndef KYMO_ARCH_X86_64_FAULTS_H
#define KYMO_ARCH_X86_64_FAULTS_H

#include "arch/plan.h"
#include "arch/x86_64/site.h"

/* KYMO_FAULT_…: what the instruction, one of the site's function, may cause in a sound program. */
unsigned int x86_faults(const struct x86_site *site, const struct x86_insn *insn);

/* The same where nothing is known of its function. */
unsigned int x86_faults_anywhere(const struct x86_insn *insn);

/* Whether the code from `vaddr` on writes the arithmetic flags before it reads them. */
bool x86_flags_are_dead(const struct kymo_entry_map *map, uint64_t vaddr);

/* What struct kymo_plan's `scratch` is for this plan. */
uint8_t x86_scratch(const struct kymo_entry_map *map, const struct kymo_plan *plan);

/* Whether the instruction may be displaced as far as that goes. */
int x86_check_faults(const struct x86_site *site, const struct x86_insn *insn, struct kymo_refusal *refusal);

#endif
