/*
 * blocked [-m MILLISECONDS] [-b THREADS] [-a MILLISECONDS] WAY...
 *
 * Sleeps in system calls until MILLISECONDS (1500) have passed: each WAY in a thread of its own. The last one is in the
 * main thread if it is alone, or if THREADS more (0 will do) are busy meanwhile. The main thread begins to sleep when
 * it has been awake for so many milliseconds (-a, 0). Ways that end in _timeout reach the call's own limit, the others
 * are woken by a child process. No call is repeated: one that is disturbed shows. Prints, for each, how the call
 * returned and how long it took: {"read": [1, 0, 1501], ...}, result, errno, ms.
 */
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "target.h"

#define MOST_BUSY 64

static long limit_ms = 1500;
static atomic_bool is_over;

struct way;

struct sleeper {
	const struct way *way;
	int fds[2];   /* a pipe, a socket */
	int begin[2]; /* a pipe: tells the child that the sleep begins */
	int ipc;
	uint32_t *futex; /* shared with the child */
	aio_context_t aio;
	struct sockaddr_un address;
	socklen_t address_size;
	long result, took_ms;
	int error;
	pid_t child;
	pthread_t thread;
};

struct way {
	const char *name;
	void (*prepare)(struct sleeper *s);
	long (*sleep)(struct sleeper *s);
	void (*wake)(struct sleeper *s); /* in the child; NULL: none does */
	void (*clean)(struct sleeper *s);
};

static long now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct timespec limit(void)
{
	return (struct timespec){ limit_ms / 1000, limit_ms % 1000 * 1000000 };
}

static void make_pipe(struct sleeper *s)
{
	CHECK(pipe(s->fds) == 0);
}

static void write_byte(struct sleeper *s)
{
	CHECK(write(s->fds[1], "x", 1) == 1);
}

static long sleep_read(struct sleeper *s)
{
	char c;

	return read(s->fds[0], &c, 1);
}

static long sleep_poll(struct sleeper *s)
{
	struct pollfd pfd = { .fd = s->fds[0], .events = POLLIN };

	return poll(&pfd, 1, s->way->wake ? -1 : (int)limit_ms);
}

static long sleep_select(struct sleeper *s)
{
	struct timeval timeout = { limit_ms / 1000, limit_ms % 1000 * 1000 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(s->fds[0], &set);
	return select(s->fds[0] + 1, &set, NULL, NULL, s->way->wake ? NULL : &timeout);
}

static void make_epoll(struct sleeper *s)
{
	struct epoll_event event = { .events = EPOLLIN };

	make_pipe(s);
	s->ipc = epoll_create1(0);
	CHECK(s->ipc >= 0 && epoll_ctl(s->ipc, EPOLL_CTL_ADD, s->fds[0], &event) == 0);
}

static long sleep_epoll(struct sleeper *s)
{
	struct epoll_event event;

	return epoll_wait(s->ipc, &event, 1, s->way->wake ? -1 : (int)limit_ms);
}

static long sleep_nanosleep(struct sleeper *s)
{
	struct timespec timeout = limit();

	return nanosleep(&timeout, NULL);
}

static long sleep_until(struct sleeper *s)
{
	long until = now_ms() + limit_ms + 1;
	struct timespec then = { until / 1000, until % 1000 * 1000000 };
	int error = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &then, NULL);

	errno = error;
	return error ? -1 : 0;
}

static void make_futex(struct sleeper *s)
{
	s->futex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(s->futex != MAP_FAILED);
}

static long sleep_futex(struct sleeper *s)
{
	struct timespec timeout = limit();
	long result = syscall(SYS_futex, s->futex, FUTEX_WAIT, 0, s->way->wake ? NULL : &timeout);

	/* A wait that a signal interrupts begins anew, and is not in the queue meanwhile: then the word says that it is
	 * over. */
	if (result == -1 && errno == EAGAIN && s->way->wake)
		result = errno = 0;
	return result;
}

static void wake_futex(struct sleeper *s)
{
	__atomic_store_n(s->futex, 1, __ATOMIC_SEQ_CST);
	CHECK(syscall(SYS_futex, s->futex, FUTEX_WAKE, 1) >= 0);
}

