/*
 * CTF 1.8 (Common Trace Format): what kymo writes and reads back. https://diamon.org/ctf/v1.8.3/
 *
 * A trace is a directory: `metadata` (TSDL text) and a stream file per ring. Each stream file is a run of packets:
 * `struct kymo_ctf_packet`, then records as in wire/event.h. The TSDL is the only description; reports parse it back
 * (the dialect that kymo writes, not all of TSDL).
 *
 * Writers are used from one thread. Readers take nothing on trust: a trace may be truncated, damaged or hostile.
 */
#ifndef KYMO_CTF_CTF_H
#define KYMO_CTF_CTF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/event.h"
#include "wire/types.h"

#define KYMO_CTF_MAGIC 0xC1FC1FC1u

/* Packet header and packet context, as the TSDL declares them; packed, little endian. Sizes in bits, as CTF wants them. */
struct kymo_ctf_packet {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id;		/* 0 */
	uint64_t content_size;		/* bits, this header included */
	uint64_t packet_size;		/* bits */
	uint64_t timestamp_begin;	/* TSC, <= the first record's */
	uint64_t timestamp_end;		/* TSC, >= the last record's */
	uint64_t events_discarded;	/* running total of the stream up to the end of this packet */
	uint64_t packet_seq_num;	/* running number in the stream; a gap is overwritten packets */
	uint32_t cpu_id;
} __attribute__((packed));

/* ---- schema ---------------------------------------------------------------------------------------------------- */

struct kymo_ctf_field {
	char *name;			/* as the user sees it ("size"); the TSDL has it with a leading "_" */
	enum kymo_type type;
};

struct kymo_ctf_event {
	uint32_t id;
	char *name;			/* "libc:malloc" */
	struct kymo_ctf_field *fields;
	uint32_t n_fields;
	bool has_faults;		/* the record carries the faults byte */
	uint32_t size;			/* bytes of a record, header included; computed by kymo_ctf_event_size() */
	/* What the report says about the site; stored in the TSDL event block as `model.emf.uri`-style string attributes
	 * that other readers skip. May be NULL / 0. */
	char *path;			/* the file */
	uint64_t offset;		/* in the file */
	char *symbol;			/* "malloc+0x12" */
	char *build_id;			/* hex */
};

struct kymo_ctf_env {
	char *key;			/* [A-Za-z_][A-Za-z0-9_]* */
	char *value;			/* any text; written escaped */
};

struct kymo_ctf_trace {
	uint8_t uuid[16];
	uint64_t clock_frequency;	/* TSC ticks a second */
	uint64_t clock_offset_s;	/* clock value 0 in seconds since 1970 … */
	uint64_t clock_offset;		/* … and ticks */
	bool clock_is_invariant;
	int64_t monotonic_offset_ns;	/* nanoseconds: CLOCK_MONOTONIC = wall time + this */
	struct kymo_ctf_env *env;
	size_t n_env;
	struct kymo_ctf_event *events;	/* indexed by position; ids unique, not necessarily dense */
	size_t n_events;
};

/* Bytes of a record of `event`. */
uint32_t kymo_ctf_event_size(const struct kymo_ctf_event *event);

/* Free what the members point to (all from malloc) and zero the struct. */
void kymo_ctf_trace_deinit(struct kymo_ctf_trace *trace);

/* Add a key to the env; strings are copied. An existing key is replaced. */
struct kymo_error *kymo_ctf_trace_set_env(struct kymo_ctf_trace *trace, const char *key, const char *value);
/* The value, or NULL. */
const char *kymo_ctf_trace_env(const struct kymo_ctf_trace *trace, const char *key);

/* Write `metadata` in the directory `dirfd`, through a hidden temporary name and rename, so that a reader sees the old one or the
 * new one. */
struct kymo_error *kymo_ctf_write_metadata(int dirfd, const struct kymo_ctf_trace *trace);

/* Parse TSDL as kymo_ctf_write_metadata() writes it. BAD_DATA with the line: "metadata:12: …". */
struct kymo_error *kymo_ctf_parse_metadata(const char *text, size_t size, struct kymo_ctf_trace *ret);

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct kymo_ctf_reader;

/* A record. Pointers are good until the next call. */
struct kymo_ctf_record {
	const struct kymo_ctf_event *event;
	uint64_t tsc;			/* full 64 bits */
	int32_t tid;
	uint32_t cpu;
	uint8_t faults;
	uint64_t values[KYMO_EVENT_MAX_ARGS];	/* sign-extended for signed types */
};

/* A span of time in which records were lost. */
struct kymo_ctf_loss {
	uint64_t begin, end;		/* TSC */
	uint64_t events;		/* 0 when it is packets that were overwritten */
	uint64_t packets;
	uint32_t cpu;
};

/* Open a trace directory. NOT_FOUND when DIR or its metadata is not there, BAD_DATA. */
struct kymo_error *kymo_ctf_open(const char *dir, struct kymo_ctf_reader **ret);
void kymo_ctf_close(struct kymo_ctf_reader *reader);
const struct kymo_ctf_trace *kymo_ctf_reader_trace(const struct kymo_ctf_reader *reader);

/*
 * The next record of all streams in the order of time. true and `ret`, or false at the end or on an error (`error` is set then,
 * else NULL). A stream that ends within a packet gives the whole records it has, and a warning (kymo_ctf_reader_warnings).
 */
bool kymo_ctf_next(struct kymo_ctf_reader *reader, struct kymo_ctf_record *ret, struct kymo_error **error);

/* Records only, in stream order (not merged): several times faster, for counts. Same contract. */
bool kymo_ctf_next_unordered(struct kymo_ctf_reader *reader, struct kymo_ctf_record *ret, struct kymo_error **error);

/* Losses met so far, in the order of time. */
const struct kymo_ctf_loss *kymo_ctf_reader_losses(const struct kymo_ctf_reader *reader, size_t *n);

/* Sentences about damage met so far ("stream_0: the last packet is cut off; 312 bytes were left out"). */
const char *const *kymo_ctf_reader_warnings(const struct kymo_ctf_reader *reader, size_t *n);

/* TSC to nanoseconds since 1970, and to CLOCK_MONOTONIC nanoseconds. */
uint64_t kymo_ctf_wall_ns(const struct kymo_ctf_trace *trace, uint64_t tsc);
uint64_t kymo_ctf_duration_ns(const struct kymo_ctf_trace *trace, uint64_t ticks);

#endif
