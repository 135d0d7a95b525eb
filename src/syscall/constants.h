/* Flags and values by name. Private to the room. */
#ifndef KYMO_SYSCALL_CONSTANTS_H
#define KYMO_SYSCALL_CONSTANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "syscall/decode.h"

/* NULL where none has this very value. */
const char *name_of(const struct names *names, uint64_t value);

void put_flags(struct decode *d, const struct names *names, uint64_t value); /* "A|B|0x40", "0", "0x40 / * X_??? * /" */
bool has_any_flag(const struct names *names, uint64_t value);
void put_flags_plainly(struct decode *d, const struct names *names, uint64_t value); /* "A|B" whatever -X says */
void put_flags_after(struct decode *d, const struct names *names, const char *first, uint64_t value,
		     uint64_t rest); /* "FIRST|A|B" for `value`, of which `rest` has names of the table */
void put_name(struct decode *d, const struct names *names, uint64_t value); /* one of them, or "0x7 / * X_??? * /" */
/* Kinds' `print`: of an int's bits, of all 64, and of one value; `data` is a struct names. */
void print_flags(struct decode *d, unsigned arg, const void *data);
void print_flags_long(struct decode *d, unsigned arg, const void *data);
void print_name(struct decode *d, unsigned arg, const void *data);

void put_constant(struct decode *d, const char *name, int64_t value); /* whose number is decimal */
void put_hex_constant(struct decode *d, const char *name, uint64_t value);

/* Of a value in network order: its bytes, if -X asks for them, and whether the text follows that is easier to read;
 * then end_form(). */
bool begin_form(struct decode *d, const void *bytes, size_t n);
void end_form(struct decode *d);

#endif
