/*
 * LTTng-UST tracepoints compiled into the loop, as users of LTTng have them, and a loop without, their baseline.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_provider.h"

#include "harness.h"

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

static void loop_tp0(long calls)
{
	for (long i = 0; i < calls; i++)
		lttng_ust_tracepoint(kymo_bench, tp0);
}

static void loop_tp2(long calls)
{
	for (long i = 0; i < calls; i++)
		lttng_ust_tracepoint(kymo_bench, tp2, (int)i, i);
}

static void loop_tp6(long calls)
{
	for (long i = 0; i < calls; i++)
		lttng_ust_tracepoint(kymo_bench, tp6, (int)i, i, i, i, i, i);
}

/* 16 bytes and a NUL. The compiler is not to know them. */
static const char *volatile text_16 = "sixteen bytes...";

static void loop_text(long calls)
{
	const char *text = text_16;

	for (long i = 0; i < calls; i++)
		lttng_ust_tracepoint(kymo_bench, text, text);
}

static void loop_empty(long calls)
{
	for (long i = 0; i < calls; i++)
		asm volatile("" : : "r"(i));
}

static const struct bench_loop loops[] = {
	{ "tp", 2, loop_tp2 },    { "tp", 0, loop_tp0 },      { "tp", 6, loop_tp6 },
	{ "text", 1, loop_text }, { "empty", 2, loop_empty },
};

int main(int argc, char **argv)
{
	return bench_main(argc, argv, loops, N_OF(loops));
}
