/* Threads of a process from which function clones are taken. Private to the room. */
#ifndef KYMO_PROBE_INSTALL_CLONE_THREADS_H
#define KYMO_PROBE_INSTALL_CLONE_THREADS_H

struct kymo_process;
struct kymo_session;

/*
 * With the process stopped and its text restored: send threads that are in a clone to the program's own code, as a loop
 * may keep them there for ever. What is between two instructions of the program, or in a handler of signals that has
 * interrupted a clone, stays. A death right after it changes nothing.
 */
void probe_send_clones_home(struct kymo_process *process, const struct kymo_session *session);

/* With no thread in a clone: no word points into the arena any more, which goes. */
void probe_clear_clone_words(struct kymo_process *process, const struct kymo_session *session);

#endif
