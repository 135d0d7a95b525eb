/*
 * Calling engines.
 *
 * One event at a time is told to a task's engines, one after the other. The lock is not held during a callback, so
 * other threads can change engines meanwhile. They attach engines: those were born in this event, and are not told of
 * it. They detach engines: those are passed over, and removed after the event. And they set what engines ask for.
 */

#include "hub/engine.h"
#include "hub/forget.h"
#include "hub/own_signal.h"
#include "hub/remote/guest.h"
#include "hub/report.h"
#include "hub/state.h"
#include "hub/thread/frozen.h"
#include "hub/thread/task.h"
#include "kymo/engine.h"

/* What one event tells; `call` calls the engine's callback for it. */
struct hub_event {
	unsigned int event; /* a bit, or 0: quiesce alone */
	bool is_reversed;
	const struct kymo_engine *skip;                                       /* is not told */
	bool (*is_for)(const struct kymo_engine *engine, const void *report); /* NULL: it is for all */
	unsigned int (*call)(struct kymo_engine *engine, enum kymo_action so_far,
			     struct hub_event *event);                  /* with the lock released */
	void (*verdict)(struct hub_event *event, unsigned int verdict); /* NULL: there is none */
	void *report;
};

static bool is_to_be_told(const struct kymo_hub *hub, const struct kymo_engine *engine, const struct hub_event *event)
{
	return !engine->is_detached && engine->born < hub->counts.events && engine != event->skip &&
	       (!event->is_for || event->is_for(engine, event->report));
}

/* The strongest that is wanted, as an engine is told it. */
static enum kymo_action so_far(const struct task *task)
{
	enum kymo_action strongest = KYMO_ACTION_RESUME;

	for (size_t i = 0; i < task->engines.n; i++) {
		const struct kymo_engine *engine = task->engines.items[i];

		if (!engine->is_detached && engine->wants < strongest)
			strongest = engine->wants;
	}
	return strongest;
}

static void answered(struct kymo_hub *hub, struct kymo_engine *engine, unsigned int answer)
{
	enum kymo_action action = KYMO_ACTION_OF(answer);

	if (engine->is_detached)
		return;
	if (action == KYMO_ACTION_DETACH)
		hub_detach_engine(hub, engine);
	else if (engine->has_later)
		engine->wants = engine->later;
	else if (action < engine->wants) /* what control() has asked before stays asked */
		engine->wants = action;
	engine->has_later = false;
}

static void begin_callback(struct kymo_hub *hub, struct kymo_engine *engine)
{
	engine->is_in_callback = true;
	pthread_mutex_unlock(&hub->lock);
}

static void end_callback(struct kymo_hub *hub, struct kymo_engine *engine)
{
	pthread_mutex_lock(&hub->lock);
	engine->is_in_callback = false;
}

static void quiesce(struct kymo_hub *hub, struct kymo_engine *engine, enum kymo_action action, unsigned int event)
{
	unsigned int answer;

	if (!engine->ops->quiesce)
		return;
	begin_callback(hub, engine);
	answer = engine->ops->quiesce(engine, engine->data, action, event);
	end_callback(hub, engine);
	answered(hub, engine, answer);
}

static void tell_engine(struct kymo_hub *hub, struct task *task, struct kymo_engine *engine, struct hub_event *event)
{
	enum kymo_action action = so_far(task);
	unsigned int answer;

	if (event->event && !(engine->events & event->event))
		return;
	if (engine->events & KYMO_EVENT_QUIESCE && event->event != KYMO_EVENT_REAP)
		quiesce(hub, engine, action, event->event);
	if (engine->is_detached || !(engine->events & event->event))
		return;
	action = so_far(task);
	begin_callback(hub, engine);
	answer = event->call(engine, action, event);
	end_callback(hub, engine);
	if (event->verdict)
		event->verdict(event, KYMO_VERDICT_OF(answer));
	answered(hub, engine, answer);
}

static void begin_event(struct kymo_hub *hub, struct task *task)
{
	hub->counts.events++;
	task->is_in_event = true;
}

static void end_event(struct kymo_hub *hub, struct task *task)
{
	task->is_in_event = false;
	hub_purge_engines(hub, task);
	pthread_cond_broadcast(&hub->changed);
}

static void tell_all(struct kymo_hub *hub, struct task *task, struct hub_event *event)
{
	size_t n = task->engines.n;

	if (!(hub_events(task) & event->event))
		return;
	begin_event(hub, task);
	for (size_t i = 0; i < n; i++) {
		struct kymo_engine *engine = task->engines.items[event->is_reversed ? n - 1 - i : i];

		if (is_to_be_told(hub, engine, event))
			tell_engine(hub, task, engine, event);
	}
	end_event(hub, task);
}

