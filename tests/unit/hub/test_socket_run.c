/* What a connection does for a debugger: it runs something between two callbacks, changes signals, and has the extended
 * registers. */
#include <errno.h>
#include <sys/user.h>

#include "engines.h"
#include "hub/engine.h"
#include "hub/hub.h"
#include "hub/regset.h"
#include "hub/remote/client.h"
#include "hub/remote/message.h"

/* Makes calls all the time. A SIGUSR1 is counted in `go`, with its value in `tid`. */
static struct shared *of_child;

static void on_usr1(int signal, siginfo_t *info, void *context)
{
	of_child->go++;
	of_child->tid = info->si_value.sival_int;
}

static int calling(struct shared *shared)
{
	const struct sigaction action = { .sa_sigaction = on_usr1, .sa_flags = SA_SIGINFO };

	of_child = shared;
	sigaction(SIGUSR1, &action, NULL);
	shared->ready = 1;
	while (!shared->is_over) {
		syscall(SYS_getppid);
		shared->count++;
	}
	return 0;
}

struct fixture {
	struct kymo_hub *hub, *connection; /* both of this process */
	struct kymo_engine *engine;        /* of the connection */
	struct shared *shared;
	struct book book;
	pid_t pid;
};

static void begin(struct fixture *f, unsigned int events, told_hook *hook)
{
	memset(f, 0, sizeof(*f));
	f->shared = share();
	f->pid = child_of(calling, f->shared);
	eventually(f->shared->ready);
	assert_int_equal(kymo_hub_create(&f->hub), 0);
	assert_int_equal(kymo_hub_serve(f->hub), 0);
	assert_int_equal(hub_connect_to(f->hub->tid, &f->connection), 0);
	f->book.hook = hook;
	f->book.more = f;
	f->engine = engine_of(f->connection, f->pid, &f->book, events);
}

static void end(struct fixture *f)
{
	kymo_engine_put(f->engine);
	kymo_hub_destroy(f->connection);
	kymo_hub_destroy(f->hub);
	end_with_kill(f->pid);
	munmap(f->shared, sizeof(*f->shared));
}

static void runs(const struct fixture *f)
{
	const int before = f->shared->count;

	eventually(f->shared->count > before + 1);
}

/* ---- running something ----------------------------------------------------------------------- */

struct visit {
	struct fixture *fixture;
	unsigned int told; /* callbacks while it ran */
	int n;
	pthread_t thread;
	pid_t pid;
};

static unsigned int calls_of(const struct fixture *f)
{
	return f->book.told[ENTRY] + f->book.told[EXIT_OF_CALL];
}

static void visit(void *data)
{
	struct visit *it = data;
	const unsigned int before = calls_of(it->fixture);

	it->n++;
	it->thread = pthread_self();
	it->pid = kymo_engine_pid(it->fixture->engine);
	for (int i = 0; i < 5; i++)
		nap();
	it->told += calls_of(it->fixture) - before;
}

static void what_is_run_runs_between_two_callbacks_and_may_make_calls(void **state)
{
	struct fixture f;
	struct visit it = { .fixture = &f };

	begin(&f, KYMO_EVENTS_SYSCALL, NULL);
	eventually(calls_of(&f) > 10);
	for (int i = 0; i < 20; i++)
		kymo_hub_run(f.connection, visit, &it);
	assert_int_equal(it.n, 20);
	assert_int_equal(it.told, 0);
	assert_int_equal(it.pid, f.pid);
	assert_true(pthread_equal(it.thread, hub_client_of(f.connection)->thread));
	runs(&f);
	end(&f);
}

static unsigned int visit_in_callback(struct book *book, struct kymo_engine *engine, enum told told,
				      enum kymo_action action, void *report)
{
	struct fixture *f = book->more;
	struct visit it = { .fixture = f };

	if (told != ENTRY || book->last_call != SYS_getppid || f->shared->seen)
		return KYMO_ACTION_RESUME;
	kymo_hub_run(f->connection, visit, &it);
	f->shared->seen = it.n == 1 && it.pid == f->pid ? 1 : 2;
	return KYMO_ACTION_RESUME;
}

static void in_a_callback_it_runs_at_once(void **state)
{
	struct fixture f;

	begin(&f, KYMO_EVENTS_SYSCALL, visit_in_callback);
	eventually(f.shared->seen);
	assert_int_equal(f.shared->seen, 1);
	runs(&f);
	end(&f);
}

static unsigned int ask_in_callback(struct book *book, struct kymo_engine *engine, enum told told,
				    enum kymo_action action, void *report)
{
	struct fixture *f = book->more;
	struct hub_message message = { .type = HUB_RUN };

