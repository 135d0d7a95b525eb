#include "gdb/static_points.h"

#include <inttypes.h>
#include <string.h>

#include "gdb/packet.h"
#include "gdb/thread.h"
#include "hub/hub.h"

enum { REPLY_MAX = GDB_PACKET_MAX / 4, NAME_MAX_SHOWN = 1024 };

struct process_look {
	const struct kymo_gdb *gdb;
	pid_t pid; /* 0: there is none */
};

static void find_process(void *data)
{
	struct process_look *look = data;
	const struct gdb_thread *thread = gdb_memory_thread(look->gdb);

	look->pid = thread && !thread->process->is_narrow ? thread->process->pid : 0;
}

static pid_t selected_process(const struct kymo_gdb *gdb)
{
	struct process_look look = { .gdb = gdb };

	kymo_hub_run(gdb->hub, find_process, &look);
	return look.pid;
}

static void put_string(struct gdb_text *reply, const char *string)
{
	gdb_text_hex(reply, string, strnlen(string, NAME_MAX_SHOWN));
}

/* "address:id:extra". */
static void put_marker(struct gdb_text *reply, const struct gdb_marker *marker)
{
	gdb_text_format(reply, "%" PRIx64 ":", marker->address);
	put_string(reply, marker->id);
	gdb_text_put(reply, ":");
	put_string(reply, marker->extra);
}

void gdb_next_markers(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_markers *markers = &gdb->tracing.markers;

	if (markers->next >= markers->items.n)
		gdb_text_put(reply, "l");
	for (; markers->next < markers->items.n && reply->n < REPLY_MAX; markers->next++) {
		gdb_text_put(reply, reply->n ? "," : "m");
		put_marker(reply, &markers->items.items[markers->next]);
	}
}

void gdb_first_markers(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const pid_t pid = selected_process(gdb);

	gdb_markers_deinit(&gdb->tracing.markers);
	if (pid)
		gdb_markers_read(pid, &gdb->tracing.markers);
	gdb_next_markers(gdb, words, reply);
}

/* A client asks before it defines a tracepoint there: what is known of that file is as it is now. */
void gdb_tell_marker(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_markers *markers = &gdb->tracing.markers;
	const pid_t pid = selected_process(gdb);
	const struct gdb_marker *marker;
	uint64_t address;

	if (!gdb_take_number(words, &address) || !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E01");
		return;
	}
	if (pid)
		gdb_markers_read_at(markers, pid, address);
	marker = pid ? gdb_marker_at(markers, address) : NULL;
	gdb_text_put(reply, marker ? "m" : "l");
	if (marker)
		put_marker(reply, marker);
}
