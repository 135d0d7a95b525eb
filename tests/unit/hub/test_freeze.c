/* Processes that a hub freezes for a client: stop.c, call.c and joined.c at one side, hub/freeze/freeze.c at the other.
 * */
#include <errno.h>
#include <sys/syscall.h>

#include "base/error.h"
#include "fixture.h"
#include "hub/engine.h"
#include "hub/remote/client.h"
#include "hub/remote/client_calls.h"
#include "hub/remote/message.h"
#include "hub/state.h"
#include "proc/call.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/state.h"
#include "proc/stop.h"
#include "proc/thread.h"
#include "wire/shared.h"

/* With a hub that serves, and an engine of it on the first thread. */
static struct kymo_engine *serve_traced(struct fixture *f, unsigned int events)
{
	assert_int_equal(kymo_hub_serve(f->hub), 0);
	return engine_of(f->hub, f->pid, &f->book, events);
}

static struct kymo_engine *begin_traced(struct fixture *f, int (*run)(struct shared *shared), unsigned int events)
{
	begin(f, run);
	return serve_traced(f, events);
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

static unsigned int see_getpid(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			       void *report)
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
	make_a_call(process, &f);
	assert_int_equal(kymo_engine_get_registers(engine, &behind), 0); /* its own, which it gets back */
	assert_memory_equal(&behind, &before, sizeof(before));
	behind.rbx = ~before.rbx;
	assert_int_equal(kymo_engine_set_registers(engine, &behind), 0);
	make_a_call(process, &f);
	assert_null(kymo_remote_end(process));
	assert_int_equal(kymo_engine_get_registers(engine, &behind), 0);
	assert_int_equal(behind.rbx, ~before.rbx);
	assert_int_equal(kymo_engine_set_registers(engine, &before), 0);
	assert_int_equal(behind.rip, before.rip);
	assert_int_equal(behind.rsp, before.rsp);
	kymo_process_destroy(process);
	stands(&f); /* for the engine */
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_RESUME), 0);
	runs(&f);
	assert_int_equal(f.shared->seen, 0);
	kymo_engine_put(engine);
	end(&f);
}

/* A recorder that dies during a remote call by a thread of process `go` borrowed. */
/* A client is forked before this process has threads: a sanitizer's locks may be taken in the child of one that does.
 */
static void wait_for_go(const struct shared *shared)
{
	while (!shared->go)
		nap();
}

static int lend_and_die(struct shared *shared)
{
	struct kymo_process *process;

	wait_for_go(shared);
	if (kymo_process_open(shared->go, &process) || kymo_process_stop(process) || kymo_remote_begin(process))
		return 1;
	shared->seen = 1;
	_exit(0);
}

static void a_recorder_that_dies_in_a_remote_call_gives_the_thread_back(void **state)
{
	struct kymo_engine *engine;
	struct shared *clients[3];
	pid_t pids[3];
	struct fixture f;

	begin(&f, counting_by_threads);
	for (int i = 0; i < 3; i++) {
		clients[i] = share();
		pids[i] = child_of(lend_and_die, clients[i]);
	}
	engine = serve_traced(&f, 0);
	for (int i = 0; i < 3; i++) {
		clients[i]->go = f.pid;
		assert_int_equal(end_of(pids[i]), 0);
		assert_int_equal(clients[i]->seen, 1);
		runs(&f);
		munmap(clients[i], sizeof(*clients[i]));
	}
	kymo_engine_put(engine);
	end(&f);
}

/* … and have it make a call that takes a while. */
static int lend_and_sleep(struct shared *shared)
{
	static const uint64_t seconds[6] = { 0, 0, 3000 };
	struct kymo_process *process;
	int64_t result;

	wait_for_go(shared);
	if (kymo_process_open(shared->go, &process) || kymo_process_stop(process) || kymo_remote_begin(process))
		return 1;
	shared->seen = 1;
	return kymo_remote_syscall(process, SYS_poll, seconds, &result) != NULL;
}

/* As soon as the hub has seen that no client holds it any more. */
static bool has_stopped(struct kymo_process *process)
{
	struct kymo_error *error = kymo_process_stop(process);
	bool has = !error;

	if (error)
		is_busy(error);
	return has;
}

