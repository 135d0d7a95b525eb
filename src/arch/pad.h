/*
 * Generating pads: the machine code that runs at a probe. Pure, like the rest of arch: addresses in, bytes out.
 *
 * Public header of the room, beside code.h.
 */
#ifndef KYMO_ARCH_PAD_H
#define KYMO_ARCH_PAD_H

#include "arch/code.h"
#include "arch/fetch.h"
#include "arch/plan.h"

/* The live page. Its first byte is the state. */
#define KYMO_PAD_OFF 0      /* as in a forked child, or any other value: pads record nothing */
#define KYMO_PAD_EARLY 0x45 /* threads have no thread pointer yet, or their tid is not found: the pid is recorded */
#define KYMO_PAD_LIVE 0x4c  /* each thread's tid is at its thread pointer + the offset below */
#define KYMO_PAD_RSEQ 0x52  /* … and its restartable sequences are registered, at its thread pointer + the other */
#define KYMO_PAD_LIVE_TID_OFFSET 8   /* where in the page that offset is, s64 */
#define KYMO_PAD_LIVE_RSEQ_OFFSET 16 /* s64 */
#define KYMO_PAD_LIVE_VFORKS 24 /* u64: the address of the struct kymo_wire_vforks that counts for this process now */
#define KYMO_PAD_LIVE_PID 32    /* s32: what is recorded as tid if the tid is not readable */
#define KYMO_PAD_LIVE_STACK_ENOUGH \
	40 /* u64: if the initial thread's stack pointer is below this, but not below the next, a pad */
#define KYMO_PAD_LIVE_STACK_LOW 48 /* may not fit; 0: not known, and no pad looks */
#define KYMO_PAD_LIVE_SKIPPED \
	56 /* u64: hits of the initial thread that have no record for that reason; pads add atomically */
#define KYMO_PAD_LIVE_VFORK_LIST 64 /* such a struct; that of the first region is used */

/* u64: the process's id as it sees itself, for reads of its memory by a system call; 0: it must make none */
#define KYMO_PAD_LIVE_READER 192

/*
 * Other threads of glibc's, where thread control blocks point to themselves: their stacks begin at the u64 at the
 * thread pointer + the first of these words. A pad may not fit in the first bytes; the second word is their number: the
 * guard and KYMO_PAD_STACK_ENOUGH. 0: not known, and no pad looks.
 */
#define KYMO_PAD_LIVE_THREAD_STACK 200 /* u64 */
#define KYMO_PAD_LIVE_THREAD_LOW 208   /* u64 */

#define KYMO_PAD_LIVE_INNER_PID 216 /* s32: the process's id as it sees itself */
/* 224: KYMO_PAD_LIVE_LEASE (writes.h) */
#define KYMO_PAD_LIVE_READABLE 232 /* u64: the address of struct kymo_wire_readable; 0: there is none */
/* u32: the upper half of the address of the arena of function clones (wire/clones.h); 0: there is none */
#define KYMO_PAD_LIVE_ARENA 240
/* u32 [KYMO_PAD_TRAPS]: words of events that trap */
#define KYMO_PAD_LIVE_TRAPS 256
#define KYMO_PAD_TRAPS 448u
/* struct kymo_wire_sample [KYMO_WIRE_SAMPLES]; those of the first region are used */
#define KYMO_PAD_LIVE_SAMPLES 2048

struct kymo_pad_print;

#define KYMO_PAD_MAX_EVENTS 16 /* at one site */

/* The most bytes below the stack pointer that a pad uses, a multiple of 8: the red zone that it steps over, its frame,
 * and what the shared code takes when a ring has to be changed. */
#define KYMO_PAD_STACK_MAX 384

/* What the shared code takes beyond that to read memory. */
#define KYMO_PAD_READER_STACK 64

/* If less is left of the thread's stack, pads whose plan says that flags are dead record nothing and do not use the
 * stack. The program is about to overflow it, and its handler then finds the program counter in the program's own text.
 * */
#define KYMO_PAD_STACK_ENOUGH (KYMO_PAD_STACK_MAX + 128)

/*
 * Where rings are, and their largest sizes, in memory that the target cannot write. Whatever the words of a ring say
 * (wire/shared.h), each store stays within these bounds. A ring may use fewer and smaller sub-buffers.
 */
struct kymo_pad_ring {
	uint64_t end;         /* of the ring's last sub-buffer; offsets are relative to the ring's control block */
	uint64_t data_offset; /* of its first */
	uint64_t subbuffer_size;
	uint32_t n_subbuffers;
	uint32_t cpu; /* whose sequences are the producers, if any are */
};

struct kymo_pad_rings {
	uint64_t first; /* address of the first control block */
	uint32_t n;
	uint32_t overwrite;
	uint64_t reserved[2];
	struct kymo_pad_ring rings[]; /* those for sequences, then those with locks */
};

