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
#include <string.h>

#include "base/error.h"
#include "wire/event.h"
#include "wire/types.h"

#define KYMO_CTF_MAGIC 0xC1FC1FC1u

/* The `cpu_id` of a stream without records, which tells of hits in vfork children: they run in their parent's memory
 * until they execute something, and are counted only. */
#define KYMO_CTF_NO_CPU UINT32_MAX

/* Packet header and packet context, as the TSDL declares them; packed, little endian. Sizes in bits, as CTF wants them.
 */
struct kymo_ctf_packet {
	uint32_t magic;
	uint8_t uuid[16];
	uint32_t stream_id;        /* 0 */
	uint64_t content_size;     /* bits, this header included */
	uint64_t packet_size;      /* bits */
	uint64_t timestamp_begin;  /* TSC, <= the first record's */
	uint64_t timestamp_end;    /* TSC, >= the last record's */
	uint64_t events_discarded; /* running total of the stream up to the end of this packet */
	uint64_t packet_seq_num;   /* running number in the stream; a gap is overwritten packets */
	uint32_t cpu_id;
} __attribute__((packed));

/* ---- schema ---------------------------------------------------------------------------------------------------- */

struct kymo_ctf_field {
	char *name; /* as the user sees it ("size"); the TSDL has it with a leading "_". Bytes are two fields there:
		       "_NAME_length", and a sequence */
	enum kymo_type type;
};

/* What an event tells about its function. */
enum kymo_ctf_kind {
	KYMO_CTF_PLACE,   /* nothing: any instruction; also what traces say that know no kinds */
	KYMO_CTF_ENTRY,   /* it is entered */
	KYMO_CTF_RETURN,  /* it is left, by one of its exits */
	KYMO_CTF_MARKER,  /* nothing; its author marked it. Copies of a marker are events of one name */
	KYMO_CTF_SYSCALL, /* nothing; a system call is made, that of its name */
	KYMO_CTF_SYSRET,  /* nothing; any system call has come back */
	/* No probe: rows of an aggregation (enum kymo_ctf_rows), whose number and kind of rows are in `offset`, its
	 * kind in `format`, its probe in `symbol`, and the user's other words in `source`. */
	KYMO_CTF_AGGREGATION,
};

/* What records of an aggregation are; `offset` is KYMO_CTF_N_ROWS times its number, plus one of these. */
enum kymo_ctf_rows {
	KYMO_CTF_ROW,    /* the keys, then "count", and what there is of "sum", "min" and "max" */
	KYMO_CTF_BUCKET, /* of the row before it: the keys, "low", "high" (both within), "count" */
	KYMO_CTF_END,    /* all rows of this moment are there: "rows"; "lost", "faults", "without_entry" and
			    "over_losses" are hits that are in none of them */
	KYMO_CTF_N_ROWS,
};

/* A record that strings make larger than this is none: what writes records cuts strings far below. */
#define KYMO_CTF_MAX_RECORD (16u << 10)
#define KYMO_CTF_MAX_RECORD_OF_BYTES (68u << 10) /* the same of one that has bytes */

struct kymo_ctf_event {
	uint32_t id;
	char *name; /* "libc:malloc" */
	struct kymo_ctf_field *fields;
	uint32_t n_fields;
	bool has_stack_pointer; /* of ENTRY and RETURN: one field more, KYMO_STACK_POINTER_FIELD, behind the others */
	bool has_faults;        /* the record carries the faults byte */
	uint32_t size;          /* least bytes of a record, header included; computed by kymo_ctf_event_size() */
	/* What the report says about the site; in the TSDL event block all of it is one `model.emf.uri` (see site.h)
	 * that other readers skip. May be NULL / 0. */
	char *path;      /* the file */
	uint64_t offset; /* in the file */
	char *symbol;    /* "malloc+0x12" */
	char *build_id;  /* hex */
	char *source;    /* "server.c:120" */
	char *format;    /* a marker's: "fd=%d path=%s" */
	enum kymo_ctf_kind kind;
	uint32_t aggregated; /* while a trace is written: not 0: no record of it is, and the metadata lack it */
	/* Of ENTRY and RETURN: of the function's entry in the file; `path`, `build_id` and this name the function. */
	uint64_t function_offset;
};

struct kymo_ctf_env {
	char *key;   /* [A-Za-z_][A-Za-z0-9_]* */
	char *value; /* any text; written escaped */
};

/*
 * Who had a thread id, and who had a process id. Ids come again in a long recording, and a process has another command
 * after an exec: several entries of one id follow each other in time, each with the stamp at which it began. All stamps
 * are TSC, 0 for not known: such a beginning is before all others.
 */
struct kymo_ctf_thread {
	int32_t tid; /* as records have it */
	int32_t pid; /* 0: not known */
	uint64_t begin;
	char *comm;
};

