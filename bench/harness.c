#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 64
#define MAX_ROUNDS 1000
#define MAX_IDLE 10000
#define IDLE_STACK_SIZE (64 * 1024)
#define WARM_UP_ROUNDS 2
/* Enough bursts for each thread to have touched every page of an 8 MiB ring before anything is timed. */
#define PRIME_ROUNDS 10
/* Calls between two looks at the clock of the sustained case. */
#define SUSTAIN_BATCH 2000

struct sample {
	double cpu_ns, wall_ns; /* of a call */
};

struct job {
	const struct bench_loop *loop;
	long calls; /* a round */
	int rounds;
	int warm_up;         /* rounds before, not kept */
	int n_threads;       /* threads that take part: 0 … n_threads - 1 */
	useconds_t pause_us; /* between rounds, for the reader of the buffers */
	double seconds;      /* > 0: call until that long has passed, `rounds` does not count */
	double calls_per_ns; /* > 0: of a thread, on average: it sleeps when it is ahead */
};

struct worker {
	pthread_t thread;
	int index;
	struct sample samples[MAX_ROUNDS];
	uint64_t calls; /* of the sustained case */
	uint64_t wall_ns;
};

static struct worker workers[MAX_THREADS];
static int n_workers;
static struct job job;
static pthread_barrier_t job_begin, job_end;
static bool stopping;
static atomic_int arrived;
static int cpus[MAX_THREADS];
static int n_cpus;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* A barrier that spins: the threads of a round begin within nanoseconds of each other. */
static void meet(int n, int round)
{
	atomic_fetch_add(&arrived, 1);
	for (unsigned int spins = 0; atomic_load(&arrived) < n * (round + 1); spins++) {
		if (spins % 1000 == 999)
			sched_yield();
	}
}

static void run_rounds(struct worker *self)
{
	int total = job.warm_up + job.rounds;

	for (int round = 0; round < total; round++) {
		uint64_t cpu, wall;

		if (job.pause_us)
			usleep(job.pause_us);
		meet(job.n_threads, round);
		wall = now_ns(CLOCK_MONOTONIC);
		cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
		job.loop->run(job.calls);
		cpu = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
		wall = now_ns(CLOCK_MONOTONIC) - wall;
		if (round >= job.warm_up) {
			self->samples[round - job.warm_up].cpu_ns = (double)cpu / (double)job.calls;
			self->samples[round - job.warm_up].wall_ns = (double)wall / (double)job.calls;
		}
	}
}

/* Sleep for a moment when this thread has made more calls than its pace allows. */
static void keep_pace(uint64_t calls, uint64_t begin)
{
	if (job.calls_per_ns > 0 && (double)calls > (double)(now_ns(CLOCK_MONOTONIC) - begin) * job.calls_per_ns)
		nanosleep(&(struct timespec){ 0, 100000 }, NULL);
}

static void run_for(struct worker *self)
{
	uint64_t begin, end;

	meet(job.n_threads, 0);
	begin = now_ns(CLOCK_MONOTONIC);
	end = begin + (uint64_t)(job.seconds * 1e9);
	self->calls = 0;
	do {
		job.loop->run(SUSTAIN_BATCH);
		self->calls += SUSTAIN_BATCH;
		keep_pace(self->calls, begin);
	} while (now_ns(CLOCK_MONOTONIC) < end);
	self->wall_ns = now_ns(CLOCK_MONOTONIC) - begin;
}

static void *worker_main(void *data)
{
	struct worker *self = data;

	for (;;) {
		pthread_barrier_wait(&job_begin);
		if (stopping)
			return NULL;
		if (self->index < job.n_threads) {
			if (job.seconds > 0)
				run_for(self);
			else
				run_rounds(self);
		}
		pthread_barrier_wait(&job_end);
	}
}

static void do_job(const struct job *new_job)
{
	job = *new_job;
	atomic_store(&arrived, 0);
	pthread_barrier_wait(&job_begin);
	pthread_barrier_wait(&job_end);
}

static void find_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set))
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE && n_cpus < MAX_THREADS; cpu++) {
		if (CPU_ISSET(cpu, &set))
			cpus[n_cpus++] = cpu;
	}
}

