/*
 * spawner
 *
 * After a line on stdin one thread makes children by posix_spawn, one after the other, and calls work_a() after each.
 * After the next line it ends, and prints how many there were.
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "target.h"
#include "work.h"

extern char **environ;

static atomic_bool stop;
static long done;

static void spawn_child(void)
{
	char *argv[] = { (char *)"true", NULL };
	int status = -1;
	pid_t pid = -1;

	CHECK(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) == 0);
	while (waitpid(pid, &status, 0) < 0)
		CHECK(errno == EINTR);
	CHECK(status == 0);
}

static void *make_children(void *arg)
{
	for (; !stop; done++) {
		spawn_child();
		CHECK(work_a((int)done, done * 3) == expect_a((int)done, done * 3));
	}
	return arg;
}

int main(void)
{
	pthread_t thread;

	say("ready\n");
	wait_for_line();
	CHECK(pthread_create(&thread, NULL, make_children, NULL) == 0);
	wait_for_line();
	stop = true;
	CHECK(pthread_join(thread, NULL) == 0);
	printf("{\"work_a\": %ld}\n", done);
	return 0;
}
