/* Function clones in a process that has probes of the same recording. Private to the room. */
#ifndef KYMO_PROBE_PLAN_CLONE_BESIDE_H
#define KYMO_PROBE_PLAN_CLONE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_clone;
struct kymo_probes;
struct probe_site;

/* The probe at `address`, in the process, whose pad can go on elsewhere than with what it displaces; or NULL. */
const struct probe_site *probes_before(const struct kymo_probes *probes, uint64_t address);

/*
 * Whether probes keep the function from having a clone: one within it, which no thread would come to any more; one at
 * its entry whose pad does not go on elsewhere, or past which the copy would jump; and one whose jump has bytes that a
 * catch would change. `n_hops_ret` goes up by one where the function has a probe at its entry and can have a clone.
 */
bool probes_are_in_the_way(const struct kymo_probes *probes, const struct kymo_clone *clone, uint64_t bias,
			   size_t *n_hops_ret);

/* Put what the probes beside the clones have written there into `bytes`, which are the file's at `address`. */
void probes_put_jumps(const struct kymo_probes *probes, uint64_t address, uint8_t *bytes, size_t size);

#endif
