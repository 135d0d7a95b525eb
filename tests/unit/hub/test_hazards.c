/* What can go wrong with ptrace: docs/internals/engines.md numbers it. Each is tried with engines that want something.
 */
#include <dirent.h>
#include <errno.h>
#include <linux/sched.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>

#include "fixture.h"

/* ---- 1: only the tracer's own thread may call ------------------------------------------------ */

static void *hammer(void *data)
{
	struct user_regs_struct registers;
	struct kymo_examiner examiner;
	struct kymo_engine *engine = data;

	for (int i = 0; i < 300; i++) {
		kymo_engine_control(engine, KYMO_ACTION_STOP);
		eventually(kymo_engine_prepare_examine(engine, &examiner) == 0);
		assert_int_equal(kymo_engine_get_registers(engine, &registers), 0);
		assert_int_equal(kymo_engine_finish_examine(engine, &examiner), 0);
		kymo_engine_control(engine, KYMO_ACTION_RESUME);
	}
	return NULL;
}

static void any_thread_may_call(void **state)
{
	struct kymo_engine *engines[4];
	pthread_t threads[4];
	struct fixture f;

	begin(&f, counting);
	for (int i = 0; i < 4; i++) {
		engines[i] = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE);
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, engines[i]), 0);
	}
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		kymo_engine_put(engines[i]);
	}
	runs(&f);
	end(&f);
}

/* ---- 2: a child's first stop may come before its maker's event ------------------------------- */

static void *count_once(void *data)
{
	((struct shared *)data)->count++;
	return NULL;
}

static int making_threads(struct shared *shared)
{
	pthread_t thread;

	shared->ready = 1;
	while (!shared->is_over) {
		while (!shared->go)
			nap();
		shared->go = 0;
		pthread_create(&thread, NULL, count_once, shared);
		pthread_join(thread, NULL);
		shared->seen++;
	}
	return 0;
}

static unsigned int stop_children(struct book *book, struct kymo_engine *engine, enum told told,
				  enum kymo_action action, void *report)
{
	struct fixture *f = book->more;
	struct kymo_engine *child;

	if (told != CLONE)
		return KYMO_ACTION_RESUME;
	assert_int_equal(((struct kymo_clone_report *)report)->kind, KYMO_CLONE_THREAD);
	for (int i = 0; i < 5; i++)
		nap();
	assert_int_equal(f->shared->count, f->shared->seen);
	child = engine_of(f->hub, ((struct kymo_clone_report *)report)->child, &f->other,
			  KYMO_EVENT_QUIESCE | KYMO_EVENT_REAP);
	kymo_engine_control(child, KYMO_ACTION_STOP);
	f->shared->tid = kymo_engine_tid(child);
	kymo_engine_put(child);
	return KYMO_ACTION_RESUME;
}

static void a_child_does_not_run_before_the_callbacks_have_returned(void **state)
{
	struct kymo_engine *engine, *child;
	struct fixture f;

	begin(&f, making_threads);
	f.book.hook = stop_children;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_CLONE);
	for (int i = 0; i < 20; i++) {
		f.shared->go = 1;
		eventually(f.other.told[QUIESCE] == (unsigned int)i + 1);
		assert_int_equal(f.shared->count, i);
		assert_int_equal(kymo_engine_attach(f.hub, f.shared->tid, 0, NULL, NULL, &child), 0);
		assert_int_equal(kymo_engine_control(child, KYMO_ACTION_RESUME), 0);
		kymo_engine_put(child);
		eventually(f.shared->seen == i + 1);
	}
	assert_int_equal(f.book.told[CLONE], 20);
	eventually(f.other.told[REAP] == 20);
	kymo_engine_put(engine);
	end(&f);
}

/* ---- 3: interrupts merge, and lose against other stops --------------------------------------- */

