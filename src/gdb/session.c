#include "gdb/session.h"

#include "gdb/breakpoints.h"
#include "gdb/btrace_packets.h"
#include "gdb/events.h"
#include "gdb/nonstop.h"
#include "gdb/pads.h"
#include "gdb/run.h"
#include "gdb/stop.h"
#include "gdb/thread.h"
#include "gdb/trace_run.h"
#include "gdb/wait.h"
#include "hub/hub.h"

enum { STOP_MS = 60000 };

/* ---- a client comes -------------------------------------------------------------------------- */

static void forget_ended(struct kymo_gdb *gdb)
{
	gdb->ends.n = 0;
	for (size_t i = gdb->processes.n; i-- > 0;)
		if (gdb->processes.items[i]->has_ended)
			gdb_drop_process(gdb, gdb->processes.items[i]);
}

/* A signal that a client was told of, and did not answer before it was gone, is news for the next one. */
static void tell_signals_again(struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (!thread->is_at_signal || !gdb_was_told(thread) || thread->kept.si_signo)
			continue;
		thread->event = (struct gdb_event){ .kind = GDB_EVENT_SIGNAL, .signal = thread->info.si_signo };
		gdb_set_telling(thread, GDB_PENDING);
	}
}

static void begin_session(void *data)
{
	struct kymo_gdb *gdb = data;

	forget_ended(gdb);
	tell_signals_again(gdb);
	gdb->is_client = true;
	gdb->is_extended = gdb->options.is_extended;
	gdb->has_multiprocess = gdb->has_forks = gdb->has_vforks = gdb->has_execs = false;
	gdb->has_no_resumed = gdb->has_swbreak = gdb->has_hwbreak = false;
	gdb->general = gdb->running = (struct gdb_id){ 0, 0 };
	for (size_t i = 0; i < gdb->processes.n; i++)
		gdb->processes.items[i]->n_symbols = 0;
	gdb_stop_all(gdb);
}

bool gdb_begin_session(struct kymo_gdb *gdb, int wake)
{
	kymo_hub_run(gdb->hub, begin_session, gdb);
	if (!gdb_wait_for_stop(gdb, STOP_MS, wake))
		return false;
	kymo_hub_run(gdb->hub, gdb_be_stopped, gdb);
	return true;
}

/* ---- a client goes --------------------------------------------------------------------------- */

static void forget_settings(struct kymo_gdb *gdb)
{
	gdb->passed = gdb->for_program = 0;
	gdb->btrace_size = 0;
	gdb->knows_for_program = gdb->wants_threads = gdb->is_interrupted = gdb->has_no_acks = false;
	for (size_t i = 0; i < gdb->processes.n; i++)
		gdb->processes.items[i]->catches_calls = false;
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (!gdb->threads.items[i]->is_dead)
			gdb_set_mask(gdb->threads.items[i]);
}

static void end_session(void *data)
{
	struct kymo_gdb *gdb = data;
	const bool stands = gdb->is_non_stop ? gdb_do_all_stand(gdb) : gdb->state == GDB_STOPPED;

	if (gdb->is_non_stop)
		gdb_end_non_stop(gdb);
	gdb->has_left_run = gdb->tracing.is_running;
	gdb_remove_all(gdb);
	gdb->is_client = false;
	forget_ended(gdb);
	if (!gdb->processes.n || stands)
		gdb_change_state(gdb, GDB_LOST_CLIENT);
	for (size_t i = 0; i < gdb->processes.n; i++) {
		if (stands && gdb->processes.items[i]->is_launched &&
		    !gdb_traces(&gdb->tracing, gdb->processes.items[i]->pid))
			continue;
		gdb_let_run(gdb, gdb->processes.items[i]);
		gdb_change_state(gdb, GDB_LETS_RUN);
	}
	forget_settings(gdb);
}

static void lose_run(void *data)
{
	gdb_trace_lose_client(data);
}

void gdb_end_session(struct kymo_gdb *gdb)
{
	kymo_hub_run(gdb->hub, lose_run, gdb); /* first, so that the ends of its steps are seen */
	gdb_end_btrace(gdb, 0);
	gdb_pads_remove(gdb, 0, false);
	kymo_hub_run(gdb->hub, end_session, gdb);
	gdb_pads_remove(gdb, 0, true); /* also of a process that stood at a signal, and runs now */
}