/* Bytes of a table of `n` rings. */
static inline size_t kymo_pad_rings_size(uint32_t n)
{
	return sizeof(struct kymo_pad_rings) + n * sizeof(struct kymo_pad_ring);
}

/* What the pads of one region share. Runtime addresses in the target. */
struct kymo_pad_env {
	uint64_t guest;       /* where kymo_pad_guest()'s bytes are */
	uint64_t geometry;    /* where struct kymo_pad_rings is */
	uint64_t live;        /* the live page */
	uint64_t rseq_rings;  /* one for each CPU, for restartable sequences; 0: the pads have none */
	uint64_t rings;       /* the first ring with a lock, right after those */
	uint32_t n_sequenced; /* rings for sequences */
	uint32_t n_rings;     /* those with a lock; the first n_cpus are the CPUs' own */
	uint64_t vforks;      /* struct kymo_wire_vforks, which guards keep */
	uint64_t header;      /* struct kymo_wire_header */
	uint64_t words;       /* struct kymo_wire_words */
	uint64_t data;        /* struct kymo_wire_data */
	uint64_t samples;     /* struct kymo_wire_sample [KYMO_WIRE_SAMPLES] */
	uint64_t lease;       /* KYMO_PAD_LIVE_LEASE (arch/writes.h) of the first live page */
	uint64_t readable;    /* struct kymo_wire_readable; 0: there is none */
	int32_t position;     /* of a thread's word that leads into the arena, from its FS base; 0: no anchors are made,
				 as in pads without a chain */
	uint32_t n_cpus;
	uint64_t stack_low,
		stack_high; /* the initial thread's stack: readable from its stack pointer to stack_high; may be 0 */
};

/* Which hits are recorded. The count is of hits that the filter lets through, in all threads of the process. */
enum kymo_pad_sampling {
	KYMO_PAD_SAMPLE_ALL,
	KYMO_PAD_SAMPLE_EVERY, /* the first of each `n` */
	KYMO_PAD_SAMPLE_FIRST, /* the first `n` */
	KYMO_PAD_SAMPLE_RATE,  /* one in `n` ticks on average, and bursts of what up to `burst` ticks have saved */
};

#define KYMO_PAD_SAMPLE_MAX INT32_MAX /* of `n` and `burst`; of RATE `n` may be up to 4 times that */

struct kymo_pad_sample {
	enum kymo_pad_sampling kind;
	uint32_t slot; /* its word: one for all pads of a probe */
	uint64_t n, burst;
};

/* One record that a pad makes. If its arguments write (struct kymo_fetch), arch/writes.h has more rules. */
struct kymo_pad_event {
	uint32_t id; /* 1 to KYMO_EVENT_ID_MAX */
	const struct kymo_fetch *args;
	size_t n_args;                  /* <= KYMO_EVENT_MAX_ARGS; 1 with a payload */
	const struct kymo_form *filter; /* a record is made if its value is not 0 and not a fault; NULL: always */
	bool retval_is_unknown;         /* for the filter */
	bool adds_number; /* of a system call, which is in rax, to the id; kymo_pad_emit_syscall() alone */
	struct kymo_pad_sample sample;
	/*
	 * In the target: a u32 of the live page, so that it is 0 in a forked child. Not 0: no record is made, and `id`
	 * means nothing. While the word there is 0 the pad does the displaced instructions alone, and where flags are
	 * dead it uses no stack. Else it computes the filter. If its value is a fault or not 0, the thread comes to
	 * the breakpoint instruction at `layout.trap`. So it does where flags are dead and the initial thread's stack
	 * ends here. Its registers are those of the site except the program counter and dead flags. It is to go on at
	 * insn_at[0]. The word is tested once more right before.
	 *
	 * A filter reads memory by plain loads, and the pad stores to the stack. So only a tracer of all threads sets
	 * the word. It takes each SIGSEGV and SIGBUS of the pad's own code from a thread: its program counter is in
	 * front of insn_at[0], or at `layout.fault` or behind that. One in [condition, condition_end) may go on at
	 * `layout.fault`. Such an event is alone at its site, has neither arguments nor samples, asks the kernel
	 * nothing, has no floating-point numbers, and ends its chain.
	 */
	uint64_t trap;
	/* Of such an event: where the condition holds a record is made (wire/prints.h), and the thread does not come to
	 * the trap. It does where an argument has no value, or no record can be made of it. */
	const struct kymo_pad_print *print; /* arch/print.h */
};

/* Bytes that the composed arguments of one event may have (docs/internals/reading.md). */
#define KYMO_PAD_COMPOSED_MAX 1100

/* The most bytes that all arguments take together, if some of them need that (kymo_pad_reads()); 0: none do. More than
 * KYMO_PAD_COMPOSED_MAX are refused. */
