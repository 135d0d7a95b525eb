/* The threads of a process, and how pads tell them apart. */
#ifndef KYMO_PROBE_THREADS_THREADS_H
#define KYMO_PROBE_THREADS_THREADS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_adopted;
struct kymo_probes;
struct kymo_process;

/* Threads have their thread pointers: tids can be read. The process is stopped, or has been running for long. */
struct kymo_error *kymo_probes_set_live(struct kymo_probes *probes);

/* A launched program is about to run on its own: the process is stopped, and all its threads can be looked at. */
struct kymo_error *kymo_probes_started(struct kymo_probes *probes);

/*
 * `process`, which the probes are in (or an adopted child), has made a thread and is held for it. This asks for
 * kymo_process_freeze_birth() as long as only the process id is recorded. From now on its threads are told apart, if
 * they all have their ids at one offset; else a warning is given. All of it is stopped then; the caller resumes it.
 * GONE, BUSY as kymo_process_stop() has them.
 */
struct kymo_error *kymo_probes_tell_apart(struct kymo_probes *probes, struct kymo_process *process);

/* Whether records of several threads carry, or may carry, the process id, as nothing tells where its threads keep
 * theirs. Not before it has started. */
bool kymo_probes_lack_thread_ids(const struct kymo_probes *probes);

/* The program is being launched: kymo_probes_started() will come. */
void kymo_probes_starting(struct kymo_probes *probes);

/* Children that are adopted from here on have so many bytes a CPU at the most; 0, as at first: no such bound. Of no
 * ring they have more. */
void kymo_probes_set_child_buffer(struct kymo_probes *probes, uint64_t bytes);

/*
 * A process that was born by fork from the one that `probes` are in, and stands stopped at its first instruction: it
 * has the pads and the text already, and records nothing. Let it record, into rings of its own (`ret`). It is taken out
 * of by kymo_remove() like any other. The probes must stay until it has ended or been taken out of. A child of one that
 * has made reading the time stamp counter a fault can't read it either, and stays as it is: `ret` is NULL then. `maker`
 * is the process that forked it, and may have ended; `makers` are its rings, or NULL.
 */
struct kymo_error *kymo_probes_adopt(struct kymo_probes *probes, struct kymo_process *child, struct kymo_process *maker,
				     const struct kymo_adopted *makers, struct kymo_adopted **ret);

/* Whether the process looks as if its threads could use restartable sequences: glibc says where, and the user did not
 * forbid it. */
bool probes_may_use_sequences(struct kymo_probes *probes);

/* Give those rings memory that will have the work: of which kind they are follows from whether there are guards, or may
 * be. */
struct kymo_error *probes_prepare_rings(struct kymo_probes *probes);

/* Let a thread begin with that: when all is planned, or before it, where it is likely which rings will be used.
 * Programs of a tree get no such thread: they have little memory at first. */
void probes_prepare_rings_ahead(struct kymo_probes *probes);
/* … and the table of readable memory, if there is one. */
void probes_prepare_rings_early(struct kymo_probes *probes);

/* With the process stopped and guards in: let pads use sequences, if every thread turns out to be registered as glibc
 * does it, or not yet registered. */
struct kymo_error *probes_use_sequences(struct kymo_probes *probes);

/* Read what the stopped moments will ask for, while the process runs. */
void probes_read_ahead(struct kymo_probes *probes);

/* Write state and offsets to all live pages. */
struct kymo_error *probes_write_state(struct kymo_probes *probes, uint8_t state);

/* Add guards as pending sites, when glibc is mapped and has none yet. Leaves them out where one would touch a probe. */
struct kymo_error *probes_add_guards(struct kymo_probes *probes);

/* Guards that are not in yet: there will be none, and no sequences. */
void probes_drop_guards(struct kymo_probes *probes);

#endif
