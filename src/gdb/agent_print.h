/* What commands of breakpoints print: formats of printf, whose arguments are values of agent expressions. Pure. */
#ifndef KYMO_GDB_AGENT_PRINT_H
#define KYMO_GDB_AGENT_PRINT_H

#include "gdb/agent.h"
#include "gdb/text.h"

/*
 * Append to `out`. `format` is the text between the quotes of a dprintf, with its escapes. It comes from a client, and
 * may be any bytes. A string is read from memory, up to 4,096 bytes; where it cannot be read, "(fault)" is in its
 * place. False: the format is wrong, is for floating point or wide characters, or is for another number of arguments.
 * Then nothing was appended.
 */
bool gdb_agent_print(const char *format, size_t size, const uint64_t *args, size_t n,
		     const struct gdb_agent_target *memory, struct gdb_text *out);

/* Which of `n` arguments such a format takes for addresses of strings: bit i of `ret`. False: as above, or there are
 * more than 32. */
bool gdb_agent_strings(const char *format, size_t size, size_t n, uint32_t *ret);

#endif
