/* The memory in which pads of breakpoints print (wire/prints.h): that of the CPUs' rings, which such a recording has no
 * other use for. */
#ifndef KYMO_PROBE_MEMORY_PRINTS_H
#define KYMO_PROBE_MEMORY_PRINTS_H

#include <stdint.h>

struct kymo_probes;
struct kymo_wire_prints;

struct kymo_probes_prints {
	uint64_t address; /* in the process */
	struct kymo_wire_prints *memory;
	uint32_t n_slots, slot_size;
};

/* What the options of such a recording have as `buffer_size`, with `overwrite`: all of the memory is there at once. */
uint64_t kymo_prints_buffer(void);

/* Once the memory is there that is shared with the process. The slots have yet to be made free ones. */
struct kymo_probes_prints kymo_prints(const struct kymo_probes *probes);

#endif
