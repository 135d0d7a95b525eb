#include "report/functions.h"

#include <stdlib.h>
#include <string.h>

#include "aggr/marker_pairs.h"
#include "base/cleanup.h"
#include "report/text.h"

static int compare_functions(const struct kymo_ctf_event *a, const struct kymo_ctf_event *b)
{
	int order;

	if (a->function_offset != b->function_offset)
		return a->function_offset < b->function_offset ? -1 : 1;
	order = kymo_text_compare(a->path, b->path);
	return order ? order : kymo_text_compare(a->build_id, b->build_id);
}

/* Events of one function side by side, entries first, as they stand in the trace. */
static int compare_events(const void *a, const void *b)
{
	const struct kymo_ctf_event *x = *(const struct kymo_ctf_event *const *)a;
	const struct kymo_ctf_event *y = *(const struct kymo_ctf_event *const *)b;
	int order = compare_functions(x, y);

	if (order)
		return order;
	if (x->kind != y->kind)
		return x->kind == KYMO_CTF_ENTRY ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* The events of functions; a fresh array. */
static const struct kymo_ctf_event **sorted_events(const struct kymo_ctf_trace *trace, size_t *n_ret)
{
	const struct kymo_ctf_event **events = calloc(trace->n_events + 1, sizeof(struct kymo_ctf_event *));
	size_t n = 0;

	if (!events)
		return NULL;
	for (size_t i = 0; i < trace->n_events; i++)
		if (kymo_ctf_is_of_function(&trace->events[i]))
			events[n++] = &trace->events[i];
	qsort(events, n, sizeof(struct kymo_ctf_event *), compare_events);
	*n_ret = n;
	return events;
}

/* Not all hits have a record. */
static bool is_partial(const struct kymo_ctf_event *event)
{
	return event->sample || event->is_filtered;
}

/* Of several events, the first one of which all hits are recorded; else the first one. */
static void choose_event(const struct kymo_ctf_event *event, const struct kymo_ctf_event **chosen)
{
	if (!*chosen || (is_partial(*chosen) && !is_partial(event)))
		*chosen = event;
}

/* `events` are the `n` of one function. */
static void add_function(struct functions *functions, const struct kymo_ctf_trace *trace,
			 const struct kymo_ctf_event *const *events, size_t n)
{
	const struct kymo_ctf_event *entry = NULL, *leave = NULL;
	bool is_one_partial;

	for (size_t i = 0; i < n; i++)
		choose_event(events[i], events[i]->kind == KYMO_CTF_RETURN ? &leave : &entry);
	if (!entry || !leave)
		return;
	if (is_partial(entry) && is_partial(leave)) {
		functions->n_partial++;
		return;
	}
	for (size_t i = 0; i < n; i++)
		functions->roles[events[i] - trace->events].is_second = events[i] != entry && events[i] != leave;
	is_one_partial = is_partial(entry) || is_partial(leave);
	functions->roles[leave - trace->events] =
		(struct role){ .function = (uint32_t)functions->n, .is_partial = is_one_partial };
	functions->roles[entry - trace->events] =
		(struct role){ .function = (uint32_t)functions->n, .is_entry = true, .is_partial = is_one_partial };
	functions->items[functions->n++] =
		(struct function){ .entry = entry, .leave = leave, .is_partial = is_one_partial };
}

/* As one that the kernel has seen: result, number, memory. */
static bool knows_number(const struct kymo_ctf_event *leave)
{
	return leave->n_fields == 3 && kymo_type_is_integer(leave->fields[1].type) &&
	       leave->fields[2].type == KYMO_TYPE_BYTES;
}

/* Add the system calls. `items` has room for them at its end. */
static void add_syscalls(struct functions *functions, const struct kymo_ctf_trace *trace)
{
	const struct kymo_ctf_event *leave = NULL;

	for (size_t i = 0; i < trace->n_events && !leave; i++)
		if (trace->events[i].kind == KYMO_CTF_SYSRET)
			leave = &trace->events[i];
	for (size_t i = 0; i < trace->n_events && leave; i++) {
		if (trace->events[i].kind == KYMO_CTF_SYSRET)
			functions->roles[i] = (struct role){ .function = (uint32_t)functions->n,
							     .is_sysret = true,
							     .knows_number = knows_number(&trace->events[i]) };
		if (trace->events[i].kind != KYMO_CTF_SYSCALL)
			continue;
		functions->roles[i] = (struct role){ .function = (uint32_t)functions->n, .is_entry = true };
		functions->items[functions->n++] =
			(struct function){ .entry = &trace->events[i], .leave = leave, .is_syscall = true };
	}
}

/* ---- pairs of markers ------------------------------------------------------------------------ */

static int compare_event_names(const struct kymo_ctf_event *a, const struct kymo_ctf_event *b)
{
	int order = kymo_text_compare(a->path, b->path);

	if (!order)
		order = kymo_text_compare(a->build_id, b->build_id);
	return order ? order : strcmp(a->name, b->name);
}

/* Copies of a marker side by side, as they stand in the trace. */
static int compare_markers(const void *a, const void *b)
{
	const struct kymo_ctf_event *x = *(const struct kymo_ctf_event *const *)a;
	const struct kymo_ctf_event *y = *(const struct kymo_ctf_event *const *)b;
	int order = compare_event_names(x, y);

	return order ? order : x < y ? -1 : x > y;
}

static const struct kymo_ctf_event **sorted_markers(const struct kymo_ctf_trace *trace, size_t *n_ret)
{
	const struct kymo_ctf_event **markers = calloc(trace->n_events + 1, sizeof(struct kymo_ctf_event *));
	size_t n = 0;

	for (size_t i = 0; markers && i < trace->n_events; i++)
		if (trace->events[i].kind == KYMO_CTF_MARKER)
			markers[n++] = &trace->events[i];
	if (n)
		qsort(markers, n, sizeof(struct kymo_ctf_event *), compare_markers);
	*n_ret = n;
	return markers;
}

/* The first of the copies of the marker that ends what this one begins, as an index in `markers`; `n` where there is
 * none. */
static size_t find_span_end(const struct kymo_ctf_event *const *markers, size_t n, const struct kymo_ctf_event *begin)
{
	for (size_t word = 0;; word++) {
		kymo_cleanup_free char *name = kymo_marker_end(begin->name, word);
		struct kymo_ctf_event wanted = { .name = name, .path = begin->path, .build_id = begin->build_id };
		size_t low = 0, high = n;

		if (!name)
			return n;
		while (low < high) {
			const size_t middle = low + (high - low) / 2;

			if (compare_event_names(markers[middle], &wanted) < 0)
				low = middle + 1;
			else
				high = middle;
		}
		if (low < n && !compare_event_names(markers[low], &wanted))
			return low;
	}
}

static void give_role(struct functions *functions, const struct kymo_ctf_trace *trace,
		      const struct kymo_ctf_event *const *markers, size_t from, size_t n, bool is_entry)
{
	for (size_t i = from; i < n && !compare_event_names(markers[from], markers[i]); i++)
		functions->roles[markers[i] - trace->events] =
			(struct role){ .function = (uint32_t)functions->n, .is_entry = is_entry, .is_span = true };
}

/* Add the spans. `items` has room for them at its end. */
static bool add_spans(struct functions *functions, const struct kymo_ctf_trace *trace)
{
	size_t n;
	kymo_cleanup_free const struct kymo_ctf_event **markers = sorted_markers(trace, &n);

	for (size_t i = 0; markers && i < n; i++) {
		const size_t end = find_span_end(markers, n, markers[i]);

		if (end == n || functions->roles[markers[i] - trace->events].is_span ||
		    functions->roles[markers[end] - trace->events].is_span)
			continue;
		give_role(functions, trace, markers, i, n, true);
		give_role(functions, trace, markers, end, n, false);
		functions->items[functions->n++] = (struct function){ .entry = markers[i], .leave = markers[end] };
	}
	return markers;
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct kymo_error *kymo_functions_init(struct functions *functions, const struct kymo_ctf_trace *trace)
{
	kymo_cleanup_free const struct kymo_ctf_event **events = NULL;
	size_t n, from, to;

	*functions = (struct functions){ 0 };
	events = sorted_events(trace, &n);
	functions->roles = calloc(trace->n_events + 1, sizeof(*functions->roles));
	functions->items = events ? calloc(n / 2 + 1 + trace->n_events, sizeof(*functions->items)) : NULL;
	if (!events || !functions->roles || !functions->items) {
		kymo_functions_deinit(functions);
		return &kymo_error_no_memory;
	}
	for (size_t i = 0; i < trace->n_events; i++)
		functions->roles[i].function = NO_FUNCTION;
	for (from = 0; from < n; from = to) {
		for (to = from + 1; to < n && !compare_functions(events[from], events[to]);)
			to++;
		add_function(functions, trace, events + from, to - from);
	}
	add_syscalls(functions, trace);
	if (add_spans(functions, trace))
		return NULL;
	kymo_functions_deinit(functions);
	return &kymo_error_no_memory;
}

void kymo_functions_deinit(struct functions *functions)
{
	for (size_t i = 0; i < functions->n; i++) {
		if (functions->items[i].durations)
			kymo_quantiles_deinit(&functions->items[i].durations->quantiles);
		free(functions->items[i].durations);
	}
	free(functions->items);
	free(functions->roles);
	*functions = (struct functions){ 0 };
}

struct function *kymo_functions_of_entry(const struct functions *functions, const struct kymo_ctf_trace *trace,
					 const struct kymo_ctf_event *event)
{
	const struct role *role = &functions->roles[event - trace->events];

	return role->function != NO_FUNCTION && role->is_entry ? &functions->items[role->function] : NULL;
}

static int compare_totals(const void *a, const void *b)
{
	const struct function *x = *(struct function *const *)a, *y = *(struct function *const *)b;
	__int128 x_sum = x->durations ? x->durations->stats.sum : -1,
		 y_sum = y->durations ? y->durations->stats.sum : -1;

	if (x_sum != y_sum)
		return x_sum > y_sum ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

struct function **kymo_functions_sorted(const struct functions *functions, size_t *n_ret)
{
	struct function **sorted = calloc(functions->n + 1, sizeof(struct function *));
	size_t n = 0;

	if (!sorted)
		return NULL;
	for (size_t i = 0; i < functions->n; i++) {
		struct function *f = &functions->items[i];

		if (f->durations || f->over_losses || f->left || f->unwound || f->without_entry || f->open ||
		    f->too_deep)
			sorted[n++] = f;
	}
	qsort(sorted, n, sizeof(struct function *), compare_totals);
	*n_ret = n;
	return sorted;
}

bool kymo_function_add(struct function *function, uint64_t ns, uint64_t children_ns)
{
	struct durations *durations = function->durations;

	if (!durations) {
		durations = function->durations = calloc(1, sizeof(*durations));
		if (!durations)
			return false;
	}
	kymo_stats_add(&durations->stats, ns);
	durations->has_children |= children_ns > 0;
	durations->self_ns += ns > children_ns ? ns - children_ns : 0;
	return kymo_quantiles_add(&durations->quantiles, ns);
}

uint64_t kymo_durations_quantile(const struct durations *durations, unsigned int percent)
{
	uint64_t value = kymo_quantiles_get(&durations->quantiles, percent);

	if (value < durations->stats.min)
		return durations->stats.min;
	return value > durations->stats.max ? durations->stats.max : value;
}