static void make_socket(struct sleeper *s)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	s->fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	CHECK(bind(s->fds[0], (struct sockaddr *)&address, sizeof(sa_family_t)) ==
	      0); /* an address of the kernel's choice */
	s->address_size = sizeof(s->address);
	CHECK(getsockname(s->fds[0], (struct sockaddr *)&s->address, &s->address_size) == 0);
	CHECK(listen(s->fds[0], 1) == 0);
}

static long sleep_accept(struct sleeper *s)
{
	return accept(s->fds[0], NULL, NULL) >= 0 ? 0 : -1;
}

static void wake_accept(struct sleeper *s)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	CHECK(connect(fd, (struct sockaddr *)&s->address, s->address_size) == 0);
}

static void make_pair(struct sleeper *s)
{
	struct timeval timeout = { limit_ms / 1000, limit_ms % 1000 * 1000 };

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, s->fds) == 0);
	CHECK(setsockopt(s->fds[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0);
}

static long sleep_recv(struct sleeper *s)
{
	char c;

	return recv(s->fds[0], &c, 1, 0);
}

static void make_semaphore(struct sleeper *s)
{
	s->ipc = semget(IPC_PRIVATE, 1, 0600);
	CHECK(s->ipc >= 0);
}

static long sleep_semaphore(struct sleeper *s)
{
	struct sembuf down = { 0, -1, 0 };
	struct timespec timeout = limit();

	return semtimedop(s->ipc, &down, 1, s->way->wake ? NULL : &timeout);
}

static void wake_semaphore(struct sleeper *s)
{
	struct sembuf up = { 0, 1, 0 };

	CHECK(semop(s->ipc, &up, 1) == 0);
}

static void remove_semaphore(struct sleeper *s)
{
	semctl(s->ipc, 0, IPC_RMID);
}

static void make_queue(struct sleeper *s)
{
	s->ipc = msgget(IPC_PRIVATE, 0600);
	CHECK(s->ipc >= 0);
}

static long sleep_queue(struct sleeper *s)
{
	struct {
		long type;
		char text[8];
	} message;

	return msgrcv(s->ipc, &message, sizeof(message.text), 0, 0);
}

static void wake_queue(struct sleeper *s)
{
	struct {
		long type;
		char text[8];
	} message = { 1, "x" };

	CHECK(msgsnd(s->ipc, &message, 1, 0) == 0);
}

static void remove_queue(struct sleeper *s)
{
	msgctl(s->ipc, IPC_RMID, NULL);
}

static long sleep_signal(struct sleeper *s)
{
	struct timespec timeout = limit();
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	return sigtimedwait(&set, NULL, &timeout);
}

static void make_aio(struct sleeper *s)
{
	CHECK(syscall(SYS_io_setup, 1, &s->aio) == 0);
}

static long sleep_aio(struct sleeper *s)
{
	struct timespec timeout = limit();
	struct io_event event;

	return syscall(SYS_io_getevents, s->aio, 1, 1, &event, &timeout);
}

static long sleep_wait(struct sleeper *s)
{
	return waitpid(s->child, NULL, __WALL) == s->child ? 0 : -1;
}

static void wake_by_ending(struct sleeper *s)
{
}

static const struct way ways[] = {
	{ "read", make_pipe, sleep_read, write_byte, NULL },
	{ "poll", make_pipe, sleep_poll, write_byte, NULL },
	{ "poll_timeout", make_pipe, sleep_poll, NULL, NULL },
	{ "select", make_pipe, sleep_select, write_byte, NULL },
	{ "select_timeout", make_pipe, sleep_select, NULL, NULL },
	{ "epoll", make_epoll, sleep_epoll, write_byte, NULL },
	{ "epoll_timeout", make_epoll, sleep_epoll, NULL, NULL },
	{ "nanosleep_timeout", NULL, sleep_nanosleep, NULL, NULL },
	{ "until_timeout", NULL, sleep_until, NULL, NULL },
	{ "futex", make_futex, sleep_futex, wake_futex, NULL },
	{ "futex_timeout", make_futex, sleep_futex, NULL, NULL },
	{ "accept", make_socket, sleep_accept, wake_accept, NULL },
	{ "recv_timeout", make_pair, sleep_recv, NULL, NULL },
	{ "sem", make_semaphore, sleep_semaphore, wake_semaphore, remove_semaphore },
	{ "sem_timeout", make_semaphore, sleep_semaphore, NULL, remove_semaphore },
	{ "msg", make_queue, sleep_queue, wake_queue, remove_queue },
	{ "signal_timeout", NULL, sleep_signal, NULL, NULL },
	{ "aio_timeout", make_aio, sleep_aio, NULL, NULL },
	{ "wait", NULL, sleep_wait, wake_by_ending, NULL },
};

static const struct way *find(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, name))
			return &ways[i];
	fprintf(stderr, "no such way: %s\n", name);
	exit(2);
}

