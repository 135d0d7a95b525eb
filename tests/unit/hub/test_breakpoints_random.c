/*
 * Eight threads that call four functions, count that themselves, fork and end; engines on each. One has a breakpoint on
 * the first function all the time; the others insert and remove breakpoints at random, there and near by. What the
 * first one is told is what the program has counted, and the program does what it does alone.
 *
 * KYMO_HUB_CALLS is how often each thread calls (200), KYMO_SEED repeats a run's choices.
 */
#include "fixture.h"

#define N_THREADS 8
#define N_OTHERS 3

struct counts {
	atomic_int ready, go, wrong, n_calls, is_over;
	atomic_int n[4];
};

static struct counts *counts;

#define CALLED(i) \
	__attribute__((noinline)) static void called_##i(void) \
	{ \
		__asm__ volatile("nop\n nop\n nop" ::: "memory"); \
		atomic_fetch_add(&counts->n[i], 1); \
	}
CALLED(0)
CALLED(1)
CALLED(2)
CALLED(3)

static void (*const functions[])(void) = { called_0, called_1, called_2, called_3 };

static uint64_t place(unsigned int i)
{
	return (uint64_t)(uintptr_t)functions[i];
}

static void fork_once(void)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		called_1();
		called_2();
		_exit(7);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 7 << 8)
		counts->wrong++;
}

static void *work(void *data)
{
	counts->ready++;
	while (!counts->go)
		usleep(1000);
	for (int i = 0; i < counts->n_calls; i++) {
		for (int k = 0; k < 4; k++)
			functions[k]();
		if (i % 50 == 7)
			fork_once();
	}
	return data;
}

static int be_program(struct shared *shared)
{
	pthread_t threads[N_THREADS];

	for (int i = 0; i < N_THREADS; i++)
		pthread_create(&threads[i], NULL, work, NULL);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	counts->is_over = 1;
	while (counts->go < 2)
		usleep(1000);
	return counts->wrong;
}

struct teller {
	atomic_int hits, signals;
	bool is_random;
};

static atomic_uint seed;

static unsigned int dice(unsigned int sides)
{
	uint32_t x = atomic_fetch_add(&seed, 0x9e3779b9u);

	x = (x ^ (x >> 16)) * 0x85ebca6bu;
	x = (x ^ (x >> 13)) * 0xc2b2ae35u;
	return (x ^ (x >> 16)) % sides;
}

static void do_something(struct kymo_engine *engine)
{
	uint64_t address = place(dice(4)) + (dice(3) ? 0 : 4); /* after an endbr64, where there is one */
	uint8_t code[8];

	switch (dice(3)) {
	case 0:
		if (address == place(0) || address == place(1) || address == place(2) || address == place(3))
			kymo_engine_insert_breakpoint(engine, address);
		break;
	case 1:
		kymo_engine_remove_breakpoint(engine, address);
		break;
	default:
		if (!kymo_engine_read(engine, place(0), code, sizeof(code)) &&
		    memcmp(code, (const void *)place(0), sizeof(code)))
			counts->wrong++;
	}
}

static unsigned int told_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
				struct kymo_signal_report *report)
{
	struct teller *teller = data;

	if (report->trap == KYMO_TRAP_NONE)
		teller->signals += report->info.si_signo == SIGTRAP;
	else if (!teller->is_random)
		teller->hits += report->address == place(0);
	else
		do_something(engine);
	return KYMO_ACTION_RESUME | report->verdict;
}

static const struct kymo_engine_ops tellers = { .size = sizeof(tellers), .signal = told_signal };

static void for_all_threads(struct kymo_hub *hub, pid_t pid, struct teller *teller, bool inserts)
{
	char name[64];
	size_t n = 0;

	assert_int_equal(
		kymo_engine_attach_process(hub, pid, KYMO_ATTACH_BREAKPOINTS, &tellers, teller, KYMO_EVENTS_SIGNAL, &n),
		0);
	assert_int_equal(n, N_THREADS + 1);
	for (pid_t tid = pid; inserts && tid < pid + 1000; tid++) {
		struct kymo_engine *engine;

		snprintf(name, sizeof(name), "/proc/%d/task/%d", pid, tid);
		if (access(name, F_OK) || kymo_engine_attach(hub, tid, KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA,
							     &tellers, teller, &engine))
			continue;
		assert_int_equal(kymo_engine_insert_breakpoint(engine, place(0)), 0);
		kymo_engine_put(engine);
	}
}

static void disturb(struct kymo_hub *hub, pid_t pid, struct teller *others)
{
	pid_t tid = pid + 1 + (pid_t)dice(N_THREADS + 4);
	struct teller *teller = &others[dice(N_OTHERS)];
	struct kymo_engine *engine;

	if (kymo_engine_attach(hub, tid, KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA, &tellers, teller, &engine))
		return;
	do_something(engine);
	if (!dice(20)) {
		kymo_engine_control(engine, KYMO_ACTION_STOP);
		sched_yield();
		kymo_engine_control(engine, KYMO_ACTION_RESUME);
	}
	kymo_engine_put(engine);
}

static void what_is_told_is_what_the_program_has_counted(void **state)
{
	struct teller first = { 0 },
		      others[N_OTHERS] = { { .is_random = true }, { .is_random = true }, { .is_random = true } };
	const char *calls = getenv("KYMO_HUB_CALLS"), *seeds = getenv("KYMO_SEED");
	struct kymo_hub *hub;
	pid_t pid;

	seed = seeds ? (unsigned int)atol(seeds) : (unsigned int)getpid();
	print_message("KYMO_SEED=%u\n", (unsigned int)seed);
	counts = mmap(NULL, sizeof(*counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(counts != MAP_FAILED);
	counts->n_calls = calls ? atoi(calls) : 200;
	pid = child_of(be_program, NULL);
	eventually(counts->ready == N_THREADS);
	hub = new_hub();
	for_all_threads(hub, pid, &first, true);
	for (int i = 0; i < N_OTHERS; i++)
		for_all_threads(hub, pid, &others[i], false);
	counts->go = 1;
	for (int naps = 0; !counts->is_over && naps < 120000; naps++) {
		disturb(hub, pid, others);
		nap();
	}
	assert_true(counts->is_over);
	assert_int_equal(counts->n[0], N_THREADS * counts->n_calls);
	assert_int_equal(first.hits, counts->n[0]);
	assert_int_equal(first.signals, 0);
	assert_int_equal(counts->wrong, 0);
	kymo_hub_destroy(hub);
	counts->go = 2;
	assert_int_equal(end_of(pid), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = { cmocka_unit_test(what_is_told_is_what_the_program_has_counted) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
