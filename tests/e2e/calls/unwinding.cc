// Leaves functions in every way there is, and says itself how long each call took and what it was called from.
//
//	unwinding WAY N		a line "path count unwound inner outer" for each path: calls that returned, calls that did not, and nanoseconds
//				of the former, as they see it themselves and as their callers do
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define API extern "C" __attribute__((noinline, noclone, visibility("default")))

struct Sum {
	long count, unwound, inner, outer;
};

static std::map<std::string, Sum> sums;
static std::mutex lock;
static __thread std::vector<const char *> *now;	// what the present stack is in

static long ns()
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static std::string path()
{
	std::string text;

	for (const char *name : *now)
		text += std::string(text.empty() ? "" : ">") + name;
	return text;
}

// Calls are open from here on until they say that they return.
static void enter(const char *name)
{
	now->push_back(name);
	std::lock_guard<std::mutex> guard(lock);
	sums[path()].unwound++;
}

static void leave(long inner)
{
	{
		std::lock_guard<std::mutex> guard(lock);
		Sum &sum = sums[path()];

		sum.unwound--;
		sum.count++;
		sum.inner += inner;
	}
	now->pop_back();
}

// What the caller measures of a call that has come back.
static void returned(const char *name, long outer)
{
	std::lock_guard<std::mutex> guard(lock);

	sums[path() + (now->empty() ? "" : ">") + name].outer += outer;
}

template <typename F, typename... A> static long call(const char *name, F f, A... a)
{
	size_t depth = now->size();
	long begin = ns(), result;

	try {
		result = f(a...);
	} catch (...) {
		now->resize(depth);
		throw;
	}
	returned(name, ns() - begin);
	return result;
}

#define CALL(f, ...) call(#f, f, ##__VA_ARGS__)

static void nap(long us)
{
	struct timespec t = { 0, us * 1000 };

	nanosleep(&t, NULL);
}

// ---- exceptions ------------------------------------------------------------------------------------------------------

// Down to 0, where every fourth throws; levels that are even rethrow, the others go on as if nothing had happened.
API long w_down(long level, long n)
{
	long begin = ns(), result = level;

	enter("w_down");
	if (!level && n % 4 == 0)
		throw n;
	if (level && level % 2) {
		try {
			result += CALL(w_down, level - 1, n);
		} catch (long) {
			result = -1;
		}
	} else if (level) {
		try {
			result += CALL(w_down, level - 1, n);
		} catch (long) {
			throw;
		}
	}
	leave(ns() - begin);
	return result;
}

API long w_leaf(long n)
{
	long begin = ns();

	enter("w_leaf");
	leave(ns() - begin);
	return n;
}

API long w_catcher(long n)
{
	long begin = ns(), result = 0;

	enter("w_catcher");
	try {
		result = CALL(w_down, n % 3, n);
	} catch (long) {
		result = CALL(w_leaf, n);
	}
	result += CALL(w_leaf, n);
	leave(ns() - begin);
	return result;
}

// The first sleeps, and catches what the second throws.
API long w_twice(long n)
{
	long begin = ns();

	enter("w_twice");
	if (n == 2)
		throw n;
	nap(50000);
	try {
		CALL(w_twice, n + 1);
	} catch (long) {
	}
	leave(ns() - begin);
	return n;
}

API long w_bare(long level)
{
	if (!level)
		throw level;
	return w_bare(level - 1) + 1;
}

// Too many to be measured.
static void many(long n)
{
	for (long i = 0; i < n; i++) {
		try {
			w_bare(8);
		} catch (long) {
		}
	}
}

// ---- longjmp, setcontext ---------------------------------------------------------------------------------------------

static jmp_buf back;
static ucontext_t context;

API long w_jumper(long level, bool far)
{
	long begin = ns(), result = 0;

	enter("w_jumper");
	if (!level && far)
		setcontext(&context);
	if (!level)
		longjmp(back, 1);
	result = CALL(w_jumper, level - 1, far);
	leave(ns() - begin);
	return result;
}

API long w_setter(long n, bool far)
{
	long begin = ns();
	volatile size_t depth;
	volatile bool again = false;

	enter("w_setter");
	depth = now->size();
	if (far) {
		getcontext(&context);
		if (!again) {
			again = true;
			CALL(w_jumper, n % 5, true);
		}
	} else if (!setjmp(back)) {
		CALL(w_jumper, n % 5, false);
	}
	now->resize(depth);
	CALL(w_leaf, n);
	leave(ns() - begin);
	return n;
}

// ---- coroutines --------------------------------------------------------------------------------------------------------

#define N_COROUTINES 6
#define STACK (256 << 10)
#define SMALL_STACK (64 << 10)

struct Coroutine {
	ucontext_t context;
	std::vector<const char *> calls;
	bool is_done;
};

static Coroutine coroutines[N_COROUTINES];
static ucontext_t scheduler;
static std::vector<const char *> main_calls;
static int running;
static bool throws, is_ring;

static void go(int to)
{
	int from = running;

	running = to;
	now = to < 0 ? &main_calls : &coroutines[to].calls;
	swapcontext(from < 0 ? &scheduler : &coroutines[from].context, to < 0 ? &scheduler : &coroutines[to].context);
}

