/*
 * gdb's agent expressions: bytecode for a machine with a stack of 64-bit values. gdb gives the conditions of
 * breakpoints in it (GDB manual, appendix "The GDB Agent Expression Mechanism"). Pure. What is evaluated comes from a
 * client, and may be any bytes.
 */
#ifndef KYMO_GDB_AGENT_H
#define KYMO_GDB_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an expression sees. Both return false where there is nothing. */
struct gdb_agent_target {
	bool (*read_register)(void *data, unsigned int number, uint64_t *ret); /* numbers of `p` packets */
	bool (*read_memory)(void *data, uint64_t address, void *ret, size_t size);
	void *data;
	/* Of commands: `format` is as the user has written it, between the quotes. NULL: there are none. */
	bool (*print)(void *data, const char *format, size_t size, const uint64_t *args, size_t n);
	/* Of tracepoints: collect memory; trace state variables. NULL: there are none. */
	bool (*trace)(void *data, uint64_t address, uint64_t size);
	bool (*get_variable)(void *data, unsigned int number, uint64_t *ret);
	bool (*set_variable)(void *data, unsigned int number, uint64_t value);
	bool (*trace_variable)(void *data, unsigned int number);
};

#define GDB_AGENT_STEPS 100000u
#define GDB_AGENT_READ_STEPS 50u /* of a read of memory */
#define GDB_AGENT_STEP_BYTES 64u /* that are collected in the time of one step */

/*
 * The value of an expression. False where it has none: it divides by zero, reads unmapped memory, uses the stack
 * wrongly, or ends in the middle of an instruction; it executes more than `left` (a read of memory counts as
 * GDB_AGENT_READ_STEPS), or has instructions that are not known here: those of floating point, and what the target does
 * not have. What it executes is taken from `left`.
 */
bool gdb_agent_evaluate(const uint8_t *code, size_t size, const struct gdb_agent_target *target, unsigned int *left,
			uint64_t *ret);

/* Commands of a breakpoint, which print, and actions of a tracepoint, which collect: they have no value. False: as
 * above; what was printed before stays. */
bool gdb_agent_execute(const uint8_t *code, size_t size, const struct gdb_agent_target *target, unsigned int *left);

#endif