void hub_report_owed(struct kymo_hub *hub, struct task *task, bool with_steps)
{
	static const struct hub_event none;
	bool is_any = false;

	for (size_t i = 0; i < task->engines.n; i++)
		is_any |= task->engines.items[i]->owes_report || (with_steps && task->engines.items[i]->owes_step);
	if (!is_any)
		return;
	begin_event(hub, task);
	for (size_t i = 0, n = task->engines.n; i < n; i++) {
		struct kymo_engine *engine = task->engines.items[i];
		bool is_owed = engine->owes_report || (with_steps && engine->owes_step);

		if (!is_owed || !is_to_be_told(hub, engine, &none))
			continue;
		engine->owes_report = false;
		if (engine->wants == KYMO_ACTION_INTERRUPT || engine->wants == KYMO_ACTION_REPORT)
			engine->wants = KYMO_ACTION_RESUME;
		engine->owes_step &= !with_steps;
		if (engine->events & KYMO_EVENT_QUIESCE)
			quiesce(hub, engine, so_far(task), 0);
	}
	end_event(hub, task);
}

/* ---- each event ------------------------------------------------------------------------------ */

static unsigned int call_entry(struct kymo_engine *engine, enum kymo_action action, struct hub_event *event)
{
	return engine->ops->syscall_entry ? engine->ops->syscall_entry(engine, engine->data, action, event->report)
					  : KYMO_ACTION_RESUME;
}

static unsigned int call_exit_of_call(struct kymo_engine *engine, enum kymo_action action, struct hub_event *event)
{
	return engine->ops->syscall_exit ? engine->ops->syscall_exit(engine, engine->data, action, event->report)
					 : KYMO_ACTION_RESUME;
}

static void abort_or_not(struct hub_event *event, unsigned int verdict)
{
	struct kymo_syscall_report *report = event->report;

	report->is_aborted |= verdict == KYMO_SYSCALL_ABORT;
}

void hub_report_syscall(struct kymo_hub *hub, struct task *task, unsigned int event)
{
	bool is_entry = event == KYMO_EVENT_SYSCALL_ENTRY;
	struct hub_event it = { .event = event, .is_reversed = is_entry, .report = &task->call };

	if (hub_own_signal_is_sent(task))
		return;
	it.call = is_entry ? call_entry : call_exit_of_call;
	it.verdict = is_entry ? abort_or_not : NULL;
	tell_all(hub, task, &it);
}

static unsigned int call_clone(struct kymo_engine *engine, enum kymo_action action, struct hub_event *event)
{
	return engine->ops->clone ? engine->ops->clone(engine, engine->data, action, event->report)
				  : KYMO_ACTION_RESUME;
}

void hub_report_clone(struct kymo_hub *hub, struct task *task, const struct kymo_clone_report *report)
{
	struct kymo_clone_report copy = *report;

	tell_all(hub, task, &(struct hub_event){ .event = KYMO_EVENT_CLONE, .call = call_clone, .report = &copy });
}

static unsigned int call_exec(struct kymo_engine *engine, enum kymo_action action, struct hub_event *event)
{
	return engine->ops->exec ? engine->ops->exec(engine, engine->data, action, event->report) : KYMO_ACTION_RESUME;
}

/* The first one whose engines were not asked about yet. */
static struct hub_guest *next_guest(const struct task *task, size_t *i)
{
	while (*i < task->engines.n) {
		const struct kymo_engine *engine = task->engines.items[(*i)++];
		bool is_new = engine->guest && !engine->is_detached;

		for (size_t j = 0; is_new && j + 1 < *i; j++)
			is_new = task->engines.items[j]->guest != engine->guest;
		if (is_new)
			return engine->guest;
	}
	return NULL;
}

static void detach_guest(struct kymo_hub *hub, const struct task *task, const struct hub_guest *guest)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (task->engines.items[i]->guest == guest && !task->engines.items[i]->is_detached)
			hub_detach_engine(hub, task->engines.items[i]);
}

/* With the lock, which is given up while the guest answers. */
static bool proves(struct kymo_hub *hub, struct hub_guest *guest, pid_t tid)
{
	bool is_proven;

	guest->hooks->get(guest);
	pthread_mutex_unlock(&hub->lock);
	is_proven = guest->hooks->proves(guest, tid);
	guest->hooks->put(guest);
	pthread_mutex_lock(&hub->lock);
	return is_proven;
}

/* The client that has the process frozen, or NULL. */
static struct hub_guest *freezing_guest(const struct hub_process *process)
{
	return process->owner ? process->owner->guest : NULL;
}

/* What waits in the queue for it finds no freeze. It may have let go, or have gone, while it was asked. */
static void lose_owner(struct kymo_hub *hub, const struct hub_process *process, struct hub_guest *guest)
{
	if (freezing_guest(process) != guest)
		return;
	hub_freeze_end(hub, &guest->owner);
	guest->hooks->lose(guest);
}

static bool has_guests(const struct task *task)
{
	size_t i = 0;

	return next_guest(task, &i) || freezing_guest(task->process);
}

