/* Threads and processes of a hub: seizing them, letting them run, letting them go. */
#include "proc/hub_trap.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

#define SEIZE_TRIES 20
#define EXIT_HOLD_NS (KYMO_EXIT_HOLD_MS * 1000000ull)

/* ---- processes --------------------------------------------------------------------------------------------------------- */

struct hub_process *hub_find_process(const struct kymo_hub *hub, pid_t pid)
{
	struct hub_process *process = hub->processes;

	while (process && (process->pid != pid || process->has_ended))
		process = process->next;
	return process;
}

void hub_memory_put(struct hub_memory *memory)
{
	if (!memory || atomic_fetch_sub(&memory->refs, 1) > 1)
		return;
	kymo_process_destroy(memory->process);
	free(memory);
}

void hub_forget_memory(struct hub_process *process)
{
	hub_memory_put(process->memory);
	process->memory = NULL;
}

struct hub_memory *hub_memory_of(struct hub_process *process)
{
	struct hub_memory *memory = process->memory ? NULL : calloc(1, sizeof(*memory));
	struct kymo_error *refusal = NULL, *error;

	if (!memory)
		return process->memory;
	error = kymo_process_create_held(process->pid, &memory->process, &refusal);
	if (error) {
		free(memory);
	} else {
		atomic_init(&memory->refs, 1);
		process->memory = memory;
	}
	kymo_error_destroy(error);
	kymo_error_destroy(refusal);
	return process->memory;
}

struct hub_process *hub_get_process(struct kymo_hub *hub, pid_t pid)
{
	struct hub_process *process = hub_find_process(hub, pid);

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = pid;
	process->next = hub->processes;
	hub->processes = process;
	return process;
}

void hub_put_process(struct kymo_hub *hub, struct hub_process *process)
{
	struct hub_process **at = &hub->processes;

	if (process->tasks || process->is_launched)
		return;
	while (*at != process)
		at = &(*at)->next;
	*at = process->next;
	hub_memory_put(process->memory);
	free(process);
}

/* ---- the table of threads ------------------------------------------------------------------------------------------------ */

static struct task **bucket_of(struct kymo_hub *hub, pid_t tid)
{
	return &hub->buckets[(unsigned int)tid % TASK_BUCKETS];
}

struct task *hub_find(const struct kymo_hub *hub, pid_t tid)
{
	struct task *task = hub->buckets[(unsigned int)tid % TASK_BUCKETS];

	while (task && task->tid != tid)
		task = task->in_bucket;
	return task;
}

static void into_bucket(struct kymo_hub *hub, struct task *task)
{
	struct task **bucket = bucket_of(hub, task->tid);

	task->in_bucket = *bucket;
	*bucket = task;
}

static void out_of_bucket(struct kymo_hub *hub, struct task *task)
{
	struct task **at = bucket_of(hub, task->tid);

	while (*at != task)
		at = &(*at)->in_bucket;
	*at = task->in_bucket;
}

struct task *hub_add_task(struct kymo_hub *hub, struct hub_process *process, pid_t tid)
{
	struct task *task = calloc(1, sizeof(*task));

	if (!task)
		return NULL;
	task->tid = tid;
	task->watch_entry = -1;
	task->process = process;
	task->in_process = process->tasks;
	task->is_claimed = process->holder && !process->is_first_held;
	process->tasks = task;
	into_bucket(hub, task);
	hub->n_tasks++;
	return task;
}

void hub_rekey_task(struct kymo_hub *hub, struct task *task, pid_t tid)
{
	out_of_bucket(hub, task);
	task->tid = tid;
	into_bucket(hub, task);
}

void hub_release_leavers(struct kymo_hub *hub, struct task *task)
{
	for (size_t i = 0; i < task->leavers.n; i++) {
		task->leavers.items[i]->task = NULL;
		hub_drop(hub, task->leavers.items[i]);
	}
	task->leavers.n = 0;
}

