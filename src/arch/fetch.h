/* Arguments of events, and the registers that they come from. What holds for all of it is told in code.h. */
#ifndef KYMO_ARCH_FETCH_H
#define KYMO_ARCH_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/form.h"
#include "wire/types.h"

enum kymo_fetch_kind {
	KYMO_FETCH_REGISTER, /* value: register number of kymo_register_parse() */
	KYMO_FETCH_ARGUMENT, /* value: 1 for the function's first; only right at a function entry */
	KYMO_FETCH_STACK,    /* value: N, the 8 bytes at stack pointer + 8 * N */
	KYMO_FETCH_STACK_POINTER,
	KYMO_FETCH_IMMEDIATE, /* value: itself */
	KYMO_FETCH_RETVAL, /* what a function returns; at an exit that is no tail jump; value: 1 where it is one and not
			      known: (fault) */
	KYMO_FETCH_MEMORY, /* the operand value(base,index,scale): read where it can be read for certain, as the stack
			      is; else (fault) */
	KYMO_FETCH_GLOBAL, /* value: vaddr in the data of the module whose text the site is in; the caller knows that it
			      is mapped */
	KYMO_FETCH_PAYLOAD, /* all arguments at once, as a record has them: `value` is the register with their address,
			     * `index` the one with their size in bytes. If that is above KYMO_PAYLOAD_MAX nothing is
			     * recorded and a loss is counted. The only one of its event. */
	KYMO_FETCH_COPY,  /* a copy of the stack, with type BYTES: struct kymo_wire_stack, and up to `limit` bytes from
			   * the stack pointer on, as far as they can be read for certain. The last one of its event */
	KYMO_FETCH_CHAIN, /* likewise: struct kymo_wire_chain, and up to `limit` return addresses, by frame pointers */
	KYMO_FETCH_FORM,  /* what `form` computes; value: 1 where what the function returns is not known there. With
			   * type STRING or BYTES that is the address of memory: a string up to its NUL, `limit` bytes.
			   * With KYMO_FORM_WANT, as many as that says, if that is less; a string may end before */
};

struct kymo_fetch {
	enum kymo_fetch_kind kind;
	enum kymo_type type; /* of PAYLOAD: KYMO_TYPE_STRING */
	int64_t value;
	/* of MEMORY: register numbers, -1 for none. Of PAYLOAD: `index`; and `base`, a register that has to have the
	 * same address, or -1 */
	int8_t base, index;
	uint8_t scale;                /* 1, 2, 4, 8 */
	const struct kymo_form *form; /* of FORM, for general registers; belongs to the caller */
	uint16_t limit; /* of FORM with STRING: the most bytes of it, without its NUL; with BYTES: as many. Of COPY: the
			   most bytes of the stack; of CHAIN: the most return addresses, up to KYMO_WIRE_CHAIN_MAX */
	bool ends_at_null;     /* of FORM with BYTES: those before the first 8 that are 0, which are an element */
	uint8_t array_of;      /* of FORM with BYTES: KYMO_ARRAY_OF() what they are elements of, or 0 */
	uint16_t element_size; /* of FORM with BYTES: they are elements of so many bytes; 0: as `array_of` says */
	uint8_t writes; /* of FORM: KYMO_WRITE_OF() the register that gets the value when the record is committed,
			 * KYMO_WRITE_RETURN, or KYMO_WRITE_MEMORY; 0: none. A fault in the record: it was not written
			 */
};

/* The program's register `reg` gets the value, all of it. A value of a type of 4 bytes clears the upper half. */
#define KYMO_WRITE_OF(reg) ((uint8_t)((reg) + 1))
/* At a function's entry: it is not run, and returns the value. */
#define KYMO_WRITE_RETURN 0x80
/* The form's last operation is KYMO_FORM_STORE, and is made before the record is begun. */
#define KYMO_WRITE_MEMORY 0x81
#define KYMO_WRITES_MAX 4 /* of an event */

#define KYMO_PAYLOAD_MAX 4096
#define KYMO_FETCH_LIMIT_MAX 512
#define KYMO_FETCH_COPY_MAX (32u << 10)
#define KYMO_FETCH_LIMIT KYMO_FORM_WANTED_MAX /* of strings, by default */

/* Whether a FORM's value is the address of what is recorded. */
static inline bool kymo_fetch_is_of_memory(const struct kymo_fetch *fetch)
{
	return fetch->kind == KYMO_FETCH_FORM && (fetch->type == KYMO_TYPE_STRING || fetch->type == KYMO_TYPE_BYTES);
}

#define KYMO_FETCH_REGISTERS 16  /* general ones, which a form may have */
#define KYMO_FETCH_STACK_MAX 255 /* of KYMO_FETCH_STACK; ARGUMENT n is n <= 6, or stack n - 6 */

/* Number of the register named by the `length` bytes at `name` ("di", "rdi", "edi", "r8", "ip", "flags" …), or -1;
 * `type_ret` gets the width that the name implies ("di" and "rdi" KYMO_TYPE_X64 as in the kernel's grammar,
 * "edi" KYMO_TYPE_X32). */
int kymo_register_parse(const char *name, size_t length, enum kymo_type *type_ret);

/* Whether that name is of a register that has one value wherever a probe is, as the kernel's uprobes have it: "cs",
 * "ss", "orig_ax". */
bool kymo_register_constant(const char *name, size_t length, uint64_t *ret);

/* Number of the register that DWARF has the number `dwarf` for, or -1: only general ones have one. */
int kymo_register_of_dwarf(int dwarf);

/* The one that debuggers give the number `number` (registers.h), or -1. */
int kymo_register_of_debugger(unsigned int number);

/* The name of a general register, "di" for 7. Static. */
const char *kymo_register_name(int number);

#define KYMO_STACK_POINTER 4 /* its number */

/* The operation of a form that gives argument `n` (from 1) of a function where that is entered. -EINVAL: there is none
 * of that number. */
int kymo_argument_operation(unsigned int n, struct kymo_form_op *ret);

#endif
