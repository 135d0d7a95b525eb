/*
 * Instructions and registers that stop a thread for its tracer: the breakpoint instruction, and watching by debug
 * registers. Public header of the room, beside code.h. Pure.
 */
#ifndef KYMO_ARCH_TRAP_H
#define KYMO_ARCH_TRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/user.h>

/* The breakpoint instruction: one byte, so it is written at once and fits everywhere. */
#define KYMO_TRAP_BYTE 0xcc

/* Where it is, for a thread that has executed one and stopped for its SIGTRAP; to set it back there, as if it had not.
 */
uint64_t kymo_trap_address(const struct user_regs_struct *registers);
void kymo_trap_return(struct user_regs_struct *registers);

/* Have it stand right after one at that address. */
void kymo_trap_set(struct user_regs_struct *registers, uint64_t address);

/* Whether two stops find a thread in the same state at the same address: it has executed nothing in between, or a whole
 * signal handler. */
bool kymo_trap_is_same(const struct user_regs_struct *a, const struct user_regs_struct *b);

/* ---- debug registers ------------------------------------------------------------------------- */

#define KYMO_WATCH_SLOTS 4
#define KYMO_WATCH_STATUS 6 /* numbers of the registers after those for addresses */
#define KYMO_WATCH_CONTROL 7

/* Their places in struct user, for PTRACE_PEEKUSER. */
size_t kymo_watch_register(unsigned int number);

enum kymo_watch_kind { KYMO_WATCH_ON_EXECUTION, KYMO_WATCH_ON_WRITE, KYMO_WATCH_ON_ACCESS };

/* Whether a slot is in use, by the control register. */
bool kymo_watch_is_on(uint64_t control, unsigned int slot);

/* The control register with a slot turned off; on. `size` is 1, 2, 4 or 8. */
uint64_t kymo_watch_off(uint64_t control, unsigned int slot);
uint64_t kymo_watch_on(uint64_t control, unsigned int slot, enum kymo_watch_kind kind, unsigned int size);

/* Whether the processor can watch so: a size it knows, at a multiple of that; of an instruction one byte. */
bool kymo_watch_can(enum kymo_watch_kind kind, uint64_t address, size_t size);

#endif
