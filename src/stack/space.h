/* The code that a process has mapped. Private to the room. */
#ifndef KYMO_STACK_SPACE_H
#define KYMO_STACK_SPACE_H

#include "base/vec.h"
#include "procfs/maps.h"
#include "stack/stack.h"
#include "sym/sym.h"

/* A file that some process has mapped, opened once for all of them. */
struct stack_file {
	struct kymo_module *module;
	dev_t dev;
	ino_t inode;
	struct timespec changed; /* its ctime, so that another file with this inode is another one */
	uint64_t size, used;     /* when it was, to find the one that was used last */
	int users;               /* regions */
};

struct stack_region {
	struct kymo_map map;     /* owns its path */
	char *name;              /* with " (deleted)" */
	struct stack_file *file; /* NULL: not there, or not looked for yet */
	bool is_looked_for;
};

enum { STACK_HOMES = 64 };

struct stack_space {
	pid_t pid;
	uint64_t used;
	KYMO_VEC(struct stack_region) regions; /* executable; sorted */
	bool is_changed;                       /* they have to be read again */
	uint64_t read_at_ns, cost_ns;          /* when they were, and how long that took */
	uint64_t journals[4];                  /* where recordings of kymo have theirs */
	size_t n_journals;
	struct {
		uint64_t pc, home;
	} homes[STACK_HOMES]; /* of pads.c */
};

struct kymo_stacks {
	KYMO_VEC(struct stack_space *) spaces;
	KYMO_VEC(struct stack_file *) files;
	uint64_t clock; /* counts uses */
};

/* space.c: the space of a thread's process, as it is now or was a moment ago. NULL: memory is out, or it can't be read.
 */
struct stack_space *stack_space_of(struct kymo_stacks *stacks, const struct kymo_stack_thread *thread);

/* Read it again, unless that was done a moment ago. All regions are others then. */
bool stack_space_renew(struct kymo_stacks *stacks, struct stack_space *space, const struct kymo_stack_thread *thread);

/* The region of an address, or NULL. */
struct stack_region *stack_region_at(struct stack_space *space, uint64_t address);

/* files.c: the region's file, opened at the first time; NULL where that can't be. */
struct kymo_module *stack_module(struct kymo_stacks *stacks, struct stack_region *region,
				 const struct kymo_stack_thread *thread);
void stack_file_put(struct kymo_stacks *stacks, struct stack_file *file); /* NULL is allowed */
void stack_files_deinit(struct kymo_stacks *stacks);

/* pads.c: the place in the text that a system call stands for which is made in a pad of kymo's; 0: in no such. */
uint64_t stack_home(struct stack_space *space, const struct kymo_stack_thread *thread);
bool stack_is_pad(const struct stack_region *region);

#endif
