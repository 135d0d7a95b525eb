/* Seizing threads while one of their process executes something: docs/internals/engines.md, hazard 17, and what a hub
 * that looks by ids is told of an exec. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>

#include "arch/breakable.h"
#include "base/error.h"
#include "base/io.h"
#include "hub/hub.h"
#include "fixture.h"
#include "hub/local.h"
#include "hub/thread/seize.h"
#include "proc/process.h"
#include "proc/state.h"
#include "proc/stop.h"
#include "procfs/threads.h"

/* ---- a call that is broken off --------------------------------------------------------------- */

static atomic_uint n_broken;

static void break_off(int number, siginfo_t *info, void *context)
{
	n_broken++;
	kymo_break_call(context);
}

/* A signal each `period_ns`, to this thread. */
static timer_t begin_breaking(long period_ns)
{
	struct sigaction action = { .sa_sigaction = break_off, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct itimerspec period = { { 0, period_ns }, { 0, period_ns } };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	timer_t timer;

	n_broken = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, NULL), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &period, NULL), 0);
	return timer;
}

static void a_call_that_is_broken_off_was_not_made(void **state)
{
	timer_t timer = begin_breaking(20000);
	int ends[2];
	char byte;

	assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
	while (n_broken < 2000) {
		long result = kymo_breakable_call(SYS_write, ends[1], (long)(uintptr_t) "x", 1, 0, 0);

		assert_true(result == 1 || result == -EINTR);
		assert_int_equal(read(ends[0], &byte, 1), result == 1 ? 1 : -1);
	}
	timer_delete(timer);
}

static void a_call_that_the_kernel_would_make_again_ends(void **state)
{
	timer_t timer = begin_breaking(1000000);
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(kymo_breakable_call(SYS_read, ends[0], (long)(uintptr_t)&byte, 1, 0, 0), -EINTR);
	timer_delete(timer);
}

static void a_timer_is_had_where_no_signal_may_wait_any_more(void **state)
{
	struct hub_seizer seizer = { 0 };
	struct rlimit limit, none, now;

	assert_int_equal(getrlimit(RLIMIT_SIGPENDING, &limit), 0);
	none = (struct rlimit){ 0, limit.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &none), 0);
	hub_seizing_begins(&seizer);
	hub_seizing_ends(&seizer);
	assert_int_equal(getrlimit(RLIMIT_SIGPENDING, &now), 0);
	assert_int_equal(setrlimit(RLIMIT_SIGPENDING, &limit), 0);
	assert_true(seizer.has_timer);
	assert_int_equal(now.rlim_cur, 0);
	assert_true(now.rlim_max == limit.rlim_max);
	hub_seizer_deinit(&seizer);
}

/* ---- which thread executes ---------------------------------------------------------------------------- */

static void *nap_on(void *data)
{
	((struct shared *)data)->seen = gettid();
	for (;;)
		nap();
	return NULL;
}

static void *execute(void *data)
{
	struct shared *shared = data;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* which threads have each for themselves */
	shared->tid = gettid();
	while (!shared->go)
		nap();
	execl("/bin/sleep", "sleep", "1000", NULL);
	_exit(1);
}

/* The first thread, one that naps (`seen`), one that executes sleep (`tid`) when it is told to. */
static int executing(struct shared *shared)
{
	pthread_t thread;

	pthread_create(&thread, NULL, nap_on, shared);
	pthread_create(&thread, NULL, execute, shared);
	while (!shared->tid || !shared->seen)
		nap();
	shared->ready = 1;
	for (;;)
		nap();
	return 0;
}

static bool is_sleep(pid_t pid)
{
	char name[64], comm[16] = "";
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/comm", pid);
	file = fopen(name, "r");
	if (!file)
		return false;
	if (!fgets(comm, sizeof(comm), file))
		comm[0] = '\0';
	fclose(file);
	return !strcmp(comm, "sleep\n");
}

static void runs_as_sleep(pid_t pid)
{
	eventually(is_sleep(pid));
	eventually(tracer_of(pid) == 0 && state_of(pid) == 'S');
}

/* ---- seizing meanwhile ----------------------------------------------------------------------- */

struct meeting {
	struct fixture *f;
	bool with_first;
	int err;
};