void hub_forget_task(struct kymo_hub *hub, struct task *task)
{
	struct task **at = &task->process->tasks;

	hub_watches_forget(hub, task);
	for (size_t i = 0; i < task->engines.n; i++) {
		hub_breakpoints_drop(hub, task->engines.items[i]);
		task->engines.items[i]->task = NULL;
		task->engines.items[i]->is_detached = true;
		hub_drop(hub, task->engines.items[i]);
	}
	hub_release_leavers(hub, task);
	for (size_t i = 0; i < hub->kicked.n; i++)
		if (hub->kicked.items[i] == task)
			hub->kicked.items[i--] = hub->kicked.items[--hub->kicked.n];
	hub_end_hold(hub, task);
	hub->n_tasks--;
	out_of_bucket(hub, task);
	while (*at != task)
		at = &(*at)->in_process;
	*at = task->in_process;
	if (!task->process->tasks)
		hub_space_leave(hub, task->process);
	hub_put_process(hub, task->process);
	kymo_vec_deinit(&task->engines);
	kymo_vec_deinit(&task->leavers);
	kymo_vec_deinit(&task->sent);
	hub_forget_borrow(task);
	free(task);
	pthread_cond_broadcast(&hub->changed);
}

/* ---- seizing --------------------------------------------------------------------------------------------------------------- */

/*
 * What an EPERM means. 0: it is ours already, made by a thread that is followed, and its first stop has not been fetched. -EAGAIN: nobody was found, so whoever it was may be
 * gone.
 */
static int look_again(pid_t tid)
{
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(tid, &info);
	int err;

	if (error)
		err = -ESRCH;
	else if (info.state == 'Z' || info.state == 'X')
		err = -ESRCH;
	else if (info.tracer == gettid())
		err = 0;
	else
		err = info.tracer ? -EBUSY : -EAGAIN;
	kymo_error_destroy(error);
	return err;
}

/* 0: seized; 1: was so already. */
static int seize(pid_t tid)
{
	int err = 0;

	for (int i = 0; i < SEIZE_TRIES; i++) {
		if (!ptrace(PTRACE_SEIZE, tid, 0, HUB_OPTIONS))
			return 0;
		err = -errno;
		if (err != -EPERM)
			return err;
		err = look_again(tid);
		if (err == 0)
			return 1;
		if (err != -EAGAIN)
			return err;
		nanosleep(&(struct timespec){ 0, 500000 }, NULL);
	}
	return -EPERM;
}

static pid_t process_of(pid_t tid)
{
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(tid, &info);
	pid_t pid = error ? 0 : info.tgid;

	kymo_error_destroy(error);
	return pid;
}

int hub_seize(struct kymo_hub *hub, pid_t tid, pid_t pid, struct task **ret)
{
	struct task *task = hub_find(hub, tid);
	struct hub_process *process;
	int seized;

	if (task) {
		*ret = task;
		return task->was_death_told ? -ESRCH : 0;
	}
	pid = pid || tid <= 0 ? pid : process_of(tid);
	if (!pid)
		return -ESRCH;
	if (tid == hub->waker)
		return -EPERM;
	seized = seize(tid);
	if (seized < 0)
		return seized;
	process = hub_get_process(hub, pid);
	task = process ? hub_add_task(hub, process, tid) : NULL;
	if (!task) {
		if (process)
			hub_put_process(hub, process);
		return -ENOMEM;		/* the kernel lets it go with the hub */
	}
	task->is_newborn = task->has_maker = seized == 1;
	*ret = task;
	return 0;
}

int hub_seize_threads(struct kymo_hub *hub, pid_t pid)
{
	struct dirent *entry;
	int n = 0, err = 0;
	char name[64];
	DIR *tasks;

	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	tasks = opendir(name);
	if (!tasks)
		return -ESRCH;
	while (!err && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);
		struct task *task;

		if (tid <= 0 || hub_find(hub, tid))
			continue;
		err = hub_seize(hub, tid, pid, &task);
		n += !err;
		if (err == -ESRCH)
			err = 0;
	}
	closedir(tasks);
	return err ? err : n;
}