static void each_report_that_was_asked_for_comes(void **state)
{
	struct kymo_engine *engine, *other;
	struct fixture f;

	begin(&f, counting);
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE);
	other = engine_of(f.hub, f.pid, &f.other, KYMO_EVENT_QUIESCE | KYMO_EVENTS_SYSCALL);
	for (unsigned int i = 0; i < 500; i++) {
		unsigned int before = f.book.told[QUIESCE];

		kymo_engine_control(other, i % 2 ? KYMO_ACTION_INTERRUPT : KYMO_ACTION_REPORT);
		kymo_engine_control(engine, KYMO_ACTION_REPORT);
		kymo_engine_control(engine, KYMO_ACTION_REPORT);
		eventually(f.book.told[QUIESCE] > before);
	}
	runs(&f);
	kymo_engine_put(engine);
	kymo_engine_put(other);
	end(&f);
}

/* ---- 4: children that are made untraced ------------------------------------ */

static int making_untraced(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->go)
		nap();
	for (int i = 0; i < 5; i++) {
		pid_t pid = (pid_t)syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	return 0;
}

static void a_child_that_was_made_untraced_is_told(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, making_untraced);
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_CLONE | KYMO_EVENTS_SYSCALL);
	eventually(f.book.told[ENTRY] > 1);
	f.shared->go = 1;
	assert_int_equal(end_of(f.pid), 0);
	assert_int_equal(f.book.told[CLONE], 5);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

/* ---- 5: nothing waits for the parent of a vfork ---------------------------------------------- */

static int in_vfork(struct shared *shared)
{
	pid_t pid = vfork();

	if (!pid) {
		shared->tid = (int)syscall(SYS_getpid);
		shared->ready = 1;
		while (!shared->go)
			shared->count++;
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	return 4;
}

static void the_parent_of_a_vfork_keeps_nobody_waiting(void **state)
{
	struct kymo_engine *engine, *child;
	struct fixture f;

	begin(&f, in_vfork);
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE | KYMO_EVENT_REAP);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_REPORT), 0);
	child = engine_of(f.hub, f.shared->tid, &f.other, KYMO_EVENT_QUIESCE);
	kymo_engine_control(child, KYMO_ACTION_REPORT);
	eventually(f.other.told[QUIESCE] == 1);
	assert_int_equal(f.book.told[QUIESCE], 0);
	f.shared->go = 1;
	eventually(f.book.told[QUIESCE] == 1);
	assert_int_equal(end_of(f.pid), 4 << 8);
	kymo_engine_put(engine);
	kymo_engine_put(child);
	kymo_hub_destroy(f.hub);
}

/* ---- 8: entries and exits -------------------------------------------------------------------- */

static unsigned int expect_pairs(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
				 void *report)
{
	const struct kymo_syscall_report *call = report;

	if (told == EXIT_OF_CALL && call->is_entry_known) {
		assert_int_equal(call->number, book->last_call);
		assert_int_equal(book->told[ENTRY], book->told[EXIT_OF_CALL] + 1);
	}
	return KYMO_ACTION_RESUME;
}

static void entries_and_exits_are_never_taken_for_each_other(void **state)
{
	struct kymo_engine *engine, *other;
	struct fixture f;

	begin(&f, counting);
	f.book.hook = expect_pairs;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SYSCALL);
	other = engine_of(f.hub, f.pid, &f.other, KYMO_EVENT_QUIESCE);
	for (int i = 0; i < 500; i++) {
		unsigned int before = f.other.told[QUIESCE];

		kymo_engine_control(other, i % 3 ? KYMO_ACTION_REPORT : KYMO_ACTION_SINGLESTEP);
		eventually(f.other.told[QUIESCE] > before);
	}
	assert_true(f.book.told[ENTRY] > 100);
	kymo_engine_put(engine);
	kymo_engine_put(other);
	end(&f);
}

