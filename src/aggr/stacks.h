/*
 * The calls that a thread is in, by stack.
 *
 * Where records hold the stack pointer, it says what a record's thread is in: on one stack, a call with a lower one is
 * over. A thread may have several stacks (of coroutines, of goroutines, for signals). Nothing in a trace says where a
 * stack ends, so these rules find out:
 *
 *	1. A return belongs to the call of its function that has the very same stack pointer, on whatever stack. That is
 *	   no guess, where all entries have records, or all returns: no two calls that are open have the same one.
 *	2. Other records are of the stack on which their stack pointer was seen before; else of the present one, if that
 *	   is less than STACK_REACH away and no other stack lies between; else of one that is less than STACK_NEAR away;
 *	   else of a new one.
 *	3. Rule 2 may take two stacks for one, and calls that wait for over. So they are remembered for a while: when
 *	   one returns after all, by rule 1, it gets a stack of its own, with those around it that were taken for over.
 *
 * So rule 2 decides within what a call is shown, and never how long it took.
 *
 * Where a trace was read before, it is known when each call returns (report/fates.h). Then rule 4 takes the place of
 * rules 2 and 3: kymo_stack_choose() of aggr/choice.h.
 */
#ifndef KYMO_AGGR_STACKS_H
#define KYMO_AGGR_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "ctf/ctf.h"

#define STACK_REACH (1u << 20) /* bytes */
#define STACK_NEAR (1u << 14)
#define STACK_CLOSE (1u << 13) /* half of what the smallest stacks have */
#define MAX_STACKS 1024u       /* of a thread, besides the present one */
#define EMPTY_MAX 64u          /* … among which those may be that have no calls */
#define MAX_OVER 256u          /* calls of a thread that are remembered; a power of two */
#define STACK_PIECES 4u
#define STACK_GAP 2048u /* bytes between two pieces, at least, while there are no more than STACK_PIECES */
/* Of a call that does not return. The bits below it are the number of a return that is known to come before its end, or
 * 0. */
#define LEAVES_NEVER (UINT32_C(1) << 31)

/* A call that is open. */
struct frame {
	uint64_t begin;         /* TSC */
	uint64_t stack_pointer; /* at its entry; 0: not known */
	uint64_t children_ns;   /* of calls within it */
	uint32_t function;
	uint32_t leaves; /* the number of its return (struct stack), or with LEAVES_NEVER; 0: not known */
	uint32_t until;  /* the number of the first return that is known to come of it and those around it; or 0 */
	/* Whatever the caller keeps with it: */
	bool is_shown;
	uint32_t level;
	uint64_t line;
	uint64_t kept[KYMO_EVENT_MAX_ARGS];
	uint8_t kept_faults;
	uint32_t kept_stack;
	/* The record of its entry, in struct kymo_entry_records, and its event; of size 0: it is not kept. */
	uint64_t record_at;
	uint32_t record_size, record_event;
};

/* Stack pointers, both inclusive. */
struct piece {
	uint64_t low, high;
};

/* Calls on one stack, each within the one before it: their stack pointers never go up. */
struct frames {
	struct frame *items; /* a ring of `size`, a power of two or 0 */
	uint32_t first, n, size;
	uint64_t low, high; /* stack pointers that were seen on it; 0: none */
	/* The same by rule 4. Other stacks may lie between the pieces: in a frame of this one. */
	struct piece pieces[STACK_PIECES];
	uint32_t n_pieces;
};

/* A call that was taken for over. */
struct over {
	struct frame frame;
	uint64_t moment; /* those of one moment were on one stack, innermost first */
};

/* Calls of one function that left the stack before their returns have come. */
struct absent {
	uint32_t function;
	int kind; /* enum step_kind of their returns */
	uint64_t count;
};

struct stack {
	struct frames now;              /* the thread runs on it */
	KYMO_VEC(struct frames) others; /* which have calls that are open, or pieces and `is_foreseen` */
	bool is_foreseen;               /* rule 4 is in force */
	uint32_t number;                /* of the record that is taken now: entries and returns, from 1 on */
	struct piece clear;             /* no other stack has a piece that reaches into it */
	struct over *over;              /* a ring of MAX_OVER, or NULL */
	uint64_t n_over;                /* that were put there */
	uint64_t moment;
	uint32_t n_first; /* entries that were seen, up to a number of the caller's */
	const struct kymo_ctf_process *process;
	KYMO_VEC(struct absent) absent;
};

void kymo_stack_deinit(struct stack *stack);

/* Room for one call more. False when memory is out. */
bool kymo_frames_reserve(struct frames *frames);

/* The height of the innermost call of `function` with that stack pointer (or with none that is known), plus 1; 0: there
 * is none. */
uint32_t kymo_frames_find(const struct frames *frames, uint32_t function, uint64_t stack_pointer);

/* Go on on the other stack at that place. The present one is kept if it has calls, and the place of others may change.
 */
void kymo_stack_wake(struct stack *stack, size_t other);

/* Rule 2. False when memory is out. */
bool kymo_stack_select(struct stack *stack, uint64_t stack_pointer);

/* Whether it is known that the call returns. */
static inline bool kymo_frame_returns(const struct stack *stack, const struct frame *frame)
{
	return frame->leaves > stack->number && frame->leaves < LEAVES_NEVER;
}

/* Rule 1: as kymo_frames_find() on the stack that the call is on, which is the present one from then on. */
uint32_t kymo_stack_find(struct stack *stack, uint32_t function, uint64_t stack_pointer);

/* Take the innermost call of the present stack off, and remember it. */
void kymo_stack_end(struct stack *stack);

/* Rule 3: as kymo_stack_find() among the calls that are remembered; `*n_ret` is how many are open again. */
uint32_t kymo_stack_revive(struct stack *stack, uint32_t function, uint64_t stack_pointer, uint32_t *n_ret);

/* The call at height `i`; 0 is the outermost. */
static inline struct frame *kymo_frames_at(const struct frames *frames, uint32_t i)
{
	return &frames->items[(frames->first + i) & (frames->size - 1)];
}

/* The same on the stack that the thread runs on. */
static inline struct frame *kymo_stack_at(const struct stack *stack, uint32_t i)
{
	return kymo_frames_at(&stack->now, i);
}

#endif