/* Each thread on a CPU of its own, as long as there are enough. */
static void pin(const struct worker *worker)
{
	cpu_set_t set;

	if (!n_cpus)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpus[worker->index % n_cpus], &set);
	pthread_setaffinity_np(worker->thread, sizeof(set), &set);
}

static bool start_workers(int n, bool pinned)
{
	find_cpus();
	pthread_barrier_init(&job_begin, NULL, (unsigned int)n + 1);
	pthread_barrier_init(&job_end, NULL, (unsigned int)n + 1);
	for (int i = 0; i < n; i++) {
		workers[i].index = i;
		if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i])) {
			fprintf(stderr, "cannot create thread %d of %d\n", i + 1, n);
			return false;
		}
		if (pinned)
			pin(&workers[i]);
	}
	n_workers = n;
	return true;
}

static void stop_workers(void)
{
	stopping = true;
	pthread_barrier_wait(&job_begin);
	for (int i = 0; i < n_workers; i++)
		pthread_join(workers[i].thread, NULL);
}

static void *idle_main(void *data)
{
	for (;;)
		pause();
	return NULL;
}

/* They end with the process. */
static bool start_idle(long n)
{
	pthread_attr_t attributes;
	pthread_t thread;
	bool ok = n <= MAX_IDLE;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, IDLE_STACK_SIZE);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	for (long i = 0; ok && i < n; i++)
		ok = !pthread_create(&thread, &attributes, idle_main, NULL);
	pthread_attr_destroy(&attributes);
	if (!ok)
		fprintf(stderr, "cannot create %ld idle threads\n", n);
	return ok;
}

/* false when the reader has gone before it said "go". */
static bool wait_for_go(void)
{
	char byte;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	return read(STDIN_FILENO, &byte, 1) == 1;
}

static void finish(void)
{
	char byte;
	ssize_t ignored;

	printf("done\n");
	fflush(stdout);
	ignored = read(STDIN_FILENO, &byte, 1);
	(void)ignored;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), compare_doubles);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* "sample SHAPE ARGS THREADS CALLS CPU_NS WALL_NS": medians over rounds and threads; CALLS in all, warm-up included. */
static void print_samples(const struct job *done)
{
	static double cpu[MAX_THREADS * MAX_ROUNDS], wall[MAX_THREADS * MAX_ROUNDS];
	int n = 0;

	for (int i = 0; i < done->n_threads; i++) {
		for (int round = 0; round < done->rounds; round++) {
			cpu[n] = workers[i].samples[round].cpu_ns;
			wall[n++] = workers[i].samples[round].wall_ns;
		}
	}
	printf("sample %s %d %d %ld %.4f %.4f\n", done->loop->shape, done->loop->n_args, done->n_threads,
	       done->calls * (done->rounds + done->warm_up) * done->n_threads, median(cpu, n), median(wall, n));
	fflush(stdout);
}

/* The CALLS of "WORD=CALLS" for `word` in `words`, or 0. */
static long calls_of(const char *word, char **words, int n_words)
{
	size_t length = strlen(word);

	for (int i = 0; i < n_words; i++) {
		if (!strncmp(words[i], word, length) && words[i][length] == '=')
			return atol(words[i] + length + 1);
	}
	return 0;
}

/* Of a loop: what is said of its shape, or of its shape with its number of arguments ("push2"). */
static long calls_of_loop(const struct bench_loop *loop, char **words, int n_words)
{
	char word[64];
	long calls = calls_of(loop->shape, words, n_words);

	snprintf(word, sizeof(word), "%s%d", loop->shape, loop->n_args);
	return calls ? calls : calls_of(word, words, n_words);
}

/* Rounds are smaller for many arguments, so that all write about the same number of bytes. */
static long scale(long calls, int n_args)
{
	return n_args > 2 ? calls / 2 : calls;
}

struct event_options {
	int rounds;
	useconds_t pause_us;
	int threads[8];
	int n_threads;
	int max_threads;
	char **words; /* SHAPE=CALLS */
	int n_words;
};

