/* Of which hits the pads of a spec make records. Private to the room. */
#ifndef KYMO_PROBE_THREADS_SAMPLE_H
#define KYMO_PROBE_THREADS_SAMPLE_H

#include <stddef.h>

#include "arch/pad.h"
#include "base/error.h"

struct kymo_probes;
struct kymo_process;

/* Of the spec with that index. All its pads share a word, which is that of its number among those that sample; and so
 * do specs that share their sample. */
struct kymo_pad_sample probes_sample(const struct kymo_probes *probes, size_t at);

/*
 * Write what the words of samples begin with into the live page of `process`, which has the probes and is not live yet.
 * Many processes that begin alike would all record their first hit, and have a full bucket. So one in N begins at any
 * of N hits, and a rate with an empty bucket.
 */
struct kymo_error *probes_begin_samples(const struct kymo_probes *probes, struct kymo_process *process);

#endif