/* On the hub's thread: the hub's threads can't end before this does. */
static void meet(void *data)
{
	struct meeting *meeting = data;
	struct fixture *f = meeting->f;
	struct kymo_engine *engine;

	if (meeting->with_first)
		kymo_engine_put(engine_of(f->hub, f->pid, &f->book, KYMO_EVENT_REAP));
	kymo_engine_put(engine_of(f->hub, f->shared->seen, &f->book, KYMO_EVENT_REAP));
	f->shared->go = 1;
	eventually(state_of(f->shared->seen) == 't'); /* killed, and before its end */
	meeting->err = kymo_engine_attach(f->hub, f->shared->tid, KYMO_ATTACH_CREATE, &ops, &f->other, &engine);
}

static void seizing_a_thread_that_executes_lets_those_end_that_it_waits_for(void **state)
{
	for (int i = 0; i < 10; i++) {
		struct kymo_engine *engine;
		struct meeting meeting = { .with_first = i % 2 };
		struct fixture f;

		begin(&f, executing);
		meeting.f = &f;
		kymo_hub_run(f.hub, meet, &meeting);
		assert_int_equal(meeting.err, i % 2 ? -EAGAIN : -ESRCH);
		engine = engine_of(f.hub, f.pid, &f.other, KYMO_EVENT_QUIESCE); /* the new program */
		eventually(is_sleep(f.pid));
		assert_int_equal(tracer_of(f.pid), f.hub->tid);
		assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_REPORT), 0);
		eventually(f.other.told[QUIESCE]);
		eventually(f.book.told[REAP] == (unsigned int)(1 + i % 2));
		kymo_engine_put(engine);
		kymo_hub_destroy(f.hub);
		runs_as_sleep(f.pid);
		end_with_kill(f.pid);
		munmap(f.shared, sizeof(*f.shared));
	}
}

static void a_process_that_executes_while_it_is_stopped_and_resumed_runs_on(void **state)
{
	for (int i = 0; i < 20; i++) {
		struct kymo_process *process;
		struct shared *shared = share();
		pid_t pid = child_of(executing, shared);

		eventually(shared->ready);
		assert_null(kymo_process_open(pid, &process));
		shared->go = 1;
		for (int k = 0; k < 10; k++) {
			kymo_error_destroy(kymo_process_stop(process));
			kymo_process_resume(process);
		}
		kymo_process_destroy(process);
		runs_as_sleep(pid);
		end_with_kill(pid);
		munmap(shared, sizeof(*shared));
	}
}

static void nothing_of_it_is_left_behind(void **state)
{
	sigset_t before, behind, waiting;
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, counting);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
	kymo_hub_destroy(f.hub);
	assert_int_equal(hub_create_here(&f.hub), 0);
	for (int i = 0; i < 100; i++) {
		engine = engine_of(f.hub, f.pid, &f.book, 0);
		kymo_engine_control(engine, KYMO_ACTION_DETACH);
		kymo_engine_put(engine);
		eventually((hub_pump(f.hub), tracer_of(f.pid) == 0));
	}
	for (int i = 0; i < 20; i++)
		assert_int_equal(nanosleep(&(struct timespec){ 0, 1000000 }, NULL), 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &behind), 0);
	assert_int_equal(sigpending(&waiting), 0);
	for (int i = SIGRTMIN; i <= SIGRTMAX; i++) {
		assert_int_equal(sigismember(&before, i), sigismember(&behind, i));
		assert_false(sigismember(&waiting, i));
	}
	end(&f);
}

/* ---- a hub that looks by ids ----------------------------------------------------------------- */

/* Until it is so, with this thread's hub at work. */
#define pumped_until(hub, condition) eventually((hub_pump(hub), condition))

/* With `holds` this thread's hub has stopped the first thread while the other one executes. That one has an engine if
 * it is `followed`. */
static void execute_beside(bool holds, bool followed)
{
	struct kymo_engine *first, *executing_one = NULL;
	struct shared *shared = share();
	struct book book = { 0 }, other = { 0 };
	pid_t pid = child_of(executing, shared);
	struct kymo_hub *hub;

	eventually(shared->ready);
	assert_int_equal(hub_create_here(&hub), 0);
	if (holds) {
		first = engine_of(hub, pid, &book, KYMO_EVENT_QUIESCE);
		kymo_engine_control(first, KYMO_ACTION_STOP);
		pumped_until(hub, book.told[QUIESCE]);
		kymo_engine_put(first);
	}
	if (followed)
		executing_one = engine_of(hub, shared->tid, &other, KYMO_EVENT_EXEC);
	shared->go = 1;
	pumped_until(hub, is_sleep(pid));
	if (followed) {
		pumped_until(hub, other.told[EXEC] == 1);
		assert_int_equal(kymo_engine_tid(executing_one), pid);
		kymo_engine_put(executing_one);
	}
	kymo_hub_destroy(hub);
	runs_as_sleep(pid);
	end_with_kill(pid);
	munmap(shared, sizeof(*shared));
}

