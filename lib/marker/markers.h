/*
 * What the files of libkymo-marker share. Private to the library: all names here are hidden in the shared object.
 *
 * Two kinds of threads meet here. Those that change something (connect, disconnect, record, load) hold the lock. Those
 * that pass markers hold nothing: they read slots, and from there a marker's list of probes, within a reader's section
 * (readers.h). So what they can reach is published with one store, and freed by kymo_lib_retire() alone.
 *
 *	connection	what kymo_marker_set_probe() made: a name, a format, a probe. It outlives modules
 *	module		a loaded ELF object with notes; comes and goes
 *	marker		of a module: sites and places that have provider, name, format, file, line and types in common
 *	site, place	one note each
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

#define KYMO_LIB_API __attribute__((visibility("default")))

/* Whether places of this architecture can be recorded in place, and whether sites are instructions that change. */
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

/* ---- what there is --------------------------------------------------------------------------- */

struct lib_site {
	unsigned char *text; /* the NOP; NULL in the portable form */
	unsigned char *cold; /* where it jumps */
	struct kymo_marker_gate *gate;
	struct lib_marker *marker;
	int error; /* of the last toggle: 0 or a negative errno */
};

struct lib_place {
	unsigned char *code; /* the NOP behind the arguments; NULL where the note has none */
	struct kymo_marker_slots *slots;
	struct lib_marker *marker;
};

/* What is freed once no thread can have got it from a slot, a marker or a list any more: the first member of such
 * structures. */
struct lib_retired {
	struct lib_retired *next;
	void (*free)(struct lib_retired *retired);
};

/* A connection at a marker. Read by those who pass the marker: all but `next` is constant. */
struct lib_probe {
	struct lib_retired retired;
	struct lib_probe *next;
	kymo_marker_probe *probe;
	void *data;
	const void *owner; /* its struct lib_connection, or the recorder: who may remove it */
};

struct lib_marker {
	struct lib_module *module;
	const char *provider, *name, *format, *file; /* in the module */
	uint32_t line;
	uint32_t types;
	struct lib_site *sites; /* of the module's */
	size_t n_sites;
	struct lib_place *places;
	size_t n_places;

	struct lib_probe *probes; /* in the order in which they were connected */
	unsigned int n_probes;
	struct lib_probe *inlines; /* connections of KYMO_MARKER_INLINE; nobody reads them without the lock */
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
	struct lib_place *places;
	size_t n_places;
};

/* Whether the memory of the module may be touched now: it can't be unmapped before the lock is released. */
static inline bool kymo_lib_is_usable(const struct lib_module *module)
{
	return module->is_program || module->tells || module->pin;
}

/* With the lock held. Modules whose notes are damaged are not among them. */
struct lib_registry {
	struct lib_module **modules;
	size_t n_modules;
};
extern struct lib_registry kymo_lib_registry;

/* All markers of all modules that may be touched: kymo_lib_each_marker(marker) { ... } */
struct lib_marker *kymo_lib_first_marker(void);
struct lib_marker *kymo_lib_next_marker(struct lib_marker *marker);
#define kymo_lib_each_marker(marker) \
	for (struct lib_marker *marker = kymo_lib_first_marker(); marker; marker = kymo_lib_next_marker(marker))

/* Those of one name: struct lib_named at = { .name = name }, and kymo_lib_next_named(&at) until it is NULL. */
struct lib_named {
	const char *name;
	size_t module, index;
	bool is_inside; /* `index` is where to go on in the module */
};
struct lib_marker *kymo_lib_next_named(struct lib_named *at);

/* ---- the lock -------------------------------------------------------------------------------- */

/*
 * Begin and end what changes something. kymo_lib_enter() looks for modules that have come without telling, takes the
 * lock, and puts off cancellation. kymo_lib_leave() releases it, then frees what was retired when all readers that
 * there are have ended; with `wait` it waits for them also where there is nothing to free. In a probe neither is done:
 * one of those readers is the caller.
 *
 *	-EDEADLK	enter: this thread has the lock: it is in a signal handler, or in a malloc() of the program's
 * that passes markers
 */
int kymo_lib_enter(void);
void kymo_lib_leave(bool wait);

/* The lock is held. NULL is allowed. */
void kymo_lib_retire(struct lib_retired *retired);

/* As /proc has it; false where there is none. */
bool kymo_lib_has_one_thread(void);

/* Of each thread. Static TLS: passing a marker must not allocate. */
struct lib_thread {
	unsigned int in_probe;     /* how deep; such a thread must not wait for readers */
	unsigned int in_loader;    /* in kymo_lib_iterate() */
	struct lib_reader *reader; /* NULL: it has none yet */
	bool forks_with_lock;
};
extern _Thread_local struct lib_thread kymo_lib_thread __attribute__((tls_model("initial-exec")));

static inline bool kymo_lib_is_in_probe(void)
{
	return kymo_lib_thread.in_probe > 0;
}

/* ---- probes of one marker (the lock is held) ------------------------------------------------- */

/* Append a probe. -ENOMEM. It is called once kymo_lib_update() has turned the marker on. */
int kymo_lib_add_probe(struct lib_marker *marker, kymo_marker_probe *probe, void *data, const void *owner);

/* Remove the probes of `owner`; false where there are none. They may run until kymo_lib_leave() returns. */
bool kymo_lib_remove_probes(struct lib_marker *marker, const void *owner);

/* ---- recording in place (the lock is held) --------------------------------------------------- */

/*
 * Let all places of the marker record into `rings`, the first as event `event_id`, the next as the one after it, from
 * kymo_lib_update() on. Compiled code reads slots.rings more than once, and may have been interrupted in between:
 * neither `rings` nor the memory of rings that it names may ever be freed, changed, or unmapped, and ids are not used
 * again for something else. -ENODEV where the marker has no place that can.
 */
int kymo_lib_record(struct lib_marker *marker, const struct kymo_marker_rings *rings, uint64_t event_id);

/*
 * End that: `idle` are rings with the same rseq_offset and tid_offset, n_cpus 0, and kymo_lib_nothing() as `slow`. A
 * thread may finish a record until kymo_lib_leave() … and later: it is not a reader.
 */
void kymo_lib_record_end(struct lib_marker *marker, const struct kymo_marker_rings *idle);

/* A function as slots.call and rings.slow must be, which returns at once. */
void kymo_lib_nothing(void);

/* ---- turning on and off (the lock is held) --------------------------------------------------- */

/* Look at this marker with the next update; done by the functions above. */
void kymo_lib_changed(struct lib_marker *marker);

/*
 * Turn on all changed markers that have probes or are recorded, and off those that are not: one batch, a few
 * milliseconds at the most. With `all` it is all or nothing: where one site can't be turned on all are as before, and
 * the caller undoes its changes; without, what can be done is. Turning off always succeeds: a site that can't be
 * changed runs through its cold block for nothing.
 *
 *	-EPERM, -EACCES, -EIO, -EBUSY	see toggle.h
 *	-ENOMEM
 */
int kymo_lib_update(bool all);

/* ---- who passes a marker (no lock) ----------------------------------------------------------- */

/*
 * What slots.call is set to: a marker's probes are called with the arguments of its frame (call_x86_64.S), or with its
 * own (elsewhere). slots.owner is the struct lib_marker.
 */
void kymo_lib_call(void);

/* What the marker tells of itself; the counts are those of this moment. */
void kymo_lib_describe(const struct lib_marker *marker, struct kymo_marker_info *ret);

/* A recording that ends takes the connections of KYMO_MARKER_INLINE with it. */
void kymo_lib_drop_inline(void);

#endif
