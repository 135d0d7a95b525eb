/*
 * crowd sleep|wait|births [-t THREADS] [-l]
 *
 * THREADS (1000) threads. With `sleep` they are in a condition variable, with `wait` in epoll_wait(), which signals end
 * and which must not end early; for a line on stdin all of them are woken up, and "woke N" tells how many were. With
 * `births` each makes its successor and ends; the Nth of all makes the call getpgid(BIRTHS + N), and for a line "births
 * N" tells how many there are. -l: the first thread ends before "ready". At the end of stdin it says so once more, and
 * ends.
 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

#include "target.h"

enum { BIRTHS = 1000000000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, woken = PTHREAD_COND_INITIALIZER;
static long n_threads = 1000, n_woken, round_;
static atomic_long births, chains;
static atomic_bool stop;
static pthread_attr_t small;
static int poll_fd, event_fd;

/* Until the round that is not `seen` yet, which the caller has the mutex for. */
static long next_round(long seen)
{
	while (round_ == seen)
		pthread_cond_wait(&cond, &mutex);
	return round_;
}

static void count(void)
{
	n_woken++;
	pthread_cond_signal(&woken);
}

static void *sleep_on(void *argument)
{
	pthread_mutex_lock(&mutex);
	for (long seen = 0;;) {
		seen = next_round(seen);
		count();
	}
	return argument;
}

/* In epoll_wait() again when no thread is to be woken up any more. */
static void *wait_on(void *argument)
{
	for (long seen = 0;;) {
		struct epoll_event event;

		CHECK(epoll_wait(poll_fd, &event, 1, -1) == 1);
		pthread_mutex_lock(&mutex);
		count();
		seen = next_round(seen);
		pthread_mutex_unlock(&mutex);
	}
	return argument;
}

static void *be_born(void *argument)
{
	pthread_t next;
	long n = ++births;

	CHECK(syscall(SYS_getpgid, BIRTHS + n) == -1 && errno == ESRCH);
	if (stop)
		chains--;
	else
		CHECK(!pthread_create(&next, &small, be_born, argument));
	return argument;
}

/* Each thread comes by once a round, before the next one begins. */
static void wake_sleeping(void)
{
	round_++;
	pthread_cond_broadcast(&cond);
	while (n_woken < n_threads)
		pthread_cond_wait(&woken, &mutex);
}

static void wake_waiting(void)
{
	uint64_t one = 1;

	CHECK(write(event_fd, &one, sizeof(one)) == sizeof(one));
	while (n_woken < n_threads)
		pthread_cond_wait(&woken, &mutex);
	CHECK(read(event_fd, &one, sizeof(one)) == sizeof(one));
	round_++;
	pthread_cond_broadcast(&cond);
}

static long wake_all(bool waits)
{
	long n;

	pthread_mutex_lock(&mutex);
	n_woken = 0;
	(waits ? wake_waiting : wake_sleeping)();
	n = n_woken;
	pthread_mutex_unlock(&mutex);
	return n;
}

static void answer(const char *way)
{
	if (!strcmp(way, "births"))
		printf("births %ld\n", births);
	else
		printf("woke %ld\n", wake_all(!strcmp(way, "wait")));
	fflush(stdout);
}

static void *serve(void *argument)
{
	const char *way = argument;
	char line[16];

	say("ready\n");
	while (fgets(line, sizeof(line), stdin))
		answer(way);
	stop = true;
	while (chains)
		usleep(1000);
	answer(way);
	_exit(0);
}

static void begin(void *(*run)(void *argument))
{
	pthread_t thread;

	for (long i = 0; i < n_threads; i++)
		CHECK(!pthread_create(&thread, &small, run, NULL));
}

static void set_up_poll(void)
{
	struct epoll_event event = { .events = EPOLLIN };

	poll_fd = epoll_create1(0);
	event_fd = eventfd(0, 0);
	CHECK(poll_fd >= 0 && event_fd >= 0 && !epoll_ctl(poll_fd, EPOLL_CTL_ADD, event_fd, &event));
}

int main(int argc, char **argv)
{
	bool leaves = false, is_birth;
	pthread_t thread;
	int option;

	while ((option = getopt(argc, argv, "t:l")) != -1) {
		switch (option) {
		case 't':
			n_threads = number(optarg);
			break;
		case 'l':
			leaves = true;
			break;
		default:
			return 2;
		}
	}
	if (n_threads < 1 || optind != argc - 1)
		return 2;
	is_birth = !strcmp(argv[optind], "births");
	set_up_poll();
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	pthread_attr_setdetachstate(&small, PTHREAD_CREATE_DETACHED);
	chains = is_birth ? n_threads : 0;
	begin(is_birth ? be_born : strcmp(argv[optind], "wait") ? sleep_on : wait_on);
	if (!is_birth)
		wake_all(!strcmp(argv[optind], "wait"));
	if (!leaves)
		serve(argv[optind]);
	CHECK(!pthread_create(&thread, NULL, serve, argv[optind]));
	pthread_exit(NULL);
}
