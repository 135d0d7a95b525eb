/*
 * The socket of a hub, and its clients.
 *
 * What has connected is a client when it has greeted the hub. Another hub that begins connects to each socket, to see
 * whether its hub is there, and says nothing.
 *
 * Closing. After `is_closed` is set, no client is let in. The flag is set under the lock that guards the number of
 * threads inside of the hub. So either all clients have left the hub, or it is not closed. The socket stays until the
 * hub's threads are detached. A client that connects meanwhile is disconnected, and so learns that the hub ends.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "hub/attach.h"
#include "hub/engine.h"
#include "hub/hub.h"
#include "hub/ops.h"
#include "hub/remote/door.h"
#include "hub/remote/guest.h"
#include "hub/remote/guest_thread.h"
#include "hub/remote/socket.h"
#include "hub/state.h"
#include "hub/thread/request.h"
#include "kymo/engine.h"

#define GUESTS_MAX 64

struct hub_door {
	struct kymo_hub *hub;
	struct hub_socket listener;
	pthread_t thread;
	atomic_bool is_ending;
	pthread_mutex_t lock; /* of what follows */
	bool is_closed;
	unsigned int n_inside; /* clients: guests that have greeted, and whose engines are not all detached */
	unsigned int n_guests; /* connections: clients, hubs that look for this one, and what is yet to be seen off */
	struct hub_guest *guests;
	int left; /* an eventfd: one is not inside any more */
};

/* See off the clients that have ended; all, if they are to. Returns how many. */
static unsigned int see_off(struct hub_guest **at, bool all)
{
	struct hub_guest *guest;
	unsigned int n = 0;

	while ((guest = *at)) {
		if (!all && !guest->has_ended) {
			at = &guest->next;
			continue;
		}
		*at = guest->next;
		hub_guest_lose(guest);
		pthread_join(guest->thread, NULL);
		hub_guest_put(guest);
		n++;
	}
	return n;
}

static void enter(struct hub_guest *guest)
{
	struct hub_door *door = guest->door;

	pthread_mutex_lock(&door->lock);
	guest->is_inside = !door->is_closed;
	door->n_inside += guest->is_inside;
	pthread_mutex_unlock(&door->lock);
}

static void leave(struct hub_guest *guest)
{
	struct hub_door *door = guest->door;
	const uint64_t one = 1;

	pthread_mutex_lock(&door->lock);
	door->n_inside--;
	pthread_mutex_unlock(&door->lock);
	kymo_write_all(door->left, &one, sizeof(one));
}

static const struct hub_threshold threshold = { .enter = enter, .leave = leave };

/* With the lock, which guests take when they enter or leave. */
static struct hub_guest *receive(struct hub_door *door, int socket)
{
	struct hub_guest *guest = NULL;

	if (!door->is_closed)
		door->n_guests -= see_off(&door->guests, false);
	if (door->is_closed || door->n_guests >= GUESTS_MAX)
		close(socket);
	else
		guest = hub_guest_create(door->hub, door, &threshold, socket);
	return guest;
}

static void let_in(struct hub_door *door, int socket)
{
	struct hub_guest *guest;

	pthread_mutex_lock(&door->lock);
	guest = receive(door, socket);
	if (guest) {
		guest->next = door->guests;
		door->guests = guest;
		door->n_guests++;
	}
	pthread_mutex_unlock(&door->lock);
}

