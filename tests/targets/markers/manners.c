/*
 * What the library does where it can't do what it is asked, and after fork(). Each command ends with 0 when all was as
 * it must be.
 *
 *	no-membarrier	a filter forbids it from the beginning: refused while there are threads, done while there are
 *			none
 *	late-filter	a filter forbids it later: refused, and a probe of before is disconnected and waited for
 *	no-write	a filter forbids to write: refused, nothing is changed
 *	no-open		the process is not dumpable, and not root's
 *	breakpoint	a debugger has a breakpoint on a site
 *	foreign		a third party has changed a site
 *	fork		children have probes of their own, whatever threads of the parent were doing
 */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <kymo/marker.h>
#include <kymo/marker_probe.h>

#include "../target.h"

#define CALL KYMO_MARKER_CALL

static atomic_ulong calls;
static atomic_bool stop;

static void count(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	CHECK(va_arg(arguments, int) == 42);
	atomic_fetch_add(&calls, 1);
}

__attribute__((noinline)) static void pass(void)
{
	MARK(mannered, "%d", 42);
}

static void check_calls(unsigned long n)
{
	unsigned long before = atomic_load(&calls);

	pass();
	CHECK(atomic_load(&calls) - before == n);
}

static void check_works(void)
{
	CHECK(kymo_marker_set_probe("mannered", NULL, count, NULL, CALL) == 0);
	check_calls(1);
	CHECK(kymo_marker_disable_probe("mannered", count, NULL, CALL) == 0);
	check_calls(0);
}

static void check_refused(int error)
{
	CHECK(kymo_marker_set_probe("mannered", NULL, count, NULL, CALL) == error);
	check_calls(0);
	CHECK(kymo_marker_disable_probe("mannered", count, NULL, CALL) == -ENOENT);
}

/* This system call returns `error` from now on. */
static void forbid(int nr, int error)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned int)nr, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned int)error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void *wait_for_stop(void *unused)
{
	while (!atomic_load(&stop))
		usleep(1000);
	return NULL;
}

static void no_membarrier(void)
{
	forbid(SYS_membarrier, ENOSYS);
	execl("/proc/self/exe", "manners", "without-membarrier", (char *)NULL);
	CHECK(false);
}

static void without_membarrier(void)
{
	pthread_t thread;

	check_works();
	CHECK(pthread_create(&thread, NULL, wait_for_stop, NULL) == 0);
	check_refused(-EPERM);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

static void late_filter(void)
{
	pthread_t thread;

	CHECK(kymo_marker_set_probe("mannered", NULL, count, NULL, CALL) == 0);
	CHECK(pthread_create(&thread, NULL, wait_for_stop, NULL) == 0);
	forbid(SYS_membarrier, EPERM);
	check_calls(1);
	CHECK(kymo_marker_disable_probe("mannered", count, NULL, CALL) == 0);
	check_calls(0);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
}

static void no_write(void)
{
	unsigned char before[64], after[64];

	memcpy(before, (const void *)(uintptr_t)pass, sizeof(before));
	forbid(SYS_pwrite64, EIO);
	check_refused(-EIO);
	memcpy(after, (const void *)(uintptr_t)pass, sizeof(after));
	CHECK(memcmp(before, after, sizeof(before)) == 0);
}

static void no_open(void)
{
	CHECK(prctl(PR_SET_DUMPABLE, 0) == 0);
	check_refused(-EACCES);
	CHECK(prctl(PR_SET_DUMPABLE, 1) == 0);
	check_works();
}

static const unsigned char nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };

static unsigned char *site(void)
{
	unsigned char *at = memmem((void *)(uintptr_t)pass, 64, nop, sizeof(nop));

	CHECK(at);
	return at;
}

static void poke(unsigned char *at, unsigned char byte)
{
	int memory = open("/proc/self/mem", O_RDWR | O_CLOEXEC);

	CHECK(memory >= 0);
	CHECK(pwrite(memory, &byte, 1, (off_t)(uintptr_t)at) == 1);
	close(memory);
}

static void breakpoint(void)
{
	unsigned char *at = site();

	poke(at, 0xcc);
	CHECK(kymo_marker_set_probe("mannered", NULL, count, NULL, CALL) == -EBUSY);
	CHECK(*at == 0xcc);
	poke(at, 0x0f);
	check_works();
}

