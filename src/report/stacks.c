#include "report/stacks.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/flame.h"
#include "report/folds.h"
#include "report/frames.h"
#include "report/lines.h"
#include "report/losses.h"
#include "report/samples.h"
#include "report/text.h"
#include "sym/demangle.h"

#define NO_STACK "[stack not known]"

/* Of a path with inlined functions: a hostile trace has 64 of them in each of its FRAMES_DEPTH_MAX frames. */
#define INLINED_DEPTH_MAX 2048u
#define PATH_FOLDS_MAX (INLINED_DEPTH_MAX + FRAMES_DEPTH_MAX + 1)

struct stacks {
	const struct page *page;
	const struct kymo_ctf_reader *reader;
	struct kymo_frame_tree rows;
	KYMO_VEC(uint32_t) folded; /* as the rows: its index among the folds */
	struct folds folds;
	uint64_t n; /* records with a stack */
};

/* ---- gathering ------------------------------------------------------------------------------- */

/* Below the fold of a frame, those of what was inlined there, the outermost first. The innermost one; 0: memory is out.
 */
static uint32_t fold_inlined(struct stacks *s, const struct kymo_frame_node *row, uint32_t at)
{
	uint32_t n = 0;
	const struct kymo_frame_source *sources = kymo_frame_sources(&s->rows, row, &n);

	while (at && n--) {
		kymo_cleanup_free char *name = NULL;

		if (!sources[n].is_inlined || s->folds.items.items[at].depth >= INLINED_DEPTH_MAX)
			continue;
		name = kymo_source_name(&s->rows, &sources[n], true);
		at = name ? kymo_folds_find(&s->folds, at, name) : 0;
	}
	return at;
}

/* Places for the rows that are new. */
static bool fold_rows(struct stacks *s)
{
	while (s->folded.n < s->rows.nodes.n) {
		const struct kymo_frame_node *row = &s->rows.nodes.items[s->folded.n];
		kymo_cleanup_free char *name = kymo_frame_name(&s->rows, row, true);
		const uint32_t parent = row->caller ? s->folded.items[row->caller - 1] : 0;
		const uint32_t own = name ? kymo_folds_find(&s->folds, parent, name) : 0;
		const uint32_t at = own ? fold_inlined(s, row, own) : 0;

		if (!at || !kymo_vec_push(&s->folded, at))
			return false;
	}
	return true;
}

static bool add_stack(struct stacks *s, const struct kymo_ctf_record *record)
{
	const uint32_t number = kymo_ctf_stack(record);
	uint32_t at = 0;

	if (!fold_rows(s))
		return false;
	s->n++;
	at = kymo_frame_at(&s->rows, number) ? s->folded.items[number - 1] : kymo_folds_find(&s->folds, 0, NO_STACK);
	s->folds.items.items[at].self++;
	return at;
}

static struct kymo_error *gather_stacks(struct stacks *s, struct kymo_ctf_reader *reader, struct filter *filter)
{
	struct kymo_ctf_record record;
	struct kymo_error *error;

	while (kymo_next_record(reader, &s->rows, &record, &error))
		if (kymo_filter_takes(filter, &record) && kymo_filter_shows(filter, &record) &&
		    record.event->has_stack && !add_stack(s, &record))
			return &kymo_error_no_memory;
	kymo_folds_sum(&s->folds);
	return error;
}

/* ---- folded ---------------------------------------------------------------------------------- */

/* What separates frames, and stacks from numbers, is none of a name's. */
static void write_folded_name(const char *name, FILE *out)
{
	for (; *name; name++)
		putc_unlocked(*name == ';' ? ':' : *name, out);
}

static void write_path(const struct folds *folds, uint32_t at, FILE *out)
{
	uint32_t path[PATH_FOLDS_MAX], n = 0;

	for (; at; at = folds->items.items[at].parent)
		path[n++] = at;
	while (n--) {
		write_folded_name(kymo_folds_name(folds, path[n]), out);
		if (n)
			putc_unlocked(';', out);
	}
}

static struct kymo_error *write_folded(const struct stacks *s)
{
	FILE *out = s->page->out;