// Back to the scheduler; or straight on to the next one.
static void yield()
{
	int next = (running + 1) % N_COROUTINES;

	go(is_ring && !coroutines[next].is_done ? next : -1);
}

API long w_yielder(long level)
{
	long begin = ns();

	enter("w_yielder");
	nap(200);
	yield();
	CALL(w_leaf, level);
	if (!level && throws)
		throw level;
	if (level)
		CALL(w_yielder, level - 1);
	yield();
	leave(ns() - begin);
	return level;
}

API long w_body(long n)
{
	long begin = ns();

	enter("w_body");
	try {
		CALL(w_yielder, n % 4 + 1);
	} catch (long) {
		CALL(w_leaf, n);
	}
	leave(ns() - begin);
	return n;
}

static void run_coroutine()
{
	CALL(w_body, (long)running);
	coroutines[running].is_done = true;
	go(-1);
}

API long w_resume(int which)
{
	long begin = ns();

	enter("w_resume");
	go(which);
	leave(ns() - begin);
	return which;
}

static void coroutine_round(char *stacks, size_t size)
{
	bool any = true;

	for (int i = 0; i < N_COROUTINES; i++) {
		Coroutine *c = &coroutines[i];

		getcontext(&c->context);
		c->context.uc_stack.ss_sp = stacks + i * size;
		c->context.uc_stack.ss_size = size;
		c->context.uc_link = NULL;
		c->is_done = false;
		c->calls.clear();
		makecontext(&c->context, run_coroutine, 0);
	}
	running = -1;
	while (any) {
		any = false;
		for (int i = 0; i < N_COROUTINES; i++) {
			if (coroutines[i].is_done)
				continue;
			any = true;
			CALL(w_resume, i);
		}
	}
}

static void round_on_stacks_elsewhere()
{
	char *stacks = (char *)mmap(NULL, N_COROUTINES * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	coroutine_round(stacks, STACK);
	munmap(stacks, N_COROUTINES * STACK);
}

static __attribute__((noinline)) void round_on_stacks_in_a_frame()
{
	char stacks[N_COROUTINES * SMALL_STACK];

	coroutine_round(stacks, SMALL_STACK);
}

// ---- signals on a stack of their own, threads ------------------------------------------------------------------------

static std::vector<const char *> signal_calls;

static void handle(int)
{
	now = &signal_calls;
	CALL(w_leaf, 1L);
	CALL(w_catcher, 4L);
	now = &main_calls;
}

API long w_raiser(long n)
{
	long begin = ns();

	enter("w_raiser");
	raise(SIGUSR1);
	CALL(w_leaf, n);
	leave(ns() - begin);
	return n;
}

API long w_ender(long level, bool waits)
{
	long begin = ns();

	enter("w_ender");
	if (!level && !waits)
		pthread_exit(NULL);
	while (!level)
		pause();
	CALL(w_ender, level - 1, waits);
	leave(ns() - begin);
	return level;
}

static void *end_thread(void *waits)
{
	std::vector<const char *> calls;

	now = &calls;
	CALL(w_leaf, 1L);
	w_ender(3, waits != NULL);
	return NULL;
}

static void threads(long n)
{
	for (long i = 0; i < n; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, end_thread, (void *)(i % 2));
		if (i % 2) {
			nap(20000);
			pthread_cancel(thread);
		}
		pthread_join(thread, NULL);
	}
}

static void signals(long n, void *memory, size_t size)
{
	stack_t stack = {};
	struct sigaction action = {};

	stack.ss_sp = memory;
	stack.ss_size = size;
	sigaltstack(&stack, NULL);
	action.sa_handler = handle;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGUSR1, &action, NULL);
	for (long i = 0; i < n; i++)
		CALL(w_raiser, i);
}

static __attribute__((noinline)) void signals_on_a_stack_in_a_frame(long n)
{
	char stack[SMALL_STACK];

	signals(n, stack, sizeof(stack));
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "";
	long n = argc > 2 ? atol(argv[2]) : 1;

	now = &main_calls;
	if (!strcmp(way, "many"))
		many(n);
	else if (!strcmp(way, "threads"))
		threads(n);
	else if (!strcmp(way, "signals"))
		signals(n, malloc(STACK), STACK);
	else if (!strcmp(way, "signals-in-frame"))
		signals_on_a_stack_in_a_frame(n);
	for (long i = 0; i < n; i++) {
		if (!strcmp(way, "throw"))
			CALL(w_catcher, i);
		else if (!strcmp(way, "twice"))
			CALL(w_twice, 1L);
		else if (!strcmp(way, "longjmp"))
			CALL(w_setter, i, false);
		else if (!strcmp(way, "setcontext"))
			CALL(w_setter, i, true);
		throws = i % 2;
		is_ring = !strncmp(way, "ring", 4);
		if (!strcmp(way, "ring") || !strcmp(way, "coroutines"))
			round_on_stacks_elsewhere();
		else if (!strcmp(way, "ring-in-frame") || !strcmp(way, "coroutines-in-frame"))
			round_on_stacks_in_a_frame();
	}
	for (const auto &sum : sums)
		printf("%s %ld %ld %ld %ld\n", sum.first.c_str(), sum.second.count, sum.second.unwound, sum.second.inner, sum.second.outer);
	return 0;
}
