/*
 * The form of kymo's marker that tests its gate.
 */
#define KYMO_MARKER_PORTABLE
#include <kymo/marker.h>

#include "loops.h"

LOOP void loop_portable(long calls)
{
	for (long i = 0; i < calls; i++) {
		TURN(i);
		MARK(bench_portable, "a=%d b=%ld", (int)i, i);
	}
}
