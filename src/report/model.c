#include "report/model.h"

#include <stdlib.h>
#include <string.h>

struct kymo_error *kymo_model_init(struct model *model, const struct kymo_ctf_trace *trace)
{
	*model = (struct model){ .trace = trace, .index_size = 64 };
	model->probes = calloc(trace->n_events + 1, sizeof(*model->probes));
	model->index = calloc(model->index_size, sizeof(*model->index));
	if (model->probes && model->index)
		return NULL;
	kymo_model_deinit(model);
	return &kymo_error_no_memory;
}

void kymo_model_deinit(struct model *model)
{
	for (size_t i = 0; model->probes && i < model->trace->n_events; i++) {
		if (model->probes[i])
			free(model->probes[i]->threads);
		free(model->probes[i]);
	}
	free(model->probes);
	free(model->index);
	kymo_vec_deinit(&model->threads);
	*model = (struct model){ 0 };
}

static struct probe *make_probe(struct model *model, size_t at)
{
	const struct kymo_ctf_event *event = &model->trace->events[at];
	struct probe *probe = calloc(1, sizeof(*probe) + event->n_fields * sizeof(probe->fields[0]));

	if (!probe)
		return NULL;
	probe->event = event;
	for (uint32_t i = 0; i < event->n_fields; i++)
		probe->fields[i].stats.is_signed = kymo_type_is_signed(event->fields[i].type);
	model->probes[at] = probe;
	model->n_hit++;
	return probe;
}

/* Fibonacci hashing: tids are neighbours. */
static size_t slot_of(const struct model *model, int32_t tid)
{
	return ((uint32_t)tid * 2654435769u) >> (32 - __builtin_ctzl(model->index_size));
}

static uint32_t *find_slot(const struct model *model, int32_t tid)
{
	size_t slot = slot_of(model, tid);

	while (model->index[slot] && model->threads.items[model->index[slot] - 1].tid != tid)
		slot = (slot + 1) & (model->index_size - 1);
	return &model->index[slot];
}

static bool grow_index(struct model *model)
{
	uint32_t *grown = calloc(model->index_size * 2, sizeof(*grown));

	if (!grown)
		return false;
	free(model->index);
	model->index = grown;
	model->index_size *= 2;
	for (size_t i = 0; i < model->threads.n; i++)
		*find_slot(model, model->threads.items[i].tid) = (uint32_t)i + 1;
	return true;
}

/* The thread's entry, made where it is new. NULL beyond MAX_THREADS, or with an error. */
static struct thread *find_thread(struct model *model, const struct kymo_ctf_record *record, struct kymo_error **error)
{
	uint32_t *slot;

	if (model->last_thread && model->last_thread->tid == record->tid)
		return model->last_thread;
	slot = find_slot(model, record->tid);
	if (!*slot) {
		if (model->threads.n == MAX_THREADS)
			return NULL;
		if (model->threads.n * 2 >= model->index_size) {
			if (!grow_index(model))
				goto no_memory;
			slot = find_slot(model, record->tid);
		}
		if (!kymo_vec_push(&model->threads, (struct thread){ .tid = record->tid, .first = record->tsc }))
			goto no_memory;
		*slot = (uint32_t)model->threads.n;
	}
	model->last_thread = &model->threads.items[*slot - 1];
	return model->last_thread;

no_memory:
	*error = &kymo_error_no_memory;
	return NULL;
}

static bool mark_thread(struct probe *probe, size_t thread)
{
	size_t word = thread / 64, n_words;
	uint64_t bit = 1ull << thread % 64, *grown;

	if (thread >= MAX_PROBE_THREADS) {
		probe->more_threads = true;
		return true;
	}
	if (word >= probe->n_words) {
		n_words = word + 1 + probe->n_words;
		grown = reallocarray(probe->threads, n_words, sizeof(*grown));
		if (!grown)
			return false;
		memset(grown + probe->n_words, 0, (n_words - probe->n_words) * sizeof(*grown));
		probe->threads = grown;
		probe->n_words = n_words;
	}
	probe->n_threads += !(probe->threads[word] & bit);
	probe->threads[word] |= bit;
	return true;
}

