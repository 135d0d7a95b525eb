#include "aggr/waiting.h"

#include <string.h>

void kymo_waiting_deinit(struct kymo_waiting *waiting)
{
	kymo_vec_deinit(&waiting->items);
	kymo_vec_deinit(&waiting->runs);
	kymo_vec_deinit(&waiting->heap);
	waiting->n = 0;
}

struct kymo_call_hit *kymo_waiting_add(struct kymo_waiting *waiting, const struct kymo_call_hit *hit)
{
	const size_t n = waiting->items.n;
	const bool goes_on = waiting->runs.n && waiting->items.items[n - 1].tsc <= hit->tsc;

	if (!kymo_vec_reserve(&waiting->items, n + 1) ||
	    (!goes_on && !kymo_vec_push(&waiting->runs, (struct kymo_waiting_run){ n, n })))
		return NULL;
	waiting->items.items[n] = *hit;
	waiting->items.n++;
	waiting->runs.items[waiting->runs.n - 1].end++;
	waiting->n++;
	return &waiting->items.items[n];
}

/* ---- the heap of runs ------------------------------------------------------------------------ */

/* Runs are in the order in which their records came. */
static bool comes_before(const struct kymo_waiting *waiting, size_t a, size_t b)
{
	const uint64_t x = waiting->items.items[waiting->runs.items[a].next].tsc,
		       y = waiting->items.items[waiting->runs.items[b].next].tsc;

	return x != y ? x < y : a < b;
}

static void sift_down(struct kymo_waiting *waiting, size_t at)
{
	size_t *heap = waiting->heap.items;
	const size_t moved = heap[at];

	for (size_t child; (child = 2 * at + 1) < waiting->heap.n; at = child) {
		if (child + 1 < waiting->heap.n && comes_before(waiting, heap[child + 1], heap[child]))
			child++;
		if (!comes_before(waiting, heap[child], moved))
			break;
		heap[at] = heap[child];
	}
	heap[at] = moved;
}

bool kymo_waiting_begin(struct kymo_waiting *waiting)
{
	waiting->heap.n = 0;
	if (!kymo_vec_reserve(&waiting->heap, waiting->runs.n + 1))
		return false;
	for (size_t i = 0; i < waiting->runs.n; i++)
		waiting->heap.items[waiting->heap.n++] = i;
	for (size_t i = waiting->heap.n / 2; i-- > 0;)
		sift_down(waiting, i);
	return true;
}

struct kymo_call_hit *kymo_waiting_oldest(const struct kymo_waiting *waiting)
{
	return waiting->heap.n ? &waiting->items.items[waiting->runs.items[waiting->heap.items[0]].next] : NULL;
}

void kymo_waiting_pop(struct kymo_waiting *waiting)
{
	struct kymo_waiting_run *run = &waiting->runs.items[waiting->heap.items[0]];

	waiting->n--;
	if (++run->next == run->end)
		waiting->heap.items[0] = waiting->heap.items[--waiting->heap.n];
	if (waiting->heap.n)
		sift_down(waiting, 0);
}

/* ---- what goes on to wait -------------------------------------------------------------------- */

/* Append what is left of a run to what is left of those before it; the last two may be one run now. */
static void keep(struct kymo_waiting *waiting, struct kymo_waiting_run run)
{
	struct kymo_call_hit *items = waiting->items.items;
	const size_t to = waiting->items.n, n = run.end - run.next;
	const bool goes_on = to && items[to - 1].tsc <= items[run.next].tsc;

	memmove(items + to, items + run.next, n * sizeof(*items));
	if (!goes_on)
		waiting->runs.items[waiting->runs.n++] = (struct kymo_waiting_run){ to, to };
	waiting->runs.items[waiting->runs.n - 1].end += n;
	waiting->items.n += n;
}

void kymo_waiting_end(struct kymo_waiting *waiting)
{
	const size_t n_runs = waiting->runs.n;

	waiting->items.n = waiting->runs.n = waiting->heap.n = 0;
	for (size_t i = 0; i < n_runs; i++)
		if (waiting->runs.items[i].next < waiting->runs.items[i].end)
			keep(waiting, waiting->runs.items[i]);
}
