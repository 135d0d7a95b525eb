/*
 * Forms: what is computed at a probe, between the words of the user and machine code. A form is a list of operations on
 * a stack of 64-bit values, as in gdb's agent expressions (GDB manual, "The Agent Expression Mechanism"): it knows
 * registers by their numbers, and nothing else of a machine. What makes forms is in src/expr, what makes code of them
 * in src/arch.
 *
 * What kymo_form_check() accepts:
 *	- ends: jumps lead forward only
 *	- has the same depth of the stack at each operation, whichever way leads there, and one value at its end
 *	- has a value for each operation that takes one, and never more than KYMO_FORM_DEPTH_MAX
 *
 * A value that is not available ends the form. That is a word beyond the end of the stack, unreadable memory, a
 * division by zero, or an unknown result of a function: its result is a fault, whatever was to come.
 */
#ifndef KYMO_WIRE_FORM_H
#define KYMO_WIRE_FORM_H

#include <stdbool.h>
#include <stdint.h>

#define KYMO_FORM_OPS_MAX 96
#define KYMO_FORM_DEPTH_MAX 12
#define KYMO_FORM_TEXT_MAX 63
#define KYMO_FORM_VECTORS 16
#define KYMO_FORM_FAULTS_MAX 20  /* operations that may fault */
#define KYMO_FORM_WANTED_MAX 128 /* bytes that WANT gets at the most: of texts, those without the NUL */

enum kymo_form_code {
	/* push */
	KYMO_FORM_VALUE,    /* `value` */
	KYMO_FORM_REGISTER, /* the register `value`, all of its 64 bits */
	KYMO_FORM_STACK,    /* the 8 bytes at stack pointer + 8 * `value`; may fault */
	KYMO_FORM_RETVAL,   /* what the function returns, by `value` 1 in a vector register; may fault: at an exit where
			       it is not known */
	KYMO_FORM_CONTEXT,  /* `value` of enum kymo_form_context: what runs the form */
	KYMO_FORM_ASK,    /* `value` of enum kymo_form_question: what the kernel answers; may fault: where it may not be
			     asked */
	KYMO_FORM_THREAD, /* the thread pointer, from which thread-local variables are found; may fault: where the
			     thread has none, or it cannot be read */
	KYMO_FORM_ADDRESS, /* `value` + where the file is loaded that the site is in: an address of its data */
	KYMO_FORM_FILE,   /* where byte `value` of that file would be, if all of it were mapped as the site's segment is
			   */
	KYMO_FORM_TEXT,   /* the address of the form's `text` */
	KYMO_FORM_FUNC,   /* the name of the function that the event is of, as a text: of `size` 0 its address, and then
			     it is the form's only operation; else `size` bytes from its byte `value` on, zeros where it
			     has ended. No machine has code for it: each event has a form with its own name in place of
			     it (probe/code/event_words.h) */
	KYMO_FORM_PROBE,  /* the same of the event's own name */
	KYMO_FORM_VECTOR, /* the low 64 bits of the vector register `value` */
	KYMO_FORM_PICK,   /* the value that has `value` others on top of it, once more */
	/* change the last value */
	KYMO_FORM_LOAD,       /* it is an address: the `size` bytes there, with zeros before them; may fault */
	KYMO_FORM_EXTEND,     /* its low `size` bytes, with the sign or zeros before them */
	KYMO_FORM_NEGATE,     /* 0 - it */
	KYMO_FORM_COMPLEMENT, /* ~it */
	/* Floating-point numbers are the bits of IEEE 754 in their `size` bytes, with zeros before them. */
	KYMO_FORM_TO_FLOAT,     /* a whole number to one of `size` */
	KYMO_FORM_FROM_FLOAT,   /* one of `size` to a whole number; 1 << 63 where 64 bits do not have it */
	KYMO_FORM_RESIZE_FLOAT, /* one of the other size to one of `size` */
	KYMO_FORM_TRUTH,        /* 0 or 1: whether it is not 0 */
	KYMO_FORM_NOT,          /* the other way round */
	/* take two, a and then b on top of it; push one */
	KYMO_FORM_ADD,
	KYMO_FORM_SUBTRACT,
	KYMO_FORM_MULTIPLY,
	KYMO_FORM_DIVIDE, /* by 0: a fault; the least number by -1: itself */
	KYMO_FORM_REMAINDER,
	KYMO_FORM_AND,
	KYMO_FORM_OR,
	KYMO_FORM_XOR,
	KYMO_FORM_SHIFT_LEFT,  /* by b modulo the bits of `size` (4 or 8) */
	KYMO_FORM_SHIFT_RIGHT, /* the same; the sign comes in, or zeros */
	KYMO_FORM_EQUAL,
	KYMO_FORM_DIFFERENT,
	KYMO_FORM_LESS,
	KYMO_FORM_LESS_OR_EQUAL,
	KYMO_FORM_DROP, /* a */
	KYMO_FORM_WANT, /* a, an address. b is how many bytes are wanted there, without a sign. The form's last
			   operation, which all ways come by */
	/* of floating-point numbers, which have no faults: rounded to the nearest */
	KYMO_FORM_FLOAT_ADD,
	KYMO_FORM_FLOAT_SUBTRACT,
	KYMO_FORM_FLOAT_MULTIPLY,
	KYMO_FORM_FLOAT_DIVIDE,
	KYMO_FORM_FLOAT_EQUAL, /* 0 or 1; 0 where one is no number */
	KYMO_FORM_FLOAT_LESS,
	KYMO_FORM_FLOAT_LESS_OR_EQUAL,
	/* go on at operation `value`, after this one */
	KYMO_FORM_JUMP,
	KYMO_FORM_JUMP_IF_ZERO, /* take one: if that is 0 */
	KYMO_FORM_SWAP,         /* the last two change places */
	/* take two, a and then b; push b */
	KYMO_FORM_STORE, /* a is an address: the `size` bytes there become the low ones of b; may fault, and then they
			    stay. The form's last operation, which all ways come by */
	KYMO_FORM_N_CODES,
};

