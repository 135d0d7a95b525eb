/* Breakpoints: which engine is told, what others see, how threads get past them, and what is left when a side dies. */
#include <errno.h>
#include <sched.h>
#include <ucontext.h>

#include "breakpoints.h"

#define N_TICKS 500

/* A function that makes a system call, getpid; and one that begins with a breakpoint of its own. */
long own_call(void);
void own_trap(void);
__asm__(".pushsection .text\n"
	".globl own_call\n.type own_call, @function\nown_call: mov $39, %eax\n.globl own_call_at\nown_call_at: "
	"syscall\n ret\n.size own_call, .-own_call\n"
	".globl own_trap\n.type own_trap, @function\nown_trap: int3\n ret\n.size own_trap, .-own_trap\n"
	".popsection\n");
extern const char own_call_at[];

/* Counts breakpoints and signals apart. */
struct hits {
	struct book book;
	atomic_int n, n_signals, n_wrong;
	atomic_ulong address;
};

static unsigned int count_hits(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			       void *data)
{
	struct hits *hits = (struct hits *)book;
	struct kymo_signal_report *report = data;

	if (told != SIGNAL)
		return KYMO_ACTION_RESUME;
	if (report->trap == KYMO_TRAP_BREAKPOINT) {
		struct user_regs_struct registers;
		int err = kymo_engine_get_registers(engine, &registers); /* it may be detached meanwhile */

		hits->n_wrong += err ? err != -ESRCH : registers.rip != report->address;
		hits->address = report->address;
		hits->n++;
	} else {
		hits->n_signals++;
	}
	return KYMO_ACTION_RESUME | report->verdict;
}

/* A program that waits for `go` runs with a breakpoint, and well. */
static struct kymo_engine *run_to_the_end(struct fixture *f, int (*run)(struct shared *shared), uint64_t place,
					  struct hits *hits)
{
	struct kymo_engine *engine;

	begin(f, run);
	engine = breaker(f->hub, f->pid, &hits->book);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, place), 0);
	f->shared->go = 1;
	assert_int_equal(end_of(f->pid), 0);
	return engine;
}

static uint8_t byte_of(pid_t pid, uint64_t address)
{
	uint8_t byte = 0;
	char name[64];
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/mem", pid);
	file = fopen(name, "r");
	assert_non_null(file);
	setvbuf(file, NULL, _IONBF, 0);
	assert_int_equal(fseek(file, (long)address, SEEK_SET), 0);
	assert_int_equal(fread(&byte, 1, 1, file), 1);
	fclose(file);
	return byte;
}

static int ticking_some(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->go)
		sched_yield();
	for (int i = 0; i < N_TICKS; i++)
		tick(shared);
	shared->is_over = 1;
	while (shared->go < 2)
		usleep(1000);
	return 0;
}

static int ticking(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over)
		tick(shared);
	return 0;
}

static void *tick_on(void *data)
{
	ticking_some(data);
	return NULL;
}

static int ticking_by_threads(struct shared *shared)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, tick_on, shared);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

static void each_hit_is_told_once_and_the_program_does_what_it_did(void **state)
{
	struct hits hits = { .book.hook = count_hits };
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, ticking_some);
	engine = breaker(f.hub, f.pid, &hits.book);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(tick)), 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(tick)), -EEXIST);
	eventually(byte_of(f.pid, at(tick)) == TRAP); /* but for the moments in which it is stepped over */
	f.shared->go = 1;
	eventually(f.shared->is_over);
	assert_int_equal(f.shared->count, N_TICKS);
	assert_int_equal(hits.n, N_TICKS);
	assert_int_equal(hits.n_signals, 0);
	assert_int_equal(hits.n_wrong, 0);
	assert_int_equal(kymo_engine_remove_breakpoint(engine, at(tick)), 0);
	assert_int_equal(kymo_engine_remove_breakpoint(engine, at(tick)), -ENOENT);
	assert_int_equal(byte_of(f.pid, at(tick)), *(const uint8_t *)at(tick));
	f.shared->go = 2;
	assert_int_equal(end_of(f.pid), 0);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

static void an_engine_without_the_flag_may_not_insert_one(void **state)
{
	struct kymo_engine *engine;
	unsigned int slot;
	struct fixture f;

	begin(&f, ticking);
	engine = engine_of(f.hub, f.pid, &f.book, 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(tick)), -EPERM);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_STOP), -EINPROGRESS);
	while (kymo_engine_watch(engine, KYMO_WATCH_WRITE, at(&f.shared->seen), 4, &slot) == -EAGAIN)
		nap();
	assert_int_equal(kymo_engine_watch(engine, KYMO_WATCH_WRITE, at(&f.shared->seen), 4, &slot), -EPERM);
	kymo_engine_put(engine);
	end(&f);
}

