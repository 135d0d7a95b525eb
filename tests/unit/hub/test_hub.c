/* Engines of one hub, from attach to release: rows of the tables in include/kymo/engine.h, with each of its errors. */
#include <errno.h>
#include <sys/ptrace.h>

#include "rows.h"

/* ---- attach ---------------------------------------------------------------------------------- */

static void refuses(struct fixture *f, size_t size, int expected, const char *sentence)
{
	struct kymo_engine *engine = NULL;
	struct kymo_engine_ops wrong = ops;
	char why[256];

	wrong.size = size;
	assert_int_equal(kymo_engine_attach(f->hub, f->pid, KYMO_ATTACH_CREATE, &wrong, &f->book, &engine), expected);
	assert_null(engine);
	assert_int_equal(kymo_engine_attach_process(f->hub, f->pid, 0, &wrong, &f->book, 0, NULL), expected);
	assert_int_equal(tracer_of(f->pid), 0);
	kymo_hub_explain(f->pid, expected, why, sizeof(why));
	assert_string_equal(why, sentence);
}

static void an_engine_of_another_size_is_refused_by_name(void **state)
{
	const char *small = "the size in struct kymo_engine_ops is less than the 96 bytes of this library; set it to "
			    "sizeof(struct kymo_engine_ops), and build with the kymo/engine.h of this library";
	struct fixture f;

	begin(&f, sleeping);
	refuses(&f, 0, -EBADR, small);
	refuses(&f, sizeof(ops) - 1, -EBADR, small);
	refuses(&f, sizeof(ops) + 8, -E2BIG,
		"the size in struct kymo_engine_ops is more than the 96 bytes of this library; build with the "
		"kymo/engine.h of this library");
	end(&f);
}

static void attaching_makes_engines_and_finds_them(void **state)
{
	struct kymo_engine *first = NULL, *second = NULL, *found = NULL;
	struct kymo_engine_ops others = ops;
	struct fixture f;

	begin(&f, sleeping);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, 0, NULL, NULL, &found), -ENOENT);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, KYMO_ATTACH_CREATE, NULL, NULL, &found), -EINVAL);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, 1 << 7, &ops, NULL, &found), -EINVAL);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, KYMO_ATTACH_CREATE, &ops, &f.book, &first), 0);
	assert_int_equal(kymo_engine_tid(first), f.pid);
	assert_int_equal(kymo_engine_pid(first), f.pid);
	assert_int_not_equal(tracer_of(f.pid), 0);

	assert_int_equal(kymo_engine_attach(f.hub, f.pid, 0, NULL, NULL, &found), 0);
	assert_ptr_equal(found, first);
	kymo_engine_put(found);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, KYMO_ATTACH_MATCH_OPS, &others, NULL, &found), -ENOENT);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, KYMO_ATTACH_MATCH_DATA, NULL, &f.other, &found), -ENOENT);
	assert_int_equal(
		kymo_engine_attach(f.hub, f.pid, KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA, &ops, &f.book, &found),
		0);
	assert_ptr_equal(found, first);
	kymo_engine_put(found);

	assert_int_equal(
		kymo_engine_attach(f.hub, f.pid, KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE, &others, NULL, &found),
		-EEXIST);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid,
					    KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS, &ops,
					    NULL, &found),
			 -EEXIST);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid,
					    KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_DATA,
					    &others, &f.book, &found),
			 -EEXIST);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid,
					    KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_DATA, &ops,
					    &f.other, &second),
			 0);
	assert_ptr_not_equal(first, second);
	kymo_engine_put(first);
	kymo_engine_put(second);
	end(&f);
	assert_int_equal(f.book.told[RELEASE], 1);
	assert_int_equal(f.other.told[RELEASE], 1);
}

