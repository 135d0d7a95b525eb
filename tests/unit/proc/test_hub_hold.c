/* Processes that stand still through a hub for somebody who is connected: stop.c, call.c and joined.c at one side, hub_hold.c at the other. */
#include <errno.h>
#include <sys/syscall.h>

#include "base/error.h"
#include "fixture.h"
#include "proc/proc.h"

/* With a hub that serves, and an engine of it on the first thread. */
static struct kymo_engine *begin_traced(struct fixture *f, int (*run)(struct shared *shared), unsigned int events)
{
	begin(f, run);
	assert_int_equal(kymo_hub_serve(f->hub), 0);
	return engine_of(f->hub, f->pid, &f->book, events);
}

static struct kymo_process *opened(const struct fixture *f)
{
	struct kymo_process *process = NULL;

	assert_null(kymo_process_open(f->pid, &process));
	return process;
}

static void is_busy(struct kymo_error *error)
{
	assert_non_null(error);
	assert_int_equal(error->code, KYMO_ERROR_BUSY);
	kymo_error_destroy(error);
}

static void all_threads_stand_still_for_one_at_a_time(void **state)
{
	struct kymo_process *one, *other;
	struct kymo_engine *engine;
	struct fixture f;
	size_t n;

	engine = begin_traced(&f, counting_by_threads, KYMO_EVENTS_SYSCALL);
	one = opened(&f);
	other = opened(&f);
	assert_null(kymo_process_stop(one));
	kymo_process_threads(one, &n);
	assert_int_equal(n, 3);
	stands(&f);
	is_busy(kymo_process_stop(other));
	is_busy(kymo_process_stop_first(other));
	kymo_process_resume(one);
	runs(&f);
	assert_null(kymo_process_stop(other));
	stands(&f);
	kymo_process_destroy(one);
	kymo_process_destroy(other);
	runs(&f);
	assert_true(tracer_of(f.pid) > 0);
	kymo_engine_put(engine);
	end(&f);
}

static void make_a_call(struct kymo_process *process, const struct fixture *f)
{
	static const uint64_t none[6];
	int64_t result = 0;

	assert_null(kymo_remote_syscall(process, SYS_getpid, none, &result));
	assert_int_equal(result, f->pid);
}

static unsigned int see_getpid(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action, void *report)
{
	const struct kymo_syscall_report *call = report;
	struct fixture *f = book->more;

	if ((told == ENTRY || told == EXIT) && call->number == SYS_getpid)
		f->shared->seen = 1;
	return KYMO_ACTION_RESUME;
}

static void calls_in_its_name_are_told_to_nobody_and_kept_by_nobody(void **state)
{
	struct user_regs_struct before, behind;
	struct kymo_process *process;
	struct kymo_engine *engine;
	struct fixture f;

	engine = begin_traced(&f, counting, KYMO_EVENTS_SYSCALL | KYMO_EVENT_QUIESCE);
	f.book.hook = see_getpid;
	process = opened(&f);
	assert_null(kymo_process_stop(process));
	kymo_engine_control(engine, KYMO_ACTION_STOP);
	assert_int_equal(kymo_engine_get_registers(engine, &before), 0);
	assert_null(kymo_remote_begin(process));
	assert_int_equal(kymo_engine_get_registers(engine, &behind), -EAGAIN);
	make_a_call(process, &f);
	make_a_call(process, &f);
	assert_null(kymo_remote_end(process));
	assert_int_equal(kymo_engine_get_registers(engine, &behind), 0);
	assert_int_equal(behind.rip, before.rip);
	assert_int_equal(behind.rsp, before.rsp);
	kymo_process_destroy(process);
	stands(&f);	/* for the engine */
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_RESUME), 0);
	runs(&f);
	assert_int_equal(f.shared->seen, 0);
	kymo_engine_put(engine);
	end(&f);
}

/* A recorder that dies with a thread of process `go` borrowed. */
static int borrow_and_die(struct shared *shared)
{
	struct kymo_process *process;

	if (kymo_process_open(shared->go, &process) || kymo_process_stop(process) || kymo_remote_begin(process))
		return 1;
	shared->seen = 1;
	_exit(0);
}

static void who_dies_with_a_thread_borrowed_gives_it_back(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	engine = begin_traced(&f, counting_by_threads, 0);
	for (int i = 0; i < 3; i++) {
		f.shared->seen = 0;
		f.shared->go = f.pid;
		assert_int_equal(end_of(child_of(borrow_and_die, f.shared)), 0);
		assert_int_equal(f.shared->seen, 1);
		runs(&f);
	}
	kymo_engine_put(engine);
	end(&f);
}

static void a_hub_that_ends_leaves_nothing_to_be_written(void **state)
{
	struct kymo_process *process;
	struct kymo_engine *engine;
	uint64_t word = 0;
	struct fixture f;
	size_t n;
	int err;

	engine = begin_traced(&f, counting, 0);
	process = opened(&f);
	assert_null(kymo_process_stop(process));
	word = kymo_process_threads(process, &n)[0].registers.rip;
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
	runs(&f);
	err = kymo_process_write(process, word, &word, sizeof(word));
	assert_int_equal(err, -EPIPE);
	kymo_process_resume(process);
	assert_null(kymo_process_stop(process));	/* by itself */
	kymo_process_destroy(process);
	runs(&f);
	f.hub = NULL;
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_threads_stand_still_for_one_at_a_time),
		cmocka_unit_test(calls_in_its_name_are_told_to_nobody_and_kept_by_nobody),
		cmocka_unit_test(who_dies_with_a_thread_borrowed_gives_it_back),
		cmocka_unit_test(a_hub_that_ends_leaves_nothing_to_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
