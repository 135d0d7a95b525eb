/* All that one recording has in one process. Private to the room. */
#ifndef KYMO_PROBE_PROBES_H
#define KYMO_PROBE_PROBES_H

#include <sys/types.h>

#include "probe/coexist/text.h"
#include "probe/memory/shared.h"
#include "probe/options.h"
#include "wire/readable.h"

struct kymo_file_id;
struct kymo_spec;
struct probe_clones;
struct probe_modified;
struct probe_module;
struct probe_refused;
struct probe_seen;
struct probe_site;
struct probe_switch;

/* How the process is to be changed now. */
struct probe_attempt {
	bool is_lenient;      /* sites that were in the text before may be refused now: that is no error */
	bool keeps_thread;    /* one makes the remote calls for all that is mapped */
	unsigned int n_waits; /* for handlers that have interrupted functions which are to be cloned */
};

/* Where the stacks of the process end. */
struct probe_stacks {
	uint64_t low, high;
	uint64_t end; /* the initial thread's stack grows down to there; 0: without a bound that is known */
	uint64_t thread_offset, thread_low; /* KYMO_PAD_LIVE_THREAD_…; 0: not known */
	size_t n_threads_seen, n_looks;     /* when and how often those were looked for */
	uint64_t n_skipped;                 /* hits near that end, which were added to the rings' losses */
};

/* Threads that wait for an answer of the recorder: they have loaded a library, or are about to set a handler. */
struct probe_watch {
	bool has_guards, has_watch;
	bool is_watched;        /* a recorder answers: kymo_probes_watch() */
	bool has_handler_watch; /* threads that are about to set a handler of faults wait */
	bool has_limits_watch;  /* pads at prctl's entry do what a guard would */
	uint32_t n_answers;     /* requests that were dealt with */
	uint32_t n_on_time;     /* … and no event was missed meanwhile, or the loss was told */
	bool were_let_pass;     /* some of the others have not waited */
};

/* Memory that pads read by a system call (reading.c). */
struct probe_reading {
	bool is_used;
	bool is_told; /* the user was warned of it */
};

/* The table of memory that pads read by plain loads (threads/readable.h). */
struct probe_readable {
	bool is_wanted;                       /* calls that take memory away have pads, or get them */
	bool is_registered;                   /* the kernel fences the process's sequences */
	bool is_refused;                      /* for good */
	bool is_told;                         /* the user was told why it is not open */
	bool has_left;                        /* no live page has its address any more */
	uint64_t leave_ns;                    /* when that may be, or 0 */
	uint64_t first_ns;                    /* when it could have been opened for the first time */
	uint64_t again_ns;                    /* when to try again to open it */
	unsigned int n_failed;                /* how often in a row it could not be opened */
	uint64_t gib[KYMO_WIRE_READABLE_GIB]; /* which GiB each block is for: its number + 1, or 0 */
};

/* What the recording wants of this process. */
struct probe_wanted {
	const struct kymo_spec *specs;
	size_t n_specs;
	struct kymo_probes_options options;
	char *directory;       /* what options.directory points to */
	uint64_t child_buffer; /* kymo_probes_set_child_buffer() */
};

/* What came of each spec: arrays of as many. */
struct probe_per_spec {
	bool *met;                        /* some file and function was found */
	const struct kymo_file_id *files; /* the cache's */
	struct probe_refused *refused;
};

/* How pads tell the threads of the process apart. */
struct probe_threads {
	bool is_live;     /* they have their thread pointers */
	bool is_confused; /* there were some that could not be told apart */
	bool has_begun_samples;
	uint8_t state;                   /* what the live pages say */
	int64_t tid_offset, rseq_offset; /* 0: not known */
	uint64_t vforks; /* the list that counts: of this recording, or of the one whose guards are in */
};

/* Faults that the process handles: instructions that may cause one are not displaced. */
struct probe_faults {
	unsigned int watched; /* KYMO_FAULT_…: those that it has been seen to handle */
	unsigned int heeded;  /* … for which no probe is in any more that could cause one (exchange.c) */
	bool wait_for_clones; /* probes are to be exchanged once the clones beside them are out */
	bool is_alone;        /* plans displace single instructions only (faults.c) */
};

struct kymo_probes {
	struct kymo_process *process;
	pid_t pid; /* of that */
	struct probe_wanted wanted;
	struct probe_per_spec per_spec;
	KYMO_VEC(struct probe_module) modules;
	KYMO_VEC(struct probe_site) sites; /* sorted by address; installed and pending ones */
	KYMO_VEC(struct probe_switch) switches;
	uint16_t gate_bit;                        /* this recording's, of the gates of its switches */
	struct probe_text text;                   /* of the process, with all planned sites in */
	KYMO_VEC(struct probe_clones) clones;     /* of modules */
	KYMO_VEC(size_t) unclonable;              /* modules whose clones would take too much */
	struct kymo_probes *beside;               /* of the same recording in the same process: the clones, or what
						     they are beside; or NULL */
	size_t n_in_the_way;                      /* chosen functions that have no clone as they have probes */
	KYMO_VEC(struct probe_modified) modified; /* found by the installation that goes on now */
	struct probe_attempt attempt;
	struct probe_watch watch;
	struct probe_reading reading;
	struct probe_readable readable;
	struct probe_stacks stacks;
	struct probe_threads threads;
	struct probe_faults faults;
	KYMO_VEC(struct probe_seen) seen; /* the other recordings for which all this is planned */
	bool has_shared;
	struct kymo_shared shared;
	bool is_starting; /* a launched program, until kymo_probes_started() */
	bool told_other_code;
	uint64_t changes; /* of what is installed; goes up with each */
};

#endif
