/* Reading a trace: records of all streams in the order of time, and what was lost. */
#ifndef KYMO_CTF_READER_H
#define KYMO_CTF_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "ctf/trace.h"
#include "wire/event.h"

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
	return record->event->has_stack_pointer ? record->values[record->event->n_fields + record->event->has_stack]
						: 0;
}

/* Value `i`, which is bytes, as that or as the elements of an array. */
static inline const void *kymo_ctf_bytes(const struct kymo_ctf_record *record, uint32_t i, size_t *size_ret)
{
	const uint8_t *at = (const uint8_t *)(uintptr_t)record->values[i];
	uint16_t size;

	memcpy(&size, at, sizeof(size));
	*size_ret = (size_t)size * kymo_ctf_element_size(&record->event->fields[i]);
	return at + sizeof(size);
}

/* Element `i` of an array of integers, with the sign or zeros before its bytes. */
static inline uint64_t kymo_ctf_element(const void *elements, enum kymo_type type, size_t i)
{
	const unsigned int size = kymo_type_size(type), unused = 64 - 8 * size;
	uint64_t value = 0;

	memcpy(&value, (const uint8_t *)elements + i * size, size);
	return kymo_type_is_signed(type) ? (uint64_t)((int64_t)(value << unused) >> unused) : value;
}

/* A value or element of the type, which is that of floating-point numbers. */
static inline double kymo_ctf_real(uint64_t bits, enum kymo_type type)
{
	double value;
	float single;

	if (type == KYMO_TYPE_F32) {
		memcpy(&single, &bits, sizeof(single));
		return (double)single;
	}

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Value `i`, which is a floating-point number. */
static inline double kymo_ctf_double(const struct kymo_ctf_record *record, uint32_t i)
{
	return kymo_ctf_real(record->values[i], record->event->fields[i].type);
}

/* A span of time in which records were lost. */
struct kymo_ctf_loss {
	uint64_t begin, end; /* TSC */
	uint64_t events;     /* 0 when it is packets that were overwritten */
	uint64_t packets;
	uint32_t cpu; /* KYMO_CTF_NO_CPU: hits of vfork children; all other processes have their records of that span */
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
bool kymo_ctf_next(struct kymo_ctf_reader *reader, struct kymo_ctf_record *ret, struct kymo_error **error_ret);

/* Records only, in stream order (not merged): several times faster, for counts. Same contract. */
bool kymo_ctf_next_unordered(struct kymo_ctf_reader *reader, struct kymo_ctf_record *ret,
			     struct kymo_error **error_ret);

/* Losses met so far, in the order of time. */
const struct kymo_ctf_loss *kymo_ctf_reader_losses(const struct kymo_ctf_reader *reader, size_t *n_ret);

/*
 * The stamp from which on each stream has its records: the first packets of some were overwritten (kymo record
 * --overwrite), and those of an idle CPU go back further than those of a busy one. 0 where each stream has its
 * beginning. It is known once a first record was read by kymo_ctf_next().
 */
uint64_t kymo_ctf_reader_whole_since(const struct kymo_ctf_reader *reader);

/* The stamp from which on records may be missing because of damage met so far; UINT64_MAX where there is none. */
uint64_t kymo_ctf_reader_damaged_since(const struct kymo_ctf_reader *reader);

/* Sentences about damage met so far ("stream_0: the last packet is cut off; 312 bytes were left out"). */
const char *const *kymo_ctf_reader_warnings(const struct kymo_ctf_reader *reader, size_t *n_ret);

#endif