/* A call that would fail because of an interrupt is made again; INTERRUPT says that it shall fail. */
static int waiting_for_events(struct shared *shared)
{
	struct epoll_event event;
	int fd = epoll_create1(0);

	shared->ready = 1;
	while (!shared->is_over) {
		if (epoll_wait(fd, &event, 1, -1) < 0 && errno == EINTR)
			shared->count++;
	}
	return 0;
}

static void reports_disturb_no_call_and_interrupts_do(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, waiting_for_events);
	eventually(state_of(f.pid) == 'S');
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE);
	for (unsigned int i = 0; i < 50; i++) {
		kymo_engine_control(engine, KYMO_ACTION_REPORT);
		eventually(f.book.told[QUIESCE] == i + 1);
		eventually(state_of(f.pid) == 'S');
		kill(f.pid, SIGCHLD); /* which it ignores */
	}
	kymo_engine_set_events(engine, KYMO_EVENT_QUIESCE | KYMO_EVENTS_SYSCALL);
	for (int i = 0; i < 300; i++) {
		unsigned int before = f.book.told[QUIESCE];

		kymo_engine_control(engine, KYMO_ACTION_REPORT);
		eventually(f.book.told[QUIESCE] > before);
	}
	eventually(f.book.told[ENTRY] && f.book.last_call == SYS_epoll_wait);
	eventually(state_of(f.pid) == 'S');
	assert_int_equal(f.shared->count, 0);
	kymo_engine_control(engine, KYMO_ACTION_INTERRUPT);
	eventually(f.shared->count == 1);
	kymo_engine_control(engine, KYMO_ACTION_DETACH);
	assert_int_equal(kymo_engine_barrier(engine), -ESRCH);
	eventually(state_of(f.pid) == 'S');
	assert_int_equal(f.shared->count, 1);
	kymo_engine_put(engine);
	end(&f);
}

/* ---- 10: exec by another thread -------------------------------------------------------------- */

struct lives {
	struct kymo_hub *hub;
	atomic_uint n_attached, n_deaths, n_reaps, n_released, n_execs, n_moved;
	pid_t pid;
};

static unsigned int lives_clone(struct kymo_engine *engine, void *data, enum kymo_action action,
				const struct kymo_clone_report *report);

static unsigned int lives_exec(struct kymo_engine *engine, void *data, enum kymo_action action,
			       const struct kymo_exec_report *report)
{
	struct lives *lives = data;

	lives->n_execs++;
	lives->n_moved += report->former_tid != kymo_engine_tid(engine);
	assert_int_equal(kymo_engine_tid(engine), lives->pid);
	return KYMO_ACTION_RESUME;
}

static unsigned int lives_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	((struct lives *)data)->n_deaths++;
	return KYMO_ACTION_RESUME;
}

static void lives_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	((struct lives *)data)->n_reaps++;
}

static void lives_release(void *data)
{
	((struct lives *)data)->n_released++;
}

static const struct kymo_engine_ops lives_ops = {
	.size = sizeof(lives_ops),
	.clone = lives_clone,
	.exec = lives_exec,
	.death = lives_death,
	.reap = lives_reap,
	.release = lives_release,
};

static void add_life(struct lives *lives, pid_t tid)
{
	struct kymo_engine *engine;

	assert_int_equal(kymo_engine_attach(lives->hub, tid, KYMO_ATTACH_CREATE, &lives_ops, lives, &engine), 0);
	kymo_engine_set_events(engine, KYMO_EVENT_CLONE | KYMO_EVENT_EXEC | KYMO_EVENT_DEATH | KYMO_EVENT_REAP);
	kymo_engine_put(engine);
	lives->n_attached++;
}

static unsigned int lives_clone(struct kymo_engine *engine, void *data, enum kymo_action action,
				const struct kymo_clone_report *report)
{
	add_life(data, report->child);
	return KYMO_ACTION_RESUME;
}

