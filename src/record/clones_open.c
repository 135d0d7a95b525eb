#include "record/clones_open.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "probe/plan/faults.h"
#include "probe/snapshot/status.h"
#include "proc/launch.h"
#include "proc/linker.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/startup.h"
#include "proc/tree.h"
#include "procfs/maps.h"
#include "record/recording.h"
#include "record/stale.h"

#define LINKER "ld-linux-x86-64.so.2"

static bool is_file(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');

	return slash && !strcmp(slash + 1, name);
}

/* Threads are those of glibc if its linker sets them up. */
static struct kymo_error *check_linker(struct kymo_process *process)
{
	const uint64_t linker = kymo_linker_of(kymo_process_pid(process));
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(process, &maps);
	const struct kymo_map *map;
	bool is_glibcs;

	if (error)
		return error;
	map = linker ? kymo_maps_at(&maps, linker) : NULL;
	is_glibcs = map && is_file(map->path, LINKER);
	kymo_maps_deinit(&maps);
	return is_glibcs ? NULL
			 : kymo_error_create(KYMO_ERROR_UNSAFE,
					     "functions are cloned in programs that the dynamic linker of glibc loads "
					     "(" LINKER "), and this is none");
}

/* The arena is a gibibyte of addresses, of which little has memory. */
static struct kymo_error *check_limits(struct kymo_process *process)
{
	kymo_cleanup_free char *text = NULL;
	struct rlimit limit;

	if (prlimit(kymo_process_pid(process), RLIMIT_AS, NULL, &limit) || limit.rlim_cur != RLIM_INFINITY)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "clones take a gibibyte of addresses, and those of this program are limited "
					 "(ulimit -v)");
	if (!kymo_read_file(AT_FDCWD, "/proc/sys/vm/overcommit_memory", 64, &text, NULL) && *text == '2')
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "clones take a gibibyte of addresses, and vm.overcommit_memory is 2");
	return NULL;
}

struct kymo_error *clones_check(struct kymo_process *process)
{
	struct kymo_error *error = check_limits(process);

	return error ? error : check_linker(process);
}

static struct kymo_error *start_up(struct kymo_process *process)
{
	enum kymo_startup_event event = KYMO_STARTUP_MAPPED;
	struct kymo_error *error = clones_check(process);

	while (!error && event != KYMO_STARTUP_LOADED && event != KYMO_STARTUP_ENDED)
		error = kymo_process_startup(process, &event);
	if (!error && event == KYMO_STARTUP_ENDED)
		error = kymo_error_create(KYMO_ERROR_GONE, "the command has ended before its files were linked");
	return error;
}

static struct kymo_error *launch(struct recording *recording)
{
	struct recording_run *run = &recording->run;
	struct kymo_error *error = kymo_process_launch(recording->wanted.options->command, &run->process);

	if (!error)
		error = kymo_tree_create(&run->tree);
	if (!error)
		error = kymo_tree_take(run->tree, run->process);
	return error ? error : start_up(run->process);
}

/* A handler of faults may look where it is, and finds a clone. */
static struct kymo_error *check_handlers(struct kymo_process *process)
{
	const pid_t pid = kymo_process_pid(process);

	if (!kymo_faults_of(kymo_handled_signals(pid)))
		return NULL;
	return kymo_error_create(KYMO_ERROR_UNSAFE,
				 "process %d handles faults (SIGSEGV, SIGBUS, SIGFPE or SIGILL), and its handler may "
				 "look where it is: its functions can't be cloned",
				 pid);
}

struct kymo_error *clones_check_running(struct kymo_process *process)
{
	struct kymo_error *error = clones_check(process);

	return error ? error : check_handlers(process);
}

/* It is not traced before its functions are known. */
static struct kymo_error *open_running(struct recording *recording)
{
	struct recording_run *run = &recording->run;
	struct kymo_error *error = kymo_process_open(recording->wanted.options->pid, &run->process);

	if (!error)
		error = recording_clear_stale(run->process);
	if (!error)
		error = clones_check_running(run->process);
	return error ? error : kymo_tree_create(&run->tree);
}

struct kymo_error *clones_open_process(struct recording *recording)
{
	return recording->wanted.options->command ? launch(recording) : open_running(recording);
}
