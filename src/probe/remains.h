/* How what is kymo's is told from what is not. Private to the room. */
#ifndef KYMO_PROBE_REMAINS_H
#define KYMO_PROBE_REMAINS_H

#include "probe/remove.h"

/* Header, journal, words, pads. */
bool kymo_is_shared_map(const struct kymo_map *map);

/* Rings, and what pads count. */
bool kymo_is_data_map(const struct kymo_map *map);

/* Whether mapping `i` is a live page of the recording of that inode: anonymous, and known by its neighbours. */
bool kymo_is_live_page(const struct kymo_maps *maps, size_t i, uint64_t inode);

/* Trampolines. */
bool kymo_is_jumps_map(const struct kymo_map *map);

/* The next descriptor of kymo's memory in the process behind `fd`, or -1. Only a recorder that died between
 * memfd_create and close leaves one. */
int kymo_next_descriptor(pid_t pid, int fd);

#endif
