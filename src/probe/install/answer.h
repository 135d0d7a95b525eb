/* Answers to threads that wait because they have loaded a library. */
#ifndef KYMO_PROBE_INSTALL_ANSWER_H
#define KYMO_PROBE_INSTALL_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_probes;

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

#endif
