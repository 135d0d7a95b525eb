/* Names of code that has no file. */
#ifndef KYMO_SYM_PERFMAP_H
#define KYMO_SYM_PERFMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KYMO_PERF_NAME_MAX 200

/* A function as a perf map tells it: the lines "START SIZE NAME", in hex, that compilers within programs write to
 * /tmp/perf-PID.map. */
struct kymo_perf_function {
	uint64_t start, size;
	char name[KYMO_PERF_NAME_MAX]; /* printable; cut at the end of a character */
};

/* One line, without its end. False for what is none. Pure. */
bool kymo_perf_map_parse(const char *line, size_t length, struct kymo_perf_function *ret);

/* The last function in the map open at `fd` (not consumed; nothing in it is trusted) that has `address`. -ENOENT where
 * there is none, -EFBIG beyond a GiB, or as pread() fails. */
int kymo_perf_map_find(int fd, uint64_t address, struct kymo_perf_function *ret);

#endif
