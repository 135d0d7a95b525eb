/*
 * What the files of the recorder share: recording in place, which only x86-64 has. Private to the library.
 *
 *	record.c		the calls, the environment, what happens at exit() and fork()
 *	record_rings.c		the rings' memory
 *	record_slow.c		rings.slow: what compiled code leaves to the library
 *	record_events.c		what the trace says of a marker
 *	record_image.c		what a module's file says of its places
 *	record_writer.c		the thread that writes the trace
 *
 * A recording has three parts. Its rings are in a mapping whose first page is for ever: threads may have been
 * interrupted in a cold block since any time, and go on with what they have loaded. Its trace (struct recording) is the
 * writer's, until the writer has ended. Its events outlive it: a marker has the same id in all recordings of a process.
 *
 * Who does what under which lock: what is called "with the lock" has the library's (markers.h). The writer never takes
 * it; it gets events through a list, and gives and takes the words of struct record_rings.
 */
#ifndef KYMO_LIB_RECORD_H
#define KYMO_LIB_RECORD_H

#include <pthread.h>
#include <sys/types.h>

#include "arch/pad.h"
#include "markers.h"
#include "record/clock.h"
#include "record/output.h"
#include "ring/ring.h"

/* ---- record_rings.c -------------------------------------------------------------------------- */

/*
 * What the slots of recorded markers point to, on a page of its own that is never unmapped. Producers rely on it; it
 * does not change once it is in a slot, but for the last words, which are futexes.
 */
struct record_rings {
	struct kymo_marker_rings rings;        /* compiled code knows this much */
	const struct kymo_pad_rings *geometry; /* behind this struct, and for ever, too */
	struct kymo_wire_ring *locked;         /* the rings with locks: one a CPU, then spare ones */
	uint32_t n_locked, n_cpus;
	uint32_t has_rdpid;
	pid_t pid; /* whose writer there is */

	uint32_t is_asleep;  /* the writer waits for something to do: who sets it to 0 wakes it */
	uint32_t is_ending;  /* the writer is to end */
	uint32_t is_at_exit; /* and the process with it */
	uint32_t is_done;    /* it has written the whole trace */
	int32_t writer;      /* its thread id, once it runs */
};

/* The writer's view of them. */
struct record_memory {
	struct record_rings *shared;
	size_t size; /* of the mapping that begins with `shared` */
	size_t n_rings;
	struct kymo_ring *rings;     /* those for sequences, if any, then those with locks */
	struct output_place *places; /* where each ring's packets go */
};

#define RECORD_BUFFER_MIN (UINT64_C(64) << 10)
#define RECORD_BUFFER_MAX (UINT64_C(4) << 30)
#define RECORD_BUFFER_DEFAULT (UINT64_C(4) << 20)

/* Ask the loader where threads have their ids. Once, before a lock is held. */
void kymo_record_find_threads(void);

/* Map and populate rings of `buffer_size` bytes a CPU. -ENOMEM. */
int kymo_record_memory_create(uint64_t buffer_size, struct record_memory *ret);

/* The rings of places that are not recorded any more. */
const struct kymo_marker_rings *kymo_record_idle(void);

/* End all writing into the rings, for good. False where some thread may be writing still: one that was interrupted
 * within a moment of it, by a handler that does not return. */
bool kymo_record_memory_seal(struct record_memory *memory);

/* Give the memory back, but for the page that is for ever; only when it is sealed (`is_sealed`), else all of it stays.
 * Producers that come late find rings without room. */
void kymo_record_memory_release(struct record_memory *memory, bool is_sealed);

/* In the child of a fork(), which has the mapping, wiped but for the first page: make rings without room of it. */
void kymo_record_memory_forked(struct record_rings *rings);

/* ---- record_slow.c --------------------------------------------------------------------------- */

/* rings.slow. */
void kymo_record_slow(void);

/* Types of the arguments of each event, by id: KYMO_RECORD_TYPES in each chunk. Grows only. */
#define RECORD_CHUNK 1024
#define RECORD_CHUNKS ((KYMO_EVENT_ID_MAX + 1) / RECORD_CHUNK)
extern const uint32_t *kymo_record_types[RECORD_CHUNKS];

/* Of each thread: its id, where the control block does not tell; 0: not asked for yet. */
extern _Thread_local uint32_t kymo_record_tid __attribute__((tls_model("initial-exec")));

/* ---- record_image.c -------------------------------------------------------------------------- */

/* What the file of a module says. */
struct record_image {
	const struct lib_module *module; /* NULL: of none */
	char *path;                      /* as the process has it mapped */
	uint64_t start, offset;          /* a mapping of it: where it is in memory, and in the file */
	char build_id[65];
	char *bytes;                   /* of the tables below */
	struct record_symbol *symbols; /* all, by address */
	size_t n_symbols;
	struct record_symbol *functions; /* those with an extent, which do not overlap */
	size_t n_functions;
};

/* `inside` is an address in the module's text. What the file does not tell is left out. -ENOMEM. */
int kymo_record_image_create(const struct lib_module *module, uintptr_t inside, struct record_image *ret);
void kymo_record_image_deinit(struct record_image *image);

/* "function+0x12", as kymo_module_describe() has it (sym/sym.h). */
void kymo_record_image_describe(const struct record_image *image, uintptr_t address, char *out, size_t size);

/* ---- record_events.c ------------------------------------------------------------------------- */

/* An event for the trace, on its way to the writer. */
struct record_news {
	struct record_news *next;
	struct kymo_ctf_event event;
};

/*
 * The id of the first place of `marker`; the others follow. What recording number `recording` has not been told of them
 * is put before `*news`. With the lock. -ENOMEM; -ENOSPC: there are too many
 */
int kymo_record_event_ids(const struct lib_marker *marker, uint64_t recording, struct record_news **news,
			  uint32_t *ret);

/* Let go of the file that was looked at last. */
void kymo_record_events_settle(void);

void kymo_record_news_destroy(struct record_news *news);

/* ---- record_writer.c ------------------------------------------------------------------------- */

/* The trace while it is being written. All but `news` is the writer's from kymo_record_writer_start() until it is
 * joined. */
struct recording {
	struct record_memory memory;
	struct output output;
	struct clock_sample begin;
	struct record_news *news; /* exchanged: the latest is the first */
	pthread_t thread;
	uint64_t buffer_size;
	uint64_t next_flush_ns, next_look_ns;
	size_t n_threads;                   /* that the metadata on the disk know */
	bool has_metadata, has_rough_clock; /* on the disk */
	unsigned long lost;
	struct kymo_error *error; /* the first one: nothing is written from then on */
	struct recording *before; /* in a forked child: another one that a parent left */
};

/* Begin the trace in a directory that is there. Errors of pthread_create(). */
int kymo_record_writer_start(struct recording *recording);

/* Tell the writer to finish; it is not waited for. From any thread. */
void kymo_record_writer_end(struct record_rings *rings);

/* Wait until the trace is complete. */
void kymo_record_writer_wait(struct record_rings *rings);

#endif
