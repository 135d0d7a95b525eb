/* Words that are not 0 while there is a hub: its keeper clears those that are noted, and no others. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hub/thread/request.h"
#include "hub/trap/keeper.h"
#include "kymo/engine.h"

#define WORDS 64
#define KILLS 20

struct shared {
	atomic_int words[WORDS];
	atomic_int target, ready;
};

struct job {
	struct shared *shared;
	int fd;
};

static int note(struct kymo_hub *hub, void *argument)
{
	const struct job *job = argument;

	for (int i = 1; i < WORDS; i += 2) {
		int entry = hub_note_word(hub, job->fd, (uint64_t)&job->shared->words[i]);

		if (entry < 0)
			return entry;
		if (i % 4 == 3)
			hub_strike(hub, entry);
		job->shared->words[i] = i;
	}
	return 0;
}

static void __attribute__((noreturn)) be_target(void)
{
	for (;;)
		pause();
}

/* It makes the target, whose memory it may write then. */
static void __attribute__((noreturn)) be_hub(struct shared *shared)
{
	struct job job = { .shared = shared };
	struct kymo_hub *hub;
	char name[64];
	pid_t target = fork();

	if (!target)
		be_target();
	shared->target = target;
	snprintf(name, sizeof(name), "/proc/%d/mem", target);
	job.fd = open(name, O_RDWR | O_CLOEXEC);
	if (job.fd < 0 || kymo_hub_create(&hub) || hub_call(hub, note, &job))
		_exit(1);
	shared->ready = 1;
	for (;;)
		pause();
}

static void look(const struct shared *shared)
{
	for (int i = 1; i < WORDS; i += 4)
		for (int tries = 0; shared->words[i] && tries < 10000; tries++)
			usleep(1000);
	for (int i = 0; i < WORDS; i++)
		assert_int_equal(shared->words[i], i % 4 == 1 ? 0 : i % 2 ? i : -1);
}

static void words_are_cleared_when_the_hub_is_killed(void **state)
{
	for (int kill_at = 0; kill_at < KILLS; kill_at++) {
		struct shared *shared =
			mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		int status;
		pid_t hub;

		assert_ptr_not_equal(shared, MAP_FAILED);
		for (int i = 0; i < WORDS; i++)
			shared->words[i] = -1;
		hub = fork();
		if (!hub)
			be_hub(shared);
		while (!shared->ready && !waitpid(hub, &status, WNOHANG))
			usleep(1000);
		assert_int_equal(shared->ready, 1);
		kill(hub, SIGKILL);
		assert_int_equal(waitpid(hub, &status, 0), hub);
		look(shared);
		kill(shared->target, SIGKILL);
		munmap(shared, sizeof(*shared));
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_are_cleared_when_the_hub_is_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
