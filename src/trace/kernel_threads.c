/* Which threads records come from: the trace's tables of threads and processes, from samples and /proc. */
#include "trace/kernel_threads.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/index.h"
#include "base/io.h"
#include "base/vec.h"
#include "ctf/ctf.h"
#include "trace/command.h"

#define NAME_SIZE 16

struct seen {
	int32_t tid, pid; /* pid 0: no thread's, at the moment */
	bool is_known;    /* to the trace */
	uint64_t call;    /* the number of the system call that it is in, plus 1; or 0 */
	uint64_t ended; /* when it did: earlier records are still its own, as probes and calls have rings of their own;
			   or 0 */
	char name[NAME_SIZE];
};

struct kymo_kernel_threads {
	KYMO_VEC(struct seen) items;
	struct kymo_index index; /* of `items`, by tid */
};

struct kymo_error *kymo_kernel_threads_create(struct kymo_kernel_threads **ret)
{
	struct kymo_kernel_threads *threads = calloc(1, sizeof(*threads));

	if (!threads)
		return &kymo_error_no_memory;
	*ret = threads;
	return NULL;
}

void kymo_kernel_threads_destroy(struct kymo_kernel_threads *threads)
{
	if (!threads)
		return;
	kymo_vec_deinit(&threads->items);
	kymo_index_deinit(&threads->index);
	free(threads);
}

static uint64_t hash_of(int32_t tid)
{
	return kymo_hash_pair(0, (uint32_t)tid);
}

/* NULL where nothing is known of it. */
static struct seen *find_seen(const struct kymo_kernel_threads *threads, int32_t tid)
{
	const uint32_t number =
		kymo_index_find(&threads->index, hash_of(tid), i, threads->items.items[i - 1].tid == tid);

	return number ? &threads->items.items[number - 1] : NULL;
}

/* ---- processes ------------------------------------------------------------------------------- */

/* The command line; NULL where the process is gone, or a zombie. */
static char *command_line(int32_t pid)
{
	char *text = kymo_command_of(pid);

	if (text && *text)
		return text;
	free(text);
	return NULL;
}

static int32_t parent_of(int32_t pid)
{
	kymo_cleanup_free char *stat = NULL;
	char path[64], state;
	int parent = 0;
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (kymo_read_file(AT_FDCWD, path, 4096, &stat, NULL))
		return 0;
	at = strrchr(stat, ')');
	return at && sscanf(at + 1, " %c %d", &state, &parent) == 2 ? parent : 0;
}

/* Whether another thread has the id by now, or the id was of another namespace. */
static bool is_still(int32_t tid, const char *name)
{
	kymo_cleanup_free char *comm = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", tid);
	if (kymo_read_file(AT_FDCWD, path, 256, &comm, NULL))
		return false;
	comm[strcspn(comm, "\n")] = '\0';
	return !strcmp(comm, name);
}

/* A thread of `pid` was seen for the first time, or under another name: the process may be new, or another program. */
static struct kymo_error *see_process(struct kymo_ctf_trace *trace, int32_t tid, int32_t pid, bool is_new,
				      const char *name, uint64_t tsc)
{
	const struct kymo_ctf_process *known = kymo_ctf_trace_process(trace, pid, UINT64_MAX);
	kymo_cleanup_free char *command = NULL;
	const char *text = name;

	if (known && tid != pid)
		return NULL;
	if (is_still(tid, name)) {
		command = command_line(pid);
		text = command ? command : name;
	}
	/* What the recorder has said of it is more than the name of its thread. */
	if (known && is_new && !command)
		return NULL;
	/* A process that was seen under another name and has gone has executed another program, most likely. */
	if (known && (tsc == known->begin || !strcmp(known->command, text)))
		return NULL;
	if (known)
		kymo_ctf_trace_end_process(trace, pid, tsc);
	return kymo_ctf_trace_add_process(trace, pid, command ? parent_of(pid) : 0, known ? tsc : 0, text);
}

/* What is known of `tid`, which is made where nothing is; NULL when memory is out. */
static struct seen *get_seen(struct kymo_kernel_threads *threads, int32_t tid)
{
	struct seen *known = find_seen(threads, tid);

	if (known)
		return known;
	if (!kymo_index_reserve(&threads->index, threads->items.n, i, hash_of(threads->items.items[i - 1].tid)) ||
	    !kymo_vec_push(&threads->items, (struct seen){ .tid = tid }))
		return NULL;
	kymo_index_put(&threads->index, hash_of(tid), threads->items.n);
	return &threads->items.items[threads->items.n - 1];
}

struct kymo_error *kymo_kernel_threads_see(struct kymo_kernel_threads *threads, struct kymo_ctf_trace *trace,
					   int32_t tid, int32_t pid, const char *name, uint64_t tsc)
{
	struct seen *seen = get_seen(threads, tid);
	struct kymo_error *error;
	bool is_new, is_next;

	if (!seen)
		return &kymo_error_no_memory;
	is_new = !seen->is_known;
	is_next = seen->ended && tsc > seen->ended;
	if (!is_new && !is_next && seen->pid == pid && !strncmp(seen->name, name, NAME_SIZE - 1))
		return NULL;
	if (is_next)
		seen->ended = 0;
	seen->pid = pid;
	seen->is_known = true;
	snprintf(seen->name, sizeof(seen->name), "%s", name);
	error = kymo_ctf_trace_add_thread(trace, tid, pid, is_new ? 0 : tsc, seen->name);
	return error ? error : see_process(trace, tid, pid, is_new, seen->name, tsc);
}

bool kymo_kernel_threads_knows(const struct kymo_kernel_threads *threads, int32_t tid, int32_t pid)
{
	const struct seen *seen = find_seen(threads, tid);

	return seen && seen->is_known && seen->pid == pid && !seen->ended;
}

/* ---- system calls ---------------------------------------------------------------------------- */

struct kymo_error *kymo_kernel_threads_enter(struct kymo_kernel_threads *threads, int32_t tid, int32_t pid,
					     uint64_t number)
{
	struct seen *seen = get_seen(threads, tid);

	if (!seen)
		return &kymo_error_no_memory;
	if (!seen->is_known)
		seen->pid = pid;
	seen->call = number + 1;
	return NULL;
}

/* The thread of `pid` that has executed something, and was not the first of its process. */
static struct seen *find_who_executed(struct kymo_kernel_threads *threads, int32_t pid, uint64_t number)
{
	for (size_t i = 0; i < threads->items.n; i++)
		if (threads->items.items[i].pid == pid && threads->items.items[i].call == number + 1)
			return &threads->items.items[i];
	return NULL;
}

bool kymo_kernel_threads_leave(struct kymo_kernel_threads *threads, int32_t *tid, int32_t pid, uint64_t number,
			       bool has_executed)
{
	struct seen *seen = find_seen(threads, *tid);

	if (has_executed && (!seen || seen->call != number + 1)) {
		if (seen)
			seen->call = 0;
		seen = find_who_executed(threads, pid, number);
	}
	if (!seen || !seen->call || (number != UINT64_MAX && seen->call != number + 1))
		return false;
	seen->call = 0;
	if (seen->tid != *tid)
		seen->pid = 0;
	*tid = seen->tid;
	return true;
}

void kymo_kernel_threads_end(struct kymo_kernel_threads *threads, int32_t tid, uint64_t tsc)
{
	struct seen *seen = find_seen(threads, tid);

	if (!seen)
		return;
	seen->call = 0;
	seen->ended = tsc;
}