enum kymo_form_context {
	KYMO_FORM_PID, /* as the process itself has it */
	KYMO_FORM_TID, /* as records have it: the process's where a thread cannot be told */
	KYMO_FORM_CPU, /* at that moment */
	KYMO_FORM_N_CONTEXTS,
};

enum kymo_form_question {
	KYMO_FORM_NAME,       /* the address of KYMO_FORM_NAME_SIZE bytes: the thread's name, with zeros after it */
	KYMO_FORM_NAME_AGAIN, /* the same bytes as those of the last NAME, which the form has come by */
	KYMO_FORM_CLOCK,      /* CLOCK_MONOTONIC, in nanoseconds */
	KYMO_FORM_N_QUESTIONS,
};

#define KYMO_FORM_NAME_SIZE 16 /* TASK_COMM_LEN of the kernel's */

struct kymo_form_op {
	uint8_t code;
	uint8_t size; /* of LOAD and STORE: 1, 2, 4, 8; of FUNC and PROBE these or 0; of EXTEND: 1, 2, 4; of shifts and
			 floating-point numbers: 4, 8 */
	uint8_t is_signed; /* of EXTEND, DIVIDE, REMAINDER, SHIFT_RIGHT, LESS, LESS_OR_EQUAL, TO_FLOAT, FROM_FLOAT */
	int64_t value;
};

struct kymo_form {
	uint32_t n;
	struct kymo_form_op ops[KYMO_FORM_OPS_MAX];
	char text[KYMO_FORM_TEXT_MAX + 1]; /* of KYMO_FORM_TEXT, with its NUL */
};

/* Whether the form keeps what is promised above, with registers below `n_registers` and words of the stack up to
 * `stack_max`. */
bool kymo_form_check(const struct kymo_form *form, unsigned int n_registers, unsigned int stack_max);

/* Whether one of its operations may fault. */
bool kymo_form_can_fault(const struct kymo_form *form);

/* Whether it has an operation of that code; `value` is that of one that has it, if it is not NULL. */
bool kymo_form_has(const struct kymo_form *form, enum kymo_form_code code, const int64_t *value);

/* Whether it has FUNC or PROBE. */
bool kymo_form_has_words(const struct kymo_form *form);

/* Whether one of its operations is of floating-point numbers. */
bool kymo_form_has_floats(const struct kymo_form *form);

static inline bool kymo_form_is_jump(const struct kymo_form_op *op)
{
	return op->code == KYMO_FORM_JUMP || op->code == KYMO_FORM_JUMP_IF_ZERO;
}

static inline bool kymo_form_is_of_floats(unsigned int code)
{
	return (code >= KYMO_FORM_TO_FLOAT && code <= KYMO_FORM_RESIZE_FLOAT) ||
	       (code >= KYMO_FORM_FLOAT_ADD && code <= KYMO_FORM_FLOAT_LESS_OR_EQUAL);
}

/* What a form is computed from. */
struct kymo_form_input {
	const uint64_t *registers;
	const uint64_t *vectors; /* the low 64 bits of each; NULL: none is available */
	const uint64_t *stack;   /* `n_stack` words from the stack pointer */
	uint64_t n_stack;
	const uint64_t *retval; /* NULL: not known */
	uint64_t context[KYMO_FORM_N_CONTEXTS];
	uint64_t thread; /* the thread pointer; 0: the thread has none */
	uint64_t bias;   /* of the file that the site is in: address - address as linked */
	uint64_t file;   /* address of the site - its offset in that file */
	/* Whether the `size` bytes at `address` can be read; then they are in `ret`, with zeros before them. NULL: none
	 * can. */
	bool (*load)(void *data, uint64_t address, unsigned int size, uint64_t *ret);
	/* What the kernel answers; false, or NULL: it may not be asked. */
	bool (*ask)(void *data, enum kymo_form_question question, uint64_t *ret);
	void *data;
	uint64_t *wanted; /* gets the bytes that WANT has; NULL: it is not told */
};

/* The value of a checked form. False: a fault. The reference for what makes code of it. */
bool kymo_form_run(const struct kymo_form *form, const struct kymo_form_input *input, uint64_t *ret);

#endif
