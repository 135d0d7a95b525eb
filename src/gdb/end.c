#include "gdb/end.h"

#include <errno.h>

#include "base/backoff.h"
#include "base/io.h"
#include "gdb/btrace_packets.h"
#include "gdb/events.h"
#include "gdb/pads.h"
#include "gdb/stop.h"
#include "gdb/tell.h"
#include "gdb/thread.h"
#include "gdb/wait.h"
#include "hub/engine.h"
#include "hub/hub.h"
#include "hub/launch.h"

enum { END_MS = 10000, LEAVE_MS = 2000 };

/* ---- killing --------------------------------------------------------------------------------- */

static void kill_process(const struct kymo_gdb *gdb, const struct gdb_process *process)
{
	const struct gdb_thread *thread = gdb_any_thread(gdb, process->pid);
	const siginfo_t info = { .si_signo = SIGKILL };

	if (thread)
		kymo_engine_inject(thread->engine, &info);
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (gdb->threads.items[i]->is_sharer && gdb->threads.items[i]->process == process)
			kymo_engine_inject(gdb->threads.items[i]->engine, &info);
}

/* With forked children that the client was not told of, of which nothing is told now. */
static void kill_processes(void *data)
{
	const struct gdb_look *look = data;
	struct kymo_gdb *gdb = look->gdb;
	struct gdb_process *process = look->pid ? gdb_find_process(gdb, look->pid) : NULL, *child;

	for (size_t i = 0; !look->pid && i < gdb->processes.n; i++)
		kill_process(gdb, gdb->processes.items[i]);
	while (process && (child = gdb_take_untold(gdb, process))) {
		kill_process(gdb, child);
		gdb_leave_at_once(gdb, child);
	}
	if (process)
		kill_process(gdb, process);
}

/* Its end is not told. */
static void forget_process(void *data)
{
	const struct gdb_look *look = data;
	struct kymo_gdb *gdb = look->gdb;

	gdb_forget_ends(gdb, look->pid);
	for (size_t i = gdb->processes.n; i-- > 0;) {
		struct gdb_process *process = gdb->processes.items[i];

		if (process->has_ended && (!look->pid || look->pid == process->pid))
			gdb_drop_process(gdb, process);
	}
	gdb->is_interrupted &= gdb->threads.n > 0;
	gdb->is_unresumed = false;
	gdb_change_state(gdb, GDB_KILLED);
}

static bool kill_and_wait(struct kymo_gdb *gdb, pid_t pid)
{
	struct gdb_look look = { .gdb = gdb, .pid = pid };
	bool is_gone;

	kymo_hub_run(gdb->hub, kill_processes, &look);
	is_gone = gdb_wait_until(gdb, pid, gdb_look_whether_gone, END_MS, -1);
	kymo_hub_run(gdb->hub, forget_process, &look);
	gdb_wait_for_ended(gdb);
	return is_gone;
}

void gdb_kill(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	int pid;

	const bool is_gone = gdb_take_int(words, &pid) && gdb_words_are_over(words) && pid && kill_and_wait(gdb, pid);

	gdb_text_put(reply, is_gone ? "OK" : "E01");
}

static void be_over(void *data)
{
	struct kymo_gdb *gdb = data;

	gdb->is_over |= !gdb->is_extended;
}

void gdb_kill_all(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb_say(gdb, "Killing all inferiors");
	kill_and_wait(gdb, 0);
	kymo_hub_run(gdb->hub, be_over, gdb);
}

static void find_launched(void *data)
{
	struct gdb_look *look = data;

	look->pid = 0;
	for (size_t i = 0; i < look->gdb->processes.n; i++)
		if (look->gdb->processes.items[i]->is_launched)
			look->pid = look->gdb->processes.items[i]->pid;
}

void gdb_kill_launched(struct kymo_gdb *gdb)
{
	struct gdb_look look = { .gdb = gdb };

	do {
		kymo_hub_run(gdb->hub, find_launched, &look);
	} while (look.pid && kill_and_wait(gdb, look.pid));
}

/* ---- letting go ------------------------------------------------------------------------------ */

struct leave {
	struct kymo_gdb *gdb;
	pid_t pid; /* 0: all */
	bool is_first;
	struct gdb_engines engines;
	size_t n;
};