static void start_child(struct sleeper *s)
{
	struct timespec timeout = limit();
	char c;

	CHECK(pipe(s->begin) == 0);
	s->child = fork();
	CHECK(s->child >= 0);
	if (s->child)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CHECK(read(s->begin[0], &c, 1) == 1);
	nanosleep(&timeout, NULL);
	s->way->wake(s);
	_exit(0);
}

static void *run(void *arg)
{
	struct sleeper *s = arg;
	long begin = now_ms();

	if (s->way->wake)
		CHECK(write(s->begin[1], "", 1) == 1);
	errno = 0;
	s->result = s->way->sleep(s);
	s->error = errno;
	s->took_ms = now_ms() - begin;
	return NULL;
}

/* Makes no system call. */
static void *be_busy(void *arg)
{
	while (!atomic_load_explicit(&is_over, memory_order_relaxed))
		;
	return arg;
}

static void print(const struct sleeper *sleepers, int n)
{
	for (int i = 0; i < n; i++)
		printf("%s\"%s\": [%ld, %d, %ld]", i ? ", " : "{", sleepers[i].way->name, sleepers[i].result,
		       sleepers[i].error, sleepers[i].took_ms);
	printf("}\n");
}

int main(int argc, char **argv)
{
	static struct sleeper sleepers[sizeof(ways) / sizeof(ways[0])];
	pthread_t busy[MOST_BUSY];
	long n_busy = -1, awake_ms = 0;
	sigset_t set;
	int n, n_beside;

	for (; argc > 2 && argv[1][0] == '-'; argv += 2, argc -= 2)
		*(argv[1][1] == 'b' ? &n_busy : argv[1][1] == 'a' ? &awake_ms : &limit_ms) = number(argv[2]);
	if (n_busy > MOST_BUSY)
		return 2;
	n = argc - 1;
	if (n < 1 || n > (int)(sizeof(ways) / sizeof(ways[0])))
		return 2;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < n; i++) {
		sleepers[i].way = find(argv[1 + i]);
		if (sleepers[i].way->prepare)
			sleepers[i].way->prepare(&sleepers[i]);
		if (sleepers[i].way->wake)
			start_child(&sleepers[i]);
	}
	say("ready\n");
	n_beside = n == 1 || n_busy >= 0 ? n - 1 : n;
	for (int i = 0; i < n_beside; i++)
		CHECK(pthread_create(&sleepers[i].thread, NULL, run, &sleepers[i]) == 0);
	for (long i = 0; i < n_busy; i++)
		CHECK(pthread_create(&busy[i], NULL, be_busy, NULL) == 0);
	for (long begin = now_ms(); now_ms() - begin < awake_ms;)
		;
	if (n_beside < n)
		run(&sleepers[n_beside]);
	for (int i = 0; i < n_beside; i++)
		CHECK(pthread_join(sleepers[i].thread, NULL) == 0);
	atomic_store(&is_over, true);
	for (long i = 0; i < n_busy; i++)
		CHECK(pthread_join(busy[i], NULL) == 0);
	for (int i = 0; i < n; i++)
		if (sleepers[i].way->clean)
			sleepers[i].way->clean(&sleepers[i]);
	while (wait(NULL) > 0)
		;
	print(sleepers, n);
	return 0;
}
