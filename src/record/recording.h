/* What the files of this room share: a recording while it goes on. */
#ifndef KYMO_RECORD_RECORDING_H
#define KYMO_RECORD_RECORDING_H

#include "base/vec.h"
#include "probe/install/session.h"
#include "probe/look/look.h"
#include "probe/memory/data.h"
#include "proc/proc.h"
#include "record/record.h"
#include "ring/ring.h"
#include "trace/clock.h"
#include "trace/trace.h"

/*
 * Probes and rings: of one program from its exec to its end. A process that is forked from it has a source of its own,
 * with rings of its own and the probes of the first (`lender`), which stays as long.
 */
struct source {
	struct kymo_process
		*process; /* that the probes were put into; kept as long as they are, also when it has ended */
	struct kymo_probes *probes;
	struct source *lender;        /* or NULL: the probes are its own */
	struct kymo_adopted *adopted; /* the rings of who has borrowed its probes */
	pid_t pid;                    /* whose rings they are */
	struct kymo_ring *rings;      /* once the probes have some */
	struct kymo_shared_ring *shared;
	struct kymo_trace_place *places; /* where each ring's packets go */
	size_t n_rings;
	size_t users;             /* targets, and sources that have borrowed the probes */
	uint64_t buffer_size;     /* bytes a CPU */
	bool is_named;            /* of a process that was asked for, or of what that has executed */
	struct source_hits *hits; /* what waits to be aggregated; or NULL */
	int stack_number;         /* by which stacks.c knows it; 0: it does not */
};

/* A process that is recorded, or at least followed. */
struct target {
	struct kymo_process *process;
	pid_t pid, parent;     /* parent 0: not known */
	int32_t inner_pid;     /* as it knows itself: what its records say */
	struct source *source; /* NULL: nothing of it is recorded */
	bool is_sharing;       /* runs in its parent's memory until its exec */
	bool is_in_startup;    /* what the tree tells of its start-up is dealt with */
	bool has_threads;
	bool is_id_due;                    /* its thread stores its id behind the call at which it was seen last */
	bool is_named;                     /* was asked for by its id */
	bool is_clean;                     /* has no probes in it, or none any more */
	struct kymo_look *look;            /* or NULL: not yet, or nothing of it is recorded */
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

struct recording {
	const struct kymo_record_options *options;
	struct kymo_process
		*process; /* the command or process that was asked for, as it was at first; NULL when it is past */
	pid_t pid;        /* its */
	size_t at_pid;    /* of the options' ids: it is this one, and those before have refused */
	struct kymo_events *events;
	struct kymo_tree *tree; /* NULL: nobody is followed */
	KYMO_VEC(struct target *) targets;
	KYMO_VEC(struct source *) sources;
	struct kymo_spec *specs; /* those for the process first, then those for the kernel; strings are the options' */
	size_t n_inproc, n_kernel;
	enum kymo_record_backend backend; /* of it all: INPROC, KERNEL or PTRACE */
	const struct kymo_spec
		*calls_spec; /* in `specs`, behind all others: system calls that are none of the process's; or NULL */
	char **reasons;      /* per spec of the options: why it is the kernel's; or NULL */
	struct recording_kernel *kernel; /* NULL: the kernel is no source of events */
	struct kymo_call_source *calls;  /* system calls that are seen from outside; NULL: none are */
	pid_t child; /* the command where nobody traces it, or 0; it begins when `go` is written to, and ends when that
			is closed instead */
	int go;      /* or -1 */
	struct aggregating *aggregating; /* or NULL: nothing is aggregated */
	struct stacking *stacking;       /* or NULL: no records have stacks */
	struct kymo_trace output;
	bool has_output, is_described; /* there is a directory; with what its metadata say of the target */
	struct kymo_clock_sample begin;
	size_t next_noted;  /* of `sources`: which one's mappings are looked at next */
	uint64_t frequency; /* of the TSC, where a rate of samples is asked for; 0: not measured yet */
	uint64_t begin_ns, next_progress_ns, next_flush_ns, next_seal_ns, next_heed_ns;
	bool has_begun;                /* a launched command has run its first instruction of its own */
	bool is_ending;                /* probes go out; nobody new gets any */
	uint64_t lost, lost_in_vforks; /* by sources that are no more */
	size_t n_sites;                /* the most that a process has had */
	int snapshots;                 /* that were asked for, of `control->snapshots` */
	struct {
		uint64_t end_ns; /* 0: no condition has held since the last one was dealt with */
		size_t n_held;
		bool is_over; /* recording ends */
	} until;
	KYMO_VEC(bool) described; /* events that the metadata have, by index */
	size_t n_described;       /* how many the metadata on the disk have */
	KYMO_VEC(uint64_t) told;  /* what the user was warned of: many processes have the same to say */
	KYMO_VEC(char *) held;    /* warnings that wait until it is known whether it is done this way */
	bool is_holding;
	bool lacks_thread_ids; /* of some process: its records carry the process id */
	bool has_run;          /* the launched command may have run code of its own; it can't be started again */
	struct recording_looks looks;
	bool has_told_refusal;
	struct kymo_error *drain_error; /* of recording_drain_meanwhile() */
	struct kymo_error *refusal;     /* why the process is recorded through the kernel */
	struct kymo_record_result result;
};

#endif
