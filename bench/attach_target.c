/*
 * A running program with many functions and many threads, that measures for how long it was held.
 *
 *	attach_target LIBRARY THREADS
 *
 * loads a library made by gen_many.py and starts THREADS threads that sleep, call some of its functions and check what
 * they return. Two more threads watch the time: the oldest spins on the clock, the youngest sleeps for 200 us at a
 * time. Each keeps the longest gap between two looks at the clock. A thread that was preempted was not stopped. So the
 * time for which the thread was ready but another one had its CPU (/proc/self/task/TID/schedstat) is subtracted:
 * "blocked".
 *
 * Commands, one byte each on stdin: 'b' begins a measurement; 'e' ends it and prints
 * "gaps LARGEST_NS LARGEST_BLOCKED_NS SUM_OF_BLOCKED_NS"; the end of stdin ends the program. A wrong result of a
 * function ends it with status 3.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE (64 * 1024)
#define WORKER_SLEEP_NS 100000000
#define SLEEPER_SLEEP_NS 200000
/* Shorter gaps are looked over: interrupts. */
#define GAP_NS 20000
/* Shorter ones do not count in the sum: a sleep that ends late is none of a tracer's doing. */
#define SUMMED_NS 500000
#define CALLS_A_TURN 50

typedef long many_function(int a, long b);

static many_function *const *table;
static unsigned int table_count;
static long *expected;

static atomic_bool measuring, stopping;
static atomic_uint epoch; /* odd while a measurement runs */

struct watch {
	uint64_t sleep_ns; /* asked for between two looks */
	int schedstat;     /* or -1 */
	uint64_t last_ns, last_delay_ns;
	unsigned int epoch;
	_Atomic uint64_t largest_ns, largest_blocked_ns, sum_blocked_ns;
};

static struct watch spinner = { .sleep_ns = 0 }, sleeper = { .sleep_ns = SLEEPER_SLEEP_NS };

static uint64_t now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };

	nanosleep(&time, NULL);
}

/* Nanoseconds that this thread has waited for a CPU, or 0 where the kernel does not tell. */
static uint64_t run_delay_ns(const struct watch *self)
{
	unsigned long long delay = 0;
	char text[128];
	ssize_t length;

	if (self->schedstat < 0)
		return 0;
	length = pread(self->schedstat, text, sizeof(text) - 1, 0);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	return sscanf(text, "%*u %llu", &delay) == 1 ? delay : 0;
}

static void open_schedstat(struct watch *self)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%ld/schedstat", syscall(SYS_gettid));
	self->schedstat = open(path, O_RDONLY | O_CLOEXEC);
}

static void begin_watch(struct watch *self, unsigned int new_epoch)
{
	self->epoch = new_epoch;
	self->largest_ns = 0;
	self->largest_blocked_ns = 0;
	self->sum_blocked_ns = 0;
	self->last_delay_ns = run_delay_ns(self);
	self->last_ns = now_ns();
}

static void note_gap(struct watch *self, uint64_t gap)
{
	uint64_t delay = run_delay_ns(self), waited = delay - self->last_delay_ns;
	uint64_t blocked = gap > waited ? gap - waited : 0;

	self->last_delay_ns = delay;
	if (gap > self->largest_ns)
		self->largest_ns = gap;
	if (blocked > self->largest_blocked_ns)
		self->largest_blocked_ns = blocked;
	if (blocked > SUMMED_NS)
		self->sum_blocked_ns += blocked;
}

static void look(struct watch *self)
{
	unsigned int now_epoch = atomic_load(&epoch);
	uint64_t now = now_ns();
	uint64_t passed = now - self->last_ns;

	if (now_epoch != self->epoch) {
		begin_watch(self, now_epoch);
		return;
	}
	self->last_ns = now;
	if (passed < self->sleep_ns + GAP_NS)
		return;
	note_gap(self, passed - self->sleep_ns);
	/* Reading the statistics is no gap. A stop that falls in there is: it shows as the gap of the next look. */
	if (now_ns() - now < GAP_NS)
		self->last_ns = now_ns();
}

static void *watch_main(void *data)
{
	struct watch *self = data;

	open_schedstat(self);
	while (!atomic_load(&stopping)) {
		if (!atomic_load(&measuring))
			sleep_ns(1000000);
		else if (self->sleep_ns)
			sleep_ns(self->sleep_ns);
		look(self);
	}
	return NULL;
}

/* Calls functions at places that differ from turn to turn, in a fixed order. */
static void call_some(unsigned int *seed)
{
	for (int i = 0; i < CALLS_A_TURN; i++) {
		unsigned int index;

		*seed = *seed * 1103515245 + 12345;
		index = (*seed >> 8) % table_count;
		if (table[index](7, 11) != expected[index]) {
			fprintf(stderr, "function %u of the library returned something else than before\n", index);
			_exit(3);
		}
	}
}

static void *worker_main(void *data)
{
	unsigned int seed = (unsigned int)(uintptr_t)data;

	while (!atomic_load(&stopping)) {
		call_some(&seed);
		sleep_ns(WORKER_SLEEP_NS / 2 + (uint64_t)(seed >> 8) % WORKER_SLEEP_NS);
	}
	return NULL;
}

static bool load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	const unsigned int *count;

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return false;
	}
	table = dlsym(library, "many_table");
	count = dlsym(library, "many_count");
	if (!table || !count) {
		fprintf(stderr, "%s: no many_table\n", path);
		return false;
	}
	table_count = *count;
	expected = calloc(table_count, sizeof(*expected));
	if (!expected)
		return false;
	for (unsigned int i = 0; i < table_count; i++)
		expected[i] = table[i](7, 11);
	return true;
}

static bool start(void *(*function)(void *), void *data)
{
	pthread_attr_t attributes;
	pthread_t thread;
	int error;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attributes, function, data);
	pthread_attr_destroy(&attributes);
	if (error)
		fprintf(stderr, "cannot create a thread: %s\n", strerror(error));
	return !error;
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static void begin(void)
{
	atomic_store(&measuring, true);
	atomic_fetch_add(&epoch, 1);
	/* Both watchers have noticed by then. */
	sleep_ns(20000000);
	printf("begun\n");
	fflush(stdout);
}

static void end(void)
{
	/* A stop that has just ended is seen by both watchers before their figures are read. */
	sleep_ns(5000000);
	printf("gaps %llu %llu %llu\n", (unsigned long long)max(spinner.largest_ns, sleeper.largest_ns),
	       (unsigned long long)max(spinner.largest_blocked_ns, sleeper.largest_blocked_ns),
	       (unsigned long long)max(spinner.sum_blocked_ns, sleeper.sum_blocked_ns));
	fflush(stdout);
	atomic_store(&measuring, false);
}

int main(int argc, char **argv)
{
	int n_threads = argc == 3 ? atoi(argv[2]) : 0;
	char command;

	if (n_threads < 1) {
		fprintf(stderr, "usage: %s LIBRARY THREADS\n", argv[0]);
		return 2;
	}
	if (!load(argv[1]) || !start(watch_main, &spinner))
		return 1;
	for (int i = 0; i < n_threads; i++) {
		if (!start(worker_main, (void *)(uintptr_t)(i + 1)))
			return 1;
	}
	if (!start(watch_main, &sleeper))
		return 1;
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (read(STDIN_FILENO, &command, 1) == 1) {
		if (command == 'b')
			begin();
		else if (command == 'e')
			end();
	}
	/* The others are within sleeps and calls; nothing of theirs needs to be waited for. */
	_exit(0);
}
