/*
 * Stacks of stopped threads: which function was called from which. By what the process has mapped, and by what the
 * files say of their frames.
 *
 * Memory, registers and files are the target's, and not trusted: a stack has at most KYMO_STACK_MAX frames, each of
 * which reads a bounded number of words; what is damaged ends it.
 *
 * Not for use from several threads at a time.
 */
#ifndef KYMO_STACK_STACK_H
#define KYMO_STACK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "stack/sources.h"
#include "stack/space.h"

#define KYMO_STACK_MAX 256

/* What processes have mapped, and the files that were opened for it. */
struct kymo_stacks;

/* What a record has of a thread's callers in place of its stack. A word that could not be read is 0. */
struct kymo_stack_chain {
	uint64_t words[2];       /* at the stack pointer */
	const uint64_t *returns; /* the return addresses that frame pointers led to, the innermost first */
	size_t n;
};

/* A thread, and how to read its process' memory: all of `size` bytes, or false. */
struct kymo_stack_thread {
	pid_t tid, pid;
	struct user_regs_struct registers;
	bool is_copy;                         /* `read` has a part of a stack, and no pages */
	const struct kymo_stack_chain *chain; /* its callers, and `read` has nothing of the stack; or NULL */
	bool is_behind_call;                  /* the program counter is after the instruction that it stands in */
	bool (*read)(void *context, uint64_t address, void *data, size_t size);
	void *context;
};

/* One frame. Strings are valid until the next call of a function here. */
struct kymo_stack_frame {
	const char *file;     /* as it is mapped, "[vdso]" too; NULL: the memory is of no file */
	const char *function; /* NULL where nothing names it */
	uint64_t start;       /* of the function that nothing names, as linked; 0: named, or not known */
	uint64_t offset;      /* of the location in the function */
	uint64_t address;     /* of the location, as linked; of memory of no file, in the process */
	uint32_t file_number; /* for kymo_stacks_sources(); 0: it is of no file that could be read */
	bool is_return;       /* `address` is one that a call returns to */
	bool is_lost;         /* the last one: `address`, and nothing is known of it */
};

/* The frames of a thread, the innermost first, into `frames`, of which there are KYMO_STACK_MAX. How many. */
size_t kymo_stacks_take(struct kymo_stacks *stacks, const struct kymo_stack_thread *thread,
			struct kymo_stack_frame *frames);

#endif
