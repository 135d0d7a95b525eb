/* Any bytes as a message between a hub and a client, over a socket, from either side: refused, or with values that its
 * type allows. */
#include <errno.h>
#include <sys/socket.h>

#include "fuzz.h"
#include "hub/remote/message.h"

static volatile unsigned int seen;

/* Looks at each bool and enum as its type has it, which the sanitizer minds. */
static unsigned int touch(const struct hub_message *message)
{
	switch (message->type) {
	case HUB_SIGNAL:
		return message->signal.kind + message->signal.verdict + message->signal.trap;
	case HUB_CLONE:
		return message->clone.kind;
	case HUB_SYSCALL_ENTRY:
	case HUB_SYSCALL_EXIT:
		return message->syscall.is_entry_known + message->syscall.is_aborted + message->syscall.is_error;
	default:
		return 0;
	}
}

static void check_message(const struct hub_message *message, size_t size, enum hub_side from)
{
	bool has_memory = size > sizeof(*message);

	check(message->version == HUB_VERSION && message->type >= HUB_HELLO && message->type < HUB_N_TYPES);
	check(message->size <= HUB_DATA_MAX && (!has_memory || size == sizeof(*message) + message->size));
	check(!has_memory ||
	      (from == HUB_ITSELF ? hub_message_brings_memory(message->type) && message->is_reply && !message->result
				  : hub_message_takes_memory(message->type) && !message->is_reply));
	check((message->type >= HUB_QUIESCE) == ((from == HUB_ITSELF) != message->is_reply));
	check(!message->is_reply || message->type < HUB_QUIESCE ||
	      (message->result >= 0 && KYMO_ACTION_OF(message->result) <= KYMO_ACTION_DETACH));
	check(from != HUB_ITSELF || message->is_reply || message->action <= KYMO_ACTION_DETACH);
	seen = touch(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t memory[HUB_DATA_MAX];
	static int pair[2];
	struct hub_message message;
	enum hub_side from;
	int err;

	if (!pair[0] && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return 0;
	if (size < 2)
		return 0;
	from = data[0] & 1 ? HUB_CLIENT : HUB_ITSELF;
	data++;
	size--;
	if (send(pair[0], data, size, MSG_DONTWAIT) != (ssize_t)size)
		return 0;
	memset(&message, 0, sizeof(message));
	err = hub_receive(pair[1], from, 1, &message, memory, NULL);
	check(err == 0 || err == -EPROTO);
	if (err)
		return 0;
	check_message(&message, size, from);
	check(!hub_send(pair[0], &message, memory));
	check(!hub_receive(pair[1], from, 1, &message, memory, NULL));
	return 0;
}
