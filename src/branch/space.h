/*
 * The code that a process has mapped, as it changes: spaces, which never change, by number. Private to the room.
 */
#ifndef KYMO_BRANCH_SPACE_H
#define KYMO_BRANCH_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "branch/branch.h"

struct kymo_code;
struct kymo_debug;
struct kymo_module;

#define BRANCH_SPACES_MAX 4096u

/* A file that some space has; opened while it is mapped, and read when that is needed. */
struct branch_file {
	uint32_t major, minor;
	uint64_t inode;
	char *path;
	int fd; /* or -1 */
	bool was_read, was_debug_read;
	struct kymo_module *module; /* or NULL */
	struct kymo_debug *debug;   /* or NULL */
	struct kymo_code *code;     /* where IFUNCs are chosen; or NULL */
};

struct branch_range {
	uint64_t start, end;
};

struct branch_region {
	struct branch_range range;
	uint64_t offset;          /* in the file */
	char *name;               /* as /proc has it */
	struct branch_file *file; /* or NULL */
	bool is_pad;              /* kymo's own code */
};

struct branch_space {
	KYMO_VEC(struct branch_region) regions; /* executable; sorted */
	KYMO_VEC(struct branch_range) chosen;   /* sorted, apart */
	KYMO_VEC(uint64_t) entries;             /* of chosen functions; sorted */
	uint64_t hash;                          /* of the regions */
	bool is_searched;                       /* for what is chosen */
};

struct branch_spaces {
	KYMO_VEC(struct branch_space *) items;
	KYMO_VEC(struct branch_file *) files;
	size_t n_regions; /* of all items */
	bool lacks_files; /* there were more than are kept open */
};

/* The number of what `pid` has mapped now: that of an equal space where there is one. -ESRCH: it cannot be read, and
 * the number stays as it is. -ENOSPC: there are too many; -ENOMEM. The number is 0 then, and the space, where it could
 * be made, the caller's: `unnumbered`. */
int branch_spaces_read(struct branch_spaces *spaces, pid_t pid, uint32_t *number, struct branch_space **unnumbered);
void branch_space_destroy(struct branch_space *space);
void branch_spaces_deinit(struct branch_spaces *spaces);

/* NULL for number 0. */
struct branch_space *branch_space_of(const struct branch_spaces *spaces, uint32_t number);

/* The region of an address, or NULL. `space` may be NULL. */
const struct branch_region *branch_region_at(const struct branch_space *space, uint64_t address);

/* The ELF file of a region, read at the first time; or NULL. */
struct kymo_module *branch_module(const struct branch_region *region);

#endif
