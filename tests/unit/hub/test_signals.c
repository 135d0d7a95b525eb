/* Job control and signals: hazards 6 and 7 of docs/internals/engines.md. The others are in test_hazards.c. */
#include <errno.h>

#include "fixture.h"
#include "hub/thread/task.h"

/* ---- 6: job control -------------------------------------------------------------------------- */

static void all_threads_stop_and_continue_with_their_process(void **state)
{
	struct fixture f;
	size_t n = 0;

	begin(&f, counting_by_threads);
	assert_int_equal(kymo_engine_attach_process(f.hub, f.pid, 0, &ops, &f.book, KYMO_EVENT_JCTL, &n), 0);
	assert_int_equal(n, 3);
	for (unsigned int i = 0; i < 20; i++) {
		kill(f.pid, SIGSTOP);
		eventually(f.book.told[JCTL] == 6 * i + 3);
		stands(&f);
		kill(f.pid, SIGCONT);
		eventually(f.book.told[JCTL] == 6 * i + 6);
		runs(&f);
	}
	assert_int_equal(kymo_engine_detach_all(f.hub, &ops, &f.book), 3);
	assert_int_equal(tracer_of(f.pid), 0);
	runs(&f);
	end(&f);
}

static void a_stopped_process_stays_stopped_when_engines_come_and_go(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, counting);
	kill(f.pid, SIGSTOP);
	eventually(state_of(f.pid) == 'T');
	assert_int_equal(
		kymo_engine_attach_process(f.hub, f.pid, 0, &ops, &f.book, KYMO_EVENT_QUIESCE | KYMO_EVENT_JCTL, NULL),
		0);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, 0, NULL, NULL, &engine), 0);
	eventually(f.book.told[JCTL] == 1);
	stands(&f);
	for (unsigned int i = 0; i < 10; i++) {
		kymo_engine_control(engine, KYMO_ACTION_REPORT);
		eventually(f.book.told[QUIESCE] >= i + 2); /* one was before JCTL */
		kymo_engine_control(engine, KYMO_ACTION_SINGLESTEP);
	}
	stands(&f);
	kymo_engine_control(engine, KYMO_ACTION_DETACH);
	assert_int_equal(kymo_engine_barrier(engine), -ESRCH);
	eventually(state_of(f.pid) == 'T');
	stands(&f);
	kill(f.pid, SIGCONT);
	runs(&f);
	kymo_engine_put(engine);
	end(&f);
}

static void a_process_that_is_held_while_it_is_continued_goes_on_later(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, counting);
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE | KYMO_EVENT_JCTL);
	kill(f.pid, SIGSTOP);
	eventually(f.book.told[JCTL] == 1);
	kymo_engine_control(engine, KYMO_ACTION_STOP);
	eventually(kymo_engine_control(engine, KYMO_ACTION_STOP) == 0);
	kill(f.pid, SIGCONT);
	stands(&f);
	kymo_engine_control(engine, KYMO_ACTION_RESUME);
	runs(&f);
	assert_int_equal(f.book.told[JCTL], 2);
	kymo_engine_put(engine);
	end(&f);
}

/* ---- 7: signals that engines send, change, hold back ----------------------------------------- */

static struct shared *of_handler;

static void on_usr(int signal, siginfo_t *info, void *context)
{
	of_handler->seen = info->si_code;
	of_handler->tid = info->si_value.sival_int;
	of_handler->go++;
}

static int handling(struct shared *shared)
{
	struct sigaction action = { .sa_sigaction = on_usr, .sa_flags = SA_SIGINFO };

	of_handler = shared;
	sigaction(SIGUSR1, &action, NULL);
	return counting(shared);
}

static size_t sent_to(struct fixture *f)
{
	size_t n;

	pthread_mutex_lock(&f->hub->lock);
	n = hub_find(f->hub, f->pid)->sent.n;
	pthread_mutex_unlock(&f->hub->lock);
	return n;
}

static void stop_once(struct fixture *f, struct kymo_engine *engine)
{
	unsigned int before = f->book.told[QUIESCE];

	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_REPORT), 0);
	eventually(f->book.told[QUIESCE] > before);
}

/* Blocks SIGUSR1 and SIGRTMIN, and takes what waits whenever it is told to. */
static int blocking(struct shared *shared)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &set, NULL);
	shared->ready = 1;
	while (!shared->is_over) {
		shared->count++;
		while (shared->go && sigtimedwait(&set, NULL, &(struct timespec){ 0 }) > 0)
			shared->seen++;
		nap();
	}
	return 0;
}

