/* SPDX-License-Identifier: MIT */
/*
 * Probes of a process on its own markers: libkymo-marker.
 *
 * All functions are thread safe. Those that change something take locks and wait for other threads: they must not be
 * called from a signal handler, but for kymo_marker_for_each() all may be called from a probe (see
 * kymo_marker_disable_probe()). Errors are negative errno values.
 *
 * Markers are known from the modules that the process has loaded. A module tells when it comes and goes if it can see
 * this library: it, or the program, is linked to it. Others (the library came later, with RTLD_LOCAL) are found with
 * the next call of any function below.
 *
 * Probes survive fork(): the child has them, and its own state from then on. In the child of a vfork() no marker may be
 * passed.
 *
 * The text of the process is changed through /proc/self/mem, so that it is never writable; threads run on meanwhile.
 * lib/marker/toggle.c says why that is right. Names, and what is asked of them, are those of Linux Kernel Markers 0.5
 * (2006).
 */
#ifndef KYMO_MARKER_PROBE_H
#define KYMO_MARKER_PROBE_H

#include <stdarg.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A marker, as it is told. Strings are the module's: good until it is closed. */
struct kymo_marker_info {
	const char *provider, *name, *format, *file;
	unsigned int line;
	const char *module;       /* path; "" for the program itself where it has none */
	unsigned int n_sites;     /* copies of it; 0 where the compiler has optimised all away */
	unsigned int n_probes;    /* connected here */
	bool is_recorded;         /* in place */
	bool is_recorded_outside; /* by kymo record */
	bool has_inline;          /* it can be recorded in place */
};

/* Gets the marker's arguments, promoted as for any variadic function: read them with va_arg() as the format says. Runs
 * on the thread that passes the marker, wherever that is: in a signal handler, too. errno is kept. Markers that it
 * passes itself call no probes. It must not leave by longjmp() or an exception. */
typedef void kymo_marker_probe(const struct kymo_marker_info *marker, void *data, va_list arguments);

enum kymo_marker_type {
	KYMO_MARKER_CALL = 0,   /* `probe` is called */
	KYMO_MARKER_INLINE = 1, /* recorded in place, into the recording of kymo_marker_record(); `probe` is NULL */

	/* or'ed to it: */
	KYMO_MARKER_EXCLUSIVE = 16, /* no other probe beside it */
	KYMO_MARKER_PENDING = 32,   /* no error when no module has the marker yet: it is connected when one comes */
};

/*
 * Connect `probe` to all markers called `name` that have exactly this `format` (NULL: any), in the modules there are
 * and those that come. Probes of one marker are called in the order in which they were connected.
 *
 *	-ENOENT	no module has such a marker (not with KYMO_MARKER_PENDING)
 *	-EBUSY	the same probe with the same data is connected to the name already; or an exclusive one is, or this one
 * would be -EINVAL	there are markers of the name, and none has this format; or there is no probe; or an unknown
 * type -ENODEV	inline: none of the markers can be recorded in place; or nothing is being recorded -ENOMEM; -EPERM,
 *-EACCES, -EIO: the text can't be changed
 *
 * On an error nothing is connected.
 */
int kymo_marker_set_probe(const char *name, const char *format, kymo_marker_probe *probe, void *data, int type);

/*
 * Disconnect it. When this returns no thread is in the probe any more on behalf of this connection, and none will be:
 * what it needs may be freed, the shared object that holds it closed. Called from a probe itself it can't wait for
 * that: the probe ends when the caller returns. 0 or -ENOENT.
 */
int kymo_marker_disable_probe(const char *name, kymo_marker_probe *probe, void *data, int type);

/* Call `visit` for each marker, by module, file and line, until it gives something other than 0, which is returned. It
 * must not call any function of this header. */
int kymo_marker_for_each(int (*visit)(const struct kymo_marker_info *marker, void *data), void *data);

/*
 * Record the markers whose names match `globs` (fnmatch(3), separated by commas), in place, into a trace in `directory`
 * (NULL: "kymo.data"; an earlier one is kept as "kymo.data.old"), as `kymo record -m` would from outside: for `kymo
 * report`. "GLOB:GLOB" is matched with the provider, or the module, and the name. A thread of this library writes it.
 * Markers that can't be recorded in place are left out. More can be added by kymo_marker_set_probe() with
 * KYMO_MARKER_INLINE. The trace is complete when kymo_marker_record_end() returns, or the process exits. A process that
 * ends otherwise (a signal, _exit()) loses a second of it at the most; a child of fork() does not record.
 *
 * A program that is run with KYMO_MARKERS=GLOBS in its environment starts this before main(); KYMO_MARKERS_DIR names
 * the directory, KYMO_MARKERS_BUFFER the bytes for each CPU ("64K" to "4G"; "4M" where nothing is said, also by those
 * that call this). KYMO_MARKERS is taken out of the environment then: what the program runs would record over its
 * trace.
 *
 *	-EBUSY	something is being recorded already
 *	-ENOENT	nothing matches (not from the environment: what matches may come)
 *	-EEXIST	`directory` is something else than a trace
 *	-EINVAL, -ENOMEM, -EAGAIN; why the directory can't be written, or why sites can't be turned on (then none is)
 *	-ENOTSUP	not on this architecture
 */
int kymo_marker_record(const char *globs, const char *directory);

/* Stop that, and finish the trace. `lost` (may be NULL) gets the number of records that found no room. -ENOENT: nothing
 * is being recorded; or why the trace could not be written. */
int kymo_marker_record_end(unsigned long *lost);

#ifdef __cplusplus
}
#endif

#endif
