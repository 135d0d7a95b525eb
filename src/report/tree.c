#include "report/tree.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/index.h"
#include "report/calls.h"
#include "report/frames.h"
#include "report/latency.h"
#include "report/lines.h"
#include "report/text.h"

/* 40 MB. Calls on further paths are counted together. */
#define MAX_NODES (1u << 20)
#define MAX_INDENT 64u /* levels */
#define NO_NODE UINT32_MAX

/* A function, as it is called on one path. */
struct node {
	uint32_t parent; /* the root is its own */
	uint32_t function;
	uint32_t level;
	uint32_t number; /* its index, while they are being sorted */
	uint64_t count, total_ns, self_ns;
};

struct tree {
	const struct page *page;
	const struct kymo_ctf_trace *trace;
	const struct kymo_ctf_reader *reader;
	const struct names *names;
	struct threads threads;
	struct calls calls;
	KYMO_VEC(struct node) nodes; /* 0 is the root, which is no function */
	struct kymo_index index;     /* of nodes 1 and on, by parent and function */
	uint64_t other_calls;        /* on paths beyond MAX_NODES */
	uint64_t hidden;             /* nodes that are too small to be shown */
};

/* ---- growing --------------------------------------------------------------------------------- */

static uint64_t hash_node(const struct node *node)
{
	return kymo_hash_pair(node->parent, node->function);
}

/* The node of `function` called from `parent`, made where it is new; NO_NODE where there are too many. False when
 * memory is out. */
static bool find_node(struct tree *t, uint32_t parent, uint32_t function, uint32_t *ret)
{
	struct node node = { .parent = parent, .function = function };
	const struct node *nodes = t->nodes.items;

	*ret = NO_NODE;
	if (parent == NO_NODE)
		return true;
	*ret = kymo_index_find(&t->index, hash_node(&node), i,
			       nodes[i].parent == parent && nodes[i].function == function);
	if (*ret)
		return true;
	*ret = NO_NODE;
	if (t->nodes.n == MAX_NODES)
		return true;
	node.level = nodes[parent].level + 1;
	if (!kymo_index_reserve(&t->index, t->nodes.n - 1, i, hash_node(&nodes[i])) || !kymo_vec_push(&t->nodes, node))
		return false;
	*ret = (uint32_t)t->nodes.n - 1;
	kymo_index_put(&t->index, hash_node(&node), *ret);
	return true;
}

static bool take_step(struct tree *t, size_t thread, const struct step *step)
{
	const struct stack *stack;
	struct node *node;
	uint32_t parent = 0, found;

	if (step->kind == STEP_ENTER) {
		stack = &t->calls.stacks.items[thread];
		if (stack->now.n > 1)
			parent = (uint32_t)kymo_stack_at(stack, stack->now.n - 2)->line;
		step->entered->is_shown =
			kymo_calls_count(&t->calls, &t->calls.functions.items[step->function], step->entered->begin);
		found = parent;
		if (step->entered->is_shown && !find_node(t, parent, step->function, &found))
			return false;
		step->entered->line = found;
	} else if (step->kind == STEP_LEAVE && !step->frame.is_shown) {
		/* What it calls is its caller's here. */
	} else if (step->kind == STEP_LEAVE && step->frame.line == NO_NODE) {
		t->other_calls++;
	} else if (step->kind == STEP_LEAVE) {
		node = &t->nodes.items[step->frame.line];
		node->count++;
		node->total_ns += step->ns;
		node->self_ns += step->ns > step->frame.children_ns ? step->ns - step->frame.children_ns : 0;
	}
	return true;
}

static struct kymo_error *gather_tree(struct tree *t, struct kymo_ctf_reader *reader, struct filter *filter)
{
	struct kymo_ctf_record record;
	struct kymo_error *error = NULL;
	struct step step;
	size_t thread;

