/*
 * What the kernel's own uprobes have to do with machine code: where they may be, and where a program that runs at one
 * finds values.
 *
 * Public header of the room, beside code.h.
 */
#ifndef KYMO_ARCH_UPROBE_H
#define KYMO_ARCH_UPROBE_H

#include "arch/code.h"
#include "arch/fetch.h"
#include "wire/copy.h"

/*
 * Whether a uprobe may be set on the instruction at `vaddr`. `function` is the run of code that contains it and begins
 * with an instruction: a uprobe inside of an instruction would change what it does, so all of it up to there is
 * decoded. The instruction's length, or -EPERM with a sentence.
 */
int kymo_uprobe_check(const struct kymo_span *function, uint64_t vaddr, char *reason, size_t size);

/* Whether a debugger or the kernel has put the byte `now` in the place of `file`, the first of an instruction. */
bool kymo_uprobe_is_breakpoint(uint8_t now, uint8_t file);

/*
 * Whether text is as the file has it, but for breakpoints: two runs of `size` bytes. To be asked for the
 * KYMO_UPROBE_REACH bytes before a uprobe, too: what jumps that others have put there are made of must not be changed.
 */
bool kymo_uprobe_is_free(const uint8_t *file, const uint8_t *memory, size_t size);

#define KYMO_UPROBE_REACH 15

enum kymo_uprobe_source {
	KYMO_UPROBE_REGISTER,  /* value of the register at `at` in struct pt_regs, plus `value` */
	KYMO_UPROBE_MEMORY,    /* the 8 bytes at that address */
	KYMO_UPROBE_IMMEDIATE, /* `value` */
};

struct kymo_uprobe_value {
	enum kymo_uprobe_source source;
	uint16_t at;
	int64_t value;
};

/*
 * Where the value of `fetch` is. With `is_return` the program runs when the function has returned, after its ret
 * instruction: stack pointer and stack words are those before it, as a probe on the instruction would find them.
 * -EINVAL for what is out of range, and for operands in memory, globals and payloads: those are no word at a register.
 */
int kymo_uprobe_resolve(const struct kymo_fetch *fetch, bool is_return, struct kymo_uprobe_value *ret);

/* Where the kernel's tracepoints of system calls find what a call is made with. */
extern const struct kymo_call_layout kymo_call_layout;

#endif
