/* Libraries that are loaded later. */
#ifndef KYMO_PROBE_THREADS_WATCH_H
#define KYMO_PROBE_THREADS_WATCH_H

#include <stdbool.h>

#include "base/error.h"

struct kymo_maps;
struct kymo_probes;

/*
 * Libraries that are loaded later. A thread that has loaded one waits in a pad for up to half a second, until the
 * recorder has answered: the watcher looks every millisecond.
 */
bool kymo_probes_are_watching(const struct kymo_probes *probes);

/* From now on requests are answered. Before, no thread waits. */
void kymo_probes_watch(struct kymo_probes *probes);

/* Threads that set handlers of these come along at the entry of the C library's sigaction, where its code is known
 * anyway. */
struct kymo_error *probes_add_handler_watch(struct kymo_probes *probes);

/*
 * A thread is about to forbid itself to read the time stamp counter, or makes a filter of system calls possible: at the
 * entry of the C library's prctl pads do what a guard on that call does (arch/guard.h). This is for recordings that
 * have no such guard in the text: another recording has it, or there is none.
 */
struct kymo_error *probes_add_limits_watch(struct kymo_probes *probes);

/* Threads have not waited, or some of them. While a program starts its system calls tell more, and no thread should
 * wait.
 */
bool probes_have_let_pass(const struct kymo_probes *probes);

/* A site where the dynamic linker tells debuggers what it has loaded. Where there is none, libraries that are loaded
 * later are not noticed. */
struct kymo_error *probes_add_watch(struct kymo_probes *probes);

/* The program has started: what its linker has mapped is known, and so the request that it still makes when that is
 * linked is answered already. */
void probes_watch_from_here(struct kymo_probes *probes);

/* Whether the file is a dynamic linker. */
bool probes_is_linker(const char *path);

#endif