	while (!kymo_calls_need_fates(&t->calls) && kymo_next_record(reader, NULL, &record, &error)) {
		if (!kymo_filter_takes(filter, &record))
			continue;
		error = kymo_threads_find(&t->threads, &record, &thread);
		if (!error)
			error = kymo_calls_add(&t->calls, thread, &record, &step);
		if (!error && !take_step(t, thread, &step))
			error = &kymo_error_no_memory;
		if (error)
			return error;
	}
	kymo_calls_finish(&t->calls);
	return error;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Children of one node side by side, longest first. */
static int compare_nodes(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

static void write_node(const struct tree *t, const struct node *node)
{
	const struct kymo_ctf_event *entry = t->calls.functions.items[node->function].entry;
	uint32_t indent = node->level - 1 < MAX_INDENT ? node->level - 1 : MAX_INDENT;
	char number[TEXT_NUMBER];

	if (node->count) {
		kymo_page_right(t->page, INK_PLAIN, kymo_text_span(number, node->total_ns, t->page->unicode), 7);
		kymo_page_spaces(t->page, 2);
		kymo_page_right(t->page, INK_PLAIN, kymo_text_span(number, node->self_ns, t->page->unicode), 7);
	} else {
		kymo_page_right(t->page, INK_DIM, "-", 7);
		kymo_page_right(t->page, INK_DIM, "-", 9);
	}
	kymo_page_spaces(t->page, 1);
	kymo_page_right(t->page, INK_PLAIN, kymo_text_count(number, node->count), 11);
	kymo_page_spaces(t->page, 2 + 2 * indent);
	kymo_page_text(t->page, INK_HEAD, t->names->events[entry - t->trace->events].function);
	putc('\n', t->page->out);
}

/* What a node is worth: its own time, or that of calls within where that is more, as in a main() that did not return.
 */
static void add_up(struct tree *t, uint64_t *weights)
{
	/* Children stand after their parents. */
	for (uint32_t i = (uint32_t)t->nodes.n; i-- > 1;) {
		if (weights[i] < t->nodes.items[i].total_ns)
			weights[i] = t->nodes.items[i].total_ns;
		weights[t->nodes.items[i].parent] += weights[i];
	}
}

/* The nodes in the order of the tree, those that are worth less than `least` counted only. */
static struct kymo_error *write_nodes(struct tree *t, const uint64_t *weights, uint64_t least)
{
	uint32_t n = (uint32_t)t->nodes.n, at = 0, *first;
	kymo_cleanup_free struct node *sorted = reallocarray(NULL, n, sizeof(*sorted));
	kymo_cleanup_free uint32_t *next = calloc((size_t)n + 1, sizeof(*next));

	if (!sorted || !next)
		return &kymo_error_no_memory;
	for (uint32_t i = 0; i < n; i++) {
		sorted[i] = t->nodes.items[i];
		sorted[i].number = i;
	}
	qsort(sorted + 1, n - 1, sizeof(*sorted), compare_nodes);
	/* next[i]: where the child of node i that comes next stands in `sorted`. */
	for (uint32_t i = n; i-- > 1;)
		next[sorted[i].parent] = i;
	for (;;) {
		const struct node *node;

		first = &next[at];
		if (!*first || *first >= n || sorted[*first].parent != at) {
			if (!at)
				return NULL;
			at = t->nodes.items[at].parent;
			continue;
		}
		node = &sorted[(*first)++];
		if (weights[node->number] < least) {
			t->hidden++;
			continue;
		}
		write_node(t, node);
		at = node->number;
	}
}

static void write_notes(const struct tree *t)
{
	char number[TEXT_NUMBER];
	struct notes notes;

	kymo_latency_notes(&t->calls, &notes);
	if (t->hidden)
		kymo_page_printf(t->page, INK_DIM,
				 "%" PRIu64 " more %s of less than 0.5 %% of the time"
				 " (--all shows them)\n",
				 t->hidden, t->hidden == 1 ? "path" : "paths");
	if (t->other_calls)
		kymo_page_printf(t->page, INK_ALARM, "skipped %s %s: there are too many paths\n",
				 kymo_text_count(number, t->other_calls), t->other_calls == 1 ? "call" : "calls");
	for (unsigned int i = 0; i < notes.n; i++)
		kymo_page_printf(t->page, INK_ALARM, "%s\n", notes.texts[i]);
	if (!t->calls.functions.n)
		kymo_page_text(t->page, INK_ALARM,
			       "no function has a probe at its entry (-p) and one at its return (-r)\n");
}

static struct kymo_error *write_tree(struct tree *t, bool all)
{
	kymo_cleanup_free uint64_t *weights = calloc(t->nodes.n, sizeof(*weights));
	struct loss_total total;
	struct kymo_error *error;
	const struct kymo_ctf_loss *losses;
	size_t n;

	if (!weights)
		return &kymo_error_no_memory;
	add_up(t, weights);
	if (t->nodes.n > 1)
		kymo_page_printf(t->page, INK_DIM, "  TOTAL     SELF       COUNT  CALL\n");
	error = write_nodes(t, weights, all ? 0 : weights[0] / 200);
	if (error)
		return error;
	write_notes(t);
	losses = kymo_ctf_reader_losses(t->reader, &n);
	total = kymo_losses_total(losses, n);
	if (total.events)
		kymo_page_printf(t->page, INK_ALARM, "lost %" PRIu64 " events in all\n", total.events);
	if (total.packets)
		kymo_page_printf(t->page, INK_ALARM, "%" PRIu64 " packets overwritten in all\n", total.packets);
	/* All losses are told: only damage is left. */
	return kymo_lines_finish(t->page, t->reader, &total);
}

static struct kymo_error *init_tree(struct tree *t, const struct filter *filter)
{
	struct kymo_error *error;

	kymo_threads_init(&t->threads, t->trace);
	error = kymo_calls_init(&t->calls, t->reader, &t->threads);
	if (!error)
		kymo_calls_filter(&t->calls, filter);
	if (!error && !kymo_vec_push(&t->nodes, (struct node){ 0 }))
		error = &kymo_error_no_memory;
	return error;
}

static void deinit_tree(struct tree *t)
{
	kymo_vec_deinit(&t->nodes);
	kymo_index_deinit(&t->index);
	if (t->calls.trace)
		kymo_calls_deinit(&t->calls);
	kymo_threads_deinit(&t->threads);
}

struct kymo_error *kymo_tree_write(struct kymo_ctf_reader *reader, const struct names *names, struct filter *filter,
				   struct fates *fates, bool all, const struct page *page)
{
	struct tree t = { .page = page, .reader = reader, .names = names, .trace = kymo_ctf_reader_trace(reader) };
	struct kymo_error *error = init_tree(&t, filter);

	kymo_calls_foresee(&t.calls, fates);
	if (!error)
		error = gather_tree(&t, reader, filter);
	if (!error && !kymo_calls_need_fates(&t.calls))
		error = write_tree(&t, all);
	deinit_tree(&t);
	return error;
}
