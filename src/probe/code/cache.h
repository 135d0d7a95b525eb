/*
 * Files that a recording has looked at, with what is known of their code. The processes of a tree map the same few
 * libraries again and again, and decoding one takes far longer than putting a probe into it. Private to the room.
 */
#ifndef KYMO_PROBE_CODE_CACHE_H
#define KYMO_PROBE_CODE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/exits.h"
#include "arch/pad.h"
#include "base/error.h"
#include "marker/marker.h"
#include "probe/code/code.h"

struct kymo_file_id;
struct kymo_module;
struct probe_cache;

#define CACHED_MAX_GUARDS 16

struct probe_cached {
	struct kymo_module *module;
	struct kymo_code *code;                     /* made by probe_cached_code() */
	struct kymo_plan guards[CACHED_MAX_GUARDS]; /* of its system calls; found by probe_cached_guards() */
	int n_guards;                               /* as kymo_guard_find() returns it */
	bool knows_guards;
	struct kymo_syscall_site *syscalls; /* made by probe_cached_syscalls() */
	size_t n_syscalls;
	bool knows_syscalls;
	bool has_other_call, knows_other_call; /* found by probe_cached_other_call() */
	struct kymo_marker_list *markers;      /* made by probe_cached_markers() */
	uint64_t device, inode, size, changed_ns;
	size_t users;
	uint64_t used; /* when last, in uses of the cache */
};

struct kymo_error *probe_cache_create(struct probe_cache **ret);

/* Nothing that was got from it may be in use any more. NULL is allowed. */
void probe_cache_destroy(struct probe_cache *cache);

/* What the names of the recording's specs lead to, looked up once: one for each spec; NULL: not yet. The cache takes
 * `files`. */
const struct kymo_file_id *probe_cache_names(const struct probe_cache *cache);
void probe_cache_keep_names(struct probe_cache *cache, struct kymo_file_id *files);

/* The file open at `fd` (not consumed); errors as kymo_module_open_fd() has them. To be given back; `path` is that of
 * the first caller. */
struct kymo_error *probe_cache_get(struct probe_cache *cache, int fd, const char *path, struct probe_cached **ret);

/* Whether the file open at `fd` (not consumed) is that very one, unchanged. */
bool probe_cached_is_of(const struct probe_cached *file, int fd);

/* NULL is allowed. An unused file stays for the next user, as long as the cache is not too large. */
void probe_cache_put(struct probe_cache *cache, struct probe_cached *file);

/* Its code; belongs to the file. */
struct kymo_error *probe_cached_code(struct probe_cached *file, struct kymo_code **ret);

/* kymo_markers_create() for it; belongs to the file. */
struct kymo_error *probe_cached_markers(struct probe_cached *file, const struct kymo_marker_list **ret);

/* kymo_guard_find() for it. `ret` belongs to the file. */
struct kymo_error *probe_cached_guards(struct probe_cached *file, const struct kymo_plan **ret, int *n_ret);

/* kymo_syscall_sites_create() for it. `ret` belongs to the file. */
struct kymo_error *probe_cached_syscalls(struct probe_cached *file, const struct kymo_syscall_site **ret,
					 size_t *n_ret);

/* kymo_find_other_call() in it. */
struct kymo_error *probe_cached_other_call(struct probe_cached *file, bool *ret);

#endif
