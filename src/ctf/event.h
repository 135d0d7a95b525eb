/* What an event of a trace is, and how large its records are. */
#ifndef KYMO_CTF_EVENT_H
#define KYMO_CTF_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/naming.h"
#include "base/shape.h"
#include "wire/types.h"

struct kymo_ctf_field {
	char *name; /* as the user sees it ("size"); the TSDL has it with a leading "_". Bytes are two fields there:
		       "_NAME_length", and a sequence */
	enum kymo_type type;
	struct kymo_naming *naming; /* of an integer, or of the elements of an array: as an enumeration, or an integer
				       with an encoding, in the TSDL; or NULL */
	uint8_t array_of;           /* of bytes: KYMO_ARRAY_OF() what they are, or 0 */
	struct kymo_shape *shape;   /* of bytes: structures, of which the u16 is the number; or NULL */
	bool is_list; /* of bytes with a shape: an array; else one structure, or none where it is a fault */
};

/* Bytes of an element of BYTES. */
static inline uint32_t kymo_ctf_element_size(const struct kymo_ctf_field *field)
{
	return field->shape ? field->shape->size : kymo_type_size(kymo_element_type(field->array_of));
}

/* What an event tells about its function. */
enum kymo_ctf_kind {
	KYMO_CTF_PLACE,   /* nothing: any instruction; also what traces say that know no kinds */
	KYMO_CTF_ENTRY,   /* it is entered */
	KYMO_CTF_RETURN,  /* it is left, by one of its exits */
	KYMO_CTF_MARKER,  /* nothing; its author marked it. Copies of a marker are events of one name */
	KYMO_CTF_SYSCALL, /* nothing; a system call is made, that of its name */
	KYMO_CTF_SYSRET,  /* nothing; any system call has come back */
	/* No probe: rows of an aggregation (enum kymo_ctf_rows): number and kind of the rows are in `offset`, its kind
	 * in `format`, its probe in `symbol`, and the user's other words in `source`. */
	KYMO_CTF_AGGREGATION,
	KYMO_CTF_FRAME,  /* no probe: frames of the stacks that other events have (enum kymo_ctf_frame_field) */
	KYMO_CTF_SOURCE, /* no probe: what debug information says of frames (enum kymo_ctf_source_field) */
	/* No probes: histories of branches, a record a branch, a location, a thread. */
	KYMO_CTF_BRANCH,        /* enum kymo_ctf_branch_field */
	KYMO_CTF_BRANCH_CODE,   /* enum kymo_ctf_branch_code_field */
	KYMO_CTF_BRANCH_THREAD, /* enum kymo_ctf_branch_thread_field */
};

/* The fields of a branch of the record's thread. */
enum kymo_ctf_branch_field {
	KYMO_CTF_BRANCH_FROM, /* u32: a location; 0: it has none */
	KYMO_CTF_BRANCH_TO,   /* u32 */
	KYMO_CTF_BRANCH_KIND, /* u8: enum kymo_ctf_branch_kind */
	KYMO_CTF_BRANCH_OF,   /* u32: the thread's record, 1 the first one. Ids of threads may come again */
	KYMO_CTF_BRANCH_FIELDS,
};

enum kymo_ctf_branch_kind {
	KYMO_CTF_BRANCH_JUMP,
	KYMO_CTF_BRANCH_CALL,
	KYMO_CTF_BRANCH_RETURN,
	KYMO_CTF_BRANCH_SIGNAL, /* a handler begins */
	KYMO_CTF_BRANCH_KERNEL, /* the kernel led elsewhere */
	KYMO_CTF_BRANCH_EXEC,   /* another program begins */
	KYMO_CTF_BRANCH_ENTER,  /* recorded code is entered from code that is not */
	KYMO_CTF_BRANCH_ANCHOR, /* no branch: the thread has made the record of that time here, of another event */
	KYMO_CTF_BRANCH_KINDS,
};

