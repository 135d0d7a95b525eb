/*
 * The buffer of a trace run: what tracepoints have collected, one frame after the other. Pure. It has the bytes that
 * gdb's trace files have, so that clients can save them as they are:
 *
 *	frame   2 bytes: the tracepoint's number; 4 bytes: the size of the blocks; blocks
 *	block   'R', the registers as a `g` packet has them
 *	        'M', 8 bytes: the address; 2 bytes: the size; the memory
 *	        'V', 4 bytes: the number of a variable; 8 bytes: its value
 *
 * Frames are complete, or not there. A circular buffer drops its oldest frames where a new one needs their space.
 */
#ifndef KYMO_GDB_TRACE_BUFFER_H
#define KYMO_GDB_TRACE_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define GDB_TRACE_FRAME_HEAD 6u         /* bytes before the blocks of a frame */
#define GDB_TRACE_MEMORY_HEAD 11u       /* … before the memory of a block */
#define GDB_TRACE_VARIABLE_SIZE 13u     /* of a whole block */
#define GDB_TRACE_MEMORY_MAX 65535u     /* bytes of memory in one block */
#define GDB_TRACE_FRAMES_MAX (1u << 20) /* in a buffer */

/* Where a frame is, and what is not in its bytes. */
struct gdb_trace_note {
	uint64_t start; /* a position */
	uint64_t pc;    /* where the thread stood */
};

/* Positions count all bytes that were ever added. Position p is at p % size. */
struct gdb_trace_buffer {
	uint8_t *bytes;
	size_t size;
	size_t registers_size; /* of an 'R' block without its letter */
	bool is_circular;
	uint64_t head, tail; /* of the oldest frame; after the newest one */
	KYMO_VEC(struct gdb_trace_note) notes;
	size_t first; /* the note of the oldest frame: those before it are of dropped frames */
	uint64_t n_created;
};

struct gdb_trace_block {
	char kind;        /* 'R', 'M', 'V' */
	uint64_t address; /* of 'M'; of 'V' the number */
	uint64_t at;      /* a position: registers, memory, or the value */
	size_t size;      /* bytes there */
};

/* An empty buffer of that size. False: memory is out, and there is no buffer. */
bool gdb_trace_buffer_begin(struct gdb_trace_buffer *buffer, size_t size, size_t registers_size, bool is_circular);

/* Free what it has. It is a buffer of no bytes then. */
void gdb_trace_buffer_deinit(struct gdb_trace_buffer *buffer);

/* Append a frame. False: there is no room for it, or memory is out; nothing has changed where the buffer is not
 * circular. */
bool gdb_trace_buffer_add(struct gdb_trace_buffer *buffer, unsigned int number, uint64_t pc, const void *blocks,
			  size_t n);

/* The number of frames. Frame 0 is the oldest one. */
size_t gdb_trace_buffer_count(const struct gdb_trace_buffer *buffer);

/* Bytes that frames have. */
size_t gdb_trace_buffer_used(const struct gdb_trace_buffer *buffer);

/* Copy bytes of frames from a position on. They have to be there. */
void gdb_trace_buffer_read(const struct gdb_trace_buffer *buffer, uint64_t position, void *ret, size_t n);

/* A frame's tracepoint, and where its thread stood. The frame has to be there. */
unsigned int gdb_trace_buffer_number(const struct gdb_trace_buffer *buffer, size_t frame);
uint64_t gdb_trace_buffer_pc(const struct gdb_trace_buffer *buffer, size_t frame);

/* The next block of a frame. `at` is 0 for the first one, and is moved on. False: there is none. */
bool gdb_trace_buffer_next(const struct gdb_trace_buffer *buffer, size_t frame, size_t *at,
			   struct gdb_trace_block *ret);

#endif
