/* What a pad with a trap prints in place of it: docs/internals/gdb-pads.md. Public header of the room, beside code.h.
 */
#ifndef KYMO_ARCH_PRINT_H
#define KYMO_ARCH_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_form;

/* What a breakpoint prints. */
struct kymo_pad_print {
	uint32_t number; /* in its records; not KYMO_WIRE_PRINT_VOID */
	const struct kymo_form *args;
	size_t n;         /* <= KYMO_WIRE_PRINT_ARGS */
	uint32_t strings; /* bit i: argument i is the address of a string, or 0; its bytes are in the record */
	uint64_t memory;  /* in the target: struct kymo_wire_prints, at the beginning of a page */
	uint32_t n_slots, slot_size; /* powers of two; a slot has room for the record (kymo_wire_print_size()) */
};

/* Whether a pad can compute an argument: no number of floating point, and nothing that the kernel is asked for. Pure.
 */
bool kymo_pad_can_print(const struct kymo_form *form);

#endif