static void foreign(void)
{
	unsigned char *at = site();

	poke(at + 4, 0x7f); /* still a NOP, but not one that this library knows */
	check_refused(-EIO);
	CHECK(at[0] == 0x0f && at[4] == 0x7f);
	poke(at + 4, 0);
	check_works();
	/* Changed while it is on: it stays, and calls nothing. */
	CHECK(kymo_marker_set_probe("mannered", NULL, count, NULL, CALL) == 0);
	poke(at, 0xcc);
	CHECK(kymo_marker_disable_probe("mannered", count, NULL, CALL) == 0);
	CHECK(*at == 0xcc);
	poke(at, 0xe9);
	check_calls(0);
	check_works();
	/* The kernel's uprobe that comes and goes puts the NOP back: the next connection turns it on again. */
	CHECK(kymo_marker_set_probe("mannered", NULL, count, NULL, CALL) == 0);
	for (int i = 0; i < 5; i++)
		poke(at + i, nop[i]);
	check_calls(0);
	CHECK(kymo_marker_set_probe("mannered", NULL, count, &calls, CALL) == 0);
	check_calls(2);
	CHECK(kymo_marker_disable_probe("mannered", count, &calls, CALL) == 0);
	CHECK(kymo_marker_disable_probe("mannered", count, NULL, CALL) == 0);
	check_calls(0);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static atomic_ulong elsewhere;

static void count_elsewhere(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	atomic_fetch_add(&elsewhere, 1);
}

static void *toggle(void *unused)
{
	while (!atomic_load(&stop)) {
		CHECK(kymo_marker_set_probe("elsewhere", NULL, count_elsewhere, NULL, CALL) == 0);
		CHECK(kymo_marker_disable_probe("elsewhere", count_elsewhere, NULL, CALL) == 0);
	}
	return NULL;
}

static void *pass_elsewhere(void *unused)
{
	while (!atomic_load_explicit(&stop, memory_order_relaxed))
		MARK(elsewhere, MARK_NOARGS);
	return NULL;
}

/* Has the probe of its parent, and toggles what the parent was toggling. */
static void be_child(void)
{
	check_calls(1);
	CHECK(kymo_marker_disable_probe("mannered", count, NULL, CALL) == 0);
	check_calls(0);
	check_works();
	kymo_marker_disable_probe("elsewhere", count_elsewhere, NULL, CALL);
	CHECK(kymo_marker_set_probe("elsewhere", NULL, count_elsewhere, NULL, CALL) == 0);
	unsigned long before = atomic_load(&elsewhere);
	MARK(elsewhere, MARK_NOARGS);
	CHECK(atomic_load(&elsewhere) == before + 1);
	CHECK(kymo_marker_disable_probe("elsewhere", count_elsewhere, NULL, CALL) == 0);
	_exit(0);
}

static void fork_often(void)
{
	pthread_t threads[3];

	CHECK(kymo_marker_set_probe("mannered", NULL, count, NULL, CALL) == 0);
	CHECK(pthread_create(&threads[0], NULL, toggle, NULL) == 0);
	CHECK(pthread_create(&threads[1], NULL, pass_elsewhere, NULL) == 0);
	CHECK(pthread_create(&threads[2], NULL, pass_elsewhere, NULL) == 0);
	for (int i = 0; i < 50; i++) {
		pid_t child = fork();
		int status;
		CHECK(child >= 0);
		if (child == 0)
			be_child();
		CHECK(waitpid(child, &status, 0) == child);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
		check_calls(1);
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	CHECK(kymo_marker_disable_probe("mannered", count, NULL, CALL) == 0);
	check_calls(0);
}

static const struct {
	const char *name;
	void (*run)(void);
} commands[] = {
	{ "no-membarrier", no_membarrier },
	{ "without-membarrier", without_membarrier },
	{ "late-filter", late_filter },
	{ "no-write", no_write },
	{ "no-open", no_open },
	{ "breakpoint", breakpoint },
	{ "foreign", foreign },
	{ "fork", fork_often },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (argc == 2 && strcmp(argv[1], commands[i].name) == 0) {
			commands[i].run();
			return 0;
		}
	}
	return 2;
}
