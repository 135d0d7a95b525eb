/* The socket of a hub, and who is connected to it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "proc/hub_place.h"
#include "proc/hub_remote.h"

#define GUESTS_MAX 64

struct hub_door {
	struct kymo_hub *hub;
	struct hub_place place;
	pthread_t thread;
	atomic_bool is_closing;
	struct hub_guest *guests;	/* the thread's, and behind it who closes */
	unsigned int n_guests;
};

/* Those that have ended; all, if they are to. */
static void see_off(struct hub_door *door, bool all)
{
	struct hub_guest **at = &door->guests, *guest;

	while ((guest = *at)) {
		if (!all && !guest->has_ended) {
			at = &guest->next;
			continue;
		}
		*at = guest->next;
		hub_guest_lose(guest);
		pthread_join(guest->thread, NULL);
		hub_guest_put(guest);
		door->n_guests--;
	}
}

static void let_in(struct hub_door *door, int socket)
{
	struct hub_guest *guest;

	see_off(door, false);
	if (door->n_guests >= GUESTS_MAX) {
		close(socket);
		return;
	}
	guest = hub_guest_create(door->hub, socket);
	if (!guest)
		return;
	guest->next = door->guests;
	door->guests = guest;
	door->n_guests++;
}

static void *be_door(void *data)
{
	struct hub_door *door = data;

	while (!door->is_closing) {
		int socket = accept4(door->place.socket, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (socket >= 0)
			let_in(door, socket);
		else if (errno != EINTR && errno != ECONNABORTED && !door->is_closing)
			nanosleep(&(struct timespec){ 0, 10000000 }, NULL);	/* descriptors or memory are out */
	}
	return NULL;
}

int kymo_hub_serve(struct kymo_hub *hub)
{
	struct hub_door *door;
	sigset_t all, mask;
	int err;

	if (hub->client || hub->door)
		return -EALREADY;
	door = calloc(1, sizeof(*door));
	if (!door)
		return -ENOMEM;
	door->hub = hub;
	err = hub_place_open(hub->tid, &door->place);
	if (err) {
		free(door);
		return err;
	}
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	err = -pthread_create(&door->thread, NULL, be_door, door);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	if (err) {
		hub_place_close(&door->place);
		free(door);
		return err;
	}
	hub->door = door;
	return 0;
}

void hub_close_door(struct hub_door *door)
{
	if (!door)
		return;
	door->is_closing = true;
	shutdown(door->place.socket, SHUT_RDWR);
	pthread_join(door->thread, NULL);
	hub_place_close(&door->place);
	see_off(door, true);
	free(door);
}