/* When the last bin is behind, neighbours are joined until it is not. */
static void add_to_timeline(struct model *model, uint64_t tsc)
{
	uint64_t ticks = tsc > model->origin ? tsc - model->origin : 0;

	while (ticks >> model->timeline_shift >= TIMELINE_BINS) {
		for (size_t i = 0; i < TIMELINE_BINS / 2; i++)
			model->timeline[i] = model->timeline[2 * i] + model->timeline[2 * i + 1];
		memset(model->timeline + TIMELINE_BINS / 2, 0, sizeof(model->timeline) / 2);
		model->timeline_shift++;
	}
	model->timeline[ticks >> model->timeline_shift]++;
}

static void add_to_probe(const struct model *model, struct probe *probe, const struct kymo_ctf_record *record)
{
	if (probe->count) {
		uint64_t ticks = record->tsc > probe->last ? record->tsc - probe->last : 0;

		kymo_stats_add(&probe->gaps, kymo_ctf_duration_ns(model->trace, ticks));
	} else {
		probe->first = probe->last = record->tsc;
	}
	probe->count++;
	if (record->tsc > probe->last)
		probe->last = record->tsc;
	for (uint32_t i = 0; i < probe->event->n_fields; i++) {
		if (record->faults & 1u << i)
			probe->fields[i].faults++;
		else
			kymo_stats_add(&probe->fields[i].stats, record->values[i]);
	}
}

static void add_to_totals(struct model *model, const struct kymo_ctf_record *record)
{
	if (!model->count)
		model->origin = model->first = model->last = record->tsc;
	model->count++;
	if (record->tsc < model->first)
		model->first = record->tsc;
	if (record->tsc > model->last)
		model->last = record->tsc;
	if (record->cpu < 4096 && !(model->cpus[record->cpu / 32] & 1u << record->cpu % 32)) {
		model->cpus[record->cpu / 32] |= 1u << record->cpu % 32;
		model->n_cpus++;
	}
	add_to_timeline(model, record->tsc);
}

struct kymo_error *kymo_model_add(struct model *model, const struct kymo_ctf_record *record)
{
	size_t at = (size_t)(record->event - model->trace->events);
	struct probe *probe = model->probes[at];
	struct kymo_error *error = NULL;
	struct thread *thread = find_thread(model, record, &error);

	if (!probe)
		probe = make_probe(model, at);
	if (!probe || error)
		return &kymo_error_no_memory;
	if (thread) {
		thread->count++;
		if (record->tsc > thread->last)
			thread->last = record->tsc;
		if (!mark_thread(probe, (size_t)(thread - model->threads.items)))
			return &kymo_error_no_memory;
	} else {
		model->other_threads++;
		probe->more_threads = true;
	}
	add_to_probe(model, probe, record);
	add_to_totals(model, record);
	return NULL;
}

uint64_t kymo_model_duration_ns(const struct model *model)
{
	return kymo_ctf_duration_ns(model->trace, model->last - model->first);
}

int64_t kymo_model_relative_ns(const struct model *model, uint64_t tsc)
{
	if (tsc >= model->first)
		return (int64_t)kymo_ctf_duration_ns(model->trace, tsc - model->first);
	return (int64_t)(0 - kymo_ctf_duration_ns(model->trace, model->first - tsc));
}

double kymo_model_rate(const struct model *model, uint64_t count)
{
	uint64_t ns = kymo_model_duration_ns(model);

	return ns ? (double)count * 1e9 / (double)ns : 0;
}

static int compare_probes(const void *a, const void *b)
{
	const struct probe *x = *(struct probe *const *)a, *y = *(struct probe *const *)b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->event < y->event ? -1 : x->event > y->event;
}

struct probe **kymo_model_sorted_probes(const struct model *model)
{
	struct probe **sorted = calloc(model->n_hit + 1, sizeof(*sorted));
	size_t n = 0;

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < model->trace->n_events; i++)
		if (model->probes[i])
			sorted[n++] = model->probes[i];
	qsort(sorted, n, sizeof(*sorted), compare_probes);
	return sorted;
}

static int compare_threads(const void *a, const void *b)
{
	const struct thread *x = *(struct thread *const *)a, *y = *(struct thread *const *)b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

struct thread **kymo_model_sorted_threads(const struct model *model)
{
	struct thread **sorted = calloc(model->threads.n + 1, sizeof(*sorted));

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < model->threads.n; i++)
		sorted[i] = &model->threads.items[i];
	qsort(sorted, model->threads.n, sizeof(*sorted), compare_threads);
	return sorted;
}
