#include "record/branch_writer.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/vec.h"
#include "branch/branch.h"
#include "probe/code/events.h"
#include "record/recording.h"
#include "trace/clock.h"
#include "trace/kernel_stream.h"

#define RECORD_MAX 4096u /* bytes */
#define TEXT_MAX 1200u   /* bytes of a name in a record */

enum { CODE = 1, THREAD, BRANCH }; /* ids of the events */

/* A location: where it is in `codes` gives its number. */
struct branch_location {
	uint64_t address;
	uint32_t space;
};

/* A branch in the order of all threads. */
struct item {
	const struct kymo_branch *branch;
	pid_t tid;
	uint32_t number; /* of the thread */
	size_t order;    /* in it */
};

struct writer {
	struct recording *recording;
	struct kymo_branches *branches;
	struct kymo_kernel_stream *stream;
	KYMO_VEC(struct branch_location) codes;
	struct kymo_index index;
	KYMO_VEC(struct item) items;
	uint8_t record[RECORD_MAX];
	size_t size;
};

/* ---- the schema ------------------------------------------------------------------------------ */

struct field {
	const char *name;
	enum kymo_type type;
};

static struct kymo_error *describe_event(struct kymo_events *events, enum kymo_event_kind kind, char *name,
					 const struct field *fields, size_t n)
{
	struct kymo_probe_event event = {
		.kind = kind,
		.name = name,
		.path = (char[]){ "" },
		.build_id = (char[]){ "" },
		.symbol = (char[]){ "" },
		.n_fields = n,
		.is_used = true,
	};
	size_t index;

	for (size_t i = 0; i < n; i++)
		event.fields[i] =
			(struct kymo_event_field){ .name = (char *)(uintptr_t)fields[i].name, .type = fields[i].type };
	return kymo_events_add(events, &event, &index);
}

struct kymo_error *branch_writer_describe(struct kymo_events *events)
{
	static const struct field code[KYMO_CTF_BRANCH_CODE_FIELDS] = {
		[KYMO_CTF_BRANCH_CODE_ID] = { "id", KYMO_TYPE_U32 },
		[KYMO_CTF_BRANCH_CODE_ADDRESS] = { "address", KYMO_TYPE_X64 },
		[KYMO_CTF_BRANCH_CODE_FILE] = { "file", KYMO_TYPE_STRING },
		[KYMO_CTF_BRANCH_CODE_FUNCTION] = { "function", KYMO_TYPE_STRING },
		[KYMO_CTF_BRANCH_CODE_OFFSET] = { "offset", KYMO_TYPE_U64 },
		[KYMO_CTF_BRANCH_CODE_LINKED] = { "linked", KYMO_TYPE_X64 },
		[KYMO_CTF_BRANCH_CODE_SOURCE] = { "source", KYMO_TYPE_STRING },
	};
	static const struct field thread[KYMO_CTF_BRANCH_THREAD_FIELDS] = {
		[KYMO_CTF_BRANCH_THREAD_PID] = { "pid", KYMO_TYPE_S32 },
		[KYMO_CTF_BRANCH_THREAD_NAME] = { "name", KYMO_TYPE_STRING },
		[KYMO_CTF_BRANCH_THREAD_TAKEN] = { "taken", KYMO_TYPE_U64 },
		[KYMO_CTF_BRANCH_THREAD_KEPT] = { "kept", KYMO_TYPE_U64 },
		[KYMO_CTF_BRANCH_THREAD_STATUS] = { "status", KYMO_TYPE_S32 },
		[KYMO_CTF_BRANCH_THREAD_SIGNAL] = { "signal", KYMO_TYPE_U32 },
		[KYMO_CTF_BRANCH_THREAD_AT] = { "at", KYMO_TYPE_U32 },
		[KYMO_CTF_BRANCH_THREAD_ADDRESS] = { "address", KYMO_TYPE_X64 },
	};
	static const struct field branch[KYMO_CTF_BRANCH_FIELDS] = {
		[KYMO_CTF_BRANCH_FROM] = { "from", KYMO_TYPE_U32 },
		[KYMO_CTF_BRANCH_TO] = { "to", KYMO_TYPE_U32 },
		[KYMO_CTF_BRANCH_KIND] = { "kind", KYMO_TYPE_U8 },
		[KYMO_CTF_BRANCH_OF] = { "thread", KYMO_TYPE_U32 },
	};
	struct kymo_error *error;