/* The fields of a location. They come before all branches. */
enum kymo_ctf_branch_code_field {
	KYMO_CTF_BRANCH_CODE_ID,       /* u32, from 1 on, one after the other */
	KYMO_CTF_BRANCH_CODE_ADDRESS,  /* x64: in the process */
	KYMO_CTF_BRANCH_CODE_FILE,     /* string; "": its memory was of no file */
	KYMO_CTF_BRANCH_CODE_FUNCTION, /* string, as the symbol table has it; "": nothing names it */
	KYMO_CTF_BRANCH_CODE_OFFSET,   /* u64: in the function */
	KYMO_CTF_BRANCH_CODE_LINKED,   /* x64: as linked */
	KYMO_CTF_BRANCH_CODE_SOURCE,   /* string, "app.c:12"; "": not known */
	KYMO_CTF_BRANCH_CODE_FIELDS,
};

/* More were taken than were kept, and how many is not known. */
#define KYMO_CTF_BRANCHES_OVERWRITTEN UINT64_MAX

/* The fields of a thread, which is that of the record. They come after the locations and before the branches. */
enum kymo_ctf_branch_thread_field {
	KYMO_CTF_BRANCH_THREAD_PID,     /* s32 */
	KYMO_CTF_BRANCH_THREAD_NAME,    /* string */
	KYMO_CTF_BRANCH_THREAD_TAKEN,   /* u64: branches, or KYMO_CTF_BRANCHES_OVERWRITTEN */
	KYMO_CTF_BRANCH_THREAD_KEPT,    /* u64: of them, the newest, which are in the trace */
	KYMO_CTF_BRANCH_THREAD_STATUS,  /* s32: as waitpid() gives it; -1: it had not ended */
	KYMO_CTF_BRANCH_THREAD_SIGNAL,  /* u32: the last one that would have ended it; 0: none */
	KYMO_CTF_BRANCH_THREAD_AT,      /* u32: the location where it stood then; 0: not known */
	KYMO_CTF_BRANCH_THREAD_ADDRESS, /* x64: that it could not access; 0: none */
	KYMO_CTF_BRANCH_THREAD_FIELDS,
};

/* The fields of a frame's record. They come before all records that have a stack. */
enum kymo_ctf_frame_field {
	KYMO_CTF_FRAME_ID,     /* u32, from 1 */
	KYMO_CTF_FRAME_CALLER, /* u32: the id of the frame that has called it, which is less; 0: it is the outermost */
	KYMO_CTF_FRAME_WHAT,   /* u8: enum kymo_ctf_frame_kind */
	KYMO_CTF_FRAME_FILE,   /* string; "": its memory is of no file */
	KYMO_CTF_FRAME_FUNCTION, /* string, as the symbol table has it, or "git:0x23fc0"; "": not known */
	KYMO_CTF_FRAME_OFFSET,   /* u64: of the instruction in the function */
	KYMO_CTF_FRAME_ADDRESS,  /* x64: of the instruction, as linked; of memory of no file, in the process */
	KYMO_CTF_FRAME_PLACE,    /* u32: a number that frames of one address share; 0: none. Older traces lack it */
	KYMO_CTF_FRAME_FIELDS,
};

/* The fields of a source. Those of a place come one after the other, the innermost first; places in order; all after
 * the frames, and before records that have a stack. */
enum kymo_ctf_source_field {
	KYMO_CTF_SOURCE_PLACE,      /* u32: of frames */
	KYMO_CTF_SOURCE_IS_INLINED, /* u8: 1; 0: the frame's own function, the last one of the place */
	KYMO_CTF_SOURCE_FUNCTION,   /* string, as the symbol table would have it; "": it has no name */
	KYMO_CTF_SOURCE_FILE,       /* string, as the line table has it; "": the line is not known */
	KYMO_CTF_SOURCE_LINE,       /* u32 */
	KYMO_CTF_SOURCE_FIELDS,
};

