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

/*
 * The live page. Its first byte is the state; anything but these, zero in a forked child above all, makes pads record
 * nothing.
 */
#define KYMO_PAD_EARLY 0x45 /* threads have no thread pointer yet, or their tid is not found: the pid is recorded */
#define KYMO_PAD_LIVE 0x4c  /* each thread's tid is at its thread pointer + the offset below */
#define KYMO_PAD_RSEQ 0x52  /* … and its restartable sequences are registered, at its thread pointer + the other */
#define KYMO_PAD_LIVE_TID_OFFSET 8   /* where in the page that offset is, s64 */
#define KYMO_PAD_LIVE_RSEQ_OFFSET 16 /* s64 */
#define KYMO_PAD_LIVE_VFORKS 24 /* u64: the address of the struct kymo_wire_vforks that counts for this process now */
#define KYMO_PAD_LIVE_PID 32    /* s32: what is recorded as tid where it can't be read */
#define KYMO_PAD_LIVE_STACK_ENOUGH \
	40 /* u64: where the stack pointer of the initial thread is below that, but not below the next, a pad */
#define KYMO_PAD_LIVE_STACK_LOW 48  /* may not fit; 0: not known, and no pad looks */
#define KYMO_PAD_LIVE_SKIPPED 56    /* u64: hits of the initial thread without a record for that; pads add atomically */
#define KYMO_PAD_LIVE_VFORK_LIST 64 /* such a struct; that of the first region is used */

/* u64: the process's id as it sees itself, for reads of its memory by a system call; 0: it must make none */
#define KYMO_PAD_LIVE_READER 192

/*
 * Other threads of glibc's, where thread control blocks point to themselves: their stacks begin at the u64 at the
 * thread pointer + the first of these words, and a pad may not fit in the first bytes, of which the second is the
 * number: the guard and KYMO_PAD_STACK_ENOUGH. 0: not known, and no pad looks.
 */
#define KYMO_PAD_LIVE_THREAD_STACK 200 /* u64 */
#define KYMO_PAD_LIVE_THREAD_LOW 208   /* u64 */

#define KYMO_PAD_LIVE_INNER_PID 216 /* s32: the process's id as it sees itself */
/* u32 [KYMO_PAD_TRAPS]: words of events that trap */
#define KYMO_PAD_LIVE_TRAPS 256
#define KYMO_PAD_TRAPS 448u
/* struct kymo_wire_sample [KYMO_WIRE_SAMPLES]; those of the first region are used */
#define KYMO_PAD_LIVE_SAMPLES 2048

#define KYMO_PAD_MAX_EVENTS 16 /* at one site */

/* Bytes below the stack pointer, a multiple of 8, that a pad reaches at the most: the red zone that it steps over, its
 * frame, and what the shared code takes when a ring has to be changed. */
#define KYMO_PAD_STACK_MAX 384

/* Where less is left of the thread's stack, pads whose plan says that flags are dead record nothing and use
 * none of it: the program is about to overflow it, and its handler of that finds the program counter in the program's
 * own text. */
#define KYMO_PAD_STACK_ENOUGH (KYMO_PAD_STACK_MAX + 128)

/*
 * Where rings are and how large they are at the most, in memory that the target cannot write: whatever the words of a
 * ring say (wire/shared.h), each store stays within what is said here. A ring may use fewer and smaller sub-buffers
 * than these.
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
	uint64_t rings;       /* the first ring with a lock, right behind those */
	uint32_t n_sequenced; /* rings for sequences */
	uint32_t n_rings;     /* those with a lock; the first n_cpus are the CPUs' own */
	uint64_t vforks;      /* struct kymo_wire_vforks, which guards keep */
	uint64_t header;      /* struct kymo_wire_header */
	uint64_t words;       /* struct kymo_wire_words */
	uint64_t data;        /* struct kymo_wire_data */
	uint64_t samples;     /* struct kymo_wire_sample [KYMO_WIRE_SAMPLES] */
	uint32_t n_cpus;
	uint64_t stack_low,
		stack_high; /* the initial thread's stack: readable from its stack pointer to stack_high; may be 0 */
};

