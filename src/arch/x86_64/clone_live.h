/* Which registers a clone may use where. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CLONE_LIVE_H
#define KYMO_ARCH_X86_64_CLONE_LIVE_H

struct kymo_clone;
struct x86_clone_insn;
struct x86_insn;

/* What each instruction reads and writes; then which registers are live before each; then, of the sites that are left,
 * which one is to be held. */
void x86_clone_note_registers(struct x86_clone_insn *ret, const struct x86_insn *insn);
void x86_clone_live(struct kymo_clone *clone);
void x86_clone_choose_held(struct kymo_clone *clone);

/* A register that is free before the instruction, the held one first; X86_NO_REGISTER: none is. */
int x86_clone_free_register(const struct kymo_clone *clone, const struct x86_clone_insn *insn);

#endif
