#include "ctf/tables.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "ctf/trace.h"

#define THREAD "thread_"
#define PROCESS "process_"

/* ---- keys ------------------------------------------------------------------------------------ */

void kymo_ctf_thread_key(const struct kymo_ctf_trace *trace, const struct kymo_ctf_thread *thread, char key[TABLE_KEY])
{
	bool is_only = trace->n_processes == 1 && trace->processes[0].pid == thread->pid;

	if (thread->begin)
		snprintf(key, TABLE_KEY, THREAD "%" PRId32 "_%" PRId32 "_%" PRIu64, thread->tid, thread->pid,
			 thread->begin);
	else if (thread->pid && !is_only)
		snprintf(key, TABLE_KEY, THREAD "%" PRId32 "_%" PRId32, thread->tid, thread->pid);
	else
		snprintf(key, TABLE_KEY, THREAD "%" PRId32, thread->tid);
}

void kymo_ctf_process_key(const struct kymo_ctf_process *process, char key[TABLE_KEY])
{
	snprintf(key, TABLE_KEY, PROCESS "%" PRId32 "_%" PRId32 "_%" PRIu64 "_%" PRIu64, process->pid, process->parent,
		 process->begin, process->end);
}

/* Numbers joined by "_", as the writer has them: without a sign, without zeros in front. Returns how many, at most
 * `size`, or 0. */
static size_t parse_numbers(const char *text, uint64_t *numbers, size_t size)
{
	for (size_t n = 0; n < size; n++) {
		char *end;

		if (*text < '0' || *text > '9' || (*text == '0' && text[1] >= '0' && text[1] <= '9'))
			return 0;
		errno = 0;
		numbers[n] = strtoull(text, &end, 10);
		if (errno || (n < 2 && numbers[n] > INT32_MAX))
			return 0;
		if (!*end)
			return n + 1;
		if (*end != '_')
			return 0;
		text = end + 1;
	}
	return 0;
}

static bool parse_thread(const char *key, struct kymo_ctf_thread *ret)
{
	uint64_t numbers[3] = { 0 };

	if (strncmp(key, THREAD, strlen(THREAD)) || !parse_numbers(key + strlen(THREAD), numbers, 3))
		return false;
	*ret = (struct kymo_ctf_thread){ .tid = (int32_t)numbers[0], .pid = (int32_t)numbers[1], .begin = numbers[2] };
	return true;
}

static bool parse_process(const char *key, struct kymo_ctf_process *ret)
{
	uint64_t numbers[4];

	if (strncmp(key, PROCESS, strlen(PROCESS)) || parse_numbers(key + strlen(PROCESS), numbers, 4) != 4)
		return false;
	*ret = (struct kymo_ctf_process){
		.pid = (int32_t)numbers[0],
		.parent = (int32_t)numbers[1],
		.begin = numbers[2],
		.end = numbers[3],
	};
	return true;
}

bool kymo_ctf_is_table_key(const char *key)
{
	struct kymo_ctf_thread thread;
	struct kymo_ctf_process process;

	return parse_thread(key, &thread) || parse_process(key, &process);
}

/* ---- order ----------------------------------------------------------------------------------- */

/* What entries of both tables begin with. */
struct key {
	int32_t id, other;
	uint64_t begin;
};

_Static_assert(offsetof(struct kymo_ctf_thread, tid) == offsetof(struct key, id) &&
		       offsetof(struct kymo_ctf_thread, begin) == offsetof(struct key, begin),
	       "threads have the key");
_Static_assert(offsetof(struct kymo_ctf_process, pid) == offsetof(struct key, id) &&
		       offsetof(struct kymo_ctf_process, begin) == offsetof(struct key, begin),
	       "processes have the key");

static int compare_keys(const void *a, const void *b)
{
	struct key x, y;

	memcpy(&x, a, sizeof(x));
	memcpy(&y, b, sizeof(y));
	if (x.id != y.id)
		return x.id < y.id ? -1 : 1;
	return x.begin < y.begin ? -1 : x.begin > y.begin;
}

/* The place of the first of `n` entries of `size` bytes that is not before (id, begin). */
static size_t entry_index(const void *items, size_t n, size_t size, int32_t id, uint64_t begin)
{
	const struct key wanted = { .id = id, .begin = begin };

	return kymo_partition_point(i, n, compare_keys((const char *)items + i * size, &wanted) < 0);
}

static size_t thread_place(const struct kymo_ctf_trace *trace, int32_t tid, uint64_t begin)
{
	return entry_index(trace->threads, trace->n_threads, sizeof(*trace->threads), tid, begin);
}

