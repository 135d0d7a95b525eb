/*
 * Engines of threads that a processor records. A thread's event is opened before it runs, so it has all that the thread
 * does. It is read at the EXIT event, when its process still has its memory; after SIGKILL at the death. The code that
 * decoding needs is the process', or the files': what a program has unmapped by then is not known.
 */
#include "branch/hardware.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/step.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "branch/chosen.h"
#include "branch/raw.h"
#include "branch/state.h"
#include "branch/thread.h"
#include "kymo/engine.h"

#define EVENTS \
	(KYMO_EVENT_QUIESCE | KYMO_EVENT_CLONE | KYMO_EVENT_EXEC | KYMO_EVENT_EXIT | KYMO_EVENT_DEATH | \
	 KYMO_EVENT_REAP | KYMO_EVENTS_SIGNAL)
#define ONCE (KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA)
#define PAGES 256u
#define PAGE KYMO_PAGE_SIZE

/* ---- code ------------------------------------------------------------------------------------ */

/* A thread whose buffer is being decoded, and the pages of code that were needed last. */
struct reading {
	struct kymo_branches *branches;
	struct branch_thread *thread;
	const struct branch_space *space;
	bool has_memory; /* the process may still have its own */
	bool is_lossy;
	struct page {
		uint64_t address; /* of the page; 0: none */
		uint8_t bytes[PAGE];
	} pages[PAGES];
};

static bool read_page(struct reading *reading, uint64_t address, uint8_t *bytes)
{
	const struct branch_region *region = branch_region_at(reading->space, address);
	const struct branch_file *file = region ? region->file : NULL;
	const uint64_t offset = region ? region->offset + (address - region->range.start) : 0;
	ssize_t n;

	if (!region)
		return false;
	if (reading->has_memory && !kymo_engine_read(reading->thread->engine, address, bytes, PAGE))
		return true;
	reading->has_memory = false;
	if (!file || file->fd < 0)
		return false;
	memset(bytes, 0, PAGE);
	n = pread(file->fd, bytes, PAGE, (off_t)offset);
	return n > 0;
}

/* NULL: it is not known. */
static const uint8_t *page_at(struct reading *reading, uint64_t address)
{
	struct page *page = &reading->pages[address / PAGE % PAGES];

	if (page->address != address)
		page->address = read_page(reading, address, page->bytes) ? address : 0;
	return page->address ? page->bytes : NULL;
}

static size_t read_code(uint64_t address, uint8_t *bytes, size_t size, void *data)
{
	size_t n = 0;

	while (n < size) {
		const uint64_t offset = (address + n) % PAGE;
		const size_t rest = PAGE - offset < size - n ? PAGE - offset : size - n;
		const uint8_t *page = page_at(data, address + n - offset);

		if (!page)
			break;
		memcpy(bytes + n, page + offset, rest);
		n += rest;
	}
	return n;
}

/* ---- branches -------------------------------------------------------------------------------- */

/* Of all that the thread has done: what leads to chosen code, or from it. */
static void take_branch(const struct kymo_branch *branch, bool is_gap, void *data)
{
	struct reading *reading = data;
	struct kymo_branches *branches = reading->branches;
	const bool is_from = branches->is_all || branch_is_chosen(reading->space, branch->from);
	const bool is_to = branches->is_all || branch_is_chosen(reading->space, branch->to);

	reading->is_lossy |= is_gap;
	if (branch->kind == KYMO_BRANCH_ENTER ? is_to : is_from)
		branch_thread_add(branches, reading->thread, branch->from, branch->to,
				  (enum kymo_branch_kind)branch->kind);
	else if (is_to)
		branch_thread_add(branches, reading->thread, 0, branch->to, KYMO_BRANCH_ENTER);
}

static void decode(struct reading *reading)
{
	const struct branch_hardware *hardware = reading->branches->options.hardware;
	kymo_cleanup_free uint8_t *bytes = NULL;
	struct branch_raw raw = { .read = read_code, .is_taken = take_branch, .data = reading };
	bool is_overwritten = false;

	if (hardware->read(reading->thread->perf, &bytes, &raw.size, &is_overwritten)) {
		branches_warn(reading->branches, BRANCH_WARNING_MEMORY);
		return;
	}
	raw.bytes = bytes;
	if (hardware->decode(&raw))
		branches_warn(reading->branches, BRANCH_WARNING_MEMORY);
	if (reading->is_lossy)
		branches_warn(reading->branches, BRANCH_WARNING_LOST);
	reading->thread->is_overwritten |= is_overwritten || reading->is_lossy;
	reading->branches->is_overwritten |= reading->thread->is_overwritten;
}

/* The processor records no more of it. `is_alive`: its process is, and still executes the program. */
static void read_thread(struct kymo_branches *branches, struct branch_thread *thread, bool is_alive)
{
	kymo_cleanup_free struct reading *reading = thread->perf ? calloc(1, sizeof(*reading)) : NULL;

	if (!thread->perf)
		return;
	if (is_alive) {
		thread->process->is_changed = true;
		branch_thread_renew(branches, thread);
	}
	if (reading) {
		reading->branches = branches;
		reading->thread = thread;
		reading->space = branch_thread_space(branches, thread);
		reading->has_memory = is_alive && thread->engine;
		decode(reading);
	} else {
		branches_warn(branches, BRANCH_WARNING_MEMORY);
	}
	branches->options.hardware->close(thread->perf);
	thread->perf = NULL;
}

