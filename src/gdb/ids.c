#include "gdb/ids.h"

#include <string.h>

#include "gdb/nonstop.h"
#include "gdb/packet.h"
#include "gdb/thread.h"
#include "procfs/info.h"

enum { ID_MAX = 32 }; /* digits of one, with its comma */

void gdb_set_thread(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const bool is_general = gdb_take_char(words, 'g');
	struct gdb_id id;

	if ((!is_general && !gdb_take_char(words, 'c')) || !gdb_take_id(words, &id) || !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E01");
		return;
	}
	if (id.tid > 0 && !gdb_thread_of(gdb, &id)) {
		gdb_text_put(reply, "E01");
		return;
	}
	if (gdb->was_asked)
		gdb_begin_notifying(gdb);
	if (!is_general)
		gdb->running = id;
	else if (id.tid || id.pid || !gdb_general_thread(gdb))
		gdb->general = id;
	gdb_text_put(reply, "OK");
}

void gdb_tell_thread_alive(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_id id;

	gdb_text_put(reply,
		     gdb_take_id(words, &id) && gdb_words_are_over(words) && id.tid > 0 && gdb_thread_of(gdb, &id)
			     ? "OK"
			     : "E01");
}

void gdb_current_thread(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct gdb_thread *thread = gdb_general_thread(gdb);

	if (!thread)
		return;
	gdb_text_put(reply, "QC");
	gdb_put_id(gdb, reply, thread->process->pid, thread->tid);
}

void gdb_first_threads(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb->next_thread = 0;
	gdb_more_threads(gdb, words, reply);
}

void gdb_more_threads(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	bool is_first = true;

	for (; gdb->next_thread < gdb->threads.n && reply->n + ID_MAX < GDB_PACKET_MAX; gdb->next_thread++) {
		const struct gdb_thread *thread = gdb->threads.items[gdb->next_thread];

		if (thread->is_dead || thread->is_untold)
			continue;
		gdb_text_put(reply, is_first ? "m" : ",");
		gdb_put_id(gdb, reply, thread->process->pid, thread->tid);
		is_first = false;
	}
	if (is_first)
		gdb_text_put(reply, "l");
}

void gdb_thread_name(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct gdb_thread *thread;
	struct gdb_id id;
	char name[16];

	if (!gdb_take_id(words, &id) || !gdb_words_are_over(words) || !(thread = gdb_thread_of(gdb, &id))) {
		gdb_text_put(reply, "E01");
		return;
	}
	kymo_read_comm(thread->tid, name);
	gdb_text_hex(reply, name, strnlen(name, sizeof(name)));
}

void gdb_tell_attached(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct gdb_thread *thread = gdb_general_thread(gdb);
	const struct gdb_process *process = thread ? thread->process : NULL;
	int pid;

	if (gdb_take_char(words, ':'))
		process = gdb_take_int(words, &pid) ? gdb_find_process(gdb, pid) : NULL;
	if (process && gdb_words_are_over(words))
		gdb_text_put(reply, process->is_launched ? "0" : "1");
	else
		gdb_text_put(reply, "E01");
}
