/*
 * LTTng-UST events with 0, 2 and 6 arguments, of the same types as those of target.c, and one with a string.
 */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER kymo_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_provider.h"

#if !defined(BENCH_LTTNG_PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define BENCH_LTTNG_PROVIDER_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(kymo_bench, tp0, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

LTTNG_UST_TRACEPOINT_EVENT(kymo_bench, tp2, LTTNG_UST_TP_ARGS(int, a, long, b),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, a, a) lttng_ust_field_integer(long, b, b)))

LTTNG_UST_TRACEPOINT_EVENT(kymo_bench, tp6, LTTNG_UST_TP_ARGS(int, a, long, b, long, c, long, d, long, e, long, f),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int, a, a) lttng_ust_field_integer(long, b, b)
						       lttng_ust_field_integer(long, c, c)
							       lttng_ust_field_integer(long, d, d)
								       lttng_ust_field_integer(long, e, e)
									       lttng_ust_field_integer(long, f, f)))

LTTNG_UST_TRACEPOINT_EVENT(kymo_bench, text, LTTNG_UST_TP_ARGS(const char *, text),
			   LTTNG_UST_TP_FIELDS(lttng_ust_field_string(text, text)))

#endif

#include <lttng/tracepoint-event.h>