	if (told == ENTRY && book->last_call == SYS_getppid && !f->shared->seen)
		f->shared->seen = (int)hub_client_ask(hub_client_of(f->connection), &message, NULL);
	return KYMO_ACTION_RESUME;
}

/* Else the hub would call itself without end. */
static void a_client_that_asks_for_it_in_a_callback_is_refused(void **state)
{
	struct fixture f;

	begin(&f, KYMO_EVENTS_SYSCALL, ask_in_callback);
	eventually(f.shared->seen);
	assert_int_equal(f.shared->seen, -EDEADLK);
	runs(&f);
	end(&f);
}

static void without_a_hub_the_caller_runs_it_once(void **state)
{
	struct fixture f;
	struct visit it = { .fixture = &f };

	begin(&f, 0, NULL);
	kymo_hub_destroy(f.hub);
	eventually(kymo_hub_failure(f.connection) == -EPIPE);
	for (int i = 0; i < 3; i++)
		kymo_hub_run(f.connection, visit, &it);
	assert_int_equal(it.n, 3);
	assert_true(pthread_equal(it.thread, pthread_self()));
	assert_int_equal(kymo_engine_control(f.engine, KYMO_ACTION_STOP), -ESRCH);
	f.hub = NULL;
	runs(&f);
	end(&f);
}

/* ---- signals, registers ---------------------------------------------------------------------- */

static unsigned int stop_for_signal(struct book *book, struct kymo_engine *engine, enum told told,
				    enum kymo_action action, void *report)
{
	return told == SIGNAL ? KYMO_ACTION_STOP | ((struct kymo_signal_report *)report)->verdict : KYMO_ACTION_RESUME;
}

static void a_signal_that_was_told_can_be_taken_away_or_changed_later(void **state)
{
	siginfo_t info = { .si_signo = SIGUSR1, .si_code = SI_QUEUE };
	struct fixture f;

	begin(&f, KYMO_EVENTS_SIGNAL | KYMO_EVENT_QUIESCE, stop_for_signal);
	assert_int_equal(kymo_engine_set_signal(f.engine, 0, NULL), -EAGAIN);
	for (int i = 0; i < 2; i++) {
		struct kymo_examiner examiner;

		kill(f.pid, SIGTERM);
		eventually(kymo_engine_prepare_examine(f.engine, &examiner) == 0);
		info.si_value.sival_int = 42;
		assert_int_equal(kymo_engine_set_signal(f.engine, i ? SIGUSR1 : 0, i ? &info : NULL), 0);
		assert_int_equal(kymo_engine_control(f.engine, KYMO_ACTION_RESUME), 0);
		runs(&f);
	}
	eventually(f.shared->go == 1);
	assert_int_equal(f.shared->tid, 42);
	end(&f);
}

static void extended_registers_are_those_that_the_hub_reads(void **state)
{
	static uint8_t here[1 << 14], there[1 << 14];
	struct kymo_examiner examiner;
	struct kymo_engine *engine;
	size_t n = 0, n_there = 0;
	struct book book = { 0 };
	struct fixture f;

	begin(&f, KYMO_EVENT_QUIESCE, NULL);
	engine = engine_of(f.hub, f.pid, &book, 0);
	assert_int_equal(kymo_engine_get_xstate(f.engine, here, sizeof(here), &n), -EAGAIN);
	assert_int_equal(kymo_engine_control(f.engine, KYMO_ACTION_STOP), -EINPROGRESS);
	eventually(kymo_engine_prepare_examine(f.engine, &examiner) == 0);
	assert_int_equal(kymo_engine_get_xstate(f.engine, here, sizeof(here), &n), 0);
	assert_int_equal(kymo_engine_get_xstate(engine, there, sizeof(there), &n_there), 0);
	assert_int_equal(n, n_there);
	assert_memory_equal(here, there, n);
	assert_int_equal(kymo_engine_get_xstate(f.engine, here, 512, &n), 0);
	assert_int_equal(n, 512);
	assert_int_equal(kymo_engine_set_xstate(f.engine, there, n_there), 0);
	assert_int_equal(kymo_engine_set_xstate(f.engine, there, HUB_DATA_MAX + 1), -E2BIG);
	assert_int_equal(kymo_engine_control(f.engine, KYMO_ACTION_RESUME), 0);
	kymo_engine_put(engine);
	runs(&f);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_run_runs_between_two_callbacks_and_may_make_calls),
		cmocka_unit_test(in_a_callback_it_runs_at_once),
		cmocka_unit_test(a_client_that_asks_for_it_in_a_callback_is_refused),
		cmocka_unit_test(without_a_hub_the_caller_runs_it_once),
		cmocka_unit_test(a_signal_that_was_told_can_be_taken_away_or_changed_later),
		cmocka_unit_test(extended_registers_are_those_that_the_hub_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
