#include "gdb/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "gdb/events.h"
#include "gdb/packet.h"
#include "gdb/run.h"
#include "gdb/tell.h"
#include "gdb/thread.h"
#include "hub/hub.h"
#include "proc/proc.h"

enum { START_MS = 60000, END_MS = 10000, WORDS_MAX = 4096 };

/* ---- waiting --------------------------------------------------------------------------------- */

struct look {
	struct kymo_gdb *gdb;
	pid_t pid;
	bool is_true;
};

static void look_whether_stopped(void *data)
{
	struct look *look = data;
	const struct kymo_gdb *gdb = look->gdb;

	look->is_true = true;
	for (size_t i = 0; i < gdb->threads.n; i++)
		look->is_true &= gdb->threads.items[i]->is_dead || gdb->threads.items[i]->is_stopped;
}

static void look_whether_started(void *data)
{
	struct look *look = data;
	const struct gdb_process *process = gdb_find_process(look->gdb, look->pid);
	const struct gdb_thread *thread = gdb_any_thread(look->gdb, look->pid);

	look->is_true = !process || process->has_ended || (!process->execs_left && thread && thread->is_stopped);
}

static void look_whether_gone(void *data)
{
	struct look *look = data;
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
	struct look look = { .gdb = gdb, .pid = pid };
	uint64_t count;

	for (;;) {
		kymo_hub_run(gdb->hub, is_it, &look);
		if (look.is_true || kymo_now_ns() >= until || fds[1].revents)
			return look.is_true;
		if (poll(fds, kymo_countof(fds), 20) > 0 && fds[0].revents && read(gdb->wake, &count, sizeof(count)) < 0)
			continue;
	}
}

bool gdb_wait_for_stop(struct kymo_gdb *gdb, int ms, int fd)
{
	return wait_until(gdb, 0, look_whether_stopped, ms, fd);
}

/* ---- attaching ------------------------------------------------------------------------------- */

struct attach {
	struct kymo_gdb *gdb;
	pid_t pid, busy;
	int err;
};

static void attach(void *data)
{
	struct attach *it = data;
	struct kymo_gdb *gdb = it->gdb;
	struct gdb_engines engines = { 0 };
	struct gdb_process *process;

	it->busy = it->pid;
	if (gdb_find_process(gdb, it->pid)) {
		it->err = -EEXIST;
		return;
	}
	process = gdb_add_process(gdb, it->pid);
	it->err = process ? gdb_follow_process(gdb, process, &it->busy) : -ENOMEM;
	if (!it->err) {
		if (!gdb->is_client)
			gdb->state = GDB_RUNNING;
		return;
	}
	if (process)
		gdb_leave_process(gdb, process, &engines);
	for (size_t i = 0; i < engines.n; i++)
		kymo_engine_put(engines.items[i]);
	kymo_vec_deinit(&engines);
}

struct kymo_error *kymo_gdb_attach(struct kymo_gdb *gdb, pid_t pid)
{
	struct attach it = { .gdb = gdb, .pid = kymo_process_of(pid, NULL) };

	kymo_hub_run(gdb->hub, attach, &it);
	if (it.err)
		return kymo_trace_error(it.busy, it.err);
	gdb_say(gdb, "Attached; pid = %d", it.pid);
	return NULL;
}

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

/* ---- launching ------------------------------------------------------------------------------- */

static void turn_randomization_off(void *data)
{
	int *before = data;

	*before = personality(0xffffffff);
	if (*before >= 0)
		personality((unsigned long)*before | ADDR_NO_RANDOMIZE);
}

static void restore_personality(void *data)
{
	const int *before = data;

	if (*before >= 0)
		personality((unsigned long)*before);
}

