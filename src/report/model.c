#include "report/model.h"

#include <stdlib.h>
#include <string.h>

/* The event that all returns of system calls share is no probe. */
bool kymo_model_is_probe(const struct model *model, size_t at)
{
	const struct kymo_ctf_event *event = &model->trace->events[at];

	return model->locations[at].first == at && event->kind != KYMO_CTF_SYSRET &&
	       event->kind != KYMO_CTF_AGGREGATION && !kymo_ctf_is_of_stacks(event) &&
	       !kymo_ctf_is_of_branches(event) && (!model->filter || kymo_filter_has_event(model->filter, event));
}

void kymo_model_filter(struct model *model, const struct filter *filter, bool has_pairs)
{
	model->filter = filter;
	model->has_pairs = has_pairs;
	model->n_probes = 0;
	for (size_t i = 0; i < model->trace->n_events; i++)
		model->n_probes += kymo_model_is_probe(model, i);
}

struct kymo_error *kymo_model_init(struct model *model, const struct kymo_ctf_trace *trace)
{
	*model = (struct model){ .trace = trace };
	kymo_threads_init(&model->threads, trace);
	model->locations = kymo_locations_create(trace, &model->n_probes);
	model->counts = calloc(trace->n_events + 1, sizeof(*model->counts));
	model->probes = calloc(trace->n_events + 1, sizeof(*model->probes));
	model->processes = calloc(trace->n_processes + 1, sizeof(*model->processes));
	if (!model->locations || !model->counts || !model->probes || !model->processes) {
		kymo_model_deinit(model);
		return &kymo_error_no_memory;
	}
	for (size_t i = 0; i < trace->n_processes; i++)
		model->processes[i].process = &trace->processes[i];
	kymo_model_filter(model, NULL, false);
	return NULL;
}

void kymo_model_deinit(struct model *model)
{
	for (size_t i = 0; model->probes && i < model->trace->n_events; i++) {
		if (model->probes[i])
			free(model->probes[i]->threads);
		free(model->probes[i]);
	}
	free(model->probes);
	free(model->counts);
	free(model->locations);
	free(model->processes);
	kymo_pairs_deinit(&model->pairs);
	kymo_threads_deinit(&model->threads);
	*model = (struct model){ 0 };
}

static struct probe *make_probe(struct model *model, size_t at)
{
	const struct kymo_ctf_event *event = &model->trace->events[at];
	struct probe *probe = calloc(1, sizeof(*probe) + event->n_fields * sizeof(probe->fields[0]));

	if (!probe)
		return NULL;
	probe->event = event;
	for (uint32_t i = 0; i < event->n_fields; i++) {
		probe->fields[i].stats.is_signed = kymo_type_is_signed(event->fields[i].type);
		probe->fields[i].stats.has_names = event->fields[i].naming;
	}
	model->probes[at] = probe;
	model->n_hit += event->kind != KYMO_CTF_SYSRET;
	return probe;
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

/* The bin of that time. When the last bin is behind, neighbors are joined until it is not. */
static uint64_t *timeline_bin(struct model *model, uint64_t tsc)
{
	uint64_t ticks = tsc > model->origin ? tsc - model->origin : 0;

	while (ticks >> model->timeline_shift >= TIMELINE_BINS) {
		for (size_t i = 0; i < TIMELINE_BINS / 2; i++)
			model->timeline[i] = model->timeline[2 * i] + model->timeline[2 * i + 1];
		memset(model->timeline + TIMELINE_BINS / 2, 0, sizeof(model->timeline) / 2);
		model->timeline_shift++;
	}
	return &model->timeline[ticks >> model->timeline_shift];
}

static void add_to_field(struct field_stats *stats, const struct kymo_ctf_record *record, uint32_t i)
{
	enum kymo_type type = record->event->fields[i].type;

	if (record->faults & 1u << i)
		stats->faults++;
	else if (kymo_type_is_integer(type))
		kymo_stats_add(&stats->stats, record->values[i]);
	else if (kymo_type_is_real(type))
		kymo_reals_add(&stats->reals, kymo_ctf_double(record, i));
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
	probe->recent += record->tsc >= model->since;
	if (record->tsc > probe->last)
		probe->last = record->tsc;
	for (uint32_t i = 0; i < probe->event->n_fields; i++)
		add_to_field(&probe->fields[i], record, i);
}

static void add_to_totals(struct model *model, const struct kymo_ctf_record *record)
{
	model->count++;
	model->recent += record->tsc >= model->since;
	model->n_returns += record->event->kind == KYMO_CTF_SYSRET;
	if (record->cpu < 4096 && !(model->cpus[record->cpu / 32] & 1u << record->cpu % 32)) {
		model->cpus[record->cpu / 32] |= 1u << record->cpu % 32;
		model->n_cpus++;
	}
	++*timeline_bin(model, record->tsc);
}

void kymo_model_begin(struct model *model, uint64_t whole_since)
{
	model->since = whole_since;
}

void kymo_model_see(struct model *model, uint64_t tsc)
{
	if (!model->has_zero || tsc < model->zero)
		model->zero = tsc;
	model->has_zero = true;
	if (model->filter && !kymo_filter_has_time(model->filter, tsc))
		return;
	if (!model->has_first)
		model->origin = model->first = model->last = tsc;
	model->has_first = true;
	if (tsc < model->first)
		model->first = tsc;
	if (tsc <= model->last)
		return;
	model->last = tsc;
	timeline_bin(model, tsc); /* it reaches to the last record, whether that is counted or not */
}

static void add_to_process(struct model *model, const struct kymo_ctf_process *process, uint64_t tsc)
{
	struct process_count *count = &model->processes[process - model->trace->processes];

	if (!count->count)
		count->first = count->last = tsc;
	count->count++;
	count->recent += tsc >= model->since;
	if (tsc > count->last)
		count->last = tsc;
}

static bool add_to_thread(struct model *model, struct probe *probe, size_t at, uint64_t tsc)
{
	struct thread *thread = &model->threads.items.items[at];

	if (!thread->count++) {
		thread->first = thread->last = tsc;
		model->n_threads++;
	}
	thread->recent += tsc >= model->since;
	if (tsc > thread->last)
		thread->last = tsc;
	if (thread->process)
		add_to_process(model, thread->process, tsc);
	if (model->has_pairs && probe->event->kind != KYMO_CTF_SYSRET &&
	    !kymo_pairs_add(&model->pairs, at, (size_t)(probe->event - model->trace->events), tsc >= model->since))
		return false;
	return mark_thread(probe, at);
}

struct kymo_error *kymo_model_add(struct model *model, const struct kymo_ctf_record *record, size_t *thread_ret)
{
	size_t event = (size_t)(record->event - model->trace->events), at = model->locations[event].first, thread;
	struct probe *probe = model->probes[at];
	struct kymo_error *error = kymo_threads_find(&model->threads, record, &thread);