enum kymo_ctf_frame_kind {
	KYMO_CTF_FRAME_CODE,
	KYMO_CTF_FRAME_LOST, /* of `address` nothing is known, and nothing of its callers */
	KYMO_CTF_FRAME_CUT,  /* no frame: callers are missing, as `offset` bytes of the stack were copied and no more */
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
	bool has_stack;         /* one field more, KYMO_STACK_FIELD, after the others */
	bool has_stack_pointer; /* of ENTRY and RETURN: one field more, KYMO_STACK_POINTER_FIELD, after the others */
	bool has_faults;        /* the record carries the faults byte */
	uint32_t size;          /* least bytes of a record, header included; by kymo_ctf_event_measure() */
	bool is_fixed;          /* likewise: all records have that size */
	/* What the report says about the site; in the TSDL event block all of it is one `model.emf.uri` (see site.h)
	 * that other readers skip. May be NULL / 0. */
	char *path;       /* the file */
	uint64_t offset;  /* in the file */
	char *symbol;     /* "malloc+0x12" */
	char *build_id;   /* hex */
	char *source;     /* "server.c:120" */
	char *format;     /* a marker's: "fd=%d path=%s" */
	char *sample;     /* "1/100", "50/s", "first 10": it has no record of other hits; NULL: of all */
	char *writes;     /* "return", "set %ax": what its hits have changed in the program; NULL: nothing */
	bool is_filtered; /* it has no record of hits that a filter has left out */
	enum kymo_ctf_kind kind;
	uint32_t aggregated; /* while a trace is written: not 0: no record of it is, and the metadata lack it … */
	bool waits;          /* … but for these, which are written when the duration of their call is known */
	bool is_written;     /* … and these, which are written as they come */
	uint8_t duration;    /* the same: 1 + the field that is the duration; 0: none is */
	/* Of ENTRY and RETURN: of the function's entry in the file; `path`, `build_id` and this name the function. */
	uint64_t function_offset;
};

/* Compute `size`, of a record of which strings and bytes are empty, and `is_fixed`. To be called when the fields are
 * there. */
void kymo_ctf_event_measure(struct kymo_ctf_event *event);

/* The largest that a record of it can be. */
uint32_t kymo_ctf_record_max(const struct kymo_ctf_event *event);

/* Is the event one of those whose function is known by its entry? */
static inline bool kymo_ctf_is_of_function(const struct kymo_ctf_event *event)
{
	return event->kind == KYMO_CTF_ENTRY || event->kind == KYMO_CTF_RETURN;
}

/* Is it of what frames of stacks are? */
static inline bool kymo_ctf_is_of_stacks(const struct kymo_ctf_event *event)
{
	return event->kind == KYMO_CTF_FRAME || event->kind == KYMO_CTF_SOURCE;
}

/* Is it part of a history of branches? */
static inline bool kymo_ctf_is_of_branches(const struct kymo_ctf_event *event)
{
	return event->kind == KYMO_CTF_BRANCH || event->kind == KYMO_CTF_BRANCH_CODE ||
	       event->kind == KYMO_CTF_BRANCH_THREAD;
}

/* While a trace is written: whether it has records of the event. */
static inline bool kymo_ctf_has_records(const struct kymo_ctf_event *event)
{
	return !event->aggregated || event->waits || event->is_written;
}

/* How many values a record of it has: its fields, the stack, and the stack pointer. */
static inline uint32_t kymo_ctf_n_values(const struct kymo_ctf_event *event)
{
	return event->n_fields + event->has_stack + event->has_stack_pointer;
}

/* Bytes of the record of `event` that begins at `bytes`, of which `left` are there; 0 where they are not all of it, or
 * it is larger than kymo_ctf_record_max(). The bytes may change while this looks at them. */
uint32_t kymo_ctf_record_size(const struct kymo_ctf_event *event, const uint8_t *bytes, size_t left);

/* The same of what comes after the header of a record, and whether it is all there. */
bool kymo_ctf_body_size(const struct kymo_ctf_event *event, const uint8_t *body, size_t left, uint32_t *ret);

/* Of a record that has a stack: the bytes before that, and before the stack pointer of a call. */
bool kymo_ctf_size_before_stack(const struct kymo_ctf_event *event, const uint8_t *body, size_t left, uint32_t *ret);

/* Free what the members point to (all from malloc). */
void kymo_ctf_event_deinit(struct kymo_ctf_event *event);

#endif
