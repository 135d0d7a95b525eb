/*
 * Records, byte for byte (little endian, no padding), in two forms. A *plain* one stands for itself:
 *
 *	u64 header	low 20 bits: event id; high 44 bits: low 44 bits of the TSC
 *	s32 tid		thread id as the target's own process sees it
 *	u8 faults	only where the event has arguments that are read from memory: bit i is set when argument i
 *			could not be read; its value is 0 then
 *	...		the arguments, each of its type's size, in order; a string is its bytes and a NUL
 *
 * The header is one store for the producer and one bit field for CTF. 44 bits of a 3 GHz TSC are 97 minutes: a reader
 * extends each to 64 bits from the packet's first stamp. So two neighbors in one packet must not lie further apart (the
 * recorder closes idle packets long before). Plain records are those of libkymo-marker's rings, and of every source but
 * pads.
 *
 * *Packed* records, those of pads, leave out what is as before. The low 5 bits of the first byte are the kind:
 *
 *	0	a thread's record	u64: the kind, 59 bits of the TSC; s32 tid
 *	1 … 30	the event's id		u32: the id, 27 bits of the TSC; faults and arguments, as above
 *	31	of any event		u64: the kind, 20 bits of id, 39 bits of the TSC; faults and arguments
 *
 * A thread's record is no event: the tid is that of all records after it, up to the next one or the packet's end.
 * Each packet that has records begins with one, and one comes before a record
 *
 *	whose thread is another than the last thread record's,
 *	or whose stamp is less than the last thread record's, or 2^27 ticks (kind 31: 2^39) or more later.
 *
 * So a reader extends each stamp from that of the last thread's record, forward. The stamp of a thread's record is the
 * nearest to the one of the thread's record before it, or to the packet's first. docs/internals/rings.md says why that
 * is right whatever the order of the records.
 */
#ifndef KYMO_WIRE_EVENT_H
#define KYMO_WIRE_EVENT_H

#include <stdint.h>

#define KYMO_EVENT_ID_BITS 20
#define KYMO_EVENT_ID_MAX ((1u << KYMO_EVENT_ID_BITS) - 1)
#define KYMO_EVENT_TIME_BITS 44
#define KYMO_EVENT_TID_OFFSET 8
#define KYMO_EVENT_ARGS_OFFSET 12 /* without the faults byte */
#define KYMO_EVENT_MAX_ARGS 8

#define KYMO_PACKED_KIND_BITS 5
#define KYMO_PACKED_KIND_MASK 31u
#define KYMO_PACKED_THREAD 0
#define KYMO_PACKED_WIDE 31 /* what is between both is an event's id */
#define KYMO_PACKED_COMPACT_SIZE 4
#define KYMO_PACKED_COMPACT_TIME_BITS 27
#define KYMO_PACKED_WIDE_SIZE 8
#define KYMO_PACKED_WIDE_TIME_BITS 39
#define KYMO_PACKED_THREAD_SIZE 12
#define KYMO_PACKED_THREAD_TIME_BITS 59
#define KYMO_PACKED_TID_OFFSET 8
/*
 * The last value, an x64, of records by which calls are paired: the stack pointer at the entry of a function, where it
 * leads to the return address, or at an instruction that leaves it. Both are the same for one call.
 */
#define KYMO_STACK_POINTER_FIELD "_sp"
/* The value before that, a u32: the innermost frame of the thread's stack, by its number among the trace's frames; 0:
 * it is not known. What pads write in its place, after the stack pointer, is a copy of the stack, or a chain. */
#define KYMO_STACK_FIELD "_stack"

/* The bytes of such a copy, in records in rings: these, and the stack from `sp` on. */
struct kymo_wire_stack {
	uint64_t pc, sp, bp;
};

/* The bytes of a chain: these, and the return addresses that frame pointers led to, 8 bytes each, from `bp` on. A word
 * that cannot be read is 0. */
struct kymo_wire_chain {
	struct kymo_wire_stack at;
	uint64_t words[2]; /* at `sp` */
};

#define KYMO_WIRE_CHAIN_MAX 255 /* return addresses */

/* What a string that is longer than its limit ends with in a record, after the limit's bytes: U+2026 in UTF-8. So a
 * string of more bytes than its limit is one that was cut. */
#define KYMO_STRING_CUT "\xe2\x80\xa6"

/* Of a record without strings. */
#define KYMO_EVENT_MAX_SIZE (KYMO_EVENT_ARGS_OFFSET + 1 + 8 * KYMO_EVENT_MAX_ARGS)

#endif