struct kymo_ctf_process {
	int32_t pid;
	int32_t parent; /* 0: not known */
	uint64_t begin, end;
	char *command; /* arguments separated by spaces */
};

struct kymo_ctf_trace {
	uint8_t uuid[16];
	uint64_t clock_frequency; /* TSC ticks a second */
	uint64_t clock_offset_s;  /* clock value 0 in seconds since 1970 … */
	uint64_t clock_offset;    /* … and ticks */
	bool clock_is_invariant;
	int64_t monotonic_offset_ns; /* nanoseconds: CLOCK_MONOTONIC = wall time + this */
	struct kymo_ctf_env *env;
	size_t n_env;
	struct kymo_ctf_event *events; /* indexed by position; ids unique, not necessarily dense */
	size_t n_events;
	struct kymo_ctf_thread *threads; /* sorted by tid, then begin; no two are equal in both */
	size_t n_threads;
	struct kymo_ctf_process *processes; /* sorted by pid, then begin; likewise */
	size_t n_processes;
};

/* Bytes of a record of `event`; where it has strings or bytes, of one in which they are empty. */
uint32_t kymo_ctf_event_size(const struct kymo_ctf_event *event);

/* Its records are not all of one size. */
bool kymo_ctf_event_varies(const struct kymo_ctf_event *event);

/* The largest that a record of it can be. */
uint32_t kymo_ctf_record_max(const struct kymo_ctf_event *event);

/* Is the event one of those whose function is known by its entry? */
static inline bool kymo_ctf_is_of_function(const struct kymo_ctf_event *event)
{
	return event->kind == KYMO_CTF_ENTRY || event->kind == KYMO_CTF_RETURN;
}

/* How many values a record of it has: its fields, and the stack pointer. */
static inline uint32_t kymo_ctf_n_values(const struct kymo_ctf_event *event)
{
	return event->n_fields + event->has_stack_pointer;
}

/* Bytes of the record of `event` that begins at `bytes`, of which `left` are there; 0 where they are not all of it, or
 * it is larger than kymo_ctf_record_max(). The bytes may change while this looks at them. */
uint32_t kymo_ctf_record_size(const struct kymo_ctf_event *event, const uint8_t *bytes, size_t left);

/* Free what the members point to (all from malloc). */
void kymo_ctf_event_deinit(struct kymo_ctf_event *event);

/* The same of a trace, and zero the struct. */
void kymo_ctf_trace_deinit(struct kymo_ctf_trace *trace);

/* Add a key to the env; strings are copied. An existing key is replaced. Keys as `thread_7` and `process_7_1_0_0` are
 * the tables' own. */
struct kymo_error *kymo_ctf_trace_set_env(struct kymo_ctf_trace *trace, const char *key, const char *value);
/* The value, or NULL. */
const char *kymo_ctf_trace_env(const struct kymo_ctf_trace *trace, const char *key);

/*
 * Add to the tables; strings are copied. An entry with the same id and the same `begin` is replaced, so that a name can
 * be looked at again and again. The table of threads need not be complete. Pointers into the tables are good until the
 * next addition.
 */
struct kymo_error *kymo_ctf_trace_add_thread(struct kymo_ctf_trace *trace, int32_t tid, int32_t pid, uint64_t begin,
					     const char *comm);
struct kymo_error *kymo_ctf_trace_add_process(struct kymo_ctf_trace *trace, int32_t pid, int32_t parent, uint64_t begin,
					      const char *command);

/* The latest process of that pid has ended, or has become another by exec. Nothing happens where there is none. */
void kymo_ctf_trace_end_process(struct kymo_ctf_trace *trace, int32_t pid, uint64_t end);

/*
 * Who had the id at `tsc`: the last that had begun by then, or the first of all, as a beginning may be noticed late.
 * NULL where the table has nobody of that id.
 */
const struct kymo_ctf_thread *kymo_ctf_trace_thread(const struct kymo_ctf_trace *trace, int32_t tid, uint64_t tsc);
const struct kymo_ctf_process *kymo_ctf_trace_process(const struct kymo_ctf_trace *trace, int32_t pid, uint64_t tsc);

/* The process that a record's thread belonged to: by the table of threads, else the one whose pid the tid is, else the
 * only one there is. Or NULL. */
const struct kymo_ctf_process *kymo_ctf_trace_process_of(const struct kymo_ctf_trace *trace, int32_t tid, uint64_t tsc);

/* How many entries the tables have for an id. */
size_t kymo_ctf_trace_n_threads_of(const struct kymo_ctf_trace *trace, int32_t tid);
size_t kymo_ctf_trace_n_processes_of(const struct kymo_ctf_trace *trace, int32_t pid);