static void a_held_thread_is_seen_to_be_killed_by_an_exec(void **state)
{
	for (int i = 0; i < 5; i++) {
		execute_beside(true, true);
		execute_beside(true, false);
	}
}

static void an_exec_is_seen_by_the_process_id(void **state)
{
	for (int i = 0; i < 5; i++)
		execute_beside(false, true);
}

static int making_one(struct shared *shared)
{
	pthread_t thread;

	shared->ready = 1;
	while (!shared->go)
		nap();
	pthread_create(&thread, NULL, nap_on, shared);
	shared->count = 1;
	for (;;)
		nap();
	return 0;
}

/* Until ids begin anew in the hub's table, so that what is made next is looked at before its maker. */
static int making_one_of_a_lower_bucket(struct shared *shared)
{
	pid_t pid;

	do {
		pid = vfork(); /* hundreds of them: a copy of a sanitizer's memory each time takes too long */
		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	} while (pid > 0 && pid % (int)TASK_BUCKETS);
	return making_one(shared);
}

static pid_t other_thread(pid_t pid)
{
	struct kymo_thread_infos threads;
	pid_t tid = 0;

	assert_null(kymo_thread_infos_read(pid, &threads));
	for (size_t i = 0; i < threads.n; i++)
		if (threads.items[i].tid != pid)
			tid = threads.items[i].tid;
	kymo_thread_infos_deinit(&threads);
	return tid;
}

/* It has made its thread, and both stand: the hub has yet to see it. */
static struct kymo_engine *begin_here(struct fixture *f, int (*run)(struct shared *shared), unsigned int events)
{
	struct kymo_engine *engine;

	begin(f, run);
	kymo_hub_destroy(f->hub);
	assert_int_equal(hub_create_here(&f->hub), 0);
	engine = engine_of(f->hub, f->pid, &f->book, events);
	f->shared->go = 1;
	eventually(other_thread(f->pid) && state_of(other_thread(f->pid)) == 't' && state_of(f->pid) == 't');
	return engine;
}

static void a_thread_kept_for_its_maker_keeps_no_other_waiting(void **state)
{
	struct kymo_engine *engine, *born;
	struct fixture f;

	engine = begin_here(&f, making_one_of_a_lower_bucket, KYMO_EVENT_CLONE);
	born = engine_of(f.hub, other_thread(f.pid), &f.other, 0);
	pumped_until(f.hub, f.book.told[CLONE] == 1);
	pumped_until(f.hub, f.shared->seen && f.shared->count);
	kymo_engine_put(engine);
	kymo_engine_put(born);
	end(&f);
}

/* The maker was killed with it, and tells of nothing any more. Without that being seen the end takes two seconds each
 * time. */
static void a_thread_that_is_killed_before_its_maker_has_told_ends(void **state)
{
	uint64_t shortest_ns = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		struct kymo_engine *engine;
		uint64_t begin_ns;
		struct fixture f;

		engine = begin_here(&f, making_one, KYMO_EVENT_CLONE | KYMO_EVENT_REAP);
		f.hub->waits_for_any = true;
		kill(f.pid, SIGKILL);
		for (int k = 0; k < 20; k++)
			nap();
		begin_ns = kymo_now_ns();
		pumped_until(f.hub, f.book.told[REAP] == 1);
		if (kymo_now_ns() - begin_ns < shortest_ns)
			shortest_ns = kymo_now_ns() - begin_ns;
		kymo_engine_put(engine);
		end(&f);
	}
	assert_true(shortest_ns < 1500000000);
}

static void *end_at_once(void *data)
{
	return data;
}

static int making_many(struct shared *shared)
{
	pthread_t thread;

	for (shared->ready = 1;;)
		if (!pthread_create(&thread, NULL, end_at_once, NULL))
			pthread_detach(thread);
	return 0;
}