static void lose_guests(struct kymo_hub *hub, const struct task *task)
{
	struct hub_guest *guest;
	size_t i = 0;

	while ((guest = next_guest(task, &i)))
		detach_guest(hub, task, guest);
	guest = freezing_guest(task->process);
	if (guest)
		lose_owner(hub, task->process, guest);
}

void hub_report_to_guests(struct kymo_hub *hub, struct task *task)
{
	struct hub_guest *guest;
	size_t i = 0;

	begin_event(hub, task);
	while ((guest = next_guest(task, &i)))
		if (!proves(hub, guest, task->tid))
			detach_guest(hub, task, guest);
	guest = freezing_guest(task->process);
	if (guest && !proves(hub, guest, task->tid))
		lose_owner(hub, task->process, guest);
	hub_forget_memory(task->process);
	/* Of this very program, also if it executes another one before it is asked for. */
	if (has_guests(task) && !hub_memory_of(task->process))
		lose_guests(hub, task);
	end_event(hub, task);
}

void hub_report_exec(struct kymo_hub *hub, struct task *task, pid_t former_tid)
{
	struct kymo_exec_report report = { former_tid };

	hub_own_signal_forget(task);
	tell_all(hub, task, &(struct hub_event){ .event = KYMO_EVENT_EXEC, .call = call_exec, .report = &report });
}

static unsigned int call_exit(struct kymo_engine *engine, enum kymo_action action, struct hub_event *event)
{
	return engine->ops->exit ? engine->ops->exit(engine, engine->data, action, event->report) : KYMO_ACTION_RESUME;
}

void hub_report_exit(struct kymo_hub *hub, struct task *task, int status)
{
	struct kymo_exit_report report = { status };

	tell_all(hub, task, &(struct hub_event){ .event = KYMO_EVENT_EXIT, .call = call_exit, .report = &report });
}

static unsigned int call_jctl(struct kymo_engine *engine, enum kymo_action action, struct hub_event *event)
{
	return engine->ops->jctl ? engine->ops->jctl(engine, engine->data, action, event->report) : KYMO_ACTION_RESUME;
}

void hub_report_jctl(struct kymo_hub *hub, struct task *task, int signal)
{
	struct kymo_jctl_report report = { signal };

	tell_all(hub, task, &(struct hub_event){ .event = KYMO_EVENT_JCTL, .call = call_jctl, .report = &report });
}

static unsigned int call_signal(struct kymo_engine *engine, enum kymo_action action, struct hub_event *event)
{
	struct kymo_signal_report *report = event->report;

	return engine->ops->signal ? engine->ops->signal(engine, engine->data, action, report)
				   : KYMO_ACTION_RESUME | report->verdict;
}

static void next_verdict(struct hub_event *event, unsigned int verdict)
{
	struct kymo_signal_report *report = event->report;

	if (verdict >= KYMO_SIGNAL_DELIVER && verdict <= KYMO_SIGNAL_REQUEUE)
		report->verdict = verdict;
}

void hub_report_signal(struct kymo_hub *hub, struct task *task, struct kymo_signal_report *report,
		       const struct kymo_engine *skip)
{
	struct hub_event event = {
		.event = report->kind, .skip = skip, .call = call_signal, .verdict = next_verdict, .report = report
	};

	tell_all(hub, task, &event);
}

void hub_report_trap(struct kymo_hub *hub, struct task *task, struct kymo_signal_report *report,
		     bool (*is_for)(const struct kymo_engine *engine, const void *report))
{
	tell_all(hub, task,
		 &(struct hub_event){
			 .event = KYMO_EVENT_SIGNAL, .is_for = is_for, .call = call_signal, .report = report });
}

/* ---- the end --------------------------------------------------------------------------------- */

static unsigned int call_death(struct kymo_engine *engine, enum kymo_action action, struct hub_event *event)
{
	return engine->ops->death ? engine->ops->death(engine, engine->data, event->report) : KYMO_ACTION_RESUME;
}

void hub_report_death(struct kymo_hub *hub, struct task *task, int status)
{
	struct kymo_death_report report = { status };

	task->end.was_told = true;
	tell_all(hub, task, &(struct hub_event){ .event = KYMO_EVENT_DEATH, .call = call_death, .report = &report });
}

static unsigned int call_reap(struct kymo_engine *engine, enum kymo_action action, struct hub_event *event)
{
	if (engine->ops->reap)
		engine->ops->reap(engine, engine->data, event->report);
	return KYMO_ACTION_RESUME;
}

void hub_report_reap(struct kymo_hub *hub, struct task *task, int status)
{
	struct kymo_reap_report report = { status, task->end.superseded_by };

	task->end.is_reaping = true;
	tell_all(hub, task, &(struct hub_event){ .event = KYMO_EVENT_REAP, .call = call_reap, .report = &report });
	hub_forget_task(hub, task);
}
