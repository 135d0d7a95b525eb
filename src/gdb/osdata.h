/* qXfer:osdata, gdb's "info os": what /proc says of the machine. It knows no stub. On the main thread: /proc is read
 * entry by entry, and a command line is memory of its process, which may have to be fetched from a file. Other users'
 * command lines are not read: see osdata.c. */
#ifndef KYMO_GDB_OSDATA_H
#define KYMO_GDB_OSDATA_H

#include <stdbool.h>
#include <stddef.h>

#include "gdb/text.h"
#include "gdb/words.h"

struct gdb_osdata_terms {
	size_t limit; /* bytes; an item that begins after them is the last, and has "..." in each column */
	bool (*is_called_off)(const void *data); /* asked before each item */
	const void *data;
};

/* Append the list of that type, or the list of types where the word is empty. Of an unknown type nothing is appended,
 * as by gdbserver. Processes that end meanwhile may be missing or have "?" for what is no longer known. False: the list
 * was called off, and is not whole. */
bool gdb_list_osdata(const struct gdb_words *type, const struct gdb_osdata_terms *terms, struct gdb_text *document);

#endif
