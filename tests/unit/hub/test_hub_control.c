/* What engines of one hub do to a thread: rows of the tables in include/kymo/engine.h, with each of its errors. */
#include <errno.h>
#include <sys/ptrace.h>

#include "rows.h"

/* ---- control --------------------------------------------------------------------------------- */

static void a_stop_holds_until_its_engine_lets_go(void **state)
{
	struct kymo_engine *engine, *other;
	struct fixture f;

	begin(&f, spinning);
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE);
	other = engine_of(f.hub, f.pid, &f.other, KYMO_EVENT_QUIESCE);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_STOP), -EINPROGRESS);
	eventually(f.book.told[QUIESCE] == 1);
	stands(&f);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_STOP), 0);
	assert_int_equal(kymo_engine_control(other, KYMO_ACTION_STOP), 0);
	assert_int_equal(kymo_engine_control(other, KYMO_ACTION_RESUME), 0);
	assert_int_equal(kymo_engine_control(other, KYMO_ACTION_REPORT), 0);
	eventually(f.other.told[QUIESCE] == 1);
	stands(&f);
	assert_int_equal(kymo_engine_control(other, KYMO_ACTION_DETACH), 0);
	assert_int_equal(kymo_engine_barrier(other), -ESRCH);
	stands(&f);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_RESUME), 0);
	runs(&f);
	assert_int_equal(f.book.told[QUIESCE], 1);
	kymo_engine_put(engine);
	kymo_engine_put(other);
	end(&f);
}

static void control_refuses_what_can_not_be(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, spinning);
	engine = engine_of(f.hub, f.pid, &f.book, 0);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_REPORT), -EINVAL);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_SINGLESTEP), -EINVAL);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_BLOCKSTEP), -EINVAL);
	assert_int_equal(kymo_engine_control(engine, (enum kymo_action)77), -EINVAL);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_INTERRUPT), 0);
	runs(&f);
	assert_int_equal(f.book.told[QUIESCE], 0);
	kymo_engine_put(engine);
	end(&f);
}

static unsigned int detach_in_death(struct book *book, struct kymo_engine *engine, enum told told,
				    enum kymo_action action, void *report)
{
	return told == DEATH ? KYMO_ACTION_DETACH : KYMO_ACTION_RESUME;
}

static unsigned int control_in_death(struct book *book, struct kymo_engine *engine, enum told told,
				     enum kymo_action action, void *report)
{
	if (told == DEATH)
		book->signal = kymo_engine_control(engine, KYMO_ACTION_STOP);
	return KYMO_ACTION_RESUME;
}

static void an_engine_that_detaches_in_death_is_not_told_of_the_reaping(void **state)
{
	struct kymo_engine *engine, *other;
	struct fixture f;

	begin(&f, ending);
	f.book.hook = detach_in_death;
	f.other.hook = control_in_death;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_DEATH | KYMO_EVENT_REAP);
	other = engine_of(f.hub, f.pid, &f.other, KYMO_EVENT_DEATH | KYMO_EVENT_REAP);
	kymo_engine_put(engine);
	f.shared->go = 1;
	assert_int_equal(end_of(f.pid), 7 << 8);
	eventually(f.other.told[REAP]);
	assert_int_equal(f.other.signal, -ESRCH);
	assert_int_equal(f.book.told[REAP], 0);
	eventually(f.book.told[RELEASE] == 1);
	kymo_engine_put(other);
	kymo_hub_destroy(f.hub);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static unsigned int step_again(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			       void *report)
{
	if (told != QUIESCE)
		return KYMO_ACTION_RESUME;
	return book->told[QUIESCE] < 200 ? (enum kymo_action)(uintptr_t)book->more : KYMO_ACTION_RESUME;
}

static void step_with(enum kymo_action how, int (*run)(struct shared *shared))
{
	struct kymo_engine *engine, *other;
	struct fixture f;

	begin(&f, run);
	f.book.hook = step_again;
	f.book.more = (void *)(uintptr_t)how;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE);
	other = engine_of(f.hub, f.pid, &f.other, KYMO_EVENTS_SIGNAL);
	f.shared->go = 1;
	assert_int_equal(kymo_engine_control(engine, how), 0);
	eventually(f.book.told[QUIESCE] > 200);
	f.shared->go = 1;
	runs(&f);
	assert_int_equal(f.other.told[SIGNAL], 0);
	kymo_engine_put(engine);
	kymo_engine_put(other);
	end(&f);
}

