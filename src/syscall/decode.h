/*
 * What the decoders of this room share. One family of calls is a file with its header; it says in `kind`s how arguments
 * are shown. calls.def joins kinds to calls, and table.c makes a table of that.
 */
#ifndef KYMO_SYSCALL_DECODE_H
#define KYMO_SYSCALL_DECODE_H

#include <stdint.h>

#include "base/cleanup.h"
#include "syscall/call.h"
#include "syscall/line.h"

struct decode {
	struct kymo_syscall_call *call;
	const struct kymo_syscall_target *target;
	struct kymo_line *text;
	bool is_leaving; /* the call has returned: what it wrote can be read */
	bool is_output;  /* the argument at hand is what the call writes: nothing, where it failed */
};

enum { N_SIGNALS = 64 };

enum { SET_TIDS_MAX = 32 }; /* of clone3: as deep as namespaces of processes are */

/* How an argument is shown. */
struct kind {
	void (*print)(struct decode *d, unsigned arg, const void *data);
	const void *data; /* for `print`: the table of flags, for instance */
	unsigned when;
};

enum {
	AT_ENTRY = 0,
	AT_EXIT = 1,   /* the kernel writes it */
	OWN_COMMA = 2, /* it prints ", " itself, or nothing at all */
	IS_PATH = 4,   /* what -P compares */
	IS_FD = 8,
	LOOKS_AT_ENTRY =
		16, /* with AT_EXIT: it is called at the entry too, to save something, and prints nothing then */
};

typedef void result_fn(struct decode *d);

struct syscall_row {
	result_fn *result; /* what a call that did not fail gives; NULL: a decimal number */
	const struct kind *args[6];
	bool is_known;
};

enum {
	CLASS_FILE = 1,
	CLASS_DESC = 2,
	CLASS_PROCESS = 4,
	CLASS_NETWORK = 8,
	CLASS_SIGNAL = 16,
	CLASS_IPC = 32,
	CLASS_MEMORY = 64,
	CLASS_CREDS = 128,
	CLASS_CLOCK = 256,
};

/* Where the mask is from the stack pointer on as rt_sigreturn is made: uc_sigmask of the kernel's struct ucontext. */
enum { MASK_IN_FRAME = 296 };

/* ---- flags and values: data ------------------------------------------------------------------ */

struct name {
	const char *text;
	uint64_t value;
};

struct names {
	const struct name *items; /* in the order in which they are shown */
	size_t n;
	const char *unknown; /* "O_???" */
	bool is_decimal;     /* by -X its numbers are no hex */
};

#define NAME(constant) \
	{ \
#constant, (uint64_t)(constant) \
	}
#define NAMES(variable, unknown_text, ...) \
	static const struct name variable##_items[] = { __VA_ARGS__ }; \
	static const struct names variable = { variable##_items, kymo_countof(variable##_items), unknown_text, false }
#define SHARED_NAMES(variable, unknown_text, ...) \
	static const struct name variable##_items[] = { __VA_ARGS__ }; \
	const struct names variable = { variable##_items, kymo_countof(variable##_items), unknown_text, false }

#define DECIMAL_NAMES(variable, unknown_text, ...) \
	static const struct name variable##_items[] = { __VA_ARGS__ }; \
	static const struct names variable = { variable##_items, kymo_countof(variable##_items), unknown_text, true }

/* A kind's `print`, and the value of the argument that it shows. */
#define PRINT(name) static void name(struct decode *d, unsigned arg, const void *data)
#define ARG (d->call->args[arg])

#define put(d, ...) kymo_line_printf((d)->text, __VA_ARGS__)
static inline void puts_(struct decode *d, const char *string)
{
	kymo_line_puts(d->text, string);
}

#endif
