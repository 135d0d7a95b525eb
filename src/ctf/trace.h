/* What the metadata of a trace say: its events and their fields, its clock, its threads and processes. */
#ifndef KYMO_CTF_TRACE_H
#define KYMO_CTF_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "ctf/event.h"

/* Of a flight recorder: the process that writes the trace, as it knows itself; and of a snapshot, when it was begun
 * (CLOCK_MONOTONIC, ns), else 0. */
#define KYMO_ENV_RECORDER "recorder_pid"
#define KYMO_ENV_RECORDER_START "recorder_start" /* field 22 of its stat; 0: not known */
#define KYMO_ENV_SNAPSHOT "snapshot_ns"

/* Of a recording of branches: their source ("single steps"), what the user has chosen, and what the source does not
 * see.
 */
#define KYMO_ENV_BRANCHES "branches"
#define KYMO_BRANCHES_BY_STEPS "single steps" /* the source that sees all branches of the code that was chosen */
#define KYMO_ENV_BRANCHES_CHOSEN "branches_chosen"
#define KYMO_ENV_BRANCHES_UNSEEN "branches_unseen"

/* Of a recording: whether all that was recorded is in the trace. A recorder that is killed leaves the first. */
#define KYMO_ENV_STATE "state"
#define KYMO_STATE_RECORDING "recording"
#define KYMO_STATE_ENDED "ended"

struct kymo_ctf_env {
	char *key;   /* [A-Za-z_][A-Za-z0-9_]* */
	char *value; /* any text; written escaped */
};

/*
 * Which threads and processes had an id. Ids come again in a long recording, and a process has another command after an
 * exec: several entries of one id follow each other in time, each with the stamp at which it began. All stamps are TSC,
 * 0 for not known: such a beginning is before all others.
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
	bool is_packed;              /* its records are, and not plain (wire/event.h) */
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

/* Free what the members point to (all from malloc), and zero the struct. */
void kymo_ctf_trace_deinit(struct kymo_ctf_trace *trace);

/* Add a key to the env; strings are copied. An existing key is replaced. Keys as `thread_7` and `process_7_1_0_0` are
 * the tables' own. */
struct kymo_error *kymo_ctf_trace_set_env(struct kymo_ctf_trace *trace, const char *key, const char *value);
/* The value, or NULL. */
const char *kymo_ctf_trace_env(const struct kymo_ctf_trace *trace, const char *key);

/* TSC to nanoseconds since 1970, and to CLOCK_MONOTONIC nanoseconds. */
uint64_t kymo_ctf_wall_ns(const struct kymo_ctf_trace *trace, uint64_t tsc);
uint64_t kymo_ctf_duration_ns(const struct kymo_ctf_trace *trace, uint64_t ticks);

#endif
