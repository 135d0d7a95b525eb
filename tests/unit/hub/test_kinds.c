/* Kinds that engines are told, verdicts and limits: rows of the tables in include/kymo/engine.h that no other test is
 * about. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>

#include "fixture.h"

/* ---- kinds of clones ------------------------------------------------------------------------- */

struct kinds {
	struct book book;
	atomic_int n[KYMO_CLONE_VFORK + 1];
};

static unsigned int note_kind(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			      void *report)
{
	if (told == CLONE)
		((struct kinds *)book)->n[((struct kymo_clone_report *)report)->kind]++;
	return KYMO_ACTION_RESUME;
}

static void *do_nothing(void *data)
{
	return data;
}

/* One child by fork, two by vfork, three threads. */
static int making(struct shared *shared)
{
	char *argv[] = { (char *)"true", NULL };
	pthread_t thread;
	pid_t pid;

	shared->ready = 1;
	while (!shared->go)
		nap();
	pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 2; i++)
		if (!posix_spawnp(&pid, "true", NULL, NULL, argv, NULL))
			waitpid(pid, NULL, 0);
	for (int i = 0; i < 3; i++)
		if (!pthread_create(&thread, NULL, do_nothing, NULL))
			pthread_join(thread, NULL);
	return 0;
}

static void a_clone_is_told_with_its_kind(void **state)
{
	struct kinds kinds = { .book.hook = note_kind };
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, making);
	engine = engine_of(f.hub, f.pid, &kinds.book, KYMO_EVENT_CLONE);
	f.shared->go = 1;
	assert_int_equal(end_of(f.pid), 0);
	assert_int_equal(kinds.n[KYMO_CLONE_PROCESS], 1);
	assert_int_equal(kinds.n[KYMO_CLONE_VFORK], 2);
	assert_int_equal(kinds.n[KYMO_CLONE_THREAD], 3);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

/* ---- kinds of signals ------------------------------------------------------------------------ */

static void on_usr(int signal)
{
}

static int handling(struct shared *shared)
{
	signal(SIGUSR1, on_usr);
	return counting(shared);
}

static const struct {
	unsigned int kind, verdict;
	int signal;
} rows[] = {
	{ KYMO_EVENT_SIGNAL, KYMO_SIGNAL_DELIVER, SIGUSR1 },   { KYMO_EVENT_SIGNAL_IGN, KYMO_SIGNAL_IGN, SIGWINCH },
	{ KYMO_EVENT_SIGNAL_STOP, KYMO_SIGNAL_STOP, SIGSTOP }, { KYMO_EVENT_SIGNAL_TERM, KYMO_SIGNAL_TERM, SIGTERM },
	{ KYMO_EVENT_SIGNAL_CORE, KYMO_SIGNAL_CORE, SIGXCPU },
};
enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* `status` counts what was not as the row says. */
static unsigned int check_row(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			      void *data)
{
	const struct kymo_signal_report *report = data;
	const size_t row = (size_t)(uintptr_t)book->more;

	book->status += told != SIGNAL || report->info.si_signo != rows[row].signal || report->kind != rows[row].kind ||
			report->verdict != rows[row].verdict || report->trap != KYMO_TRAP_NONE;
	return KYMO_ACTION_RESUME | KYMO_SIGNAL_IGN;
}

static void a_signal_is_told_by_its_kind_to_engines_that_want_that(void **state)
{
	struct kymo_engine *engines[N_ROWS];
	struct book books[N_ROWS] = { 0 };
	struct fixture f;

	begin(&f, handling);
	for (size_t i = 0; i < N_ROWS; i++) {
		books[i].hook = check_row;
		books[i].more = (void *)(uintptr_t)i;
		engines[i] = engine_of(f.hub, f.pid, &books[i], rows[i].kind);
	}
	for (size_t i = 0; i < N_ROWS; i++) {
		kill(f.pid, rows[i].signal);
		eventually(books[i].told[SIGNAL] == 1);
	}
	runs(&f);
	for (size_t i = 0; i < N_ROWS; i++) {
		assert_int_equal(books[i].told[SIGNAL], 1);
		assert_int_equal(books[i].status, 0);
		kymo_engine_put(engines[i]);
	}
	end(&f);
}

/* ---- the verdict TERM ------------------------------------------------------------------------ */

static unsigned int end_it(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			   void *report)
{
	return KYMO_ACTION_RESUME | (told == SIGNAL ? KYMO_SIGNAL_TERM : 0);
}

