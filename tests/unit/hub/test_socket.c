/* A hub that serves, and those that connect: what both do when the other one says what can't be, says nothing, or is
 * gone. test_hub.c and test_hub_control.c run over the socket, too. */
#include <errno.h>
#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "engines.h"
#include "hub/engine.h"
#include "hub/remote/client_calls.h"
#include "hub/remote/door.h"
#include "hub/remote/message.h"
#include "hub/remote/socket.h"
#include "hub/state.h"
#include "hub/thread/task.h"

#define MS 1000000ull

/* Makes calls all the time. */
static int calling(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over) {
		syscall(SYS_getppid);
		shared->count++;
	}
	return 0;
}

struct fixture {
	struct kymo_hub *hub; /* this process', with an engine on the child that wants nothing */
	struct kymo_engine *engine;
	struct shared *shared;
	struct book book;
	pid_t pid;
};

static void begin(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->shared = share();
	assert_int_equal(kymo_hub_create(&f->hub), 0);
	f->pid = child_of(calling, f->shared);
	eventually(f->shared->ready);
	assert_int_equal(kymo_hub_serve(f->hub), 0);
	f->engine = engine_of(f->hub, f->pid, &f->book, 0);
}

static void end(struct fixture *f)
{
	kymo_engine_put(f->engine);
	kymo_hub_destroy(f->hub);
	end_with_kill(f->pid);
	munmap(f->shared, sizeof(*f->shared));
}

static void runs(const struct fixture *f)
{
	int before = f->shared->count;

	eventually(f->shared->count > before + 1);
}

/* ---- which clients get in ----------------------------------------------------------------------------- */

static void a_hub_without_a_door_is_not_found(void **state)
{
	struct kymo_hub *hub = NULL, *other;
	struct fixture f;

	begin(&f);
	assert_int_equal(kymo_hub_serve(f.hub), -EALREADY);
	assert_int_equal(kymo_hub_connect(getpid(), &hub), -ENOENT);
	assert_int_equal(kymo_hub_connect(0x7fffffff, &hub), -ESRCH);
	assert_int_equal(kymo_hub_create(&other), 0);
	assert_int_equal(hub_connect_to(other->tid, &hub), -ENOENT);
	kymo_hub_destroy(other);
	assert_null(hub);
	end(&f);
}

static void a_client_that_asks_for_what_a_connected_hub_cannot_do_is_refused(void **state)
{
	struct kymo_engine *engine;
	struct book book = { 0 };
	struct kymo_hub *hub;
	struct fixture f;
	pid_t pid;
	int status;

	begin(&f);
	assert_int_equal(kymo_hub_connect(f.pid, &hub), 0);
	assert_int_equal(kymo_hub_launch(hub, 0, (char *[]){ (char *)"true", NULL }, &pid), -EOPNOTSUPP);
	assert_int_equal(kymo_hub_start(hub, f.pid), -EOPNOTSUPP);
	assert_int_equal(kymo_hub_wait(hub, f.pid, &status), -EOPNOTSUPP);
	assert_int_equal(kymo_hub_serve(hub), -EALREADY);
	engine = engine_of(hub, f.pid, &book, KYMO_EVENTS_SIGNAL);
	assert_int_equal(kymo_engine_set_signal(engine, SIGUSR1, NULL), -EINVAL);
	assert_int_equal(kymo_engine_set_signal(engine, 0, NULL), -EAGAIN);
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	end(&f);
}

static void a_hub_that_waits_for_its_clients_lets_no_other_in(void **state)
{
	struct kymo_hub *hub, *late;
	struct kymo_engine *engine;
	struct book book = { 0 };
	struct fixture f;
	int pipes[2];

	begin(&f);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(kymo_hub_connect(f.pid, &hub), 0);
	engine = engine_of(hub, f.pid, &book, KYMO_EVENTS_SYSCALL);
	assert_int_equal(kymo_hub_hand_over(hub, -1, -1), -EOPNOTSUPP);
	assert_int_equal(kymo_hub_clients(hub), 0);
	assert_int_equal(kymo_hub_clients(f.hub), 1);
	assert_int_equal(kymo_hub_hand_over(f.hub, -1, 0), -EAGAIN);
	assert_int_equal(kymo_engine_tid(f.engine), 0); /* this process' own are detached */
	assert_int_equal(kymo_engine_tid(engine), f.pid);
	assert_int_equal(write(pipes[1], "", 1), 1);
	assert_int_equal(kymo_hub_hand_over(f.hub, pipes[0], -1), -EINTR);
	runs(&f);
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	assert_int_equal(kymo_hub_hand_over(f.hub, -1, -1), 0);
	assert_int_equal(kymo_hub_clients(f.hub), 0);
	assert_int_equal(hub_connect_to(f.hub->tid, &late), -EPIPE);
	runs(&f);
	close(pipes[0]);
	close(pipes[1]);
	end(&f);
}

