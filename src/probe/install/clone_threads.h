/* Threads of a process from which function clones are taken. Private to the room. */
#ifndef KYMO_PROBE_INSTALL_CLONE_THREADS_H
#define KYMO_PROBE_INSTALL_CLONE_THREADS_H

#include <stdbool.h>
#include <stddef.h>

struct kymo_maps;
struct kymo_process;
struct kymo_session;
struct kymo_session_list;

/*
 * With the process stopped and its text restored: send threads that are in a clone to the program's own code, as a loop
 * may keep them there for ever. What is between two instructions of the program, or in a handler of signals that has
 * interrupted a clone, stays. A death right after it changes nothing.
 */
void probe_send_clones_home(struct kymo_process *process, const struct kymo_session *session);

/*
 * With no thread in a clone: whether memory of the process has an address in one. A context that is suspended, as by
 * swapcontext() in a handler, has its program counter there, and some thread will go on at it. True, too, where memory
 * is too large, or cannot be read. `is_ours` tells of mappings in the order of `maps`.
 */
bool probe_clones_are_saved(struct kymo_process *process, const struct kymo_session *session,
			    const struct kymo_maps *maps, bool (*is_ours)(size_t i, void *data), void *data);

/* Pads of `all` other sessions make no anchors in the arena any more, but for those in which a thread is now. */
void probe_end_anchors(struct kymo_process *process, const struct kymo_session *session,
		       const struct kymo_session_list *all);

/* With no thread in a clone: no word points into the arena any more, which goes. */
void probe_clear_clone_words(struct kymo_process *process, const struct kymo_session *session);

#endif