static bool is_filtered(pid_t tid)
{
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(tid, &info);
	bool is = !error && info.seccomp;

	kymo_error_destroy(error);
	return is;
}

void hub_abandon(const struct kymo_hub *hub, pid_t tid)
{
	if (hub->has_filters && is_filtered(tid))
		kill(tid, SIGKILL);
	ptrace(PTRACE_DETACH, tid, 0, 0);
}

/* ---- running --------------------------------------------------------------------------------------------------------------- */

unsigned int hub_events(const struct task *task)
{
	unsigned int events = 0;

	for (size_t i = 0; i < task->engines.n; i++)
		if (!task->engines.items[i]->is_detached)
			events |= task->engines.items[i]->events;
	return events;
}

/* Whether it has to stop at each system call; else at picked ones, or at none. */
static bool wants_all_calls(const struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++) {
		const struct kymo_engine *engine = task->engines.items[i];
		bool is_content = task->process->has_filter && engine->events & KYMO_MASK_PICKED_CALLS && !engine->guest;

		if (!engine->is_detached && engine->events & EVENTS_OF_STOPS && !is_content)
			return true;
	}
	return false;
}

/* Under a filter: the exit is always fetched where the entry was, so that the stops of a call are known to be one call's. */
static bool owes_exit(const struct task *task)
{
	return task->process->has_filter && task->call.is_entry_known;
}

static bool does_anybody_want(const struct task *task, enum kymo_action strongest, enum kymo_action weakest)
{
	for (size_t i = 0; i < task->engines.n; i++) {
		const struct kymo_engine *engine = task->engines.items[i];

		if (!engine->is_detached && engine->wants >= strongest && engine->wants <= weakest)
			return true;
	}
	return false;
}

static bool is_anything_owed(const struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (!task->engines.items[i]->is_detached && task->engines.items[i]->owes_report)
			return true;
	return false;
}

static bool has_engines(const struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (!task->engines.items[i]->is_detached)
			return true;
	return false;
}

bool hub_is_held(const struct task *task)
{
	return task->process->is_held || task->has_maker || hub_is_still(task) || does_anybody_want(task, KYMO_ACTION_STOP, KYMO_ACTION_STOP);
}

bool hub_is_interrupted(const struct task *task)
{
	return does_anybody_want(task, KYMO_ACTION_INTERRUPT, KYMO_ACTION_INTERRUPT);
}

/* Whether it is to be the hub's any longer. */
static bool is_wanted(const struct task *task)
{
	return has_engines(task) || task->process->has_filter || hub_space_keeps(task);
}

/* Whether one that does not stand still has to be interrupted for what engines want. */
static bool has_to_stop(const struct task *task)
{
	bool is_listening = task->state == TASK_LISTENING;

	return (!is_wanted(task) && !task->process->is_held) || is_anything_owed(task) || task->is_claimed || (!is_listening && task->has_stale_watch) ||
	       does_anybody_want(task, KYMO_ACTION_STOP, is_listening ? KYMO_ACTION_REPORT : KYMO_ACTION_BLOCKSTEP) ||
	       (!is_listening && !task->traces_calls && wants_all_calls(task));
}

/* What is wanted once becomes a promise to tell. The strongest. */
static enum kymo_action take_wishes(struct task *task)
{
	enum kymo_action strongest = KYMO_ACTION_RESUME;

