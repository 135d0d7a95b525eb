/*
 * Pads that run: rings, the list of vforks, a live page and code in the test's own memory, laid out as in a target, and
 * the recorder's side.
 */
#ifndef KYMO_TESTS_ARCH_PADS_H
#define KYMO_TESTS_ARCH_PADS_H

#include "arch/pad.h"
#include "base/vec.h"
#include "mix.h"
#include "ring/ring.h"
#include "wire/event.h"
#include "wire/shared.h"

enum kind { LOCKS, SEQUENCES, N_KINDS };

#define CODE_SIZE ((size_t)2 << 20)
#define WORLD_PID 123456789     /* what pads record if the thread's id is not available */
#define N_SPARE 16              /* more than four threads and their handlers can hold at a time */
#define LENGTH_FIRST UINT32_MAX /* in place of a size: what follows the header begins with its own size, a u16 */

/* How many records of `body` bytes a sub-buffer takes where all have one thread and short headers: there has to be room
 * for a thread's record before each, and is one before the first. */
#define RECORDS_OF(subbuffer, body) (((subbuffer)-2 * KYMO_PACKED_THREAD_SIZE) / (KYMO_PACKED_COMPACT_SIZE + (body)))

struct record {
	uint32_t ring, id;
	int32_t tid;
	uint64_t stamp;                    /* from the first of its packet */
	size_t size;                       /* of what follows the header */
	uint8_t args[KYMO_EVENT_MAX_SIZE]; /* that, or its beginning */
};

struct shape {
	uint64_t subbuffer_size;
	uint32_t n_subbuffers;
	bool overwrite;
};

struct world {
	enum kind kind;
	struct kymo_pad_env env;
	uint8_t *code, *write; /* the same memory: to run, to write */
	size_t code_used;
	uint8_t *live;
	uint8_t *shared;
	uint8_t *around;       /* what is reserved before and after it: `reserve` bytes each */
	uint64_t gap, reserve; /* gap: bytes between rings, and between them and their control blocks */
	size_t shared_size;
	struct kymo_wire_vforks *vforks;
	struct kymo_wire_sample *samples;
	struct kymo_wire_header *header; /* zero */
	struct kymo_wire_words *words;   /* zero */
	struct kymo_wire_data *counts;   /* zero, but for what pads count in it */
	struct shape shape;
	uint32_t n_sequenced, n_rings;
	struct kymo_ring *readers;
	uint64_t *last_stamp;                      /* of each ring */
	uint64_t bias;                             /* of the module that sites are in */
	uint32_t sizes[512];                       /* of the records of each event id, after the header */
	bool is_known[512];                        /* there are such events */
	uint64_t n_threads;                        /* threads' records that were read */
	const struct kymo_pad_event *varying[512]; /* of an id: its records have strings and bytes; else NULL */
	KYMO_VEC(struct record) records;           /* those that were read */
	void (*on_record)(void *data, const struct record *record,
			  const uint8_t *bytes); /* NULL; all that follows the header */
	void *data;
};

struct site {
	uint64_t address, pad;
	struct kymo_plan plan;
	struct kymo_pad_layout layout;
};

/* Where this C library keeps a thread's id and its struct rseq, from the thread pointer; rseq 0 when it has none. */
int64_t tid_offset(void);
int64_t rseq_offset(void);

/* What this thread's struct rseq holds. */
uint32_t own_rseq_cpu(void);
uint64_t own_rseq_cs(void);
void unregister_own_rseq(void);

/* Whether pads of `kind` can run here. */
bool is_possible(enum kind kind);

/* The live page says LIVE or RSEQ, by kind. */
void world_init(struct world *world, enum kind kind, struct shape shape);
void world_deinit(struct world *world);

/* The same with rings apart from each other, in private memory of which only what is touched exists. */
void world_init_within(struct world *world, enum kind kind, struct shape shape, uint64_t gap, uint64_t reserve);
void world_state(struct world *world, uint8_t state);

struct kymo_wire_ring *world_ring(const struct world *world, uint32_t i);

/* Put code into the target. Its runtime address. */
uint64_t world_code(struct world *world, const void *bytes, size_t size);
void world_write(struct world *world, uint64_t address, const void *bytes, size_t size);

/* A function and a pad at its start: `uint32_t f(uint64_t x)` gives 2 * x + 7; or one that is entered by enter(). */
void world_function(struct world *world, const struct kymo_pad_event *events, size_t n, struct site *ret);
void world_landing(struct world *world, const struct kymo_pad_event *events, size_t n, struct site *ret);

/* The same, entered by a push of rbx, which is taken back; the flags are dead. */
void world_pushing(struct world *world, const struct kymo_pad_event *events, size_t n, uint8_t scratch,
		   struct site *ret);

/* A pad in front of that of `site`, as another recording has it: it goes on to the inner entry of the other. */
void world_put_before(struct world *world, const struct site *site, const struct kymo_pad_event *events, size_t n,
		      struct site *ret);

/* A guard at `plan`, whose address is a runtime address. */
void world_guard(struct world *world, const struct kymo_plan *plan, struct site *ret);

uint32_t call(const struct site *site, uint64_t x);

/* Copy out what packets are complete; all of it, when no pad runs. Each record is looked at: whole, of an event
 * that there is, in order. */
void world_read(struct world *world);
void world_read_all(struct world *world);
void world_forget(struct world *world);
uint64_t world_lost(const struct world *world);

/* ---- known registers ------------------------------------------------------------------------- */

struct registers {
	uint64_t r[16]; /* as they are numbered in opcodes */
	uint64_t flags;
	uint8_t vectors[32 * 64]; /* zmm, or the first 16 xmm, 64 bytes from each to the next */
	uint64_t masks[8];
};

/* Enter a landing site with these, and get them as it leaves them. One thread at a time. */
void enter(const struct site *site, const struct registers *in, struct registers *out);

#define STACK_SIZE 65536
/* A stack of its own, behind which nothing can be read. */
uint8_t *stack_create(void);
void stack_destroy(uint8_t *stack);

uint64_t tsc(void);

#endif
