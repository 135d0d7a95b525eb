/*
 * The arena of function clones: memory of a process with a ring for each of its threads, which a recorder has, too. A
 * thread finds its ring by a word of its own, whose upper half tells the arena. The layout is in docs/design/clones.md.
 */
#ifndef KYMO_WIRE_CLONES_H
#define KYMO_WIRE_CLONES_H

#include <stdint.h>

/* The arena's address is a multiple of this, and it is smaller. */
#define KYMO_WIRE_ARENA_ALIGN (UINT64_C(1) << 32)

/* A ring has 16,384 entries of four bytes, oldest and newest divided by an entry of 0, and is aligned to its size.
 * What stores an entry stores that 0, too: so four bytes after the ring are written, and read by no party. */
#define KYMO_WIRE_ARENA_RING_SIZE 65536u
#define KYMO_WIRE_ARENA_STRIDE (2u * KYMO_WIRE_ARENA_RING_SIZE) /* from one ring to the next */
#define KYMO_WIRE_ARENA_RINGS 8191u

/* Offsets in the arena. No party reads the sink: threads that get no ring share it. */
#define KYMO_WIRE_ARENA_TABLE 4096u
#define KYMO_WIRE_ARENA_SINK (4u * KYMO_WIRE_ARENA_RING_SIZE)
#define KYMO_WIRE_ARENA_FIRST (KYMO_WIRE_ARENA_SINK + KYMO_WIRE_ARENA_STRIDE)
#define KYMO_WIRE_ARENA_SIZE (KYMO_WIRE_ARENA_FIRST + (uint64_t)KYMO_WIRE_ARENA_RINGS * KYMO_WIRE_ARENA_STRIDE)

/*
 * Entries below 2 GiB are numbers of blocks. A pad that has made a record puts an *anchor* there, if the thread has a
 * ring: two entries, the first with the upper bits of the record's time stamp, the second with the lower ones.
 */
#define KYMO_WIRE_ANCHOR UINT32_C(0x80000000)     /* both have that bit … */
#define KYMO_WIRE_ANCHOR_LOW UINT32_C(0x40000000) /* … and the second has this one */
#define KYMO_WIRE_ANCHOR_BITS 30                  /* of the stamp, in each */

/* What the arena begins with. Threads count `next` and `sunk` up; only the recorder changes `ready`. */
struct kymo_wire_arena {
	uint32_t next;  /* ring to give to a thread */
	uint32_t ready; /* rings that have memory: those from here on are not given */
	uint32_t sunk;  /* threads that have got the sink */
	uint32_t reserved[13];
};

/* One a ring, in the table. */
struct kymo_wire_arena_thread {
	uint64_t block; /* address of the thread's control block */
	uint32_t tid;
	uint32_t reserved;
};

/*
 * What the clones of a module begin with, behind the live page of their region. Their code follows, and then points:
 * where that code is what code of the program, so that a thread which loops in a clone can be sent there.
 */
struct kymo_wire_clones {
	uint64_t magic;
	uint32_t size; /* bytes of all that comes before the points; a multiple of their size */
	uint32_t n_points;
	uint64_t reserved[6];
};

#define KYMO_WIRE_CLONES_MAGIC UINT64_C(0x73656e6f6c636b) /* "kclones" */

/* A thread that is exactly at `at` gets its stack pointer and its register back. Then it is in the state that the
 * program has before its instruction at `address`. */
struct kymo_wire_clone_point {
	uint64_t address; /* in the process */
	uint32_t at;      /* from struct kymo_wire_clones; they ascend */
	uint16_t lowered; /* bytes that the stack pointer is below the program's */
	uint16_t pushed;  /* the word at the stack pointer is this register of the program's less 1; 0: none */
};

_Static_assert(sizeof(struct kymo_wire_clones) == 64 && sizeof(struct kymo_wire_clone_point) == 16, "both sides agree");

_Static_assert(KYMO_WIRE_ARENA_TABLE + KYMO_WIRE_ARENA_RINGS * sizeof(struct kymo_wire_arena_thread) <=
		       KYMO_WIRE_ARENA_SINK,
	       "the table has room");

#endif
