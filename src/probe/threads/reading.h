/* Whether pads may read memory by a system call. Private to the room. */
#ifndef KYMO_PROBE_THREADS_READING_H
#define KYMO_PROBE_THREADS_READING_H

#include <stdbool.h>
#include <stdint.h>

struct kymo_probes;
struct kymo_process;
struct kymo_spec;

/* What its pads take of the stack to read memory by a system call (kymo_pad_reads_stack()); 0: they read none. */
uint32_t probes_reads_stack(const struct kymo_spec *spec);
/* Whether some spec reads memory that may not be there. */
bool probes_read_memory(const struct kymo_probes *probes);
/* Whether some spec reads by pointers or variables (kymo_pad_reads_elsewhere()). */
bool probes_read_elsewhere(const struct kymo_probes *probes);
/* KYMO_PAD_LIVE_READER for a process with these probes: where specs read memory, and it may make the call. */
uint64_t probes_reader(const struct kymo_probes *probes, struct kymo_process *process);
/* Note whether the process that is recorded has one, and tell the user where specs need it. */
void probes_note_reader(struct kymo_probes *probes);
/* Whether that has changed, and tell the user; now and then. */
void probes_look_at_reader(struct kymo_probes *probes);

#endif
