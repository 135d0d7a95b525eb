/* A process of a tree that is frozen for others, too, and its follower's claims: the guest comes on a thread of its
 * own, as it would be in another process. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "hub/freeze/freeze.h"
#include "hub/freeze/owner.h"
#include "proc/call.h"
#include "proc/launch.h"
#include "proc/linker.h"
#include "proc/process.h"
#include "proc/startup.h"
#include "proc/state.h"
#include "proc/stop.h"
#include "proc/thread.h"
#include "proc/tree.h"

#define NAP_MS 20
#define BOUND_S 60

/* What the program does: it makes a thread, which does so at a byte of its input, and does nothing itself. */
enum deed { SPEAK, MAKE_A_THREAD, EXECUTE };

struct stage {
	struct kymo_tree *tree;
	struct kymo_process *process;
	struct kymo_tree_event event; /* the last of a kind that was waited for */
	int in, out;                  /* of the program */
	pid_t pid;
	pthread_t thread; /* the guest's */
	bool is_first;    /* it holds the first thread alone */
	atomic_bool holds, is_to_end, has_ended;
	atomic_bool has_left;         /* its connection has ended, too, for which the hub is needed */
	enum kymo_error_code refusal; /* what it was told when it could not hold, or not use what it held */
	bool was_refused, was_lost;
};

static void no_error(struct kymo_error *error)
{
	if (error)
		print_error("%s\n", error->message);
	assert_null(error);
}

/* ---- the program ----------------------------------------------------------------------------- */

#define PROGRAM "--program"

static void *speak(void *data)
{
	_exit(write(STDOUT_FILENO, "", 1) == 1 ? 7 : 1);
}

static void *do_it(void *data)
{
	const enum deed *deed = data;
	char byte, *argv[] = { (char *)"/bin/sh", (char *)"-c", (char *)"printf x; exit 7", NULL };
	pthread_t thread;

	if (write(STDOUT_FILENO, "r", 1) != 1 || read(STDIN_FILENO, &byte, 1) != 1)
		_exit(1);
	if (*deed == MAKE_A_THREAD)
		_exit(pthread_create(&thread, NULL, speak, NULL) || pthread_join(thread, NULL));
	if (*deed == EXECUTE)
		execv(argv[0], argv);
	speak(NULL);
	return NULL;
}

static int be_program(enum deed deed)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, do_it, &deed))
		return 1;
	for (;;)
		pause();
}

static bool says(const struct stage *stage, int ms)
{
	struct pollfd said = { .fd = stage->out, .events = POLLIN };

	return poll(&said, 1, ms) > 0;
}

static void hears(const struct stage *stage, char byte)
{
	char got = 0;

	assert_true(says(stage, BOUND_S * 1000));
	assert_int_equal(read(stage->out, &got, 1), 1);
	assert_int_equal(got, byte);
}

static void tell(const struct stage *stage)
{
	assert_int_equal(write(stage->in, "x", 1), 1);
}

/* ---- its follower ---------------------------------------------------------------------------- */

/* Starts run through; what else is told is looked at by tests. */
static bool is_start(struct stage *stage, const struct kymo_tree_event *event)
{
	if (event->kind == KYMO_TREE_STARTUP && event->startup == KYMO_STARTUP_LOADED)
		kymo_process_resume(event->process);
	else if (event->kind == KYMO_TREE_STARTUP)
		no_error(kymo_process_startup_on(event->process));
	return event->kind == KYMO_TREE_STARTUP;
}

static void serve_once(struct stage *stage)
{
	struct pollfd changed = { .fd = kymo_tree_fd(stage->tree), .events = POLLIN };
	struct kymo_tree_event event;

	poll(&changed, 1, NAP_MS);
	while (kymo_tree_next(stage->tree, &event))
		if (!is_start(stage, &event))
			stage->event = event;
}

/* Until `condition`, with the tree served meanwhile. */
#define served_until(stage, condition) \
	do { \
		uint64_t deadline_ = kymo_now_ns() + BOUND_S * 1000000000ull; \
\
		while (!(condition)) { \
			serve_once(stage); \
			assert_true(kymo_now_ns() < deadline_); \
		} \
	} while (0)

static void serve_a_while(struct stage *stage)
{
	for (int i = 0; i < 10; i++)
		serve_once(stage);
}

