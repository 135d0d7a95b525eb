/*
 * Function clones in a process: a recording without events, as traps.h. kymo_probes_install() puts them in, and
 * kymo_remove() takes them out. docs/design/clones.md tells why a process goes on whichever side dies.
 */
#ifndef KYMO_PROBE_INSTALL_CLONES_H
#define KYMO_PROBE_INSTALL_CLONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_arena;
struct kymo_clones;
struct kymo_probes;
struct kymo_process;

/*
 * Clone the functions that are chosen (`options.clones`) in all files that the process has mapped, but the one that its
 * thread stands in. It is a launched one that is linked, and is stopped with that thread alone. UNSAFE: it can have no
 * clones; NOT_FOUND: no function was chosen that can be cloned.
 */
struct kymo_error *kymo_probes_resolve_clones(struct kymo_probes *probes);

/* The clones of one file. */
struct kymo_probes_cloned {
	const struct kymo_clones *clones;
	uint64_t bias;
	uint32_t first_site; /* the number of its first block */
};

/* How many files have some, and one of them. */
size_t kymo_probes_n_cloned(const struct kymo_probes *probes);
struct kymo_probes_cloned kymo_probes_cloned(const struct kymo_probes *probes, size_t i);

/* How many files have none of the chosen functions cloned, as that would take more jumps or memory than there is for
 * one process; the path of one. After kymo_probes_install(). */
#define KYMO_PROBES_CLONES_JUMPS (1u << 18)
#define KYMO_PROBES_CLONES_MIB 256u
size_t kymo_probes_n_unclonable(const struct kymo_probes *probes);
const char *kymo_probes_unclonable(const struct kymo_probes *probes, size_t i);

/* After kymo_probes_install(). The caller may let it grow. */
struct kymo_arena *kymo_probes_arena(struct kymo_probes *probes);

/* In the process, of a thread that has the FS base `block`: the word that is to be 0 when it begins. */
uint64_t kymo_probes_clones_word(uint64_t block);

/* Whether that is in the code of clones, of gates, and what belongs to them. */
bool kymo_probes_is_in_clone(const struct kymo_probes *probes, uint64_t pc);

/* Where a thread that stands at `pc`, in a clone, would stand without: false where it is in none, or between two
 * instructions of the program. */
bool kymo_probes_clone_origin(const struct kymo_probes *probes, uint64_t pc, uint64_t *ret);

#endif
