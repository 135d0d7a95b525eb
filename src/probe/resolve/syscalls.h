/* System calls that specs mean. */
#ifndef KYMO_PROBE_RESOLVE_SYSCALLS_H
#define KYMO_PROBE_RESOLVE_SYSCALLS_H

#include "arch/syscall_pad.h"
#include "base/error.h"

struct kymo_events;
struct kymo_maps;
struct kymo_probes;
struct kymo_spec;
struct probe_meaning;

/*
 * The events of the system calls that `spec` wants: one for each number, and one for all returns. To be called before a
 * process with that spec is looked at. `name_of` may give NULL. `has_memory`: recorders that can copy memory record
 * them: with the stack pointer and copies, and returns with their number; no pad makes such records.
 */
struct kymo_error *kymo_events_add_syscalls(struct kymo_events *events, const struct kymo_spec *spec,
					    const char *(*name_of)(uint64_t number), bool has_memory);

/* What a pad records for `spec`. False when its events are not there. */
bool probe_syscalls_fill(const struct kymo_events *events, const struct kymo_spec *spec, struct kymo_pad_syscalls *ret);

/* Some process has them. */
void probe_syscalls_use(struct kymo_events *events, const struct kymo_spec *spec);

/* Whether some spec wants system calls: those of all files. */
bool probes_has_syscalls(const struct kymo_probes *probes);

/* The system calls of a module. */
struct kymo_error *probes_resolve_syscalls(struct kymo_probes *probes, const struct probe_meaning *meaning);

/* A warning, once, where the process has code that is of no file. */
void probes_tell_other_code(struct kymo_probes *probes, const struct kymo_maps *maps);

/* System calls by number, which `text` stands for in sentences. */
struct kymo_error *kymo_spec_make_syscalls(const char *text, const uint64_t numbers[KYMO_PAD_SYSCALLS / 64],
					   struct kymo_spec *ret);

#endif
