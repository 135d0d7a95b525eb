#include "gdb/process.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "gdb/begin.h"
#include "gdb/events.h"
#include "gdb/packet.h"
#include "gdb/run.h"
#include "gdb/tell.h"
#include "gdb/thread.h"
#include "gdb/wait.h"
#include "hub/hub.h"

enum { START_MS = 60000, END_MS = 10000, WORDS_MAX = 4096 };

/* ---- attaching ------------------------------------------------------------------------------- */

static void stop_all(void *data)
{
	struct kymo_gdb *gdb = data;

	gdb->general = gdb->running = (struct gdb_id){ 0, 0 };
	gdb_stop_all(gdb);
}

/* It stands still, of which a client is told. */
struct standing {
	struct kymo_gdb *gdb;
	pid_t pid;
	int signal;
	struct gdb_text *reply;
};

static void tell_standing(void *data)
{
	const struct standing *standing = data;
	struct kymo_gdb *gdb = standing->gdb;
	struct gdb_thread *thread = gdb_find_thread(gdb, standing->pid, standing->pid);

	gdb->state = GDB_STOPPED;
	thread = thread ? thread : gdb_any_thread(gdb, standing->pid);
	if (!thread) {
		gdb_text_put(standing->reply, "E01");
		return;
	}
	if (!thread->is_pending)
		thread->event = (struct gdb_event){ .kind = GDB_EVENT_INTERRUPT, .signal = standing->signal };
	if (thread->event.kind == GDB_EVENT_INTERRUPT)
		thread->is_pending = false;
	gdb->general = gdb->running = (struct gdb_id){ standing->pid, thread->tid };
	gdb_tell_stop(thread, standing->reply);
}

void gdb_attach(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct standing standing = { gdb, 0, 0, reply };
	struct kymo_error *error;
	int pid;

	if (!gdb_take_int(words, &pid) || !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E01");
		return;
	}
	error = kymo_gdb_attach(gdb, pid);
	if (error) {
		gdb_say(gdb, "%s", error->message);
		gdb_text_put(reply, "E.");
		gdb_packet_escape(reply, error->message, strlen(error->message));
		kymo_error_destroy(error);
		return;
	}
	kymo_hub_run(gdb->hub, stop_all, gdb);
	standing.pid = pid;
	gdb_wait_for_stop(gdb, START_MS, -1);
	kymo_hub_run(gdb->hub, tell_standing, &standing);
}

/* ---- running --------------------------------------------------------------------------------- */

void gdb_free_argv(struct kymo_gdb *gdb)
{
	for (size_t i = 0; gdb->last_argv && gdb->last_argv[i]; i++)
		free(gdb->last_argv[i]);
	free(gdb->last_argv);
	gdb->last_argv = NULL;
}

/* "file;argument;…" in digits; an empty file is the program of the last time. */
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
	for (size_t i = 0; i < n; i++)
		free(argv[i]);
	free(argv);
	return NULL;
}

static void run_last(struct kymo_gdb *gdb, struct gdb_text *reply)
{
	struct standing standing = { gdb, 0, SIGTRAP, reply };
	struct kymo_error *error = kymo_gdb_launch(gdb, gdb->last_argv);

	if (error) {
		gdb_say(gdb, "%s", error->message);
		gdb_text_put(reply, "E01");
		kymo_error_destroy(error);
		return;
	}
	standing.pid = gdb->processes.items[gdb->processes.n - 1]->pid;
	kymo_hub_run(gdb->hub, tell_standing, &standing);
}

