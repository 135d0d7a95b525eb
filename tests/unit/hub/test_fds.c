/* Descriptors that come with messages to a hub: at most one, and none is left open. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "engines.h"
#include "hub/engine.h"
#include "hub/remote/message.h"
#include "hub/remote/socket.h"
#include "hub/state.h"

#define MS 1000000ull

static int waiting(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over)
		nap();
	return 0;
}

struct fixture {
	struct shared *shared;
	pid_t target;
	struct kymo_hub *hub;
	struct kymo_engine *engine;
	struct book book;
};

static void begin(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->shared = share();
	f->target = child_of(waiting, f->shared);
	eventually(f->shared->ready);
	assert_int_equal(kymo_hub_create(&f->hub), 0);
	f->engine = engine_of(f->hub, f->target, &f->book, 0);
	assert_int_equal(kymo_hub_serve(f->hub), 0);
}

static void end(struct fixture *f)
{
	kymo_engine_put(f->engine);
	kymo_hub_destroy(f->hub);
	end_with_kill(f->target);
	munmap(f->shared, sizeof(*f->shared));
}

#define FDS_MAX 253
/* The memory of the process, which the hub keeps, and sockets of the last client, which is seen off with the next. */
#define SOME 10

static int n_fds(void)
{
	DIR *list = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(list);
	while (readdir(list))
		n++;
	closedir(list);
	return n;
}

/* A hub turns a client away while it has too many; the earlier ones may wait for the lock that each needs to leave. */
static bool greets(const struct fixture *f, int *fd)
{
	struct hub_message hello = { .version = HUB_VERSION, .type = HUB_HELLO };
	int events = -1, err;

	assert_int_equal(hub_socket_dial(f->hub->tid, fd), 0);
	err = hub_send(*fd, &hello, NULL);
	if (!err)
		err = hub_receive(*fd, HUB_ITSELF, kymo_now_ns() + 20000 * MS, &hello, NULL, &events);
	if (err) {
		assert_int_equal(err, -EPIPE);
		close(*fd);
		return false;
	}
	close(events);
	return true;
}

static int greeted(const struct fixture *f)
{
	int fd = -1;

	eventually(greets(f, &fd));
	return fd;
}

static void send_fds(int socket, const struct hub_message *message, const int *fds, size_t n)
{
	struct iovec part = { (void *)(uintptr_t)message, sizeof(*message) };
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = {
		.header = { .cmsg_len = CMSG_LEN(n * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS }
	};
	struct msghdr both = { .msg_iov = &part,
			       .msg_iovlen = 1,
			       .msg_control = &control,
			       .msg_controllen = CMSG_SPACE(n * sizeof(int)) };

	memcpy(CMSG_DATA(&control.header), fds, n * sizeof(int));
	assert_int_equal(sendmsg(socket, &both, MSG_NOSIGNAL), sizeof(*message));
}

static void a_message_with_many_descriptors_is_refused_and_none_is_left_open(void **state)
{
	static const size_t counts[] = { 2, 3, 17, FDS_MAX };
	struct hub_message message = { .version = HUB_VERSION, .type = HUB_ATTACH };
	int fds[FDS_MAX], before;
	struct fixture f;

	begin(&f);
	message.tid = f.target;
	message.flags = KYMO_ATTACH_CREATE;
	fds[0] = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int i = 1; i < FDS_MAX; i++)
		fds[i] = fds[0];
	before = n_fds();
	for (int i = 0; i < 100; i++) {
		int socket = greeted(&f), err;
		struct hub_message reply;

		send_fds(socket, &message, fds, counts[(size_t)i % kymo_countof(counts)]);
		err = hub_receive(socket, HUB_ITSELF, kymo_now_ns() + 20000 * MS, &reply, NULL, NULL);
		assert_int_equal(err, -EPIPE);
		close(socket);
	}
	eventually(n_fds() < before + SOME);
	assert_int_equal(kymo_engine_tid(f.engine), f.target);
	close(fds[0]);
	end(&f);
}

/* One where none is asked for, and one that is no proof. */
static void a_descriptor_that_comes_along_is_not_left_open(void **state)
{
	struct hub_message where = { .version = HUB_VERSION, .type = HUB_WHERE },
			   attach = { .version = HUB_VERSION, .type = HUB_ATTACH, .flags = KYMO_ATTACH_CREATE };
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC), socket, before;
	struct hub_message reply;
	struct fixture f;

	begin(&f);
	attach.tid = f.target;
	socket = greeted(&f);
	before = n_fds();
	for (int i = 0; i < 100; i++) {
		send_fds(socket, i % 2 ? &where : &attach, &fd, 1);
		assert_int_equal(hub_receive(socket, HUB_ITSELF, kymo_now_ns() + 20000 * MS, &reply, NULL, NULL), 0);
		assert_int_equal(reply.result, i % 2 ? -ESRCH : -EPERM);
	}
	assert_true(n_fds() < before + SOME);
	close(socket);
	close(fd);
	end(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_with_many_descriptors_is_refused_and_none_is_left_open),
		cmocka_unit_test(a_descriptor_that_comes_along_is_not_left_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
