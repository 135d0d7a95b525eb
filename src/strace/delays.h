/*
 * Threads that are delayed in calls. An engine's STOP holds each at the entry or at the exit of the call; the main
 * thread lets it go on when its time is over. Private to the room.
 */
#ifndef KYMO_STRACE_DELAYS_H
#define KYMO_STRACE_DELAYS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct kymo_engine;

struct strace_delay {
	struct kymo_engine *engine; /* with a reference */
	uint64_t until_ns;
};

struct strace_delays {
	pthread_mutex_t lock;
	KYMO_VEC(struct strace_delay) items;
};

void strace_delays_init(struct strace_delays *delays);
void strace_delays_deinit(struct strace_delays *delays);

/* The engine's thread waits for so long from now on. False where memory is out. */
bool strace_delays_add(struct strace_delays *delays, struct kymo_engine *engine, uint64_t ns);

/* The engine's thread has died. */
void strace_delays_drop(struct strace_delays *delays, struct kymo_engine *engine);

/* Let threads go on whose delay is over; UINT64_MAX: all. On the main thread. When the next one's is, or UINT64_MAX. */
uint64_t strace_delays_end(struct strace_delays *delays, uint64_t now);

#endif
