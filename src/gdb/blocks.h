/*
 * What a thread has executed, as gdb's branch trace has it: blocks of code that is executed in sequence, from the first
 * instruction of each to its last one. The newest blocks are kept. Pure.
 */
#ifndef KYMO_GDB_BLOCKS_H
#define KYMO_GDB_BLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gdb/text.h"

enum { GDB_BLOCKS_SIZE = 64 << 10, GDB_BLOCKS_MIN = 4 << 10, GDB_BLOCKS_MAX = 4 << 20 }; /* bytes */

struct gdb_block {
	uint64_t begin, end; /* addresses of its first instruction, and of its last one */
};

/* Zeroed: nothing was executed, and no room. */
struct gdb_blocks {
	struct gdb_block *items;
	size_t capacity;
	uint64_t n; /* that are over; the newest of them are there */
	bool has_begun;
	bool is_empty;        /* nothing of the block that goes on has been executed */
	uint64_t begin, last; /* of that block */
	uint64_t pc;          /* where the thread stands: that has not been executed */
	/* What the client has read. */
	bool is_read;     /* it knows all up to the following, and the thread has gone on from there */
	uint64_t n_read;  /* blocks that were over */
	uint64_t pc_read; /* where the thread stood */
};

/* Room for `size` bytes, at 24 a block, as branch records of processors have. `size` is brought between the limits
 * above first; that is returned. 0: memory is out. */
size_t gdb_blocks_init(struct gdb_blocks *blocks, size_t size);
void gdb_blocks_deinit(struct gdb_blocks *blocks);

/* The thread stands at `pc`, and all that was executed before is forgotten. `is_known`: the client knows that. */
void gdb_blocks_begin(struct gdb_blocks *blocks, uint64_t pc, bool is_known);

/* The instruction at `pc` has been executed, and leads to `to`. `is_branch`: that is not the next one in sequence, or
 * need not have been. */
void gdb_blocks_execute(struct gdb_blocks *blocks, uint64_t to, bool is_branch);

/* The thread is at `to` without having executed the instruction at `pc`. */
void gdb_blocks_move(struct gdb_blocks *blocks, uint64_t to);

enum gdb_blocks_part {
	GDB_BLOCKS_ALL,
	GDB_BLOCKS_NEW,   /* all, or nothing if nothing was executed since the client has read */
	GDB_BLOCKS_DELTA, /* what was executed since; its oldest block begins at 0, as the client knows where */
};

/* Append the document, the newest block first. False: there is no such part, as blocks were lost since, or the thread
 * has not gone on from where it was. Nothing is appended then. */
bool gdb_blocks_put(struct gdb_blocks *blocks, enum gdb_blocks_part part, struct gdb_text *document);

#endif
