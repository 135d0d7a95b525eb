/* Of which hits the pads of a spec make records. Private to the room. */
#ifndef KYMO_PROBE_PLAN_SAMPLE_H
#define KYMO_PROBE_PLAN_SAMPLE_H

#include <stddef.h>

#include "arch/pad.h"

struct kymo_probes;

/* Of the spec at that place. All its pads share a word, which is that of its number among those that sample. */
struct kymo_pad_sample probes_sample(const struct kymo_probes *probes, size_t at);

#endif
