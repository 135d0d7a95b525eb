#include "report/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "report/text.h"
#include "sym/demangle.h"

#define THREADS_MAX (1u << 20)

static const char *const kinds[KYMO_CTF_BRANCH_KINDS] = {
	[KYMO_CTF_BRANCH_JUMP] = "jump",     [KYMO_CTF_BRANCH_CALL] = "call",     [KYMO_CTF_BRANCH_RETURN] = "return",
	[KYMO_CTF_BRANCH_SIGNAL] = "signal", [KYMO_CTF_BRANCH_KERNEL] = "kernel", [KYMO_CTF_BRANCH_EXEC] = "exec",
	[KYMO_CTF_BRANCH_ENTER] = "enter",   [KYMO_CTF_BRANCH_ANCHOR] = "event",
};

const char *kymo_history_kind(uint8_t kind)
{
	return kind < KYMO_CTF_BRANCH_KINDS ? kinds[kind] : "?";
}

/* ---- locations ------------------------------------------------------------------------------- */

/* NULL when memory is out. */
static char *as_wanted(const char *string, enum history_text text)
{
	return text == HISTORY_TEXT_RAW ? strdup(string) : kymo_text_escape(string, text == HISTORY_TEXT_UNICODE);
}

static char *string_of(const struct kymo_ctf_record *record, uint32_t field, enum history_text text)
{
	return as_wanted(kymo_ctf_string(record, field), text);
}

static char *code_name(const struct kymo_ctf_record *record, uint32_t field, enum history_text text)
{
	kymo_cleanup_free char *shown = kymo_shown(kymo_ctf_string(record, field));

	return shown ? as_wanted(shown, text) : NULL;
}

static char *code_text(const struct history_code *code)
{
	const char *base = strrchr(code->file, '/');
	char *text = NULL;
	int size;

	base = base && base[1] ? base + 1 : code->file;
	if (!*code->file)
		size = asprintf(&text, "0x%" PRIx64, code->address);
	else if (!*code->function)
		size = asprintf(&text, "%s+0x%" PRIx64, base, code->linked);
	else if (!code->offset)
		size = asprintf(&text, "%s:%s", base, code->function);
	else
		size = asprintf(&text, "%s:%s+0x%" PRIx64, base, code->function, code->offset);
	return size < 0 ? NULL : text;
}

static void code_deinit(struct history_code *code)
{
	free(code->file);
	free(code->function);
	free(code->source);
	free(code->text);
}

static struct kymo_error *take_code(struct history *history, const struct kymo_ctf_record *record,
				    enum history_text text)
{
	struct history_code code = {
		.address = record->values[KYMO_CTF_BRANCH_CODE_ADDRESS],
		.linked = record->values[KYMO_CTF_BRANCH_CODE_LINKED],
		.offset = record->values[KYMO_CTF_BRANCH_CODE_OFFSET],
	};

	if (record->values[KYMO_CTF_BRANCH_CODE_ID] != history->codes.n + 1) {
		history->n_senseless++;
		return NULL;
	}
	code.file = string_of(record, KYMO_CTF_BRANCH_CODE_FILE, text);
	code.function = code_name(record, KYMO_CTF_BRANCH_CODE_FUNCTION, text);
	code.source = string_of(record, KYMO_CTF_BRANCH_CODE_SOURCE, text);
	if (code.file && code.function && code.source)
		code.text = code_text(&code);
	if (code.text && kymo_vec_push(&history->codes, code))
		return NULL;
	code_deinit(&code);
	return &kymo_error_no_memory;
}

/* ---- threads --------------------------------------------------------------------------------- */

static struct kymo_error *take_thread(struct history *history, const struct kymo_ctf_record *record,
				      enum history_text text)
{
	struct history_thread thread = {
		.tid = record->tid,
		.pid = (int32_t)record->values[KYMO_CTF_BRANCH_THREAD_PID],
		.taken = record->values[KYMO_CTF_BRANCH_THREAD_TAKEN],
		.kept = record->values[KYMO_CTF_BRANCH_THREAD_KEPT],
		.status = (int32_t)record->values[KYMO_CTF_BRANCH_THREAD_STATUS],
		.signal = (uint32_t)record->values[KYMO_CTF_BRANCH_THREAD_SIGNAL],
		.at = (uint32_t)record->values[KYMO_CTF_BRANCH_THREAD_AT],
		.address = record->values[KYMO_CTF_BRANCH_THREAD_ADDRESS],
		.is_overwritten = record->values[KYMO_CTF_BRANCH_THREAD_TAKEN] == KYMO_CTF_BRANCHES_OVERWRITTEN,
	};