static void *be_door(void *data)
{
	struct hub_door *door = data;

	while (!door->is_ending) {
		int socket = accept4(door->listener.socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (socket >= 0)
			let_in(door, socket);
		else if (errno != EINTR && errno != ECONNABORTED && !door->is_ending)
			nanosleep(&(struct timespec){ 0, 10000000 }, NULL); /* descriptors or memory are out */
	}
	return NULL;
}

static void free_door(struct hub_door *door)
{
	if (door->left >= 0)
		close(door->left);
	pthread_mutex_destroy(&door->lock);
	free(door);
}

static int start_door(struct hub_door *door)
{
	sigset_t all, mask;
	int err;

	door->left = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = door->left < 0 ? -errno : hub_socket_open(door->hub->tid, &door->listener);
	if (err)
		return err;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	err = -pthread_create(&door->thread, NULL, be_door, door);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (err)
		hub_socket_close(&door->listener);
	return err;
}

/* Their threads wait for the hub's, which is this one, and can't wait for them meanwhile. */
static void serve_the_last(struct kymo_hub *hub, struct hub_guest *guests)
{
	unsigned int spins = 0;

	for (struct hub_guest *guest = guests; guest; guest = guest->next)
		hub_guest_lose(guest);
	for (struct hub_guest *guest = guests; guest;) {
		if (guest->has_ended) {
			guest = guest->next;
			continue;
		}
		spins = hub_pump(hub) ? 0 : spins + 1;
		kymo_back_off(spins);
	}
}

void hub_close_door(struct hub_door *door)
{
	struct hub_guest *guests;

	if (!door)
		return;
	pthread_mutex_lock(&door->lock);
	door->is_closed = true;
	guests = door->guests;
	door->guests = NULL;
	pthread_mutex_unlock(&door->lock);
	if (door->hub->is_here)
		serve_the_last(door->hub, guests);
	see_off(&guests, true);
}

static void destroy_door(struct hub_door *door)
{
	door->is_ending = true;
	shutdown(door->listener.socket, SHUT_RDWR);
	pthread_join(door->thread, NULL);
	hub_socket_close(&door->listener);
	free_door(door);
}

static const struct hub_door_ops ops = { .close = hub_close_door, .destroy = destroy_door };

int kymo_hub_serve(struct kymo_hub *hub)
{
	int err = hub->ops->may_serve(hub);
	struct hub_door *door;

	if (err)
		return err;
	door = calloc(1, sizeof(*door));
	if (!door)
		return -ENOMEM;
	door->hub = hub;
	hub->door_ops = &ops;
	pthread_mutex_init(&door->lock, NULL);
	err = start_door(door);
	if (err)
		free_door(door);
	else
		hub->door = door;
	return err;
}

/* ---- leaving --------------------------------------------------------------------------------- */

unsigned int kymo_hub_clients(const struct kymo_hub *hub)
{
	unsigned int n = 0;

	if (hub->door) {
		pthread_mutex_lock(&hub->door->lock);
		n = hub->door->n_inside;
		pthread_mutex_unlock(&hub->door->lock);
	}
	return n;
}

static bool close_if_empty(struct hub_door *door)
{
	pthread_mutex_lock(&door->lock);
	door->is_closed |= !door->n_inside;
	pthread_mutex_unlock(&door->lock);
	return door->is_closed;
}

bool hub_is_shared(struct kymo_hub *hub)
{
	bool has_threads;

	pthread_mutex_lock(&hub->lock);
	has_threads = hub->tasks.n > 0;
	pthread_mutex_unlock(&hub->lock);
	return hub->door && has_threads && !close_if_empty(hub->door);
}

pid_t hub_visitor(const struct kymo_hub *hub)
{
	struct ucred peer = { .pid = 0 };
	socklen_t size = sizeof(peer);

	pthread_mutex_lock(&hub->door->lock);
	for (const struct hub_guest *guest = hub->door->guests; guest && !peer.pid; guest = guest->next)
		if (guest->is_inside && !guest->has_ended &&
		    getsockopt(guest->requests, SOL_SOCKET, SO_PEERCRED, &peer, &size))
			peer.pid = 0;
	pthread_mutex_unlock(&hub->door->lock);
	return peer.pid;
}

int kymo_hub_hand_over(struct kymo_hub *hub, int wake, int timeout_ms)
{
	struct pollfd fds[] = { { .fd = wake, .events = POLLIN },
				{ .fd = hub->door ? hub->door->left : -1, .events = POLLIN } };
	int got, err = hub->ops->leave(hub);
	uint64_t n;

	if (err)
		return err;
	while (hub->door && !close_if_empty(hub->door)) {
		got = poll(fds, kymo_countof(fds), timeout_ms);
		if (!got)
			return -EAGAIN;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0 && fds[0].revents)
			return -EINTR;
		if (got > 0 && read(hub->door->left, &n, sizeof(n)) < 0 && errno != EAGAIN)
			return -errno;
	}
	return 0;
}

pid_t kymo_hub_visitor(const struct kymo_hub *hub)
{
	return hub->door ? hub_visitor(hub) : 0;
}
