#include "report/threads.h"

#include <stdlib.h>

struct kymo_error *kymo_threads_init(struct threads *threads, const struct kymo_ctf_trace *trace)
{
	*threads = (struct threads){ .trace = trace, .index_size = 64 };
	threads->index = calloc(threads->index_size, sizeof(*threads->index));
	return threads->index ? NULL : &kymo_error_no_memory;
}

void kymo_threads_deinit(struct threads *threads)
{
	kymo_vec_deinit(&threads->items);
	free(threads->index);
	*threads = (struct threads){ 0 };
}

/* Fibonacci hashing: tids are neighbours. */
static size_t slot_of(const struct threads *threads, int32_t tid)
{
	return ((uint32_t)tid * 2654435769u) >> (32 - __builtin_ctzl(threads->index_size));
}

/* The slot of the thread, or the empty one where it would be. With `any`, whichever thread has the tid. */
static uint32_t *find_slot(const struct threads *threads, int32_t tid, const struct kymo_ctf_thread *entry, bool any)
{
	size_t slot = slot_of(threads, tid);

	for (; threads->index[slot]; slot = (slot + 1) & (threads->index_size - 1)) {
		const struct thread *thread = &threads->items.items[threads->index[slot] - 1];

		if (thread->tid == tid && (any || thread->entry == entry))
			break;
	}
	return &threads->index[slot];
}

static bool grow_index(struct threads *threads)
{
	uint32_t *grown = calloc(threads->index_size * 2, sizeof(*grown));

	if (!grown)
		return false;
	free(threads->index);
	threads->index = grown;
	threads->index_size *= 2;
	for (size_t i = 0; i < threads->items.n; i++) {
		const struct thread *thread = &threads->items.items[i];

		*find_slot(threads, thread->tid, thread->entry, false) = (uint32_t)i + 1;
	}
	return true;
}

static struct kymo_error *add(struct threads *threads, const struct kymo_ctf_record *record,
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
	if (threads->items.n * 2 >= threads->index_size && !grow_index(threads))
		return &kymo_error_no_memory;
	if (!kymo_vec_push(&threads->items, thread))
		return &kymo_error_no_memory;
	*find_slot(threads, record->tid, entry, false) = (uint32_t)threads->items.n;
	*ret = threads->items.n - 1;
	return NULL;
}

static struct kymo_error *find(struct threads *threads, const struct kymo_ctf_record *record, size_t *ret)
{
	const struct kymo_ctf_thread *entry;
	uint32_t slot = *find_slot(threads, record->tid, NULL, true);

	if (slot && threads->items.items[slot - 1].is_fixed) {
		*ret = slot - 1;
		return NULL;
	}
	entry = kymo_ctf_trace_thread(threads->trace, record->tid, record->tsc);
	slot = *find_slot(threads, record->tid, entry, false);
	if (!slot)
		return add(threads, record, entry, ret);
	*ret = slot - 1;
	return NULL;
}

struct kymo_error *kymo_threads_find(struct threads *threads, const struct kymo_ctf_record *record, size_t *ret)
{
	size_t at = threads->last;
	struct thread *thread;

	if (at >= threads->items.n || threads->items.items[at].tid != record->tid ||
	    !threads->items.items[at].is_fixed) {
		struct kymo_error *error = find(threads, record, &at);

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
