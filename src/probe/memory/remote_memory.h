/* Memory of a target, made by remote calls of one of its threads. Private to the room. */
#ifndef KYMO_PROBE_MEMORY_REMOTE_MEMORY_H
#define KYMO_PROBE_MEMORY_REMOTE_MEMORY_H

#include <stdint.h>

#include "arch/batch.h"
#include "base/error.h"

struct kymo_process;

/* A mapping of the target's. */
struct kymo_remote_mapping {
	uint64_t address, size;
	int protection, kind; /* kind: MAP_SHARED or MAP_PRIVATE */
	int64_t fd;
	uint64_t offset;
};

/* memfd_create() in the stopped process; its descriptor there. */
struct kymo_error *kymo_remote_memfd(struct kymo_process *process, const char *name, int64_t *fd_ret);

/* That descriptor, for this process, and the inode of its memory. UNSAFE: it is something else, or not fresh. */
struct kymo_error *kymo_take_memfd(struct kymo_process *process, const char *name, int64_t remote, int *fd_ret,
				   uint64_t *inode_ret);

/* Map it at that very address, where nothing may be. */
struct kymo_error *kymo_remote_map(struct kymo_process *process, const struct kymo_remote_mapping *mapping);

/* The same in two parts, for a call that is made with others (kymo_remote_calls()). */
struct kymo_batch_call kymo_remote_map_call(const struct kymo_remote_mapping *mapping);
struct kymo_error *kymo_remote_check_map(const struct kymo_process *process, const struct kymo_remote_mapping *mapping,
					 int64_t result);

/* Take it away again. Errors go unsaid: this is what comes after one. */
void kymo_remote_unmap(struct kymo_process *process, const struct kymo_remote_mapping *mapping);

/* Close a descriptor there, unless it is negative, after `error`, which is returned if there is one. */
struct kymo_error *kymo_remote_close(struct kymo_process *process, int64_t remote, struct kymo_error *error);

/* The same of two; `code` is as for kymo_remote_calls(). */
struct kymo_error *kymo_remote_close_both(struct kymo_process *process, uint64_t code, int64_t one, int64_t other,
					  struct kymo_error *error);

/* Allocate a range of a memfd (errno); give it its final size. */
int kymo_allocate(int fd, uint64_t offset, uint64_t size);
struct kymo_error *kymo_give_size(int fd, uint64_t size);

/* The sentence for a call in its name that has failed. */
struct kymo_error *kymo_remote_failed(const char *what, int64_t result);

#endif
