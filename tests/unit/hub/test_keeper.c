/*
 * What is left when the hub of a process with breakpoints is killed: another process' hub, and engines through its
 * socket. How often a program survives that comes by a breakpoint all the time is a matter of luck; KYMO_KILLS is how
 * often the others are tried (20), and with KYMO_HOT the lucky ones are counted, too.
 */
#define KYMO_TESTS_REMOTE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

#include "breakpoints.h"

/* Comes by `cold` when it is told to. */
static void *tick_on(void *data)
{
	struct shared *shared = data;

	shared->ready = 1;
	while (!shared->is_over) {
		tick(shared);
		if (shared->go && !shared->seen)
			cold(shared);
	}
	return NULL;
}

static int ticking(struct shared *shared)
{
	pthread_t thread;

	pthread_create(&thread, NULL, tick_on, shared);
	tick_on(shared);
	pthread_join(thread, NULL);
	_exit(0);
}

static uint8_t byte_of(pid_t pid, uint64_t address)
{
	uint8_t byte = 0;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", pid);
	fd = open(name, O_RDONLY);
	if (fd < 0 || pread(fd, &byte, 1, (off_t)address) != 1)
		byte = TRAP;
	close(fd);
	return byte;
}

/* Whether `pid` is a child of `parent` and called so. */
static bool is_child_called(const char *pid, pid_t parent, const char *name)
{
	char file[300], line[256] = "";
	FILE *stat;
	int of = 0;

	snprintf(file, sizeof(file), "/proc/%s/stat", pid);
	stat = fopen(file, "r");
	if (!stat)
		return false;
	if (fgets(line, sizeof(line), stat) && strstr(line, name))
		sscanf(strrchr(line, ')') + 2, "%*c %d", &of);
	fclose(stat);
	return of == parent;
}

/* A child of `parent` that is called so, or 0. Its id may be the smaller one: they begin anew when they are used up. */
static pid_t child_called(pid_t parent, const char *name)
{
	DIR *list = opendir("/proc");
	const struct dirent *entry;
	pid_t found = 0;

	assert_non_null(list);
	while (!found && (entry = readdir(list)))
		if (*entry->d_name >= '1' && *entry->d_name <= '9' && is_child_called(entry->d_name, parent, name))
			found = atoi(entry->d_name);
	closedir(list);
	return found;
}

/* The hub's thread is the tracer; its process is to be killed, and is one of ours. */
static pid_t process_of(pid_t tid)
{
	char name[64], line[256];
	int pid = 0;
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/status", tid);
	file = fopen(name, "r");
	while (file && fgets(line, sizeof(line), file))
		sscanf(line, "Tgid: %d", &pid);
	if (file)
		fclose(file);
	return pid;
}

static pid_t hub_of(const struct fixture *f)
{
	pid_t pid = process_of(tracer_of(f->pid));

	assert_true(pid > 1 && pid != getpid());
	return pid;
}

static pid_t keeper_of_hub(pid_t hub)
{
	return child_called(hub, "(kymo-keeper)");
}

static void kill_hub(struct fixture *f)
{
	end_with_kill(hub_of(f));
	eventually(kymo_hub_failure(f->hub));
	kymo_hub_destroy(f->hub);
}

static void finish(struct fixture *f)
{
	f->shared->is_over = 1;
	assert_int_equal(end_of(f->pid), 0);
	munmap(f->shared, sizeof(*f->shared));
}

static unsigned int n_kills(void)
{
	const char *text = getenv("KYMO_KILLS");

	return text ? (unsigned int)atoi(text) : 20;
}

static void a_program_whose_hub_is_killed_runs_past_where_a_breakpoint_was(void **state)
{
	for (unsigned int i = 0; i < n_kills(); i++) {
		struct kymo_engine *engine;
		struct fixture f;

		begin(&f, ticking);
		engine = breaker(f.hub, f.pid, &f.book);
		assert_int_equal(kymo_engine_insert_breakpoint(engine, at(cold)), 0);
		assert_int_equal(byte_of(f.pid, at(cold)), TRAP);
		kill_hub(&f);
		eventually(byte_of(f.pid, at(cold)) == *(const uint8_t *)at(cold));
		f.shared->go = 1;
		eventually(f.shared->seen);
		runs(&f);
		kymo_engine_put(engine);
		finish(&f);
	}
}

static unsigned int stop_there(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			       void *report)
{
	return told == SIGNAL ? KYMO_ACTION_STOP : KYMO_ACTION_RESUME;
}

static int ticking_alone(struct shared *shared)
{
	tick_on(shared);
	return 0;
}