/* Of which hits a record is made. Those that its filter lets through are counted, in all threads of the process. */
enum kymo_pad_sampling {
	KYMO_PAD_SAMPLE_ALL,
	KYMO_PAD_SAMPLE_EVERY, /* the first of each `n` */
	KYMO_PAD_SAMPLE_FIRST, /* the first `n` */
	KYMO_PAD_SAMPLE_RATE,  /* one in `n` ticks, on the average; as many more as `burst` ticks have saved up */
};

#define KYMO_PAD_SAMPLE_MAX INT32_MAX /* of `n` and `burst`; of RATE `n` may be up to 4 times that */

struct kymo_pad_sample {
	enum kymo_pad_sampling kind;
	uint32_t slot; /* its word: one for all pads of a probe */
	uint64_t n, burst;
};

/* One record that a pad makes. */
struct kymo_pad_event {
	uint32_t id; /* <= KYMO_EVENT_ID_MAX */
	const struct kymo_fetch *args;
	size_t n_args;                  /* <= KYMO_EVENT_MAX_ARGS; 1 with a payload */
	const struct kymo_form *filter; /* a record is made where its value is not 0, and is no fault; NULL: always */
	bool retval_is_unknown;         /* for the filter */
	struct kymo_pad_sample sample;
	/*
	 * In the target: a u32 of the live page, so that it is 0 in a forked child. Not 0: no record is made, and `id`
	 * means nothing. While the word there is 0 the pad does the displaced instructions alone. Else it computes the
	 * filter, and where its value is not 0, or is a fault, the thread comes to the breakpoint instruction at
	 * `layout.trap`, with the registers that it has at the site but the program counter. It is to go on at
	 * insn_at[0]. The word is tested once more right before.
	 *
	 * A filter reads memory by plain loads. So only a tracer of all threads sets the word, and it takes each
	 * SIGSEGV and SIGBUS from a thread whose program counter is in [condition, condition_end): it is to go on at
	 * `layout.fault`. Such an event is alone at its site, has neither arguments nor samples, asks the kernel
	 * nothing, has no floating-point numbers, and ends its chain.
	 */
	uint64_t trap;
};

/* Bytes that the composed arguments of one event may have (docs/internals/reading.md). */
#define KYMO_PAD_COMPOSED_MAX 1100

/* The most bytes that arguments take of which some need that (kymo_pad_reads()), all together; 0: none do. More than
 * KYMO_PAD_COMPOSED_MAX are refused. */
uint32_t kymo_pad_composed_size(const struct kymo_fetch *args, size_t n_args);

/* Whether the event, in its filter or for its arguments, does what no sequence may: read memory by a system call, or
 * compute with floating-point numbers. */
bool kymo_pad_reads(const struct kymo_pad_event *event);

/* Whether it reads memory: of those above, not what only computes with floating-point numbers. */
bool kymo_pad_reads_memory(const struct kymo_pad_event *event);

/* Bytes of the stack that its pad takes for that, besides KYMO_PAD_STACK_MAX. */
uint32_t kymo_pad_reads_stack(const struct kymo_pad_event *event);

/* Whether records of these arguments carry the faults byte (wire/event.h). */
bool kymo_pad_has_faults(const struct kymo_fetch *args, size_t n_args);

/* Bytes of one record; of one with a payload, without that; of one with strings and bytes, with empty ones. */
uint32_t kymo_pad_record_size(const struct kymo_fetch *args, size_t n_args);

/* Whether one of the arguments is the whole flags register: they are in the frame then. */
bool kymo_pad_wants_flags(const struct kymo_pad_event *events, size_t n_events);

/* Upper bound of a pad's size for `n_events` events; `events` may be NULL where none of them has a form. */
size_t kymo_pad_size_max(const struct kymo_pad_event *events, size_t n_events);

/* The part of that which the forms of one event take. */
size_t kymo_pad_forms_size(const struct kymo_pad_event *event);

/* The code that all pads of a region share; it must lie at env.guest. Bytes are static. */
const uint8_t *kymo_pad_guest(size_t *size_ret);

