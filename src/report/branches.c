#include "report/branches.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "report/branch_lines.h"
#include "report/branches_json.h"
#include "report/history.h"
#include "report/open_calls.h"
#include "report/page.h"
#include "report/parting.h"
#include "report/text.h"
#include "syscall/signal_names.h"

#define CRASH_LAST 40
#define CRASH_OTHERS 5
#define CRASH_CALLS 32
#define AROUND 4 /* branches shown before and after a parting */

/* ---- threads --------------------------------------------------------------------------------- */

static bool was_killed(const struct history_thread *thread)
{
	return thread->status != -1 && WIFSIGNALED(thread->status);
}

/* The signal was this thread's own, and not one that has ended the others with it. */
static bool has_crashed(const struct history_thread *thread)
{
	return was_killed(thread) && thread->signal && (uint32_t)WTERMSIG(thread->status) == thread->signal;
}

static void write_end(const struct branch_view *view, const struct history *history,
		      const struct history_thread *thread)
{
	char name[32];

	if (has_crashed(thread)) {
		kymo_cleanup_free char *at = branch_location(view, history, thread->at);

		kymo_page_printf(&view->page, INK_ALARM, "; then %s", kymo_signal_name((int)thread->signal, name));
		kymo_page_printf(&view->page, INK_PLAIN, " at %s", at ? at : "");
		if (thread->address)
			kymo_page_printf(&view->page, INK_PLAIN, ", address 0x%" PRIx64, thread->address);
	} else if (was_killed(thread)) {
		kymo_page_printf(&view->page, INK_PLAIN, "; ended by %s",
				 kymo_signal_name(WTERMSIG(thread->status), name));
	} else if (thread->status != -1) {
		kymo_page_printf(&view->page, INK_PLAIN, "; ended with status %d", WEXITSTATUS(thread->status));
	}
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static uint64_t address_of(const struct history *history, uint32_t number)
{
	return number ? history->codes.items[number - 1].address : 0;
}

static bool is_entry(const struct history *history, uint32_t number)
{
	const struct history_code *code = number ? &history->codes.items[number - 1] : NULL;

	return code && *code->function && !code->offset;
}

static bool find_open_calls(const struct history *history, const struct history_thread *thread, struct open_calls *ret)
{
	kymo_cleanup_free struct passage *passages = calloc(thread->branches.n + 1, sizeof(*passages));

	for (size_t i = 0; i < thread->branches.n && passages; i++) {
		const struct history_branch *branch = &thread->branches.items[i];

		passages[i] = (struct passage){ address_of(history, branch->from), address_of(history, branch->to),
						branch->kind, is_entry(history, branch->to) };
	}
	return passages && kymo_open_calls_find(passages, thread->branches.n, ret);
}

/* Whether it has all calls that the thread has made. Only single steps see all code. */
static bool has_all_calls(const struct history *history, const struct history_thread *thread)
{
	const char *chosen = kymo_ctf_trace_env(history->trace, KYMO_ENV_BRANCHES_CHOSEN);
	const char *source = kymo_ctf_trace_env(history->trace, KYMO_ENV_BRANCHES);

	return !thread->is_overwritten && thread->branches.n - thread->n_anchors >= thread->taken && chosen &&
	       !strcmp(chosen, "all") && source && !strcmp(source, KYMO_BRANCHES_BY_STEPS);
}

/* Where the thread stood, the calls that led there, the innermost first. A history that has no beginning lacks the
 * outer ones. */
static struct kymo_error *write_calls(const struct branch_view *view, const struct history *history,
				      const struct history_thread *thread, const struct open_calls *open)
{
	const size_t n = open->items.n < CRASH_CALLS ? open->items.n : CRASH_CALLS;
	kymo_cleanup_free char *at = branch_location(view, history, thread->at);

	kymo_page_printf(&view->page, INK_DIM, "  #0 ");
	kymo_page_printf(&view->page, INK_PLAIN, " %s\n", at ? at : "");
	for (size_t i = 0; i < n; i++) {
		const struct history_branch *call = &thread->branches.items[open->items.items[open->items.n - 1 - i]];
		kymo_cleanup_free char *from = branch_location(view, history, call->from);

		if (!from)
			return &kymo_error_no_memory;
		kymo_page_printf(&view->page, INK_DIM, "  #%-3zu", i + 1);
		kymo_page_printf(&view->page, INK_PLAIN, "%s%s\n", from,
				 call->kind == KYMO_CTF_BRANCH_SIGNAL ? ", by a signal" : "");
	}
	if (n < open->items.n)
		kymo_page_printf(&view->page, INK_DIM, "       and %zu more\n", open->items.n - n);
	else if (!has_all_calls(history, thread))
		kymo_page_printf(&view->page, INK_DIM, "       and calls that are not in the history\n");
	return NULL;
}

static struct kymo_error *write_stack(const struct branch_view *view, const struct history *history,
				      const struct history_thread *thread)
{
	struct open_calls open = { 0 };
	struct kymo_error *error = &kymo_error_no_memory;

	if (find_open_calls(history, thread, &open))
		error = write_calls(view, history, thread, &open);
	kymo_vec_deinit(&open.items);
	return error;
}

/* ---- histories ------------------------------------------------------------------------------- */

/* From number `at` on; NULL where there are none. */
static const struct history_branch *branches_from(const struct history_thread *thread, size_t at)
{
	return at ? thread->branches.items + at : thread->branches.items;
}

/* With "libc:" or without. */
static bool is_of(const struct history *history, const struct history_branch *item, const char *pattern)
{
	const char *name = item->event ? history->trace->events[item->event - 1].name : NULL;
	const char *colon = name ? strchr(name, ':') : NULL;

	return item->kind == KYMO_CTF_BRANCH_ANCHOR && name &&
	       (!fnmatch(pattern, name, 0) || (colon && !fnmatch(pattern, colon + 1, 0)));
}

/* Where what is shown of the thread ends: behind the last such record; 0: the history has none. */
static size_t end_of(const struct branch_view *view, const struct history *history, const struct history_thread *thread)
{
	const char *pattern = view->options->before;
	size_t end = thread->branches.n;

	while (pattern && end && !is_of(history, &thread->branches.items[end - 1], pattern))
		end--;
	return end;
}

/* Where the last `most` branches before `end` begin, all if that is 0; how many there are. */
static size_t begin_of(const struct history_thread *thread, size_t end, size_t most, size_t *n_ret)
{
	size_t at = end;

	*n_ret = 0;
	while (at && !(most && *n_ret == most))
		*n_ret += thread->branches.items[--at].kind != KYMO_CTF_BRANCH_ANCHOR;
	return at;
}

static struct kymo_error *write_history_thread(const struct branch_view *view, const struct history *history,
					       const struct history_thread *thread, size_t last, bool with_stack)
{
	struct kymo_error *error = NULL;
	const size_t end = end_of(view, history, thread);
	size_t n, from = begin_of(thread, end, last, &n);
	char shown[TEXT_NUMBER], taken[TEXT_NUMBER];

	kymo_page_printf(&view->page, INK_HEAD, "thread %d %s", thread->tid, thread->name);
	if (view->options->before)
		kymo_page_printf(&view->page, INK_PLAIN, ": %s %s before its last %s", kymo_text_count(shown, n),
				 n == 1 ? "branch" : "branches",
				 branch_event(history, &thread->branches.items[end - 1]));
	else if (thread->is_overwritten)
		kymo_page_printf(&view->page, INK_PLAIN, ": the last %s %s; earlier ones were overwritten",
				 kymo_text_count(shown, n), n == 1 ? "branch" : "branches");
	else if (n < thread->taken)
		kymo_page_printf(&view->page, INK_PLAIN, ": the last %s of %s branches", kymo_text_count(shown, n),
				 kymo_text_count(taken, thread->taken));
	else
		kymo_page_printf(&view->page, INK_PLAIN, ": %s %s", kymo_text_count(taken, n),
				 n == 1 ? "branch" : "branches");
	write_end(view, history, thread);
	fputc('\n', view->page.out);
	if (with_stack)
		error = write_stack(view, history, thread);
	return error ? error : branch_lines_write(view, history, branches_from(thread, from), end - from);
}

static void write_head(const struct branch_view *view, const struct history *history, const char *dir)
{
	const char *names[] = { "command", KYMO_ENV_BRANCHES, KYMO_ENV_BRANCHES_CHOSEN, KYMO_ENV_BRANCHES_UNSEEN };
	char *texts[kymo_countof(names)];

	for (size_t i = 0; i < kymo_countof(names); i++) {
		const char *value = kymo_ctf_trace_env(history->trace, names[i]);

		texts[i] = kymo_text_escape(value ? value : "", view->page.unicode);
	}
	kymo_page_printf(&view->page, INK_HEAD, "%s: %s", dir, texts[0] ? texts[0] : "");
	kymo_page_printf(&view->page, INK_DIM, "\nbranches of %s, by %s; not seen: %s\n", texts[2] ? texts[2] : "",
			 texts[1] ? texts[1] : "", texts[3] ? texts[3] : "");
	for (size_t i = 0; i < kymo_countof(names); i++)
		free(texts[i]);
}

static void write_damage(const struct branch_view *view, const struct history *history)
{
	size_t n;
	const char *const *warnings = kymo_ctf_reader_warnings(history->reader, &n);

	for (size_t i = 0; i < n; i++)
		kymo_page_printf(&view->page, INK_ALARM, "--- %s ---\n", warnings[i]);
	if (history->n_senseless)
		kymo_page_printf(&view->page, INK_ALARM, "--- %" PRIu64 " records make no sense and are left out ---\n",
				 history->n_senseless);
}

static struct branch_view view_of(const struct kymo_branches_view *options, FILE *out)
{
	return (struct branch_view){
		options,
		{ .out = out, .width = 80, .color = options->color, .unicode = options->unicode, .whole = true }
	};
}

static enum history_text history_text_of(const struct kymo_branches_view *options)
{
	if (options->json)
		return HISTORY_TEXT_RAW;
	return options->unicode ? HISTORY_TEXT_UNICODE : HISTORY_TEXT_ASCII;
}

static bool is_shown(const struct kymo_branches_view *options, const struct history_thread *thread)
{
	return !options->thread || thread->tid == options->thread;
}

static struct kymo_error *check_thread(const struct history *history, const char *dir, int32_t tid)
{
	for (size_t i = 0; i < history->threads.n; i++)
		if (!tid || history->threads.items[i].tid == tid)
			return NULL;
	return tid ? kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s has no branches of a thread %d", dir, tid) : NULL;
}

static struct kymo_error *check_before(const struct branch_view *view, const struct history *history, const char *dir)
{
	for (size_t i = 0; i < history->threads.n; i++)
		if (is_shown(view->options, &history->threads.items[i]) &&
		    end_of(view, history, &history->threads.items[i]))
			return NULL;
	return kymo_error_create(KYMO_ERROR_NOT_FOUND,
				 "no history in %s has a record of '%s': it was recorded before what is kept of its "
				 "thread, without -b, or not at all; 'kymo report %s' shows the events",
				 dir, view->options->before, dir);
}

static struct kymo_error *show_history(const struct branch_view *view, const struct history *history, const char *dir)
{
	struct kymo_error *error = check_thread(history, dir, view->options->thread);

	if (!error && view->options->before)
		error = check_before(view, history, dir);
	if (error)
		return error;
	if (view->options->json)
		return kymo_branches_json_write(view->page.out, history, view->options, dir);
	write_head(view, history, dir);
	for (size_t i = 0; i < history->threads.n && !error; i++) {
		if (!is_shown(view->options, &history->threads.items[i]) ||
		    (view->options->before && !end_of(view, history, &history->threads.items[i])))
			continue;
		fputc('\n', view->page.out);
		error = write_history_thread(view, history, &history->threads.items[i], view->options->last, false);
	}
	write_damage(view, history);
	return error;
}

struct kymo_error *kymo_report_branches(const char *dir, const struct kymo_branches_view *options, FILE *out)
{
	kymo_cleanup(kymo_history_close) struct history history = { 0 };
	const struct branch_view view = view_of(options, out);
	struct kymo_error *error = kymo_history_open(&history, dir, history_text_of(options));

	if (!error)
		error = show_history(&view, &history, dir);
	return error ? error : kymo_page_flush(out);
}

/* ---- a crash --------------------------------------------------------------------------------- */

static struct kymo_error *write_crash(const struct branch_view *view, const struct history *history, bool of_it)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < history->threads.n && !error; i++) {
		const struct history_thread *thread = &history->threads.items[i];
		const size_t last = of_it ? CRASH_LAST : CRASH_OTHERS;