static size_t process_place(const struct kymo_ctf_trace *trace, int32_t pid, uint64_t begin)
{
	return entry_index(trace->processes, trace->n_processes, sizeof(*trace->processes), pid, begin);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Room for one more of `n` items of `size` bytes; the struct has no capacity: it doubles at each power of two. */
static bool grow_table(void **items, size_t n, size_t size)
{
	void *grown = *items;

	if (!(n & (n - 1)))
		grown = reallocarray(*items, n ? n * 2 : 1, size);
	if (grown)
		*items = grown;
	return grown;
}

struct kymo_error *kymo_ctf_trace_add_thread(struct kymo_ctf_trace *trace, int32_t tid, int32_t pid, uint64_t begin,
					     const char *comm)
{
	size_t at = thread_place(trace, tid, begin);
	struct kymo_ctf_thread *thread;
	kymo_cleanup_free char *copy = NULL;

	if (tid < 0 || pid < 0)
		return kymo_error_create(KYMO_ERROR_FAILED, "no thread has the id %" PRId32 " in process %" PRId32, tid,
					 pid);
	if (at < trace->n_threads && trace->threads[at].tid == tid && trace->threads[at].begin == begin) {
		thread = &trace->threads[at];
		thread->pid = pid;
		/* A look at all names, most of which are what they were. */
		if (!strcmp(thread->comm, comm))
			return NULL;
		copy = strdup(comm);
		if (!copy)
			return &kymo_error_no_memory;
		free(thread->comm);
		thread->comm = kymo_take(copy);
		return NULL;
	}
	copy = strdup(comm);
	if (!copy || !grow_table((void **)&trace->threads, trace->n_threads, sizeof(*trace->threads)))
		return &kymo_error_no_memory;
	thread = &trace->threads[at];
	memmove(thread + 1, thread, (trace->n_threads - at) * sizeof(*thread));
	*thread = (struct kymo_ctf_thread){ .tid = tid, .pid = pid, .begin = begin, .comm = kymo_take(copy) };
	trace->n_threads++;
	return NULL;
}

struct kymo_error *kymo_ctf_trace_add_process(struct kymo_ctf_trace *trace, int32_t pid, int32_t parent, uint64_t begin,
					      const char *command)
{
	size_t at = process_place(trace, pid, begin);
	struct kymo_ctf_process *process;
	kymo_cleanup_free char *copy = NULL;

	if (pid < 0 || parent < 0)
		return kymo_error_create(KYMO_ERROR_FAILED, "no process has the id %" PRId32 " and the parent %" PRId32,
					 pid, parent);
	copy = strdup(command);
	if (!copy)
		return &kymo_error_no_memory;
	if (at < trace->n_processes && trace->processes[at].pid == pid && trace->processes[at].begin == begin) {
		process = &trace->processes[at];
		process->parent = parent;
		free(process->command);
		process->command = kymo_take(copy);
		return NULL;
	}
	if (!grow_table((void **)&trace->processes, trace->n_processes, sizeof(*trace->processes)))
		return &kymo_error_no_memory;
	process = &trace->processes[at];
	memmove(process + 1, process, (trace->n_processes - at) * sizeof(*process));
	*process = (struct kymo_ctf_process){
		.pid = pid,
		.parent = parent,
		.begin = begin,
		.command = kymo_take(copy),
	};
	trace->n_processes++;
	return NULL;
}

void kymo_ctf_trace_end_process(struct kymo_ctf_trace *trace, int32_t pid, uint64_t end)
{
	size_t behind = process_place(trace, pid, 0) + kymo_ctf_trace_n_processes_of(trace, pid);

	if (behind && trace->processes[behind - 1].pid == pid)
		trace->processes[behind - 1].end = end;
}

void kymo_ctf_trace_drop_process(struct kymo_ctf_trace *trace, int32_t pid)
{
	size_t behind = process_place(trace, pid, 0) + kymo_ctf_trace_n_processes_of(trace, pid);

	if (!behind || trace->processes[behind - 1].pid != pid)
		return;
	free(trace->processes[behind - 1].command);
	memmove(&trace->processes[behind - 1], &trace->processes[behind],
		(trace->n_processes - behind) * sizeof(*trace->processes));
	trace->n_processes--;
}

/* ---- from the metadata ----------------------------------------------------------------------- */

static void drop_equal_threads(struct kymo_ctf_trace *trace)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->n_threads; i++) {
		if (n && !compare_keys(&trace->threads[n - 1], &trace->threads[i]))
			free(trace->threads[i].comm);
		else
			trace->threads[n++] = trace->threads[i];
	}
	trace->n_threads = n;
}

static void drop_equal_processes(struct kymo_ctf_trace *trace)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->n_processes; i++) {
		if (n && !compare_keys(&trace->processes[n - 1], &trace->processes[i]))
			free(trace->processes[i].command);
		else
			trace->processes[n++] = trace->processes[i];
	}
	trace->n_processes = n;
}

