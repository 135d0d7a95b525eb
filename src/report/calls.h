/*
 * Entries and returns paired, for each thread.
 *
 * A thread has stacks of calls that are open (aggr/stacks.h). If records hold stack pointers, a return ends the call of
 * its function that has the same one. A call is over when its thread is seen above its frame: an exception, a longjmp
 * or the like has left it. Where they do not, a return ends the innermost call of its function, and what is open above
 * that has been left without a return. A return that finds none is one of a call that began before the recording, or
 * whose entry was lost.
 *
 * Losses: it is not known which threads' records are missing from a span with a loss. So no call that was open at any
 * moment of it is trusted: it is counted, not timed. When the span is over such calls leave the stack, or those whose
 * return was lost would pile up there; they are remembered by function and number, so that returns that come after all
 * are not taken for ones without an entry. The same is done with the outermost call of a stack that is MAX_DEPTH high.
 * After damage all is a loss. Hits of vfork children are no such losses: they are the records of no thread.
 *
 * Memory: a stack and a few numbers a thread, whatever the number of records.
 */
#ifndef KYMO_REPORT_CALLS_H
#define KYMO_REPORT_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "ctf/ctf.h"
#include "report/fates.h"
#include "report/filter.h"
#include "report/functions.h"
#include "report/spans.h"
#include "aggr/stacks.h"
#include "report/threads.h"

#define MAX_DEPTH 4096

/* What a record is to its thread's calls. */
enum step_kind {
	STEP_NONE, /* no entry and no return, or none that can be paired */
	STEP_ENTER,
	STEP_LEAVE, /* and all about the call is known */
	STEP_LEAVE_OVER_LOSS,
	STEP_LEAVE_TOO_DEEP,
	STEP_LEAVE_WITHOUT_ENTRY,
};

struct step {
	enum step_kind kind;
	uint32_t function; /* unless NONE */
	uint64_t ns;       /* of LEAVE, and of LEAVE_OVER_LOSS if it has a frame */
	bool has_frame;    /* of LEAVE…: `frame` is the one that has ended */
	struct frame frame;
	struct frame *entered; /* of ENTER; good until the next record */
};

struct calls {
	const struct kymo_ctf_trace *trace;
	const struct kymo_ctf_reader *reader;
	const struct threads *threads;
	struct functions functions;
	KYMO_VEC(struct stack) stacks; /* as threads->items */
	struct spans spans;
	const struct filter *filter; /* calls that it does not show are not counted; NULL: all are */
	size_t n_losses;             /* that have begun */
	bool has_loss;
	uint64_t loss_end;      /* the latest of them */
	uint64_t stale_before;  /* calls that began before are not kept on stacks */
	struct fates *fates;    /* or NULL */
	bool foresees;          /* the fates are known */
	size_t n_entries;       /* that have a fate */
	uint32_t number;        /* of records that have a part in one */
	uint64_t other_threads; /* records of threads that are not told apart */
	/* Called for a call that was left without a return, innermost first. May be NULL. */
	void (*left)(void *data, size_t thread, const struct frame *frame);
	/* The same of one that leaves the stack because of a loss, or as too many are within it; its return may still
	 * come. */
	void (*forgotten)(void *data, size_t thread, const struct frame *frame);
	void *data;
};

/* `reader` is where the records come from, for its losses; `threads` knows the thread of each record before the record
 * is added. Both must outlive the calls. */
struct kymo_error *kymo_calls_init(struct calls *calls, const struct kymo_ctf_reader *reader,
				   const struct threads *threads);
void kymo_calls_deinit(struct calls *calls);

/* Which calls are within which is right where `fates` are known; where they would be of use, that is noted there, and
 * the caller may begin anew with them. They must outlive the calls. */
void kymo_calls_foresee(struct calls *calls, struct fates *fates);

/* Whether it is no use to go on without fates. */
static inline bool kymo_calls_need_fates(const struct calls *calls)
{
	return calls->fates && calls->fates->is_needed && !calls->foresees;
}

/* Count only calls that the filter shows: of its probes, and that begin in its time. It must outlive the calls. */
void kymo_calls_filter(struct calls *calls, const struct filter *filter);

/* Is a call of the function that begins at that time counted? */
bool kymo_calls_count(const struct calls *calls, const struct function *function, uint64_t tsc);

/* Take in one record of the thread with that index (NO_THREAD too), in the order of time. */
struct kymo_error *kymo_calls_add(struct calls *calls, size_t thread, const struct kymo_ctf_record *record,
				  struct step *ret);

/* The records have ended: count what is open. */
void kymo_calls_finish(struct calls *calls);

/* How many calls are open in a thread. */
static inline uint32_t kymo_calls_depth(const struct calls *calls, size_t thread)
{
	return thread < calls->stacks.n ? calls->stacks.items[thread].now.n : 0;
}

#endif
