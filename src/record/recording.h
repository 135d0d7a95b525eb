/* What the files of this room share: a recording while it goes on. */
#ifndef KYMO_RECORD_RECORDING_H
#define KYMO_RECORD_RECORDING_H

#include "base/vec.h"
#include "probe/install/session.h"
#include "probe/look/look.h"
#include "probe/memory/data.h"
#include "proc/proc.h"
#include "record/clock.h"
#include "record/output.h"
#include "record/record.h"
#include "ring/ring.h"

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
	struct output_place *places; /* where each ring's packets go */
	size_t n_rings;
	size_t users;             /* targets, and sources that have borrowed the probes */
	uint64_t buffer_size;     /* bytes a CPU */
	bool is_named;            /* of a process that was asked for, or of what that has executed */
	struct source_hits *hits; /* what waits to be aggregated; or NULL */
};

/* A process that is recorded, or at least followed. */
struct target {
	struct kymo_process *process;
	pid_t pid, parent;     /* parent 0: not known */
	int32_t inner_pid;     /* as it knows itself: what its records say */
	struct source *source; /* NULL: nothing of it is recorded */
	bool is_sharing;       /* runs in its parent's memory until its exec */
	bool is_starting, has_threads;
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
	enum kymo_record_backend way; /* of it all: INPROC, KERNEL or PTRACE */
	const struct kymo_spec
		*calls_spec; /* in `specs`, behind all others: system calls that are none of the process's; or NULL */
	char **reasons;      /* per spec of the options: why it is the kernel's; or NULL */
	struct recording_kernel *kernel; /* NULL: the kernel is no source of events */
	struct recording_calls *calls;   /* system calls that are seen from outside; NULL: none are */
	pid_t child; /* the command where nobody traces it, or 0; it begins when `go` is written to, and ends when that
			is closed instead */
	int go;      /* or -1 */
	struct aggregating *aggregating; /* or NULL: nothing is aggregated */
	struct output output;
	bool has_output, is_described; /* there is a directory; with what its metadata say of the target */
	struct clock_sample begin;
	uint64_t begin_ns, next_progress_ns, next_flush_ns, next_seal_ns, next_heed_ns;
	bool has_begun;                /* a launched command has run its first instruction of its own */
	bool is_ending;                /* probes go out; nobody new gets any */
	uint64_t lost, lost_in_vforks; /* by sources that are no more */
	size_t n_sites;                /* the most that a process has had */
	int snapshots;                 /* that were asked for, of kymo_record_snapshots */
	KYMO_VEC(bool) described;      /* events that the metadata have, by index */
	size_t n_described;            /* how many the metadata on the disk have */
	KYMO_VEC(uint64_t) told;       /* what the user was warned of: many processes have the same to say */
	KYMO_VEC(char *) held;         /* warnings that wait until it is known whether it is done this way */
	bool is_holding;
	bool lacks_thread_ids; /* of some process: its records carry the process id */
	bool has_run;          /* the launched command may have run code of its own; it can't be started again */
	struct recording_looks looks;
	bool has_told_refusal;
	struct kymo_error *drain_error; /* of recording_drain_meanwhile() */
	struct kymo_error *refusal;     /* why the process is recorded through the kernel */
	struct kymo_record_result result;
};

/* Tell the user; a sentence that differs from an earlier one in numbers only, not again. */
void recording_warn(struct recording *recording, const char *format, ...) __attribute__((format(printf, 2, 3)));
void recording_tell(const char *sentence, void *data); /* the same of a sentence; `data` is the recording */

/* Tell what was held back (`is_holding`), or forget it; nothing is held back from then on. */
void recording_release_warnings(struct recording *recording, bool tell);

/* ---- progress.c ------------------------------------------------------------------------------ */

/* Tell who asked for it how far the recording is: "planning", "recording", "stopping" or "done". */
void recording_progress(struct recording *recording, enum kymo_record_phase phase);

/* Somebody wants it to end, or the time that it was given is over. */
bool recording_is_time_up(const struct recording *recording);

/* ---- wanted.c -------------------------------------------------------------------------------- */

/* Whether more than one process is asked for, by ids or as children that exist. */
bool recording_has_several(const struct recording *recording);

/* NOT_FOUND: of several that nobody follows this one has no file with a probe, so it is to be left alone. */
struct kymo_error *recording_check_any_met(const struct recording *recording, const struct target *target);

/* Whether markers are asked for, which only the way through the process can turn on. */
bool recording_has_markers(const struct kymo_record_options *options);

/* Whether system calls are asked for. */
bool recording_has_syscalls(const struct kymo_record_options *options);

/* Whether addresses are asked for, in memory of no file: of one process that runs, and nothing for the kernel. */
bool recording_has_addresses(const struct kymo_record_options *options);