		if (has_crashed(thread) != of_it || (!of_it && !thread->branches.n))
			continue;
		fputc('\n', view->page.out);
		error = write_history_thread(view, history, thread, view->options->last ? view->options->last : last,
					     of_it);
	}
	return error;
}

struct kymo_error *kymo_report_crash(const char *dir, const struct kymo_branches_view *options, FILE *out)
{
	kymo_cleanup(kymo_history_close) struct history history = { 0 };
	const struct branch_view view = view_of(options, out);
	struct kymo_error *error = kymo_history_open(&history, dir, history_text_of(options));
	bool has = false;

	for (size_t i = 0; i < history.threads.n; i++)
		has |= was_killed(&history.threads.items[i]);
	if (!error && !has)
		error = kymo_error_create(
			KYMO_ERROR_NOT_FOUND,
			"nothing crashed in %s: no thread was ended by a signal; 'kymo branches' shows "
			"all histories",
			dir);
	if (error)
		return error;
	write_head(&view, &history, dir);
	error = write_crash(&view, &history, true);
	if (!error)
		error = write_crash(&view, &history, false);
	write_damage(&view, &history);
	return error ? error : kymo_page_flush(out);
}

/* ---- two traces ------------------------------------------------------------------------------ */

/* Locations of two traces have one number where their texts are the same. */
struct names {
	const char **items; /* sorted, each once */
	size_t n;
};

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool names_init(struct names *names, const struct history *a, const struct history *b)
{
	size_t n = 0;

	names->items = calloc(a->codes.n + b->codes.n + 1, sizeof(*names->items));
	if (!names->items)
		return false;
	for (size_t i = 0; i < a->codes.n; i++)
		names->items[n++] = a->codes.items[i].text;
	for (size_t i = 0; i < b->codes.n; i++)
		names->items[n++] = b->codes.items[i].text;
	qsort(names->items, n, sizeof(*names->items), compare_texts);
	for (size_t i = 0; i < n; i++)
		if (!names->n || strcmp(names->items[names->n - 1], names->items[i]) != 0)
			names->items[names->n++] = names->items[i];
	return true;
}