	for (uint32_t i = 1; i < s->folds.items.n; i++) {
		if (!s->folds.items.items[i].self)
			continue;
		write_path(&s->folds, i, out);
		fprintf(out, " %" PRIu64 "\n", s->folds.items.items[i].self);
	}
	return NULL;
}

/* ---- a flame graph --------------------------------------------------------------------------- */

static struct kymo_error *write_flame(const struct stacks *s, const char *dir)
{
	const char *command = kymo_ctf_trace_env(kymo_ctf_reader_trace(s->reader), "command");
	kymo_cleanup_free char *title = NULL, *note = NULL, *shown = kymo_text_escape(command ? command : dir, true);
	char count[TEXT_NUMBER], lost[TEXT_NUMBER];
	struct loss_total total;
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(s->reader, &n);

	total = kymo_losses_total(losses, n);
	if (!shown || asprintf(&title, "kymo: %s", shown) < 0)
		title = NULL;
	if (asprintf(&note, "%s records with a stack%s%s%s.", kymo_text_count(count, s->n),
		     total.events ? "; events that were lost: " : "",
		     total.events ? kymo_text_count(lost, total.events) : "",
		     kymo_trace_is_sampled(kymo_ctf_reader_trace(s->reader)) ? "; not all hits are recorded (sample)"
									     : "") < 0)
		note = NULL;
	return title && note ? kymo_flame_write(&s->folds, title, note, s->page->out) : &kymo_error_no_memory;
}

/* ---- callers and callees --------------------------------------------------------------------- */

struct search {
	const char *word;
	struct kymo_pattern *pattern;
	bool *matches; /* as the folds' names */
};

static void search_deinit(struct search *search)
{
	kymo_pattern_destroy(search->pattern);
	free(search->matches);
}

static struct kymo_error *search_init(struct search *search, const struct folds *folds, const char *word)
{
	*search = (struct search){ .word = word,
				   .pattern = kymo_pattern_create(word),
				   .matches = calloc(folds->names.items.n + 1, sizeof(bool)) };
	if (!search->pattern || !search->matches)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < folds->names.items.n; i++) {
		kymo_cleanup_free char *name = strdup(folds->names.items.items[i]);
		char *mark = name ? strstr(name, KYMO_INLINED) : NULL;

		if (!name)
			return &kymo_error_no_memory;
		if (mark && !mark[sizeof(KYMO_INLINED) - 1])
			*mark = '\0';
		search->matches[i + 1] = !fnmatch(word, name, 0) || kymo_pattern_matches(search->pattern, name);
	}
	return NULL;
}

/* Add the part of a stack that begins at the function: to its callers, from the innermost call of it on, or to its
 * callees, from the outermost. False when memory is out. */
static bool add_part(const struct folds *all, const struct search *search, uint32_t at, bool callers,
		     struct folds *part)
{
	const uint64_t self = all->items.items[at].self;
	uint32_t path[PATH_FOLDS_MAX], n = 0, first = UINT32_MAX, to = 0;

	for (uint32_t i = at; i; i = all->items.items[i].parent) {
		if (search->matches[all->items.items[i].name] && (first == UINT32_MAX || !callers))
			first = n;
		path[n++] = i;
	}
	if (first == UINT32_MAX)
		return true;
	for (uint32_t i = first; i < n && i != UINT32_MAX; i += callers ? 1 : UINT32_MAX) {
		to = kymo_folds_find(part, to, kymo_folds_name(all, path[i]));
		if (!to)
			return false;
	}
	part->items.items[to].self += self;
	return true;
}

static void write_line(const struct page *page, const struct folds *part, uint32_t at, uint32_t indent)
{
	const struct fold *fold = &part->items.items[at];
	const uint64_t all = part->items.items[0].total;
	char number[TEXT_NUMBER];

	kymo_page_right(page, INK_PLAIN, kymo_text_count(number, fold->total), 11);
	kymo_page_printf(page, INK_DIM, " %5.1f%%  ", all ? 100.0 * (double)fold->total / (double)all : 0);
	kymo_page_spaces(page, indent);
	kymo_page_text(page, INK_HEAD, kymo_folds_name(part, at));
	putc('\n', page->out);
}