	error = describe_event(events, KYMO_EVENT_BRANCH_CODE, (char[]){ "kymo:branch_code" }, code,
			       kymo_countof(code));
	if (!error)
		error = describe_event(events, KYMO_EVENT_BRANCH_THREAD, (char[]){ "kymo:branch_thread" }, thread,
				       kymo_countof(thread));
	if (!error)
		error = describe_event(events, KYMO_EVENT_BRANCH, (char[]){ "kymo:branch" }, branch,
				       kymo_countof(branch));
	return error;
}

/* ---- records --------------------------------------------------------------------------------- */

static void put_bytes(struct writer *writer, const void *bytes, size_t size)
{
	memcpy(writer->record + writer->size, bytes, size);
	writer->size += size;
}

static void put_u32(struct writer *writer, uint32_t value)
{
	put_bytes(writer, &value, sizeof(value));
}

static void put_u64(struct writer *writer, uint64_t value)
{
	put_bytes(writer, &value, sizeof(value));
}

static void put_text(struct writer *writer, const char *text)
{
	const size_t size = strlen(text);

	put_bytes(writer, text, size < TEXT_MAX ? size : TEXT_MAX);
	put_bytes(writer, "", 1);
}

static void begin_record(struct writer *writer, uint64_t event, int32_t tid)
{
	writer->size = 0;
	put_u64(writer, event);
	put_bytes(writer, &tid, sizeof(tid));
}

static struct kymo_error *end_record(struct writer *writer, uint64_t stamp)
{
	return kymo_kernel_stream_add(writer->stream, &writer->recording->output.files, writer->record, writer->size,
				      stamp, 0);
}

/* ---- locations ------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct branch_location *code)
{
	return kymo_hash_pair((uint32_t)code->address, (uint32_t)(code->address >> 32) ^ code->space << 16);
}

static bool is_same(const struct branch_location *a, const struct branch_location *b)
{
	return a->address == b->address && a->space == b->space;
}

/* The number of a location; 0: memory is out. */
static uint32_t number_of(struct writer *writer, uint32_t space, uint64_t address)
{
	const struct branch_location code = { address, space };
	uint32_t number =
		kymo_index_find(&writer->index, hash_of(&code), i, is_same(&writer->codes.items[i - 1], &code));

	if (number)
		return number;
	if (!kymo_index_reserve(&writer->index, writer->codes.n, i, hash_of(&writer->codes.items[i - 1])) ||
	    !kymo_vec_push(&writer->codes, code))
		return 0;
	kymo_index_put(&writer->index, hash_of(&code), writer->codes.n);
	return (uint32_t)writer->codes.n;
}

static bool has_source(const struct kymo_branch *branch)
{
	return branch->kind != KYMO_BRANCH_EXEC && branch->kind != KYMO_BRANCH_ENTER &&
	       branch->kind != KYMO_BRANCH_ANCHOR;
}

static bool has_target(const struct kymo_branch *branch)
{
	return branch->kind != KYMO_BRANCH_ANCHOR;
}

/* 0: it has none. */
static uint32_t number_of_destination(struct writer *writer, const struct kymo_branch *branch)
{
	return branch->to == KYMO_BRANCH_UNKNOWN ? 0 : number_of(writer, branch->space, branch->to);
}

static bool reserve_items(struct writer *writer, size_t n_threads)
{
	size_t n = 0;

	for (size_t i = 0; i < n_threads; i++) {
		struct kymo_branch_thread thread;

		kymo_branches_thread(writer->branches, i, &thread);
		n += thread.kept;
	}
	return kymo_vec_reserve(&writer->items, n);
}

static bool number_thread(struct writer *writer, size_t at)
{
	struct kymo_branch_thread thread;

	kymo_branches_thread(writer->branches, at, &thread);
	if (thread.signal && !number_of(writer, thread.at_space, thread.at))
		return false;
	for (size_t k = 0; k < thread.kept; k++) {
		const struct kymo_branch *branch = kymo_branches_at(writer->branches, at, k);

		if ((has_source(branch) && !number_of(writer, branch->space, branch->from)) ||
		    (has_target(branch) && branch->to != KYMO_BRANCH_UNKNOWN &&
		     !number_of_destination(writer, branch)) ||
		    !kymo_vec_push(&writer->items, (struct item){ branch, thread.tid, (uint32_t)at + 1, k }))
			return false;
	}
	return true;
}

static struct kymo_error *write_codes(struct writer *writer, uint64_t stamp)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < writer->codes.n && !error; i++) {
		const struct branch_location *code = &writer->codes.items[i];
		struct kymo_branch_location location;

