/*
 * Loops with a marker in each turn, and a loop without. All hand over (int, long), or a string of 16 bytes.
 */
#ifndef BENCH_MARKERS_LOOPS_H
#define BENCH_MARKERS_LOOPS_H

/* Each is in a file of its own, for what its marker is made of is chosen before the headers are included. */
void loop_portable(long calls);
void loop_short_jump(long calls);
void loop_semaphore(long calls);

/*
 * All begin at a cache line, so that where the linker has put them makes no difference. The loops inside of them do
 * because they are built with -falign-loops=64.
 */
#define LOOP __attribute__((noinline, aligned(64)))

/* A turn without a marker: what the markers evaluate while they are on is there in a register. */
#define TURN(i) __asm__ volatile("" : : "r"(i))

#endif
