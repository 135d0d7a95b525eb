#include "gdb/begin.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gdb/events.h"
#include "gdb/state.h"
#include "gdb/tell.h"
#include "gdb/thread.h"
#include "gdb/wait.h"
#include "hub/hub.h"
#include "proc/proc.h"

enum { START_MS = 60000 };

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
	gdb_wait_until(gdb, begin.pid, gdb_look_whether_started, START_MS, -1);
	kymo_hub_run(gdb->hub, forget_start, &begin);
	if (begin.err) {
		kymo_hub_wait(gdb->hub, begin.pid, &status);
		return kymo_error_create(KYMO_ERROR_FAILED, "%s ended before it had begun, with status %d", argv[0],
					 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	}
	gdb_say(gdb, "Process %s created; pid = %d", argv[0], begin.pid);
	return NULL;
}
