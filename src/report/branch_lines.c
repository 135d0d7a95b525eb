#include "report/branch_lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/branches.h"
#include "report/history.h"
#include "report/loops.h"
#include "report/text.h"

#define FROM_MAX 72 /* columns */

char *branch_location(const struct branch_view *view, const struct history *history, uint32_t number)
{
	const struct history_code *code = number ? &history->codes.items[number - 1] : NULL;
	char address[32] = "", *text = NULL;
	int size;

	if (!code)
		return strdup("");
	if (view->options->addresses && *code->file)
		snprintf(address, sizeof(address), "0x%" PRIx64 " ", code->address);
	size = asprintf(&text, "%s%s%s%s", address, code->text, *code->source ? " " : "", code->source);
	return size < 0 ? NULL : text;
}

static unsigned int columns_of(const struct branch_view *view, const struct history *history, uint32_t number)
{
	kymo_cleanup_free char *text = branch_location(view, history, number);
	const unsigned int n = text ? kymo_text_columns(text) : 0;

	return n < FROM_MAX ? n : FROM_MAX;
}

static unsigned int widest(const struct branch_view *view, const struct history *history,
			   const struct history_branch *branches, size_t n)
{
	unsigned int most = 0;

	for (size_t i = 0; i < n; i++) {
		const unsigned int columns = columns_of(view, history, branches[i].from);

		if (columns > most)
			most = columns;
	}
	return most;
}

const char *branch_event(const struct history *history, const struct history_branch *anchor)
{
	return anchor->event ? history->events.items[anchor->event - 1] : "an event that is not in the trace";
}

static void seconds_of(const struct history *history, uint64_t tsc, char text[TEXT_NUMBER])
{
	kymo_text_seconds(text, (int64_t)kymo_ctf_duration_ns(history->trace, tsc - history->first), 9);
}

/* `last` is the same one in the last round of the loop. */
static void write_anchor(const struct branch_view *view, const struct history *history,
			 const struct history_branch *anchor, const struct history_branch *last, const char *mark)
{
	char from[TEXT_NUMBER], to[TEXT_NUMBER];

	seconds_of(history, anchor->tsc, from);
	seconds_of(history, last->tsc, to);
	kymo_page_printf(&view->page, INK_DIM, "  %s ", mark);
	kymo_page_printf(&view->page, INK_HEAD, "%s", branch_event(history, anchor));
	kymo_page_printf(&view->page, INK_DIM, "  at %s%s%s s", from, last != anchor ? " to " : "",
			 last != anchor ? to : "");
}

/* `mark` is of a loop; what stands after the line is the caller's. */
static struct kymo_error *write_branch(const struct branch_view *view, const struct history *history,
				       const struct history_branch *branch, unsigned int width, const char *mark)
{
	kymo_cleanup_free char *from = branch_location(view, history, branch->from);
	kymo_cleanup_free char *to = branch_location(view, history, branch->to);
	unsigned int columns;

	if (!from || !to)
		return &kymo_error_no_memory;
	columns = kymo_text_columns(from);
	kymo_page_printf(&view->page, INK_DIM, "  %s ", mark);
	kymo_page_text(&view->page, INK_PLAIN, from);
	kymo_page_spaces(&view->page, columns < width ? width - columns : 0);
	kymo_page_printf(&view->page, INK_DIM, "  %-6s  ", kymo_history_kind(branch->kind));
	kymo_page_text(&view->page, INK_PLAIN, branch->to ? to : "?");
	return NULL;
}

uint64_t branch_symbol(const struct history_branch *branch)
{
	const uint32_t to = branch->kind == KYMO_CTF_BRANCH_ANCHOR ? branch->event : branch->to;

	_Static_assert(KYMO_CTF_BRANCH_KINDS <= 8, "three bits");
	return (uint64_t)branch->from << 35 | (uint64_t)to << 3 | branch->kind;
}

static struct kymo_error *write_loop(const struct branch_view *view, const struct history *history,
				     const struct history_branch *branches, const struct loop *loop, unsigned int width)
{
	static const char *const marks[2][3] = { { "/", "|", "\\" }, { "┌", "│", "└" } };
	const char *times = view->page.unicode ? "×" : "x";
	char count[TEXT_NUMBER];
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < loop->length && !error; i++) {
		const char *const *mark = marks[view->page.unicode];
		const struct history_branch *branch = &branches[loop->start + i];
		const bool is_last = i + 1 == loop->length;
		const char *own = loop->length == 1 ? " " : !i ? mark[0] : is_last ? mark[2] : mark[1];

		if (branch->kind == KYMO_CTF_BRANCH_ANCHOR)
			write_anchor(view, history, branch, branch + (loop->count - 1) * loop->length, own);
		else
			error = write_branch(view, history, branch, width, own);
		if (is_last && loop->count > 1)
			kymo_page_printf(&view->page, INK_HEAD, "  %s%s", times, kymo_text_count(count, loop->count));
		fputc('\n', view->page.out);
	}
	return error;
}

struct kymo_error *branch_lines_write(const struct branch_view *view, const struct history *history,
				      const struct history_branch *branches, size_t n)
{
	kymo_cleanup_free uint64_t *symbols = calloc(n + 1, sizeof(*symbols));
	const unsigned int width = widest(view, history, branches, n);
	struct loops loops = { 0 };
	struct kymo_error *error = symbols ? NULL : &kymo_error_no_memory;

	for (size_t i = 0; i < n && !error; i++)
		symbols[i] = branch_symbol(&branches[i]);
	if (!error && !kymo_loops_find(symbols, n, &loops))
		error = &kymo_error_no_memory;
	for (size_t i = 0; i < loops.items.n && !error; i++)
		error = write_loop(view, history, branches, &loops.items.items[i], width);
	kymo_vec_deinit(&loops.items);
	return error;
}
