/*
 * What the benchmark's target programs share: waiting until the tracers are in place, running loops on threads, timing
 * them.
 *
 * A program hands its loops to bench_main(), which understands
 *
 *	PROGRAM event ROUNDS PAUSE_US THREADS[,THREADS...] SHAPE=CALLS... [idle=N]
 *	PROGRAM sustain SECONDS THREADS SHAPE ARGS [CALLS_PER_SECOND]
 *
 * prints "ready PID", waits for a byte on stdin, works, and prints its figures and "done". Before it exits it waits for
 * the end of stdin or another byte, so that a tracer can leave a live process. All threads exist before "ready" is
 * printed; `idle` ones more sleep all the time. SHAPE may have the number of arguments after it: "push" is all loops
 * of this shape, "push2" one.
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stddef.h>

struct bench_loop {
	const char *shape; /* what is called: "nop", "push", "c", "tp", "pun"; not "idle" */
	int n_args;
	void (*run)(long calls); /* makes `calls` calls */
};

/* main() of a target program. Returns its exit status. */
int bench_main(int argc, char **argv, const struct bench_loop *loops, size_t n_loops);

#endif
