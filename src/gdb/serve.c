/*
 * A stub's beginning and end, and the connection to its client. This is the main thread's: it reads, has packets
 * answered, and writes. What threads do it learns by an eventfd.
 */
#include "gdb/serve.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "gdb/end.h"
#include "gdb/files.h"
#include "gdb/join.h"
#include "gdb/nonstop.h"
#include "gdb/packet.h"
#include "gdb/packets.h"
#include "gdb/pads.h"
#include "gdb/prints.h"
#include "gdb/run.h"
#include "gdb/session.h"
#include "gdb/state.h"
#include "gdb/stop.h"
#include "hub/hub.h"
#include "proc/reach.h"

enum {
	READ_SIZE = 16384,
	WRITE_MS = 30000,
	LINGER_MS = 2000,
	LOOK_MS = 1000,
	PRINT_SIZE = 8192,
	PRINTS_MS = 10, /* how often what pads print is read */
	ROUNDS_MAX = 64,
};

struct connection {
	struct kymo_gdb *gdb;
	int in, out;
	struct gdb_reader reader;
	struct gdb_text reply, last; /* data; the whole packet that was sent last */
	int wake;                    /* ends all waits */
	bool is_lost, is_running;
	bool has_begun; /* a packet has come */
	uint64_t ticked_ns;
};

/* ---- a stub ---------------------------------------------------------------------------------- */

struct kymo_error *kymo_gdb_create(const struct kymo_gdb_options *options, struct kymo_gdb **ret)
{
	struct kymo_gdb *gdb = calloc(1, sizeof(*gdb));
	int err;

	if (!gdb)
		return &kymo_error_no_memory;
	gdb->options = *options;
	gdb->pads = options->pads;
	gdb_init_files(gdb);
	gdb->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = gdb->wake < 0 ? -errno : gdb_take_own_hub(gdb);
	if (err) {
		if (gdb->wake >= 0)
			close(gdb->wake);
		free(gdb);
		return kymo_begin_error(err);
	}
	*ret = gdb;
	return NULL;
}

bool kymo_gdb_is_shared(struct kymo_gdb *gdb)
{
	gdb_leave(gdb, 0);
	return kymo_hub_hand_over(gdb->hub, -1, 0) == -EAGAIN;
}

void kymo_gdb_serve_others(struct kymo_gdb *gdb, int wake)
{
	kymo_hub_hand_over(gdb->hub, wake, -1);
}