		kymo_branches_locate(writer->branches, code->space, code->address, &location);
		begin_record(writer, CODE, 0);
		put_u32(writer, (uint32_t)i + 1);
		put_u64(writer, code->address);
		put_text(writer, location.file);
		put_text(writer, location.function);
		put_u64(writer, location.offset);
		put_u64(writer, location.linked);
		put_text(writer, location.source);
		error = end_record(writer, stamp);
	}
	return error;
}

/* ---- threads and branches -------------------------------------------------------------------- */

/* A child; what was launched or attached to is in the trace already. */
static struct kymo_error *add_process(struct writer *writer, const struct kymo_branch_thread *thread)
{
	if (thread->tid != thread->pid || thread->pid == writer->recording->run.pid)
		return NULL;
	return kymo_ctf_trace_add_process(&writer->recording->output.files.trace, thread->pid, 0, 0, thread->name);
}

static struct kymo_error *write_thread(struct writer *writer, size_t at, uint64_t stamp)
{
	struct kymo_branch_thread thread;
	struct kymo_error *error;
	int32_t status;

	kymo_branches_thread(writer->branches, at, &thread);
	status = thread.has_ended ? thread.status : -1;
	error = add_process(writer, &thread);
	if (!error)
		error = kymo_ctf_trace_add_thread(&writer->recording->output.files.trace, thread.tid, thread.pid, 0,
						  thread.name);
	begin_record(writer, THREAD, thread.tid);
	put_bytes(writer, &(int32_t){ thread.pid }, sizeof(int32_t));
	put_text(writer, thread.name);
	put_u64(writer, thread.is_overwritten ? KYMO_CTF_BRANCHES_OVERWRITTEN : thread.taken);
	put_u64(writer, thread.kept - thread.n_anchors);
	put_bytes(writer, &status, sizeof(status));
	put_u32(writer, (uint32_t)thread.signal);
	put_u32(writer, thread.signal ? number_of(writer, thread.at_space, thread.at) : 0);
	put_u64(writer, thread.address);
	return error ? error : end_record(writer, stamp);
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->branch->stamp != y->branch->stamp)
		return x->branch->stamp < y->branch->stamp ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static struct kymo_error *write_branches(struct writer *writer)
{
	struct kymo_error *error = NULL;

	if (writer->items.n)
		qsort(writer->items.items, writer->items.n, sizeof(writer->items.items[0]), compare_items);
	for (size_t i = 0; i < writer->items.n && !error; i++) {
		const struct kymo_branch *branch = writer->items.items[i].branch;

		begin_record(writer, BRANCH, writer->items.items[i].tid);
		put_u32(writer, has_source(branch) ? number_of(writer, branch->space, branch->from) : 0);
		put_u32(writer, has_target(branch) ? number_of_destination(writer, branch) : 0);
		put_bytes(writer, &branch->kind, sizeof(branch->kind));
		put_u32(writer, writer->items.items[i].number);
		error = end_record(writer, branch->stamp);
	}
	return error;
}

static struct kymo_error *write_all(struct writer *writer)
{
	const size_t n = kymo_branches_threads(writer->branches);
	const uint64_t begin = writer->recording->output.begin.tsc;
	struct kymo_trace *output = &writer->recording->output.files;
	const uint64_t before = output->events;
	struct kymo_error *error;

	_Static_assert((int)KYMO_BRANCH_KINDS == (int)KYMO_CTF_BRANCH_KINDS, "kinds are those of the trace");
	if (!reserve_items(writer, n))
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++)
		if (!number_thread(writer, i))
			return &kymo_error_no_memory;
	error = write_codes(writer, begin);
	for (size_t i = 0; i < n && !error; i++)
		error = write_thread(writer, i, begin);
	if (!error)
		error = kymo_kernel_stream_flush(writer->stream, output);
	output->events = before; /* those were none */
	if (!error)
		error = write_branches(writer);
	return error ? error : kymo_kernel_stream_finish(writer->stream, output, kymo_clock_tsc(), 0);
}

struct kymo_error *branch_writer_write(struct recording *recording, struct kymo_branches *branches)
{
	struct writer writer = { .recording = recording, .branches = branches };
	struct kymo_error *error = kymo_kernel_stream_create("branches", 0, KYMO_CTF_NO_CPU, 0, NULL, &writer.stream);

	if (!error)
		error = write_all(&writer);
	kymo_kernel_stream_destroy(writer.stream);
	kymo_vec_deinit(&writer.codes);
	kymo_vec_deinit(&writer.items);
	kymo_index_deinit(&writer.index);
	return error;
}
