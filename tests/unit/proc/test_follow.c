/* A tree of processes, without probes: what is reported of which process, and that all run as they would. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/page.h"
#include "hub/freeze/freeze.h"
#include "hub/state.h"
#include "hub/thread/task.h"
#include "proc/call.h"
#include "proc/launch.h"
#include "proc/linker.h"
#include "proc/members.h"
#include "proc/memory.h"
#include "proc/nap.h"
#include "proc/process.h"
#include "proc/startup.h"
#include "proc/state.h"
#include "proc/stop.h"
#include "proc/thread.h"
#include "proc/tree.h"
#include "procfs/info.h"

#define MAX 64

struct family {
	struct kymo_tree *tree;
	struct kymo_process *members[MAX];
	size_t n;
	unsigned int told[KYMO_TREE_ENDED + 1];
	pid_t first;
	int status; /* of the first */
	int n_refused;
};

static void no_error(struct kymo_error *error)
{
	if (error)
		print_error("%s\n", error->message);
	assert_null(error);
}

static void begin_stopped(struct family *family, char *const *argv)
{
	struct kymo_process *process;

	memset(family, 0, sizeof(*family));
	no_error(kymo_process_launch(argv, &process));
	no_error(kymo_tree_create(&family->tree));
	no_error(kymo_tree_take(family->tree, process));
	family->first = kymo_process_pid(process);
	family->members[family->n++] = process;
}

static void begin(struct family *family, const char *script)
{
	char *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)(uintptr_t)script, NULL };

	begin_stopped(family, argv);
	kymo_process_resume(family->members[0]);
}

static void replace(struct family *family, struct kymo_process *old, struct kymo_process *new)
{
	for (size_t i = 0; i < family->n; i++) {
		if (family->members[i] != old)
			continue;
		family->members[i] = new ? new : family->members[--family->n];
		kymo_process_destroy(old);
		return;
	}
	fail_msg("a process that was not told before");
}

static void take(struct family *family, const struct kymo_tree_event *event)
{
	family->told[event->kind]++;
	if ((event->kind == KYMO_TREE_ENDED || event->kind == KYMO_TREE_REFUSED) && event->refusal)
		family->n_refused++;
	else
		assert_null(event->refusal);
	kymo_error_destroy(event->refusal);
	switch (event->kind) {
	case KYMO_TREE_FORKED:
	case KYMO_TREE_SHARING:
		assert_non_null(event->other);
		assert_true(family->n < MAX);
		family->members[family->n++] = event->process;
		if (event->kind == KYMO_TREE_FORKED)
			kymo_process_resume(event->process);
		break;
	case KYMO_TREE_EXECED:
		assert_true(kymo_process_is_past(event->other));
		assert_int_equal(kymo_process_pid(event->process), kymo_process_pid(event->other));
		replace(family, event->other, event->process);
		no_error(kymo_process_startup_on(event->process));
		break;
	case KYMO_TREE_STARTUP:
		if (event->startup == KYMO_STARTUP_LOADED)
			kymo_process_resume(event->process);
		else
			no_error(kymo_process_startup_on(event->process));
		break;
	case KYMO_TREE_ENDED:
		if (kymo_process_pid(event->process) == family->first)
			family->status = event->status;
		replace(family, event->process, NULL);
		break;
	default:
		break;
	}
}

/* Until no process is left, or `kind` has been told. */
static void serve(struct family *family, int kind)
{
	struct pollfd changed = { .events = POLLIN };
	struct kymo_tree_event event;

	while (family->n && (kind < 0 || !family->told[kind])) {
		changed.fd = kymo_tree_fd(family->tree);
		poll(&changed, 1, 20);
		while (kymo_tree_next(family->tree, &event)) {
			take(family, &event);
			if (kind >= 0 && family->told[kind])
				return;
		}
	}
}

static void end(struct family *family)
{
	while (family->n)
		kymo_process_destroy(family->members[--family->n]);
	kymo_tree_destroy(family->tree);
}

static void all_processes_of_a_script_are_told_and_their_ends(void **state)
{
	struct family family;

	begin(&family, "(exit 3); (/bin/true); /bin/true; exit 5");
	serve(&family, -1);
	assert_true(WIFEXITED(family.status));
	assert_int_equal(WEXITSTATUS(family.status), 5);
	assert_int_equal(family.told[KYMO_TREE_EXECED], 2);
	assert_int_equal(family.told[KYMO_TREE_ENDED],
			 1 + family.told[KYMO_TREE_FORKED] + family.told[KYMO_TREE_SHARING]);
	assert_int_equal(family.told[KYMO_TREE_ENDED], 4);
	end(&family);
}

