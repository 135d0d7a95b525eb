/*
 * What markers cost: kymo's and those of <sys/sdt.h>, off and on. LTTng's are in lttng_target.c.
 *
 * With BENCH_OFF the loops that are only measured while they are off are there too: one of them is no marker that kymo
 * could record. With BENCH_LIBRARY the program is linked to libkymo-marker, and has connected an empty probe to the
 * marker of the loop `call`.
 */
#include "../harness.h"

#include <kymo/marker.h>
#include <stdio.h>
#include <sys/sdt.h>

#include "loops.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

/* 16 bytes and a NUL. The compiler is not to know them. */
static const char *volatile text_16 = "sixteen bytes...";

LOOP static void loop_empty(long calls)
{
	for (long i = 0; i < calls; i++)
		TURN(i);
}

LOOP static void loop_kymo(long calls)
{
	for (long i = 0; i < calls; i++) {
		TURN(i);
		MARK(bench_ints, "a=%d b=%ld", (int)i, i);
	}
}

LOOP static void loop_kymo_text(long calls)
{
	const char *text = text_16;

	for (long i = 0; i < calls; i++) {
		TURN(i);
		MARK(bench_text, "text=%s", text);
	}
}

LOOP static void loop_sdt(long calls)
{
	for (long i = 0; i < calls; i++) {
		TURN(i);
		DTRACE_PROBE2(bench, sdt_ints, (int)i, i);
	}
}

LOOP static void loop_sdt_text(long calls)
{
	const char *text = text_16;

	for (long i = 0; i < calls; i++) {
		TURN(i);
		DTRACE_PROBE1(bench, sdt_text, text);
	}
}

#ifdef BENCH_LIBRARY
#include <kymo/marker_probe.h>

LOOP static void loop_call(long calls)
{
	for (long i = 0; i < calls; i++) {
		TURN(i);
		MARK(bench_call, "a=%d b=%ld", (int)i, i);
	}
}

static void empty_probe(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
}

static int connect_probe(void)
{
	int error = kymo_marker_set_probe("bench_call", "a=%d b=%ld", empty_probe, NULL, KYMO_MARKER_CALL);

	if (error)
		fprintf(stderr, "kymo_marker_set_probe: error %d\n", error);
	return error;
}
#endif

static const struct bench_loop loops[] = {
	{ "empty", 2, loop_empty },      { "kymo", 2, loop_kymo },           { "portable", 2, loop_portable },
	{ "sdt", 2, loop_sdt },          { "kymotext", 1, loop_kymo_text },  { "sdttext", 1, loop_sdt_text },
#ifdef BENCH_OFF
	{ "short", 2, loop_short_jump }, { "semaphore", 2, loop_semaphore },
#endif
#ifdef BENCH_LIBRARY
	{ "call", 2, loop_call },
#endif
};

int main(int argc, char **argv)
{
#ifdef BENCH_LIBRARY
	if (connect_probe())
		return 1;
#endif
	return bench_main(argc, argv, loops, N_OF(loops));
}