/* ---- callbacks ------------------------------------------------------------------------------- */

/* Before its exec a command executes code of kymo's. */
static bool is_kymos(const struct kymo_branches *branches, const struct branch_thread *thread)
{
	return branches->options.command && thread->tid == branches->pid && !branches->is_executed;
}

static void begin_thread(struct kymo_branches *branches, struct branch_thread *thread)
{
	int err;

	if (thread->has_begun || is_kymos(branches, thread))
		return;
	thread->has_begun = true;
	branch_thread_renew(branches, thread);
	err = branches->options.hardware->open(thread->tid, branches->options.tail, &thread->perf);
	if (err && err != -ESRCH)
		branches_warn(branches, BRANCH_WARNING_RECORDER);
}

static unsigned int on_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event)
{
	struct branch_thread *thread = branch_thread_of(data, engine);

	if (!thread)
		return KYMO_ACTION_DETACH;
	if (!(event & (KYMO_EVENT_EXIT | KYMO_EVENT_DEATH | KYMO_EVENT_EXEC)))
		begin_thread(data, thread);
	return KYMO_ACTION_RESUME;
}

static unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
			      struct kymo_signal_report *report)
{
	struct branch_thread *thread = branch_thread_of(data, engine);
	struct user_regs_struct registers = { 0 };

	if (thread && report->kind & (KYMO_EVENT_SIGNAL_TERM | KYMO_EVENT_SIGNAL_CORE)) {
		kymo_engine_get_registers(engine, &registers);
		branch_thread_note_end(thread, report, kymo_step_pc(&registers));
	}
	return KYMO_ACTION_RESUME | report->verdict;
}

static unsigned int on_clone(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_clone_report *report)
{
	struct kymo_branches *branches = data;
	int err = 0;

	if (report->kind == KYMO_CLONE_THREAD || branches->options.follow)
		err = branch_hardware_attach(branches, report->child);
	if (err && err != -ESRCH && err != -EEXIST)
		branches_warn(branches, BRANCH_WARNING_THREAD);
	return KYMO_ACTION_RESUME;
}

/* What was recorded is of the program before. */
static unsigned int on_exec(struct kymo_engine *engine, void *data, enum kymo_action action,
			    const struct kymo_exec_report *report)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);
	struct user_regs_struct registers;

	if (!thread)
		return KYMO_ACTION_DETACH;
	read_thread(branches, thread, false);
	thread->tid = kymo_engine_tid(engine);
	branches->is_executed |= thread->tid == branches->pid;
	thread->process->is_changed = true;
	thread->has_begun = false;
	begin_thread(branches, thread);
	if (branches->is_all && !kymo_engine_get_registers(engine, &registers))
		branch_thread_add(branches, thread, 0, kymo_step_pc(&registers), KYMO_BRANCH_EXEC);
	return KYMO_ACTION_RESUME;
}

static unsigned int on_thread_exit(struct kymo_engine *engine, void *data, enum kymo_action action,
				   const struct kymo_exit_report *report)
{
	struct branch_thread *thread = branch_thread_of(data, engine);

	if (thread)
		read_thread(data, thread, true);
	return branch_thread_exits(engine, data, action, report);
}

static void end_thread(struct kymo_branches *branches, struct branch_thread *thread, int status)
{
	read_thread(branches, thread, false);
	branch_thread_ended(branches, thread, status);
}

static unsigned int on_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	struct branch_thread *thread = branch_thread_of(data, engine);

	if (thread)
		end_thread(data, thread, report->status);
	return KYMO_ACTION_RESUME;
}

static void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	struct kymo_branches *branches = data;
	struct branch_thread *thread = branch_thread_of(branches, engine);

	if (thread)
		end_thread(branches, thread, report->status);
	branch_thread_reaped(branches, thread, report);
}

static const struct kymo_engine_ops hardware_ops = {
	.size = sizeof(hardware_ops),
	.quiesce = on_quiesce,
	.signal = on_signal,
	.clone = on_clone,
	.exec = on_exec,
	.exit = on_thread_exit,
	.death = on_death,
	.reap = on_reap,
};

/* ---- beginning and end ----------------------------------------------------------------------- */

int branch_hardware_attach(struct kymo_branches *branches, pid_t tid)
{
	return branch_thread_attach(branches, tid, ONCE, &hardware_ops, EVENTS, false);
}

static void see_first_stop(struct kymo_branches *branches, struct kymo_engine *engine)
{
	(void)branches;
	(void)branch_thread_want_stop(engine);
}

int branch_hardware_attach_process(struct kymo_branches *branches)
{
	return branch_threads_attach(branches, ONCE, &hardware_ops, EVENTS, see_first_stop);
}

void branch_hardware_detach(struct kymo_branches *branches)
{
	kymo_engine_detach_all(branches->hub, &hardware_ops, branches);
	for (size_t i = 0; i < branches->threads.n; i++) {
		struct branch_thread *thread = branches->threads.items[i];

		thread->engine = NULL;
		if (!thread->has_ended)
			read_thread(branches, thread, true);
	}
}
