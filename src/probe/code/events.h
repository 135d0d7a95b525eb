/* The events of a recording. */
#ifndef KYMO_PROBE_CODE_EVENTS_H
#define KYMO_PROBE_CODE_EVENTS_H

#include <string.h>

#include "arch/fetch.h"
#include "base/error.h"
#include "base/naming.h"
#include "base/shape.h"
#include "wire/event.h"

struct kymo_events;
struct kymo_spec;
struct probe_cache;

/* What an event's sites are. */
enum kymo_event_kind {
	KYMO_EVENT_INSTRUCTION, /* some instruction */
	KYMO_EVENT_ENTRY,       /* where a function is entered */
	KYMO_EVENT_RETURN,      /* where it is left: several sites */
	KYMO_EVENT_MARKER,
	KYMO_EVENT_SYSCALL,     /* a system call of one number is made, at any location */
	KYMO_EVENT_SYSRET,      /* any has come back */
	KYMO_EVENT_AGGREGATION, /* nothing of the process: rows of an aggregation */
	KYMO_EVENT_FRAME,       /* likewise: frames of stacks */
	KYMO_EVENT_SOURCE,      /* likewise: their lines */
	KYMO_EVENT_BRANCH,      /* likewise: histories of branches, with the next two */
	KYMO_EVENT_BRANCH_CODE,
	KYMO_EVENT_BRANCH_THREAD,
};

/* What a record of it holds. */
struct kymo_event_field {
	char *name;
	enum kymo_type type;
	struct kymo_naming *naming; /* or NULL */
	struct kymo_shape *shape;   /* of bytes; or NULL */
	bool is_list;               /* they are an array of that shape */
	uint8_t array_of;           /* of bytes: KYMO_ARRAY_OF() what they are, or 0 */
};

/* One event: a spec at a location of a file. Strings belong to the table. */
struct kymo_probe_event {
	uint32_t id;
	enum kymo_event_kind kind;
	uint64_t function_offset; /* of ENTRY and RETURN: of the function's entry in the file */
	char *name;               /* "libc:malloc" */
	const struct kymo_spec *spec;
	struct kymo_fetch args[KYMO_EVENT_MAX_ARGS]; /* how the values are got: one a field, or one for all
							(KYMO_FETCH_PAYLOAD) */
	size_t n_args;
	const struct kymo_form *filter;                   /* the spec's, or one of `forms`; NULL: none */
	struct kymo_form *forms[KYMO_EVENT_MAX_ARGS + 1]; /* its own, of arguments and of the filter; or NULL */
	struct kymo_event_field fields[KYMO_EVENT_MAX_ARGS];
	size_t n_fields;
	bool has_stack;                 /* KYMO_STACK_FIELD is behind those that were asked for; of the arguments the
					   last one is what it has of the stack */
	bool has_stack_pointer;         /* the last of them is KYMO_STACK_POINTER_FIELD, and no spec asks for it */
	char *source, *format;          /* of a marker: "server.c:120", its format; or NULL */
	char *path, *symbol, *build_id; /* the file, "malloc+0x4", hex */
	uint64_t offset;                /* in the file */
	bool is_used;                   /* some process has it; others are for locations that were refused */
};

/*
 * All events of a recording, which may have many processes: the same spec at the same location of the same file (by
 * path, build-id and offset) is one event, whichever process has it. Grows only; items move when it does.
 */
struct kymo_error *kymo_events_create(struct kymo_events **ret);
void kymo_events_destroy(struct kymo_events *events);
const struct kymo_probe_event *kymo_events_items(const struct kymo_events *events, size_t *n_ret);

/* Some process has it. */
void kymo_events_use(struct kymo_events *events, size_t index);

/* Add one, or find the one that is the same; the strings and own forms of `event` are copied, its id is ignored. `ret`
 * is its index; its id is that plus 1. USAGE when there are too many, NO_MEMORY. */
struct kymo_error *kymo_events_add(struct kymo_events *events, const struct kymo_probe_event *event, size_t *ret);

/* The bytes of an event's symbol that are the name of its function: "malloc" of "malloc+0x4"; 0: it has none. */
static inline size_t kymo_event_function_size(const char *symbol)
{
	const char *offset = strstr(symbol, "+0x");

	return offset ? (size_t)(offset - symbol) : strlen(symbol);
}

/* The files of the recording. */
struct probe_cache *probe_events_cache(struct kymo_events *events);

/* Where the event of system call 0 is. */
void probe_events_note_syscalls(struct kymo_events *events, size_t first);
size_t probe_events_syscalls(const struct kymo_events *events);

#endif