void kymo_gdb_destroy(struct kymo_gdb *gdb)
{
	if (!gdb)
		return;
	gdb_leave(gdb, 0);
	kymo_hub_destroy(gdb->hub);
	gdb_pads_deinit(gdb);
	gdb_free_state(gdb);
	close(gdb->wake);
	free(gdb);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void debug(const struct kymo_gdb *gdb, char direction, const char *bytes, size_t n)
{
	if (gdb->options.debug)
		gdb->options.debug(gdb->options.data, direction, bytes, n);
}

/* The client can take some bytes. Else it is lost: it does not read, or the stub is to end. */
static bool can_write(struct connection *connection)
{
	struct pollfd fds[] = { { .fd = connection->out, .events = POLLOUT },
				{ .fd = connection->wake, .events = POLLIN } };
	const uint64_t until = kymo_now_ns() + WRITE_MS * 1000000ull;
	int n;

	do {
		n = poll(fds, kymo_countof(fds), 1000);
	} while ((n == 0 || (n < 0 && errno == EINTR)) && kymo_now_ns() < until);
	return n > 0 && !(fds[0].revents & (POLLERR | POLLNVAL)) && fds[0].revents & POLLOUT;
}

/* A pipe that can be written to takes PIPE_BUF bytes without waiting. */
static ssize_t write_part(int fd, const char *bytes, size_t n)
{
	const ssize_t done = send(fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);

	return done < 0 && errno == ENOTSOCK ? write(fd, bytes, n < PIPE_BUF ? n : PIPE_BUF) : done;
}

static void send_bytes(struct connection *connection, const char *bytes, size_t n)
{
	while (n && !connection->is_lost) {
		ssize_t done;

		if (!can_write(connection)) {
			connection->is_lost = true;
			return;
		}
		done = write_part(connection->out, bytes, n);
		if (done >= 0) {
			bytes += done;
			n -= (size_t)done;
		} else if (errno != EINTR && errno != EAGAIN) {
			connection->is_lost = true;
		}
	}
}

/* What is no reply: it is not sent again. */
static void send_text(struct connection *connection, char lead, const struct gdb_text *text)
{
	struct gdb_text framed = { 0 };

	debug(connection->gdb, '>', text->items, text->n);
	gdb_packet_frame(&framed, lead, text->items, text->n);
	connection->is_lost |= text->has_failed || framed.has_failed;
	send_bytes(connection, framed.items, framed.n);
	gdb_text_deinit(&framed);
}

/* What is for the client's user comes before the reply. */
static void send_console(struct connection *connection)
{
	struct gdb_text *console = &connection->gdb->console;

	if (console->n)
		send_text(connection, '$', console);
	gdb_text_clear(console);
}

static void send_reply(struct connection *connection)
{
	gdb_text_clear(&connection->last);
	if (connection->reply.has_failed) {
		gdb_text_clear(&connection->reply);
		gdb_text_put(&connection->reply, "E12");
	}
	debug(connection->gdb, '>', connection->reply.items, connection->reply.n);
	gdb_packet_frame(&connection->last, '$', connection->reply.items, connection->reply.n);
	if (connection->last.has_failed)
		connection->is_lost = true;
	send_bytes(connection, connection->last.items, connection->last.n);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void answer(struct connection *connection, const struct gdb_text *packet)
{
	const bool has_acks = !connection->gdb->has_no_acks;

	debug(connection->gdb, '<', packet->items, packet->n);
	if (has_acks)
		send_bytes(connection, "+", 1);
	if (!connection->has_begun) {
		connection->has_begun = true;
		connection->is_lost = !gdb_begin_session(connection->gdb, connection->wake);
	}
	if (connection->is_lost)
		return;
	if (connection->is_running)
		return; /* threads run: there is nothing that could be asked */
	gdb_text_clear(&connection->reply);
	switch (gdb_answer(connection->gdb, packet->n ? packet->items : "", packet->n, &connection->reply)) {
	case GDB_ANSWERED:
		send_console(connection);
		send_reply(connection);
		return;
	case GDB_RUNS:
		connection->is_running = true;
		return;
	case GDB_MUTE:
		return;
	}
}

static void interrupt(void *data)
{
	struct kymo_gdb *gdb = data;

	gdb_interrupt(gdb);
}

static void take_bytes(struct connection *connection, const char *bytes, size_t n)
{
	const char *at = bytes, *end = bytes + n;

	while (at < end && !connection->is_lost && !connection->gdb->is_over) {
		switch (gdb_reader_take(&connection->reader, &at, end)) {
		case GDB_INPUT_PACKET:
			answer(connection, &connection->reader.packet);
			break;
		case GDB_INPUT_BROKEN:
			if (!connection->gdb->has_no_acks)
				send_bytes(connection, "-", 1);
			break;
		case GDB_INPUT_NAK:
			if (!connection->gdb->has_no_acks && !connection->is_running) /* else it is of a text */
				send_bytes(connection, connection->last.items, connection->last.n);
			break;
		case GDB_INPUT_INTERRUPT:
			if (connection->has_begun)
				kymo_hub_run(connection->gdb->hub, interrupt, connection->gdb);
			break;
		case GDB_INPUT_NOISE: /* from a browser, or from a scanner of ports */
			connection->is_lost |= !connection->has_begun;
			break;
		case GDB_INPUT_ACK:
		case GDB_INPUT_NONE:
			break;
		}
	}
}

static bool is_woken(int wake)
{
	struct pollfd fd = { .fd = wake, .events = POLLIN };

	return wake >= 0 && poll(&fd, 1, 0) > 0;
}

static void read_some(struct connection *connection)
{
	char bytes[READ_SIZE];
	ssize_t n = read(connection->in, bytes, sizeof(bytes));

	if (n > 0)
		take_bytes(connection, bytes, (size_t)n);
	else if (n == 0 || (errno != EINTR && errno != EAGAIN))
		connection->is_lost = true;
}

/* ---- what threads do ------------------------------------------------------------------------- */

struct collect {
	struct connection *connection;
	struct gdb_printed printed; /* before what is told */
	bool is_told;
	bool is_last; /* of rounds: what is told does not wait for more */
	bool is_more; /* pads have printed more than that */
};

static void take_printed(struct collect *it)
{
	it->is_more = gdb_prints_collect(it->connection->gdb, GDB_PRINTS_MOST);
	it->printed = it->connection->gdb->printed;
	it->connection->gdb->printed = (struct gdb_printed){ .n_lost = 0 };
}

/* The client shows it while it waits for threads that run. In non-stop the protocol has nothing for that. */
static void show_printed(struct collect *it)
{
	const struct kymo_gdb *gdb = it->connection->gdb;
	const bool is_shown = it->connection->is_running && !gdb->is_non_stop && !it->connection->is_lost;
	struct gdb_text *text = &it->printed.text, packet = { 0 };

	if (it->printed.n_lost)
		gdb_text_format(text, "(%" PRIu64 " hits printed faster than their text was read, and are not shown)\n",
				it->printed.n_lost);
	for (size_t at = 0; is_shown && at < text->n; at += PRINT_SIZE) {
		gdb_text_clear(&packet);
		gdb_text_put(&packet, "O");
		gdb_text_hex(&packet, text->items + at, text->n - at < PRINT_SIZE ? text->n - at : PRINT_SIZE);
		send_text(it->connection, '$', &packet);
		if (is_woken(it->connection->in))
			read_some(it->connection); /* acknowledgements, for which there is not room without end */
	}
	if (!is_shown && text->n && gdb->options.print)
		gdb->options.print(gdb->options.data, text->items, text->n);
	gdb_text_deinit(&packet);
	gdb_text_deinit(text);
}

static void collect(void *data)
{
	struct collect *it = data;
	struct kymo_gdb *gdb = it->connection->gdb;

	take_printed(it);
	gdb_text_clear(&it->connection->reply);
	if (it->is_more && !it->is_last)
		return;
	it->is_told = gdb_collect(gdb, &it->connection->reply);
	if (it->is_told && !gdb->processes.n && !gdb->is_extended)
		gdb->is_over = true;
}

static void find_notification(void *data)
{
	struct collect *it = data;

	take_printed(it);
	if (it->is_more && !it->is_last)
		return;
	it->is_told = gdb_notify(it->connection->gdb, &it->connection->reply);
}

/* What was printed, and then what is told: threads that have stopped print nothing any more. */
static bool collect_by(struct connection *connection, void (*take)(void *data))
{
	struct collect it = { .connection = connection, .is_more = true };

	for (unsigned int i = 0; i < ROUNDS_MAX && it.is_more; i++) {
		it.is_last = i + 1 == ROUNDS_MAX;
		kymo_hub_run(connection->gdb->hub, take, &it);
		show_printed(&it);
	}
	return it.is_told;
}

static void notify(struct connection *connection)
{
	gdb_text_clear(&connection->reply);
	if (collect_by(connection, find_notification))
		send_text(connection, '%', &connection->reply);
}

static void look_at_bytes(struct connection *connection)
{
	uint64_t count;

	while (read(connection->gdb->wake, &count, sizeof(count)) == sizeof(count))
		;
	if (connection->gdb->is_non_stop)
		notify(connection);
	if (!connection->is_running)
		return;
	if (!collect_by(connection, collect))
		return;
	connection->is_running = false;
	gdb_wait_for_ended(connection->gdb);
	send_reply(connection);
}

/* ---- a client ------------------------------------------------------------------------------- */

/* A reply that is the last one arrives before the connection ends by what the client still sends. */
static void linger(const struct connection *connection)
{
	struct pollfd fd = { .fd = connection->in, .events = POLLIN };
	const uint64_t until = kymo_now_ns() + LINGER_MS * 1000000ull;
	char bytes[64];

	while (kymo_now_ns() < until && poll(&fd, 1, 100) >= 0)
		if (fd.revents && read(connection->in, bytes, sizeof(bytes)) <= 0)
			return;
}

static int wait_of(const struct connection *connection)
{
	const struct kymo_gdb *gdb = connection->gdb;

	return gdb_pads_print(gdb) ? PRINTS_MS : connection->is_running ? GDB_TICK_MS : gdb->has_joined ? LOOK_MS : -1;
}

/* Nothing has come for a while. */
static void look_at_time(struct connection *connection)
{
	struct kymo_gdb *gdb = connection->gdb;
	const uint64_t now = kymo_now_ns();

	if (gdb_pads_print(gdb) && (connection->is_running || gdb->is_non_stop))
		look_at_bytes(connection);
	if (!connection->is_running || (gdb_pads_print(gdb) && now - connection->ticked_ns < GDB_TICK_MS * 1000000ull))
		return;
	connection->ticked_ns = now;
	kymo_hub_run(gdb->hub, gdb_tick, gdb);
}

static void serve(struct connection *connection)
{
	struct kymo_gdb *gdb = connection->gdb;
	struct pollfd fds[] = { { .fd = connection->in, .events = POLLIN },
				{ .fd = gdb->wake, .events = POLLIN },
				{ .fd = connection->wake, .events = POLLIN } };

	while (!connection->is_lost && !gdb->is_over && !is_woken(connection->wake)) {
		const int n = poll(fds, kymo_countof(fds), wait_of(connection));

		if (!n)
			look_at_time(connection);
		if (gdb_is_cut_off(gdb)) {
			look_at_bytes(connection); /* the end of the process may be noted */
			return;
		}
		if (n <= 0)
			continue;
		if (fds[1].revents)
			look_at_bytes(connection);
		if (fds[0].revents && !gdb->is_over && is_woken(connection->in)) /* show_printed() may have read it */
			read_some(connection);
	}
	if (gdb->is_over && !connection->is_lost)
		linger(connection);
}

static void take_last(void *data)
{
	take_printed(data);
}

static void end_session(struct connection *connection)
{
	struct collect it = { .connection = connection };

	gdb_end_session(connection->gdb);
	kymo_hub_run(connection->gdb->hub, take_last, &it);
	connection->is_running = false;
	show_printed(&it);
}

/* ---- a trace run that goes on without a client ----------------------------------------------- */

struct run_look {
	struct kymo_gdb *gdb;
	bool has_left_run, has_process;
};

static void look_at_run(void *data)
{
	struct run_look *look = data;

	look->has_left_run = look->gdb->has_left_run;
	for (size_t i = 0; i < look->gdb->processes.n; i++)
		look->has_process |= !look->gdb->processes.items[i]->has_ended;
}

/* Its frames are for the next client, also where it has ended by now. */
static bool has_left_run(struct kymo_gdb *gdb)
{
	struct run_look look = { .gdb = gdb };

	kymo_hub_run(gdb->hub, look_at_run, &look);
	return look.has_left_run;
}

static bool has_process(struct kymo_gdb *gdb)
{
	struct run_look look = { .gdb = gdb };

	kymo_hub_run(gdb->hub, look_at_run, &look);
	return look.has_process;
}

bool kymo_gdb_wait_for_next(struct kymo_gdb *gdb, int socket, int wake)
{
	struct pollfd fds[] = { { .fd = socket, .events = POLLIN },
				{ .fd = gdb->wake, .events = POLLIN },
				{ .fd = wake, .events = POLLIN } };
	uint64_t count;

	while (!gdb_is_cut_off(gdb) && has_process(gdb)) {
		if (poll(fds, kymo_countof(fds), gdb->has_joined ? LOOK_MS : -1) <= 0)
			continue;
		if (fds[0].revents || fds[2].revents)
			return fds[0].revents;
		while (read(gdb->wake, &count, sizeof(count)) == sizeof(count))
			;
	}
	return false;
}

/* ---- a client -------------------------------------------------------------------------------- */

enum kymo_gdb_end kymo_gdb_serve(struct kymo_gdb *gdb, int in, int out, int wake)
{
	struct connection connection = { .gdb = gdb, .in = in, .out = out, .wake = wake };

	gdb->client = in;
	gdb->ends_waits = wake;
	serve(&connection);
	if (connection.has_begun)
		end_session(&connection);
	gdb_wait_for_ended(gdb);
	gdb_close_files(gdb);
	gdb_reader_deinit(&connection.reader);
	gdb_text_deinit(&connection.reply);
	gdb_text_deinit(&connection.last);
	if (is_woken(wake))
		return KYMO_GDB_WOKEN;
	if (gdb_is_cut_off(gdb) && !gdb->is_over)
		return KYMO_GDB_CUT;
	if (connection.has_begun && (gdb->is_over || (!gdb->processes.n && !gdb->is_extended)))
		return KYMO_GDB_OVER;
	return has_left_run(gdb) ? KYMO_GDB_TRACES : KYMO_GDB_LEFT;
}
