/* How what is kymo's is told from what is not. Private to the room. */
#ifndef KYMO_PROBE_MEMORY_SESSIONS_H
#define KYMO_PROBE_MEMORY_SESSIONS_H

#include <sys/types.h>

#include "base/error.h"
#include "wire/shared.h"

struct kymo_map;
struct kymo_maps;
struct kymo_process;

/* What one recording has in a process: copies, checked. */
struct kymo_session {
	uint64_t inode; /* of the memfd that the header is in: what a recording is known by */
	struct kymo_wire_header header;
	struct kymo_wire_site *sites; /* the journal */
	size_t n_sites;
	struct kymo_wire_trampolines *trampolines;
	size_t n_trampolines;
	uint64_t words,
		data; /* addresses of the words, of what pads write; 0: not mapped, as the data in a forked child */
	uint64_t data_inode; /* of the memfd that the data are in */
	uint64_t arena;      /* address of the rings of its function clones; 0: there are none */
	bool is_leaving;     /* nothing is handed over to it */
	bool is_adopted;     /* in a forked child: its recorder records it too */
};

struct kymo_session_list {
	pid_t pid;
	struct kymo_session *items;
	size_t n;
	bool is_recorder; /* the process is a kymo itself: what is in no item is its own */
	bool has_strays;  /* mappings or a descriptor of a recorder that died before it had written a header; not in a
			     recorder */
};

/* Header, journal, words, pads. */
bool kymo_is_shared_map(const struct kymo_map *map);

/* Rings, and what pads count. */
bool kymo_is_data_map(const struct kymo_map *map);

/* Whether mapping `i` is a live page of the recording of that inode: anonymous, and known by its neighbors. */
bool kymo_is_live_page(const struct kymo_maps *maps, size_t i, uint64_t inode);

/* Rings of function clones. */
bool kymo_is_arena_map(const struct kymo_map *map);

/* Trampolines. */
bool kymo_is_jumps_map(const struct kymo_map *map);

/* The next descriptor of kymo's memory in the process behind `fd`, or -1. Only a recorder that died between
 * memfd_create and close leaves one. */
int kymo_next_descriptor(pid_t pid, int fd);

/* Look for what kymo has in `process`, which may run. BAD_DATA: a header of another version, or damaged. */
struct kymo_error *kymo_sessions_read(struct kymo_process *process, struct kymo_session_list *ret);

/* The same without `is_recorder` and `has_strays`, for which files and descriptors of the process are looked at; and
 * without the recording of inode `except` (0: with all), as the caller knows what is its own. */
struct kymo_error *kymo_sessions_read_journals(struct kymo_process *process, uint64_t except,
					       struct kymo_session_list *ret);

/* The same without journals and what follows from them: for a look with the process stopped. */
struct kymo_error *kymo_sessions_read_headers(struct kymo_process *process, uint64_t except,
					      struct kymo_session_list *ret);

/* Read again where pads go on, and the state of counters, which leaving changes. */
struct kymo_error *kymo_session_read_words(struct kymo_process *process, struct kymo_session *session);

void kymo_sessions_deinit(struct kymo_session_list *list);

/* Whether the guards that are in the text are this recording's. */
bool kymo_session_has_guards(struct kymo_process *process, const struct kymo_session *session);

#endif
