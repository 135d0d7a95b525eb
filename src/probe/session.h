/*
 * The probes of one recording in one process: from the user's words to patched text, and back.
 *
 *	create		nothing happens to the process
 *	resolve		look at what is mapped, find sites, plan them; the process runs
 *	install		memory, pads, journal, text; the process is stopped for moments
 *	remove		text, pads, memory
 *
 * resolve and install are repeated while a launched program maps its libraries. The order of steps, and what holds when
 *kymo or the process dies between any two of them, is in docs/internals/probing.md.
 */
#ifndef KYMO_PROBE_SESSION_H
#define KYMO_PROBE_SESSION_H

#include "base/error.h"
#include "probe/spec.h"
#include "proc/proc.h"
#include "wire/shared.h"

struct kymo_probes;
struct kymo_events;
struct kymo_offline;

struct kymo_probes_options {
	struct kymo_events *events; /* of the whole recording; must outlive the probes */
	const char *directory;      /* for kymo status */
	uint64_t buffer_size;       /* bytes a CPU */
	bool overwrite;
	bool is_tight;                     /* one of many that share a bound: no ring is larger than the CPUs' own */
	bool no_rseq;                      /* never use restartable sequences */
	const struct kymo_offline *kernel; /* places that the kernel has breakpoints on for the same recording, or NULL;
					      must outlive the probes */
	bool is_one_of_many;               /* of a tree, mostly short: less memory is there at once */
	bool is_followed;                  /* the recorder hears of new threads: kymo_probes_tell_apart() will come */
	bool displace_faulting;            /* also what may fault, in a process that handles faults */
	bool has_addresses;                /* what specs say of addresses is said of this process */
	void (*has_begun)(void *data); /* pending sites were put in, and the process is still stopped: what is to begin
					  with them; or NULL */
	/* A sentence that the user should see although all goes on. */
	void (*warn)(const char *sentence, void *data);
	void *data;
};

/* What an event's sites are. */
enum kymo_event_kind {
	KYMO_EVENT_PLACE,  /* some instruction */
	KYMO_EVENT_ENTRY,  /* where a function is entered */
	KYMO_EVENT_RETURN, /* where it is left: several sites */
	KYMO_EVENT_MARKER,
	KYMO_EVENT_SYSCALL,     /* a system call of one number is made, at any place */
	KYMO_EVENT_SYSRET,      /* any has come back */
	KYMO_EVENT_AGGREGATION, /* nothing of the process: rows of an aggregation */
};

/* What a record of it holds. */
struct kymo_event_field {
	char *name;
	enum kymo_type type;
};

/* One event: a spec at a place of a file. Strings belong to the table. */
struct kymo_probe_event {
	uint32_t id;
	enum kymo_event_kind kind;
	uint64_t function_offset; /* of ENTRY and RETURN: of the function's entry in the file */
	char *name;               /* "libc:malloc" */
	const struct kymo_spec *spec;
	struct kymo_fetch args[KYMO_EVENT_MAX_ARGS]; /* how the values are got: one a field, or one for all
							(KYMO_FETCH_PAYLOAD) */
	size_t n_args;
	struct kymo_event_field fields[KYMO_EVENT_MAX_ARGS];
	size_t n_fields;
	bool has_stack_pointer;         /* the last of them is KYMO_STACK_POINTER_FIELD, and nobody has asked for it */
	char *source, *format;          /* of a marker: "server.c:120", its format; or NULL */
	char *path, *symbol, *build_id; /* the file, "malloc+0x4", hex */
	uint64_t offset;                /* in the file */
	bool is_used;                   /* some process has it; others are for places that were refused */
};

/*
 * All events of a recording, which may have many processes: the same spec at the same place of the same file (by path,
 * build-id and offset) is one event, whichever process has it. Grows only; items move when it does.
 */
struct kymo_error *kymo_events_create(struct kymo_events **ret);
void kymo_events_destroy(struct kymo_events *events);
const struct kymo_probe_event *kymo_events_items(const struct kymo_events *events, size_t *n);

/* Some process has it. */
void kymo_events_use(struct kymo_events *events, size_t index);

/* Add one, or find the one that is the same; the strings of `event` are copied, its id is ignored. `ret` is its index;
 * its id is that plus 1. USAGE when there are too many, NO_MEMORY. */
struct kymo_error *kymo_events_add(struct kymo_events *events, const struct kymo_probe_event *event, size_t *ret);

/*
 * The events of the system calls that `spec` wants: one for each number, and one for all returns. To be called before a
 * process with that spec is looked at. `name_of` may give NULL. `has_memory`: they are recorded by who can copy memory:
 * with the stack pointer and copies, and returns with their number; no pad makes such records.
 */
struct kymo_error *kymo_events_add_syscalls(struct kymo_events *events, const struct kymo_spec *spec,
					    const char *(*name_of)(uint64_t number), bool has_memory);

