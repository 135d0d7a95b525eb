/*
 * Debug information (DWARF 4 and 5, by libdw) as values need it: variables and where they are at an address, types and
 * their members, lines. Read-only; untrusted, as all of a target's files.
 *
 * All strings, types and arrays belong to the `kymo_debug` and live as long as it does. One thread at a time.
 */
#ifndef KYMO_SYM_DEBUG_H
#define KYMO_SYM_DEBUG_H

#include "sym/debug_enumerators.h"
#include "sym/debug_frames.h"
#include "sym/debug_instances.h"
#include "sym/debug_labels.h"
#include "sym/debug_lines.h"
#include "sym/debug_members.h"
#include "sym/debug_typelookup.h"
#include "sym/debug_variables.h"

struct kymo_debug;
struct kymo_module;

/*
 * The debug information of the module: its own, or that of a separate file (build-id folders, .gnu_debuglink, with a
 * .gnu_debugaltlink supplement). `debug_file` names one instead, or is NULL; one whose build-id is another is refused
 * with both told. NOT_FOUND: there is none, with what would bring it. BAD_DATA; NO_MEMORY. `module` must outlive it.
 * Regular files alone are opened; what .gnu_debugaltlink names, only if no other user can have written that link.
 */
struct kymo_error *kymo_debug_open(const struct kymo_module *module, const char *debug_file, struct kymo_debug **ret);

/*
 * The same of a file that a process has mapped, and that may have another name here: it is open at `fd`, which stays
 * the caller's. Only separate debug information is looked for where `fd` is -1. What the compiler has split off
 * (-gsplit-dwarf) is read only if no other user can have written the file: it may name any, such as a FIFO.
 */
struct kymo_error *kymo_debug_open_mapped(const struct kymo_module *module, int fd, struct kymo_debug **ret);
void kymo_debug_close(struct kymo_debug *debug);

#endif