static void signals_that_never_arrive_are_forgotten(void **state)
{
	siginfo_t usr = { .si_signo = SIGUSR1, .si_code = SI_KERNEL },
		  queued = { .si_signo = SIGRTMIN, .si_code = SI_KERNEL };
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, blocking);
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE);
	syscall(SYS_tgkill, f.pid, f.pid, SIGUSR1);
	for (int i = 0; i < 3; i++)
		assert_int_equal(kymo_engine_inject(engine, &usr), 0);
	assert_int_equal(sent_to(&f), 0); /* one waits already */
	for (int i = 0; i < 100; i++)
		assert_int_equal(kymo_engine_inject(engine, &queued), 0);
	assert_int_equal(sent_to(&f), 100);
	stop_once(&f, engine);
	assert_int_equal(sent_to(&f), 100); /* all of them wait */
	f.shared->go = 1;
	eventually(f.shared->seen == 101);
	f.shared->go = 0;
	for (int i = 0; i < 101; i++)
		assert_int_equal(kymo_engine_inject(engine, &queued), 0);
	stop_once(&f, engine);
	assert_int_equal(sent_to(&f), 101);
	f.shared->go = 1;
	eventually(f.shared->seen == 202);
	kymo_engine_put(engine);
	end(&f);
}

static void a_signal_that_an_engine_sends_is_not_told_to_it(void **state)
{
	siginfo_t info = { .si_signo = SIGUSR1, .si_code = SI_KERNEL }, none = { .si_signo = 0 };
	struct kymo_engine *engine, *other;
	struct fixture f;

	begin(&f, handling);
	info.si_value.sival_int = 4711;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SIGNAL);
	other = engine_of(f.hub, f.pid, &f.other, KYMO_EVENTS_SIGNAL);
	assert_int_equal(kymo_engine_inject(engine, &info), 0);
	assert_int_equal(kymo_engine_inject(engine, &none), -EINVAL);
	eventually(f.shared->go == 1);
	assert_int_equal(f.shared->seen, SI_KERNEL);
	assert_int_equal(f.shared->tid, 4711);
	assert_int_equal(f.other.told[SIGNAL], 1);
	assert_int_equal(f.book.told[SIGNAL], 0);
	kill(f.pid, SIGUSR1);
	eventually(f.shared->go == 2);
	assert_int_equal(f.book.told[SIGNAL], 1);
	assert_int_equal(f.shared->seen, SI_USER);
	kymo_engine_put(engine);
	kymo_engine_put(other);
	end(&f);
}

static unsigned int eat(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			void *report)
{
	return KYMO_ACTION_RESUME | KYMO_SIGNAL_IGN;
}

static unsigned int deliver_usr1(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
				 void *report)
{
	struct kymo_signal_report *it = report;

	if (told != SIGNAL)
		return KYMO_ACTION_RESUME;
	book->status = (int)it->verdict;
	it->info.si_signo = SIGUSR1;
	it->info.si_value.sival_int = 17;
	return KYMO_ACTION_RESUME | KYMO_SIGNAL_DELIVER;
}

static void engines_see_each_others_verdicts(void **state)
{
	struct kymo_engine *engine, *other;
	struct fixture f;

	begin(&f, handling);
	f.book.hook = eat;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_SIGNAL_TERM);
	kill(f.pid, SIGTERM);
	eventually(f.book.told[SIGNAL] == 1);
	runs(&f);
	f.other.hook = deliver_usr1;
	other = engine_of(f.hub, f.pid, &f.other, KYMO_EVENT_SIGNAL_TERM);
	kill(f.pid, SIGTERM);
	eventually(f.shared->go == 1);
	assert_int_equal(f.other.status, KYMO_SIGNAL_IGN);
	assert_int_equal(f.shared->tid, 17);
	kymo_engine_put(engine);
	kymo_engine_put(other);
	end(&f);
}

static unsigned int stop_for_signal(struct book *book, struct kymo_engine *engine, enum told told,
				    enum kymo_action action, void *report)
{
	return told == SIGNAL ? KYMO_ACTION_STOP | ((struct kymo_signal_report *)report)->verdict : KYMO_ACTION_RESUME;
}

static void a_signal_that_was_told_can_be_taken_away_or_changed_later(void **state)
{
	siginfo_t info = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, handling);
	f.book.hook = stop_for_signal;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SIGNAL | KYMO_EVENT_QUIESCE);
	assert_int_equal(kymo_engine_set_signal(engine, 0, NULL), -EAGAIN);
	for (int i = 0; i < 2; i++) {
		struct kymo_examiner examiner;

		kill(f.pid, SIGTERM);
		eventually(kymo_engine_prepare_examine(engine, &examiner) == 0);
		assert_int_equal(kymo_engine_set_signal(engine, SIGUSR2, &info), -EINVAL);
		info.si_value.sival_int = 42;
		assert_int_equal(kymo_engine_set_signal(engine, i ? SIGUSR1 : 0, i ? &info : NULL), 0);
		assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_RESUME), 0);
		runs(&f);
	}
	eventually(f.shared->go == 1);
	assert_int_equal(f.shared->tid, 42);
	assert_int_equal(f.book.told[SIGNAL], 2);
	kymo_engine_put(engine);
	end(&f);
}