/* How far each line is indented: after its parent's where that has others below it, too. NULL when memory is out. */
static uint32_t *indents_of(const struct folds *part)
{
	uint32_t *indents = calloc(part->items.n, sizeof(*indents));
	kymo_cleanup_free uint32_t *children = calloc(part->items.n, sizeof(*children));

	for (uint32_t i = 1; children && i < part->items.n; i++)
		children[part->items.items[i].parent]++;
	for (uint32_t i = 1; indents && children && i < part->items.n; i++) {
		const uint32_t parent = part->items.items[i].parent;

		indents[i] = indents[parent] + (children[parent] > 1 && parent ? 2 : 0);
	}
	if (children)
		return indents;
	free(indents);
	return NULL;
}

/* In the order of the tree. `sorted` has children of one parent side by side. */
static struct kymo_error *write_tree(const struct page *page, struct folds *part)
{
	const size_t n = part->items.n - 1;
	kymo_cleanup_free uint32_t *sorted = NULL, *indents = indents_of(part), *next = calloc(n + 1, sizeof(*next));
	uint32_t at = 0;

	kymo_folds_sum(part);
	sorted = kymo_folds_sorted(part, true);
	if (!sorted || !indents || !next)
		return &kymo_error_no_memory;
	/* next[i]: 1 + where the child of i that comes next stands in `sorted`. */
	for (size_t i = n; i-- > 0;)
		next[part->items.items[sorted[i]].parent] = (uint32_t)i + 1;
	for (;;) {
		const uint32_t i = next[at];

		if (!i || i > n || part->items.items[sorted[i - 1]].parent != at) {
			if (!at)
				return NULL;
			at = part->items.items[at].parent;
			continue;
		}
		next[at]++;
		at = sorted[i - 1];
		write_line(page, part, at, indents[at]);
	}
}

static struct kymo_error *write_part(const struct stacks *s, const char *function, bool callers)
{
	kymo_cleanup(search_deinit) struct search search = { .word = NULL };
	kymo_cleanup(kymo_folds_deinit) struct folds part = { 0 };
	struct kymo_error *error = search_init(&search, &s->folds, function);

	if (!error && !kymo_folds_init(&part))
		error = &kymo_error_no_memory;
	for (uint32_t i = 1; i < s->folds.items.n && !error; i++)
		if (s->folds.items.items[i].self && !add_part(&s->folds, &search, i, callers, &part))
			error = &kymo_error_no_memory;
	if (error)
		return error;
	if (part.items.n == 1)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "no stack has a function '%s'", function);
	kymo_page_printf(s->page, INK_DIM, "    RECORDS   PART  %s\n",
			 callers ? "FUNCTION, AND ITS CALLERS" : "FUNCTION, AND WHAT IT CALLS");
	return write_tree(s->page, &part);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void stacks_deinit(struct stacks *s)
{
	kymo_frame_tree_deinit(&s->rows);
	kymo_vec_deinit(&s->folded);
	kymo_folds_deinit(&s->folds);
}

/* Where the output is a format of another program's, what is missing is told on the side of it by the caller. */
static struct kymo_error *tell_losses(const struct stacks *s)
{
	struct loss_total none = { .events = 0 };

	return kymo_lines_finish(s->page, s->reader, &none);
}

struct kymo_error *kymo_stacks_write(struct kymo_ctf_reader *reader, const char *dir, struct filter *filter,
				     const struct kymo_report_options *options, const struct page *page)
{
	kymo_cleanup(stacks_deinit) struct stacks s = { .page = page, .reader = reader };
	struct kymo_error *error = NULL;

	if (!kymo_trace_has_stacks(kymo_ctf_reader_trace(reader)))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "no record of %s has a stack: 'kymo record --stack' records them", dir);
	if (!kymo_folds_init(&s.folds))
		return &kymo_error_no_memory;
	error = gather_stacks(&s, reader, filter);
	if (error)
		return error;
	switch (options->mode) {
	case KYMO_REPORT_FOLDED:
		return write_folded(&s);
	case KYMO_REPORT_FLAME:
		return write_flame(&s, dir);
	default:
		error = write_part(&s, options->function, options->mode == KYMO_REPORT_CALLERS);
		return error ? error : tell_losses(&s);
	}
}
