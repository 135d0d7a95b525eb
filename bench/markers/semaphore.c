/*
 * A probe of <sys/sdt.h> with a semaphore: its arguments are evaluated only while a tracer has raised it.
 */
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#include "loops.h"

extern unsigned short bench_sdt_semaphore_semaphore;
__attribute__((section(".probes"), used)) unsigned short bench_sdt_semaphore_semaphore;

LOOP void loop_semaphore(long calls)
{
	for (long i = 0; i < calls; i++) {
		TURN(i);
		if (__builtin_expect(*(volatile unsigned short *)&bench_sdt_semaphore_semaphore, 0))
			DTRACE_PROBE2(bench, sdt_semaphore, (int)i, i);
	}
}
