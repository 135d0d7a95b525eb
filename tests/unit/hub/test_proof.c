/*
 * What a client of a hub has to prove, and what it gives to a hub with that (hub/remote/proof.h).
 * e2e/syscalls/test_hub_rights.py compares kymo with the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/io.h"
#include "engines.h"
#include "hub/engine.h"
#include "hub/remote/client_calls.h"
#include "hub/remote/message.h"
#include "hub/remote/socket.h"
#include "hub/remote/proof.h"
#include "hub/state.h"
#include "hub/thread/task.h"
#include "procfs/info.h"

#define MS 1000000ull
#define NOBODY 65534
#define REFUSED 1 /* exit statuses of clients and targets */
#define FAILED 2

static void need_root(void)
{
	if (!geteuid())
		return;
	print_message("needs root, to give rights away\n");
	skip();
}

static int waiting(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over)
		nap();
	return 0;
}

static pid_t waiting_child(struct shared **shared_ret)
{
	pid_t pid;

	*shared_ret = share();
	pid = child_of(waiting, *shared_ret);
	eventually((*shared_ret)->ready);
	return pid;
}

static int open_of(pid_t pid, const char *file, int flags)
{
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/%s", pid, file);
	fd = open(name, flags | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void is_refused(int fd, pid_t pid)
{
	assert_int_equal(hub_proof_check(fd, pid, -1), -EPERM);
	close(fd);
}

/* ---- what is a proof ------------------------------------------------------------------------- */

static void only_the_memory_of_that_process_open_for_writing_is_a_proof(void **state)
{
	struct shared *shared, *of_other;
	pid_t pid = waiting_child(&shared), other = waiting_child(&of_other);
	char file[] = "/tmp/kymo-test-XXXXXX";
	int fd = open_of(pid, "mem", O_RDWR);

	assert_int_equal(hub_proof_check(fd, pid, -1), 0);
	assert_int_equal(hub_proof_check(fd, pid, fd), 0);
	assert_int_equal(hub_proof_check(fd, other, -1),
			 -EPERM); /* with the same random bytes, as both are our children */
	close(fd);
	is_refused(-1, pid);
	is_refused(open_of(pid, "mem", O_RDONLY), pid);
	is_refused(open_of(pid, "mem", O_WRONLY), pid);
	is_refused(open_of(pid, "mem", O_PATH), pid);
	is_refused(open_of(pid, "mem", O_PATH | O_RDWR), pid);
	is_refused(open_of(other, "mem", O_RDWR), pid);
	is_refused(open_of(getpid(), "mem", O_RDWR), pid);
	is_refused(open_of(pid, "comm", O_RDWR), pid);
	is_refused(open("/dev/null", O_RDWR | O_CLOEXEC), pid);
	is_refused(mkstemp(file), pid);
	unlink(file);
	shared->is_over = of_other->is_over = 1;
	assert_int_equal(end_of(pid) | end_of(other), 0);
	fd = open_of(getpid(), "mem", O_RDWR);
	assert_int_equal(hub_proof_check(fd, pid, -1), -ESRCH);
	close(fd);
}

static int executing(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->go)
		nap();
	execl("/bin/sleep", "sleep", "600", NULL);
	return 1;
}

static bool is_called(pid_t pid, const char *name)
{
	char comm[32];

	kymo_read_comm(pid, comm);
	return !strcmp(comm, name);
}

static void a_descriptor_from_before_an_exec_is_no_proof(void **state)
{
	struct shared *shared = share();
	pid_t pid = child_of(executing, shared);
	int before, now;

	eventually(shared->ready);
	before = open_of(pid, "mem", O_RDWR);
	assert_int_equal(hub_proof_check(before, pid, -1), 0);
	shared->go = 1;
	eventually(is_called(pid, "sleep"));
	eventually(hub_proof_check(before, pid, -1) == -EPERM);
	now = open_of(pid, "mem", O_RDWR);
	eventually(hub_proof_check(now, pid, -1) == 0);
	assert_int_equal(hub_proof_check(now, pid, before),
			 -EAGAIN); /* the hub has that of before: it was not told yet */
	assert_int_equal(hub_proof_check(before, pid, before), -EAGAIN);
	close(before);
	close(now);
	end_with_kill(pid);
}

/* ---- what a client gives away ---------------------------------------------------------------- */

static void become_nobody(void)
{
	if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY) ||
	    prctl(PR_SET_DUMPABLE, 1))
		_exit(FAILED);
}