static uint32_t number_in(const struct names *names, const struct history *history, uint32_t code)
{
	const char **found;

	if (!code)
		return 0;
	found = bsearch(&history->codes.items[code - 1].text, names->items, names->n, sizeof(*names->items),
			compare_texts);
	return found ? (uint32_t)(found - names->items) + 1 : 0;
}

/* A fresh array, or NULL when memory is out. */
static uint64_t *symbols_of(const struct names *names, const struct history *history,
			    const struct history_thread *thread)
{
	uint64_t *symbols = calloc(thread->branches.n + 1, sizeof(*symbols));

	for (size_t i = 0; symbols && i < thread->branches.n; i++) {
		struct history_branch branch = thread->branches.items[i];

		branch.from = number_in(names, history, branch.from);
		branch.to = number_in(names, history, branch.to);
		symbols[i] = branch_symbol(&branch);
	}
	return symbols;
}

static struct kymo_error *write_side(const struct branch_view *view, const struct history *history,
				     const struct history_thread *thread, size_t at, const char *dir)
{
	const size_t left = thread->branches.n - at;

	kymo_page_printf(&view->page, INK_HEAD, "  then in %s:\n", dir);
	if (!left) {
		kymo_page_printf(&view->page, INK_PLAIN, "    nothing");
		write_end(view, history, thread);
		fputc('\n', view->page.out);
	}
	return branch_lines_write(view, history, branches_from(thread, at), left < AROUND ? left : AROUND);
}

