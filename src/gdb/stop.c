#include "gdb/stop.h"

#include "base/cleanup.h"
#include "base/io.h"
#include "base/states.h"
#include "gdb/thread.h"
#include "procfs/threads.h"

enum { PATIENT_TICKS = 5 };

void gdb_wake(struct kymo_gdb *gdb)
{
	const uint64_t one = 1;

	kymo_write_all(gdb->wake, &one, sizeof(one));
}

/* ---- the state of all-stop ------------------------------------------------------------------- */

#define STOPPED KYMO_STATE(GDB_STOPPED)
#define RUNNING KYMO_STATE(GDB_RUNNING)
#define STOPPING KYMO_STATE(GDB_STOPPING)
#define ANY (STOPPED | RUNNING | STOPPING)

static const char *const state_names[] = {
	[GDB_STOPPED] = "stopped",
	[GDB_RUNNING] = "running",
	[GDB_STOPPING] = "stopping",
};

/* A client is not heard while threads run for it: what it asks for comes in STOPPED. */
static const struct {
	const char *name;
	unsigned int from; /* where it may come */
	enum gdb_state to;
} changes[] = {
	[GDB_RESUMED] = { "resumed", STOPPED, GDB_RUNNING },
	[GDB_NONE_RESUMED] = { "none resumed", RUNNING, GDB_STOPPED },
	[GDB_TELLS_FIRST] = { "tells first", STOPPED, GDB_STOPPING },
	[GDB_ASKED_ALL] = { "asked all", ANY, GDB_STOPPING },
	[GDB_ALL_STAND] = { "all stand", STOPPED | STOPPING, GDB_STOPPED },
	[GDB_STARTS] = { "starts", STOPPED, GDB_STOPPING },
	[GDB_STARTED] = { "started", STOPPED | STOPPING, GDB_STOPPED },
	[GDB_KILLED] = { "killed", ANY, GDB_STOPPED },
	[GDB_BEGAN_NON_STOP] = { "began non-stop", ANY, GDB_RUNNING },
	[GDB_LETS_RUN] = { "lets run", ANY, GDB_RUNNING },
	[GDB_LOST_CLIENT] = { "lost its client", ANY, GDB_STOPPED },
};

void gdb_change_state(struct kymo_gdb *gdb, enum gdb_change change)
{
	if (gdb->is_non_stop) {
		gdb->state = GDB_RUNNING;
		return;
	}
	if (KYMO_CHECKS_STATES && !(changes[change].from & KYMO_STATE(gdb->state)))
		kymo_state_fail("debugger stub", state_names[gdb->state], changes[change].name);
	gdb->state = changes[change].to;
}

void gdb_be_stopped(void *gdb)
{
	gdb_change_state(gdb, GDB_ALL_STAND);
}

/* ---- whether threads stand ------------------------------------------------------------------- */

static bool counts_as_standing(const struct gdb_thread *thread)
{
	return thread->is_dead || thread->is_stopped || (thread->is_asked && (thread->is_vforking || thread->is_stuck));
}

bool gdb_do_all_stand(const struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (!counts_as_standing(gdb->threads.items[i]))
			return false;
	return true;
}

bool gdb_does_any_stand(const struct kymo_gdb *gdb, pid_t pid)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		const struct gdb_thread *thread = gdb->threads.items[i];

		if (thread->process->pid == pid && !thread->is_dead && counts_as_standing(thread))
			return true;
	}
	return !gdb_any_thread(gdb, pid);
}

void gdb_look_whether_all_stand(struct kymo_gdb *gdb)
{
	if (gdb->is_non_stop || (gdb->state == GDB_STOPPING && gdb_do_all_stand(gdb)))
		gdb_wake(gdb);
}

bool gdb_does_any_run(const struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (!gdb->threads.items[i]->is_dead && !gdb->threads.items[i]->is_stopped)
			return true;
	return false;
}

/* ---- asking ---------------------------------------------------------------------------------- */

void gdb_ask(struct gdb_thread *thread)
{
	const struct gdb_event was = thread->event;

	if (thread->is_dead || thread->is_stopped || thread->is_asked)
		return;
	thread->is_asked = true;
	if (kymo_engine_control(thread->engine, KYMO_ACTION_STOP))
		return;
	if (thread->is_settling) {
		thread->is_settling = false;
		gdb_note(thread, &was);
	} else {
		gdb_stand(thread);
	}
}

void gdb_stop_all(struct kymo_gdb *gdb)
{
	gdb_change_state(gdb, GDB_ASKED_ALL);
	gdb->n_ticks = 0;
	for (size_t i = 0; i < gdb->threads.n; i++)
		gdb_ask(gdb->threads.items[i]);
	gdb_look_whether_all_stand(gdb);
}