/* Traces `count`, if that is a process, as a hub of another user. */
static int tracing_as_nobody(struct shared *shared)
{
	become_nobody();
	shared->tid = gettid();
	while (!shared->is_over) {
		if (shared->count && !shared->seen)
			shared->seen = ptrace(PTRACE_SEIZE, shared->count, 0, 0) ? -errno : 1;
		nap();
	}
	return 0;
}

static int waiting_as_nobody(struct shared *shared)
{
	become_nobody();
	return waiting(shared);
}

static void gives(pid_t tid, pid_t hub, bool may_be_untraced, bool expected)
{
	int fd = hub_proof_open(tid, hub, may_be_untraced);

	if (expected)
		assert_true(fd >= 0);
	else
		assert_int_equal(fd, -EPERM);
	if (fd >= 0)
		close(fd);
}

static void a_hub_that_may_less_gets_no_memory_but_of_what_it_traces(void **state)
{
	struct shared *of_hub, *of_target, *of_roots;
	pid_t hub, target, roots;

	need_root();
	of_hub = share();
	of_target = share();
	hub = child_of(tracing_as_nobody, of_hub);
	target = child_of(waiting_as_nobody, of_target);
	roots = waiting_child(&of_roots);
	eventually(of_hub->tid && of_target->ready);
	gives(roots, hub, false, false);
	gives(roots, hub, true, false);
	gives(target, hub, true, false);
	gives(roots, roots, true, true); /* one with the same privileges */
	gives(roots, roots, false, false);
	of_hub->count = target;
	eventually(of_hub->seen);
	assert_int_equal(of_hub->seen, 1);
	gives(target, hub, false, true);
	gives(target, hub, true, true);
	gives(roots, hub, true, false);
	of_hub->is_over = of_target->is_over = of_roots->is_over = 1;
	assert_int_equal(end_of(hub) | end_of(target) | end_of(roots), 0);
}

static void *connect_here(void *data)
{
	struct kymo_hub **hub = data;

	if (hub_connect_to(getpid(), hub))
		*hub = NULL;
	return NULL;
}