/* How many different pids the tables have. */
size_t kymo_ctf_trace_n_pids(const struct kymo_ctf_trace *trace);

/* Write `metadata` in the directory `dirfd`, through a hidden temporary name and rename, so that a reader sees the old
 * one or the new one. */
struct kymo_error *kymo_ctf_write_metadata(int dirfd, const struct kymo_ctf_trace *trace);

/* Parse TSDL as kymo_ctf_write_metadata() writes it. BAD_DATA with the line: "metadata:12: …". */
struct kymo_error *kymo_ctf_parse_metadata(const char *text, size_t size, struct kymo_ctf_trace *ret);

/* ---- reading --------------------------------------------------------------------------------------------------- */

struct kymo_ctf_reader;

/* A record. Pointers are good until the next call. */
struct kymo_ctf_record {
	const struct kymo_ctf_event *event;
	uint64_t tsc; /* full 64 bits */
	int32_t tid;
	uint32_t cpu;
	uint8_t faults;
	uint64_t values[KYMO_EVENT_MAX_ARGS]; /* sign-extended for signed types; of others as the next two give it */
};

/* Value `i`, which is a string (the target's bytes, whatever they are), or a double. */
static inline const char *kymo_ctf_string(const struct kymo_ctf_record *record, uint32_t i)
{
	return (const char *)(uintptr_t)record->values[i];
}

/* The stack pointer of a record by which calls are paired; 0 where it has none. */
static inline uint64_t kymo_ctf_stack_pointer(const struct kymo_ctf_record *record)
{
	return record->event->has_stack_pointer ? record->values[record->event->n_fields] : 0;
}

/* Value `i`, which is bytes. */
static inline const void *kymo_ctf_bytes(const struct kymo_ctf_record *record, uint32_t i, size_t *size_ret)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)record->values[i];
	uint16_t size;

	memcpy(&size, at, sizeof(size));
	*size_ret = size;
	return at + sizeof(size);
}

static inline double kymo_ctf_double(const struct kymo_ctf_record *record, uint32_t i)
{
	double value;

	memcpy(&value, &record->values[i], sizeof(value));
	return value;
}

/* A span of time in which records were lost. */
struct kymo_ctf_loss {
	uint64_t begin, end; /* TSC */
	uint64_t events;     /* 0 when it is packets that were overwritten */
	uint64_t packets;
	uint32_t cpu; /* KYMO_CTF_NO_CPU: hits of vfork children, whoever else is recorded in that span has all records
		       */
};

/* Open a trace directory. NOT_FOUND when DIR or its metadata is not there, BAD_DATA. */
struct kymo_error *kymo_ctf_open(const char *dir, struct kymo_ctf_reader **ret);
void kymo_ctf_close(struct kymo_ctf_reader *reader);
const struct kymo_ctf_trace *kymo_ctf_reader_trace(const struct kymo_ctf_reader *reader);

/*
 * The next record of all streams in the order of time. true and `ret`, or false at the end or on an error (`error` is
 * set then, else NULL). A stream that ends within a packet gives the whole records it has, and a warning
 * (kymo_ctf_reader_warnings).
 */
bool kymo_ctf_next(struct kymo_ctf_reader *reader, struct kymo_ctf_record *ret, struct kymo_error **error);

/* Records only, in stream order (not merged): several times faster, for counts. Same contract. */
bool kymo_ctf_next_unordered(struct kymo_ctf_reader *reader, struct kymo_ctf_record *ret, struct kymo_error **error);

/* Losses met so far, in the order of time. */
const struct kymo_ctf_loss *kymo_ctf_reader_losses(const struct kymo_ctf_reader *reader, size_t *n);

/*
 * The stamp from which on each stream has its records: the first packets of some were overwritten (kymo record
 * --overwrite), and those of an idle CPU go back further than those of a busy one. 0 where each stream has its
 * beginning. It is known once a first record was read by kymo_ctf_next().
 */
uint64_t kymo_ctf_reader_whole_since(const struct kymo_ctf_reader *reader);

/* The stamp from which on records may be missing because of damage met so far; UINT64_MAX where there is none. */
uint64_t kymo_ctf_reader_damaged_since(const struct kymo_ctf_reader *reader);

/* Sentences about damage met so far ("stream_0: the last packet is cut off; 312 bytes were left out"). */
const char *const *kymo_ctf_reader_warnings(const struct kymo_ctf_reader *reader, size_t *n);

/* TSC to nanoseconds since 1970, and to CLOCK_MONOTONIC nanoseconds. */
uint64_t kymo_ctf_wall_ns(const struct kymo_ctf_trace *trace, uint64_t tsc);
uint64_t kymo_ctf_duration_ns(const struct kymo_ctf_trace *trace, uint64_t ticks);

#endif