static void leave(void *data)
{
	struct leave *it = data;
	struct kymo_gdb *gdb = it->gdb;
	struct gdb_process *process;

	if (it->is_first && gdb->processes.n)
		it->pid = gdb->processes.items[0]->pid;
	while (gdb->processes.n &&
	       (process = it->pid || it->is_first ? gdb_find_process(gdb, it->pid) : gdb->processes.items[0])) {
		gdb_leave_process(gdb, process, &it->engines);
		it->n++;
	}
	gdb->is_over |= it->n && !gdb->processes.n && !gdb->is_extended;
}

/* Their threads run as they were: until then, or for a while. One that sleeps in the kernel where nothing wakes it is
 * let go of when it comes back from there. */
static void leave_and_wait(struct leave *it, int ms)
{
	const uint64_t until = kymo_now_ns() + (uint64_t)ms * 1000000;
	unsigned int spins = 0;
	uint64_t event = 0;

	kymo_hub_run(it->gdb->hub, leave, it);
	for (size_t i = 0; i < it->engines.n; i++) {
		while (ms && hub_try_barrier(it->engines.items[i], &event) == -EAGAIN && kymo_now_ns() < until)
			kymo_back_off(spins++);
		kymo_engine_put(it->engines.items[i]);
	}
	kymo_vec_deinit(&it->engines);
}

void gdb_leave(struct kymo_gdb *gdb, pid_t pid)
{
	gdb_end_steps(gdb, pid);
	gdb_pads_remove(gdb, pid, false);
	leave_and_wait(&(struct leave){ .gdb = gdb, .pid = pid }, gdb_pads_are_in(gdb, pid) ? LEAVE_MS : 0);
	gdb_pads_remove(gdb, pid, true);
}

struct going {
	struct kymo_gdb *gdb;
	pid_t pid; /* of a packet; 0: any */
	bool is_to_go_on;
};

static void look_at_run(void *data)
{
	struct going *it = data;
	const struct gdb_tracing *tracing = &it->gdb->tracing;

	it->is_to_go_on = tracing->is_running && tracing->is_disconnected && !it->gdb->is_extended &&
			  (!it->pid || it->pid == tracing->pid) && it->gdb->processes.n == 1;
}

/* A client that detaches from its only process closes the connection next. Its threads run from then on. */
static bool is_to_go_on(struct kymo_gdb *gdb, pid_t pid)
{
	struct going it = { .gdb = gdb, .pid = pid };

	kymo_hub_run(gdb->hub, look_at_run, &it);
	return it.is_to_go_on;
}

void gdb_detach(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct leave it = { .gdb = gdb };
	int pid = 0;

	if ((gdb_take_char(words, ';') && !gdb_take_int(words, &pid)) || !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E01");
		return;
	}
	if (is_to_go_on(gdb, pid)) {
		gdb_say(gdb, "A trace run goes on without a client: process %d stays traced", gdb->tracing.pid);
		gdb_text_put(reply, "OK");
		return;
	}
	it.pid = pid;
	it.is_first = !pid;
	gdb_end_steps(gdb, pid);
	gdb_pads_remove(gdb, pid, false);
	leave_and_wait(&it, LEAVE_MS);
	gdb_pads_remove(gdb, pid, true);
	gdb_say(gdb, "Detaching from process %d", it.pid);
	gdb_text_put(reply, it.n ? "OK" : "E01");
}

/* ---- children -------------------------------------------------------------------------------- */

struct children {
	struct kymo_gdb *gdb;
	KYMO_VEC(pid_t) pids;
};

static void take_children(void *data)
{
	struct children *it = data;
	struct kymo_gdb *gdb = it->gdb;

	for (size_t i = 0; i < gdb->children.n; i++)
		kymo_vec_push(&it->pids, gdb->children.items[i]);
	gdb->children.n = 0;
}

static void put_back(void *data)
{
	const struct children *it = data;

	for (size_t i = 0; i < it->pids.n; i++)
		kymo_vec_push(&it->gdb->children, it->pids.items[i]);
}

void gdb_wait_for_ended(struct kymo_gdb *gdb)
{
	struct children it = { .gdb = gdb };
	size_t n = 0;
	int status;

	kymo_hub_run(gdb->hub, take_children, &it);
	for (size_t i = 0; i < it.pids.n; i++)
		if (hub_launched_ended(gdb->hub, it.pids.items[i], &status))
			kymo_hub_wait(gdb->hub, it.pids.items[i], &status);
		else
			it.pids.items[n++] = it.pids.items[i];
	it.pids.n = n;
	if (n)
		kymo_hub_run(gdb->hub, put_back, &it);
	kymo_vec_deinit(&it.pids);
}
