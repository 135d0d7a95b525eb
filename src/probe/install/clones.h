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
struct user_regs_struct;
struct kymo_probes;
struct kymo_process;

/*
 * Clone the functions that are chosen (`options.clones`) in all files that the process has mapped, but the dynamic
 * linker. It is a launched one that is linked, and is stopped in that, with one thread; or `options.clones.is_running`,
 * and it runs on after a moment. UNSAFE: it can have no clones; NOT_FOUND: no function was chosen that can be cloned.
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

/* How many of the functions stay as they are, after kymo_probes_install(): something has changed their text, or a
 * handler of signals has interrupted them, or their clones do not know where a thread stands. No thread comes to these.
 */
size_t kymo_probes_n_staying(const struct kymo_probes *probes);

/* How many files have none of the chosen functions cloned, as that would take more jumps or memory than there is for
 * one process; the path of one. After kymo_probes_install(). */
#define KYMO_PROBES_CLONES_JUMPS (1u << 18)
#define KYMO_PROBES_CLONES_MIB 256u
size_t kymo_probes_n_unclonable(const struct kymo_probes *probes);
const char *kymo_probes_unclonable(const struct kymo_probes *probes, size_t i);

/*
 * Before kymo_probes_resolve_clones(): `others` are the probes of the same recording in the same process, which are in,
 * and were created with `may_go_on`. A function with a probe at its entry has a clone behind that; one with probes
 * elsewhere in it has none. They part when the clones are out, and before one of them is destroyed; that may be done
 * again, and for NULL.
 */
void kymo_probes_put_beside(struct kymo_probes *probes, struct kymo_probes *others);
void kymo_probes_part(struct kymo_probes *probes);

/* The clones beside `probes` are in, or they have parted: records have anchors in their threads' rings from now on
 * (wire/clones.h), or none any more. */
struct kymo_error *kymo_probes_note_clones(struct kymo_probes *probes);

/* How many of the chosen functions have no clone as probes are in the way. */
size_t kymo_probes_n_in_the_way(const struct kymo_probes *probes);

/* After kymo_probes_install(). The caller may let it grow. */
struct kymo_arena *kymo_probes_arena(struct kymo_probes *probes);

/* In the process, of a thread that has the FS base `block`: the word that is to be 0 when it begins. */
uint64_t kymo_probes_clones_word(uint64_t block);

/* Whether that is in the code of clones, of gates, and what belongs to them. */
bool kymo_probes_is_in_clone(const struct kymo_probes *probes, uint64_t pc);

/* The registers of a thread that stands in a clone, changed to those that it would have without: false where it is in
 * none, or between two instructions of the program. It is stopped. */
bool kymo_probes_clone_origin(const struct kymo_probes *probes, struct user_regs_struct *registers);

#endif