struct pair {
	const struct history *history[2];
	const struct history_thread *thread[2];
	const char *dir[2];
};

static struct kymo_error *write_parting(const struct branch_view *view, const struct pair *pair,
					const struct parting *parting)
{
	const size_t before = parting->n < AROUND ? parting->n : AROUND;
	const size_t at[2] = { parting->a + parting->n, parting->b + parting->n };
	char count[TEXT_NUMBER];
	struct kymo_error *error;

	kymo_page_printf(&view->page, INK_PLAIN, "%s %s the same, then they part%s\n",
			 kymo_text_count(count, parting->n), parting->n == 1 ? "branch is" : "branches are",
			 before ? ":" : "");
	error = branch_lines_write(view, pair->history[0], branches_from(pair->thread[0], at[0] - before), before);
	for (size_t i = 0; i < 2 && !error; i++)
		error = write_side(view, pair->history[i], pair->thread[i], at[i], pair->dir[i]);
	return error;
}

static bool is_whole(const struct history_thread *thread)
{
	return thread->branches.n - thread->n_anchors == thread->taken && !thread->is_overwritten;
}

static struct kymo_error *diff_threads(const struct branch_view *view, const struct names *names,
				       const struct pair *pair, bool *differ)
{
	const struct history_thread *a = pair->thread[0], *b = pair->thread[1];
	kymo_cleanup_free uint64_t *x = symbols_of(names, pair->history[0], a);
	kymo_cleanup_free uint64_t *y = symbols_of(names, pair->history[1], b);
	const bool are_whole = is_whole(a) && is_whole(b);
	char count[TEXT_NUMBER];
	struct parting parting;

	if (!x || !y)
		return &kymo_error_no_memory;
	kymo_page_printf(&view->page, INK_HEAD, "threads %d and %d %s: ", a->tid, b->tid, a->name);
	if (!kymo_part(x, a->branches.n, y, b->branches.n, are_whole, &parting)) {
		*differ = true;
		fputs("they have no branch in common\n", view->page.out);
		return NULL;
	}
	if (parting.a + parting.n == a->branches.n && parting.b + parting.n == b->branches.n) {
		kymo_page_printf(&view->page, INK_PLAIN, "the same, %s branches\n", kymo_text_count(count, parting.n));
		return NULL;
	}
	*differ = true;
	return write_parting(view, pair, &parting);
}