static void a_process_that_executes_another_program_is_followed_on(void **state)
{
	struct family family;

	begin(&family, "exec /bin/sh -c 'exit 6'");
	serve(&family, -1);
	assert_int_equal(WEXITSTATUS(family.status), 6);
	assert_int_equal(family.told[KYMO_TREE_EXECED], 1);
	end(&family);
}

static void handlers_of_a_followed_process_run_while_its_tracer_naps(void **state)
{
	enum { TO_TEST = 9, FEW = 10 };
	struct family family;
	char bytes[4096];
	int fds[2], n = 0;

	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	assert_int_equal(dup2(fds[1], TO_TEST), TO_TEST);
	begin(&family, "trap 'echo >&9' USR1; while :; do kill -USR1 $$; done");
	for (int i = 0; i < 50 && n < FEW; i++) { /* ten seconds, for a busy machine */
		ssize_t got;

		kymo_process_nap(family.members[0], 200000000);
		got = read(fds[0], bytes, sizeof(bytes));
		n += got > 0 ? (int)got : 0;
	}
	assert_true(n >= FEW);
	kill(family.first, SIGKILL);
	serve(&family, -1);
	end(&family);
	close(TO_TEST);
	close(fds[0]);
	close(fds[1]);
}

/* As one that is connected holds it, which the hub has interrupted. */
static void hold_for(struct hub_owner *guest, struct kymo_hub *hub, pid_t pid)
{
	struct hub_process *process;

	*guest = (struct hub_owner){ .hub = hub, .requests = 0, .frozen = pid };
	pthread_mutex_lock(&hub->lock);
	process = hub_find_process(hub, pid);
	assert_non_null(process);
	process->owner = guest;
	process->tasks->must_freeze = true;
	pthread_mutex_unlock(&hub->lock);
}

/* Whether there is something to read, after a while. The tree is served meanwhile. */
static bool comes(const struct family *family, int fd)
{
	struct pollfd said = { .fd = fd, .events = POLLIN };
	struct kymo_tree_event event;

	for (int i = 0; i < 3000 && poll(&said, 1, 20) <= 0; i++)
		while (kymo_tree_next(family->tree, &event))
			fail_msg("something was told of a process that nobody follows");
	return poll(&said, 1, 0) > 0;
}

/* Without a descriptor for it the new program is not followed. It runs, whatever held its predecessor. */
static void a_held_process_that_executes_a_program_while_descriptors_are_out_runs_on(void **state)
{
	char script[128], *argv[] = { (char *)"/bin/sh", (char *)"-c", script, NULL };
	char text[4];
	int go[2], said[2], status;
	struct rlimit limit, none;
	struct hub_owner guest;
	struct family family;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(said), 0);
	snprintf(script, sizeof(script), "echo x >&%d; read x <&%d; exec /bin/sh -c 'echo x >&%d; read x <&%d'",
		 said[1], go[0], said[1], go[0]);
	begin_stopped(&family, argv);
	kymo_process_resume(family.members[0]);
	assert_true(comes(&family, said[0]));
	assert_int_equal(read(said[0], text, sizeof(text)), 2);
	hold_for(&guest, family.tree->hub, family.first);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = (struct rlimit){ 1, limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	assert_int_equal(write(go[1], "\n", 1), 1);
	serve(&family, KYMO_TREE_ENDED);
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(family.told[KYMO_TREE_EXECED], 0);
	assert_int_equal(family.n_refused, 1);
	assert_true(comes(&family, said[0]));
	end(&family); /* before it ends: else the hub would have waited for it */
	assert_int_equal(write(go[1], "\n", 1), 1);
	assert_int_equal(waitpid(family.first, &status, 0), family.first);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(said[i]);
	}
}