/* The rings of a forked child: as many as its parent's, at the same addresses, and smaller. */
struct kymo_adopted;

/* What the recorder needs of the shared memory. */
struct kymo_shared_ring {
	struct kymo_wire_ring *shared;
	const uint8_t *data;
	uint64_t subbuffer_size;
	uint32_t n_subbuffers;
	uint32_t cpu;
	bool is_sequenced; /* kymo_pad_close_ring() must be called before a packet can be closed from outside */
};

/* `process` and `specs` must outlive the result. */
struct kymo_error *kymo_probes_create(struct kymo_process *process, const struct kymo_spec *specs, size_t n_specs,
				      const struct kymo_probes_options *options, struct kymo_probes **ret);

/* Free what this process holds; the target is not touched. NULL is allowed. */
void kymo_probes_destroy(struct kymo_probes *probes);

/*
 * Look at files mapped since the last time. UNSAFE: a probe named exactly has no safe place; NOT_FOUND: a file that a
 * spec names is mapped, but has no such function (the nearest names are listed). For globs such functions are left out,
 * and a warning says how many and why.
 */
struct kymo_error *kymo_probes_resolve(struct kymo_probes *probes);

/* Behind an error that is UNSAFE: what it says of spec `spec`, if that is a reason, too; else NULL. All specs that are
 * refused have one. The string is the probes'. */
const char *kymo_probes_refusal(const struct kymo_probes *probes, size_t spec);

/* NOT_FOUND for the first spec that has met no file yet, with what the process has mapped. */
struct kymo_error *kymo_probes_check_all_found(struct kymo_probes *probes);

/* The same for one spec. */
struct kymo_error *kymo_probes_check_found(struct kymo_probes *probes, size_t spec);

/* How many sites are planned and not installed. */
size_t kymo_probes_pending(const struct kymo_probes *probes);

/*
 * Put the pending sites in. Leaves the process running if it was, stopped if it was. `stopped_ns_ret` is increased by
 * the time for which it was stopped here. On an error none of the pending sites is in; those put in before stay.
 */
struct kymo_error *kymo_probes_install(struct kymo_probes *probes, uint64_t *stopped_ns_ret);

/* Stop the process, which runs: while it is held nobody else changes its text. kymo_process_resume() ends that. */
struct kymo_error *kymo_probes_hold(struct kymo_probes *probes);

/* Threads have their thread pointers: tids can be read. The process is stopped, or has been running for long. */
struct kymo_error *kymo_probes_set_live(struct kymo_probes *probes);

/* A launched program is about to run on its own: the process is stopped, and all its threads can be looked at. */
struct kymo_error *kymo_probes_started(struct kymo_probes *probes);

/*
 * `process`, which the probes are in (or an adopted child), has made a thread and is held for it
 * (kymo_process_hold_birth(), which is asked for here as long as only the process id is recorded). From now on its
 * threads are told apart, if they all have their ids at one place; else a warning is given. All of it is stopped then;
 * the caller resumes it. GONE, BUSY as kymo_process_stop() has them.
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
 * is who forked it, and may have ended; `makers` are its rings, or NULL.
 */
struct kymo_error *kymo_probes_adopt(struct kymo_probes *probes, struct kymo_process *child, struct kymo_process *maker,
				     const struct kymo_adopted *makers, struct kymo_adopted **ret);

/* Free what this process holds. NULL is allowed. */
void kymo_adopted_destroy(struct kymo_adopted *adopted);

/* What kymo_probes_ring(), kymo_probes_are_muted() and kymo_probes_lost_in_vforks() are for the process that the probes
 * are in. */
struct kymo_shared_ring kymo_adopted_ring(const struct kymo_adopted *adopted, const struct kymo_probes *probes,
					  size_t i);

/*
 * Rings begin with a part of their memory, and get more when one is used: here. `adopted` is the child whose rings they
 * are, or NULL. true: some have more now, and perhaps not all; call again at once.
 */
bool kymo_probes_grow(struct kymo_probes *probes, struct kymo_adopted *adopted);

/* Whether ring `i` has all of its memory: packets may be released from then on. */
bool kymo_probes_is_ring_whole(const struct kymo_probes *probes, const struct kymo_adopted *adopted, size_t i);

bool kymo_adopted_is_muted(const struct kymo_adopted *adopted);

/* KYMO_FAULT_…: faults that the child was seen to handle, and its parent not. Of its text what may cause them is out.
 */
unsigned int kymo_adopted_faults(const struct kymo_adopted *adopted);
uint64_t kymo_adopted_lost_in_vforks(const struct kymo_adopted *adopted);

size_t kymo_probes_n_sites(const struct kymo_probes *probes);

/* Rings exist after the first install. */
size_t kymo_probes_n_rings(const struct kymo_probes *probes);
struct kymo_shared_ring kymo_probes_ring(const struct kymo_probes *probes, size_t i);