static bool parse_event_options(int argc, char **argv, struct event_options *ret)
{
	char *rest, *word;

	if (argc < 6)
		return false;
	ret->rounds = atoi(argv[2]);
	ret->pause_us = (useconds_t)atol(argv[3]);
	for (word = strtok_r(argv[4], ",", &rest); word && ret->n_threads < 8; word = strtok_r(NULL, ",", &rest)) {
		int n = atoi(word);

		if (n < 1 || n > MAX_THREADS)
			return false;
		ret->threads[ret->n_threads++] = n;
		if (n > ret->max_threads)
			ret->max_threads = n;
	}
	ret->words = argv + 5;
	ret->n_words = argc - 5;
	return ret->rounds > 0 && ret->rounds <= MAX_ROUNDS && ret->n_threads > 0;
}

static void prime(const struct bench_loop *loop, long calls, const struct event_options *options)
{
	struct job first = {
		.loop = loop,
		.calls = scale(calls, loop->n_args),
		.warm_up = PRIME_ROUNDS,
		.n_threads = options->max_threads,
		.pause_us = options->pause_us,
	};

	do_job(&first);
	printf("calls %ld\n", first.calls * first.warm_up * first.n_threads);
}

static int event_main(int argc, char **argv, const struct bench_loop *loops, size_t n_loops)
{
	struct event_options options = { 0 };
	bool primed = false;

	if (!parse_event_options(argc, argv, &options))
		return 2;
	if (!start_workers(options.max_threads, true) ||
	    !start_idle(calls_of("idle", options.words, options.n_words)) || !wait_for_go())
		return 1;
	for (size_t i = 0; i < n_loops; i++) {
		long calls = calls_of_loop(&loops[i], options.words, options.n_words);

		if (!calls)
			continue;
		if (!primed)
			prime(&loops[i], calls, &options);
		primed = true;
		for (int t = 0; t < options.n_threads; t++) {
			struct job next = {
				.loop = &loops[i],
				.calls = scale(calls, loops[i].n_args),
				.rounds = options.rounds,
				.warm_up = WARM_UP_ROUNDS,
				.n_threads = options.threads[t],
				.pause_us = options.pause_us,
			};

			do_job(&next);
			print_samples(&next);
		}
	}
	finish();
	stop_workers();
	return 0;
}

/* "sustained CALLS SECONDS": the calls of all threads, the time of the one that took longest. */
static int sustain_main(int argc, char **argv, const struct bench_loop *loops, size_t n_loops)
{
	struct job only = { 0 };
	uint64_t calls = 0, longest = 0;

	if (argc != 6 && argc != 7)
		return 2;
	only.seconds = atof(argv[2]);
	only.n_threads = atoi(argv[3]);
	only.calls_per_ns = argc > 6 ? atof(argv[6]) / 1e9 / only.n_threads : 0;
	for (size_t i = 0; i < n_loops; i++) {
		if (!strcmp(loops[i].shape, argv[4]) && loops[i].n_args == atoi(argv[5]))
			only.loop = &loops[i];
	}
	if (!only.loop || only.seconds <= 0 || only.n_threads < 1 || only.n_threads > MAX_THREADS)
		return 2;
	if (!start_workers(only.n_threads, false) || !wait_for_go())
		return 1;
	do_job(&only);
	for (int i = 0; i < n_workers; i++) {
		calls += workers[i].calls;
		if (workers[i].wall_ns > longest)
			longest = workers[i].wall_ns;
	}
	printf("sustained %llu %.6f\n", (unsigned long long)calls, (double)longest / 1e9);
	finish();
	stop_workers();
	return 0;
}

int bench_main(int argc, char **argv, const struct bench_loop *loops, size_t n_loops)
{
	int status = 2;

	if (argc > 1 && !strcmp(argv[1], "event"))
		status = event_main(argc, argv, loops, n_loops);
	else if (argc > 1 && !strcmp(argv[1], "sustain"))
		status = sustain_main(argc, argv, loops, n_loops);
	if (status == 2)
		fprintf(stderr,
			"usage: %s event ROUNDS PAUSE_US THREADS,... SHAPE=CALLS... [idle=N]\n"
			"       %s sustain SECONDS THREADS SHAPE ARGS [CALLS_PER_SECOND]\n",
			argv[0], argv[0]);
	return status;
}
