/* What is known of processes: the code that they have mapped, and the files opened for it. Private to the room. */
#ifndef KYMO_STACK_STATE_H
#define KYMO_STACK_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/io.h"
#include "base/vec.h"
#include "procfs/maps.h"
#include "stack/jit.h"

struct kymo_debug;
struct kymo_module;

/* A file that some process has mapped, opened once for all of them. */
struct stack_file {
	struct kymo_module *module;
	dev_t dev;
	ino_t inode;
	struct timespec changed; /* its ctime, so that another file with this inode is another one */
	uint64_t size, used;     /* when it was, to find the one that was used last */
	int users;               /* regions */
	uint32_t number;         /* from 1, of no other file */
	bool is_named;           /* a stack of a record has it: its debug information may be wanted at the end */
	int fd;                  /* of one with debug information, or -1 */
	struct kymo_debug *debug;
	bool is_debug_read;
};

struct stack_region {
	struct kymo_map map;     /* owns its path */
	char *name;              /* with " (deleted)" */
	struct stack_file *file; /* NULL: not there, or not looked for yet */
	bool is_looked_for;
};

enum { STACK_HOMES = 64, STACK_NAMED_MAX = 512 };

struct stack_space {
	pid_t pid;
	uint64_t used;
	KYMO_VEC(struct stack_region) regions; /* executable; sorted */
	bool is_recorded;                      /* kymo_stacks_note() */
	bool is_changed;                       /* they have to be read again */
	uint64_t read_at_ns, cost_ns;          /* when they were, and how long that took */
	uint64_t journals[4];                  /* where recordings of kymo have theirs */
	size_t n_journals;
	struct {
		uint64_t pc, home;
	} homes[STACK_HOMES]; /* of pads.c */
	struct stack_jit jit;
};

struct kymo_stacks {
	KYMO_VEC(struct stack_space *) spaces;
	KYMO_VEC(struct stack_file *) files;
	uint64_t clock; /* counts uses */
	uint32_t last_file;
	bool needs_debug;
	size_t n_named; /* files */
};

/* What was read is believed for so long; reading is given a twentieth of the time at most. */
#define STACK_BELIEVED_NS 100000000ull
#define STACK_SHARE 20

/* Whether it is to be read again, which took `cost_ns` the last time, at `read_at_ns` (0: never): `after_ns` later. */
static inline bool stack_is_due(uint64_t read_at_ns, uint64_t cost_ns, uint64_t after_ns)
{
	const uint64_t age = kymo_now_ns() - read_at_ns;

	return age > after_ns && age > STACK_SHARE * cost_ns;
}

#endif