static unsigned int verdict_of(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			       void *report)
{
	return KYMO_ACTION_RESUME | (unsigned int)book->status;
}

static void a_signal_can_be_made_to_end_or_stop_a_process(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;
	int status;

	begin(&f, handling);
	f.book.hook = verdict_of;
	f.book.status = KYMO_SIGNAL_STOP;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SIGNAL);
	kill(f.pid, SIGUSR1);
	eventually(f.book.told[SIGNAL] >= 1);
	stands(&f);
	f.book.status = KYMO_SIGNAL_IGN;
	kill(f.pid, SIGCONT);
	runs(&f);
	f.book.status = KYMO_SIGNAL_CORE;
	kill(f.pid, SIGUSR1);
	status = end_of(f.pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

static unsigned int requeue_twice(struct book *book, struct kymo_engine *engine, enum told told,
				  enum kymo_action action, void *report)
{
	return KYMO_ACTION_RESUME | (book->told[SIGNAL] < 2 ? KYMO_SIGNAL_REQUEUE : KYMO_SIGNAL_DELIVER);
}

static void a_signal_that_is_held_back_comes_again_with_what_it_carried(void **state)
{
	siginfo_t info = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, handling);
	f.book.hook = requeue_twice;
	info.si_pid = getpid();
	info.si_value.sival_int = 99;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SIGNAL);
	syscall(SYS_rt_sigqueueinfo, f.pid, SIGUSR1, &info);
	eventually(f.shared->go == 1);
	assert_int_equal(f.book.told[SIGNAL], 3);
	assert_int_equal(f.shared->tid, 99);
	kymo_engine_put(engine);
	end(&f);
}

/* ---- the hub is killed ----------------------------------------------------------------------- */

static unsigned int be_killed(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			      void *report)
{
	return (unsigned int)kill(getpid(), SIGKILL);
}

/* A process with a hub, which is killed while it tells of the first signal, or call, of process `tid`. */
static int a_hub_that_is_killed(struct shared *shared)
{
	static struct book book = { .hook = be_killed };
	unsigned int events = shared->seen ? KYMO_EVENTS_SYSCALL : KYMO_EVENTS_SIGNAL;
	struct kymo_hub *hub;

	if (kymo_hub_create(&hub) || kymo_engine_attach_process(hub, shared->tid, 0, &ops, &book, events, NULL))
		return 1;
	shared->ready = 1;
	for (;;)
		pause();
}

static void let_a_hub_be_killed(pid_t pid, int signal)
{
	struct shared *shared = share();
	pid_t tracer;

	shared->tid = pid;
	shared->seen = !signal;
	tracer = child_of(a_hub_that_is_killed, shared);
	eventually(shared->ready || !signal);
	if (signal)
		kill(pid, signal);
	assert_int_equal(end_of(tracer), SIGKILL);
	eventually(tracer_of(pid) <= 0);
	munmap(shared, sizeof(*shared));
}

static void a_signal_that_is_being_told_when_the_hub_is_killed_is_delivered(void **state)
{
	struct fixture f = { .shared = share() };

	f.pid = child_of(handling, f.shared);
	eventually(f.shared->ready);
	for (int i = 0; i < 3; i++) {
		let_a_hub_be_killed(f.pid, SIGUSR1);
		eventually(f.shared->go == i + 1);
		let_a_hub_be_killed(f.pid, SIGSTOP);
		eventually(state_of(f.pid) == 'T');
		stands(&f);
		kill(f.pid, SIGCONT);
		runs(&f);
		let_a_hub_be_killed(f.pid, 0); /* nor is there one behind a call */
		runs(&f);
	}
	let_a_hub_be_killed(f.pid, SIGTERM);
	assert_int_equal(end_of(f.pid), SIGTERM);
	munmap(f.shared, sizeof(*f.shared));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_threads_stop_and_continue_with_their_process),
		cmocka_unit_test(a_stopped_process_stays_stopped_when_engines_come_and_go),
		cmocka_unit_test(a_process_that_is_held_while_it_is_continued_goes_on_later),
		cmocka_unit_test(signals_that_never_arrive_are_forgotten),
		cmocka_unit_test(a_signal_that_an_engine_sends_is_not_told_to_it),
		cmocka_unit_test(engines_see_each_others_verdicts),
		cmocka_unit_test(a_signal_that_was_told_can_be_taken_away_or_changed_later),
		cmocka_unit_test(a_signal_can_be_made_to_end_or_stop_a_process),
		cmocka_unit_test(a_signal_that_is_held_back_comes_again_with_what_it_carried),
		cmocka_unit_test(a_signal_that_is_being_told_when_the_hub_is_killed_is_delivered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
