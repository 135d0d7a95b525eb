/*
 * Taking probes out, from the journal in the process alone. The way back is the same for a recorder that ends, for
 * `kymo detach`, and for the next recorder that finds what a dead one left.
 */
#ifndef KYMO_PROBE_REMOVE_H
#define KYMO_PROBE_REMOVE_H

#include "base/error.h"
#include "probe/probe.h"
#include "proc/proc.h"
#include "wire/shared.h"

/* What one recording has in a process: copies, checked. */
struct kymo_remains {
	uint64_t inode; /* of the memfd that the header is in: what a recording is known by */
	struct kymo_wire_header header;
	struct kymo_wire_site *sites; /* the journal */
	size_t n_sites;
	struct kymo_wire_run *runs;
	size_t n_runs;
	uint64_t words,
		data;    /* addresses of the words, of what pads write; 0: not mapped, as the data in a forked child */
	bool is_leaving; /* nothing is handed over to it */
	bool is_adopted; /* in a forked child: its recorder records it too */
};

struct kymo_remains_list {
	pid_t pid;
	struct kymo_remains *items;
	size_t n;
	bool is_recorder; /* the process is a kymo itself: what is in no item is its own */
	bool has_strays;  /* mappings or a descriptor of a recorder that died before it had written a header; not in a
			     recorder */
};

/* Look for what kymo has in `process`, which may run. BAD_DATA: a header of another version, or damaged. */
struct kymo_error *kymo_remains_read(struct kymo_process *process, struct kymo_remains_list *ret);

/* The same without journals and what follows from them: for a look with the process stopped. */
struct kymo_error *kymo_remains_read_headers(struct kymo_process *process, struct kymo_remains_list *ret);

/* Read again where pads go on, and what has become of counters, which leaving changes. */
struct kymo_error *kymo_remains_read_words(struct kymo_process *process, struct kymo_remains *remains);

void kymo_remains_deinit(struct kymo_remains_list *list);

/* Whether the recorder of one of them is alive and records process `pid`. */
bool kymo_remains_have_recorder(const struct kymo_remains *remains, pid_t pid);

/* Whether that is known from what the recorder has mapped, and not from the header alone. */
bool kymo_remains_know_recorder(const struct kymo_remains *remains);

/* Whether the guards that are in the text are this recording's. */
bool kymo_remains_have_guards(struct kymo_process *process, const struct kymo_remains *remains);

/*
 * Take one recording out, by its inode; or, with 0, all whose recorder is gone. Text is restored, or left to the other
 * recordings that have probes at the same places; then, when no thread is in a pad or returns to one, memory is
 * unmapped. The process runs afterwards as it did before. Sites that hold foreign bytes are left, and so are then the
 * pads; `ret` tells all. Nothing to take out is no error.
 */
struct kymo_error *kymo_remove(struct kymo_process *process, uint64_t inode, struct kymo_detach_result *ret);

#endif
