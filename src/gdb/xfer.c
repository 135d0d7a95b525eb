#include "gdb/xfer.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "gdb/btrace_packets.h"
#include "gdb/libraries.h"
#include "gdb/osdata.h"
#include "gdb/packet.h"
#include "gdb/registers.h"
#include "gdb/thread.h"
#include "gdb/trace_frames.h"
#include "gdb/wait.h"
#include "procfs/info.h"

enum { FILE_MAX = 1 << 20, NAME_MAX_SHOWN = 16, OSDATA_MAX = 16 << 20 };

/* What a row makes of its annex. False: there is no such object. */
typedef bool (*make_t)(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document);

static bool make_features(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document)
{
	if (!gdb_take_text(annex, "target.xml") || !gdb_words_are_over(annex))
		return false;
	gdb_describe_target(gdb, document);
	return document->n > 0;
}

static bool make_auxv(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document)
{
	const struct gdb_thread *thread = gdb_general_thread(gdb);
	kymo_cleanup_free char *bytes = NULL;
	char path[64];
	size_t n;

	if (!thread)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/auxv", thread->tid);
	if (kymo_read_file(AT_FDCWD, path, FILE_MAX, &bytes, &n))
		return false;
	gdb_text_bytes(document, bytes, n);
	return true;
}

static bool make_exec_file(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document)
{
	const struct gdb_thread *thread = gdb_general_thread(gdb);
	char link[64], path[PATH_MAX];
	int pid = thread ? thread->process->pid : 0;
	ssize_t n;

	if (!gdb_words_are_over(annex) && !gdb_take_int(annex, &pid))
		return false;
	if (!gdb_find_process(gdb, pid))
		return false;
	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	n = readlink(link, path, sizeof(path));
	if (n <= 0)
		return false;
	gdb_text_bytes(document, path, (size_t)n);
	return true;
}

/* What the C library knows the thread by (pthread_t): its thread pointer, as last seen. 0: not known. */
static uint64_t handle_of(struct gdb_thread *thread)
{
	struct user_regs_struct registers;

	if (!kymo_engine_get_registers(thread->engine, &registers))
		thread->handle = registers.fs_base;
	return thread->handle;
}

static void put_thread(struct gdb_thread *thread, struct gdb_text *document)
{
	const uint64_t handle = handle_of(thread);
	char name[NAME_MAX_SHOWN];

	kymo_read_comm(thread->tid, name);
	gdb_text_put(document, "<thread id=\"");
	gdb_put_id(thread->gdb, document, thread->process->pid, thread->tid);
	gdb_text_put(document, "\" name=\"");
	gdb_text_xml(document, name);
	if (handle) {
		gdb_text_put(document, "\" handle=\"");
		gdb_text_hex(document, &handle, sizeof(handle));
	}
	gdb_text_put(document, "\"/>\n");
}

static bool make_threads(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document)
{
	gdb_text_put(document, "<?xml version=\"1.0\"?>\n<threads>\n");
	for (size_t i = 0; i < gdb->threads.n; i++)
		if (!gdb->threads.items[i]->is_dead && !gdb->threads.items[i]->is_untold)
			put_thread(gdb->threads.items[i], document);
	gdb_text_put(document, "</threads>\n");
	return true;
}

static bool make_libraries(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document)
{
	struct gdb_thread *thread = gdb_general_thread(gdb);

	return thread && gdb_list_libraries(thread, document);
}

static bool make_siginfo(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document)
{
	const struct gdb_thread *thread = gdb_general_thread(gdb);

	if (!thread)
		return false; /* without a signal all is 0 */
	gdb_text_bytes(document, &thread->info, sizeof(thread->info));
	return true;
}

static bool is_called_off(const void *gdb)
{
	return gdb_is_called_off(gdb);
}

static bool make_osdata(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document)
{
	const struct gdb_osdata_terms terms = { .limit = OSDATA_MAX, .is_called_off = is_called_off, .data = gdb };

	return gdb_list_osdata(annex, &terms, document);
}

