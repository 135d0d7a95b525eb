/*
 * Which memory the text of a system call is made of, for code that copies it during the call: the decoder says it
 * (src/syscall), BPF programs copy it (src/kernel), or kymo_copies_make() does, of a thread that stands.
 */
#ifndef KYMO_WIRE_COPY_H
#define KYMO_WIRE_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kymo_copy_what {
	KYMO_COPY_BYTES,  /* `size` bytes; with `times`, so many elements of that size, but not more than `max` bytes */
	KYMO_COPY_STRING, /* up to its NUL, at most `max` bytes */
	KYMO_COPY_VECTOR, /* as many `struct iovec` as `times` says, and up to `max` bytes of what each leads to */
	KYMO_COPY_MESSAGE, /* a `struct msghdr`, and what it leads to: up to `max` bytes of each buffer */
	KYMO_COPY_STRINGS, /* a list of strings, ended by NULL: up to `max` bytes of each */
};

enum {
	KYMO_COPY_STACK = 6,         /* `arg`: the stack pointer */
	KYMO_COPY_ONCE = 0,          /* `times`; 1 … 6: the value of that argument, counted from one */
	KYMO_COPY_RESULT = 7,        /* the result, if it is above 0 */
	KYMO_COPY_ELEMENTS = 32,     /* of a vector or a list of strings at most; one more of a list's addresses */
	KYMO_COPIES_MAX = 8,         /* at one end of a call */
	KYMO_COPY_SIZE_MAX = 16384,  /* of one copy, but for vectors, messages and lists */
	KYMO_COPY_LOWEST = 4096,     /* no memory is copied below this address */
	KYMO_COPY_MESSAGE_SIZE = 56, /* of a struct msghdr */
	KYMO_COPY_NAME_MAX = 128,    /* bytes of its name, … */
	KYMO_COPY_CONTROL_MAX = 512, /* … and of its control data */
};

struct kymo_copy {
	uint8_t what;
	uint8_t arg; /* whose value is the address: 0 … 5, or KYMO_COPY_STACK */
	uint8_t times;
	bool is_pointer; /* the address stands at the address, plus `offset` */
	uint16_t offset; /* added to the address */
	uint16_t size, max;
};

/* What was copied: one after the other, each this, `size` bytes, and up to seven that mean nothing. Nothing is aligned
 * for readers. */
struct kymo_copied {
	uint64_t address;
	uint32_t size, unused;
};

struct kymo_copies {
	const void *bytes;
	size_t size;
};

/* What `n_copies` of them know of `size` bytes at `address`: how many, from the first on. Nothing of the copies is
 * trusted. */
size_t kymo_copies_read(const struct kymo_copies *copies, size_t n_copies, uint64_t address, void *out, size_t size);

/* Copies that are being made. */
struct kymo_copying {
	const uint64_t *args; /* six */
	uint64_t stack_pointer;
	int64_t result;                                                       /* of a call that has returned */
	int (*read)(void *context, uint64_t address, void *out, size_t size); /* all of it: 0, or a negative errno */
	void *context;
	uint8_t *bytes;        /* room for `capacity` */
	size_t size, capacity; /* `size`: how many there are */
};

/* Make them, after those that there are. What can't be read, and what there is no room for, is left out. */
void kymo_copies_make(struct kymo_copying *copying, const struct kymo_copy *copies, size_t n);

/* Where a `struct pt_regs` has what a system call is made with. */
struct kymo_call_layout {
	uint16_t args[6], stack_pointer, number;
	uint16_t args32[6]; /* of a call of 32 bits: the lower halves of registers */
	int32_t is_32_bits; /* the bit of the kernel's `thread_info.status` that says so */
};

#endif
