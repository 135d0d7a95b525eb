#include "gdb/begin.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gdb/events.h"
#include "gdb/join.h"
#include "gdb/state.h"
#include "gdb/stop.h"
#include "gdb/tell.h"
#include "gdb/thread.h"
#include "gdb/wait.h"
#include "hub/hub.h"
#include "hub/launch.h"
#include "proc/reach.h"
#include "procfs/info.h"

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
			gdb_change_state(gdb, GDB_LETS_RUN);
		return;
	}
	gdb_leave_at_once(gdb, process);
}

/* Its registers are not those that clients are told of, and a breakpoint in it would not be found again. */
static struct kymo_error *check_class(pid_t pid)
{
	if (gdb_is_narrow(pid))
		return kymo_error_create(KYMO_ERROR_BAD_DATA,
					 "process %d is a 32-bit program; kymo debugs 64-bit programs only", pid);
	return NULL;
}

static int attach_by_hub(void *data, pid_t *busy_ret)
{
	struct attach *it = data;

	kymo_hub_run(it->gdb->hub, attach, it);
	*busy_ret = it->busy;
	return it->err;
}

struct kymo_error *kymo_gdb_attach(struct kymo_gdb *gdb, pid_t tid, pid_t *pid_ret)
{
	struct attach it = { .gdb = gdb, .pid = kymo_process_of(tid, NULL) };
	struct kymo_error *error = check_class(it.pid);
	pid_t busy = it.pid;
	int err;

	if (error)
		return error;
	err = gdb_reach(gdb, attach_by_hub, &it, &busy);
	if (err)
		return kymo_trace_error(busy, err);
	if (pid_ret)
		*pid_ret = it.pid;
	gdb_say(gdb, "Attached; pid = %d", it.pid);
	return NULL;
}

/* ---- launching ------------------------------------------------------------------------------- */

struct begin {
	struct kymo_gdb *gdb;
	pid_t pid;
	unsigned int execs;
	int err;
};

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

static void look_whether_free(void *data)
{
	struct begin *begin = data;

	begin->err = begin->gdb->processes.n ? -EBUSY : 0;
}

/* A connection cannot launch, so it ends where the stub needs it no more. */
static int take_own_hub(struct begin *begin)
{
	if (!begin->gdb->has_joined)
		return 0;
	kymo_hub_run(begin->gdb->hub, look_whether_free, begin);
	return begin->err ? begin->err : gdb_take_own_hub(begin->gdb);
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
	err = kymo_hub_launch(gdb->hub, gdb->options.kills_launched ? KYMO_LAUNCH_EXITKILL : 0, argv, pid_ret);
	if (is_fixed)
		kymo_hub_run(gdb->hub, restore_personality, &before);
	environ = environment;
	if (here >= 0 && fchdir(here))
		return -errno;
	return err;
}

static void follow_launched(void *data)
{
	struct begin *begin = data;
	struct gdb_process *process = gdb_add_process(begin->gdb, begin->pid);
	struct gdb_thread *thread;

	begin->err = process ? gdb_follow(begin->gdb, process, begin->pid, &thread) : -ENOMEM;
	if (!process)
		return;
	process->is_launched = process->is_child = true;
	process->execs_left = begin->execs;
	if (!begin->err) {
		gdb_change_state(begin->gdb, GDB_STARTS);
		return;
	}
	process->is_child = false;
	gdb_drop_process(begin->gdb, process);
}

/* What was told of a process that has ended while it was started. */
static void forget_start(void *data)
{
	struct begin *begin = data;
	struct kymo_gdb *gdb = begin->gdb;
	struct gdb_process *process = gdb_find_process(gdb, begin->pid);

	gdb_change_state(gdb, GDB_STARTED);
	if (process && !process->has_ended)
		return;
	begin->err = -ECHILD;
	gdb_forget_ends(gdb, begin->pid);
	if (!process)
		return;
	process->is_child = false; /* the launch waits for it */
	gdb_drop_process(gdb, process);
}

/* { wrapper, program, arguments }. */
static char **join_words(char *const *wrapper, char *const *argv)
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

void gdb_free_argv(struct kymo_gdb *gdb)
{
	for (size_t i = 0; gdb->last_argv && gdb->last_argv[i]; i++)
		free(gdb->last_argv[i]);
	free(gdb->last_argv);
	gdb->last_argv = NULL;
}

/* For the next time. */
static void keep_argv(struct kymo_gdb *gdb, char *const *argv)
{
	char **copy;
	size_t n = 0;

	if (argv == gdb->last_argv)
		return;
	while (argv[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (size_t i = 0; copy && i < n; i++)
		copy[i] = strdup(argv[i]);
	gdb_free_argv(gdb);
	gdb->last_argv = copy;
}

/* End a process that has not begun as it should. No client is told. */
static void abandon(struct begin *begin)
{
	int status;

	kymo_hub_kill(begin->gdb->hub, begin->pid);
	kymo_hub_start(begin->gdb->hub, begin->pid);
	kymo_hub_wait(begin->gdb->hub, begin->pid, &status);
	kymo_hub_run(begin->gdb->hub, forget_start, begin);
}

static struct kymo_error *ended_early(struct begin *begin, const char *name)
{
	int status = 0;

	kymo_hub_wait(begin->gdb->hub, begin->pid, &status);
	return kymo_error_create(KYMO_ERROR_FAILED, "%s ended before it had begun, with status %d", name,
				 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

/* Let it execute its program, and wait until it stands there. */
static struct kymo_error *start(struct begin *begin, const char *name)
{
	struct kymo_gdb *gdb = begin->gdb;
	struct kymo_error *error;
	bool has_started;
	int err;

	kymo_hub_run(gdb->hub, follow_launched, begin);
	if (!begin->err)
		begin->err = kymo_hub_start(gdb->hub, begin->pid);
	if (begin->err) {
		err = begin->err;
		abandon(begin);
		return kymo_error_errno(err, "cannot trace %s", name);
	}
	has_started = gdb_wait_until(gdb, begin->pid, gdb_look_whether_started, START_MS, -1);
	kymo_hub_run(gdb->hub, forget_start, begin);
	if (begin->err)
		return ended_early(begin, name);
	error = has_started ? check_class(begin->pid)
			    : kymo_error_create(KYMO_ERROR_FAILED, "%s did not begin within %d seconds", name,
						START_MS / 1000);
	if (error)
		abandon(begin);
	return error;
}

struct kymo_error *kymo_gdb_launch(struct kymo_gdb *gdb, char *const *argv, pid_t *pid_ret)
{
	kymo_cleanup_free char **words = join_words(gdb->options.wrapper, argv);
	struct begin begin = { .gdb = gdb, .execs = gdb->options.wrapper ? 2 : 1 };
	struct kymo_error *error;

	if (!words)
		return &kymo_error_no_memory;
	keep_argv(gdb, argv);
	begin.err = take_own_hub(&begin);
	if (!begin.err)
		begin.err = launch(gdb, words, &begin.pid);
	if (begin.err)
		return kymo_error_errno(begin.err, "cannot run %s", words[0]);
	error = start(&begin, argv[0]);
	if (error)
		return error;
	if (pid_ret)
		*pid_ret = begin.pid;
	gdb_say(gdb, "Process %s created; pid = %d", argv[0], begin.pid);
	return NULL;
}