static void begin_stopped(struct stage *stage, enum deed deed)
{
	char text[] = { (char)('0' + deed), '\0' }, *argv[] = { (char *)"/proc/self/exe", (char *)PROGRAM, text, NULL };
	int in[2], out[2], before[2] = { dup(STDIN_FILENO), dup(STDOUT_FILENO) };

	memset(stage, 0, sizeof(*stage));
	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	dup2(in[0], STDIN_FILENO);
	dup2(out[1], STDOUT_FILENO);
	no_error(kymo_process_launch(argv, &stage->process));
	for (int i = 0; i < 2; i++) {
		dup2(before[i], i);
		close(before[i]);
	}
	close(in[0]);
	close(out[1]);
	stage->in = in[1];
	stage->out = out[0];
	stage->pid = kymo_process_pid(stage->process);
	no_error(kymo_tree_create(&stage->tree));
	no_error(kymo_tree_take(stage->tree, stage->process));
}

/* Its thread waits for its byte. */
static void begin(struct stage *stage, enum deed deed)
{
	begin_stopped(stage, deed);
	kymo_process_resume(stage->process);
	served_until(stage, says(stage, 0));
	hears(stage, 'r');
	served_until(stage, stage->event.kind == KYMO_TREE_THREAD);
}

static void end(struct stage *stage)
{
	kill(stage->pid, SIGKILL);
	served_until(stage, stage->event.kind == KYMO_TREE_ENDED);
	if (stage->event.process != stage->process)
		kymo_process_destroy(stage->event.process);
	kymo_process_destroy(stage->process);
	kymo_tree_destroy(stage->tree);
	close(stage->in);
	close(stage->out);
}

/* ---- the guest ------------------------------------------------------------------------------- */

static void keep_refusal(struct stage *stage, struct kymo_error *error)
{
	stage->refusal = error->code;
	stage->was_refused = true;
	kymo_error_destroy(error);
}

/* A call in the name of a thread, as long as it holds it. */
static void use(struct stage *stage, struct kymo_process *process)
{
	static const uint64_t none[6];
	int64_t result = 0;
	struct kymo_error *error = kymo_remote_begin(process);

	if (!error) {
		error = kymo_remote_syscall(process, SYS_getpid, none, &result);
		kymo_error_destroy(kymo_remote_end(process));
	}
	stage->was_lost = error || result != stage->pid;
	kymo_error_destroy(error);
}

static void *visit(void *data)
{
	struct stage *stage = data;
	struct kymo_process *process = NULL;
	struct kymo_error *error = kymo_process_open(stage->pid, &process);

	if (!error)
		error = stage->is_first ? kymo_process_stop_first(process) : kymo_process_stop(process);
	if (error) {
		keep_refusal(stage, error);
	} else {
		stage->holds = true;
		while (!stage->is_to_end)
			usleep(1000);
		use(stage, process);
	}
	stage->has_ended = true;
	kymo_process_destroy(process);
	stage->has_left = true;
	return NULL;
}

static void invite(struct stage *stage, bool is_first)
{
	stage->is_first = is_first;
	stage->holds = stage->is_to_end = stage->has_ended = stage->has_left = false;
	stage->was_refused = stage->was_lost = false;
	assert_int_equal(pthread_create(&stage->thread, NULL, visit, stage), 0);
	served_until(stage, stage->holds || stage->has_ended);
}

static void send_away(struct stage *stage)
{
	stage->is_to_end = true;
	served_until(stage, stage->has_left);
	pthread_join(stage->thread, NULL);
}

/* ---- */

static void another_one_holds_it_and_its_follower_waits_for_its_turn(void **state)
{
	struct stage stage;
	size_t n;

	begin(&stage, SPEAK);
	for (int i = 0; i < 5; i++) {
		invite(&stage, i % 2);
		assert_true(stage.holds);
		stage.is_to_end = true;
		no_error(kymo_process_stop(stage.process));
		assert_true(stage.has_ended);
		assert_false(stage.was_lost);
		kymo_process_threads(stage.process, &n);
		assert_int_equal(n, 2);
		kymo_process_resume(stage.process);
		send_away(&stage);
	}
	tell(&stage);
	served_until(&stage, stage.event.kind == KYMO_TREE_ENDED);
	assert_int_equal(WEXITSTATUS(stage.event.status), 7);
	hears(&stage, '\0');
	end(&stage);
}

static void while_its_follower_holds_it_another_one_is_told_so(void **state)
{
	struct stage stage;

	begin(&stage, SPEAK);
	no_error(kymo_process_stop(stage.process));
	invite(&stage, false);
	assert_true(stage.was_refused);
	assert_int_equal(stage.refusal, KYMO_ERROR_BUSY);
	send_away(&stage);
	tell(&stage);
	serve_a_while(&stage);
	assert_false(says(&stage, 0));
	kymo_process_resume(stage.process);
	served_until(&stage, says(&stage, 0));
	end(&stage);
}

