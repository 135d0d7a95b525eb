#include "gdb/btrace_packets.h"

#include <errno.h>

#include "base/backoff.h"
#include "base/io.h"
#include "gdb/btrace.h"
#include "gdb/events.h"
#include "gdb/thread.h"
#include "gdb/trace_run.h"
#include "gdb/wait.h"
#include "hub/hub.h"

#define END_NS 2000000000u

/* ---- Qbtrace --------------------------------------------------------------------------------- */

/* Why it is not possible; NULL: it has begun. */
static const char *begin(struct gdb_thread *thread)
{
	struct kymo_gdb *gdb = thread->gdb;
	int err;

	if (thread->process->is_narrow)
		return "32-bit programs are not stepped";
	if (!gdb_is_traced(thread) && gdb_has_recording(thread->process->pid))
		return "the process has probes of a recording in it, whose code cannot be stepped through: end that "
		       "recording ('kymo status' shows it), or take them out by 'kymo detach'";
	err = gdb_btrace_begin(thread, gdb->btrace_size ? gdb->btrace_size : GDB_BLOCKS_SIZE);
	if (err)
		return err == -EALREADY ? "the branches of this thread are traced already" : "not enough memory";
	gdb_set_mask(thread);
	if (!thread->is_stopped && !thread->is_asked)
		kymo_engine_control(thread->engine, KYMO_ACTION_REPORT);
	return NULL;
}

static const char *end(struct gdb_thread *thread)
{
	if (!gdb_btrace_end(thread))
		return "the branches of this thread are not traced";
	gdb_set_mask(thread);
	return NULL;
}

static bool take_last(struct gdb_words *words, const char *text)
{
	return gdb_take_text(words, text) && gdb_words_are_over(words);
}

void gdb_trace_branches(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_thread *thread = gdb_general_thread(gdb);
	const char *problem;

	if (!thread)
		problem = "no thread is selected";
	else if (take_last(words, "bts"))
		problem = begin(thread);
	else if (take_last(words, "off"))
		problem = end(thread);
	else
		problem = "this server has 'bts' only";
	if (problem)
		gdb_text_format(reply, "E.%s", problem);
	else
		gdb_text_put(reply, "OK");
}

/* "bts:size=0x10000": hexadecimal digits, with or without "0x". */
void gdb_configure_branches(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	uint64_t size;

	if (!gdb_take_text(words, "bts:size=") || (gdb_take_text(words, "0x"), !gdb_take_number(words, &size)) ||
	    !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E.the configuration is not understood");
		return;
	}
	gdb->btrace_size = size < GDB_BLOCKS_MAX ? (size_t)size : GDB_BLOCKS_MAX;
	gdb_text_put(reply, "OK");
}

/* ---- qXfer ----------------------------------------------------------------------------------- */

static bool take_part(struct gdb_words *annex, enum gdb_blocks_part *ret)
{
	*ret = GDB_BLOCKS_ALL;
	if (take_last(annex, "all"))
		return true;
	*ret = GDB_BLOCKS_NEW;
	if (take_last(annex, "new"))
		return true;
	*ret = GDB_BLOCKS_DELTA;
	return take_last(annex, "delta");
}

bool gdb_make_btrace(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document)
{
	struct gdb_thread *thread = gdb_general_thread(gdb);
	enum gdb_blocks_part part;

	if (!thread || !gdb_is_traced(thread) || !take_part(annex, &part))
		return false;
	if (thread->is_stopped)
		gdb_btrace_look_again(thread);
	return gdb_blocks_put(&thread->btrace->blocks, part, document);
}

bool gdb_make_btrace_conf(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document)
{
	const struct gdb_thread *thread = gdb_general_thread(gdb);

	if (!thread || !gdb_is_traced(thread) || !gdb_words_are_over(annex))
		return false;
	gdb_text_format(document,
			"<!DOCTYPE btrace-conf SYSTEM \"btrace-conf.dtd\">\n<btrace-conf version=\"1.0\">\n"
			"<bts size=\"0x%zx\"/>\n</btrace-conf>\n",
			thread->btrace->size);
	return true;
}

/* ---- the end --------------------------------------------------------------------------------- */

static void end_all(void *data)
{
	const struct gdb_look *look = data;

	for (size_t i = 0; i < look->gdb->threads.n; i++) {
		struct gdb_thread *thread = look->gdb->threads.items[i];

		if (look->pid && thread->process->pid != look->pid)
			continue;
		if (gdb_btrace_end(thread) && !thread->is_dead)
			gdb_set_mask(thread);
	}
}

/* No thread begins steps after that. */
static void end_run(void *data)
{
	const struct gdb_look *look = data;

	if (!look->pid || look->gdb->tracing.pid == look->pid)
		gdb_trace_end_run(look->gdb, GDB_TRACE_FAILED, 0, "the process is gone");
}

static void look_whether_seen(void *data)
{
	struct gdb_look *look = data;

	look->is_true = true;
	for (size_t i = 0; i < look->gdb->threads.n; i++)
		look->is_true &= !gdb_btrace_is_pushing(look->gdb->threads.items[i]);
}

void gdb_end_steps(struct kymo_gdb *gdb, pid_t pid)
{
	struct gdb_look look = { .gdb = gdb, .pid = pid };

	kymo_hub_run(gdb->hub, end_run, &look);
	gdb_end_btrace(gdb, pid);
}

void gdb_end_btrace(struct kymo_gdb *gdb, pid_t pid)
{
	const uint64_t until = kymo_now_ns() + END_NS;
	struct gdb_look look = { .gdb = gdb, .pid = pid };
	unsigned int spins = 0;

	kymo_hub_run(gdb->hub, end_all, &look);
	for (;;) {
		kymo_hub_run(gdb->hub, look_whether_seen, &look);
		if (look.is_true || kymo_now_ns() > until)
			return;
		kymo_back_off(spins++);
	}
}