/* What a thread makes while it is taken is untraced, so there is nothing that its maker has to tell. */
static void a_process_that_is_killed_while_it_is_stopped_and_makes_threads_ends(void **state)
{
	for (int i = 0; i < 40; i++) {
		struct shared *shared = share();
		pid_t pid = child_of(making_many, shared), killer;
		struct kymo_process *process;
		int status;

		eventually(shared->ready);
		assert_null(kymo_process_open(pid, &process));
		killer = fork();
		if (!killer) {
			nanosleep(&(struct timespec){ 0, i * 50000 }, NULL);
			kill(pid, SIGKILL);
			_exit(0);
		}
		kymo_error_destroy(kymo_process_stop(process));
		kymo_process_resume(process);
		eventually(kymo_process_ended(process, &status));
		waitpid(killer, &status, 0);
		kymo_process_destroy(process);
		munmap(shared, sizeof(*shared));
	}
}

/* ---- a stop that fails ----------------------------------------------------------------------- */

enum { CROWD = 2500 };

static void *nap_long(void *data)
{
	atomic_fetch_add(&((struct shared *)data)->count, 1);
	for (;;)
		sleep(1000);
	return NULL;
}

static int crowding(struct shared *shared)
{
	pthread_attr_t small;
	pthread_t thread;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	for (int i = 0; i < CROWD; i++)
		pthread_create(&thread, &small, nap_long, shared);
	while (shared->count < CROWD)
		nap();
	shared->ready = 1;
	for (;;)
		sleep(1000);
	return 0;
}

static int tracing_one(struct shared *shared)
{
	if (ptrace(PTRACE_SEIZE, shared->tid, 0, 0))
		return 1;
	shared->ready = 2;
	for (;;)
		pause();
	return 0;
}

/* But for the one. */
static bool is_any_left(pid_t pid, pid_t traced, pid_t tracer)
{
	struct kymo_thread_infos threads;
	bool is_any = false;

	assert_null(kymo_thread_infos_read(pid, &threads));
	assert_int_equal(threads.n, CROWD + 1);
	for (size_t i = 0; i < threads.n; i++)
		is_any |= threads.items[i].tracer != (threads.items[i].tid == traced ? tracer : 0);
	kymo_thread_infos_deinit(&threads);
	return is_any;
}

static void a_stop_that_fails_behind_thousands_leaves_none_of_them_standing(void **state)
{
	struct shared *shared = share();
	pid_t pid = child_of(crowding, shared), tracer;
	struct kymo_process *process;
	struct kymo_error *error;
	int status;

	eventually(shared->ready);
	shared->tid = other_thread(pid); /* the last one */
	tracer = child_of(tracing_one, shared);
	eventually(shared->ready == 2);
	assert_null(kymo_process_open(pid, &process));
	for (int i = 0; i < 3; i++) {
		error = kymo_process_stop_others(process);
		assert_non_null(error);
		assert_int_equal(error->code, KYMO_ERROR_BUSY);
		kymo_error_destroy(error);
		/* A thread that got no processor meanwhile is detached later; but that takes no turn for each. */
		for (int k = 0; k < 500 && is_any_left(pid, shared->tid, tracer); k++) {
			nap();
			assert_false(kymo_process_ended(process, &status));
		}
		assert_false(is_any_left(pid, shared->tid, tracer));
	}
	kymo_process_destroy(process);
	end_with_kill(tracer);
	end_with_kill(pid);
	munmap(shared, sizeof(*shared));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_is_broken_off_was_not_made),
		cmocka_unit_test(a_call_that_the_kernel_would_make_again_ends),
		cmocka_unit_test(seizing_a_thread_that_executes_lets_those_end_that_it_waits_for),
		cmocka_unit_test(a_process_that_executes_while_it_is_stopped_and_resumed_runs_on),
		cmocka_unit_test(nothing_of_it_is_left_behind),
		cmocka_unit_test(a_held_thread_is_seen_to_be_killed_by_an_exec),
		cmocka_unit_test(an_exec_is_seen_by_the_process_id),
		cmocka_unit_test(a_thread_kept_for_its_maker_keeps_no_other_waiting),
		cmocka_unit_test(a_thread_that_is_killed_before_its_maker_has_told_ends),
		cmocka_unit_test(a_process_that_is_killed_while_it_is_stopped_and_makes_threads_ends),
		cmocka_unit_test(a_timer_is_had_where_no_signal_may_wait_any_more),
		cmocka_unit_test(a_stop_that_fails_behind_thousands_leaves_none_of_them_standing),
	};

	kymo_take_seize_signal();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