static void a_signal_ends_a_process_by_verdict_by_itself_or_by_a_kill(void **state)
{
	static const struct {
		int signal, end;
	} ends[] = { { SIGTERM, SIGTERM }, { SIGWINCH, SIGKILL }, { SIGUSR1, SIGKILL }, { SIGSTOP, SIGKILL } };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		struct kymo_engine *engine;
		struct fixture f;
		int status;

		begin(&f, handling);
		f.book.hook = end_it;
		engine = engine_of(f.hub, f.pid, &f.book, KYMO_EVENTS_SIGNAL);
		kill(f.pid, ends[i].signal);
		status = end_of(f.pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), ends[i].end);
		kymo_engine_put(engine);
		kymo_hub_destroy(f.hub);
		munmap(f.shared, sizeof(*f.shared));
	}
}

/* ---- launched with EXITKILL ------------------------------------------------------------------ */

static unsigned int launch_flags;

/* A hub with a command that sleeps. */
static int launching(struct shared *shared)
{
	char *argv[] = { (char *)"sleep", (char *)"1000", NULL };
	static struct book book;
	struct kymo_hub *hub;
	pid_t pid;

	if (kymo_hub_create(&hub) || kymo_hub_launch(hub, launch_flags, argv, &pid))
		return 1;
	kymo_engine_put(engine_of(hub, pid, &book, KYMO_EVENTS_SYSCALL | KYMO_EVENT_EXEC));
	if (kymo_hub_start(hub, pid))
		return 1;
	while (!book.told[EXEC])
		nap();
	shared->tid = pid;
	shared->ready = 1;
	for (;;)
		pause();
}

static pid_t command_of_killed_hub(unsigned int flags)
{
	struct shared *shared = share();
	pid_t hub, command;

	launch_flags = flags;
	hub = child_of(launching, shared);
	eventually(shared->ready);
	command = shared->tid;
	assert_true(tracer_of(command) > 0);
	end_with_kill(hub);
	munmap(shared, sizeof(*shared));
	return command;
}

static void a_command_ends_with_a_killed_hub_where_that_was_asked_for(void **state)
{
	pid_t command = command_of_killed_hub(KYMO_LAUNCH_EXITKILL);

	eventually(state_of(command) == 'X' || state_of(command) == 'Z');
	command = command_of_killed_hub(0);
	eventually(tracer_of(command) == 0);
	eventually(state_of(command) == 'S');
	kill(command, SIGKILL);
}

/* ---- how many breakpoints there may be ------------------------------------------------------- */

enum { CODE = 2 * KYMO_BREAKPOINTS_MAX, NOP = 0x90 };

static bool is_whole(pid_t pid, uint64_t code)
{
	static uint8_t bytes[CODE];
	char name[64];
	ssize_t n;
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", pid);
	fd = open(name, O_RDONLY);
	n = fd < 0 ? -1 : pread(fd, bytes, sizeof(bytes), (off_t)code);
	close(fd);
	for (ssize_t i = 0; i < n; i++)
		if (bytes[i] != NOP)
			return false;
	return n == sizeof(bytes);
}

static void more_breakpoints_than_there_is_room_for_are_refused_and_taken_ones_give_room(void **state)
{
	uint8_t *memory = mmap(NULL, CODE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t code = at(memory);
	struct kymo_engine *engine;
	struct fixture f;

	assert_ptr_not_equal(memory, MAP_FAILED);
	memset(memory, NOP, CODE);
	assert_int_equal(mprotect(memory, CODE, PROT_READ | PROT_EXEC), 0);
	begin(&f, counting);
	assert_int_equal(kymo_engine_attach(f.hub, f.pid, WITH_BREAKPOINTS, &ops, &f.book, &engine), 0);
	for (uint64_t i = 0; i < KYMO_BREAKPOINTS_MAX; i++)
		assert_int_equal(kymo_engine_insert_breakpoint(engine, code + 2 * i), 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, code + 1), -ENOSPC);
	runs(&f);
	assert_int_equal(kymo_engine_remove_breakpoint(engine, code), 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, code + 1), 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, code), -ENOSPC);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
	assert_true(is_whole(f.pid, code));
	runs(&f);
	end_with_kill(f.pid);
	munmap(f.shared, sizeof(*f.shared));
	munmap(memory, CODE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clone_is_told_with_its_kind),
		cmocka_unit_test(a_signal_is_told_by_its_kind_to_engines_that_want_that),
		cmocka_unit_test(a_signal_ends_a_process_by_verdict_by_itself_or_by_a_kill),
		cmocka_unit_test(a_command_ends_with_a_killed_hub_where_that_was_asked_for),
		cmocka_unit_test(more_breakpoints_than_there_is_room_for_are_refused_and_taken_ones_give_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