static void all_engines_are_listed_of_any_client(void **state)
{
	struct kymo_engine_info infos[4] = { 0 };
	struct kymo_engine *first = NULL, *second = NULL;
	struct fixture f;
	size_t n = 7;

	begin(&f, sleeping);
	assert_int_equal(kymo_hub_list(f.hub, f.pid, infos, 4, &n), -ESRCH);
	assert_int_equal(n, 7);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, KYMO_ATTACH_CREATE, &ops, &f.book, &first), 0);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, KYMO_ATTACH_CREATE, &ops, &f.other, &second), 0);
	assert_int_equal(
		kymo_engine_set_events(first, KYMO_EVENTS_SYSCALL | KYMO_EVENT_QUIESCE | KYMO_MASK_PICKED_CALLS), 0);
	kymo_engine_control(second, KYMO_ACTION_STOP);
	assert_int_equal(kymo_hub_list(f.hub, f.pid, infos, 4, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(infos[0].tid, f.pid);
	assert_int_equal(infos[0].pid, f.pid);
	assert_int_equal(infos[0].owner, getpid());
	assert_int_equal(infos[0].events, KYMO_EVENTS_SYSCALL | KYMO_EVENT_QUIESCE | KYMO_MASK_PICKED_CALLS);
	assert_int_equal(infos[0].wants, KYMO_ACTION_RESUME);
	assert_int_equal(infos[1].events, 0);
	assert_int_equal(infos[1].wants, KYMO_ACTION_STOP);
	/* There may be more than there is room for. */
	infos[1].tid = 0;
	assert_int_equal(kymo_hub_list(f.hub, f.pid, infos, 1, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(infos[1].tid, 0);
	assert_int_equal(kymo_hub_list(f.hub, f.pid, NULL, 0, &n), 0);
	assert_int_equal(n, 2);
	kymo_engine_put(first);
	kymo_engine_put(second);
	end(&f);
}

static void a_thread_that_cannot_be_traced_is_refused_with_a_reason(void **state)
{
	struct kymo_engine *engine = NULL;
	struct kymo_hub *hub = new_hub();
	char text[256];
	pid_t gone = child_of(sleeping, share());

	end_with_kill(gone);
	assert_int_equal(kymo_engine_attach(hub, gone, KYMO_ATTACH_CREATE, &ops, NULL, &engine), -ESRCH);
	assert_int_equal(kymo_engine_attach(hub, gone, 0, &ops, NULL, &engine), -ESRCH);
	assert_int_equal(kymo_engine_attach_process(hub, gone, 0, &ops, NULL, 0, NULL), -ESRCH);
	kymo_hub_explain(gone, -ESRCH, text, sizeof(text));
	assert_non_null(strstr(text, "there is no process"));
	assert_int_equal(kymo_engine_attach(hub, getpid(), KYMO_ATTACH_CREATE, &ops, NULL, &engine), -EPERM);
	kymo_hub_explain(gone, -EAGAIN, text, sizeof(text));
	assert_non_null(strstr(text,
			       "executes another program, or a thread of it that a tracer lets go has not stopped "
			       "yet; try again"));
	kymo_hub_explain(getpid(), -EPERM, text, sizeof(text));
	assert_non_null(strstr(text, "itself"));
	kymo_hub_destroy(hub);
}

static int a_tracer(struct shared *shared)
{
	if (ptrace(PTRACE_SEIZE, shared->tid, 0, 0))
		return 1;
	shared->ready = 2;
	while (!shared->is_over)
		pause();
	return 0;
}

static void a_foreign_tracer_is_named(void **state)
{
	char text[256], expected[64];
	struct kymo_engine *engine;
	struct fixture f;
	pid_t tracer;

	begin(&f, spinning);
	f.shared->tid = f.pid;
	tracer = child_of(a_tracer, f.shared);
	eventually(f.shared->ready == 2);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, KYMO_ATTACH_CREATE, &ops, &f.book, &engine), -EBUSY);
	assert_int_equal(kymo_engine_attach_process(f.hub, f.pid, 0, &ops, &f.book, 0, NULL), -EBUSY);
	kymo_hub_explain(f.pid, -EBUSY, text, sizeof(text));
	snprintf(expected, sizeof(expected), "is being traced by process %d (", tracer);
	assert_non_null(strstr(text, expected));
	end_with_kill(tracer);
	engine = engine_of(f.hub, f.pid, &f.book, 0);
	runs(&f);
	kymo_engine_put(engine);
	end(&f);
}

static unsigned int attach_at_entry(struct book *book, struct kymo_engine *engine, enum told told,
				    enum kymo_action action, void *report)
{
	struct fixture *f = book->more;

	if (told == ENTRY && ((struct kymo_syscall_report *)report)->number == SYS_getppid) {
		kymo_engine_put(engine_of(f->hub, f->pid, &f->other, KYMO_EVENTS_SYSCALL));
		book->hook = NULL;
	}
	return KYMO_ACTION_RESUME;
}

static unsigned int expect_exit_first(struct book *book, struct kymo_engine *engine, enum told told,
				      enum kymo_action action, void *report)
{
	assert_true(told != ENTRY || book->told[EXIT_OF_CALL]);
	return KYMO_ACTION_RESUME;
}

static void a_new_engine_is_not_told_of_the_event_in_progress(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, obedient);
	f.book.more = &f;
	f.book.hook = attach_at_entry;
	f.other.hook = expect_exit_first;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SYSCALL);
	eventually(f.book.told[ENTRY] > 1);
	f.shared->go = 1;
	eventually(f.other.told[ENTRY]);
	kymo_engine_put(engine);
	end(&f);
}

