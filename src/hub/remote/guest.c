/* A client that is connected to a hub: references, its engines, its end. */
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hub/engine.h"
#include "hub/remote/guest.h"
#include "hub/remote/table.h"
#include "hub/state.h"

void hub_guest_get(struct hub_guest *guest)
{
	atomic_fetch_add(&guest->refs, 1);
}

void hub_guest_put(struct hub_guest *guest)
{
	if (atomic_fetch_sub(&guest->refs, 1) > 1)
		return;
	close(guest->requests);
	if (guest->events >= 0)
		close(guest->events);
	hub_table_deinit(&guest->table);
	free(guest);
}

void hub_guest_lose(struct hub_guest *guest)
{
	guest->is_lost = true;
	shutdown(guest->requests, SHUT_RDWR);
	if (guest->events >= 0)
		shutdown(guest->events, SHUT_RDWR);
}

/* ---- its engines ----------------------------------------------------------------------------- */

void hub_guest_take(struct hub_guest *guest, struct kymo_engine *engine)
{
	hub_guest_get(guest);
	engine->guest = guest;
	hub_table_add(&guest->table, engine);
}