	if (error)
		return error;
	if (!probe)
		probe = make_probe(model, at);
	if (!probe)
		return &kymo_error_no_memory;
	if (thread == NO_THREAD) {
		model->other_threads++;
		probe->more_threads = true;
	} else if (!add_to_thread(model, probe, thread, record->tsc)) {
		return &kymo_error_no_memory;
	}
	model->counts[event]++;
	add_to_probe(model, probe, record);
	add_to_totals(model, record);
	*thread_ret = thread;
	return NULL;
}

uint64_t kymo_model_duration_ns(const struct model *model)
{
	return kymo_ctf_duration_ns(model->trace, model->last - model->first);
}

int64_t kymo_model_relative_ns(const struct model *model, uint64_t tsc)
{
	if (tsc >= model->zero)
		return (int64_t)kymo_ctf_duration_ns(model->trace, tsc - model->zero);
	return (int64_t)(0 - kymo_ctf_duration_ns(model->trace, model->zero - tsc));
}

uint64_t kymo_model_rated_ns(const struct model *model)
{
	uint64_t from = model->since > model->first ? model->since : model->first;

	return from < model->last ? kymo_ctf_duration_ns(model->trace, model->last - from) : 0;
}

double kymo_model_rate(const struct model *model, uint64_t recent)
{
	uint64_t ns = kymo_model_rated_ns(model);

	return ns ? (double)recent * 1e9 / (double)ns : 0;
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
		if (model->probes[i] && model->probes[i]->event->kind != KYMO_CTF_SYSRET)
			sorted[n++] = model->probes[i];
	qsort(sorted, n, sizeof(*sorted), compare_probes);
	return sorted;
}

static int compare_threads(const void *a, const void *b)
{
	const struct thread *x = *(struct thread *const *)a, *y = *(struct thread *const *)b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

struct thread **kymo_model_sorted_threads(const struct model *model)
{
	struct thread **sorted = calloc(model->n_threads + 1, sizeof(*sorted));
	size_t n = 0;

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < model->threads.items.n; i++)
		if (model->threads.items.items[i].count)
			sorted[n++] = &model->threads.items.items[i];
	qsort(sorted, n, sizeof(*sorted), compare_threads);
	return sorted;
}

static int compare_processes(const void *a, const void *b)
{
	const struct process_count *x = *(const struct process_count *const *)a;
	const struct process_count *y = *(const struct process_count *const *)b;

	if (x->count != y->count)
		return x->count > y->count ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

const struct process_count **kymo_model_sorted_processes(const struct model *model, size_t *n_ret)
{
	const struct process_count **sorted = calloc(model->trace->n_processes + 1, sizeof(struct process_count *));
	size_t n = 0;

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < model->trace->n_processes; i++)
		if (model->processes[i].count)
			sorted[n++] = &model->processes[i];
	qsort(sorted, n, sizeof(struct process_count *), compare_processes);
	*n_ret = n;
	return sorted;
}