	if (history->threads.n >= THREADS_MAX) {
		history->n_senseless++;
		return NULL;
	}
	if (thread.at > history->codes.n) {
		history->n_senseless++;
		thread.at = 0;
	}
	thread.name = string_of(record, KYMO_CTF_BRANCH_THREAD_NAME, text);
	if (thread.name && kymo_vec_push(&history->threads, thread))
		return NULL;
	free(thread.name);
	return &kymo_error_no_memory;
}

static struct kymo_error *take_branch(struct history *history, const struct kymo_ctf_record *record)
{
	const struct history_branch branch = {
		.from = (uint32_t)record->values[KYMO_CTF_BRANCH_FROM],
		.to = (uint32_t)record->values[KYMO_CTF_BRANCH_TO],
		.kind = (uint8_t)record->values[KYMO_CTF_BRANCH_KIND],
		.tsc = record->tsc,
	};
	const uint64_t number = record->values[KYMO_CTF_BRANCH_OF];
	struct history_thread *thread =
		number && number <= history->threads.n ? &history->threads.items[number - 1] : NULL;

	const bool is_anchor = branch.kind == KYMO_CTF_BRANCH_ANCHOR;

	if (!thread || thread->tid != record->tid ||
	    (!is_anchor && thread->branches.n - thread->n_anchors >= thread->kept) || branch.from > history->codes.n ||
	    (is_anchor ? branch.to != 0 : !(branch.from || branch.to)) || branch.to > history->codes.n ||
	    branch.kind >= KYMO_CTF_BRANCH_KINDS) {
		history->n_senseless++;
		return NULL;
	}
	thread->n_anchors += is_anchor;
	history->has_anchors |= is_anchor;
	return kymo_vec_push(&thread->branches, branch) ? NULL : &kymo_error_no_memory;
}

/* ---- anchors --------------------------------------------------------------------------------- */

/* The first of a thread's items that is not before `tsc`. */
static size_t first_at(const struct history_thread *thread, uint64_t tsc)
{
	return kymo_partition_point(i, thread->branches.n, thread->branches.items[i].tsc < tsc);
}

static void name_anchor(const struct history *history, struct history_thread *thread,
			const struct kymo_ctf_record *record)
{
	for (size_t k = first_at(thread, record->tsc);
	     k < thread->branches.n && thread->branches.items[k].tsc == record->tsc; k++)
		if (thread->branches.items[k].kind == KYMO_CTF_BRANCH_ANCHOR)
			thread->branches.items[k].event = (uint32_t)(record->event - history->trace->events) + 1;
}