/* ---- set_events ------------------------------------------------------------------------------ */

struct errors {
	int clear_death, clear_reap, set_death, clear_other, detach;
};

static unsigned int try_masks(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			      void *report)
{
	struct errors *errors = book->more;

	if (told == DEATH)
		errors->clear_death = kymo_engine_set_events(engine, KYMO_EVENT_REAP);
	if (told == REAP) {
		errors->clear_reap = kymo_engine_set_events(engine, KYMO_EVENT_DEATH);
		errors->detach = kymo_engine_control(engine, KYMO_ACTION_DETACH);
	}
	return KYMO_ACTION_RESUME;
}

static unsigned int try_to_set_death(struct book *book, struct kymo_engine *engine, enum told told,
				     enum kymo_action action, void *report)
{
	struct errors *errors = book->more;

	if (told == REAP)
		errors->set_death = kymo_engine_set_events(engine, KYMO_EVENT_REAP | KYMO_EVENT_DEATH);
	return KYMO_ACTION_RESUME;
}

static void masks_of_the_dying_can_not_be_changed(void **state)
{
	struct errors errors = { 0 };
	struct kymo_engine *engine, *late;
	struct fixture f;

	begin(&f, ending);
	f.book.more = f.other.more = &errors;
	f.book.hook = try_masks;
	f.other.hook = try_to_set_death;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_DEATH | KYMO_EVENT_REAP);
	late = engine_of(f.hub, f.pid, &f.other, KYMO_EVENT_REAP);
	assert_int_equal(kymo_engine_set_events(engine, 1 << 20), -EINVAL);
	f.shared->go = 1;
	assert_int_equal(end_of(f.pid), 7 << 8);
	eventually(f.other.told[REAP]);
	assert_int_equal(errors.clear_death, -EALREADY);
	assert_int_equal(errors.clear_reap, -EALREADY);
	assert_int_equal(errors.detach, -EALREADY);
	assert_int_equal(errors.set_death, -EALREADY);
	assert_int_equal(f.book.told[DEATH], 1);
	assert_int_equal(f.book.told[REAP], 1);
	assert_int_equal(f.book.status, 7 << 8);
	eventually(kymo_engine_barrier(engine) == -ESRCH);
	assert_int_equal(kymo_engine_set_events(engine, 0), -ESRCH);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_RESUME), -ESRCH);
	assert_int_equal(kymo_engine_tid(engine), 0);
	kymo_engine_put(engine);
	kymo_engine_put(late);
	kymo_hub_destroy(f.hub);
	assert_int_equal(f.book.told[RELEASE], 1);
}

