/* qXfer:osdata, gdb's "info os": what /proc says of the machine. It knows no stub. On the main thread: /proc is read
 * entry by entry, and a command line is memory of its process, which may have to be fetched from a file. */
#ifndef KYMO_GDB_OSDATA_H
#define KYMO_GDB_OSDATA_H

#include "gdb/text.h"
#include "gdb/words.h"

/* Append the list of that type, or the list of types where the word is empty. Of an unknown type nothing is appended,
 * as by gdbserver. Processes that end meanwhile may be missing or have "?" for what is no longer known. */
void gdb_list_osdata(const struct gdb_words *type, struct gdb_text *document);

#endif
