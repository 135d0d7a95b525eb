/*
 * A program that records itself. self COMMAND [ARGS]: each ends with what it has passed, as one line of JSON, or stays
 * silent; CHECK() fails otherwise.
 *
 *	errors			what kymo_marker_record() and its end refuse, in the current directory
 *	threads N ROUNDS	N threads pass two markers ROUNDS times each, one with a string; recorded with all
 *				losses counted
 *	again			recorded twice, into one.data and two.data, other markers each time; in between nothing
 *				is
 *	inline			markers are added with KYMO_MARKER_INLINE, and taken away
 *	fork			a child passes markers, and another one records itself into child.data
 *	many-forks N		forks with two threads at work
 *	exec			passes, records on, and becomes another program
 *	thread-exit		a thread calls exit(), others are at work
 *	_exit | kill		passes, waits, passes more, and dies without a word
 *	last-thread		main() ends with pthread_exit(), and the process with another thread
 *	handler			exit() in a signal handler
 *	signals ROUNDS		a timer's handler passes markers below others
 *	modules FILE N		a module is loaded, passed, and unloaded N times
 *	toggle SECONDS		recordings begin and end under load
 *	quiet			passes once and waits for SIGTERM
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include <kymo/marker.h>
#include <kymo/marker_probe.h>

#include "../target.h"

static atomic_bool stop;

__attribute__((noinline)) static void pass(long i)
{
	MARK(self_number, "i=%ld", i);
}

__attribute__((noinline)) static void pass_text(long i, const char *text)
{
	MARK(self_text, "i=%ld text=%s half=%f", i, text, (double)i / 2);
}

static void begin(const char *globs)
{
	CHECK(kymo_marker_record(globs, NULL) == 0);
}

static unsigned long end(void)
{
	unsigned long lost = ~0ul;

	CHECK(kymo_marker_record_end(&lost) == 0);
	return lost;
}

static void wait_ms(long ms)
{
	struct timespec left = { ms / 1000, ms % 1000 * 1000000 };

	while (nanosleep(&left, &left) < 0)
		CHECK(errno == EINTR);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void errors(char **args)
{
	unsigned long lost = 7;

	CHECK(kymo_marker_record(NULL, NULL) == -EINVAL);
	CHECK(kymo_marker_record("self_number,", NULL) == -EINVAL);
	CHECK(kymo_marker_record("", NULL) == -EINVAL);
	CHECK(kymo_marker_record("*", "") == -EINVAL);
	CHECK(kymo_marker_record("nothing_is_called_so", "nothing.data") == -ENOENT);
	CHECK(access("nothing.data", F_OK) != 0);
	CHECK(kymo_marker_record("*", "no/such/directory") == -ENOENT);
	CHECK(mkdir("full", 0755) == 0 && mkdir("full/of", 0755) == 0);
	CHECK(kymo_marker_record("*", "full") == -EEXIST);
	CHECK(kymo_marker_record_end(&lost) == -ENOENT && lost == 7);
	CHECK(kymo_marker_set_probe("self_number", NULL, NULL, NULL, KYMO_MARKER_INLINE) == -ENODEV);
	begin("self_*");
	CHECK(kymo_marker_record("self_*", "other.data") == -EBUSY);
	CHECK(access("other.data", F_OK) != 0);
	pass(1);
	CHECK(kymo_marker_record_end(NULL) == 0);
	CHECK(kymo_marker_record_end(NULL) == -ENOENT);
	CHECK(setenv("KYMO_MARKERS_BUFFER", "4X", 1) == 0);
	CHECK(kymo_marker_record("self_*", "other.data") == -EINVAL);
}

/* ---- threads --------------------------------------------------------------------------------- */

static long rounds;

static void *pass_rounds(void *arg)
{
	long first = (long)(intptr_t)arg * 1000000000l;

	for (long i = first; i < first + rounds; i++) {
		pass(i);
		pass_text(i, "a string of some length, for there to be something to copy");
	}
	return NULL;
}

static void threads(char **args)
{
	pthread_t made[64];
	long n = number(args[0]);

	rounds = number(args[1]);
	begin("self_*");
	for (long i = 0; i < n; i++)
		CHECK(pthread_create(&made[i], NULL, pass_rounds, (void *)(intptr_t)i) == 0);
	for (long i = 0; i < n; i++)
		CHECK(pthread_join(made[i], NULL) == 0);
	unsigned long lost = end();
	printf("{\"passed\": %ld, \"lost\": %lu}\n", 2 * n * rounds, lost);
}

/* Threads rest now and then, for a writer on a busy machine to keep up. */
static bool they_rest;
static atomic_ulong n_passed;