/* As a hub that asks its client for processes of which the client has told it nothing. */
static void a_hub_that_asks_for_a_process_that_it_does_not_trace_gets_nothing(void **state)
{
	struct hub_message message;
	struct hub_socket place;
	struct shared *shared;
	pid_t pid = waiting_child(&shared);
	int requests, pair[2], proof = -1;
	struct kymo_hub *hub = NULL;
	pthread_t thread;

	assert_int_equal(hub_socket_open(getpid(), &place), 0);
	assert_int_equal(pthread_create(&thread, NULL, connect_here, &hub), 0);
	requests = accept4(place.socket, NULL, NULL, SOCK_CLOEXEC);
	assert_int_equal(hub_receive(requests, HUB_CLIENT, kymo_now_ns() + 20000 * MS, &message, NULL, NULL), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	message.is_reply = 1;
	assert_int_equal(hub_send_fd(requests, &message, pair[1]), 0);
	close(pair[1]);
	pthread_join(thread, NULL);
	assert_non_null(hub);
	message = (struct hub_message){ .version = HUB_VERSION, .type = HUB_PROVE, .tid = pid };
	assert_int_equal(hub_send(pair[0], &message, NULL), 0);
	assert_int_equal(hub_receive(pair[0], HUB_CLIENT, kymo_now_ns() + 20000 * MS, &message, NULL, &proof), 0);
	assert_int_equal(proof, -1);
	close(requests);
	close(pair[0]);
	kymo_hub_destroy(hub);
	hub_socket_close(&place);
	shared->is_over = 1;
	assert_int_equal(end_of(pid), 0);
}

/* ---- clients of a hub ------------------------------------------------------------------------ */

static void drop_capabilities(bool for_good)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 } };

	for (int i = 0; for_good && i < 64; i++)
		prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (syscall(SYS_capset, &header, none) || (for_good && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
		_exit(FAILED);
	prctl(PR_SET_DUMPABLE, 1);
}

/* Without capabilities, and a program that it executes as uid 0 gets all: as if that were set-uid. */
static int gaining(struct shared *shared)
{
	drop_capabilities(false);
	return executing(shared);
}

static int not_gaining(struct shared *shared)
{
	drop_capabilities(true);
	return executing(shared);
}

/* A client has threads, so it is made before the hub (child_of()). */
static void await_hub(struct shared *shared)
{
	while (!shared->tid)
		nap();
}

/*
 * Joins the hub of `tid` and says what becomes of it: `seen` when it is attached, `count` when it was told of the
 * exec, `ready` when it has lost its engine.
 */
static int client_without_rights(struct shared *shared)
{
	struct book book = { 0 };
	struct kymo_engine *engine;
	struct kymo_hub *hub;
	int err;

	drop_capabilities(true);
	await_hub(shared);
	if (kymo_hub_connect(shared->tid, &hub))
		return FAILED;
	err = kymo_engine_attach(hub, shared->tid, KYMO_ATTACH_CREATE, &ops, &book, &engine);
	if (err)
		return err == -EPERM ? REFUSED : FAILED;
	if (kymo_engine_set_events(engine, KYMO_EVENTS_ALL))
		return FAILED;
	shared->seen = 1;
	while (!shared->is_over) {
		uint8_t byte;

		if (book.told[EXEC])
			shared->count = 1;
		if (book.told[RELEASE])
			shared->ready = 1;
		kymo_engine_read(engine, (uintptr_t)&client_without_rights, &byte, 1);
		nap();
	}
	kymo_engine_put(engine);
	kymo_hub_destroy(hub);
	return 0;
}

struct fixture {
	struct shared *of_target, *of_client;
	pid_t target, client;
	struct kymo_hub *hub;
	struct kymo_engine *engine;
	struct book book;
};

static void begin(struct fixture *f, int (*target)(struct shared *shared), int (*client)(struct shared *shared))
{
	memset(f, 0, sizeof(*f));
	f->of_target = share();
	f->of_client = share();
	f->target = child_of(target, f->of_target);
	eventually(f->of_target->ready);
	f->client = client ? child_of(client, f->of_client) : 0;
	assert_int_equal(kymo_hub_create(&f->hub), 0);
	f->engine = engine_of(f->hub, f->target, &f->book, 0);
	assert_int_equal(kymo_hub_serve(f->hub), 0);
	f->of_client->tid = f->target;
}

static void end(struct fixture *f)
{
	kymo_engine_put(f->engine);
	kymo_hub_destroy(f->hub);
	end_with_kill(f->target);
	munmap(f->of_client, sizeof(*f->of_client));
	munmap(f->of_target, sizeof(*f->of_target));
}

static size_t engines_of(const struct fixture *f)
{
	const struct task *task;
	size_t n;

	pthread_mutex_lock(&f->hub->lock);
	task = hub_find(f->hub, f->target);
	n = task ? task->engines.n : 0;
	pthread_mutex_unlock(&f->hub->lock);
	return n;
}

static void execute(struct fixture *f, bool is_told)
{
	eventually(f->of_client->seen);
	f->of_target->go = 1;
	eventually(is_called(f->target, "sleep"));
	if (is_told)
		eventually(f->of_client->count);
	else
		eventually(engines_of(f) == 1);
	assert_int_equal(f->of_client->count, is_told);
	f->of_client->is_over = 1;
	assert_int_equal(end_of(f->client), 0);
	assert_int_equal(kymo_engine_tid(f->engine), f->target);
}

static void a_client_that_may_not_trace_the_new_program_is_not_told_of_it(void **state)
{
	struct fixture f;

	need_root();
	begin(&f, gaining, client_without_rights);
	execute(&f, false);
	end(&f);
}

static void a_client_that_may_trace_the_new_program_goes_on(void **state)
{
	struct fixture f;

	need_root();
	begin(&f, not_gaining, client_without_rights);
	execute(&f, true);
	end(&f);
}

/* Makes no calls of the new program's but for the exec. */
static int gaining_soon(struct shared *shared)
{
	drop_capabilities(false);
	shared->ready = 1;
	while (!shared->go)
		syscall(SYS_getppid);
	execl("/bin/sleep", "sleep", "600", NULL);
	return 1;
}

static unsigned int look_at_call(struct book *book, struct kymo_engine *engine, enum told told, enum kymo_action action,
				 void *report)
{
	const struct kymo_syscall_report *call = report;

	if (told == ENTRY && call->number != SYS_getppid && call->number != SYS_execve)
		((struct shared *)book->more)->count = (int)call->number;
	return KYMO_ACTION_RESUME;
}

static int attaching_client(struct shared *shared)
{
	struct book book = { .hook = look_at_call, .more = shared };
	struct kymo_engine *engine = NULL;
	struct kymo_hub *hub;

	drop_capabilities(true);
	await_hub(shared);
	if (kymo_hub_connect(shared->tid, &hub))
		return FAILED;
	shared->seen = 1;
	while (!shared->is_over) {
		engine = NULL;
		if (!kymo_engine_attach(hub, shared->tid, KYMO_ATTACH_CREATE, &ops, &book, &engine))
			kymo_engine_set_events(engine, KYMO_EVENTS_ALL);
		sched_yield();
		if (engine)
			kymo_engine_control(engine, KYMO_ACTION_DETACH);
		kymo_engine_put(engine);
	}
	kymo_hub_destroy(hub);
	return 0;
}

/* At any moment between the proof and the end of the attach. */
static void a_client_that_attaches_while_the_target_executes_sees_nothing_of_the_new_program(void **state)
{
	unsigned int seed = 1;

	need_root();
	for (int i = 0; i < 20; i++) {
		struct fixture f;

		begin(&f, gaining_soon, attaching_client);
		eventually(f.of_client->seen);
		nanosleep(&(struct timespec){ 0, (rand_r(&seed) % 5000) * 1000L }, NULL);
		f.of_target->go = 1;
		eventually(is_called(f.target, "sleep"));
		for (int n = 0; n < 10; n++)
			nap();
		f.of_client->is_over = 1;
		assert_int_equal(end_of(f.client), 0);
		assert_int_equal(f.of_client->count, 0);
		end(&f);
	}
}

static void a_client_without_capabilities_is_refused_where_the_target_has_some(void **state)
{
	struct fixture f;

	need_root();
	begin(&f, waiting, client_without_rights);
	assert_int_equal(end_of(f.client), REFUSED << 8);
	end(&f);
}

static void write_to(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(FAILED);
	close(fd);
}

/* With all capabilities, in a namespace of its own. */
static int client_in_another_namespace(struct shared *shared)
{
	struct book book = { 0 };
	struct kymo_engine *engine;
	struct kymo_hub *hub;
	int err;

	if (unshare(CLONE_NEWUSER))
		return 77;
	write_to("/proc/self/uid_map", "0 0 1");
	write_to("/proc/self/setgroups", "deny");
	write_to("/proc/self/gid_map", "0 0 1");
	await_hub(shared);
	if (kymo_hub_connect(shared->tid, &hub))
		return FAILED;
	err = kymo_engine_attach(hub, shared->tid, KYMO_ATTACH_CREATE, &ops, &book, &engine);
	return err == -EPERM ? REFUSED : err ? FAILED : 0;
}

static void a_client_in_another_user_namespace_is_refused(void **state)
{
	struct fixture f;
	int status;

	need_root();
	begin(&f, waiting, client_in_another_namespace);
	status = end_of(f.client);
	end(&f);
	if (status == 77 << 8) {
		print_message("the kernel makes no user namespace\n");
		skip();
	}
	assert_int_equal(status, REFUSED << 8);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_memory_of_that_process_open_for_writing_is_a_proof),
		cmocka_unit_test(a_descriptor_from_before_an_exec_is_no_proof),
		cmocka_unit_test(a_hub_that_may_less_gets_no_memory_but_of_what_it_traces),
		cmocka_unit_test(a_hub_that_asks_for_a_process_that_it_does_not_trace_gets_nothing),
		cmocka_unit_test(a_client_that_may_not_trace_the_new_program_is_not_told_of_it),
		cmocka_unit_test(a_client_that_may_trace_the_new_program_goes_on),
		cmocka_unit_test(a_client_that_attaches_while_the_target_executes_sees_nothing_of_the_new_program),
		cmocka_unit_test(a_client_without_capabilities_is_refused_where_the_target_has_some),
		cmocka_unit_test(a_client_in_another_user_namespace_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
