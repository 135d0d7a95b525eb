/* Answers to threads that wait because they have loaded a library. */
#ifndef KYMO_PROBE_INSTALL_ANSWER_H
#define KYMO_PROBE_INSTALL_ANSWER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_probes;

bool kymo_probes_are_asked(const struct kymo_probes *probes);

/*
 * Look at what is mapped now, put probes in, and let waiting threads go on, also on an error. `has_new`: the kernel's
 * probes were put in for these requests. `late_ret`: a thread has gone on before, and calls of a library may be
 * missing. That is known for libraries that are still there, and not for one that has come and gone meanwhile.
 */
struct kymo_error *kymo_probes_answer(struct kymo_probes *probes, bool has_new, bool *late_ret,
				      uint64_t *stopped_ns_ret);

/* The same for requests without an answer: the process has ended. False for a recording that has left it. */
bool kymo_probes_were_too_late(struct kymo_probes *probes);

#endif
