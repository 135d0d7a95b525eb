/* What goes on while a recording goes on: processes, and sources of events. Private to the room. */
#ifndef KYMO_RECORD_RUN_H
#define KYMO_RECORD_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "probe/memory/data.h"
#include "record/record.h"
#include "ring/ring.h"
#include "trace/trace.h"

struct kymo_branches;
struct kymo_call_source;
struct kymo_kernel_pool;
struct kymo_look;
struct record_clones;
struct recording_kernel;

/*
 * Probes and rings: of one program from its exec to its end. A forked process has its own source, with its own rings
 * and the probes of the first (`lender`), which stays as long.
 */
struct record_source {
	struct kymo_process
		*process; /* that the probes were put into; kept as long as they are, also when it has ended */
	struct kymo_probes *probes;
	struct record_source *lender; /* or NULL: the probes are its own */
	struct kymo_adopted *adopted; /* the rings of processes that share its probes */
	pid_t pid;                    /* whose rings they are */
	struct kymo_ring *rings;      /* once the probes have some */
	struct kymo_shared_ring *shared;
	struct kymo_trace_position *positions; /* where each ring's packets go */
	size_t n_rings;
	size_t users;             /* targets, and sources that share the probes */
	uint64_t buffer_size;     /* bytes a CPU */
	bool is_named;            /* of a process that was asked for, or of what that has executed */
	struct source_hits *hits; /* what waits to be aggregated; or NULL */
	bool is_growth_told;      /* the user knows that its rings do not get all of their memory */
	int stack_number;         /* by which stacks.c knows it; 0: it does not */
};

/* A process that is recorded, or at least followed. */
struct target {
	struct kymo_process *process;
	pid_t pid, parent;            /* parent 0: not known */
	int32_t inner_pid;            /* as it knows itself: what its records say */
	struct record_source *source; /* NULL: nothing of it is recorded */
	bool is_sharing;              /* runs in its parent's memory until its exec */
	bool is_in_startup;           /* what the tree tells of its start-up is dealt with */
	bool has_threads;
	bool is_id_due;         /* its thread stores its id after the call at which it was seen last */
	bool is_named;          /* was asked for by its id */
	bool is_clean;          /* has no probes in it, or none any more */
	bool is_muted;          /* may not read the time stamp counter, as what has made it, or was executed before */
	struct kymo_look *look; /* or NULL: not yet, or nothing of it is recorded */
	uint64_t next_look_ns, look_begin; /* the latter a stamp */
	size_t n_gaps_told;                /* of the look's */
};

/* The looks at the text of all processes, within their share of the recorder's time (looks.c). */
struct recording_looks {
	uint64_t free_ns; /* none before that */
	size_t next;      /* target */
	uint64_t next_note_ns;
	bool is_due; /* there are gaps that the metadata on the disk lack */
};

/* A recording that begins anew begins with none of this. */
struct recording_run {
	struct kymo_process
		*process; /* the command or process that was asked for, as it was at first; NULL when it is past */
	pid_t pid;        /* its */
	pid_t child; /* the command where nothing traces it, or 0; it begins when `go` is written to, and ends when that
			is closed instead */
	int go;      /* or -1 */
	struct kymo_events *events;
	struct kymo_tree *tree; /* NULL: no process is followed */
	KYMO_VEC(struct target *) targets;
	KYMO_VEC(struct record_source *) sources;
	uint64_t looked_ns;              /* when the newest look at all rings began */
	uint64_t grown_ns;               /* when rings were last looked at that may be short of memory */
	struct recording_kernel *kernel; /* NULL: the kernel is no source of events */
	struct kymo_kernel_pool *pool;   /* of `keep`, what `kernel` and `calls` have of it; or NULL */
	struct kymo_call_source *calls;  /* system calls that are seen from outside; NULL: none are */
	uint64_t begin_ns, next_progress_ns, next_flush_ns, next_seal_ns, next_heed_ns, next_lease_ns;
	size_t next_noted;  /* of `sources`: which one's mappings are looked at next */
	uint64_t frequency; /* of the TSC, where a rate of samples or a write is asked for; 0: not measured yet */
	size_t n_sites;     /* the most that a process has had */
	enum kymo_record_phase phase; /* that was told last */
	int snapshots;                /* that were asked for, of `control->snapshots` */
	struct {
		uint64_t end_ns; /* 0: no condition has held since the last one was dealt with */
		size_t n_held;
		bool is_over; /* recording ends */
	} until;
	bool has_begun;    /* a launched command has run its first instruction of its own */
	bool has_run;      /* the launched command may have run code of its own; it can't be started again */
	bool is_ending;    /* probes go out, and no process gets any */
	bool has_given_up; /* a process runs without probes, and has been told of */
	bool *lacking;     /* per spec in the process: a file that it names has been met, and has not what it means; or
			      NULL */
	bool lacks_thread_ids; /* of some process: its records carry the process id */
	struct recording_looks looks;
	struct record_clones *clones;   /* function clones beside the probes (beside.h); or NULL */
	struct kymo_branches *branches; /* which they record */
	struct kymo_error *drain_error; /* of recording_drain_meanwhile() */
};

#endif