/* Whether a spec has a filter or an expression. */
bool recording_computes(const struct kymo_record_options *options);

/* What can't be asked for together: USAGE. */
struct kymo_error *recording_check_options(const struct recording *recording);

/* ---- targets.c: processes and their sources -------------------------------------------------- */

/* Add a process, which is the target's from here on; NULL when memory is out. */
struct target *recording_add_target(struct recording *recording, struct kymo_process *process,
				    const struct target *parent);

/* It has ended, or is let go: with the last one of a source that is drained and freed. Frees the target. */
struct kymo_error *recording_drop_target(struct recording *recording, struct target *target);

/* Probes for a target that has none, not yet in. */
struct kymo_error *recording_create_source(struct recording *recording, struct target *target);

/* Nothing of it is recorded: what has come of its probes is taken out, and it leaves the recording. Frees the target.
 */
void recording_give_back(struct recording *recording, struct target *target);

/* The target records by this source, which may be NULL. */
void recording_use_source(struct target *target, struct source *source);

/* How many bytes a CPU the next process has that was not asked for: all of those have no more than one that was; but
 * for the least of each. */
uint64_t recording_share_of(const struct recording *recording);

/* The rings of a forked child, with the probes of `parent`. NULL when memory is out. */
struct source *recording_borrow_source(struct recording *recording, struct source *parent, struct kymo_adopted *adopted,
				       pid_t pid);

/* The directory and its first metadata, if they are not there yet. */
struct kymo_error *recording_make_output(struct recording *recording);

/* Put in what is mapped and not in yet. */
struct kymo_error *recording_install(struct recording *recording, struct source *source);

/* ---- begin.c --------------------------------------------------------------------------------- */

/* The process of the options, with probes in it; it goes on when it is resumed. An error leaves what was done to it so
 * far. */
struct kymo_error *recording_attach(struct recording *recording);

/* The same for the command of the options, up to the first instruction of its own. */
struct kymo_error *recording_launch(struct recording *recording);

/* Take out what recorders that are gone have left in a process. BUSY: a thread is in it still. */
struct kymo_error *recording_clear_remains(struct kymo_process *process);

/* ---- several.c: processes beside the first --------------------------------------------------- */

/* Put probes into the other processes that are asked for, and into children that exist. A process that refuses is told
 * of; an error is about the recording. The first process runs on. */
struct kymo_error *recording_attach_others(struct recording *recording);

/* From outside, children that exist already are not recorded: the user is told, if there are any and they were not to
 * be left out. */
void recording_tell_left_out(struct recording *recording);

/* The user is told that this process is not in the recording; consumes the error. */
void recording_tell_refused(struct recording *recording, pid_t pid, struct kymo_error *error);

/* ---- family.c: who is recorded --------------------------------------------------------------- */

/* Whether its process has ended, or has no memory any more, as `error` of a request to it may say. */
bool recording_is_dead(const struct target *target, const struct kymo_error *error);

/* Give a process that runs its probes and rings. It is stopped afterwards. */
struct kymo_error *recording_probe_running(struct recording *recording, struct target *target);

/* A start-up event of a target, which is stopped. `done_ret`: it may run on its own. */
struct kymo_error *recording_start_up(struct recording *recording, struct target *target, enum kymo_startup_event event,
				      bool *done_ret);

/* Deal with what the tree has to tell, for some milliseconds at most. An error is about the recording, not about one
 * process. */
struct kymo_error *recording_follow(struct recording *recording);

/* Drain rings while the tree waits for somebody who has joined. An error is recording_follow()'s. `data` is the
 * recording. */
void recording_drain_meanwhile(void *data);

/* A warning for each spec that no process has met. */
void recording_tell_unmet(struct recording *recording);

/* ---- linger.c: the end, for others ----------------------------------------------------------- */

/* The recording is over: let go of all processes; the tree becomes the result's, if others need it. */
void recording_share(struct recording *recording);

/* ---- snapshot.c ------------------------------------------------------------------------------ */

/* Take a snapshot if one was asked for since the last time. That there is one, or why not, is told. */
void recording_snapshot(struct recording *recording);

/* ---- kernel_run.c ---------------------------------------------------------------------------- */

/* The whole of a recording from outside, through the kernel or by tracing alone, from launch or attach to its last
 * packet. */
struct kymo_error *recording_run_kernel(struct recording *recording);

/* Whether the child, if there is one, has ended; with its status in the result. */
bool recording_child_ended(struct recording *recording);

/* ---- fallback.c: from the process to the kernel ---------------------------------------------- */

/* The way that is asked for, or is the best one to be had; into `way`. PERMISSION, NOT_FOUND: none has all that is
 * wanted. */
struct kymo_error *recording_choose_way(struct recording *recording);