/* What runs after a pad at a site that several recordings have (wire/shared.h, struct kymo_wire_site). */
struct kymo_pad_chain {
	uint64_t next;   /* in the target: the word with the address where this pad goes on; 0: nobody comes after it */
	bool save_flags; /* one of those behind reads the flags out of the frame */
	uint64_t watch;  /* in the target: struct kymo_wire_watch, where threads ask for attention and wait for it; or 0
			  */
	uint64_t file;   /* for forms that have KYMO_FORM_FILE: the address of the site - its offset in the file */
	uint32_t watched_signals; /* the site is sigaction's entry, and those that set handlers of these (1 << signal)
				     ask; 0: all do */
};

/* Bound of what a thread waits for an answer: rounds of a loop with `pause`, 50 to 500 ms. */
#define KYMO_PAD_WATCH_ROUNDS 10000000

/* Offsets in a pad. */
struct kymo_pad_layout {
	uint32_t size;
	uint32_t entry;     /* threads come here from the text */
	uint32_t inner;     /* and here from another recording's pad, with the frame in place */
	uint32_t displaced; /* the way out: the frame is taken down, then come the displaced instructions */
	uint32_t trap;      /* the breakpoint instruction of an event that has one; else 0, as these: */
	uint32_t condition, condition_end, fault;
	uint32_t hop; /* with a chain: the jump to what `next` says, which is in rax then; else 0 */
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

/* ---- system calls ---------------------------------------------------------------------------- */

#define KYMO_PAD_SYSCALLS 512 /* numbers that can be wanted are below */

/* What is recorded of system calls: at the entry an event with six x64, by its number; at the exit one with an s64. */
struct kymo_pad_syscalls {
	uint64_t wanted[KYMO_PAD_SYSCALLS / 64];
	uint32_t first_id; /* of the entry of call 0; of call n, first_id + n */
	uint32_t exit_id;
};

/* Whether the plan displaces a `syscall` and nothing else. */
bool kymo_pad_is_syscall(const struct kymo_plan *plan);

/* Write the pad of a system call; as kymo_pad_emit(), with room for kymo_pad_size_max(1). It ends its chain. */
int kymo_pad_emit_syscall(const struct kymo_pad_env *env, const struct kymo_plan *plan, uint64_t site, uint64_t pad,
			  const struct kymo_pad_syscalls *syscalls, uint8_t *out, size_t size,
			  struct kymo_pad_layout *ret);

/* ---- guards ---------------------------------------------------------------------------------- */

/*
 * Restartable sequences are safe in threads that are registered with the kernel. Between its birth and its registration
 * a new thread of glibc's is not, but may show the cpu_id of a thread that is gone; and a vfork child shows its
 * parent's for good. Guards sit on the system calls by which glibc makes threads and processes (clone, clone3, vfork):
 * they mark a new thread's cpu_id as unregistered, as a later glibc does itself, and list threads that wait for a child
 * which has their control block.
 */

/*
 * One more guard sits on prctl: strict seccomp and PR_TSC_SIGSEGV make rdtsc a fault, so before that all live pages are
 * cleared and the header says so.
 *
 * Find those calls in a module: their plans (each `mov $number,%eax; syscall`, displaced together) go to `ret`. Returns
 * how many there are, or -EPERM when there is one that can't be guarded, -ENOSPC.
 */
int kymo_guard_find(const struct kymo_module_code *code, const struct kymo_entry_map *map, struct kymo_plan *ret,
		    size_t max);

/* Write the pad of a guard; as kymo_pad_emit(). A guard has no other entry than the one. */
int kymo_guard_emit(const struct kymo_pad_env *env, const struct kymo_plan *plan, uint64_t site, uint64_t pad,
		    uint8_t *out, size_t size, struct kymo_pad_layout *ret);

/*
 * From the recorder, which must run on `cpu` (sched_setaffinity): make producers of the sequence-driven ring of that
 * CPU leave it alone, so that its packet can be closed. The ring's lock is held. false when the recorder itself has no
 * restartable sequences, or was moved to another CPU.
 */
struct kymo_wire_ring;
bool kymo_pad_close_ring(struct kymo_wire_ring *ring, uint32_t cpu);

#endif
