/* The thread of a client, which makes the calls that the client asks for. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/io.h"
#include "hub/attach.h"
#include "hub/freeze/freeze.h"
#include "hub/remote/guest.h"
#include "hub/remote/guest_calls.h"
#include "hub/remote/guest_thread.h"
#include "hub/remote/message.h"
#include "hub/remote/socket.h"
#include "hub/remote/proof.h"
#include "hub/remote/table.h"
#include "hub/state.h"
#include "hub/thread/frozen.h"

#define MS 1000000ull

/* The second socket is made here, so that no client can pass a descriptor of another kind. */
static bool greet(struct hub_guest *guest)
{
	struct hub_message hello;
	int pair[2], err;

	if (hub_socket_check_peer(guest->requests, 0) ||
	    hub_receive(guest->requests, HUB_CLIENT, kymo_now_ns() + HUB_ANSWER_MS * MS, &hello, NULL, NULL) ||
	    hello.type != HUB_HELLO || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
		return false;
	guest->events = pair[0];
	guest->threshold->enter(guest);
	hello.is_reply = 1;
	hello.result = 0;
	err = !guest->is_inside || guest->is_lost ? -EPIPE : hub_send_fd(guest->requests, &hello, pair[1]);
	close(pair[1]);
	return !err;
}

static bool serve_one(struct hub_guest *guest)
{
	struct hub_message message;
	int proof;
	uint64_t deadline_ns =
		guest->owner.frozen ? kymo_now_ns() + HUB_ANSWER_MS * MS : 0; /* a stopped program waits for it */

	if (hub_receive(guest->requests, HUB_CLIENT, deadline_ns, &message, guest->memory[0], &proof))
		return false;
	hub_guest_run(guest, &message, guest->memory[0], proof);
	return !hub_send(guest->requests, &message, guest->memory[0]) && message.type != HUB_BYE;
}

static void *be_guest(void *data)
{
	struct hub_guest *guest = data;

	if (greet(guest))
		while (!guest->is_lost && serve_one(guest))
			;
	hub_guest_lose(guest);
	hub_freeze_drop(&guest->owner);
	hub_detach_all(guest->hub, &(struct hub_match){ .guest = guest, .is_any = true });
	if (guest->is_inside)
		guest->threshold->leave(guest);
	guest->has_ended = true;
	return NULL;
}

static const struct hub_guest_hooks hooks = {
	.take = hub_guest_take,
	.release = hub_guest_release,
	.get = hub_guest_get,
	.put = hub_guest_put,
	.lose = hub_guest_lose,
	.check_proof = hub_proof_check_guest,
	.proves = hub_guest_proves,
};

struct hub_guest *hub_guest_create(struct kymo_hub *hub, struct hub_door *door, const struct hub_threshold *threshold,
				   int socket)
{
	struct hub_guest *guest = calloc(1, sizeof(*guest));
	sigset_t all, mask;
	int err;

	if (!guest) {
		close(socket);
		return NULL;
	}
	guest->hub = hub;
	guest->hooks = &hooks;
	guest->door = door;
	guest->threshold = threshold;
	guest->requests = socket;
	guest->owner = (struct hub_owner){ .hub = hub, .requests = socket, .guest = guest, .proof = -1 };
	guest->events = -1;
	atomic_init(&guest->refs, 1);
	hub_table_init(&guest->table);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	err = pthread_create(&guest->thread, NULL, be_guest, guest);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (!err)
		return guest;
	hub_guest_put(guest);
	return NULL;
}