static void what_is_no_code_of_its_own_is_refused(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, ticking);
	engine = breaker(f.hub, f.pid, &f.book);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, 4096), -EIO);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(f.shared)), -EINVAL);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(&f)), -EINVAL);
	kymo_engine_put(engine);
	runs(&f);
	end(&f);
}

static void two_owners_are_told_each_and_the_last_one_takes_it_out(void **state)
{
	struct hits one = { .book.hook = count_hits }, other = { .book.hook = count_hits },
		    stranger = { .book.hook = count_hits };
	struct kymo_engine *engines[3];
	struct fixture f;
	int before;

	begin(&f, ticking);
	engines[0] = breaker(f.hub, f.pid, &one.book);
	engines[1] = breaker(f.hub, f.pid, &other.book);
	engines[2] = breaker(f.hub, f.pid, &stranger.book);
	assert_int_equal(kymo_engine_insert_breakpoint(engines[0], at(tick)), 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engines[1], at(tick)), 0);
	eventually(one.n > 10 && other.n > 10);
	assert_int_equal(kymo_engine_remove_breakpoint(engines[0], at(tick)), 0);
	kymo_engine_barrier(engines[0]);
	before = one.n;
	eventually(other.n > before + 20);
	assert_int_equal(one.n, before);
	eventually(byte_of(f.pid, at(tick)) == TRAP); /* but for the moments in which it is stepped over */
	assert_int_equal(kymo_engine_control(engines[1], KYMO_ACTION_DETACH) & ~-EINPROGRESS, 0);
	kymo_engine_barrier(engines[1]);
	assert_int_equal(byte_of(f.pid, at(tick)), *(const uint8_t *)at(tick));
	assert_int_equal(stranger.n + stranger.n_signals, 0);
	runs(&f);
	for (int i = 0; i < 3; i++)
		kymo_engine_put(engines[i]);
	end(&f);
}

static void reads_show_what_is_below_and_writes_change_that(void **state)
{
	uint8_t code[8], nops[4];
	struct kymo_engine *engine, *other;
	struct fixture f;

	begin(&f, ticking);
	engine = breaker(f.hub, f.pid, &f.book);
	other = engine_of(f.hub, f.pid, &f.other, 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(cold) + 1), 0);
	assert_int_equal(kymo_engine_read(other, at(cold), code, sizeof(code)), 0);
	assert_memory_equal(code, (const void *)at(cold), sizeof(code));
	memset(nops, 0x90, sizeof(nops));
	assert_int_equal(kymo_engine_write(other, at(cold), nops, sizeof(nops)), 0);
	assert_int_equal(byte_of(f.pid, at(cold)), 0x90);
	assert_int_equal(byte_of(f.pid, at(cold) + 1), TRAP);
	assert_int_equal(kymo_engine_read(other, at(cold), code, sizeof(nops)), 0);
	assert_memory_equal(code, nops, sizeof(nops));
	kymo_engine_remove_breakpoint(engine, at(cold) + 1);
	assert_int_equal(byte_of(f.pid, at(cold) + 1), 0x90);
	kymo_engine_put(engine);
	kymo_engine_put(other);
	end(&f);
}

static void threads_without_an_owner_step_over_it_and_none_misses_one(void **state)
{
	struct hits one = { .book.hook = count_hits }, all = { .book.hook = count_hits };
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, ticking_by_threads);
	eventually(f.shared->ready);
	nap();
	engine = breaker(f.hub, f.pid, &one.book); /* the first thread calls nothing */
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(tick)), 0);
	f.shared->go = 1;
	eventually(f.shared->count == 4 * N_TICKS);
	assert_int_equal(one.n + all.n, 0);
	eventually(byte_of(f.pid, at(tick)) == TRAP); /* but for the moments in which it is stepped over */
	f.shared->go = 2;
	assert_int_equal(end_of(f.pid), 0);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

/* ---- children -------------------------------------------------------------------------------- */

__attribute__((noinline)) static pid_t make_vfork_child(struct shared *shared)
{
	pid_t pid = vfork();

	if (!pid) {
		tick(shared);
		_exit(3);
	}
	return pid;
}

static pid_t make_child(struct shared *shared)
{
	pid_t pid = fork();

	if (!pid) {
		tick(shared);
		_exit(3);
	}
	return pid;
}

