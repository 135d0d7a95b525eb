/* Debug registers: which engine is told, how many there are, and what is left. */
#include <errno.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "debug_registers.h"
#include "fixture.h"

__attribute__((noinline)) static void tick(struct shared *shared)
{
	__asm__ volatile("" ::: "memory");
	shared->seen++;
}

static int writing(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over) {
		while (shared->go == shared->seen && !shared->is_over)
			shared->count++;
		if (!shared->is_over)
			tick(shared);
	}
	return 0;
}

struct hits {
	struct book book;
	atomic_int n, n_signals;
	atomic_uint slot;
};

static unsigned int count_hits(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			       void *data)
{
	struct hits *hits = (struct hits *)book;
	const struct kymo_signal_report *report = data;

	if (told != SIGNAL)
		return KYMO_ACTION_RESUME;
	hits->slot = report->slot;
	hits->n += report->trap == KYMO_TRAP_WATCH;
	hits->n_signals += report->trap == KYMO_TRAP_NONE;
	return KYMO_ACTION_RESUME | report->verdict;
}

static struct kymo_engine *watcher(struct kymo_hub *hub, pid_t tid, struct book *book)
{
	struct kymo_engine *engine = NULL;

	assert_int_equal(kymo_engine_attach(hub, tid, WITH_BREAKPOINTS, &ops, book, &engine), 0);
	assert_int_equal(kymo_engine_set_events(engine, KYMO_EVENTS_SIGNAL), 0);
	return engine;
}

static void hold(struct kymo_engine *engine)
{
	struct kymo_examiner looks;

	kymo_engine_control(engine, KYMO_ACTION_STOP);
	eventually(kymo_engine_prepare_examine(engine, &looks) == 0);
}

static void resume(struct kymo_engine *engine)
{
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_RESUME), 0);
}

static void let_write(struct fixture *f, int n)
{
	for (int i = 0; i < n; i++) {
		f->shared->go++;
		eventually(f->shared->seen == f->shared->go);
	}
}

static void each_write_is_told_to_the_engine_that_watches_alone(void **state)
{
	struct hits hits = { .book.hook = count_hits }, other = { .book.hook = count_hits };
	struct kymo_engine *engine, *beside;
	unsigned int slot;
	struct fixture f;

	SKIP_WITHOUT_DEBUG_REGISTERS();
	begin(&f, writing);
	engine = watcher(f.hub, f.pid, &hits.book);
	beside = watcher(f.hub, f.pid, &other.book);
	hold(engine);
	assert_int_equal(kymo_engine_watch(engine, KYMO_WATCH_WRITE, at(&f.shared->seen), 4, &slot), 0);
	resume(engine);
	let_write(&f, 20);
	eventually(hits.n == 20);
	assert_int_equal(hits.slot, slot);
	assert_int_equal(other.n + other.n_signals + hits.n_signals, 0);
	hold(engine);
	assert_int_equal(kymo_engine_unwatch(beside, slot), -ENOENT);
	assert_int_equal(kymo_engine_unwatch(engine, slot), 0);
	resume(engine);
	let_write(&f, 5);
	assert_int_equal(hits.n, 20);
	kymo_engine_put(engine);
	kymo_engine_put(beside);
	end(&f);
}

static void an_instruction_is_told_before_it_is_executed(void **state)
{
	struct hits hits = { .book.hook = count_hits };
	struct kymo_engine *engine;
	unsigned int slot;
	struct fixture f;

	SKIP_WITHOUT_DEBUG_REGISTERS();
	begin(&f, writing);
	engine = watcher(f.hub, f.pid, &hits.book);
	hold(engine);
	assert_int_equal(kymo_engine_watch(engine, KYMO_WATCH_EXECUTION, at(tick), 1, &slot), 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(tick)), 0); /* at the same place */
	resume(engine);
	let_write(&f, 20);
	assert_int_equal(hits.n, 20);
	assert_int_equal(hits.n_signals, 0);
	kymo_engine_put(engine);
	end(&f);
}

static void there_are_four_and_they_go_with_their_engines(void **state)
{
	struct kymo_engine *engine, *other;
	unsigned int slot = 0, fifth;
	struct fixture f;

	begin(&f, writing);
	engine = watcher(f.hub, f.pid, &f.book);
	other = watcher(f.hub, f.pid, &f.other);
	hold(other);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(
			kymo_engine_watch(i % 2 ? other : engine, KYMO_WATCH_ACCESS, at(&f.shared->tid), 4, &slot), 0);
		assert_int_equal(slot, i);
	}
	assert_int_equal(kymo_engine_watch(other, KYMO_WATCH_WRITE, at(&f.shared->tid), 4, &fifth), -ENOSPC);
	assert_int_equal(kymo_engine_watch(other, KYMO_WATCH_WRITE, at(&f.shared->tid) + 1, 4, &fifth), -EINVAL);
	assert_int_equal(kymo_engine_watch(other, KYMO_WATCH_WRITE, at(&f.shared->tid), 3, &fifth), -EINVAL);
	kymo_engine_control(engine, KYMO_ACTION_DETACH);
	assert_int_equal(kymo_engine_watch(other, KYMO_WATCH_WRITE, at(&f.shared->tid), 4, &fifth), 0);
	assert_int_equal(fifth, 0);
	kymo_engine_put(engine);
	kymo_engine_put(other);
	end(&f);
}

/* The control register, of an untraced thread. */
static unsigned long control_of(pid_t pid)
{
	unsigned long control;

	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
	control = (unsigned long)ptrace(PTRACE_PEEKUSER, pid, offsetof(struct user, u_debugreg[7]), 0);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	return control;
}

static void a_thread_that_is_let_go_has_none_armed(void **state)
{
	struct kymo_engine *engine;
	unsigned int slot;
	struct fixture f;

	SKIP_WITHOUT_DEBUG_REGISTERS();
	begin(&f, writing);
	for (int i = 0; i < 20; i++) {
		engine = watcher(f.hub, f.pid, &f.book);
		hold(engine);
		assert_int_equal(kymo_engine_watch(engine, KYMO_WATCH_ACCESS, at(&f.shared->count), 4, &slot), 0);
		resume(engine);
		eventually(f.book.told[SIGNAL] > (unsigned int)i);
		if (i % 2) {
			kymo_engine_control(engine, KYMO_ACTION_DETACH);
			kymo_engine_barrier(engine);
		} else {
			kymo_hub_destroy(f.hub);
			f.hub = new_hub();
		}
		kymo_engine_put(engine);
		eventually(tracer_of(f.pid) == 0);
		assert_int_equal(control_of(f.pid) & 0xff, 0);
		runs(&f);
	}
	end(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_write_is_told_to_the_engine_that_watches_alone),
		cmocka_unit_test(an_instruction_is_told_before_it_is_executed),
		cmocka_unit_test(there_are_four_and_they_go_with_their_engines),
		cmocka_unit_test(a_thread_that_is_let_go_has_none_armed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
