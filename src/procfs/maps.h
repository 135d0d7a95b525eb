/* Mappings of a process, and the files that they are of. */
#ifndef KYMO_PROCFS_MAPS_H
#define KYMO_PROCFS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_map {
	uint64_t start, end, offset, inode;
	uint32_t major, minor;
	bool readable, writable, executable, shared;
	bool deleted; /* the path ends in " (deleted)", which is cut off */
	char *path;   /* "" for anonymous memory; "[stack]", "/usr/bin/git" */
};

/* Which part of a file a mapping is of: mappings of two processes may have the same one. */
struct kymo_map_part {
	uint64_t inode, offset, size; /* `inode` 0: none */
	uint32_t major, minor;
};

struct kymo_maps {
	struct kymo_map *items; /* sorted by start */
	size_t n, cap;
};

/* Read /proc/PID/maps. GONE, PERMISSION. */
struct kymo_error *kymo_maps_read(pid_t pid, struct kymo_maps *ret);

/* A copy of `maps`, as kymo_maps_read() gives it: its paths are its own. */
struct kymo_error *kymo_maps_copy(const struct kymo_maps *maps, struct kymo_maps *ret);
void kymo_maps_deinit(struct kymo_maps *maps);

/* Whether it is of a file that memfd_create(2) has made, which has no other name. A path and an inode do not tell: in a
 * mount namespace of its own a user has files with any of both. Any thread may ask; false, too, where no such file can
 * be made to compare. */
bool kymo_is_memfd(const struct kymo_map *map);

struct kymo_map_part kymo_map_part(const struct kymo_map *map);
bool kymo_map_is_part(const struct kymo_map *map, const struct kymo_map_part *part);

/* The mapping that contains `address`, or NULL. */
const struct kymo_map *kymo_maps_at(const struct kymo_maps *maps, uint64_t address);

/*
 * A page-aligned hole of `size` bytes such that all of it is within ±2 GiB (less a margin) of all of [low, high); 0
 * when there is none. Holes just above the heap and just below a stack are left to them. The nearest below `low` is
 * preferred.
 */
uint64_t kymo_maps_hole(const struct kymo_maps *maps, uint64_t low, uint64_t high, uint64_t size);

/* A hole of `size` bytes anywhere, or 0. */
uint64_t kymo_maps_hole_anywhere(const struct kymo_maps *maps, uint64_t size);

/* A descriptor of the file that `map` of process `pid` was mapped from: by /proc/PID/map_files where that is allowed,
 * else through /proc/PID/root, and then only if the inode is the same. NOT_FOUND with the reason ("was replaced since
 * it was mapped"). */
struct kymo_error *kymo_open_mapped(pid_t pid, const struct kymo_map *map, int *fd_ret);

/* Whether the file that `map` was mapped from has these bytes (64 at most) where `address` is. False where that can't
 * be read. The second form: of its descriptor, which may be -1. */
bool kymo_is_of_mapped_file(pid_t pid, const struct kymo_map *map, uint64_t address, const void *bytes, size_t size);
bool kymo_is_of_file(int fd, const struct kymo_map *map, uint64_t address, const void *bytes, size_t size);

#endif