static int forking(struct shared *shared)
{
	int status;

	shared->ready = 1;
	while (!shared->go)
		sched_yield();
	for (int i = 0; i < 20; i++) {
		pid_t pid = i % 2 ? make_vfork_child(shared) : make_child(shared);

		tick(shared);
		if (waitpid(pid, &status, 0) != pid || status != 3 << 8)
			return 1;
	}
	return 0;
}

static void children_that_nobody_follows_run_without_and_those_in_the_same_memory_past_it(void **state)
{
	struct hits hits = { .book.hook = count_hits };
	struct kymo_engine *engine;
	struct fixture f;

	engine = run_to_the_end(&f, forking, at(tick), &hits);
	assert_int_equal(f.shared->count, 40);
	assert_int_equal(hits.n, 20);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

static struct hits of_children;

static unsigned int follow(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			   void *data)
{
	struct fixture *f = book->more;
	struct kymo_engine *child;

	if (told != CLONE)
		return KYMO_ACTION_RESUME;
	child = breaker(f->hub, ((const struct kymo_clone_report *)data)->child, &of_children.book);
	assert_int_equal(kymo_engine_insert_breakpoint(child, at(tick)), 0);
	kymo_engine_put(child);
	return KYMO_ACTION_RESUME;
}

static void children_whose_engines_insert_it_have_it(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, forking);
	of_children = (struct hits){ .book.hook = count_hits };
	f.book.hook = follow;
	f.book.more = &f;
	engine = breaker(f.hub, f.pid, &f.book);
	assert_int_equal(kymo_engine_set_events(engine, KYMO_EVENT_CLONE), 0);
	f.shared->go = 1;
	assert_int_equal(end_of(f.pid), 0);
	assert_int_equal(f.shared->count, 40);
	assert_int_equal(of_children.n, 20);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

static int executing(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->go)
		tick(shared);
	execl("/bin/true", "true", (char *)NULL);
	return 1;
}

static void an_exec_is_the_end_of_it(void **state)
{
	struct hits hits = { .book.hook = count_hits };
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, executing);
	engine = breaker(f.hub, f.pid, &hits.book);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(tick)), 0);
	eventually(hits.n > 5);
	f.shared->go = 1;
	assert_int_equal(end_of(f.pid), 0);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

/* ---- what is below, and what comes in between ------------------------------------------------ */

static volatile sig_atomic_t n_own;

static void own_handler(int signal)
{
	n_own++;
}

static int trapping(struct shared *shared)
{
	signal(SIGTRAP, own_handler);
	shared->ready = 1;
	while (!shared->go)
		sched_yield();
	for (int i = 0; i < 100; i++)
		own_trap();
	return n_own == 100 ? 0 : 1;
}

static void an_own_trap_of_the_program_below_it_is_the_programs(void **state)
{
	struct hits hits = { .book.hook = count_hits };
	struct kymo_engine *engine;
	struct fixture f;

	engine = run_to_the_end(&f, trapping, at(own_trap), &hits);
	assert_int_equal(hits.n, 100);
	assert_int_equal(hits.n_signals, 100);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

static int calling_own(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->go)
		sched_yield();
	for (int i = 0; i < 50; i++)
		if (own_call() != getpid())
			return 1;
	return 0;
}

static void a_system_call_below_it_is_made_and_told(void **state)
{
	struct hits hits = { .book.hook = count_hits };
	struct kymo_engine *engine;
	struct fixture f;

	engine = run_to_the_end(&f, calling_own, at(own_call_at), &hits);
	assert_int_equal(hits.n, 50);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

#define OFTEN_NS 300000

/* Each signal asks for the next one, later and later where a slow machine lets nothing be executed in between. */
static struct {
	timer_t timer;
	struct shared *shared;
	int count;
	long pause_ns;
} alarms;

static void ask_for_alarm(void)
{
	bool is_slow = alarms.shared->go && alarms.count == alarms.shared->count && alarms.pause_ns < 100 * OFTEN_NS;

	alarms.pause_ns = is_slow ? 2 * alarms.pause_ns : OFTEN_NS;
	alarms.count = alarms.shared->count;
	timer_settime(alarms.timer, 0, &(struct itimerspec){ .it_value = { 0, alarms.pause_ns } }, NULL);
}

static void on_alarm(int signal)
{
	n_own++;
	ask_for_alarm();
}

static int alarmed(struct shared *shared)
{
	struct sigaction action = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM };

	sigaction(SIGALRM, &action, NULL);
	timer_create(CLOCK_MONOTONIC, &event, &alarms.timer);
	alarms.shared = shared;
	alarms.pause_ns = OFTEN_NS;
	ask_for_alarm();
	shared->ready = 1;
	while (!shared->go)
		sched_yield();
	for (int i = 0; i < 4 * N_TICKS; i++)
		tick(shared);
	return n_own > 0 ? 0 : 1;
}

