/* What the files of the room share: a recording of branches while it goes on. Private to the room. */
#ifndef KYMO_BRANCH_STATE_H
#define KYMO_BRANCH_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "branch/blocks.h"
#include "branch/branch.h"
#include "branch/ring.h"
#include "branch/space.h"
#include "branch/walk.h"

struct kymo_engine;
struct kymo_hub;

/* What a process has mapped, for all of its threads. */
struct branch_process {
	pid_t pid;
	uint32_t space;                  /* 0: not read yet, not available, or unnumbered */
	struct branch_space *unnumbered; /* its own, where there are too many; else NULL */
	bool is_changed;                 /* it has to be read again */
};

struct branch_thread {
	struct kymo_engine *engine; /* the hub's reference; NULL: it has ended */
	struct branch_process *process;
	pid_t tid;
	char name[16];
	struct branch_ring ring;
	uint64_t n_anchors; /* that were added to it */
	/* At the last stop. */
	bool has_begun;      /* there was one */
	bool is_inside;      /* it is stepped */
	bool is_at_call_end; /* that stop was the end of a system call: a step's end may be told of the same */
	struct kymo_walk now;
	bool expects_handler;      /* a signal that has a handler was told since */
	uint64_t called_from;      /* after the last call in chosen code */
	bool is_in_pad;            /* of a recording: it has to run freely */
	bool is_of_32_bits;        /* likewise: its code is not understood */
	bool is_born;              /* with clones: it was made since, and its word is what an earlier thread left */
	struct branch_perf *perf;  /* with hardware: what records; NULL: it was not begun, or it was read */
	uint64_t block;            /* with clones: its FS base; 0: not known, or its ring was read */
	bool is_overwritten;       /* with clones: its history had more than its ring holds */
	bool may_push;             /* flags, by its next step */
	KYMO_VEC(uint64_t) breaks; /* addresses of its breakpoints */
	/* For kymo_branches_thread(). */
	bool has_ended;
	int status, signal;
	uint64_t at, address;
	uint32_t at_space;
	struct branch_thread *next_ended; /* of those whose rings are kept */
};

enum branch_warning {
	BRANCH_WARNING_THREAD,      /* one could not be attached to */
	BRANCH_WARNING_BREAKPOINTS, /* not all are in */
	BRANCH_WARNING_MEMORY,
	BRANCH_WARNING_PAD, /* a thread came into one, and is not stepped any more */
	BRANCH_WARNING_HUB, /* the one that was joined is over */
	BRANCH_WARNING_32_BITS,
	BRANCH_WARNING_FORGOTTEN, /* rings of threads that have ended */
	BRANCH_WARNING_SHORT,     /* rings of threads that live */
	BRANCH_WARNING_SPACES,    /* there were too many changes of what is mapped */
	BRANCH_WARNING_FILES,
	BRANCH_WARNING_GAP,      /* a block can't follow the one before it */
	BRANCH_WARNING_LOST,     /* hardware has lost some */
	BRANCH_WARNING_RECORDER, /* … could not be told to record a thread */
	BRANCH_WARNINGS,
};

struct kymo_branches {
	struct kymo_branches_options options;
	struct kymo_hub *hub; /* NULL: it was closed */
	pid_t pid;
	bool is_all;            /* no functions were chosen */
	bool is_begun;          /* the command runs, or did */
	bool is_executed;       /* with hardware: the command is a program of its own */
	_Atomic int n_threads;  /* with an engine of ours, that have not ended */
	_Atomic int status;     /* the command's */
	_Atomic bool has_ended; /* the command */
	_Atomic uint64_t n_taken;
	_Atomic unsigned int warnings; /* a bit each */
	unsigned int told;
	/* Of callbacks; of the recorder's thread when engines are detached. */
	KYMO_VEC(struct branch_thread *) threads;
	KYMO_VEC(struct branch_process *) processes;
	struct branch_thread *last; /* that was found */
	struct branch_spaces spaces;
	uint64_t begin_stamp, last_stamp;
	size_t live_kept;  /* branches that the rings of living threads have room for */
	size_t ended_kept; /* … of threads that have ended */
	struct branch_thread *first_ended, *last_ended;
	_Atomic bool is_ending;
	_Atomic int n_pushing; /* threads that may push flags by their next step */
	bool are_clones_to_go; /* a thread waits for that */
	bool are_clones_out;
	bool is_overwritten;                        /* the history of a thread */
	KYMO_VEC(struct branch_function) functions; /* that are cloned; sorted */
	bool *met;                                  /* by spec: a function was found */
	struct kymo_file_id *named;                 /* by spec: what its name means */
	char source[256];
};

#endif