static void engines_move_with_a_thread_that_executes_and_those_of_the_first_one_end(void **state)
{
	const char *targets = getenv("KYMO_TARGETS");
	struct lives lives = { 0 };
	char family[4096];
	char *argv[] = { family, (char *)"exec", (char *)"30", NULL };
	int status;

	snprintf(family, sizeof(family), "%s/family", targets ? targets : "build/tests/targets");
	lives.hub = new_hub();
	assert_int_equal(kymo_hub_launch(lives.hub, 0, argv, &lives.pid), 0);
	add_life(&lives, lives.pid);
	assert_int_equal(kymo_hub_start(lives.hub, lives.pid), 0);
	assert_int_equal(kymo_hub_wait(lives.hub, lives.pid, &status), 0);
	assert_int_equal(status, 7 << 8);
	kymo_hub_destroy(lives.hub);
	assert_int_equal(lives.n_execs, 31);
	assert_int_equal(lives.n_moved, 30);
	assert_int_equal(lives.n_attached, 1 + 30 * 7);
	assert_int_equal(lives.n_deaths, lives.n_attached);
	assert_int_equal(lives.n_reaps, lives.n_attached);
	assert_int_equal(lives.n_released, lives.n_attached);
}

/* ---- 11: a first thread that ends before the others ------------------------------------------ */

static int leaving_first(struct shared *shared)
{
	pthread_t thread;

	pthread_create(&thread, NULL, count_on, shared);
	shared->ready = 1;
	while (!shared->go)
		nap();
	pthread_exit(NULL);
}

static void the_death_of_a_first_thread_is_told_while_others_live(void **state)
{
	struct fixture f;
	size_t n;

	begin(&f, leaving_first);
	assert_int_equal(kymo_engine_attach_process(f.hub, f.pid, 0, &ops, &f.book,
						    KYMO_EVENT_EXIT | KYMO_EVENT_DEATH | KYMO_EVENT_REAP, &n),
			 0);
	assert_int_equal(n, 2);
	f.shared->go = 1;
	eventually(f.book.told[DEATH] == 1);
	runs(&f);
	assert_int_equal(f.book.told[EXIT], 1);
	assert_int_equal(f.book.told[REAP], 0);
	assert_int_equal(kymo_engine_attach_process(f.hub, f.pid, 0, &ops, &f.other, KYMO_EVENT_REAP, &n), 0);
	assert_int_equal(n, 1);
	f.shared->is_over = 1;
	assert_int_equal(end_of(f.pid), 0);
	eventually(f.book.told[REAP] == 2);
	assert_int_equal(f.other.told[REAP], 1);
	kymo_hub_destroy(f.hub);
}

/* ---- 12: SIGKILL ----------------------------------------------------------------------------- */

static unsigned int stop_in_exit(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
				 void *report)
{
	struct user_regs_struct registers;

	if (told != EXIT)
		return KYMO_ACTION_RESUME;
	assert_int_equal(kymo_engine_get_registers(engine, &registers), 0);
	return KYMO_ACTION_STOP;
}

static void a_kill_ends_stopped_threads_and_those_held_at_their_end(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, counting);
	f.book.hook = stop_in_exit;
	engine = engine_of(f.hub, f.pid, &f.book,
			   KYMO_EVENT_QUIESCE | KYMO_EVENT_EXIT | KYMO_EVENT_DEATH | KYMO_EVENT_REAP);
	kymo_engine_control(engine, KYMO_ACTION_STOP);
	eventually(kymo_engine_control(engine, KYMO_ACTION_STOP) == 0);
	kill(f.pid, SIGKILL);
	eventually(f.book.told[EXIT] == 1);
	assert_int_equal(end_of(f.pid), SIGKILL); /* after KYMO_EXIT_HOLD_MS: nothing resumes it */
	eventually(f.book.told[REAP] == 1);
	assert_int_equal(f.book.told[DEATH], 1);
	assert_int_equal(f.book.status, SIGKILL);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

/* ---- the hub's own end ----------------------------------------------------------------------- */

