/* Text that a third party has modified. Private to the room. */
#ifndef KYMO_PROBE_COEXIST_MODIFIED_H
#define KYMO_PROBE_COEXIST_MODIFIED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_maps;
struct kymo_probes;
struct probe_bytes;
struct probe_text;

/* A byte of the text that is neither the file's nor what kymo has put there. */
struct probe_modified {
	uint64_t address;
	uint8_t now, file;
};

/* Reasons for what a third party has patched. */
#define PROBE_HAS_BREAKPOINT "a uprobe (perf, bpftrace) or a debugger's breakpoint is there"
#define PROBE_IS_PATCHED "what is there is not what its file holds: something else has patched it"

/* With the process stopped: keep in mind those of the `size` bytes at `address` that are neither what they should be
 * nor the file's. False when memory is out. */
bool probes_note_modified(struct kymo_probes *probes, uint64_t address, const uint8_t *now, const uint8_t *want,
			  const uint8_t *file, size_t size);

/* Whether `address` lies in a mapping of one of the modules: a library that has made way for another file meanwhile was
 * not patched. */
bool probes_is_still_mapped(const struct kymo_probes *probes, const struct kymo_maps *maps, uint64_t address);

/* Mark those that are there still by `bytes`, and not another recording's by now: no plan touches or relies on them.
 * False when memory is out. */
bool probes_mark_modified(const struct kymo_probes *probes, const struct kymo_maps *maps,
			  const struct probe_bytes *bytes, struct probe_text *text);

/* The same for the sites that the kernel has for this recording. */
bool probes_mark_kernel(const struct kymo_probes *probes, struct probe_text *text);

/* That a breakpoint is there, this recording's or a third party's, or something else. */
const char *probes_modified_reason(const struct kymo_probes *probes, uint64_t address);

#endif