enum recording_way_out {
	RECORDING_NO_WAY,
	RECORDING_MIXED,     /* begin anew, with more of the specs for the kernel */
	RECORDING_BY_KERNEL, /* all of it is the kernel's */
	RECORDING_BY_PTRACE, /* all of it is system calls, which are traced */
};

/*
 * The recording in the process could not begin: what the kernel could make of it. NO_WAY: the error may have got a
 * remark. MIXED: `reasons` has more. The process is still as the attempt has left it.
 */
enum recording_way_out recording_way_out(struct recording *recording, struct kymo_error **refusal);

/* The kernel's attempt after a refusal (or without one) has come to `error`: tells the user why, or returns the error
 * that says more. */
struct kymo_error *recording_fell_back(struct recording *recording, struct kymo_error *error);

/* ---- mixed.c: what the process refuses goes through the kernel, and the rest does not -------- */

/* Order `specs` by way. To be called before anything else, and whenever `reasons` has changed. */
struct kymo_error *recording_divide(struct recording *recording);

/* The kernel's half for `recording->pid`, where it has any specs. */
struct kymo_error *recording_open_mix(struct recording *recording);

/*
 * Put the kernel's half into what the process of `source` has mapped since the last time; before the other half, which
 * keeps away from it. The process is left running or stopped as it was. `new_ret`: whether there was something; may be
 * NULL.
 */
struct kymo_error *recording_mix(struct recording *recording, struct source *source, bool *new_ret);

/* The same for files that it has not mapped yet. */
struct kymo_error *recording_finish_mix(struct recording *recording);

/* Both halves begin, and end, at one moment: within one stop of the process. `data`: the recording. */
void recording_begin_together(void *data);
struct kymo_error *recording_end_together(struct recording *recording);

/* Tell the user what goes through the kernel: each of `reasons`, and why all of it does, if that is yet another one (or
 * NULL). */
void recording_tell_reasons(struct recording *recording, const struct kymo_error *refusal);

/* ---- looks.c: whether probes are in still ---------------------------------------------------- */

/* Look at the text of those processes whose turn it is. An error is about the recording. */
struct kymo_error *recording_look(struct recording *recording);

/* The target is about to be taken out of, or to be freed: its gaps are told, and are in the trace. */
void recording_end_look(struct recording *recording, struct target *target);

/* ---- describe.c: what the metadata says ------------------------------------------------------ */

/* Command, pid, mode. */
struct kymo_error *recording_describe_target(struct recording *recording);

/* The table of processes: `target` has begun to be what it is, the same program as its `maker`'s (NULL: another), or is
 * no more. */
void recording_note_begin(struct recording *recording, const struct target *target, const struct target *maker);
void recording_note_end(struct recording *recording, const struct target *target);

/* The table of threads: `tid` is new, or is about to be gone, and called so; "" is nothing. */
void recording_note_thread(struct recording *recording, const struct target *target, pid_t tid, bool is_new,
			   const char *comm);

/*
 * Names of all threads that live now, or of those that are in the table: new ones of who is followed are told, and
 * would be two threads if they were looked at before. Those that change it between two looks, or come and go and nobody
 * is followed, stay without.
 */
void recording_note_threads(struct recording *recording, bool all);

/* A source has started, or is about to be freed: the metadata will tell whether its threads can be told apart. */
void recording_note_thread_ids(struct recording *recording, const struct source *source);

/* (Re)write the metadata, with the events that the probes have by now and the clock as it is known by now. */
struct kymo_error *recording_write_metadata(struct recording *recording);

/* The same, if there are events that the metadata on the disk lack: before their first record is written. */
struct kymo_error *recording_update_metadata(struct recording *recording);

/* ---- packets.c: from rings to streams -------------------------------------------------------- */

/* Once the probes have rings. */
struct kymo_error *source_open_rings(struct recording *recording, struct source *source);

/* Warn that calls of a library may be missing: its process has not waited for the probes. */
void recording_tell_late(struct recording *recording, const struct source *source);

/* No producer is left: what lies in open packets, and losses behind the last one. Its streams are free for others then.
 */
struct kymo_error *source_finish_rings(struct recording *recording, struct source *source);

/* Write what is complete: one round over all rings. `n_ret` packets. */
struct kymo_error *recording_drain(struct recording *recording, size_t *n_ret);

/* Write how many hits vfork children have had so far. */
struct kymo_error *recording_note_vforks(struct recording *recording);

/* Close what is half full, with producers at work. */
void recording_flush(struct recording *recording);

/* All that were lost so far, those of vfork children too. */
uint64_t recording_lost(const struct recording *recording);

/* Places with probes: the most that a process has had, and the kernel's. */
size_t recording_n_sites(const struct recording *recording);

#endif