/* Move one key into a table; without a key it stays. */
static bool take_key(struct kymo_ctf_trace *trace, struct kymo_ctf_env *env)
{
	struct kymo_ctf_thread thread;
	struct kymo_ctf_process process;

	if (parse_thread(env->key, &thread)) {
		if (!grow_table((void **)&trace->threads, trace->n_threads, sizeof(thread)))
			return false;
		thread.comm = kymo_take(env->value);
		trace->threads[trace->n_threads++] = thread;
	} else if (parse_process(env->key, &process)) {
		if (!grow_table((void **)&trace->processes, trace->n_processes, sizeof(process)))
			return false;
		process.command = kymo_take(env->value);
		trace->processes[trace->n_processes++] = process;
	}
	return true;
}

bool kymo_ctf_tables_take(struct kymo_ctf_trace *trace, struct kymo_ctf_env *env, size_t *n)
{
	size_t kept = 0, at = 0;

	for (; at < *n && take_key(trace, &env[at]); at++) {
		if (env[at].value)
			env[kept++] = env[at];
		else
			free(env[at].key);
	}
	if (at < *n) {
		memmove(env + kept, env + at, (*n - at) * sizeof(*env));
		*n -= at - kept;
		return false;
	}
	*n = kept;
	if (trace->n_threads)
		qsort(trace->threads, trace->n_threads, sizeof(*trace->threads), compare_keys);
	if (trace->n_processes)
		qsort(trace->processes, trace->n_processes, sizeof(*trace->processes), compare_keys);
	drop_equal_threads(trace);
	drop_equal_processes(trace);
	for (size_t i = 0; i < trace->n_threads && trace->n_processes == 1; i++)
		if (!trace->threads[i].pid)
			trace->threads[i].pid = trace->processes[0].pid;
	return true;
}

void kymo_ctf_tables_deinit(struct kymo_ctf_trace *trace)
{
	for (size_t i = 0; i < trace->n_threads; i++)
		free(trace->threads[i].comm);
	free(trace->threads);
	for (size_t i = 0; i < trace->n_processes; i++)
		free(trace->processes[i].command);
	free(trace->processes);
}

/* ---- looking up ------------------------------------------------------------------------------ */

const struct kymo_ctf_thread *kymo_ctf_trace_thread(const struct kymo_ctf_trace *trace, int32_t tid, uint64_t tsc)
{
	size_t at = thread_place(trace, tid, tsc);

	if (at < trace->n_threads && trace->threads[at].tid == tid && trace->threads[at].begin == tsc)
		return &trace->threads[at];
	if (at && trace->threads[at - 1].tid == tid)
		return &trace->threads[at - 1];
	return at < trace->n_threads && trace->threads[at].tid == tid ? &trace->threads[at] : NULL;
}

const struct kymo_ctf_process *kymo_ctf_trace_process(const struct kymo_ctf_trace *trace, int32_t pid, uint64_t tsc)
{
	size_t at = process_place(trace, pid, tsc);
	const struct kymo_ctf_process *next =
		at < trace->n_processes && trace->processes[at].pid == pid ? &trace->processes[at] : NULL;
	const struct kymo_ctf_process *before =
		at && trace->processes[at - 1].pid == pid ? &trace->processes[at - 1] : NULL;

	if (!before || (next && next->begin == tsc))
		return next;
	/* It had ended by then, so the next one's beginning was noticed late. */
	return next && before->end && before->end < tsc ? next : before;
}

const struct kymo_ctf_process *kymo_ctf_trace_process_of(const struct kymo_ctf_trace *trace, int32_t tid, uint64_t tsc)
{
	const struct kymo_ctf_thread *thread = kymo_ctf_trace_thread(trace, tid, tsc);
	int32_t pid = thread && thread->pid ? thread->pid : tid;
	const struct kymo_ctf_process *process = kymo_ctf_trace_process(trace, pid, tsc);

	if (!process && trace->n_processes == 1)
		return &trace->processes[0];
	return process;
}

size_t kymo_ctf_trace_n_threads_of(const struct kymo_ctf_trace *trace, int32_t tid)
{
	size_t end = thread_place(trace, tid, UINT64_MAX);

	if (end < trace->n_threads && trace->threads[end].tid == tid)
		end++;
	return end - thread_place(trace, tid, 0);
}

size_t kymo_ctf_trace_n_processes_of(const struct kymo_ctf_trace *trace, int32_t pid)
{
	size_t end = process_place(trace, pid, UINT64_MAX);

	if (end < trace->n_processes && trace->processes[end].pid == pid)
		end++;
	return end - process_place(trace, pid, 0);
}

size_t kymo_ctf_trace_n_pids(const struct kymo_ctf_trace *trace)
{
	size_t n = 0;

	for (size_t i = 0; i < trace->n_processes; i++)
		n += !i || trace->processes[i - 1].pid != trace->processes[i].pid;
	return n;
}