void gdb_run(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	char **argv = take_argv(words, gdb->last_argv ? gdb->last_argv[0] : NULL);

	if (!argv) {
		gdb_text_put(reply, "E01");
		return;
	}
	gdb_free_argv(gdb);
	gdb->last_argv = argv;
	run_last(gdb, reply);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void kill_process(void *data)
{
	const struct gdb_look *look = data;
	const siginfo_t info = { .si_signo = SIGKILL };

	for (size_t i = 0; i < look->gdb->processes.n; i++) {
		const struct gdb_process *process = look->gdb->processes.items[i];
		const struct gdb_thread *thread = gdb_any_thread(look->gdb, process->pid);

		if (thread && (!look->pid || look->pid == process->pid))
			kymo_engine_inject(thread->engine, &info);
	}
}

/* Its end is not told. */
static void forget_process(void *data)
{
	const struct gdb_look *look = data;
	struct kymo_gdb *gdb = look->gdb;
	size_t n = 0;

	for (size_t i = 0; i < gdb->ends.n; i++)
		if (look->pid && gdb->ends.items[i].pid != look->pid)
			gdb->ends.items[n++] = gdb->ends.items[i];
	gdb->ends.n = n;
	for (size_t i = gdb->processes.n; i-- > 0;) {
		struct gdb_process *process = gdb->processes.items[i];

		if (process->has_ended && (!look->pid || look->pid == process->pid))
			gdb_drop_process(gdb, process);
	}
	gdb->state = GDB_STOPPED;
}

static bool kill_and_wait(struct kymo_gdb *gdb, pid_t pid)
{
	struct gdb_look look = { .gdb = gdb, .pid = pid };
	bool is_gone;

	kymo_hub_run(gdb->hub, kill_process, &look);
	is_gone = gdb_wait_until(gdb, pid, gdb_look_whether_gone, END_MS, -1);
	kymo_hub_run(gdb->hub, forget_process, &look);
	return is_gone;
}

void gdb_kill(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	int pid;

	if (gdb_take_int(words, &pid) && gdb_words_are_over(words) && pid && kill_and_wait(gdb, pid)) {
		gdb_say(gdb, "Killing process(es): %d", pid);
		gdb_text_put(reply, "OK");
	} else {
		gdb_text_put(reply, "E01");
	}
}

void gdb_kill_all(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb_say(gdb, "Killing all inferiors");
	kill_and_wait(gdb, 0);
	gdb->is_over |= !gdb->is_extended;
}

void gdb_restart(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_text unused = { 0 };

	if (!gdb->is_extended || !gdb->last_argv)
		return;
	kill_and_wait(gdb, 0);
	run_last(gdb, &unused);
	gdb_text_deinit(&unused);
}

struct leave {
	struct kymo_gdb *gdb;
	pid_t pid; /* 0: all */
	struct gdb_engines engines;
	size_t n;
};

static void leave(void *data)
{
	struct leave *it = data;
	struct kymo_gdb *gdb = it->gdb;

	for (size_t i = gdb->processes.n; i-- > 0;) {
		struct gdb_process *process = gdb->processes.items[i];

		if (it->pid && process->pid != it->pid)
			continue;
		gdb_leave_process(gdb, process, &it->engines);
		it->n++;
	}
}

/* Their threads run as they were. */
static size_t leave_and_wait(struct kymo_gdb *gdb, pid_t pid)
{
	struct leave it = { .gdb = gdb, .pid = pid };

	kymo_hub_run(gdb->hub, leave, &it);
	for (size_t i = 0; i < it.engines.n; i++) {
		kymo_engine_barrier(it.engines.items[i]);
		kymo_engine_put(it.engines.items[i]);
	}
	kymo_vec_deinit(&it.engines);
	return it.n;
}

void gdb_leave_all(struct kymo_gdb *gdb)
{
	leave_and_wait(gdb, 0);
}

void gdb_detach(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	int pid = 0;

	if ((gdb_take_char(words, ';') && !gdb_take_int(words, &pid)) || !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E01");
		return;
	}
	if (!pid && gdb->processes.n)
		pid = gdb->processes.items[0]->pid;
	gdb_say(gdb, "Detaching from process %d", pid);
	gdb_text_put(reply, pid && leave_and_wait(gdb, pid) ? "OK" : "E01");
	if (!gdb->processes.n && !gdb->is_extended)
		gdb->is_over = true;
}
