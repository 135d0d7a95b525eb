#include "gdb/join.h"

#include "gdb/serve.h"
#include "gdb/state.h"
#include "hub/hub.h"
#include "proc/reach.h"

/* The new one is made first: a stub has a hub at any time. */
int gdb_take_own_hub(struct kymo_gdb *gdb)
{
	struct kymo_hub *own;
	int err;

	if (gdb->hub && !gdb->has_joined)
		return 0;
	err = kymo_hub_create(&own);
	if (err)
		return err;
	kymo_hub_serve(own); /* if that is not possible, later tracers are told that the process is traced */
	kymo_hub_destroy(gdb->hub);
	gdb->hub = own;
	gdb->has_joined = false;
	return 0;
}

/* ---- reaching a process ---------------------------------------------------------------------- */

struct reach {
	struct kymo_gdb *gdb;
	int (*attach)(void *data, pid_t *busy_ret);
	void *data;
	struct kymo_hub *own; /* the stub's, while it may join another one; or NULL */
	pid_t busy;
};

static void take_back(struct reach *it)
{
	kymo_hub_destroy(it->gdb->hub);
	it->gdb->hub = it->own;
	it->gdb->has_joined = false;
	it->own = NULL;
}

static int open_for(void *data)
{
	struct reach *it = data;

	if (!it->own)
		return gdb_take_own_hub(it->gdb);
	take_back(it);
	return 0;
}

static int attach_for(void *data, pid_t *busy_ret)
{
	struct reach *it = data;
	const int err = it->attach(it->data, busy_ret);

	it->busy = *busy_ret;
	return err;
}

/* What comes next is a connection, or the stub's own hub again. */
static void close_for(void *data)
{
	struct reach *it = data;

	if (it->own)
		kymo_hub_destroy(it->gdb->hub);
	else
		it->own = it->gdb->hub;
	it->gdb->hub = NULL;
	it->gdb->has_joined = true;
}

static bool is_given_up(void *data)
{
	return false;
}

static void look_whether_free(void *data)
{
	struct reach *it = data;

	it->busy = it->gdb->processes.n || it->gdb->children.n || kymo_hub_clients(it->gdb->hub);
}

int gdb_reach(struct kymo_gdb *gdb, int (*attach)(void *data, pid_t *busy_ret), void *data, pid_t *busy_ret)
{
	struct reach it = { .gdb = gdb, .attach = attach, .data = data };
	const struct kymo_reach reach = { .hub = &gdb->hub,
					  .data = &it,
					  .open = open_for,
					  .attach = attach_for,
					  .close = close_for,
					  .is_given_up = is_given_up };
	int err;

	kymo_hub_run(gdb->hub, look_whether_free, &it);
	if (it.busy)
		return attach(data, busy_ret);
	err = kymo_hub_reach(&reach);
	*busy_ret = it.busy;
	if (err && it.own)
		take_back(&it);
	kymo_hub_destroy(it.own);
	return err;
}

/* ---- other tracers --------------------------------------------------------------------------- */

bool gdb_is_cut_off(const struct kymo_gdb *gdb)
{
	return kymo_hub_failure(gdb->hub);
}
