#include "report/history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/text.h"
#include "sym/demangle.h"

#define THREADS_MAX (1u << 20)

static const char *const kinds[KYMO_CTF_BRANCH_KINDS] = {
	[KYMO_CTF_BRANCH_JUMP] = "jump",     [KYMO_CTF_BRANCH_CALL] = "call",     [KYMO_CTF_BRANCH_RETURN] = "return",
	[KYMO_CTF_BRANCH_SIGNAL] = "signal", [KYMO_CTF_BRANCH_KERNEL] = "kernel", [KYMO_CTF_BRANCH_EXEC] = "exec",
	[KYMO_CTF_BRANCH_ENTER] = "enter",
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

	if (!thread || thread->tid != record->tid || thread->branches.n >= thread->kept ||
	    branch.from > history->codes.n || !branch.to || branch.to > history->codes.n ||
	    branch.kind >= KYMO_CTF_BRANCH_KINDS) {
		history->n_senseless++;
		return NULL;
	}
	return kymo_vec_push(&thread->branches, branch) ? NULL : &kymo_error_no_memory;
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
	kymo_vec_deinit(&history->codes);
	kymo_vec_deinit(&history->threads);
	kymo_ctf_close(history->reader);
}