	for (size_t i = 0; i < task->engines.n; i++) {
		struct kymo_engine *engine = task->engines.items[i];

		if (engine->is_detached || engine->wants >= KYMO_ACTION_RESUME)
			continue;
		if (engine->wants < strongest)
			strongest = engine->wants;
		engine->owes_report |= engine->wants <= KYMO_ACTION_REPORT;
		engine->owes_step |= engine->wants == KYMO_ACTION_SINGLESTEP || engine->wants == KYMO_ACTION_BLOCKSTEP;
		engine->wants = KYMO_ACTION_RESUME;
	}
	return strongest;
}

static bool is_step_owed(const struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (!task->engines.items[i]->is_detached && task->engines.items[i]->owes_step)
			return true;
	return false;
}

static bool is_at_call(const struct task *task)
{
	const struct hub_memory *memory = hub_memory_of(task->process);
	struct user_regs_struct registers;
	uint8_t code[KYMO_REMOTE_CALL];

	if (!memory || kymo_get_registers(task->tid, &registers))
		return false;
	return kymo_remote_restarts(&registers) ||
	       (!kymo_process_read(memory->process, registers.rip, code, sizeof(code)) && kymo_remote_is_call(code));
}

/* The stop a step begins at: within a system call already, or before an instruction. */
static long step_request(struct task *task, bool is_block)
{
	unsigned int events = hub_events(task);

	task->steps = true;
	task->steps_call = task->stop == STOP_ENTRY || owes_exit(task) || (events & EVENTS_OF_STOPS && task->stop != STOP_EVENT && is_at_call(task));
	if (task->steps_call)
		return PTRACE_SYSCALL;
	return is_block ? PTRACE_SINGLEBLOCK : PTRACE_SINGLESTEP;
}

void hub_interrupt(struct task *task)
{
	task->was_interrupted = true;
	ptrace(PTRACE_INTERRUPT, task->tid, 0, 0);
}

bool hub_fetch(struct kymo_hub *hub, struct task *task, uint64_t timeout_ns, int *status_ret)
{
	uint64_t deadline = timeout_ns ? kymo_now_ns() + timeout_ns : 0;
	struct hub_status early = { .tid = task->tid };
	pid_t got = 0;

	if (!kymo_vec_reserve(&hub->early, hub->early.n + 1))
		return false;	/* it is told in its turn */
	for (unsigned int spins = 0; !got; spins++) {
		got = waitpid(task->tid, &early.status, __WALL | WNOHANG);
		if (got || !timeout_ns || kymo_now_ns() >= deadline)
			break;
		kymo_wait_a_little(spins);
	}
	if (got != task->tid)
		return false;
	kymo_vec_push(&hub->early, early);
	task->is_fetched = true;
	*status_ret = early.status;
	return true;
}

static bool is_event_stop(int status)
{
	return WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP;
}

bool hub_swallow(struct kymo_hub *hub, struct task *task, int *group_ret)
{
	struct hub_status early = { .tid = task->tid };
	pid_t got;

	ptrace(PTRACE_INTERRUPT, task->tid, 0, 0);
	ptrace(PTRACE_CONT, task->tid, 0, 0);
	while ((got = waitpid(task->tid, &early.status, __WALL)) < 0 && errno == EINTR)
		;
	if (got == task->tid && is_event_stop(early.status)) {
		task->stop = STOP_TRAP;
		*group_ret = WSTOPSIG(early.status) == SIGTRAP ? 0 : WSTOPSIG(early.status);
		return true;
	}
	task->state = TASK_RUNNING;
	if (got == task->tid && kymo_vec_push(&hub->early, early))
		task->is_fetched = true;
	return false;
}

static void let_go(struct kymo_hub *hub, struct task *task)
{
	hub_space_wake(task);
	hub_watches_clear(hub, task, true);
	ptrace(PTRACE_DETACH, task->tid, 0, task->stop == STOP_SIGNAL ? task->signal : 0);
	hub_forget_task(hub, task);
}

/* From its exit event. What comes now is its end. */
static void go_to_end(struct kymo_hub *hub, struct task *task)
{
	hub_end_hold(hub, task);
	task->state = TASK_ENDING;
	ptrace(PTRACE_CONT, task->tid, 0, 0);
	hub_report_death(hub, task, task->end_status);
}

