/*
 * A recording from start to end: the command or process, the probes, the rings, the trace.
 */
#ifndef KYMO_RECORD_RECORD_H
#define KYMO_RECORD_RECORD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "probe/spec/spec.h"
#include "record/handover.h"

/* In this order; progress.c has the table. */
enum kymo_record_phase {
	KYMO_RECORD_PLANNING,
	KYMO_RECORD_RUNNING,
	KYMO_RECORD_STOPPING,
	KYMO_RECORD_DONE,
};

struct kymo_record_progress {
	double seconds;      /* since recording began */
	uint64_t bytes;      /* recorded */
	uint64_t aggregated; /* hits, in no record */
	uint64_t events;     /* the same, about: estimated from the first records of each packet */
	uint64_t lost;       /* events */
	size_t n_sites;
	size_t n_processes; /* that are recorded or followed now; 0 where the kernel alone knows */
	enum kymo_record_phase phase;
	bool command_ended; /* recording goes on for processes that it has left running */
};

/* What makes the records. */
enum kymo_record_backend {
	KYMO_RECORD_AUTO, /* code in the processes; the kernel for `all`, and for what a process refuses */
	KYMO_RECORD_INPROC,
	KYMO_RECORD_KERNEL, /* the kernel's uprobes alone: no process' memory is touched */
	KYMO_RECORD_PTRACE, /* system calls alone, by tracing the processes that make them */
};

/* What branches are made of. */
enum kymo_record_branch_source {
	KYMO_RECORD_BRANCHES_AUTO, /* the best that the machine and the program allow; the user is told which */
	KYMO_RECORD_BRANCHES_PT,
	KYMO_RECORD_BRANCHES_BTS,
	KYMO_RECORD_BRANCHES_LBR,
	KYMO_RECORD_BRANCHES_CLONES,
	KYMO_RECORD_BRANCHES_STEPS,
};

struct kymo_aggr;
struct kymo_aggr_table;
struct kymo_branch_spec;

/* What the caller, or a signal handler of its, may change while kymo_record() runs. */
struct kymo_record_control {
	volatile sig_atomic_t stop; /* not 0: end the recording early, and in order */
	/* With `overwrite` or `keep`: each time that it changes, the buffers' contents become a recording of their own,
	 * DIRECTORY.1 or the first free number, and recording goes on. */
	volatile sig_atomic_t snapshots;
};

struct kymo_record_options {
	const struct kymo_record_control *control;
	const char *directory; /* "kymo.data" */
	const struct kymo_spec *specs;
	size_t n_specs;
	char *const *command; /* argv to launch, or NULL */
	const pid_t *pids;    /* processes to attach to, each once, where command is NULL */
	size_t n_pids;
	pid_t pid;     /* the first of them, or 0 */
	bool existing; /* with `follow`: children of them that exist already, too */
	enum kymo_record_backend backend;
	bool complete;      /* record every system call, with its memory: by the kernel, or else by tracing */
	size_t string_size; /* of system calls with memory: the most bytes of a string */
	bool all;           /* every process, instead of `pid` and `command`; by the kernel */
	const struct kymo_aggr *aggregations; /* of the specs that say `aggregated` */
	size_t n_aggregations;
	size_t rows_max;     /* of each: 0: KYMO_AGGR_ROWS_DEFAULT */
	size_t stack_depth;  /* the most frames of a stack; 0: all that are found */
	bool frame_pointers; /* pads take stacks by frame pointers, in place of copying them */
	bool no_inline;      /* read no debug information for inlined functions and lines of stacks */
	const struct kymo_branch_spec *branches; /* histories of branches in this code; with specs by clones alone */
	size_t n_branches;
	enum kymo_record_branch_source branch_source;
	size_t tail;          /* branches that are kept for each thread */
	double interval;      /* seconds between their rows in the trace; 0: at the end only */
	double seconds;       /* stop after that long; 0: no limit */
	uint64_t buffer_size; /* bytes a CPU */
	bool overwrite;
	uint64_t keep;      /* bytes: the newest records, in memory until the end; 0: all, in the directory */
	double after;       /* seconds that recording goes on after a condition (KYMO_AGGR_UNTIL) has held */
	size_t n_snapshots; /* how many conditions take a snapshot; the last one ends the recording; 0: the first one
			       ends it */
	bool follow;        /* all descendants, too; of `pid`: those that are made from now on */
	bool displace_faulting; /* displace also what may fault, in processes that handle faults */
	bool allow_write;       /* probes may write registers of the program */
	bool no_fast_reads;     /* pads read all memory by system calls; else by plain loads where that is proven to
				   work */
	bool fast_reads;        /* … by plain loads from the start; why that does not work is told */
	bool no_rseq;           /* for measuring: never use restartable sequences */
	/* Called about five times a second and once at the end, from the thread that called kymo_record(). May be NULL.
	 */
	void (*progress)(const struct kymo_record_progress *progress, void *data);
	/* A sentence that the user should see although recording goes on. May be NULL. */
	void (*warn)(const char *sentence, void *data);
	/* The same for what was requested and done. May be NULL. */
	void (*tell)(const char *sentence, void *data);
	/* Called once a second and once at the end, with the tables of the aggregations. May be NULL. */
	void (*tables)(const struct kymo_aggr_table *tables, size_t n, void *data);
	void *data;
};

struct kymo_hub;
struct kymo_tree;

struct kymo_record_result {
	int command_status; /* as waitpid() gives it; of a launched command */
	bool command_ended;
	uint64_t bytes, lost;
	uint64_t lost_in_vforks; /* of those, hits of vfork children before their exec */
	uint64_t aggregated;     /* hits that are in aggregations, and no records */
	uint64_t in_no_row;      /* … for whose keys there was no room: the most of any table */
	uint64_t events;
	uint64_t branches;      /* branches that were taken */
	uint64_t kept_branches; /* … and are in the trace, among `events` */
	bool are_overwritten;   /* more than `branches` were taken */
	bool has_crash;         /* with branches: a signal like SIGSEGV or SIGABRT has ended a process */
	bool is_estimate;       /* `events` is about right, as in the progress */
	size_t n_sites;
	bool were_full;      /* events were lost as buffers of `buffer_size` were full */
	bool were_small_yet; /* events were lost in buffers that had not got all of their memory, which comes with use
			      */
	uint64_t full_size;  /* the same of smaller ones, which some processes have: their size; or 0 */
	double seconds;
	uint64_t stopped_ns;         /* how long the threads were stopped while probes were put in */
	pid_t pid;                   /* that was asked for, or launched; with `follow`, and where something is shared */
	struct kymo_tree *shared;    /* through which others trace what was followed: kymo_record_serve(),
					kymo_record_leave(). NULL: none does */
	struct kymo_hub *shared_hub; /* the same, where calls were recorded by tracing */
};

/*
 * Record until the time is up, the process (with `follow`: the last of the tree) ends, or `control->stop` is set. On an
 * error kymo leaves nothing in the process; a launched command that had not begun is killed, and one that had begun
 * runs on. What was recorded before the error is complete in the directory.
 */
struct kymo_error *kymo_record(const struct kymo_record_options *options, struct kymo_record_result *ret);

#endif