uint32_t kymo_pad_composed_size(const struct kymo_fetch *args, size_t n_args);

/* Whether the event's filter or arguments do what a restartable sequence must not: read memory by a system call, or
 * compute with floating-point numbers. */
bool kymo_pad_reads(const struct kymo_pad_event *event);

/* Whether it reads memory by a system call, as above; computing with floating-point numbers does not count. */
bool kymo_pad_reads_memory(const struct kymo_pad_event *event);

/* Whether it reads by pointers of the program's, or variables: more than words at the stack pointer, copies of the
 * stack and answers of the kernel. */
bool kymo_pad_reads_elsewhere(const struct kymo_pad_event *event);

/* Bytes of the stack that its pad takes for that, besides KYMO_PAD_STACK_MAX. */
uint32_t kymo_pad_reads_stack(const struct kymo_pad_event *event);

/* Whether records of these arguments carry the faults byte (wire/event.h). */
bool kymo_pad_has_faults(const struct kymo_fetch *args, size_t n_args);

/* Bytes of one record after its header: without its payload, and with empty strings and bytes. */
uint32_t kymo_pad_body_size(const struct kymo_fetch *args, size_t n_args);

/* Whether one of the arguments is the whole flags register: they are in the frame then. */
bool kymo_pad_wants_flags(const struct kymo_pad_event *events, size_t n_events);

/* Upper bound of a pad's size for `n_events` events; `events` may be NULL where none of them has a form. */
size_t kymo_pad_size_max(const struct kymo_pad_event *events, size_t n_events);

/* How much of that the forms of one event take. */
size_t kymo_pad_forms_size(const struct kymo_pad_event *event);

/* The code that all pads of a region share; it must lie at env.guest. Bytes are static. */
const uint8_t *kymo_pad_guest(size_t *size_ret);

/* What runs after a pad at a site that several recordings have (wire/shared.h, struct kymo_wire_site). */
struct kymo_pad_chain {
	uint64_t next;   /* in the target: the word with the address where this pad goes on; 0: no recording comes after
			    it */
	bool save_flags; /* a later pad of the chain reads the flags from the frame */
	uint64_t watch;  /* in the target: struct kymo_wire_watch, where threads ask for attention and wait for it; or 0
			  */
	uint64_t file;   /* for forms that have KYMO_FORM_FILE: the address of the site - its offset in the file */
	uint32_t watched_signals; /* the site is sigaction's entry, and threads that set handlers of these (1 << signal)
				     ask; 0: all do */
	bool mutes;               /* the site is prctl's entry, and does what a guard there does (arch/guard.h) */
};

/* How long a thread waits for an answer at most: rounds of a loop with `pause`, 50 to 500 ms. */
#define KYMO_PAD_WATCH_ROUNDS 10000000

/* Offsets in a pad. */
struct kymo_pad_layout {
	uint32_t size;
	uint32_t entry;     /* threads come here from the text */
	uint32_t inner;     /* and here from another recording's pad, with the frame in place */
	uint32_t displaced; /* the way out: the frame is removed, then the displaced instructions follow */
	uint32_t trap;      /* the breakpoint instruction of an event that has one; else 0, as these: */
	uint32_t save, condition, condition_end, fault;
	uint32_t claim; /* of one that prints: after the exchange by which it takes a slot; else 0, as these: */
	uint32_t gave_up, full, counted; /* it has left the slot; there is none; it has counted that */
	uint32_t hop; /* with a chain: the jump to the address in `next`, which is in rax then; else 0 */
	uint16_t insn_at[KYMO_WINDOW_MAX_INSNS + 1]; /* of each displaced or copied instruction, with one more for the
						      * jump back: where a thread that stood at that instruction goes */
};

/*
 * Write the pad for `plan`, the site of which is at runtime address `site`, to run at runtime address `pad` (a multiple
 * of 32). Without events the pad does the displaced instructions and nothing else. 0 and `ret`; -ERANGE, -ENOTSUP (see
 * kymo_relocate()), -ENOSPC, -EINVAL for arguments out of range.
 */
int kymo_pad_emit(const struct kymo_pad_env *env, const struct kymo_plan *plan, uint64_t site, uint64_t pad,
		  const struct kymo_pad_event *events, size_t n_events, const struct kymo_pad_chain *chain,
		  uint8_t *out, size_t size, struct kymo_pad_layout *ret);

/* ---- rings ----------------------------------------------------------------------------------- */

/*
 * From the recorder, which must run on `cpu` (sched_setaffinity): stop producers from using the sequence-driven ring of
 * that CPU, so that its packet can be closed. The ring's lock is held. false when the recorder itself has no
 * restartable sequences, or was moved to another CPU.
 */
struct kymo_wire_ring;
bool kymo_pad_close_ring(struct kymo_wire_ring *ring, uint32_t cpu);

#endif
