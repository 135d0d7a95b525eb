/* Threads at islands when the catches of function clones are taken out. Private to the room. */
#ifndef KYMO_PROBE_INSTALL_CLONE_ISLANDS_H
#define KYMO_PROBE_INSTALL_CLONE_ISLANDS_H

#include <stdbool.h>

struct kymo_maps;
struct kymo_process;
struct kymo_session;

/*
 * Before the text of the stopped process is restored: a thread that has executed a short jump, and not yet that of the
 * island, executes that, and stands in its clone. Once the island has the file's bytes, they are something else. False:
 * a frame of a signal has such a program counter, and the text has to stay as it is.
 */
bool probe_pass_islands(struct kymo_process *process, const struct kymo_session *session, const struct kymo_maps *maps);

#endif