static int by_tid(const void *a, const void *b)
{
	const struct history_thread *x = *(struct history_thread *const *)a, *y = *(struct history_thread *const *)b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* All threads, sorted by their ids, which may come again. A fresh array, or NULL. */
static struct history_thread **sort_threads(struct history *history)
{
	struct history_thread **sorted = calloc(history->threads.n + 1, sizeof(struct history_thread *));

	for (size_t i = 0; i < history->threads.n && sorted; i++)
		sorted[i] = &history->threads.items[i];
	if (sorted)
		qsort(sorted, history->threads.n, sizeof(struct history_thread *), by_tid);
	return sorted;
}

static struct kymo_error *take_names(struct history *history, enum history_text text)
{
	for (size_t i = 0; i < history->trace->n_events; i++) {
		char *name = as_wanted(history->trace->events[i].name, text);

		if (!name || !kymo_vec_push(&history->events, name)) {
			free(name);
			return &kymo_error_no_memory;
		}
	}
	return NULL;
}

/* The trace is read once more: the anchors are known now, and few of its other records have one. */
static struct kymo_error *name_anchors(struct history *history, const char *dir, enum history_text text)
{
	kymo_cleanup_free struct history_thread **threads = sort_threads(history);
	const size_t n = history->threads.n;
	struct kymo_ctf_record record;
	struct kymo_error *error;

	if (!threads)
		return &kymo_error_no_memory;
	kymo_ctf_close(history->reader);
	history->reader = NULL;
	error = kymo_ctf_open(dir, &history->reader);
	if (error)
		return error;
	history->trace = kymo_ctf_reader_trace(history->reader);
	while (!error && kymo_ctf_next(history->reader, &record, &error)) {
		if (kymo_ctf_is_of_branches(record.event) || record.event->kind == KYMO_CTF_FRAME ||
		    record.event->kind == KYMO_CTF_SOURCE)
			continue;
		history->first = history->first ? history->first : record.tsc;
		for (size_t i = kymo_partition_point(k, n, threads[k]->tid < record.tid);
		     i < n && threads[i]->tid == record.tid; i++)
			name_anchor(history, threads[i], &record);
	}
	return error ? error : take_names(history, text);
}

/* ---- the trace ------------------------------------------------------------------------------- */

/* Whether its fields are those that its kind has. */
static bool has_expected_fields(const struct kymo_ctf_event *event)
{
	static const struct {
		enum kymo_ctf_kind kind;
		uint32_t n;
		uint32_t texts; /* a bit for each field that is a string */
	} schemas[] = {
		{ KYMO_CTF_BRANCH, KYMO_CTF_BRANCH_FIELDS, 0 },
		{ KYMO_CTF_BRANCH_CODE, KYMO_CTF_BRANCH_CODE_FIELDS,
		  1u << KYMO_CTF_BRANCH_CODE_FILE | 1u << KYMO_CTF_BRANCH_CODE_FUNCTION |
			  1u << KYMO_CTF_BRANCH_CODE_SOURCE },
		{ KYMO_CTF_BRANCH_THREAD, KYMO_CTF_BRANCH_THREAD_FIELDS, 1u << KYMO_CTF_BRANCH_THREAD_NAME },
	};
	bool is = false;

	for (size_t i = 0; i < kymo_countof(schemas); i++) {
		if (schemas[i].kind != event->kind)
			continue;
		is = event->n_fields == schemas[i].n;
		for (uint32_t k = 0; is && k < event->n_fields; k++)
			is = schemas[i].texts >> k & 1 ? event->fields[k].type == KYMO_TYPE_STRING
						       : kymo_type_is_integer(event->fields[k].type);
	}
	return is;
}

static struct kymo_error *take_record(struct history *history, const struct kymo_ctf_record *record,
				      enum history_text text)
{
	if (!kymo_ctf_is_of_branches(record->event))
		return NULL;
	if (!has_expected_fields(record->event)) {
		history->n_senseless++;
		return NULL;
	}
	switch (record->event->kind) {
	case KYMO_CTF_BRANCH_CODE:
		return take_code(history, record, text);
	case KYMO_CTF_BRANCH_THREAD:
		return take_thread(history, record, text);
	default:
		return take_branch(history, record);
	}
}

static struct kymo_error *check_history(const struct history *history, const char *dir)
{
	const char *state = kymo_ctf_trace_env(history->trace, KYMO_ENV_STATE);

	if (!kymo_ctf_trace_env(history->trace, KYMO_ENV_BRANCHES))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "%s has no branches: record some with 'kymo record -b all -- COMMAND'", dir);
	if (!history->threads.n && state && !strcmp(state, KYMO_STATE_RECORDING))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "%s has no branches yet: they are written when the recording ends, and it "
					 "goes on, or was killed",
					 dir);
	return NULL;
}

struct kymo_error *kymo_history_open(struct history *history, const char *dir, enum history_text text)
{
	struct kymo_ctf_record record;
	struct kymo_error *error = kymo_ctf_open(dir, &history->reader);

	if (error)
		return error;
	history->trace = kymo_ctf_reader_trace(history->reader);
	while (!error && kymo_ctf_next(history->reader, &record, &error))
		error = take_record(history, &record, text);
	if (!error && history->has_anchors)
		error = name_anchors(history, dir, text);
	return error ? error : check_history(history, dir);
}

void kymo_history_close(struct history *history)
{
	for (size_t i = 0; i < history->codes.n; i++)
		code_deinit(&history->codes.items[i]);
	for (size_t i = 0; i < history->threads.n; i++) {
		free(history->threads.items[i].name);
		kymo_vec_deinit(&history->threads.items[i].branches);
	}
	for (size_t i = 0; i < history->events.n; i++)
		free(history->events.items[i]);
	kymo_vec_deinit(&history->events);
	kymo_vec_deinit(&history->codes);
	kymo_vec_deinit(&history->threads);
	kymo_ctf_close(history->reader);
}