static void *pass_on(void *unused)
{
	for (long i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
		pass(i);
		atomic_fetch_add_explicit(&n_passed, 1, memory_order_relaxed);
		if (i % 16 == 0)
			pass_text(i, "on");
		if (they_rest && i % 256 == 0)
			wait_ms(1);
	}
	return NULL;
}

static void start(pthread_t *made, int n)
{
	for (int i = 0; i < n; i++)
		CHECK(pthread_create(&made[i], NULL, pass_on, NULL) == 0);
}

static void join(pthread_t *made, int n)
{
	atomic_store(&stop, true);
	for (int i = 0; i < n; i++)
		CHECK(pthread_join(made[i], NULL) == 0);
}

static void toggle(char **args)
{
	time_t until = time(NULL) + number(args[0]);
	unsigned long n = 0;
	pthread_t made[3];

	start(made, 3);
	while (n < 4 || time(NULL) < until) {
		begin(n % 2 ? "self_number" : "self_*");
		end();
		n++;
	}
	begin("self_*"); /* this one has records: each thread may have had its marker after it already */
	for (unsigned long before = atomic_load(&n_passed); atomic_load(&n_passed) < before + 4;)
		sched_yield();
	end();
	join(made, 3);
	begin("self_number");
	pass(42);
	CHECK(end() == 0);
	printf("{\"recordings\": %lu}\n", n);
}

/* ---- what is recorded ------------------------------------------------------------------------ */

static void again(char **args)
{
	pass(1);
	CHECK(kymo_marker_record("self_number", "one.data") == 0);
	pass(2);
	pass_text(2, "two");
	CHECK(end() == 0);
	pass(3);
	CHECK(kymo_marker_record("self_text,nothing*", "two.data") == 0);
	pass(4);
	pass_text(4, "four");
	CHECK(end() == 0);
	pass(5);
	pass_text(5, "five");
}

static bool is_recorded;

static int look(const struct kymo_marker_info *marker, void *data)
{
	if (strcmp(marker->name, data) == 0) {
		CHECK(marker->has_inline);
		is_recorded = marker->is_recorded;
	}
	return 0;
}

static void check_recorded(const char *name, bool is)
{
	CHECK(kymo_marker_for_each(look, (void *)(uintptr_t)name) == 0);
	CHECK(is_recorded == is);
}

static void inlines(char **args)
{
	begin("self_text");
	check_recorded("self_text", true);
	check_recorded("self_number", false);
	CHECK(kymo_marker_set_probe("self_number", "i=%ld", NULL, NULL, KYMO_MARKER_INLINE) == 0);
	CHECK(kymo_marker_set_probe("self_number", "i=%ld", NULL, NULL, KYMO_MARKER_INLINE) == -EBUSY);
	check_recorded("self_number", true);
	pass(1);
	CHECK(kymo_marker_disable_probe("self_number", NULL, NULL, KYMO_MARKER_INLINE) == 0);
	check_recorded("self_number", false);
	pass(2);
	/* Also wanted by the recording itself. */
	CHECK(kymo_marker_set_probe("self_text", NULL, NULL, NULL, KYMO_MARKER_INLINE) == 0);
	CHECK(kymo_marker_disable_probe("self_text", NULL, NULL, KYMO_MARKER_INLINE) == 0);
	pass_text(3, "three");
	CHECK(kymo_marker_set_probe("self_number", NULL, NULL, NULL, KYMO_MARKER_INLINE) == 0);
	pass(4);
	CHECK(end() == 0);
	check_recorded("self_number", false);
	check_recorded("self_text", false);
	CHECK(kymo_marker_disable_probe("self_number", NULL, NULL, KYMO_MARKER_INLINE) == -ENOENT);
}

/* ---- other processes ------------------------------------------------------------------------- */

