/*
 * Which thread a record is of. A tid that comes again, by the trace's table, is another thread.
 */
#ifndef KYMO_REPORT_THREADS_H
#define KYMO_REPORT_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/index.h"
#include "base/vec.h"
#include "ctf/ctf.h"

/* Threads beyond that are not told apart: tids are the target's words. */
#define MAX_THREADS (1u << 20)

#define NO_THREAD SIZE_MAX

struct thread {
	int32_t tid;
	const struct kymo_ctf_thread *entry;    /* in the trace's table, or NULL */
	const struct kymo_ctf_process *process; /* that its last record was of, or NULL */
	bool is_fixed;                          /* no other thread has this tid */
	bool process_is_fixed;                  /* it stays in `process` */
	uint64_t count, recent, first, last;    /* the model's */
};

struct threads {
	const struct kymo_ctf_trace *trace;
	KYMO_VEC(struct thread) items; /* as they came */
	struct kymo_index index;       /* of `items`, by tid */
	size_t last;                   /* the index that was found last, if there is any item */
};

/* The trace must outlive the threads. */
void kymo_threads_init(struct threads *threads, const struct kymo_ctf_trace *trace);
void kymo_threads_deinit(struct threads *threads);

/* The index in `items` of the record's thread, which is made where it is new; its `process` is that at the time of the
 * record. NO_THREAD beyond MAX_THREADS. */
struct kymo_error *kymo_threads_find(struct threads *threads, const struct kymo_ctf_record *record, size_t *ret);

#endif
