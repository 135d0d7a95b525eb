/*
 * Traces of calls, from a list of records in the order of time. Ticks are nanoseconds.
 */
#ifndef TESTS_UNIT_REPORT_TIMELINE_H
#define TESTS_UNIT_REPORT_TIMELINE_H

#include "../ctf/synthetic.h"

/* Most moments have no second value and no faults. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum {
	MALLOC,
	MALLOC_RETURN, /* size; ptr, may be a fault */
	PARSE,
	PARSE_RETURN, /* nothing; two results */
	EVAL,
	EVAL_RETURN,  /* depth; nothing */
	FREE,         /* ptr; an entry without a return */
	LINE,         /* a place within parse */
	MALLOC_AGAIN, /* another probe at malloc's entry */
	N_EVENTS,
	LOSS, /* not an event: the packet ends, and `value` events are lost by the end of the next */
};

struct moment {
	uint64_t tsc;
	int32_t tid;
	int event;
	uint64_t value, second;
	uint8_t faults;
};

static inline struct kymo_ctf_trace timeline_trace(void)
{
	static struct kymo_ctf_field size[] = { { (char *)"size", KYMO_TYPE_U64, NULL, 0, NULL, false } };
	static struct kymo_ctf_field ptr[] = { { (char *)"ptr", KYMO_TYPE_X64, NULL, 0, NULL, false } };
	static struct kymo_ctf_field results[] = { { (char *)"ret", KYMO_TYPE_S32, NULL, 0, NULL, false },
						   { (char *)"n", KYMO_TYPE_U8, NULL, 0, NULL, false } };
	static struct kymo_ctf_field depth[] = { { (char *)"depth", KYMO_TYPE_U32, NULL, 0, NULL, false } };
#define AT(text, at, kind_, function) \
	.path = (char *)(text), .offset = (at), .kind = (kind_), .function_offset = (function)
	static struct kymo_ctf_event events[N_EVENTS] = {
		[MALLOC] = { .id = 1,
			     .name = (char *)"libc:malloc",
			     .fields = size,
			     .n_fields = 1,
			     .size = 20,
			     .symbol = (char *)"malloc",
			     AT("/lib/libc.so.6", 0x1000, KYMO_CTF_ENTRY, 0x1000) },
		[MALLOC_RETURN] = { .id = 2,
				    .name = (char *)"libc:malloc%return",
				    .fields = ptr,
				    .n_fields = 1,
				    .has_faults = true,
				    .size = 21,
				    .symbol = (char *)"malloc",
				    AT("/lib/libc.so.6", 0x1044, KYMO_CTF_RETURN, 0x1000) },
		[PARSE] = { .id = 3,
			    .name = (char *)"app:parse",
			    .size = 12,
			    .symbol = (char *)"parse",
			    AT("/bin/app", 0x1000, KYMO_CTF_ENTRY, 0x1000) },
		[PARSE_RETURN] = { .id = 4,
				   .name = (char *)"app:parse%return",
				   .fields = results,
				   .n_fields = 2,
				   .has_faults = true,
				   .size = 18,
				   .symbol = (char *)"parse",
				   AT("/bin/app", 0x1010, KYMO_CTF_RETURN, 0x1000) },
		[EVAL] = { .id = 5,
			   .name = (char *)"app:eval",
			   .fields = depth,
			   .n_fields = 1,
			   .size = 16,
			   .symbol = (char *)"eval",
			   AT("/bin/app", 0x2000, KYMO_CTF_ENTRY, 0x2000) },
		[EVAL_RETURN] = { .id = 6,
				  .name = (char *)"app:eval%return",
				  .size = 12,
				  .symbol = (char *)"eval",
				  AT("/bin/app", 0x2010, KYMO_CTF_RETURN, 0x2000) },
		[FREE] = { .id = 7,
			   .name = (char *)"libc:free",
			   .fields = ptr,
			   .n_fields = 1,
			   .has_faults = true,
			   .size = 21,
			   .symbol = (char *)"free",
			   AT("/lib/libc.so.6", 0x3000, KYMO_CTF_ENTRY, 0x3000) },
		[LINE] = { .id = 8,
			   .name = (char *)"app:parse+0x8",
			   .fields = depth,
			   .n_fields = 1,
			   .size = 16,
			   .symbol = (char *)"parse+0x8",
			   AT("/bin/app", 0x1008, KYMO_CTF_PLACE, 0) },
		[MALLOC_AGAIN] = { .id = 9,
				   .name = (char *)"libc:malloc2",
				   .fields = size,
				   .n_fields = 1,
				   .size = 20,
				   .symbol = (char *)"malloc",
				   AT("/lib/libc.so.6", 0x1000, KYMO_CTF_ENTRY, 0x1000) },
	};
#undef AT
	struct kymo_ctf_trace trace = synthetic_trace();

	trace.events = events;
	trace.n_events = N_EVENTS;
	trace.n_threads = 0;
	return trace;
}

/* Of parse and eval, with the stack pointer alone. */
static inline struct kymo_ctf_trace trace_of_stack_pointers(void)
{
	static struct kymo_ctf_field fields[] = { { (char *)"_sp", KYMO_TYPE_X64, NULL, 0, NULL, false } };
	static struct kymo_ctf_event events[N_EVENTS];
	struct kymo_ctf_trace trace = timeline_trace();

	memcpy(events, trace.events, sizeof(events));
	trace.events = events;
	for (int i = PARSE; i <= EVAL_RETURN; i++) {
		trace.events[i].fields = fields;
		trace.events[i].n_fields = 0;
		trace.events[i].has_faults = false;
		trace.events[i].has_stack_pointer = true;
		trace.events[i].size = 20;
	}
	return trace;
}

/* Append the moments to a stream of its own, a packet for each run without a loss. */
static inline void write_stream(int dirfd, const struct kymo_ctf_trace *trace, const char *name, uint32_t cpu,
				const struct moment *moments, size_t n)
{
	static struct payload payload;
	struct kymo_ctf_stream *stream;
	uint64_t begin = n ? moments[0].tsc : 0, lost = 0, seq = 0;

	must(kymo_ctf_stream_create(dirfd, name, trace->uuid, cpu, &stream));
	for (size_t i = 0; i < n; i++) {
		const struct moment *m = &moments[i];

		if (m->event == LOSS) {
			flush_payload(stream, &payload, begin, m->tsc, lost, seq++);
			lost += m->value;
			begin = m->tsc;
			continue;
		}
		payload_add(&payload, &trace->events[m->event], m->tsc, m->tid, m->faults,
			    (uint64_t[]){ m->value, m->second });
		if (payload.size > sizeof(payload.bytes) / 2) {
			flush_payload(stream, &payload, begin, m->tsc, lost, seq++);
			begin = m->tsc;
		}
	}
	flush_payload(stream, &payload, begin, n ? moments[n - 1].tsc : 0, lost, seq);
	kymo_ctf_stream_destroy(stream);
}

static inline void write_timeline(int dirfd, const struct kymo_ctf_trace *trace, const struct moment *moments, size_t n)
{
	must(kymo_ctf_write_metadata(dirfd, trace));
	write_stream(dirfd, trace, "stream_0", 0, moments, n);
}

#endif