/* The hub's thread forks, and what it has is inherited: working directory, environment, personality. */
static int launch(struct kymo_gdb *gdb, char *const *argv, pid_t *pid_ret)
{
	kymo_cleanup_close int here = *gdb->folder ? open(".", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	char **environment = environ;
	const bool is_fixed = !gdb->options.lets_randomize && !gdb->lets_randomize;
	int before = -1, err;

	if (*gdb->folder && (here < 0 || chdir(gdb->folder)))
		return -errno;
	if (gdb->environment)
		environ = gdb->environment;
	if (is_fixed)
		kymo_hub_run(gdb->hub, turn_randomization_off, &before);
	err = kymo_hub_launch(gdb->hub, 0, argv, pid_ret);
	if (is_fixed)
		kymo_hub_run(gdb->hub, restore_personality, &before);
	environ = environment;
	if (here >= 0 && fchdir(here))
		return -errno;
	return err;
}

struct begin {
	struct kymo_gdb *gdb;
	pid_t pid;
	unsigned int execs;
	int err;
};

static void follow_launched(void *data)
{
	struct begin *begin = data;
	struct gdb_process *process = gdb_add_process(begin->gdb, begin->pid);
	struct gdb_thread *thread;

	begin->err = process ? gdb_follow(begin->gdb, process, begin->pid, &thread) : -ENOMEM;
	if (!process)
		return;
	process->is_launched = true;
	process->execs_left = begin->execs;
	if (begin->err)
		gdb_drop_process(begin->gdb, process);
	else
		begin->gdb->state = GDB_STOPPING;
}

/* What was told of a process that has ended while it was started. */
static void forget_start(void *data)
{
	struct begin *begin = data;
	struct kymo_gdb *gdb = begin->gdb;
	struct gdb_process *process = gdb_find_process(gdb, begin->pid);
	size_t n = 0;

	gdb->state = GDB_STOPPED;
	if (process && !process->has_ended)
		return;
	begin->err = -ECHILD;
	for (size_t i = 0; i < gdb->ends.n; i++)
		if (gdb->ends.items[i].pid != begin->pid)
			gdb->ends.items[n++] = gdb->ends.items[i];
	gdb->ends.n = n;
	if (process)
		gdb_drop_process(gdb, process);
}

/* { wrapper, program, arguments }. */
static char **join(char *const *wrapper, char *const *argv)
{
	size_t n_wrapper = 0, n = 0;
	char **words;

	while (wrapper && wrapper[n_wrapper])
		n_wrapper++;
	while (argv[n])
		n++;
	words = calloc(n_wrapper + n + 1, sizeof(*words));
	for (size_t i = 0; words && i < n_wrapper + n; i++)
		words[i] = i < n_wrapper ? wrapper[i] : argv[i - n_wrapper];
	return words;
}

struct kymo_error *kymo_gdb_launch(struct kymo_gdb *gdb, char *const *argv)
{
	kymo_cleanup_free char **words = join(gdb->options.wrapper, argv);
	struct begin begin = { .gdb = gdb, .execs = gdb->options.wrapper ? 2 : 1 };
	int status = 0;

	if (!words)
		return &kymo_error_no_memory;
	begin.err = launch(gdb, words, &begin.pid);
	if (begin.err)
		return kymo_error_errno(begin.err, "cannot run %s", words[0]);
	kymo_hub_run(gdb->hub, follow_launched, &begin);
	if (!begin.err)
		begin.err = kymo_hub_start(gdb->hub, begin.pid);
	if (begin.err)
		return kymo_error_errno(begin.err, "cannot trace %s", argv[0]);
	wait_until(gdb, begin.pid, look_whether_started, START_MS, -1);
	kymo_hub_run(gdb->hub, forget_start, &begin);
	if (begin.err) {
		kymo_hub_wait(gdb->hub, begin.pid, &status);
		return kymo_error_create(KYMO_ERROR_FAILED, "%s ended before it had begun, with status %d", argv[0],
					 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
	gdb_say(gdb, "Process %s created; pid = %d", argv[0], begin.pid);
	return NULL;
}

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
	const struct look *look = data;
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
	const struct look *look = data;
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
	struct look look = { .gdb = gdb, .pid = pid };
	bool is_gone;

	kymo_hub_run(gdb->hub, kill_process, &look);
	is_gone = wait_until(gdb, pid, look_whether_gone, END_MS, -1);
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
