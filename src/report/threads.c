#include "report/threads.h"

#include <stdlib.h>

#include "base/hash.h"

void kymo_threads_init(struct threads *threads, const struct kymo_ctf_trace *trace)
{
	*threads = (struct threads){ .trace = trace };
}

void kymo_threads_deinit(struct threads *threads)
{
	kymo_vec_deinit(&threads->items);
	kymo_index_deinit(&threads->index);
	*threads = (struct threads){ 0 };
}

/* Fibonacci hashing: tids are neighbors. */
static uint64_t hash_tid(int32_t tid)
{
	return kymo_hash_pair(0, (uint32_t)tid);
}

static struct kymo_error *add_thread(struct threads *threads, const struct kymo_ctf_record *record,
				     const struct kymo_ctf_thread *entry, size_t *ret)
{
	const struct kymo_ctf_trace *trace = threads->trace;
	struct thread thread = { .tid = record->tid, .entry = entry, .first = record->tsc };
	int32_t pid = entry && entry->pid ? entry->pid : record->tid;

	if (threads->items.n == MAX_THREADS) {
		*ret = NO_THREAD;
		return NULL;
	}
	thread.is_fixed = kymo_ctf_trace_n_threads_of(trace, record->tid) <= 1;
	thread.process_is_fixed = kymo_ctf_trace_n_processes_of(trace, pid) <= 1;
	thread.process = kymo_ctf_trace_process_of(trace, record->tid, record->tsc);
	if (!kymo_index_reserve(&threads->index, threads->items.n, i, hash_tid(threads->items.items[i - 1].tid)) ||
	    !kymo_vec_push(&threads->items, thread))
		return &kymo_error_no_memory;
	kymo_index_put(&threads->index, hash_tid(record->tid), threads->items.n);
	*ret = threads->items.n - 1;
	return NULL;
}

static struct kymo_error *find_or_add_thread(struct threads *threads, const struct kymo_ctf_record *record, size_t *ret)
{
	const struct thread *items = threads->items.items;
	const uint64_t hash = hash_tid(record->tid);
	const struct kymo_ctf_thread *entry;
	uint32_t number = kymo_index_find(&threads->index, hash, i, items[i - 1].tid == record->tid);

	if (number && items[number - 1].is_fixed) {
		*ret = number - 1;
		return NULL;
	}
	entry = kymo_ctf_trace_thread(threads->trace, record->tid, record->tsc);
	number = kymo_index_find(&threads->index, hash, i,
				 items[i - 1].tid == record->tid && items[i - 1].entry == entry);
	if (!number)
		return add_thread(threads, record, entry, ret);
	*ret = number - 1;
	return NULL;
}

struct kymo_error *kymo_threads_find(struct threads *threads, const struct kymo_ctf_record *record, size_t *ret)
{
	size_t at = threads->last;
	struct thread *thread;

	if (at >= threads->items.n || threads->items.items[at].tid != record->tid ||
	    !threads->items.items[at].is_fixed) {
		struct kymo_error *error = find_or_add_thread(threads, record, &at);

		if (error)
			return error;
		if (at == NO_THREAD) {
			*ret = NO_THREAD;
			return NULL;
		}
		threads->last = at;
	}
	thread = &threads->items.items[at];
	if (!thread->process_is_fixed)
		thread->process = kymo_ctf_trace_process_of(threads->trace, record->tid, record->tsc);
	*ret = at;
	return NULL;
}