void gdb_stop_one(struct gdb_thread *thread, int signal)
{
	if (thread->is_dead || thread->is_stopped || thread->is_owed)
		return;
	thread->is_owed = true;
	thread->owed_signal = signal;
	gdb_ask(thread);
}

/* ---- ^C -------------------------------------------------------------------------------------- */

static bool can_be_interrupted(const struct gdb_thread *thread)
{
	return thread && !thread->is_dead && !thread->is_untold && !thread->is_stopped && !thread->is_asked;
}

/* A thread that stops soon is better, and the general one is best. */
static struct gdb_thread *find_running(const struct kymo_gdb *gdb)
{
	struct gdb_thread *general = gdb_general_thread(gdb), *found = NULL;

	if (can_be_interrupted(general) && !general->is_vforking)
		return general;
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (!can_be_interrupted(thread))
			continue;
		if (!thread->is_vforking)
			return thread;
		found = thread;
	}
	return found;
}

void gdb_interrupt_one(struct kymo_gdb *gdb)
{
	struct gdb_thread *thread = gdb->is_interrupted ? find_running(gdb) : NULL;

	if (!thread)
		return;
	gdb->is_interrupted = false;
	gdb_stop_one(thread, SIGINT);
}

static bool does_any_run_for_client(const struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < gdb->threads.n; i++) {
		const struct gdb_thread *thread = gdb->threads.items[i];

		if (!thread->is_dead && !thread->is_untold &&
		    (!thread->is_stopped || thread->telling == GDB_PENDING || thread->telling == GDB_SENT))
			return true;
	}
	return false;
}

void gdb_interrupt(struct kymo_gdb *gdb)
{
	if (!gdb->is_non_stop) {
		gdb->is_interrupted = gdb_any_thread(gdb, 0);
		if (gdb->state == GDB_RUNNING)
			gdb_stop_all(gdb);
		return;
	}
	if (!does_any_run_for_client(gdb))
		return;
	gdb->is_interrupted = true;
	gdb_interrupt_one(gdb);
}

/* ---- what is noted --------------------------------------------------------------------------- */

/* Non-stop. ^C that was on its way to the thread takes the place of a step that is done, and is not lost by another
 * event. */
static void queue(struct gdb_thread *thread)
{
	const bool was_interrupted = thread->is_owed && thread->owed_signal == SIGINT;
	struct kymo_gdb *gdb = thread->gdb;

	thread->is_owed = false;
	if (was_interrupted && thread->event.kind == GDB_EVENT_STEP) {
		thread->event = (struct gdb_event){ .kind = GDB_EVENT_INTERRUPT, .signal = SIGINT };
		thread->info = (siginfo_t){ .si_signo = SIGINT, .si_code = SI_USER };
	} else if (was_interrupted && thread->event.kind != GDB_EVENT_INTERRUPT) {
		gdb->is_interrupted = true;
		gdb_interrupt_one(gdb);
	}
	gdb_wake(gdb);
}

void gdb_note(struct gdb_thread *thread, const struct gdb_event *event)
{
	struct kymo_gdb *gdb = thread->gdb;

	thread->event = *event;
	thread->order = ++gdb->last_order;
	gdb_set_telling(thread, GDB_PENDING);
	thread->is_stopped = true;
	thread->is_stepping = false;
	if (gdb->is_non_stop)
		queue(thread);
	else if (gdb->state == GDB_RUNNING)
		gdb_stop_all(gdb);
	else
		gdb_look_whether_all_stand(gdb);
}

void gdb_stand(struct gdb_thread *thread)
{
	const struct gdb_event event = { .kind = GDB_EVENT_INTERRUPT, .signal = thread->owed_signal };

	thread->is_stopped = true;
	if (!thread->is_owed) {
		gdb_look_whether_all_stand(thread->gdb);
		return;
	}
	if (!thread->is_at_signal)
		thread->info = (siginfo_t){ .si_signo = event.signal, .si_code = SI_USER };
	gdb_note(thread, &event);
}

void gdb_tick(void *data)
{
	struct kymo_gdb *gdb = data;

	if (gdb->state != GDB_STOPPING && !gdb->is_non_stop)
		return;
	gdb->n_ticks++;
	for (size_t i = 0; i < gdb->threads.n && gdb->n_ticks >= PATIENT_TICKS; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (!thread->is_dead && !thread->is_stopped && thread->is_asked)
			thread->is_stuck = kymo_thread_state(thread->tid, thread->tid) == 'D';
	}
	gdb_look_whether_all_stand(gdb);
}