static unsigned int linger(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			   void *report)
{
	struct fixture *f = book->more;

	if (told == ENTRY && ((struct kymo_syscall_report *)report)->number == SYS_getppid) {
		f->shared->tid = 1;
		while (f->shared->tid != 2)
			nap();
	}
	return KYMO_ACTION_RESUME;
}

static void clearing_or_detaching_during_a_callback_is_in_progress(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, obedient);
	f.book.more = &f;
	f.book.hook = linger;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SYSCALL);
	assert_int_equal(kymo_engine_barrier(engine), 0);
	eventually(f.book.told[ENTRY] > 1);
	f.shared->go = 1;
	eventually(f.shared->tid == 1);
	assert_int_equal(kymo_engine_set_events(engine, KYMO_EVENT_SYSCALL_ENTRY), -EINPROGRESS);
	assert_int_equal(kymo_engine_set_events(engine, KYMO_EVENTS_SYSCALL), 0);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_DETACH), -EINPROGRESS);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_DETACH), -ESRCH);
	f.shared->tid = 2;
	assert_int_equal(kymo_engine_barrier(engine), -ESRCH);
	assert_int_equal(tracer_of(f.pid), 0);
	eventually(f.shared->count == 1);
	kymo_engine_put(engine);
	eventually(f.book.told[RELEASE] == 1);
	end(&f);
}

/* ---- references ------------------------------------------------------------------------------ */

static void release_comes_once_and_last(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, spinning);
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_ALL);
	kymo_engine_get(engine);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_DETACH), 0);
	assert_int_equal(kymo_engine_barrier(engine), -ESRCH);
	assert_int_equal(tracer_of(f.pid), 0);
	kymo_engine_put(engine);
	assert_int_equal(f.book.told[RELEASE], 0);
	kymo_hub_destroy(f.hub);
	kymo_engine_put(engine);
	assert_int_equal(f.book.told[RELEASE], 1);
	kymo_engine_put(NULL);
	kymo_hub_destroy(NULL);
	runs(&f);
	end_with_kill(f.pid);
}

static unsigned int barrier_in_callback(struct book *book, struct kymo_engine *engine, enum told told,
					enum kymo_action action, void *report)
{
	int status;

	if (told == QUIESCE) {
		struct fixture *f = book->more;

		assert_int_equal(kymo_engine_barrier(engine), -EDEADLK);
		assert_int_equal(kymo_hub_wait(f->hub, f->pid, &status), REFUSAL_OF_WAIT);
	}
	return KYMO_ACTION_RESUME;
}

static void a_barrier_in_a_callback_is_refused(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, spinning);
	f.book.hook = barrier_in_callback;
	f.book.more = &f;
	engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENT_QUIESCE);
	kymo_engine_control(engine, KYMO_ACTION_REPORT);
	eventually(f.book.told[QUIESCE]);
	assert_int_equal(kymo_engine_barrier(engine), 0);
	kymo_engine_put(engine);
	end(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_engine_of_another_size_is_refused_by_name),
		cmocka_unit_test(attaching_makes_engines_and_finds_them),
		cmocka_unit_test(all_engines_are_listed_of_any_client),
		cmocka_unit_test(a_foreign_tracer_is_named),
		cmocka_unit_test(a_new_engine_is_not_told_of_the_event_in_progress),
		cmocka_unit_test(masks_of_the_dying_can_not_be_changed),
		cmocka_unit_test(clearing_or_detaching_during_a_callback_is_in_progress),
		cmocka_unit_test(release_comes_once_and_last),
		cmocka_unit_test(a_barrier_in_a_callback_is_refused),
		/* Of hubs of this process only, as they see themselves. */
		cmocka_unit_test(a_thread_that_cannot_be_traced_is_refused_with_a_reason),
	};
	size_t n = sizeof(tests) / sizeof(*tests);

	return _cmocka_run_group_tests("tests", tests, IS_REMOTE ? n - 1 : n, NULL, NULL);
}
