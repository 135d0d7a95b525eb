#include "gdb/process.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gdb/begin.h"
#include "gdb/end.h"
#include "gdb/nonstop.h"
#include "gdb/packet.h"
#include "gdb/registers.h"
#include "gdb/run.h"
#include "gdb/stop.h"
#include "gdb/tell.h"
#include "gdb/thread.h"
#include "gdb/wait.h"
#include "hub/hub.h"

enum { STOP_MS = 60000, WORDS_MAX = 4096 };

/* ---- attaching ------------------------------------------------------------------------------- */

/* It is stopped, and a client is told so. */
struct standing {
	struct kymo_gdb *gdb;
	pid_t pid;
	int signal;
	struct gdb_text *reply;
	bool is_good;
	bool runs; /* it does not stand any more, and the client is told nothing */
};

/* In non-stop one thread, for a moment: the description of registers is read from it. */
static void stop_attached(void *data)
{
	const struct standing *standing = data;
	struct kymo_gdb *gdb = standing->gdb;
	struct gdb_thread *thread = gdb_any_thread(gdb, standing->pid);

	gdb->general = gdb->running = (struct gdb_id){ gdb->is_non_stop ? standing->pid : 0, 0 };
	gdb->n_ticks = 0;
	if (!gdb->is_non_stop)
		gdb_stop_all(gdb);
	else if (thread)
		gdb_stop_one(thread, 0);
}

/* A connection outlives its process only where the client has said so (`!`). */
static void look_whether_allowed(void *data)
{
	struct standing *standing = data;
	const struct kymo_gdb *gdb = standing->gdb;

	standing->is_good =
		!gdb->options.is_for_one && gdb->is_extended && (gdb->has_multiprocess || !gdb->processes.n);
}

static bool is_allowed(struct standing *standing)
{
	kymo_hub_run(standing->gdb->hub, look_whether_allowed, standing);
	if (!standing->is_good)
		gdb_text_put(standing->reply, "E01");
	return standing->is_good;
}

/* gdb stops threads when it has read how their registers are described, and takes no stop before. */
static void let_attached_run(struct kymo_gdb *gdb, pid_t pid, struct gdb_text *reply)
{
	gdb_learn_registers(gdb);
	for (size_t i = 0; i < gdb->threads.n; i++) {
		struct gdb_thread *thread = gdb->threads.items[i];

		if (thread->process->pid == pid && thread->telling == GDB_PENDING &&
		    thread->event.kind == GDB_EVENT_INTERRUPT)
			gdb_resume(thread, &(struct gdb_resumption){ 0 });
	}
	gdb_text_put(reply, "OK");
}

static void tell_standing(void *data)
{
	struct standing *standing = data;
	struct kymo_gdb *gdb = standing->gdb;
	struct gdb_thread *thread = gdb_find_thread(gdb, standing->pid, standing->pid);

	gdb_change_state(gdb, GDB_ALL_STAND);
	thread = thread ? thread : gdb_any_thread(gdb, standing->pid);
	if (!thread || !standing->is_good) {
		standing->is_good = false;
		return;
	}
	gdb_begin_notifying(gdb);
	if (standing->runs)
		let_attached_run(gdb, standing->pid, standing->reply);
	else
		gdb_tell_standing(thread, standing->signal, standing->reply);
}

/* Or leave it as it was, where it does not stand. */
static void tell_or_leave(struct standing *standing)
{
	kymo_hub_run(standing->gdb->hub, tell_standing, standing);
	if (standing->is_good)
		return;
	gdb_leave(standing->gdb, standing->pid);
	gdb_text_put(standing->reply, "E01");
}

void gdb_attach(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct standing standing = { .gdb = gdb, .reply = reply };
	struct kymo_error *error;
	int pid;

	if (!gdb_take_int(words, &pid) || !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E01");
		return;
	}
	if (!is_allowed(&standing))
		return;
	error = kymo_gdb_attach(gdb, pid, &standing.pid);
	if (error) {
		gdb_say(gdb, "%s", error->message);
		gdb_text_put(reply, "E.");
		gdb_packet_escape(reply, error->message, strlen(error->message));
		kymo_error_destroy(error);
		return;
	}
	kymo_hub_run(gdb->hub, stop_attached, &standing);
	standing.runs = gdb->is_non_stop;
	if (gdb->is_non_stop)
		standing.is_good = gdb_wait_until(gdb, standing.pid, gdb_look_whether_any_stands, STOP_MS, -1);
	else
		standing.is_good = gdb_wait_for_stop(gdb, STOP_MS, -1);
	tell_or_leave(&standing);
}

/* ---- running --------------------------------------------------------------------------------- */

static void free_words(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}

/* "file;argument;…" in digits; an empty file is the program of the last time, or of the command line. */
static char **take_argv(struct gdb_words *words, const char *last)
{
	char **argv = calloc(WORDS_MAX + 1, sizeof(*argv));
	kymo_cleanup_free char *word = malloc(GDB_PACKET_MAX);
	bool is_good = argv && word;
	size_t n = 0;

	while (is_good && n < WORDS_MAX) {
		is_good = gdb_take_hex_string(words, word, GDB_PACKET_MAX);
		if (is_good && !n && !*word && last)
			argv[n++] = strdup(last);
		else if (is_good)
			argv[n++] = strdup(word);
		if (!is_good || !gdb_take_char(words, ';'))
			break;
	}
	if (is_good && gdb_words_are_over(words) && *argv[0])
		return argv;
	free_words(argv);
	return NULL;
}

static void run(struct standing *standing, char *const *argv)
{
	struct kymo_gdb *gdb = standing->gdb;
	struct kymo_error *error = kymo_gdb_launch(gdb, argv, &standing->pid);

	if (error) {
		gdb_say(gdb, "%s", error->message);
		gdb_text_put(standing->reply, "E01");
		kymo_error_destroy(error);
		return;
	}
	standing->is_good = true;
	standing->signal = SIGTRAP;
	tell_or_leave(standing);
}

void gdb_run(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct standing standing = { .gdb = gdb, .reply = reply };
	char **argv;

	if (!is_allowed(&standing))
		return;
	argv = take_argv(words, gdb->last_argv ? gdb->last_argv[0] : NULL);
	if (argv)
		run(&standing, argv);
	else
		gdb_text_put(reply, "E01");
	free_words(argv);
}

/* What was attached to stays. Why the program does not run again the client learns when it asks (`?`). */
void gdb_restart(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_text unused = { 0 };
	struct standing standing = { .gdb = gdb, .reply = &unused };

	if (gdb->last_argv && is_allowed(&standing)) {
		gdb_kill_launched(gdb);
		run(&standing, gdb->last_argv);
	}
	gdb_text_deinit(&unused);
}