static void the_next_recorder_finds_a_thread_as_it_was_before_the_first_died(void **state)
{
	struct kymo_process *process;
	struct kymo_engine *engine;
	struct fixture f;
	pid_t first;

	begin(&f, counting);
	first = child_of(lend_and_sleep, f.shared);
	engine = serve_traced(&f, 0);
	f.shared->go = f.pid;
	eventually(f.shared->seen && state_of(f.pid) == 'S');
	end_with_kill(first);
	process = opened(&f);
	eventually(has_stopped(process));
	assert_null(kymo_remote_begin(process));
	make_a_call(process, &f);
	assert_null(kymo_remote_end(process));
	kymo_process_destroy(process);
	runs(&f);
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
	assert_null(kymo_process_stop(process)); /* by itself */
	kymo_process_destroy(process);
	runs(&f);
	f.hub = NULL;
	end(&f);
}

static int64_t ask_to_hold(struct kymo_hub *client, pid_t pid)
{
	struct hub_message message = { .type = HUB_FREEZE, .tid = pid };

	return hub_client_ask(hub_client_of(client), &message, NULL);
}

static void a_hold_that_is_refused_leaves_the_one_that_there_is(void **state)
{
	struct kymo_engine *engine, *another;
	struct kymo_hub *client;
	struct fixture f;
	pid_t pid;

	engine = begin_traced(&f, counting, 0);
	f.shared->ready = 0;
	pid = child_of(sleeping, f.shared);
	eventually(f.shared->ready);
	another = engine_of(f.hub, pid, &f.other, 0);
	assert_int_equal(hub_connect_to(f.hub->tid, &client), 0);
	assert_int_equal(ask_to_hold(client, f.pid), 0);
	stands(&f);
	assert_int_equal(ask_to_hold(client, pid), -EBUSY);
	stands(&f);
	kymo_hub_destroy(client);
	runs(&f);
	kymo_engine_put(engine);
	kymo_engine_put(another);
	end_with_kill(pid);
	end(&f);
}

static unsigned int stop_at_entry(struct book *book, struct kymo_engine *engine, enum told told,
				  enum kymo_action action, void *report)
{
	return told == ENTRY ? KYMO_ACTION_STOP : KYMO_ACTION_RESUME;
}

static void a_thread_that_an_engine_keeps_from_being_held_is_named(void **state)
{
	struct kymo_process *process;
	struct kymo_engine *engine;
	struct kymo_error *error;
	struct fixture f;

	engine = begin_traced(&f, counting, KYMO_EVENTS_SYSCALL);
	f.book.hook = stop_at_entry;
	eventually(f.book.told[ENTRY]);
	process = opened(&f);
	error = kymo_process_stop(process);
	assert_non_null(error);
	assert_non_null(strstr(error->message, "is held by another client"));
	is_busy(error);
	f.book.hook = NULL;
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_RESUME), 0);
	assert_null(kymo_process_stop(process));
	kymo_process_destroy(process);
	runs(&f);
	kymo_engine_put(engine);
	end(&f);
}

/* … with the first thread held alone. */
static int lend_first_and_sleep(struct shared *shared)
{
	static const uint64_t seconds[6] = { 0, 0, 3000 };
	struct kymo_process *process;
	int64_t result;

	wait_for_go(shared);
	if (kymo_process_open(shared->go, &process) || kymo_process_stop_first(process) || kymo_remote_begin(process))
		return 1;
	shared->seen = 1;
	if (kymo_remote_syscall(process, SYS_poll, seconds, &result))
		return 2;
	kymo_process_destroy(process);
	return 0;
}

static void no_call_is_made_by_an_instruction_with_a_breakpoint(void **state)
{
	static const uint64_t none[6];
	struct kymo_process *process;
	struct kymo_engine *engine = NULL;
	struct fixture f;
	uint64_t address;
	int64_t result;
	pid_t other;

	begin(&f, counting_by_threads);
	other = child_of(lend_first_and_sleep, f.shared);
	assert_int_equal(kymo_hub_serve(f.hub), 0);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, WITH_BREAKPOINTS, &ops, &f.book, &engine), 0);
	assert_int_equal(kymo_engine_set_events(engine, KYMO_EVENT_SIGNAL), 0);
	process = opened(&f);
	assert_null(kymo_process_stop_first(process));
	assert_null(kymo_remote_begin(process));
	address = process->remote.gadgets.syscall;
	assert_int_equal(kymo_engine_insert_breakpoint(engine, address), 0);
	is_busy(kymo_remote_syscall(process, SYS_getpid, none, &result));
	assert_int_equal(kymo_engine_remove_breakpoint(engine, address), 0);
	make_a_call(process, &f);
	assert_null(kymo_remote_end(process));
	kymo_process_destroy(process);
	runs(&f);
	f.shared->go = f.pid;
	eventually(f.shared->seen && state_of(f.pid) == 'S');
	assert_int_equal(kymo_engine_insert_breakpoint(engine, address), -EBUSY);
	assert_int_equal(end_of(other), 0);
	assert_int_equal(f.book.told[SIGNAL], 0);
	runs(&f);
	kymo_engine_put(engine);
	end(&f);
}