static void signals_that_come_before_the_instruction_make_no_hit_two(void **state)
{
	struct hits hits = { .book.hook = count_hits };
	struct kymo_engine *engine;
	struct fixture f;

	engine = run_to_the_end(&f, alarmed, at(tick), &hits);
	assert_int_equal(f.shared->count, 4 * N_TICKS);
	assert_int_equal(hits.n, 4 * N_TICKS);
	assert_true(hits.n_signals > 0);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

/* Steps all the time. */
static unsigned int step_on(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			    void *data)
{
	return (count_hits(book, engine, told, action, data) & ~15u) | KYMO_ACTION_SINGLESTEP;
}

static void steps_and_breakpoints_go_together(void **state)
{
	struct hits hits = { .book.hook = step_on };
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, ticking_some);
	engine = breaker(f.hub, f.pid, &hits.book);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(tick)), 0);
	f.shared->go = 1;
	eventually(hits.n >= 10);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_STOP) & ~-EINPROGRESS, 0);
	hits.book.hook = count_hits;
	kymo_engine_control(engine, KYMO_ACTION_RESUME);
	eventually(f.shared->is_over);
	assert_int_equal(hits.n, N_TICKS);
	assert_true(hits.book.told[QUIESCE] > 30);
	f.shared->go = 2;
	assert_int_equal(end_of(f.pid), 0);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

static void an_engine_that_detaches_while_it_is_hit_leaves_a_program_that_runs(void **state)
{
	struct fixture f;

	begin(&f, ticking);
	for (int i = 0; i < 30; i++) {
		struct hits hits = { .book.hook = count_hits };
		struct kymo_engine *engine = breaker(f.hub, f.pid, &hits.book);

		assert_int_equal(kymo_engine_insert_breakpoint(engine, at(tick)), 0);
		eventually(hits.n > i);
		kymo_engine_control(engine, KYMO_ACTION_DETACH);
		kymo_engine_barrier(engine);
		assert_int_equal(byte_of(f.pid, at(tick)), *(const uint8_t *)at(tick));
		kymo_engine_put(engine);
		eventually(hits.book.told[RELEASE]); /* through a socket it comes later */
		runs(&f);
	}
	end(&f);
}

static void a_hub_that_ends_while_it_is_hit_leaves_a_program_that_runs(void **state)
{
	struct fixture f;

	begin(&f, ticking);
	for (int i = 0; i < 20; i++) {
		struct hits hits = { .book.hook = count_hits };
		struct kymo_engine *engine = breaker(f.hub, f.pid, &hits.book);

		assert_int_equal(kymo_engine_insert_breakpoint(engine, at(tick)), 0);
		eventually(hits.n > i);
		kymo_hub_destroy(f.hub);
		kymo_engine_put(engine);
		assert_int_equal(byte_of(f.pid, at(tick)), *(const uint8_t *)at(tick));
		runs(&f);
		f.hub = new_hub();
	}
	end(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_hit_is_told_once_and_the_program_does_what_it_did),
		cmocka_unit_test(an_engine_without_the_flag_may_not_insert_one),
		cmocka_unit_test(what_is_no_code_of_its_own_is_refused),
		cmocka_unit_test(two_owners_are_told_each_and_the_last_one_takes_it_out),
		cmocka_unit_test(reads_show_what_is_below_and_writes_change_that),
		cmocka_unit_test(threads_without_an_owner_step_over_it_and_none_misses_one),
		cmocka_unit_test(children_that_nobody_follows_run_without_and_those_in_the_same_memory_past_it),
		cmocka_unit_test(children_whose_engines_insert_it_have_it),
		cmocka_unit_test(an_exec_is_the_end_of_it),
		cmocka_unit_test(an_own_trap_of_the_program_below_it_is_the_programs),
		cmocka_unit_test(a_system_call_below_it_is_made_and_told),
		cmocka_unit_test(signals_that_come_before_the_instruction_make_no_hit_two),
		cmocka_unit_test(steps_and_breakpoints_go_together),
		cmocka_unit_test(an_engine_that_detaches_while_it_is_hit_leaves_a_program_that_runs),
		cmocka_unit_test(a_hub_that_ends_while_it_is_hit_leaves_a_program_that_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