/*
 * Libraries that are loaded later. A thread that has loaded one waits in a pad for up to half a second, until the
 * recorder has answered: who watches looks every millisecond.
 */
bool kymo_probes_are_watching(const struct kymo_probes *probes);

/* From now on requests are answered. Before, nobody waits. */
void kymo_probes_watch(struct kymo_probes *probes);

bool kymo_probes_are_asked(const struct kymo_probes *probes);

/*
 * Look at what is mapped now, put probes in, and let threads that wait go on, also on an error. `has_new`: something
 * else has put some in, for these requests. `late_ret`: a thread has gone on before, and calls of a library may be
 * missing, which is known of those that are there; that one which has come and gone meanwhile had none of the probes is
 * not.
 */
struct kymo_error *kymo_probes_answer(struct kymo_probes *probes, bool has_new, bool *late_ret,
				      uint64_t *stopped_ns_ret);

/* The same of what was not answered: the process has ended. False for a recording that has left it. */
bool kymo_probes_were_too_late(struct kymo_probes *probes);

/* Threads are about to set handlers of faults, and wait for kymo_probes_heed_handlers(): of the process, or of an
 * adopted child. */
bool kymo_probes_are_handlers_set(const struct kymo_probes *probes, const struct kymo_adopted *adopted);

/*
 * See whether the process has come to handle faults: then the sites that displace what may fault are planned anew, and
 * taken out where there is no other plan, with a warning; of the `n` children that were adopted they are taken out.
 * They are taken out of a child alone that handles faults which the process does not handle: it may have fewer rights,
 * and must not have a say in what is recorded of the others. The processes run; they are stopped for that. An error
 * leaves those sites out.
 */
struct kymo_error *kymo_probes_heed_handlers(struct kymo_probes *probes, struct kymo_process *const *children,
					     struct kymo_adopted *const *adopted, size_t n, uint64_t *stopped_ns);

/* Count as lost what pads have not recorded for want of stack, and see where the initial thread's stack ends now.
 * Twenty times a second, and before the end. */
void kymo_probes_look_at_stack(struct kymo_probes *probes);

/* The program has made reading the time stamp counter a fault: nothing more is recorded of it. */
bool kymo_probes_are_muted(const struct kymo_probes *probes);

/* Hits of vfork children before their exec, so far: they are not recorded. */
uint64_t kymo_probes_lost_in_vforks(const struct kymo_probes *probes);

/*
 * The look at the text of one process with these probes, some times a second: whether their jumps are there still.
 * Another tool's uprobe writes its own bytes over a jump, and the file's when it leaves; a program may drop pages of
 * its own text. What is in the way of a breakpoint is taken out under it; what is out is put in again when the file's
 * bytes are there (docs/internals/coexisting.md). A look costs a read for each page with probes, and nothing more where
 * nothing has changed.
 */
struct kymo_look;

enum kymo_gap_cause {
	KYMO_GAP_BREAKPOINT, /* somebody else's breakpoint */
	KYMO_GAP_DROPPED, /* the file's bytes were there: a page was dropped, or a breakpoint has come and gone between
			     two looks */
	KYMO_GAP_CHANGED, /* something else has changed the code */
};

/* For some time some probes were not in the text, and their hits are not known. */
struct kymo_gap {
	enum kymo_gap_cause cause;
	size_t n;       /* probes */
	uint64_t begin; /* stamp of the last look that found them in; 0: there was none before */
	uint64_t end;   /* of the one that found them in again; 0: they are out */
	bool is_open;   /* they were out when the look ended */
	char name[56];  /* of the first */
};

/* `process` is the one that the probes were put into, or a child that was adopted. Both must outlive the look. */
struct kymo_error *kymo_look_create(struct kymo_probes *probes, struct kymo_process *process, struct kymo_look **ret);
void kymo_look_destroy(struct kymo_look *look);

/* Look, at `tsc`; stops the process where text is to be changed. BUSY: that could not be done now; the next look tries
 * again. */
struct kymo_error *kymo_look(struct kymo_look *look, uint64_t tsc, uint64_t *stopped_ns_ret);

/* No more looks: gaps that are open end. */
void kymo_look_end(struct kymo_look *look, uint64_t tsc);

/* All gaps so far. Later looks add some, and may set the end, and lower the number, of those without one. */
const struct kymo_gap *kymo_look_gaps(const struct kymo_look *look, size_t *n);

/* For kymo status. */
void kymo_probes_publish(struct kymo_probes *probes, uint64_t recorded_bytes, uint64_t lost);

/* The memfd's inode: what the mappings of these probes are known by. */
uint64_t kymo_probes_inode(const struct kymo_probes *probes);

/* Whether the process still has the memory that the probes live in: false after an exec. */
bool kymo_probes_are_mapped(struct kymo_probes *probes);

#endif