static void a_program_that_is_held_at_its_breakpoint_survives_the_hub(void **state)
{
	for (unsigned int i = 0; i < n_kills(); i++) {
		struct kymo_engine *engine;
		struct fixture f;

		begin(&f, ticking_alone);
		f.book.hook = stop_there;
		engine = breaker(f.hub, f.pid, &f.book);
		assert_int_equal(kymo_engine_insert_breakpoint(engine, at(tick)), 0);
		eventually(f.book.told[SIGNAL]);
		eventually(byte_of(f.pid, at(tick)) == *(const uint8_t *)at(tick));
		kill_hub(&f);
		runs(&f);
		kymo_engine_put(engine);
		finish(&f);
	}
}

static void a_keeper_that_is_killed_is_followed_by_another(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;
	pid_t hub, first, second;

	begin(&f, ticking);
	engine = breaker(f.hub, f.pid, &f.book);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(cold)), 0);
	hub = hub_of(&f);
	eventually((first = keeper_of_hub(hub)));
	kill(first, SIGKILL);
	eventually((second = keeper_of_hub(hub)) && second != first);
	kill_hub(&f);
	eventually(byte_of(f.pid, at(cold)) == *(const uint8_t *)at(cold));
	eventually(state_of(second) == 'X' || state_of(second) == 'Z');
	kymo_engine_put(engine);
	finish(&f);
}

static void the_keeper_goes_with_the_last_breakpoint(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;
	pid_t hub, keeper;

	begin(&f, ticking);
	engine = breaker(f.hub, f.pid, &f.book);
	hub = hub_of(&f);
	assert_int_equal(keeper_of_hub(hub), 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(cold)), 0);
	eventually((keeper = keeper_of_hub(hub)));
	for (int i = 0; i < 100; i++) { /* as a debugger does at each stop */
		assert_int_equal(kymo_engine_remove_breakpoint(engine, at(cold)), 0);
		assert_int_equal(kymo_engine_insert_breakpoint(engine, at(cold)), 0);
	}
	assert_int_equal(keeper_of_hub(hub), keeper);
	assert_int_equal(kymo_engine_remove_breakpoint(engine, at(cold)), 0);
	eventually(!keeper_of_hub(hub));
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(cold)), 0);
	eventually(keeper_of_hub(hub));
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
	finish(&f);
}

static void a_client_that_goes_takes_its_breakpoints_along(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, ticking);
	engine = breaker(f.hub, f.pid, &f.book);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(cold)), 0);
	kymo_hub_destroy(f.hub);
	eventually(byte_of(f.pid, at(cold)) == *(const uint8_t *)at(cold));
	f.shared->go = 1;
	eventually(f.shared->seen);
	kymo_engine_put(engine);
	finish(&f);
}

static void an_armed_register_is_cleared_when_the_hub_is_killed(void **state)
{
	for (unsigned int i = 0; i < n_kills(); i++) {
		struct kymo_engine *engine;
		struct kymo_examiner looks;
		struct fixture f;
		unsigned int slot;
		pid_t keeper, hub;

		begin(&f, ticking);
		engine = breaker(f.hub, f.pid, &f.book);
		hub = hub_of(&f);
		kymo_engine_control(engine, KYMO_ACTION_STOP);
		while (kymo_engine_prepare_examine(engine, &looks) == -EAGAIN)
			nap();
		assert_int_equal(kymo_engine_watch(engine, KYMO_WATCH_WRITE, at(&f.shared->seen), 4, &slot), 0);
		eventually((keeper = keeper_of_hub(hub)));
		kymo_engine_control(engine, KYMO_ACTION_RESUME);
		runs(&f);
		kill_hub(&f);
		eventually(state_of(keeper) == 'X' || state_of(keeper) == 'Z');
		f.shared->go = 1;
		eventually(f.shared->seen);
		runs(&f);
		kymo_engine_put(engine);
		finish(&f);
	}
}

/* How often a program survives that runs into the breakpoint all the time. */
static void luck_is_counted(void **state)
{
	unsigned int n = 0;

	if (!getenv("KYMO_HOT"))
		skip();
	for (unsigned int i = 0; i < n_kills(); i++) {
		struct kymo_engine *engine;
		struct fixture f;

		begin(&f, ticking);
		engine = breaker(f.hub, f.pid, &f.book);
		assert_int_equal(kymo_engine_insert_breakpoint(engine, at(tick)), 0);
		eventually(f.shared->count > 100);
		kill_hub(&f);
		f.shared->is_over = 1;
		n += end_of(f.pid) == 0;
		kymo_engine_put(engine);
	}
	print_message("%u of %u survive\n", n, n_kills());
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_whose_hub_is_killed_runs_past_where_a_breakpoint_was),
		cmocka_unit_test(a_program_that_is_held_at_its_breakpoint_survives_the_hub),
		cmocka_unit_test(a_keeper_that_is_killed_is_followed_by_another),
		cmocka_unit_test(the_keeper_goes_with_the_last_breakpoint),
		cmocka_unit_test(a_client_that_goes_takes_its_breakpoints_along),
		cmocka_unit_test(an_armed_register_is_cleared_when_the_hub_is_killed),
		cmocka_unit_test(luck_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