static void steps_are_told_and_nobody_sees_a_signal(void **state)
{
	step_with(KYMO_ACTION_SINGLESTEP, spinning);
	step_with(KYMO_ACTION_BLOCKSTEP, spinning);
}

static unsigned int step_forever(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
				 void *report)
{
	return told == QUIESCE ? KYMO_ACTION_SINGLESTEP : KYMO_ACTION_RESUME;
}

/* Each call that was made is told, with one engine stepping over it. */
static void a_step_over_a_system_call_does_not_hide_it(void **state)
{
	struct kymo_engine *engine, *other;
	struct fixture f;
	unsigned int entries;

	begin(&f, counting);
	f.book.hook = step_forever;
	other = engine_of(f.hub, f.pid, &f.other, KYMO_EVENTS_SYSCALL);
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_SINGLESTEP), 0);
	eventually(f.book.told[QUIESCE] > 100);
	entries = f.other.told[ENTRY];
	f.shared->count = 0;
	eventually(f.shared->count > 50);
	assert_true(f.other.told[ENTRY] - entries >= 49);
	f.book.hook = NULL;
	kymo_engine_put(engine);
	kymo_engine_put(other);
	end(&f);
}

/* ---- examine --------------------------------------------------------------------------------- */

static void a_stopped_thread_can_be_examined(void **state)
{
	struct kymo_examiner examiner;
	struct user_regs_struct registers;
	struct kymo_engine *engine;
	struct fixture f;
	long word = 0;

	begin(&f, spinning);
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE | KYMO_EVENT_REAP);
	assert_int_equal(kymo_engine_prepare_examine(engine, &examiner), -EINVAL);
	assert_int_equal(kymo_engine_get_registers(engine, &registers), -EAGAIN);
	kymo_engine_control(engine, KYMO_ACTION_STOP);
	eventually(f.book.told[QUIESCE]);
	assert_int_equal(kymo_engine_barrier(engine), 0);
	assert_int_equal(kymo_engine_prepare_examine(engine, &examiner), 0);
	assert_int_equal(kymo_engine_get_registers(engine, &registers), 0);
	assert_int_equal(kymo_engine_read(engine, registers.rsp, &word, sizeof(word)), 0);
	assert_int_equal(kymo_engine_read(engine, 8, &word, sizeof(word)), -EIO);
	assert_int_equal(kymo_engine_set_registers(engine, &registers), 0);
	assert_int_equal(kymo_engine_set_syscall(engine, 1, (uint64_t[6]){ 0 }), -EINVAL);
	assert_int_equal(kymo_engine_set_result(engine, 1), -EINVAL);
	assert_int_equal(kymo_engine_finish_examine(engine, &examiner), 0);
	kymo_engine_control(engine, KYMO_ACTION_RESUME);
	runs(&f);
	kymo_engine_control(engine, KYMO_ACTION_STOP);
	eventually(kymo_engine_prepare_examine(engine, &examiner) == 0);
	kill(f.pid, SIGKILL);
	assert_int_equal(end_of(f.pid), SIGKILL);
	assert_int_not_equal(kymo_engine_finish_examine(engine, &examiner), 0);
	eventually(f.book.told[REAP]);
	eventually(kymo_engine_finish_examine(engine, &examiner) == -ESRCH);
	assert_int_equal(kymo_engine_prepare_examine(engine, &examiner), -ESRCH);
	assert_int_equal(kymo_engine_get_registers(engine, &registers), -ESRCH);
	assert_int_equal(kymo_engine_read(engine, registers.rsp, &word, sizeof(word)), -ESRCH);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

/* ---- system calls ---------------------------------------------------------------------------- */