/* In a process of its own: what connecting gives as user 65534. */
static int connect_as_nobody(pid_t pid)
{
	int status;
	pid_t child = fork();

	if (!child) {
		struct kymo_hub *hub;

		if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(99);
		_exit(-kymo_hub_connect(pid, &hub));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return -WEXITSTATUS(status);
}

/* Not by the modes of the directory and of the socket alone, which are made open here. */
static void a_foreign_user_is_refused(void **state)
{
	struct hub_socket place;
	struct fixture f;
	char name[64];
	int err;

	if (geteuid()) {
		print_message("needs root, to become another user\n");
		skip();
	}
	begin(&f);
	err = connect_as_nobody(f.pid);
	assert_true(err == -EPERM || err == -ENOENT);
	assert_int_equal(hub_socket_open(f.hub->tid, &place), 0); /* where the hub's own is, which this one replaces */
	snprintf(name, sizeof(name), "/proc/self/fd/%d/%s", place.directory, place.name);
	assert_int_equal(chmod(name, 0777), 0);
	assert_int_equal(connect_as_nobody(f.pid), err);
	hub_socket_close(&place);
	end(&f);
}

static void a_peer_that_is_somebody_else_is_refused(void **state)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(hub_socket_check_peer(pair[0], 0), 0);
	assert_int_equal(hub_socket_check_peer(pair[0], getpid()), 0);
	assert_int_equal(hub_socket_check_peer(pair[0], getpid() + 1), -EPERM);
	close(pair[0]);
	close(pair[1]);
}

