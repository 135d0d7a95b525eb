/* Which libraries a process has, as its dynamic linker knows them. On the hub's thread. */
#ifndef KYMO_GDB_LIBRARIES_H
#define KYMO_GDB_LIBRARIES_H

#include "gdb/state.h"

/* The document of qXfer:libraries-svr4. What the process says is not trusted: lists end after some thousand items.
 * False: the program has no such list, as a static one, or a linker that was started by its own name; gdb finds the
 * libraries by itself then, where there are any. */
bool gdb_list_libraries(struct gdb_thread *thread, struct gdb_text *document);

/* qShlibInfoAddr: where the program has the address of that list. lldb asks for it. */
void gdb_tell_debug_address(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

#endif