/*
 * An interrupt that the stop at an entry has taken the place of is told no more, but a call that waits ends because of it all the same. So there has to be another stop, in which that is
 * repaired.
 */
static bool has_stale_interrupt(const struct task *task)
{
	return task->stop == STOP_ENTRY && task->ends_interrupt;
}

/* To tell a step. Whether the group stop lasts, nobody knows. */
static bool has_left_group_stop(const struct task *task)
{
	return task->stop == STOP_SIGNAL && task->group_stop;
}

/* Only on its way out of another stop does the kernel look whether a call of before is to be made again, and whether the process is stopped. */
static void come_back(struct task *task)
{
	task->state = TASK_RUNNING;
	task->traces_calls = false;
	hub_interrupt(task);
	ptrace(PTRACE_CONT, task->tid, 0, 0);
}

static void go_on(struct kymo_hub *hub, struct task *task)
{
	enum kymo_action wish = take_wishes(task);
	bool wants_step = wish == KYMO_ACTION_SINGLESTEP || wish == KYMO_ACTION_BLOCKSTEP || is_step_owed(task);
	bool traces_calls = wants_all_calls(task);
	long request = traces_calls || owes_exit(task) ? PTRACE_SYSCALL : PTRACE_CONT;
	int signal = task->stop == STOP_SIGNAL ? task->signal : 0;

	hub_space_wake(task);
	hub_watches_clear(hub, task, false);
	task->traces_calls = traces_calls;
	/* Before it runs. One that has left a group stop, the kernel takes back to where its process is; one that is claimed would make an interrupted call again, and be at its entry. */
	if (has_left_group_stop(task) || task->is_claimed)
		hub_interrupt(task);
	if (task->stop == STOP_TRAP && task->group_stop) {
		task->state = TASK_LISTENING;
		ptrace(PTRACE_LISTEN, task->tid, 0, 0);
	} else {
		task->state = TASK_RUNNING;
		task->steps = task->steps_call = false;
		if (!signal && hub_step_over(hub, task, wants_step))
			return;		/* another stop has come, which serves what is wanted */
		if (wants_step)
			request = step_request(task, wish == KYMO_ACTION_BLOCKSTEP);
		if (ptrace(request, task->tid, 0, signal) && errno == EIO && request == PTRACE_SINGLEBLOCK)
			ptrace(PTRACE_SINGLESTEP, task->tid, 0, signal);
	}
	if (wish <= KYMO_ACTION_REPORT || has_stale_interrupt(task))
		hub_interrupt(task);
}

/* Those that have left a thread that stays traced are through when it runs. */
static void release_left(struct kymo_hub *hub, struct task *task)
{
	if (!task->leavers.n)
		return;
	hub_release_leavers(hub, task);
	pthread_cond_broadcast(&hub->changed);
}

void hub_settle(struct kymo_hub *hub, struct task *task)
{
	if (task->state != TASK_STOPPED)
		return;
	if (task->stop == STOP_ENDING) {
		if (hub_is_held(task) && !task->hold_deadline_ns) {
			task->hold_deadline_ns = kymo_now_ns() + EXIT_HOLD_NS;
			hub->n_ending++;
		}
		if (!hub_is_held(task))
			go_to_end(hub, task);
		return;
	}
	if (hub_is_held(task)) {
		hub_space_rest(hub, task);
		return;
	}
	if (task->stop == STOP_AWAY && is_wanted(task))
		come_back(task);
	else if (is_wanted(task) || has_stale_interrupt(task) || task->is_claimed)
		go_on(hub, task);
	else if (!hub_waits_for_step(task))
		return let_go(hub, task);
	if (task->process->has_filter && !has_engines(task))
		release_left(hub, task);
}

