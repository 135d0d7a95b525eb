/* SPDX-License-Identifier: MIT */
/*
 * libkymo-marker: probes of a process on its own markers.
 *
 * All functions are thread safe. Functions that change something take locks and wait for other threads: do not call
 * them from a signal handler. A probe may call all functions except kymo_marker_for_each() (see
 * kymo_marker_disable_probe()). Errors are negative errno values.
 *
 * The library finds markers in the modules that the process has loaded. A module reports its loading and unloading if
 * it or the program is linked to this library. If it cannot see the library (which was loaded later, or with
 * RTLD_LOCAL), the next call of any function below finds its markers.
 *
 * Probes survive fork(): the child has them, with a state of its own from then on. The child of a vfork() must not pass
 * a marker.
 *
 * The library changes the text of the process through /proc/self/mem, so that the text is never writable; threads run
 * on meanwhile. lib/marker/toggle.c says why that is correct. The functions and their names are those of Linux Kernel
 * Markers 0.5 (2006).
 */
#ifndef KYMO_MARKER_PROBE_H
#define KYMO_MARKER_PROBE_H

#include <stdarg.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is known of a marker. The strings belong to the module, and are valid until it is unloaded. */
struct kymo_marker_info {
	const char *provider, *name, *format, *file;
	unsigned int line;
	const char *module;       /* path; "" for the program itself if its path is not known */
	unsigned int n_sites;     /* copies of it; 0 if the compiler has optimized all of them away */
	unsigned int n_probes;    /* connected here */
	bool is_recorded;         /* in place */
	bool is_recorded_outside; /* by kymo record */
	bool has_inline;          /* it can be recorded in place */
};

/* A probe. It gets the marker's arguments, promoted as for any variadic function: read them with va_arg() as the format
 * says. It runs on the thread that passes the marker, also in a signal handler. errno is preserved. Markers that the
 * probe itself passes call no probes. It must not leave by longjmp() or an exception. */
typedef void kymo_marker_probe(const struct kymo_marker_info *marker, void *data, va_list arguments);

enum kymo_marker_type {
	KYMO_MARKER_CALL = 0,   /* `probe` is called */
	KYMO_MARKER_INLINE = 1, /* recorded in place, into the recording of kymo_marker_record(); `probe` is NULL */

	/* or'ed to it: */
	KYMO_MARKER_EXCLUSIVE = 16, /* allow no other probe beside it */
	KYMO_MARKER_PENDING =
		32, /* no error if no module has the marker yet: connect when a module with it is loaded */
};

/*
 * Connect `probe` to all markers called `name` that have exactly this `format` (NULL: any), in loaded modules and in
 * modules that are loaded later. Probes of one marker are called in the order in which they were connected.
 *
 *	-ENOENT	no module has such a marker (not with KYMO_MARKER_PENDING)
 *	-EBUSY	the same probe with the same data is connected to the name already; or an exclusive probe is, or this
 *		probe is to be exclusive and others are connected
 *	-EINVAL	there are markers of the name, and none has this format; or there is no probe; or an unknown type
 *	-ENODEV	inline: none of the markers can be recorded in place; or nothing is being recorded
 *	-ENOMEM
 *	-EPERM, -EACCES, -EIO	the text cannot be changed
 *
 * On an error no probe is connected.
 */
int kymo_marker_set_probe(const char *name, const char *format, kymo_marker_probe *probe, void *data, int type);

/*
 * Disconnect it. When this returns no thread runs the probe for this connection, and none will. The caller may free
 * what the probe needs, and close the shared object that contains it. Called from the probe itself it does not wait:
 * the probe ends when it returns. 0 or -ENOENT.
 */
int kymo_marker_disable_probe(const char *name, kymo_marker_probe *probe, void *data, int type);

/* Call `visit` for each marker, by module, file and line, until it returns a value other than 0, which is returned.
 * `visit` must not call any function of this header. */
int kymo_marker_for_each(int (*visit)(const struct kymo_marker_info *marker, void *data), void *data);

/*
 * Record the markers whose names match `globs` (fnmatch(3), separated by commas), in place, into a trace in `directory`
 * for `kymo report`, as `kymo record -m` does from outside. NULL is "kymo.data"; an earlier trace is kept as
 * "kymo.data.old". "GLOB:GLOB" is matched with the provider, or the module, and the name. A thread of this library
 * writes the trace. Markers that cannot be recorded in place are skipped. kymo_marker_set_probe() with
 * KYMO_MARKER_INLINE adds more. The trace is complete when kymo_marker_record_end() returns, or the process exits. A
 * process that ends otherwise (by a signal or _exit()) loses at most the last second of it. A child of fork() does not
 * record.
 *
 * With KYMO_MARKERS=GLOBS in its environment a program starts recording before main(). KYMO_MARKERS_DIR names the
 * directory, KYMO_MARKERS_BUFFER the bytes for each CPU ("64K" to "4G"; the default is "4M", also for this function).
 * The library removes KYMO_MARKERS from the environment: else a program that this program starts would record over its
 * trace.
 *
 *	-EBUSY	something is being recorded already
 *	-ENOENT	nothing matches (not from the environment: a module that matches may be loaded later)
 *	-EEXIST	`directory` exists and is not a trace
 *	-EINVAL, -ENOMEM, -EAGAIN; why the directory cannot be written, or why sites cannot be turned on (then none is)
 *	-ENOTSUP	not on this architecture
 */
int kymo_marker_record(const char *globs, const char *directory);

/* Stop recording, and finish the trace. `lost` (may be NULL) gets the number of records for which there was no space.
 * -ENOENT: nothing is being recorded. Other errors say why the trace could not be written. */
int kymo_marker_record_end(unsigned long *lost);

#ifdef __cplusplus
}
#endif

#endif