#define CODE_PAGE 4096

static uint8_t *code; /* a function, and a page after it that looks like kymo's code */

static void make_code(void)
{
	int fd = memfd_create(KYMO_WIRE_MEMFD_NAME, MFD_CLOEXEC);

	code = mmap(NULL, 2 * CODE_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(code, MAP_FAILED);
	memcpy(code, (uint8_t[]){ 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3 }, 6);
	assert_int_equal(ftruncate(fd, CODE_PAGE), 0);
	assert_int_equal(pwrite(fd, (uint8_t[]){ 0xc3 }, 1, 0), 1);
	assert_ptr_equal(mmap(code + CODE_PAGE, CODE_PAGE, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, fd, 0),
			 code + CODE_PAGE);
	close(fd);
}

static int calling(struct shared *shared)
{
	void (*function)(void);

	memcpy(&function, &code, sizeof(function));
	shared->ready = 1;
	while (!shared->is_over) {
		shared->count++;
		function();
	}
	return 0;
}

/* No thread may be within what is written. */
static void write_held(struct kymo_process *process, const uint8_t bytes[5])
{
	const struct kymo_thread *threads;
	size_t n;

	assert_null(kymo_process_stop(process));
	threads = kymo_process_threads(process, &n);
	assert_int_equal(n, 1);
	if (threads[0].registers.rip - (uintptr_t)code < 5)
		kymo_thread_set_pc(process, 0, (uintptr_t)code + 5);
	assert_int_equal(kymo_process_write(process, (uintptr_t)code, bytes, 5), 0);
	kymo_process_resume(process);
}

static void is_told(struct fixture *f)
{
	unsigned int before = f->book.told[SIGNAL];

	eventually(f->book.told[SIGNAL] > before + 2);
}

static void a_jump_over_a_breakpoint_leads_where_it_is_to_lead(void **state)
{
	static const uint8_t jump[5] = { 0xe9, (CODE_PAGE - 5) & 0xff, (CODE_PAGE - 5) >> 8 },
			     nops[5] = { 0x90, 0x90, 0x90, 0x90, 0x90 };
	struct kymo_process *process;
	struct kymo_engine *engine = NULL;
	uint8_t now[5];
	struct fixture f;

	make_code();
	begin(&f, calling);
	assert_int_equal(kymo_hub_serve(f.hub), 0);
	assert_int_equal(
		kymo_engine_attach(f.hub, f.pid, KYMO_ATTACH_CREATE | KYMO_ATTACH_BREAKPOINTS, &ops, &f.book, &engine),
		0);
	assert_int_equal(kymo_engine_set_events(engine, KYMO_EVENT_SIGNAL), 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, (uintptr_t)code + 2), 0);
	is_told(&f);
	process = opened(&f);
	write_held(process, jump);
	runs(&f);
	runs(&f);
	assert_int_equal(kymo_process_read(process, (uintptr_t)code, now, sizeof(now)), 0);
	assert_memory_equal(now, jump, sizeof(now));
	assert_int_equal(kymo_engine_insert_breakpoint(engine, (uintptr_t)code), 0); /* at the jump itself */
	is_told(&f);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, (uintptr_t)code + 1), -EBUSY);
	write_held(process, nops);
	assert_int_equal(kymo_engine_remove_breakpoint(engine, (uintptr_t)code), 0);
	is_told(&f); /* of the first one again */
	assert_int_equal(kymo_engine_remove_breakpoint(engine, (uintptr_t)code + 2), 0);
	runs(&f);
	assert_int_equal(kymo_process_read(process, (uintptr_t)code, now, sizeof(now)), 0);
	assert_memory_equal(now, nops, sizeof(now));
	kymo_process_destroy(process);
	kymo_engine_put(engine);
	end(&f);
	munmap(code, 2 * CODE_PAGE);
}

