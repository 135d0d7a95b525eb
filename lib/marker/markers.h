/*
 * What the library knows of the markers of this process. Private to the library: all names here are hidden in the
 * shared object.
 *
 * Two kinds of threads meet here. Those that change something (connect, disconnect, record, load) hold the lock. Those
 * that pass markers hold nothing: they read slots, and from there a marker's list of probes, within a reader's section
 * (readers.h). So what they can reach is published with one store, and freed by kymo_lib_retire() alone.
 *
 *	connection	what kymo_marker_set_probe() made: a name, a format, a probe. It outlives modules
 *	module		a loaded ELF object with notes; comes and goes
 *	marker		of a module: all sites and locations with one provider, name, format, file, line and types
 *	site, location	one note each
 *	probe		a connection at one marker
 *
 * Order of locks: the loader's (dlopen() and dlclose() hold it while constructors and destructors run), then this
 * library's. So nothing here calls the loader with the lock held; nor does anything wait for readers with it, for a
 * probe may be waiting for the lock.
 */
#ifndef KYMO_LIB_MARKERS_H
#define KYMO_LIB_MARKERS_H

#define KYMO_NO_MARKERS /* the library has none itself: no constructor of the header's */
#define KYMO_NO_MARK
#include <link.h>
#include <kymo/marker.h>
#include <kymo/marker_probe.h>

#include "lock.h"

#define KYMO_LIB_API __attribute__((visibility("default")))

/* Whether locations of this architecture can be recorded in place, and whether sites are instructions that change. */
#if defined(__x86_64__) && defined(__LP64__)
#define KYMO_LIB_HAS_INLINE true
#else
#define KYMO_LIB_HAS_INLINE false
#endif
#if defined(__x86_64__) || defined(__i386__)
#define KYMO_LIB_HAS_TEXT true
#else
#define KYMO_LIB_HAS_TEXT false
#endif

struct lib_site {
	unsigned char *text; /* the NOP; NULL in the portable form */
	unsigned char *cold; /* where it jumps */
	struct kymo_marker_gate *gate;
	struct lib_marker *marker;
	int error; /* of the last toggle: 0 or a negative errno */
};

struct lib_location {
	unsigned char *code; /* the NOP after the arguments; NULL where the note has none */
	struct kymo_marker_slots *slots;
	struct lib_marker *marker;
};

/* A connection at a marker. Threads that pass the marker read it: all but `next` is constant. */
struct lib_probe {
	struct lib_retired retired;
	struct lib_probe *next;
	kymo_marker_probe *probe;
	void *data;
	const void *owner; /* its struct lib_connection, or the recorder: may remove it */
};

struct lib_marker {
	struct lib_module *module;
	const char *provider, *name, *format, *file; /* in the module */
	uint32_t line;
	uint32_t types;
	struct lib_site *sites; /* of the module's */
	size_t n_sites;
	struct lib_location *locations;
	size_t n_locations;

	struct lib_probe *probes; /* in the order in which they were connected */
	unsigned int n_probes;
	struct lib_probe *inlines; /* connections of KYMO_MARKER_INLINE; read with the lock only */
	bool is_recorded;          /* slots.rings are those of a recording that runs; read without the lock, too */
	void *record;              /* the recorder's own: NULL where it does nothing here */

	bool is_changed; /* in the registry's list of those that kymo_lib_update() has to look at */
	struct lib_marker *next_changed;
};

struct lib_module {
	struct lib_retired retired;
	ElfW(Addr) base;
	const ElfW(Phdr) * phdrs;   /* which module this is, together with `base`; not to be followed */
	uintptr_t begin, end;       /* the addresses it takes */
	char *path;                 /* "" for the program itself where it has none */
	bool is_program;            /* never goes */
	bool tells;                 /* its destructor calls kymo_marker_module_goes() */
	void *pin;                  /* one that does not tell is held by dlopen() while it is worked on; else NULL */
	struct lib_marker *markers; /* by file, line, name, format */
	size_t n_markers;
	struct lib_marker **named; /* the same by name, and those of one name as they are in `markers` */
	struct lib_site *sites;
	size_t n_sites;
	struct lib_location *locations;
	size_t n_locations;
};

/* Whether the memory of the module may be touched now: it can't be unmapped before the lock is released. */
static inline bool kymo_lib_is_usable(const struct lib_module *module)
{
	return module->is_program || module->tells || module->pin;
}

#endif