static const struct {
	const char *name;
	make_t make;
} objects[] = {
	{ "features", make_features },
	{ "auxv", make_auxv },
	{ "exec-file", make_exec_file },
	{ "threads", make_threads },
	{ "libraries-svr4", make_libraries },
	{ "siginfo", make_siginfo },
	{ "btrace", gdb_make_btrace },
	{ "btrace-conf", gdb_make_btrace_conf },
	{ "traceframe-info", gdb_make_frame_info },
};

static make_t find_maker(const struct gdb_words *name)
{
	for (size_t i = 0; i < kymo_countof(objects); i++)
		if (strlen(objects[i].name) == gdb_words_left(name) &&
		    !memcmp(objects[i].name, name->at, gdb_words_left(name)))
			return objects[i].make;
	return NULL;
}

static void put_part(const struct gdb_text *document, uint64_t offset, uint64_t size, struct gdb_text *reply)
{
	const size_t left = offset < document->n ? document->n - (size_t)offset : 0;
	size_t n = size < left ? (size_t)size : left;

	n = gdb_packet_fitting(document->items + (left ? offset : 0), n, GDB_PACKET_MAX - 8);
	gdb_text_put(reply, n < left ? "m" : "l");
	gdb_packet_escape(reply, document->items + (left ? offset : 0), n);
}

/* A document that is read in parts is made once, when its beginning is asked for. It is known by what the packet has
 * from `name` to the end of the annex. */
static void read_document(struct kymo_gdb *gdb, const char *name, make_t make, struct gdb_words *annex, uint64_t offset,
			  uint64_t size, struct gdb_text *reply)
{
	const size_t n = (size_t)(annex->end - name);
	const bool is_known = n < sizeof(gdb->document_name) && strlen(gdb->document_name) == n &&
			      !memcmp(gdb->document_name, name, n);

	if (!offset || !is_known) {
		gdb_text_clear(&gdb->document);
		*gdb->document_name = '\0';
		if (!make(gdb, annex, &gdb->document) || gdb->document.has_failed) {
			gdb_text_put(reply, "E01");
			return;
		}
		if (n < sizeof(gdb->document_name)) {
			memcpy(gdb->document_name, name, n);
			gdb->document_name[n] = '\0';
		}
	}
	put_part(&gdb->document, offset, size, reply);
}

/* "annex:offset,size". */
static void read_object(struct kymo_gdb *gdb, const char *name, make_t make, struct gdb_words *words,
			struct gdb_text *reply)
{
	struct gdb_words annex = gdb_take_until(words, ':');
	uint64_t offset, size;

	if (gdb_take_number(words, &offset) && gdb_take_char(words, ',') && gdb_take_number(words, &size) &&
	    gdb_words_are_over(words))
		read_document(gdb, name, make, &annex, offset, size, reply);
	else
		gdb_text_put(reply, "E00");
}

/* Of the signal that the thread stands before, for when it goes on with it. */
static void write_siginfo(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_thread *thread = gdb_general_thread(gdb);
	const size_t n = gdb_words_left(words);
	uint64_t offset;
	siginfo_t info;

	if (!gdb_take_number(words, &offset) || !gdb_take_char(words, ':') || !thread || !thread->info.si_signo ||
	    offset > sizeof(info) || gdb_words_left(words) > sizeof(info) - offset) {
		gdb_text_put(reply, "E01");
		return;
	}
	info = thread->info;
	memcpy((char *)&info + offset, words->at, gdb_words_left(words));
	thread->info = info;
	gdb_text_format(reply, "%zx", n ? gdb_words_left(words) : 0);
}

void gdb_transfer(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_words object = gdb_take_until(words, ':');
	const bool is_read = gdb_take_text(words, "read:");
	make_t make = find_maker(&object);

	if (!is_read && gdb_take_text(words, "write:") && make == make_siginfo) {
		gdb_take_until(words, ':'); /* no annex */
		write_siginfo(gdb, words, reply);
	} else if (is_read && make) {
		read_object(gdb, object.at, make, words, reply);
	}
}

void gdb_transfer_osdata(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const char *name = words->at;

	if (gdb_take_text(words, "read:"))
		read_object(gdb, name, make_osdata, words, reply);
}