static void check_child(pid_t child)
{
	int status;

	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void fork_twice(char **args)
{
	pid_t child;

	begin("self_*");
	pass(1);
	child = fork();
	if (child == 0) {
		check_recorded("self_number", false);
		for (int i = 0; i < 1000; i++)
			pass_text(1000 + i, "not recorded");
		CHECK(kymo_marker_record_end(NULL) == -ENOENT);
		exit(0);
	}
	check_child(child);
	pass(2);
	child = fork();
	if (child == 0) {
		CHECK(kymo_marker_record("self_number", "child.data") == 0);
		pass(3);
		exit(0);
	}
	check_child(child);
	/* A child that no fork handler hears of. */
	child = (pid_t)syscall(57 /* fork */);
	if (child == 0) {
		for (int i = 0; i < 1000; i++)
			pass_text(2000 + i, "not recorded");
		exit(0);
	}
	check_child(child);
	pass(4);
	CHECK(end() == 0);
}

static void many_forks(char **args)
{
	long n = number(args[0]);
	pthread_t made[2];

	begin("self_*");
	start(made, 2);
	for (long i = 0; i < n; i++) {
		pid_t child = fork();
		if (child == 0) {
			pass(i);
			exit(0);
		}
		check_child(child);
	}
	join(made, 2);
	end();
}

static void become_another(char **args)
{
	begin("self_*");
	pass(1);
	wait_ms(5000);
	pass(2);
	execlp("true", "true", (char *)NULL);
	CHECK(false);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void *exit_here(void *unused)
{
	for (long i = 0; i < 100; i++)
		pass(i);
	exit(0);
}

static void thread_exit(char **args)
{
	pthread_t made[2], other;

	they_rest = true;
	begin("self_*");
	CHECK(pthread_create(&other, NULL, exit_here, NULL) == 0);
	start(made, 2);
	join(&other, 1);
}

static void die_late(bool is_killed)
{
	begin("self_*");
	for (long i = 0; i < 1000; i++)
		pass(i);
	pass_text(1000, "before the last second");
	wait_ms(5000);
	pass(1001);
	if (is_killed)
		kill(getpid(), SIGKILL);
	_exit(0);
}

static void die_by_exit(char **args)
{
	die_late(false);
}

static void die_by_kill(char **args)
{
	die_late(true);
}

static void *outlive_main(void *unused)
{
	wait_ms(100);
	pass(1);
	wait_ms(1200);
	pass(2);
	return NULL;
}

static void last_thread(char **args)
{
	pthread_t other;

	begin("self_*");
	CHECK(pthread_create(&other, NULL, outlive_main, NULL) == 0);
	pthread_exit(NULL);
}

static void exit_now(int number_of_signal)
{
	pass_text(2, "in a handler");
	exit(0);
}

static void exit_in_handler(char **args)
{
	begin("self_*");
	signal(SIGUSR1, exit_now);
	pass(1);
	raise(SIGUSR1);
	CHECK(false);
}

/* ---- signals --------------------------------------------------------------------------------- */

static atomic_ulong handled;

static void on_timer(int number_of_signal)
{
	pass_text((long)atomic_fetch_add(&handled, 1), "below");
}

static void signals(char **args)
{
	struct itimerval often = { { 0, 50 }, { 0, 50 } }, never = { 0 };

	rounds = number(args[0]);
	begin("self_*");
	signal(SIGALRM, on_timer);
	CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
	pass_rounds(NULL);
	CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
	unsigned long lost = end();
	printf("{\"passed\": %lu, \"handled\": %lu, \"lost\": %lu}\n", 2 * (unsigned long)rounds + handled, handled,
	       lost);
}

/* ---- modules --------------------------------------------------------------------------------- */

static void modules(char **args)
{
	long n = number(args[1]);

	begin("self_*,module_*");
	for (long i = 0; i < n; i++) {
		void *module = dlopen(args[0], RTLD_NOW);
		CHECK(module);
		void (*work)(int) = (void (*)(int))(intptr_t)dlsym(module, "module_work");
		CHECK(work);
		work((int)i);
		CHECK(dlclose(module) == 0);
	}
	CHECK(end() == 0);
}

static void on_end(int number_of_signal)
{
	atomic_store(&stop, true);
}

static void quiet(char **args)
{
	signal(SIGTERM, on_end);
	pass(1);
	say("ready\n");
	while (!atomic_load(&stop))
		wait_ms(10);
	pass(2);
}

static const struct {
	const char *name;
	void (*run)(char **args);
	int n;
} commands[] = {
	{ "errors", errors, 0 },       { "threads", threads, 2 },         { "again", again, 0 },
	{ "inline", inlines, 0 },      { "fork", fork_twice, 0 },         { "many-forks", many_forks, 1 },
	{ "exec", become_another, 0 }, { "thread-exit", thread_exit, 0 }, { "_exit", die_by_exit, 0 },
	{ "kill", die_by_kill, 0 },    { "last-thread", last_thread, 0 }, { "handler", exit_in_handler, 0 },
	{ "signals", signals, 1 },     { "modules", modules, 2 },         { "toggle", toggle, 1 },
	{ "quiet", quiet, 0 },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (argc >= 2 && strcmp(argv[1], commands[i].name) == 0 && argc == 2 + commands[i].n) {
			commands[i].run(argv + 2);
			return 0;
		}
	}
	return 2;
}