static struct kymo_error *diff(const struct branch_view *view, const struct history *a, const struct history *b,
			       const char *const dirs[2], bool *differ)
{
	const size_t n = a->threads.n < b->threads.n ? a->threads.n : b->threads.n;
	struct names names = { .n = 0 };
	struct kymo_error *error = names_init(&names, a, b) ? NULL : &kymo_error_no_memory;

	for (size_t i = 0; i < n && !error; i++) {
		const struct pair pair = { { a, b },
					   { &a->threads.items[i], &b->threads.items[i] },
					   { dirs[0], dirs[1] } };

		error = diff_threads(view, &names, &pair, differ);
	}
	if (a->threads.n != b->threads.n) {
		*differ = true;
		kymo_page_printf(&view->page, INK_PLAIN, "%s has %zu threads, %s has %zu\n", dirs[0], a->threads.n,
				 dirs[1], b->threads.n);
	}
	free(names.items);
	return error;
}

/* Times and events are not compared. */
static void forget_anchors(struct history *history)
{
	for (size_t i = 0; i < history->threads.n; i++) {
		struct history_thread *thread = &history->threads.items[i];
		size_t n = 0;

		for (size_t k = 0; k < thread->branches.n; k++)
			if (thread->branches.items[k].kind != KYMO_CTF_BRANCH_ANCHOR)
				thread->branches.items[n++] = thread->branches.items[k];
		thread->branches.n = n;
		thread->n_anchors = 0;
	}
}

struct kymo_error *kymo_report_branches_diff(const char *a, const char *b, const struct kymo_branches_view *options,
					     FILE *out, bool *differ_ret)
{
	kymo_cleanup(kymo_history_close) struct history first = { 0 }, second = { 0 };
	const struct branch_view view = view_of(options, out);
	struct kymo_error *error = kymo_history_open(&first, a, history_text_of(options));
	bool differ = false;

	if (!error)
		error = kymo_history_open(&second, b, history_text_of(options));
	forget_anchors(&first);
	forget_anchors(&second);
	if (!error)
		error = diff(&view, &first, &second, (const char *const[]){ a, b }, &differ);
	if (!error)
		error = kymo_page_flush(out);
	if (!error)
		*differ_ret = differ;
	return error;
}
