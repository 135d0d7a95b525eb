#include "gdb/thread.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/states.h"
#include "gdb/conditions.h"
#include "gdb/pad_notes.h"

#define SEEN \
	(KYMO_EVENT_QUIESCE | KYMO_EVENTS_SIGNAL | KYMO_EVENT_CLONE | KYMO_EVENT_EXEC | KYMO_EVENT_DEATH | \
	 KYMO_EVENT_REAP)

enum { AUXV_MAX = 4096 };

#define NOTHING KYMO_STATE(GDB_NOTHING_TO_TELL)
#define PENDING KYMO_STATE(GDB_PENDING)
#define SENT KYMO_STATE(GDB_SENT)
#define TOLD KYMO_STATE(GDB_TOLD)

/* What is sent was told before. */
static const struct kymo_state_row tellings[] = {
	[GDB_NOTHING_TO_TELL] = { "nothing to tell", NOTHING | PENDING | TOLD },
	[GDB_PENDING] = { "pending", NOTHING | PENDING | TOLD },
	[GDB_SENT] = { "sent", NOTHING | PENDING | TOLD },
	[GDB_TOLD] = { "told", NOTHING | PENDING | SENT | TOLD },
};

void gdb_set_telling(struct gdb_thread *thread, enum gdb_telling telling)
{
	kymo_state_check("event of a thread", tellings, kymo_countof(tellings), thread->telling, telling);
	thread->telling = telling;
}

bool gdb_was_told(const struct gdb_thread *thread)
{
	return thread->telling == GDB_SENT || thread->telling == GDB_TOLD;
}

void gdb_set_mask(struct gdb_thread *thread)
{
	const bool is_walked = thread->btrace && thread->btrace->is_walked;
	unsigned int mask = SEEN;

	if (thread->process->catches_calls)
		mask |= KYMO_EVENTS_SYSCALL;
	if (thread->is_vforking || is_walked) /* else a step leaves the trap flag in R11 */
		mask |= KYMO_EVENT_SYSCALL_EXIT;
	kymo_engine_set_events(thread->engine, mask);
}

struct gdb_process *gdb_find_process(const struct kymo_gdb *gdb, pid_t pid)
{
	for (size_t i = 0; i < gdb->processes.n; i++)
		if (gdb->processes.items[i]->pid == pid)
			return gdb->processes.items[i];
	return NULL;
}

struct gdb_process *gdb_add_process(struct kymo_gdb *gdb, pid_t pid)
{
	struct gdb_process *process = calloc(1, sizeof(*process));

	if (!process || !kymo_vec_push(&gdb->processes, process)) {
		free(process);
		return NULL;
	}
	process->pid = pid;
	return process;
}

void gdb_drop_process(struct kymo_gdb *gdb, struct gdb_process *process)
{
	for (size_t i = 0; i < gdb->processes.n; i++) {
		if (gdb->processes.items[i] != process)
			continue;
		gdb->processes.items[i] = gdb->processes.items[--gdb->processes.n];
		gdb_trace_lose(&gdb->tracing, process->pid, "the process is gone");
		if (process->is_child)
			kymo_vec_push(&gdb->children, process->pid);
		kymo_vec_deinit(&process->breaks);
		gdb_forget_conditions(process);
		gdb_end_pads(process);
		kymo_vec_deinit(&process->conditions);
		kymo_vec_deinit(&process->calls);
		free(process);
		return;
	}
}

void gdb_set_untold(struct kymo_gdb *gdb, pid_t pid, bool is_untold)
{
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (gdb->threads.items[i]->process->pid == pid)
			gdb->threads.items[i]->is_untold = is_untold;
}

void gdb_forget_ends(struct kymo_gdb *gdb, pid_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < gdb->ends.n; i++)
		if (pid && gdb->ends.items[i].pid != pid)
			gdb->ends.items[n++] = gdb->ends.items[i];
	gdb->ends.n = n;
}

struct gdb_thread *gdb_find_thread(const struct kymo_gdb *gdb, pid_t pid, pid_t tid)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (!thread->is_dead && !thread->is_untold && thread->tid == tid &&
		    (!pid || thread->process->pid == pid))
			return thread;
	}
	return NULL;
}

struct gdb_thread *gdb_any_thread(const struct kymo_gdb *gdb, pid_t pid)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (!thread->is_dead && (pid <= 0 ? !thread->is_untold : thread->process->pid == pid))
			return thread;
	}
	return NULL;
}

struct gdb_thread *gdb_thread_of(const struct kymo_gdb *gdb, const struct gdb_id *id)
{
	if (id->tid > 0)
		return gdb_find_thread(gdb, id->pid > 0 ? id->pid : 0, id->tid);
	return gdb_any_thread(gdb, id->pid);
}

struct gdb_thread *gdb_general_thread(const struct kymo_gdb *gdb)
{
	return gdb_thread_of(gdb, &gdb->general);
}

struct gdb_thread *gdb_memory_thread(const struct kymo_gdb *gdb)
{
	struct gdb_thread *thread = gdb_general_thread(gdb);

	return thread || !gdb->is_non_stop ? thread : gdb_any_thread(gdb, gdb->general.pid);
}

bool gdb_id_includes(const struct gdb_id *id, const struct gdb_thread *thread)
{
	return (id->pid <= 0 || id->pid == thread->process->pid) && (id->tid <= 0 || id->tid == thread->tid);
}

void gdb_put_id(const struct kymo_gdb *gdb, struct gdb_text *text, pid_t pid, pid_t tid)
{
	if (gdb->has_multiprocess)
		gdb_text_format(text, "p%x.%x", (unsigned int)pid, (unsigned int)tid);
	else
		gdb_text_format(text, "%x", (unsigned int)tid);
}

bool gdb_catches_call(const struct gdb_thread *thread, uint64_t number)
{
	const struct gdb_process *process = thread->process;

	if (!thread->gdb->is_client || !process->catches_calls)
		return false;
	for (size_t i = 0; i < process->calls.n; i++)
		if (process->calls.items[i] == number)
			return true;
	return process->catches_all_calls;
}

void gdb_forget_thread(struct kymo_gdb *gdb, struct gdb_thread *thread)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		if (gdb->threads.items[i] != thread)
			continue;
		gdb->threads.n--;
		for (; i < gdb->threads.n; i++) /* in the order in which they were made */
			gdb->threads.items[i] = gdb->threads.items[i + 1];
		thread->is_dead = true;
		kymo_engine_put(thread->engine); /* the struct goes with the last reference */
		return;
	}
}

/* By the kernel's own list: the file may be one whose opening waits, for a file system or a scanner. */
bool gdb_is_narrow(pid_t pid)
{
	kymo_cleanup_free char *bytes = NULL;
	char path[64];
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	if (kymo_read_file(AT_FDCWD, path, AUXV_MAX, &bytes, &size))
		return false;
	for (size_t at = 0; at + sizeof(Elf32_auxv_t) <= size; at += sizeof(Elf32_auxv_t)) {
		Elf32_auxv_t entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.a_type == AT_PHENT && entry.a_un.a_val == sizeof(Elf32_Phdr))
			return true;
	}
	return false;
}