static int check_as_nobody(void)
{
	int pair[2];

	if (setgroups(0, NULL) || setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 99;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		return 98;
	return -hub_socket_check_peer(pair[0], 0); /* its own */
}

static void a_user_may_connect_to_what_is_its_own(void **state)
{
	int status;
	pid_t child;

	if (geteuid()) {
		print_message("needs root, to become another user\n");
		skip();
	}
	child = fork();
	if (!child)
		_exit(check_as_nobody());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* ---- what is said ---------------------------------------------------------------------------- */

static int dial(const struct fixture *f)
{
	int fd = -1;

	assert_int_equal(hub_socket_dial(f->hub->tid, &fd), 0);
	return fd;
}

static void what_only_looks_whether_a_hub_is_there_is_no_client(void **state)
{
	struct fixture f;
	int fd;

	begin(&f);
	fd = dial(&f);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(kymo_hub_clients(f.hub), 0);
		nanosleep(&(struct timespec){ 0, 5000000 }, NULL);
	}
	assert_int_equal(kymo_hub_visitor(f.hub), 0);
	close(fd);
	end(&f);
}

/* The hub ends this connection. */
static void is_hung_up(int fd)
{
	struct hub_message message;
	int err, other = -1;

	do {
		err = hub_receive(fd, HUB_ITSELF, kymo_now_ns() + 20000 * MS, &message, NULL, &other);
		if (other >= 0)
			close(other);
		other = -1;
	} while (!err);
	assert_int_equal(err, -EPIPE);
	close(fd);
}

static void another_version_is_refused(void **state)
{
	struct hub_message hello = { .version = HUB_VERSION + 1, .type = HUB_HELLO };
	struct fixture f;
	int fd;

	begin(&f);
	fd = dial(&f);
	assert_int_equal(hub_send(fd, &hello, NULL), 0);
	is_hung_up(fd);
	runs(&f);
	end(&f);
}

static void truncated_and_random_messages_end_the_connection_and_nothing_else(void **state)
{
	struct hub_message hello = { .version = HUB_VERSION, .type = HUB_HELLO };
	unsigned char noise[sizeof(hello) + 64];
	unsigned int seed = 1;
	struct fixture f;

	begin(&f);
	for (size_t i = 0; i < 40; i++) {
		int fd = dial(&f);
		size_t size = i < 20 ? sizeof(hello) - 1 - i * 7 : sizeof(noise) - i;

		for (size_t j = 0; j < sizeof(noise); j++)
			noise[j] = (unsigned char)rand_r(&seed);
		if (i % 2) { /* greeted first */
			assert_int_equal(hub_send(fd, &hello, NULL), 0);
			if (i % 4 == 3)
				memcpy(noise, &hello, sizeof(uint16_t));
		}
		send(fd, noise, size, MSG_NOSIGNAL);
		is_hung_up(fd);
	}
	runs(&f);
	end(&f);
}

/* ---- clients that are not there, or do not answer ---------------------------------------------------- */

static struct shared *notes;

static unsigned int never_answer(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
				 void *report)
{
	notes->seen = 1;
	while (told == ENTRY)
		pause();
	return KYMO_ACTION_RESUME;
}

static unsigned int die(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			void *report)
{
	notes->seen = 1;
	if (told == ENTRY)
		kill(getpid(), SIGKILL);
	return KYMO_ACTION_RESUME;
}

/* A client in a process of its own, that sees system calls of process `tid`. Ends as its hook makes it. */
static struct book client_book;

static int be_client(struct shared *shared)
{
	struct kymo_engine *engine;
	struct kymo_hub *hub;

	if (kymo_hub_connect(shared->tid, &hub) ||
	    kymo_engine_attach(hub, shared->tid, KYMO_ATTACH_CREATE, &ops, &client_book, &engine) ||
	    kymo_engine_set_events(engine, KYMO_EVENTS_SYSCALL))
		return 1;
	while (!kymo_hub_failure(hub))
		nap();
	return 2;
}

static size_t engines_of(struct fixture *f)
{
	size_t n = 0;

	pthread_mutex_lock(&f->hub->lock);
	n = hub_find(f->hub, f->pid) ? hub_find(f->hub, f->pid)->engines.n : 0;
	pthread_mutex_unlock(&f->hub->lock);
	return n;
}

static void with_client(told_hook *hook, int status)
{
	struct fixture f;
	pid_t client;

	begin(&f);
	notes = f.shared;
	f.shared->tid = f.pid;
	client_book.hook = hook;
	client = child_of(be_client, f.shared);
	eventually(f.shared->seen);
	eventually(engines_of(&f) == 1);
	runs(&f);
	assert_int_not_equal(tracer_of(f.pid), 0);
	if (status)
		assert_int_equal(end_of(client), status);
	else
		end_with_kill(client);
	end(&f);
}

static void a_client_that_never_answers_loses_its_engines_and_nothing_else(void **state)
{
	with_client(never_answer, 0);
}

static void a_client_that_is_killed_in_a_callback_loses_its_engines_and_nothing_else(void **state)
{
	with_client(die, SIGKILL);
}

static unsigned int be_slow(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
			    void *report)
{
	for (int i = 0; i < KYMO_ANSWER_MS + 1000 && told == ENTRY; i++)
		nap();
	book->hook = NULL;
	return KYMO_ACTION_RESUME;
}

static void a_client_that_was_too_slow_is_told_so(void **state)
{
	struct book book = { .hook = be_slow };
	struct kymo_engine *engine;
	struct kymo_hub *hub;
	struct fixture f;

	begin(&f);
	assert_int_equal(kymo_hub_connect(f.pid, &hub), 0);
	engine = engine_of(hub, f.pid, &book, KYMO_EVENTS_SYSCALL);
	eventually(kymo_hub_failure(hub));
	runs(&f);
	eventually(kymo_hub_failure(hub) == -ETIMEDOUT);
	eventually(kymo_engine_set_events(engine, 0) == -ESRCH);
	kymo_engine_put(engine);
	eventually(book.told[RELEASE] == 1);
	kymo_hub_destroy(hub);
	end(&f);
}

/* A hub in a process of its own. */
static int be_hub(struct shared *shared)
{
	struct book book = { 0 };
	struct kymo_hub *hub;
	struct kymo_engine *engine;

	if (kymo_hub_create(&hub) || kymo_hub_serve(hub) ||
	    kymo_engine_attach(hub, shared->tid, KYMO_ATTACH_CREATE, &ops, &book, &engine))
		return 1;
	shared->ready = 2;
	while (!shared->go)
		nap();
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	return 0;
}

static void without_hub(bool is_killed)
{
	struct shared *shared = share();
	struct book book = { 0 };
	struct kymo_engine *engine, *other;
	struct kymo_hub *hub;
	pid_t pid = child_of(calling, shared), owner;

	eventually(shared->ready == 1);
	shared->tid = pid;
	owner = child_of(be_hub, shared);
	eventually(shared->ready == 2);
	assert_int_equal(kymo_hub_connect(pid, &hub), 0);
	engine = engine_of(hub, pid, &book, KYMO_EVENTS_SYSCALL);
	eventually(book.told[EXIT_OF_CALL] > 3);
	assert_int_equal(kymo_hub_failure(hub), 0);
	if (is_killed) {
		end_with_kill(owner);
	} else {
		shared->go = 1;
		assert_int_equal(end_of(owner), 0);
	}
	eventually(kymo_hub_failure(hub) == -EPIPE);
	assert_int_equal(kymo_engine_barrier(engine), -ESRCH);
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_STOP), -ESRCH);
	assert_int_equal(kymo_engine_attach(hub, pid, KYMO_ATTACH_CREATE, &ops, &book, &other), -EPIPE);
	assert_int_equal(kymo_engine_attach_process(hub, pid, 0, &ops, &book, 0, NULL), -EPIPE);
	assert_int_equal(book.told[RELEASE], 0);
	kymo_engine_put(engine);
	assert_int_equal(book.told[RELEASE], 1);
	kymo_hub_destroy(hub);
	eventually(tracer_of(pid) == 0);
	end_with_kill(pid);
	munmap(shared, sizeof(*shared));
}