/* It makes a child that executes a program; the child is told of, and is no more to be heard of. */
static void a_child_that_is_made_while_descriptors_are_out_is_told_and_runs(void **state)
{
	char script[128], *argv[] = { (char *)"/bin/sh", (char *)"-c", script, NULL };
	char text[4];
	int go[2], said[2];
	struct rlimit limit, none;
	struct family family;

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(said), 0);
	snprintf(script, sizeof(script), "echo x >&%d; read x <&%d; /bin/sh -c 'exit 4'; exit $(($? + 3))", said[1],
		 go[0]);
	begin_stopped(&family, argv);
	kymo_process_resume(family.members[0]);
	assert_true(comes(&family, said[0]));
	assert_int_equal(read(said[0], text, sizeof(text)), 2);
	getrlimit(RLIMIT_NOFILE, &limit);
	none = (struct rlimit){ 1, limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &none);
	assert_int_equal(write(go[1], "\n", 1), 1);
	serve(&family, -1);
	setrlimit(RLIMIT_NOFILE, &limit);
	assert_int_equal(family.told[KYMO_TREE_FORKED], 0);
	assert_int_equal(family.told[KYMO_TREE_REFUSED], 1);
	assert_int_equal(family.n_refused, 1);
	assert_true(WIFEXITED(family.status) && WEXITSTATUS(family.status) == 7);
	end(&family);
	for (int i = 0; i < 2; i++) {
		close(go[i]);
		close(said[i]);
	}
}

static void a_child_that_outlives_the_first_process_is_followed_to_its_end(void **state)
{
	struct family family;

	begin(&family, "(sleep 0.1; (exit 0)) & exit 7");
	serve(&family, -1);
	assert_int_equal(WEXITSTATUS(family.status), 7);
	assert_int_equal(family.n, 0);
	end(&family);
}

static void a_followed_process_can_be_stopped_called_and_resumed_again_and_again(void **state)
{
	static const uint64_t no_args[6];
	struct family family;
	size_t n;

	begin(&family,
	      "read x; exit 8"); /* from the terminal or file of the user who runs the test: stopped soon enough */
	for (int i = 0; i < 50; i++) {
		struct kymo_process *process = family.members[0];
		int64_t result = 0;
		struct kymo_error *error = kymo_process_stop(process);

		if (error) { /* it has ended by now */
			kymo_error_destroy(error);
			break;
		}
		no_error(kymo_remote_begin(process));
		no_error(kymo_remote_syscall(process, SYS_getpid, no_args, &result));
		assert_int_equal(result, family.first);
		no_error(kymo_remote_end(process));
		kymo_process_resume(process);
		kymo_process_threads(process, &n);
		assert_int_equal(n, 0);
	}
	kill(family.first, SIGKILL);
	serve(&family, -1);
	end(&family);
}

static uint64_t locked(struct kymo_process *process)
{
	struct kymo_process_info info;

	assert_true(kymo_process_status(process, &info));
	assert_int_equal(info.tgid, kymo_process_pid(process));
	return info.locked;
}

/* Locked memory is all that a remote call can change of it. */
static void what_is_told_of_a_followed_process_is_read_once_a_stop(void **state)
{
	char *argv[] = { (char *)"/bin/sleep", (char *)"1000", NULL };
	struct kymo_process_info now;
	struct kymo_process *process;
	struct family family;
	int64_t result = -1;
	uint64_t page;

	begin_stopped(&family, argv);
	process = family.members[0];
	assert_int_equal(locked(process), 0);
	no_error(kymo_remote_begin(process));
	page = kymo_page_down(kymo_remote_scratch(process));
	no_error(kymo_remote_syscall(process, SYS_mlock, (uint64_t[6]){ page, KYMO_PAGE_SIZE }, &result));
	assert_int_equal(result, 0);
	no_error(kymo_remote_end(process));
	assert_true(kymo_process_peek_status(family.first, &now));
	assert_int_equal(now.locked, KYMO_PAGE_SIZE);
	assert_int_equal(locked(process), 0);
	kymo_process_resume(process);
	no_error(kymo_process_stop(process));
	assert_int_equal(locked(process), KYMO_PAGE_SIZE);
	kill(family.first, SIGKILL);
	serve(&family, -1);
	end(&family);
}

static void a_process_that_is_let_go_runs_on_with_children_that_are_not_followed(void **state)
{
	struct family family;
	int status;

	begin(&family, "(sleep 0.2; exit 3); [ $? = 3 ] && /bin/true && exit 9");
	serve(&family, KYMO_TREE_FORKED);
	end(&family);
	assert_int_equal(waitpid(family.first, &status, 0), family.first);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 9);
}

