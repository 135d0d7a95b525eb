#include "gdb/wait.h"

#include <poll.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "gdb/join.h"
#include "gdb/stop.h"
#include "gdb/thread.h"
#include "hub/hub.h"

void gdb_look_whether_stopped(void *data)
{
	struct gdb_look *look = data;

	look->is_true = gdb_do_all_stand(look->gdb);
}

void gdb_look_whether_any_stands(void *data)
{
	struct gdb_look *look = data;

	look->is_true = gdb_does_any_stand(look->gdb, look->pid);
}

void gdb_look_whether_started(void *data)
{
	struct gdb_look *look = data;
	const struct gdb_process *process = gdb_find_process(look->gdb, look->pid);
	const struct gdb_thread *thread = gdb_any_thread(look->gdb, look->pid);

	look->is_true = !process || process->has_ended || (!process->execs_left && thread && thread->is_stopped);
}

void gdb_look_whether_gone(void *data)
{
	struct gdb_look *look = data;
	const struct gdb_process *process = look->pid ? gdb_find_process(look->gdb, look->pid) : NULL;

	look->is_true = look->pid ? !process || process->has_ended : true;
	for (size_t i = 0; !look->pid && i < look->gdb->processes.n; i++)
		look->is_true &= look->gdb->processes.items[i]->has_ended;
}

/* Callbacks wake us by the eventfd. */
static bool wait_until(struct kymo_gdb *gdb, pid_t pid, void (*is_it)(void *data), int ms, int fd)
{
	struct pollfd fds[] = { { .fd = gdb->wake, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	const uint64_t until = kymo_now_ns() + (uint64_t)ms * 1000000;
	struct gdb_look look = { .gdb = gdb, .pid = pid };
	uint64_t count, tick = kymo_now_ns();

	for (;;) {
		if (kymo_now_ns() > tick + GDB_TICK_MS * 1000000ull) {
			kymo_hub_run(gdb->hub, gdb_tick, gdb);
			tick = kymo_now_ns();
		}
		kymo_hub_run(gdb->hub, is_it, &look);
		if (look.is_true || kymo_now_ns() >= until || fds[1].revents || gdb_is_cut_off(gdb))
			return look.is_true;
		if (poll(fds, kymo_countof(fds), 20) > 0 && fds[0].revents &&
		    read(gdb->wake, &count, sizeof(count)) < 0)
			continue;
	}
}

/* What has woken us may be something else that the main thread has to collect. */
bool gdb_wait_until(struct kymo_gdb *gdb, pid_t pid, void (*is_it)(void *data), int ms, int fd)
{
	const bool is_true = wait_until(gdb, pid, is_it, ms, fd);

	if (gdb->is_non_stop)
		gdb_wake(gdb);
	return is_true;
}

bool gdb_wait_for_stop(struct kymo_gdb *gdb, int ms, int fd)
{
	return gdb_wait_until(gdb, 0, gdb_look_whether_stopped, ms, fd);
}

bool gdb_is_called_off(const struct kymo_gdb *gdb)
{
	struct pollfd fds[] = { { .fd = gdb->client, .events = POLLRDHUP },
				{ .fd = gdb->ends_waits, .events = POLLIN } };

	return poll(fds, kymo_countof(fds), 0) > 0;
}