/* Of what it reads while it holds the process, it writes back what lies between its changes. */
static void an_owner_of_a_frozen_process_reads_no_breakpoints(void **state)
{
	struct kymo_process *process;
	struct kymo_engine *engine = NULL;
	struct fixture f;
	uint8_t now;

	make_code();
	begin(&f, calling);
	assert_int_equal(kymo_hub_serve(f.hub), 0);
	assert_int_equal(
		kymo_engine_attach(f.hub, f.pid, KYMO_ATTACH_CREATE | KYMO_ATTACH_BREAKPOINTS, &ops, &f.book, &engine),
		0);
	assert_int_equal(kymo_engine_set_events(engine, KYMO_EVENT_SIGNAL), 0);
	process = opened(&f);
	assert_null(kymo_process_stop(process));
	assert_null(kymo_remote_begin(process)); /* … also while a thread makes calls */
	for (uint64_t i = 1; i < 3; i++) {
		assert_int_equal(kymo_engine_insert_breakpoint(engine, (uintptr_t)code + i), 0);
		assert_int_equal(kymo_process_read(process, (uintptr_t)code + i, &now, 1), 0);
		assert_int_equal(now, 0x90);
		assert_int_equal(kymo_process_write(process, (uintptr_t)code + i, &now, 1), 0);
	}
	assert_null(kymo_remote_end(process));
	kymo_process_resume(process);
	is_told(&f);
	for (uint64_t i = 1; i < 3; i++)
		assert_int_equal(kymo_engine_remove_breakpoint(engine, (uintptr_t)code + i), 0);
	runs(&f);
	kymo_process_destroy(process);
	kymo_engine_put(engine);
	end(&f);
	munmap(code, 2 * CODE_PAGE);
}

static void nothing_is_written_over_breakpoints_while_others_run(void **state)
{
	static const uint8_t jump[5] = { 0xe9, (CODE_PAGE - 5) & 0xff, (CODE_PAGE - 5) >> 8 };
	struct kymo_process *process;
	struct kymo_engine *engine = NULL;
	struct fixture f;
	uint8_t now[5];

	make_code();
	begin(&f, counting_by_threads);
	assert_int_equal(kymo_hub_serve(f.hub), 0);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, WITH_BREAKPOINTS, &ops, &f.book, &engine), 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, (uintptr_t)code + 2), 0);
	process = opened(&f);
	assert_null(kymo_process_stop_first(process));
	assert_int_equal(kymo_process_write(process, (uintptr_t)code, jump, 5), -EBUSY);
	assert_int_equal(kymo_process_write(process, (uintptr_t)code + 3, jump, 2), 0);
	kymo_process_resume(process);
	assert_null(kymo_process_stop(process));
	assert_int_equal(kymo_process_write(process, (uintptr_t)code, jump, 5), 0);
	kymo_process_resume(process);
	runs(&f);
	assert_int_equal(kymo_process_read(process, (uintptr_t)code, now, sizeof(now)), 0);
	assert_memory_equal(now, jump, sizeof(now));
	kymo_process_destroy(process);
	kymo_engine_put(engine);
	end(&f);
	munmap(code, 2 * CODE_PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_threads_stand_still_for_one_at_a_time),
		cmocka_unit_test(calls_in_its_name_are_told_to_nobody_and_kept_by_nobody),
		cmocka_unit_test(a_recorder_that_dies_in_a_remote_call_gives_the_thread_back),
		cmocka_unit_test(the_next_recorder_finds_a_thread_as_it_was_before_the_first_died),
		cmocka_unit_test(a_hub_that_ends_leaves_nothing_to_be_written),
		cmocka_unit_test(a_hold_that_is_refused_leaves_the_one_that_there_is),
		cmocka_unit_test(a_thread_that_an_engine_keeps_from_being_held_is_named),
		cmocka_unit_test(no_call_is_made_by_an_instruction_with_a_breakpoint),
		cmocka_unit_test(a_jump_over_a_breakpoint_leads_where_it_is_to_lead),
		cmocka_unit_test(nothing_is_written_over_breakpoints_while_others_run),
		cmocka_unit_test(an_owner_of_a_frozen_process_reads_no_breakpoints),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
