#include "gdb/join.h"

#include "gdb/serve.h"
#include "gdb/state.h"
#include "hub/hub.h"
#include "proc/reach.h"

static void close_hub(struct kymo_gdb *gdb)
{
	kymo_hub_destroy(gdb->hub);
	gdb->hub = NULL;
}

int gdb_take_own_hub(struct kymo_gdb *gdb)
{
	int err;

	if (gdb->hub && !gdb->has_joined)
		return 0;
	close_hub(gdb);
	gdb->has_joined = false;
	err = kymo_hub_create(&gdb->hub);
	if (!err)
		kymo_hub_serve(
			gdb->hub); /* if that is not possible, later tracers are told that the process is traced */
	return err;
}

/* ---- reaching a process ---------------------------------------------------------------------- */

struct reach {
	struct kymo_gdb *gdb;
	int (*attach)(void *data, pid_t *busy_ret);
	void *data;
	pid_t busy;
};

static int open_for(void *data)
{
	const struct reach *it = data;

	return gdb_take_own_hub(it->gdb);
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
	const struct reach *it = data;

	close_hub(it->gdb);
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
	int err, again = 0;

	kymo_hub_run(gdb->hub, look_whether_free, &it);
	if (it.busy)
		return attach(data, busy_ret);
	err = kymo_hub_reach(&reach);
	*busy_ret = it.busy;
	if (err)
		again = gdb_take_own_hub(gdb);
	return again ? again : err;
}

/* ---- other tracers --------------------------------------------------------------------------- */

bool gdb_is_cut_off(const struct kymo_gdb *gdb)
{
	return kymo_hub_failure(gdb->hub);
}
