/*
 * What analyses of files have found, kept in a directory of the user's between runs: decoding libc takes longer than
 * all else that a recording begins with. Private to the room.
 *
 * An entry is found by a hash of everything that the analysis depends on: the bytes of text and data, extents, entries,
 * and the build of kymo. So an entry is right or missing, whatever happens to the file, its name or its times. The hash
 * resists accidents alone. Files that another user could have made to collide are left out
 * (kymo_module_is_protected()). So is a directory, or an entry, that another user could have written.
 *
 * The directory is $KYMO_CACHE (empty: nothing is kept), else $XDG_CACHE_HOME/kymo, else /var/cache/kymo for root and
 * ~/.cache/kymo for other users. Entries are written under another name and renamed, so that several recorders may
 * write at once, and be killed. Beyond 512 MiB the least recently used ones go.
 */
#ifndef KYMO_PROBE_CODE_STORE_H
#define KYMO_PROBE_CODE_STORE_H

#include "arch/code.h"

/* kymo_entry_map_create() for `code`, out of the store where that has it; else the map is made, and kept. What goes
 * wrong with the store goes unsaid: the map is made then. Errors are those of kymo_entry_map_create(). */
int probe_store_map(const struct kymo_module_code *code, struct kymo_entry_map **ret);

#endif
