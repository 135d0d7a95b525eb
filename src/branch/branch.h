/*
 * Histories of branches: how threads got where they are. The source is single steps through a hub, of a command or a
 * process (docs/internals/branches.md).
 *
 * All functions are for one thread, the caller's; the work is done on the hub's thread.
 */
#ifndef KYMO_BRANCH_BRANCH_H
#define KYMO_BRANCH_BRANCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "branch/location.h"
#include "branch/processor.h"
#include "branch/spec.h"

enum kymo_branch_kind {
	KYMO_BRANCH_JUMP,
	KYMO_BRANCH_CALL,
	KYMO_BRANCH_RETURN,
	KYMO_BRANCH_SIGNAL, /* a handler begins; `from` was not executed */
	KYMO_BRANCH_KERNEL, /* the kernel led elsewhere: the end of a handler, a restartable sequence that was aborted
			     */
	KYMO_BRANCH_EXEC,   /* another program begins; no `from` */
	KYMO_BRANCH_ENTER,  /* chosen code is entered from code that is not; no `from` */
	KYMO_BRANCH_ANCHOR, /* no branch: a record of the thread's was made here, at `stamp` */
	KYMO_BRANCH_KINDS,
};

/* A call whose destination the source does not tell; it is not in code that is recorded. */
#define KYMO_BRANCH_UNKNOWN UINT64_MAX

/* With clones `stamp` is that of the anchor before, or, before the first one, of that; in a history without anchors
 * that of its reading. */
struct kymo_branch {
	uint64_t from, to, stamp; /* `to` of a call may be KYMO_BRANCH_UNKNOWN */
	uint32_t space;           /* number of what was mapped then; 0: not known */
	uint8_t kind;             /* enum kymo_branch_kind */
};

struct kymo_clones;
struct kymo_hub;
struct user_regs_struct;

/* Function clones as the source, which the caller puts into the process. All functions are called on the thread of the
 * hub. */
struct kymo_branch_clones {
	struct kymo_hub *hub; /* which has the process, and outlives the recording */
	bool is_running;      /* the process runs, and its threads get their words by the caller */
	uint64_t word;        /* of a thread, from its FS base: cleared before the thread runs */
	/* One more thread is about to run, and may take a ring. */
	void (*is_born)(void *data);
	/* What is in the ring of the thread with that id and FS base (wire/clones.h), once: `ring` has its size. False:
	 * it has none. */
	bool (*take_ring)(uint64_t block, pid_t tid, uint32_t *ring, void *data);
	bool (*is_in)(uint64_t pc, void *data); /* whether that is in a clone */
	/* The registers that a thread would have without clones, which is stopped. False: it is in none, or within an
	 * instruction. */
	bool (*origin)(struct user_regs_struct *registers, void *data);
	void *data;
};

struct branch_hardware;

struct kymo_branches_options {
	const struct kymo_branch_spec *specs; /* outlive the recording, as all here; one of "all": no other counts */
	size_t n_specs;
	size_t tail;                             /* branches that are kept a thread */
	bool follow;                             /* child processes that are made from now on, too, and theirs */
	uint64_t (*stamp)(void);                 /* of now, in the caller's clock */
	const struct kymo_branch_clones *clones; /* the source; NULL: single steps. `pid` is a process that is stopped
						    and has run nothing of its program, or see
						    `is_running` */
	const struct branch_hardware *hardware;  /* the source, where there are no clones; or NULL */
	char *const *command;                    /* to launch; or NULL */
	pid_t pid;                               /* else this process, or that of this thread */
	bool (*is_given_up)(void *data);
	void *data;
};

struct kymo_branches;

/* A command stands before its first instruction until kymo_branches_begin(); a process is stepped from here on. USAGE,
 * NOT_FOUND, BUSY, PERMISSION, GONE. */
struct kymo_error *kymo_branches_open(const struct kymo_branches_options *options, struct kymo_branches **ret);
struct kymo_error *kymo_branches_begin(struct kymo_branches *branches);

/* With clones, before they are made: whether the function at `address` is chosen. */
bool kymo_branches_is_chosen(const struct kymo_branches *branches, uint64_t address);

/* With clones, before their threads run, in the order of `first_site`: those of a file, which outlive the recording. A
 * process that runs has kymo_branches_begin() before they are put in, so that no thread is missed; once more does
 * nothing. NO_MEMORY. */
struct kymo_error *kymo_branches_add_clones(struct kymo_branches *branches, const struct kymo_clones *clones,
					    uint64_t bias, uint32_t first_site);

/* With clones: whether a thread waits until they are out of the process, and that they are. */
bool kymo_branches_clones_are_to_go(const struct kymo_branches *branches);
void kymo_branches_clones_have_gone(struct kymo_branches *branches);

/* Let go of all threads. A command that has not ended by then is the caller's to wait for. */
void kymo_branches_end(struct kymo_branches *branches);

/* Lets go first. NULL is allowed. */
void kymo_branches_destroy(struct kymo_branches *branches);

pid_t kymo_branches_pid(const struct kymo_branches *branches);

/* While it goes on: whether a thread is left, and how many branches were taken. */
bool kymo_branches_has_threads(const struct kymo_branches *branches);
uint64_t kymo_branches_taken(const struct kymo_branches *branches);

/* After kymo_branches_end(): whether more were taken, which the source did not keep. */
bool kymo_branches_are_overwritten(const struct kymo_branches *branches);

/* Whether the command has ended; its status as waitpid() gives it. */
bool kymo_branches_command_ended(const struct kymo_branches *branches, int *status_ret);

/* The function that nothing in the process had, as NOT_FOUND; NULL: all that was asked for was found. */
struct kymo_error *kymo_branches_check_met(const struct kymo_branches *branches);

/* Sentences that the user should see, once each: NULL when there is no more. Valid until the next call. */
const char *kymo_branches_warning(struct kymo_branches *branches);

/* ---- after kymo_branches_end() --------------------------------------------------------------- */

struct kymo_branch_thread {
	pid_t tid, pid;
	char name[16];
	uint64_t taken;
	bool is_overwritten; /* more than `taken` were: it counts what the source had kept */
	size_t kept;         /* of them, the newest, and anchors */
	size_t n_anchors;    /* among these */
	bool has_ended;      /* `status` is as waitpid() gives it, of the thread */
	int status;
	int signal;  /* the last one that would have ended it; 0: none */
	uint64_t at; /* where it stood then */
	uint32_t at_space;
	uint64_t address; /* that it could not access; 0 where there is none */
};

/* Threads in the order in which they were met. */
size_t kymo_branches_threads(const struct kymo_branches *branches);
void kymo_branches_thread(const struct kymo_branches *branches, size_t i, struct kymo_branch_thread *ret);

/* Branch `k` of thread `i`, 0 the oldest that is kept. */
const struct kymo_branch *kymo_branches_at(const struct kymo_branches *branches, size_t i, size_t k);

#endif