/* The one of these children that ends the hub's waits, or 0. */
static pid_t waker_among(FILE *children)
{
	pid_t found = 0;
	int pid;

	while (children && !found && fscanf(children, "%d", &pid) == 1) {
		char name[64], text[64] = "";
		FILE *comm;

		snprintf(name, sizeof(name), "/proc/%d/comm", pid);
		comm = fopen(name, "r");
		if (comm && fscanf(comm, "%63s", text) == 1 && !strcmp(text, "kymo-waker"))
			found = pid;
		if (comm)
			fclose(comm);
	}
	return found;
}

static pid_t find_waker(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *entry;
	pid_t found = 0;

	while (!found && (entry = readdir(tasks))) {
		FILE *children;
		char name[300];

		snprintf(name, sizeof(name), "/proc/self/task/%s/children", entry->d_name);
		children = fopen(name, "r");
		found = waker_among(children);
		if (children)
			fclose(children);
	}
	closedir(tasks);
	return found;
}

static void the_hub_gets_over_the_death_of_its_waker(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, counting);
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE);
	for (unsigned int i = 0; i < 5; i++) {
		pid_t waker = 0;

		eventually((waker = find_waker()) > 0);
		kill(waker, SIGKILL);
		kymo_engine_control(engine, KYMO_ACTION_REPORT);
		eventually(f.book.told[QUIESCE] == i + 1);
	}
	kymo_engine_put(engine);
	end(&f);
}

/* A process with a hub on the given one, which is killed while it holds it by all there is. */
static int a_hub_to_be_killed(struct shared *shared)
{
	static struct book book, other;
	struct kymo_hub *hub;
	struct kymo_engine *engine;

	if (kymo_hub_create(&hub) ||
	    kymo_engine_attach_process(hub, shared->tid, 0, &ops, &book, KYMO_EVENTS_ALL & ~KYMO_EVENT_QUIESCE, NULL))
		return 1;
	while (book.told[ENTRY] < 3)
		nap();
	if (kymo_engine_attach(hub, shared->tid, KYMO_ATTACH_CREATE, &ops, &other, &engine))
		return 2;
	kymo_engine_set_events(engine, KYMO_EVENT_QUIESCE);
	kymo_engine_control(engine, shared->go ? KYMO_ACTION_STOP : KYMO_ACTION_REPORT);
	while (!other.told[QUIESCE])
		nap();
	shared->ready = 2;
	while (!shared->is_over)
		pause();
	return 0;
}

static void targets_of_a_killed_hub_run_on(void **state)
{
	struct shared *shared = share();
	pid_t pid = child_of(counting_by_threads, shared), tracer;

	eventually(shared->ready);
	shared->tid = pid;
	for (int i = 0; i < 10; i++) {
		int before;

		shared->ready = 0;
		shared->go = i % 2;
		tracer = child_of(a_hub_to_be_killed, shared);
		eventually(shared->ready == 2);
		end_with_kill(tracer);
		eventually(tracer_of(pid) == 0);
		before = shared->count;
		eventually(shared->count > before + 100);
	}
	end_with_kill(pid);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_thread_may_call),
		cmocka_unit_test(a_child_does_not_run_before_the_callbacks_have_returned),
		cmocka_unit_test(each_report_that_was_asked_for_comes),
		cmocka_unit_test(a_child_that_was_made_untraced_is_told),
		cmocka_unit_test(the_parent_of_a_vfork_keeps_nobody_waiting),
		cmocka_unit_test(entries_and_exits_are_never_taken_for_each_other),
		cmocka_unit_test(reports_disturb_no_call_and_interrupts_do),
		cmocka_unit_test(engines_move_with_a_thread_that_executes_and_those_of_the_first_one_end),
		cmocka_unit_test(the_death_of_a_first_thread_is_told_while_others_live),
		cmocka_unit_test(a_kill_ends_stopped_threads_and_those_held_at_their_end),
		cmocka_unit_test(the_hub_gets_over_the_death_of_its_waker),
		cmocka_unit_test(targets_of_a_killed_hub_run_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