static void a_killed_tree_is_told_to_its_end(void **state)
{
	struct family family;

	begin(&family, "for i in 1 2 3; do sleep 100 & done; wait");
	while (family.told[KYMO_TREE_EXECED] < 3) {
		family.told[KYMO_TREE_STARTUP] = 0;
		serve(&family, KYMO_TREE_STARTUP);
	}
	for (size_t i = 0; i < family.n; i++)
		kill(kymo_process_pid(family.members[i]), SIGKILL);
	serve(&family, -1);
	assert_true(WIFSIGNALED(family.status));
	assert_int_equal(family.told[KYMO_TREE_ENDED], 4);
	end(&family);
}

/* ---- a program that makes a thread, which writes a byte to `fd` ------------------------------ */

#define THREADED "--threaded"

static void *speak(void *fd)
{
	_exit(write(*(int *)fd, "", 1) == 1 ? 0 : 1);
}

static int be_threaded(int fd)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, speak, &fd))
		return 1;
	pthread_join(thread, NULL);
	return 1;
}

/* Stop and resume the process, whatever it does, until its thread has been told. */
static void disturb_until_held(struct family *family)
{
	struct kymo_tree_event event = { .is_held = false };

	while (!event.is_held) {
		no_error(kymo_process_stop(family->members[0]));
		kymo_process_resume(family->members[0]);
		while (!event.is_held && kymo_tree_next(family->tree, &event))
			take(family, &event);
		assert_int_equal(family->n, 1);
	}
	assert_int_equal(event.kind, KYMO_TREE_THREAD);
}

static void a_thread_that_is_held_does_nothing_before_it_has_been_told(void **state)
{
	for (int i = 0; i < 20; i++) {
		int fds[2];
		char fd[16], *argv[] = { (char *)"/proc/self/exe", (char *)THREADED, fd, NULL };
		struct pollfd said;
		struct family family;
		size_t n;

		assert_int_equal(pipe(fds), 0);
		snprintf(fd, sizeof(fd), "%d", fds[1]);
		begin_stopped(&family, argv);
		kymo_process_freeze_birth(family.members[0], true);
		kymo_process_resume(family.members[0]);
		disturb_until_held(&family);
		no_error(kymo_process_stop(family.members[0]));
		kymo_process_threads(family.members[0], &n);
		assert_int_equal(n, 2);
		said = (struct pollfd){ .fd = fds[0], .events = POLLIN };
		assert_int_equal(poll(&said, 1, 0), 0);
		kymo_process_resume(family.members[0]);
		serve(&family, -1);
		assert_true(WIFEXITED(family.status));
		assert_int_equal(WEXITSTATUS(family.status), 0);
		assert_int_equal(poll(&said, 1, 0), 1);
		end(&family);
		close(fds[0]);
		close(fds[1]);
	}
}

/* The kernel takes its status then. */
static void one_that_was_launched_is_killed_where_ends_of_children_are_ignored(void **state)
{
	char *argv[] = { (char *)"sleep", (char *)"1000", NULL };
	struct kymo_process *process;
	pid_t pid;

	signal(SIGCHLD, SIG_IGN);
	no_error(kymo_process_launch(argv, &process));
	pid = kymo_process_pid(process);
	kymo_process_resume(process);
	kymo_process_kill(process);
	assert_int_equal(kill(pid, 0), -1);
	kymo_process_destroy(process);
	signal(SIGCHLD, SIG_DFL);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_processes_of_a_script_are_told_and_their_ends),
		cmocka_unit_test(a_process_that_executes_another_program_is_followed_on),
		cmocka_unit_test(handlers_of_a_followed_process_run_while_its_tracer_naps),
		cmocka_unit_test(a_held_process_that_executes_a_program_while_descriptors_are_out_runs_on),
		cmocka_unit_test(a_child_that_is_made_while_descriptors_are_out_is_told_and_runs),
		cmocka_unit_test(a_child_that_outlives_the_first_process_is_followed_to_its_end),
		cmocka_unit_test(a_followed_process_can_be_stopped_called_and_resumed_again_and_again),
		cmocka_unit_test(what_is_told_of_a_followed_process_is_read_once_a_stop),
		cmocka_unit_test(a_process_that_is_let_go_runs_on_with_children_that_are_not_followed),
		cmocka_unit_test(a_killed_tree_is_told_to_its_end),
		cmocka_unit_test(a_thread_that_is_held_does_nothing_before_it_has_been_told),
		cmocka_unit_test(one_that_was_launched_is_killed_where_ends_of_children_are_ignored),
	};

	if (argc == 3 && !strcmp(argv[1], THREADED))
		return be_threaded(atoi(argv[2]));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