static void clients_of_a_hub_that_is_killed_come_to_a_clear_end(void **state)
{
	without_hub(true);
}

static void clients_of_a_hub_that_is_destroyed_come_to_a_clear_end(void **state)
{
	without_hub(false);
}

/* ---- several --------------------------------------------------------------------------------- */

static void engines_of_several_clients_see_each_call(void **state)
{
	struct book first = { 0 }, second = { 0 };
	struct kymo_engine *engines[2];
	struct kymo_hub *hubs[2];
	struct fixture f;

	begin(&f);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(kymo_hub_connect(f.pid, &hubs[i]), 0);
		engines[i] = engine_of(hubs[i], f.pid, i ? &second : &first, 0);
	}
	assert_int_equal(kymo_engine_control(engines[0], KYMO_ACTION_STOP), -EINPROGRESS);
	eventually(kymo_engine_control(engines[0], KYMO_ACTION_STOP) == 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(kymo_engine_set_events(engines[i], KYMO_EVENTS_SYSCALL), 0);
	assert_int_equal(kymo_engine_control(engines[0], KYMO_ACTION_RESUME), 0);
	eventually(first.told[EXIT_OF_CALL] > 20);
	assert_int_equal(kymo_engine_control(engines[0], KYMO_ACTION_STOP), -EINPROGRESS);
	eventually(kymo_engine_control(engines[0], KYMO_ACTION_STOP) == 0);
	assert_int_equal(first.told[ENTRY], second.told[ENTRY]);
	assert_int_equal(first.told[EXIT_OF_CALL], second.told[EXIT_OF_CALL]);
	for (int i = 0; i < 2; i++) {
		kymo_engine_put(engines[i]);
		kymo_hub_destroy(hubs[i]); /* the first one's STOP goes with it */
	}
	assert_int_equal(first.told[RELEASE] + second.told[RELEASE], 2);
	runs(&f);
	end(&f);
}

static void engines_of_a_process_are_released_each(void **state)
{
	struct kymo_engine *engine;
	struct book book = { 0 };
	struct kymo_hub *hub;
	struct fixture f;
	size_t n = 0;

	begin(&f);
	assert_int_equal(kymo_hub_connect(f.pid, &hub), 0);
	assert_int_equal(kymo_engine_attach_process(hub, f.pid, KYMO_ATTACH_EXCLUSIVE, &ops, &book, 0, &n), -EEXIST);
	assert_int_equal(kymo_engine_attach_process(hub, f.pid, 0, &ops, &book, 0, &n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(
		kymo_engine_attach(hub, f.pid, KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA, &ops, &book, &engine),
		0);
	assert_int_equal(kymo_engine_pid(engine), f.pid);
	kymo_engine_put(engine);
	assert_int_equal(kymo_engine_detach_all(hub, &ops, &book), 1);
	eventually(book.told[RELEASE] == 1);
	assert_int_equal(kymo_engine_attach(hub, f.pid, 0, NULL, NULL, &engine), -ENOENT);
	kymo_hub_destroy(hub);
	assert_int_equal(book.told[RELEASE], 1);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hub_without_a_door_is_not_found),
		cmocka_unit_test(a_hub_that_waits_for_its_clients_lets_no_other_in),
		cmocka_unit_test(a_client_that_asks_for_what_a_connected_hub_cannot_do_is_refused),
		cmocka_unit_test(a_foreign_user_is_refused),
		cmocka_unit_test(a_peer_that_is_somebody_else_is_refused),
		cmocka_unit_test(a_user_may_connect_to_what_is_its_own),
		cmocka_unit_test(what_only_looks_whether_a_hub_is_there_is_no_client),
		cmocka_unit_test(another_version_is_refused),
		cmocka_unit_test(truncated_and_random_messages_end_the_connection_and_nothing_else),
		cmocka_unit_test(a_client_that_never_answers_loses_its_engines_and_nothing_else),
		cmocka_unit_test(a_client_that_is_killed_in_a_callback_loses_its_engines_and_nothing_else),
		cmocka_unit_test(a_client_that_was_too_slow_is_told_so),
		cmocka_unit_test(clients_of_a_hub_that_is_killed_come_to_a_clear_end),
		cmocka_unit_test(clients_of_a_hub_that_is_destroyed_come_to_a_clear_end),
		cmocka_unit_test(engines_of_several_clients_see_each_call),
		cmocka_unit_test(engines_of_a_process_are_released_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
