#include "report/diff_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* One probe or function of one side. */
struct item {
	const struct kymo_ctf_event *event;
	const void *of;
	const struct event_text *text;
};

struct items {
	struct item *items;
	size_t n;
};

static void deinit_items(struct items *items)
{
	free(items->items);
}

/* Events of one trace stand in one array, so that their order is that of the trace. */
static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int order = strcmp(x->event->name, y->event->name);

	return order ? order : x->event < y->event ? -1 : x->event > y->event;
}

static void add_diff_row(const struct summary *summary, struct items *items, const struct kymo_ctf_event *event,
			 const void *of)
{
	items->items[items->n++] = (struct item){ event, of, &summary->names->events[event - summary->trace->events] };
}

/* All that the filter has, hit or not. */
static struct kymo_error *probes_of(const struct summary *summary, struct items *ret)
{
	const struct model *model = summary->model;
	const struct kymo_ctf_trace *trace = summary->trace;

	*ret = (struct items){ .items = calloc(trace->n_events + 1, sizeof(*ret->items)) };
	if (!ret->items)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < trace->n_events; i++)
		if (kymo_model_is_probe(model, i))
			add_diff_row(summary, ret, &trace->events[i], model->probes[i]);
	qsort(ret->items, ret->n, sizeof(*ret->items), compare_items);
	return NULL;
}

static struct kymo_error *functions_of(const struct summary *summary, struct items *ret)
{
	size_t n;
	kymo_cleanup_free struct function **functions = kymo_functions_sorted(&summary->calls->functions, &n);

	*ret = (struct items){ .items = functions ? calloc(n + 1, sizeof(*ret->items)) : NULL };
	if (!ret->items)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++)
		add_diff_row(summary, ret, functions[i]->entry, functions[i]);
	qsort(ret->items, ret->n, sizeof(*ret->items), compare_items);
	return NULL;
}

static void fill_row(struct diff_row *row, const struct item *first, const struct item *second, bool of_functions)
{
	const struct item *any = first ? first : second;

	*row = (struct diff_row){ .name = any->event->name,
				  .label = any->text->name,
				  .shown = any->text->plain_name,
				  .is_there = { first, second } };
	if (of_functions) {
		row->functions[0] = first ? first->of : NULL;
		row->functions[1] = second ? second->of : NULL;
		row->change = kymo_diff_total_ns(row->functions[1]) - kymo_diff_total_ns(row->functions[0]);
	} else {
		row->probes[0] = first ? first->of : NULL;
		row->probes[1] = second ? second->of : NULL;
		row->change = (double)kymo_diff_count(row->probes[1]) - (double)kymo_diff_count(row->probes[0]);
	}
}

/* Both are in the order of names. What has nothing on either side is no row. */
static struct kymo_error *pair(const struct items *a, const struct items *b, bool of_functions, struct diff_rows *ret)
{
	size_t i = 0, j = 0;

	*ret = (struct diff_rows){ .items = calloc(a->n + b->n + 1, sizeof(*ret->items)) };
	if (!ret->items)
		return &kymo_error_no_memory;
	while (i < a->n || j < b->n) {
		int order = i == a->n ? 1 : j == b->n ? -1 : strcmp(a->items[i].event->name, b->items[j].event->name);
		const struct item *first = order <= 0 ? &a->items[i++] : NULL,
				  *second = order >= 0 ? &b->items[j++] : NULL;

		if ((first && first->of) || (second && second->of))
			fill_row(&ret->items[ret->n++], first, second, of_functions);
	}
	return NULL;
}

struct kymo_error *kymo_diff_probes(const struct summary *const sides[2], struct diff_rows *ret)
{
	kymo_cleanup(deinit_items) struct items a = { 0 }, b = { 0 };
	struct kymo_error *error = probes_of(sides[0], &a);

	if (!error)
		error = probes_of(sides[1], &b);
	return error ? error : pair(&a, &b, false, ret);
}

struct kymo_error *kymo_diff_functions(const struct summary *const sides[2], struct diff_rows *ret)
{
	kymo_cleanup(deinit_items) struct items a = { 0 }, b = { 0 };
	struct kymo_error *error = functions_of(sides[0], &a);

	if (!error)
		error = functions_of(sides[1], &b);
	return error ? error : pair(&a, &b, true, ret);
}

static int compare_changes(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	double first = fabs(x->change), second = fabs(y->change);

	return first > second ? -1 : first < second ? 1 : strcmp(x->name, y->name);
}

void kymo_diff_sort(struct diff_rows *rows)
{
	qsort(rows->items, rows->n, sizeof(*rows->items), compare_changes);
}
