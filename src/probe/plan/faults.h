/* Faults that a process handles itself: KYMO_FAULT_… of arch/plan.h. */
#ifndef KYMO_PROBE_PLAN_FAULTS_H
#define KYMO_PROBE_PLAN_FAULTS_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct kymo_module_code;
struct kymo_probes;

#define PROBES_FAULT_SIGNALS (1u << SIGSEGV | 1u << SIGBUS | 1u << SIGFPE | 1u << SIGILL)

/* Signals that the program which has `code` handles from its start: Go's runtime turns all into panics. */
unsigned int kymo_faults_of_code(const struct kymo_module_code *code);

/* Of signals, 1 << each. */
unsigned int kymo_faults_of(uint64_t handled);

/* KYMO_FAULT_…: what no plan may displace, and what plans had better not. */
unsigned int probes_watched_faults(const struct kymo_probes *probes, const struct kymo_module_code *code);
unsigned int probes_possible_faults(const struct kymo_probes *probes);

#endif