/* With the first thread held alone another may make one, which is then to be held for its follower. */
static void a_birth_is_held_across_the_end_of_anothers_hold(void **state)
{
	struct stage stage;
	size_t n;

	for (int i = 0; i < 5; i++) {
		begin(&stage, MAKE_A_THREAD);
		invite(&stage, true);
		assert_true(stage.holds);
		kymo_process_freeze_birth(stage.process, true);
		stage.event.kind = KYMO_TREE_FORKED;
		tell(&stage);
		served_until(&stage, stage.event.kind == KYMO_TREE_THREAD);
		assert_true(stage.event.is_held);
		serve_a_while(&stage);
		assert_false(says(&stage, 0));
		send_away(&stage);
		assert_false(stage.was_lost);
		serve_a_while(&stage);
		assert_false(says(&stage, 0));
		no_error(kymo_process_stop(stage.process));
		kymo_process_threads(stage.process, &n);
		assert_int_equal(n, 3);
		kymo_process_resume(stage.process);
		served_until(&stage, says(&stage, 0));
		end(&stage);
	}
}

/* It takes back what it can't have in time, or does not want any more. */
static void a_claim_that_is_given_up_lets_threads_run_which_nobody_holds(void **state)
{
	struct stage stage;

	begin(&stage, SPEAK);
	invite(&stage, true);
	assert_int_equal(hub_freeze_request(stage.process->owner), 1);
	serve_a_while(&stage);
	tell(&stage);
	serve_a_while(&stage);
	assert_false(says(&stage, 0));
	hub_freeze_drop(stage.process->owner);
	served_until(&stage, says(&stage, 0));
	send_away(&stage);
	end(&stage);
}

static void an_exec_ends_anothers_hold_and_the_new_program_is_its_followers(void **state)
{
	struct kymo_process *before;
	struct stage stage;

	for (int i = 0; i < 5; i++) {
		begin(&stage, EXECUTE);
		before = stage.process;
		invite(&stage, true);
		assert_true(stage.holds);
		tell(&stage);
		served_until(&stage, stage.event.kind == KYMO_TREE_EXECED);
		assert_ptr_equal(stage.event.other, before);
		stage.process = stage.event.process;
		kymo_process_destroy(before);
		send_away(&stage);
		assert_true(stage.was_lost);
		serve_a_while(&stage);
		assert_false(says(&stage, 0));
		kymo_process_resume(stage.process);
		served_until(&stage, stage.event.kind == KYMO_TREE_ENDED);
		assert_int_equal(WEXITSTATUS(stage.event.status), 7);
		hears(&stage, 'x');
		end(&stage);
	}
}

static void a_program_that_starts_is_held_by_nobody_else(void **state)
{
	struct stage stage;

	begin_stopped(&stage, SPEAK);
	kill(stage.pid, SIGSTOP); /* it does not come far */
	no_error(kymo_process_startup_on(stage.process));
	invite(&stage, false);
	assert_true(stage.was_refused);
	assert_int_equal(stage.refusal, KYMO_ERROR_BUSY);
	send_away(&stage);
	kill(stage.pid, SIGCONT);
	served_until(&stage, says(&stage, 0));
	invite(&stage, false);
	assert_true(stage.holds);
	send_away(&stage);
	assert_false(stage.was_lost);
	end(&stage);
}

static void a_process_is_let_go_when_another_ones_hold_has_ended(void **state)
{
	struct stage stage;
	int status;

	begin(&stage, SPEAK);
	invite(&stage, false);
	tell(&stage);
	stage.is_to_end = true;
	kymo_process_destroy(stage.process);
	assert_true(stage.has_ended);
	assert_false(stage.was_lost);
	served_until(&stage, stage.has_left);
	pthread_join(stage.thread, NULL);
	served_until(&stage, kymo_tree_has_ended(stage.tree, stage.pid, &status));
	assert_int_equal(WEXITSTATUS(status), 7);
	kymo_tree_destroy(stage.tree);
	close(stage.in);
	close(stage.out);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_one_holds_it_and_its_follower_waits_for_its_turn),
		cmocka_unit_test(while_its_follower_holds_it_another_one_is_told_so),
		cmocka_unit_test(a_birth_is_held_across_the_end_of_anothers_hold),
		cmocka_unit_test(a_claim_that_is_given_up_lets_threads_run_which_nobody_holds),
		cmocka_unit_test(an_exec_ends_anothers_hold_and_the_new_program_is_its_followers),
		cmocka_unit_test(a_program_that_starts_is_held_by_nobody_else),
		cmocka_unit_test(a_process_is_let_go_when_another_ones_hold_has_ended),
	};

	if (argc == 3 && !strcmp(argv[1], PROGRAM))
		return be_program((enum deed)(*argv[2] - '0'));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
