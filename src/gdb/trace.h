/*
 * What a client has said of tracepoints, and their run. A part of state.h. On the hub's thread.
 *
 * A run traces one process. A thread that comes to a tracepoint is stopped by the hub; the stub collects, and the
 * thread goes on. No client is told.
 */
#ifndef KYMO_GDB_TRACE_H
#define KYMO_GDB_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "gdb/markers.h"
#include "gdb/text.h"
#include "gdb/trace_buffer.h"
#include "procfs/maps.h"

enum {
	GDB_TRACEPOINTS_MAX = 1024,
	GDB_TRACE_TEXT_MAX = 4 << 20, /* bytes of packets that define tracepoints */
	GDB_VARIABLES_MAX = 512,
	GDB_TRACE_REGIONS_MAX = 512, /* read-only ones */
	GDB_TRACE_NOTE_MAX = 4096,   /* bytes */
	GDB_TRACE_STEPS_MAX = 16,    /* tracepoints for which a thread makes steps at a time */
};

#define GDB_TRACE_BUFFER_DEFAULT (5u << 20) /* bytes, as gdbserver has it */
#define GDB_TRACE_BUFFER_MAX (256u << 20)

enum gdb_trace_collected {
	GDB_COLLECTS_REGISTERS,
	GDB_COLLECTS_MEMORY,
	GDB_COLLECTS_EXPRESSION, /* what it traces */
};

struct gdb_trace_action {
	enum gdb_trace_collected what;
	bool is_of_step;  /* it is done after each step, and not at the hit */
	int base;         /* MEMORY: the number of a register, or -1 */
	uint64_t address; /* … what is added to that */
	uint64_t size;    /* bytes: of memory, of the expression */
	uint8_t *code;
};

struct gdb_tracepoint {
	unsigned int number; /* one number can have several addresses */
	uint64_t address;
	bool is_enabled;
	bool is_whole;      /* no more packets of its definition are to come */
	bool has_step_part; /* the actions that come are those of steps */
	char kind;          /* 'F': a fast one, 'S': a static one; or 0 */
	uint64_t fast_size; /* bytes that a client says a fast one displaces */
	uint64_t n_steps, n_passes;
	uint8_t *condition; /* or NULL */
	size_t condition_size;
	KYMO_VEC(struct gdb_trace_action) actions;
	KYMO_VEC(char *) pieces; /* of its definition, as another client is told them */
	uint64_t n_hits, n_bytes;
	bool is_in;                          /* the threads have its breakpoint */
	uint64_t semaphore;                  /* of the marker there, which it has counted up; or 0 */
	struct kymo_map_part semaphore_part; /* what it lay in then */
};

/* A trace state variable. */
struct gdb_variable {
	unsigned int number;
	int64_t initial, value;
	bool is_builtin;
	char *name;
};

struct gdb_trace_region {
	uint64_t start, end;
};

/* What stands in a status, as the protocol names it. */
enum gdb_trace_end {
	GDB_TRACE_NEVER_RUN,
	GDB_TRACE_STOPPED,
	GDB_TRACE_FULL,
	GDB_TRACE_DISCONNECTED,
	GDB_TRACE_PASSED, /* a tracepoint's number of passes */
	GDB_TRACE_FAILED, /* an expression, or the process is gone */
};

struct gdb_tracing {
	KYMO_VEC(struct gdb_tracepoint *) points;
	KYMO_VEC(struct gdb_variable) variables;
	KYMO_VEC(struct gdb_trace_region) regions; /* that the program does not change */
	size_t n_text;                             /* bytes of definitions */
	size_t next_point, next_piece;             /* of qTsP */
	size_t next_variable;                      /* of qTsV */
	struct gdb_markers markers; /* of the process that the client has asked for last; changed on the main thread */
	struct gdb_trace_buffer buffer;
	size_t buffer_size; /* of the next run; 0: the default one */
	bool is_circular, is_disconnected;
	bool is_running;
	pid_t pid;         /* of the run */
	bool has_executed; /* … has executed another program since */
	bool has_selected; /* registers and memory are those of a frame */
	size_t selected;
	enum gdb_trace_end end;
	const char *failure;    /* what has gone wrong */
	unsigned int end_point; /* the number of the tracepoint that has ended the run */
	uint64_t start_us, stop_us;
	char *user, *notes, *stop_notes; /* in hexadecimal digits; or NULL */
	uint64_t n_lost;                 /* frames of hits and steps that there are not */
	uint64_t n_cut;                  /* frames that have not all that their actions collect */
	struct gdb_text draft;           /* the blocks of the frame that is being made, while a run goes on */
};

/* A thread makes steps for a tracepoint that it has hit. */
struct gdb_trace_step {
	struct gdb_tracepoint *point;
	uint64_t n_done;
};

/* Whether a run has a breakpoint there, in that process. */
bool gdb_traces_at(const struct gdb_tracing *tracing, pid_t pid, uint64_t address);

/* Whether a run of that process goes on. */
bool gdb_traces(const struct gdb_tracing *tracing, pid_t pid);

/* The run is over. Breakpoints are not taken out by this. */
void gdb_trace_note_end(struct gdb_tracing *tracing, enum gdb_trace_end end, unsigned int number, const char *failure);

/* The process has ended, executes another program, or is left: its run is over. */
void gdb_trace_lose(struct gdb_tracing *tracing, pid_t pid, const char *failure);

/* Microseconds since 1970. */
uint64_t gdb_trace_now_us(void);

/* What defines a tracepoint goes, but its number, its address and its counts. */
void gdb_trace_clear_point(struct gdb_tracepoint *point);

/* Definitions go, with what they have. */
void gdb_trace_free_points(struct gdb_tracing *tracing);
void gdb_trace_free_variables(struct gdb_tracing *tracing);
void gdb_trace_deinit(struct gdb_tracing *tracing);

#endif