static unsigned int abort_getppid(struct book *book, struct kymo_engine *engine, enum told told,
				  enum kymo_action action, void *report)
{
	const struct kymo_syscall_report *call = report;

	if (told == ENTRY && call->number == SYS_getppid)
		return KYMO_ACTION_RESUME | KYMO_SYSCALL_ABORT;
	if (told == EXIT_OF_CALL && call->is_entry_known && call->number == SYS_getppid) {
		assert_true(call->is_aborted && call->is_error);
		assert_int_equal(call->result, -ENOSYS);
		assert_int_equal(kymo_engine_set_result(engine, 12345), 0);
	}
	return KYMO_ACTION_RESUME;
}

static void a_call_can_be_aborted_and_its_result_made_up(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, obedient);
	f.book.hook = abort_getppid;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SYSCALL);
	eventually(f.book.told[EXIT_OF_CALL] > 1);
	f.shared->go = 1;
	eventually(f.shared->count == 1);
	assert_int_equal(f.shared->seen, 12345);
	kymo_engine_put(engine);
	end(&f);
}

static unsigned int change_to_gettid(struct book *book, struct kymo_engine *engine, enum told told,
				     enum kymo_action action, void *report)
{
	static const uint64_t none[6];

	if (told == ENTRY && ((struct kymo_syscall_report *)report)->number == SYS_getppid)
		assert_int_equal(kymo_engine_set_syscall(engine, SYS_gettid, none), 0);
	return KYMO_ACTION_RESUME;
}

/* The one that was attached last sees an entry first, so the first one sees what the second has made of it. */
static void engines_see_an_entry_in_reverse_order(void **state)
{
	struct kymo_engine *engine, *other;
	struct fixture f;

	begin(&f, obedient);
	f.other.hook = change_to_gettid;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SYSCALL);
	other = engine_of(f.hub, f.pid, &f.other, KYMO_EVENTS_SYSCALL);
	eventually(f.other.told[EXIT_OF_CALL] > 1);
	f.book.more = &f;
	f.shared->go = 1;
	eventually(f.shared->count == 1);
	assert_int_equal(f.shared->seen, f.pid);
	assert_true(f.book.last_call != SYS_getppid);
	kymo_engine_put(engine);
	kymo_engine_put(other);
	end(&f);
}

static unsigned int stop_at_getppid(struct book *book, struct kymo_engine *engine, enum told told,
				    enum kymo_action action, void *report)
{
	bool is_it = told == ENTRY && ((struct kymo_syscall_report *)report)->number == SYS_getppid;

	return is_it ? KYMO_ACTION_STOP : KYMO_ACTION_RESUME;
}

static void a_stop_at_an_entry_holds_before_the_call(void **state)
{
	static const uint64_t none[6];
	struct kymo_examiner examiner;
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, obedient);
	f.book.hook = stop_at_getppid;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SYSCALL);
	eventually(f.book.told[ENTRY] > 1);
	f.shared->go = 1;
	eventually(kymo_engine_prepare_examine(engine, &examiner) == 0);
	assert_int_equal(f.shared->count, 0);
	assert_int_equal(kymo_engine_set_syscall(engine, SYS_gettid, none), 0);
	assert_int_equal(kymo_engine_finish_examine(engine, &examiner), 0);
	kymo_engine_control(engine, KYMO_ACTION_RESUME);
	eventually(f.shared->count == 1);
	assert_int_equal(f.shared->seen, f.pid);
	kymo_engine_put(engine);
	end(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stop_holds_until_its_engine_lets_go),
		cmocka_unit_test(control_refuses_what_can_not_be),
		cmocka_unit_test(an_engine_that_detaches_in_death_is_not_told_of_the_reaping),
		cmocka_unit_test(steps_are_told_and_nobody_sees_a_signal),
		cmocka_unit_test(a_step_over_a_system_call_does_not_hide_it),
		cmocka_unit_test(a_stopped_thread_can_be_examined),
		cmocka_unit_test(a_call_can_be_aborted_and_its_result_made_up),
		cmocka_unit_test(engines_see_an_entry_in_reverse_order),
		cmocka_unit_test(a_stop_at_an_entry_holds_before_the_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