void hub_attend(struct kymo_hub *hub, struct task *task)
{
	hub_purge_engines(hub, task);
	if (task->borrow)
		return;		/* it is looked at when it has come back */
	switch (task->state) {
	case TASK_RUNNING:
	case TASK_LISTENING:
		if (!task->was_interrupted && !task->is_newborn && has_to_stop(task))
			hub_interrupt(task);
		if (task->process->has_filter)
			release_left(hub, task);
		return;
	case TASK_STOPPED:
		hub_report_owed(hub, task, false);
		hub_settle(hub, task);
		return;
	case TASK_ENDING:
		return;
	}
}

void hub_break_stops(struct task *task)
{
	for (size_t i = 0; i < task->engines.n; i++)
		if (task->engines.items[i]->wants == KYMO_ACTION_STOP)
			task->engines.items[i]->wants = KYMO_ACTION_RESUME;
}

void hub_end_hold(struct kymo_hub *hub, struct task *task)
{
	hub->n_ending -= task->hold_deadline_ns != 0;
	task->hold_deadline_ns = 0;
}

/* ---- the end of a hub ------------------------------------------------------------------------------------------------------ */

/* It could not make picked calls without us. */
static void end_filtered(struct hub_process *process)
{
	if (!process->has_filter || process->was_killed)
		return;
	process->was_killed = true;
	kill(process->pid, SIGKILL);
}

static size_t detach_all(struct kymo_hub *hub)
{
	size_t left = 0;

	for (size_t i = 0; i < TASK_BUCKETS; i++)
		for (struct task *task = hub->buckets[i]; task; task = task->in_bucket) {
			task->has_maker = false;
			end_filtered(task->process);
			for (size_t j = task->engines.n; j-- > 0;)
				hub_detach_engine(hub, task->engines.items[j]);
			hub_kick(hub, task);
			left += task->state != TASK_ENDING;
		}
	return left;
}

static void release_processes(struct kymo_hub *hub)
{
	for (struct hub_process *process = hub->processes, *next; process; process = next) {
		next = process->next;
		if (process->is_held)
			kill(process->pid, SIGKILL);
		process->is_launched = process->is_held = false;
		hub_put_process(hub, process);
	}
}

void hub_release_all(struct kymo_hub *hub, int timeout_ms)
{
	uint64_t deadline = kymo_now_ns() + (uint64_t)timeout_ms * 1000000;

	hub_space_clear_all(hub);
	release_processes(hub);
	for (unsigned int spins = 0; detach_all(hub) && kymo_now_ns() < deadline; spins++) {
		int status;
		pid_t tid;

		while (hub->kicked.n) {
			struct task *task = hub->kicked.items[--hub->kicked.n];

			task->is_kicked = false;
			hub_attend(hub, task);
		}
		if (hub->early.n) {	/* what it was stopped by before, which nobody else will tell */
			struct hub_status early = hub->early.items[--hub->early.n];

			tid = early.tid;
			status = early.status;
		} else {
			tid = waitpid(-1, &status, __WALL | __WNOTHREAD | WNOHANG);
		}
		if (tid > 0 && tid != hub->waker) {
			hub_dispatch(hub, tid, status);
			spins = 0;
		}
		hub_look_at_clock(hub);
		kymo_wait_a_little(spins);
	}
	/* Whoever sleeps so that it can't be stopped: the kernel lets it go when this thread ends. */
	for (size_t i = 0; i < TASK_BUCKETS; i++)
		while (hub->buckets[i])
			hub_forget_task(hub, hub->buckets[i]);
	for (size_t i = 0; i < hub->strangers.n; i++) {
		hub_space_clean_stranger(hub, hub->strangers.items[i].tid);
		hub_abandon(hub, hub->strangers.items[i].tid);
	}
	hub->strangers.n = 0;
	hub_leave_keeper(hub);
	release_processes(hub);
	hub_bury(hub);
}
