#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "hub/remote/message.h"
#include "kymo/engine.h"

static bool is_asked_by_hub(unsigned int type)
{
	return type >= HUB_QUIESCE;
}

/* The type says which side asks and which replies. */
static bool may_come(const struct hub_message *message, enum hub_side from)
{
	if (message->type < HUB_HELLO || message->type >= HUB_N_TYPES || message->is_reply > 1)
		return false;
	return (is_asked_by_hub(message->type) == (from == HUB_ITSELF)) != message->is_reply;
}

bool hub_message_takes_memory(unsigned int type)
{
	return type == HUB_WRITE || type == HUB_FREEZE_WRITE || type == HUB_SET_XSTATE;
}

bool hub_message_brings_memory(unsigned int type)
{
	return type == HUB_READ || type == HUB_LIST || type == HUB_HELD || type == HUB_FREEZE_XSTATE ||
	       type == HUB_GET_XSTATE;
}

bool hub_message_needs_proof(const struct hub_message *message)
{
	return (message->type == HUB_ATTACH && message->flags & KYMO_ATTACH_CREATE) ||
	       message->type == HUB_ATTACH_PROCESS || message->type == HUB_FREEZE;
}

static size_t memory_of(const struct hub_message *message)
{
	bool has = message->is_reply ? hub_message_brings_memory(message->type) && !message->result
				     : hub_message_takes_memory(message->type);

	return has ? message->size : 0;
}

/* What is neither 0 nor 1 must not be looked at as a bool. */
static bool has_bool(const bool *at)
{
	uint8_t byte;

	memcpy(&byte, at, 1);
	return byte <= 1;
}

static bool has_enum(const void *at, uint32_t most)
{
	uint32_t value;

	memcpy(&value, at, sizeof(value));
	return value <= most;
}

static bool is_result_fit(const struct hub_message *message)
{
	if (!is_asked_by_hub(message->type))
		return message->result >= -4095 && message->result <= INT_MAX;
	return message->result >= 0 && message->result <= 0xff && KYMO_ACTION_OF(message->result) <= KYMO_ACTION_DETACH;
}

static bool is_body_fit(const struct hub_message *message)
{
	switch (message->type) {
	case HUB_SIGNAL:
		return has_enum(&message->signal.kind, KYMO_EVENTS_ALL) &&
		       has_enum(&message->signal.trap, KYMO_TRAP_WATCH);
	case HUB_CLONE:
		return has_enum(&message->clone.kind, KYMO_CLONE_VFORK);
	case HUB_SYSCALL_ENTRY:
	case HUB_SYSCALL_EXIT:
		return has_bool(&message->syscall.is_entry_known) && has_bool(&message->syscall.is_aborted) &&
		       has_bool(&message->syscall.is_error);
	default:
		return true;
	}
}

int hub_message_check(const struct hub_message *message, size_t size, enum hub_side from)
{
	if (size < sizeof(*message) || message->version != HUB_VERSION || !may_come(message, from) ||
	    message->size > HUB_DATA_MAX || size != sizeof(*message) + memory_of(message))
		return -EPROTO;
	if (message->is_reply && !is_result_fit(message))
		return -EPROTO;
	if (from == HUB_ITSELF && !message->is_reply && message->action > KYMO_ACTION_DETACH)
		return -EPROTO;
	return is_body_fit(message) ? 0 : -EPROTO;
}

/* ---- sockets --------------------------------------------------------------------------------- */

union one_fd {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static int send_parts(int socket, const struct msghdr *parts)
{
	while (sendmsg(socket, parts, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		if (errno != EINTR)
			return errno == ECONNRESET || errno == ENOTCONN ? -EPIPE : -errno;
	return 0;
}

int hub_send(int socket, const struct hub_message *message, const void *memory)
{
	struct iovec parts[2] = { { (void *)(uintptr_t)message, sizeof(*message) },
				  { (void *)(uintptr_t)memory, memory_of(message) } };

	return send_parts(socket, &(struct msghdr){ .msg_iov = parts, .msg_iovlen = 2 });
}

int hub_send_fd(int socket, const struct hub_message *message, int fd)
{
	struct iovec part = { (void *)(uintptr_t)message, sizeof(*message) };
	union one_fd control = {
		.header = { .cmsg_len = CMSG_LEN(sizeof(fd)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS }
	};

	memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	return send_parts(socket, &(struct msghdr){ .msg_iov = &part,
						    .msg_iovlen = 1,
						    .msg_control = &control,
						    .msg_controllen = sizeof(control) });
}

static int wait_until_readable(int socket, uint64_t deadline_ns)
{
	struct pollfd wait = { .fd = socket, .events = POLLIN };

	for (;;) {
		uint64_t now = kymo_now_ns();
		int got = poll(&wait, 1,
			       !deadline_ns         ? -1
			       : now >= deadline_ns ? 0
						    : (int)((deadline_ns - now + 999999) / 1000000));

		if (got > 0)
			return 0;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (!got && kymo_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
	}
}

#define FDS_MAX 253u /* SCM_MAX_FD: the kernel puts no more into a message */

union many_fds {
	struct cmsghdr header;
	char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
};

/* How many came; the first one goes to `ret`, and the others are closed. */
static size_t take_fds(struct msghdr *parts, int *ret)
{
	size_t n = 0;

	for (struct cmsghdr *header = CMSG_FIRSTHDR(parts); header; header = CMSG_NXTHDR(parts, header)) {
		size_t here = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < here; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(header) + i * sizeof(fd), sizeof(fd));
			if (n++)
				close(fd);
			else
				*ret = fd;
		}
	}
	return n;
}

/* Its size, or a negative errno. */
static ssize_t receive_parts(int socket, struct msghdr *parts, uint64_t deadline_ns)
{
	for (;;) {
		int err = wait_until_readable(socket, deadline_ns);
		ssize_t n;

		if (err)
			return err;
		n = recvmsg(socket, parts, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (n > 0)
			return n;
		if (!n || errno == ECONNRESET)
			return -EPIPE;
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
	}
}

int hub_receive(int socket, enum hub_side from, uint64_t deadline_ns, struct hub_message *message, void *memory,
		int *fd_ret)
{
	struct iovec parts[2] = { { message, sizeof(*message) }, { memory, HUB_DATA_MAX } };
	union many_fds control;
	struct msghdr both = { .msg_iov = parts,
			       .msg_iovlen = memory ? 2 : 1,
			       .msg_control = &control,
			       .msg_controllen = sizeof(control) };
	ssize_t n = receive_parts(socket, &both, deadline_ns);
	int fd = -1, err;
	size_t n_fds;

	if (fd_ret)
		*fd_ret = -1;
	if (n < 0)
		return (int)n;
	n_fds = take_fds(&both, &fd);
	err = both.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || n_fds > (fd_ret ? 1u : 0u)
		      ? -EPROTO
		      : hub_message_check(message, (size_t)n, from);
	if (!err && fd_ret)
		*fd_ret = fd;
	else if (fd >= 0)
		close(fd);
	return err;
}
