/*
 * Ask a flight recorder for a snapshot, as SIGUSR1 does, and wait for it. A process that is no flight recorder of
 * kymo's gets no signal: that would end it.
 *
 * What the recorder writes is found by its descriptors alone: its paths may mean something else here, and what is there
 * may be another user's. Files are opened without following links, and are regular ones of the directory's owner.
 */
#include "cli/cmd_snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/utf8.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "ctf/ctf.h"
#include "probe/memory/program.h"
#include "probe/probe.h"
#include "procfs/info.h"

#define WAIT_NS 10000000000u
#define LOOK_MS 10
#define METADATA_MAX (256u << 20)

static const struct cli_option option = { 1, 'q', "quiet", NULL };

/* ---- metadata -------------------------------------------------------------------------------- */

/* Of the directory; NULL where there are none, or memory is out. */
static char *read_metadata(int directory)
{
	kymo_cleanup_close int fd =
		openat(directory, "metadata", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat of_directory, st;
	char *text;

	if (fd < 0 || fstat(directory, &of_directory) || fstat(fd, &st) || !S_ISREG(st.st_mode) ||
	    st.st_uid != of_directory.st_uid || kymo_read_fd(fd, METADATA_MAX, &text, NULL))
		return NULL;
	return text;
}

/* The text of the environment after `key`. Texts of the target's are escaped there. */
static const char *find_env(const char *metadata, const char *key)
{
	char begin[64];
	const char *at;

	snprintf(begin, sizeof(begin), "\n\t%s = \"", key);
	at = strstr(metadata, begin);
	return at ? at + strlen(begin) : NULL;
}

static uint64_t metadata_number(const char *metadata, const char *key)
{
	const char *text = find_env(metadata, key);

	return text ? strtoull(text, NULL, 10) : 0;
}

/* ---- what a process is ----------------------------------------------------------------------- */

struct recorder {
	pid_t pid;
	int process;             /* a pidfd: its number may become another's */
	int directory, parent;   /* of its recording, and what that is in */
	char path[PATH_MAX];     /* of the directory, for messages */
	const char *name;        /* within it */
	bool is_flight_recorder; /* what fails is a snapshot */
};

static void recorder_deinit(struct recorder *recorder)
{
	if (recorder->directory >= 0)
		close(recorder->directory);
	if (recorder->parent >= 0)
		close(recorder->parent);
	close(recorder->process);
}

/* Whether it is the recorder that has written them, and they are no snapshot's. */
static bool is_of_recorder(const char *metadata, const struct kymo_process_info *info)
{
	const uint64_t start = metadata_number(metadata, KYMO_ENV_RECORDER_START);

	return metadata_number(metadata, KYMO_ENV_RECORDER) == (uint64_t)info->inner_pid &&
	       (!start || start == info->start_time) && !metadata_number(metadata, KYMO_ENV_SNAPSHOT);
}

/* Take the directory that is open as `entry`; false: it is not that of the recording. */
static bool take_directory(struct recorder *recorder, int descriptors, const char *entry,
			   const struct kymo_process_info *info, bool *has_any)
{
	kymo_cleanup_close int fd = openat(descriptors, entry, O_PATH | O_DIRECTORY | O_CLOEXEC);
	kymo_cleanup_free char *metadata = fd >= 0 ? read_metadata(fd) : NULL;
	ssize_t n;

	*has_any |= metadata != NULL;
	if (!metadata || !is_of_recorder(metadata, info))
		return false;
	n = readlinkat(descriptors, entry, recorder->path, sizeof(recorder->path) - 1);
	if (n <= 0 || recorder->path[0] != '/')
		return false;
	recorder->path[n] = '\0';
	recorder->name = strrchr(recorder->path, '/') + 1;
	recorder->parent = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (recorder->parent < 0)
		return false;
	recorder->directory = kymo_take_fd(fd);
	return true;
}

/* `has_any_ret`: there is one with metadata, if not of a flight recorder's. */
static bool find_directory(struct recorder *recorder, const struct kymo_process_info *info, bool *has_any_ret)
{
	kymo_cleanup_closedir DIR *descriptors = NULL;
	bool found = false;
	struct dirent *entry;
	char path[64];

	*has_any_ret = false;
	snprintf(path, sizeof(path), "/proc/%d/fd", recorder->pid);
	descriptors = opendir(path);
	while (descriptors && !found && (entry = readdir(descriptors)))
		found = *entry->d_name != '.' &&
			take_directory(recorder, dirfd(descriptors), entry->d_name, info, has_any_ret);
	return found;
}

static struct kymo_error *check_kymo(pid_t pid)
{
	int err;

	if (kymo_is_kymo(pid, &err))
		return NULL;
	if (err == -EACCES)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "process %d is another user's: that user, or root, can ask it", pid);
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "process %d is not a kymo process; it gets no signal", pid);
}

/* The signal ends a process that has no handler for it. */
static struct kymo_error *check_signal(pid_t pid, const struct kymo_process_info *info)
{
	const uint64_t bit = 1ull << (SIGUSR1 - 1);

	if (info->caught & bit)
		return NULL;
	if (info->ignored & bit)
		return kymo_error_create(KYMO_ERROR_FAILED,
					 "kymo process %d was started with SIGUSR1 ignored, and takes no snapshots on "
					 "request",
					 pid);
	return kymo_error_create(KYMO_ERROR_NOT_FOUND,
				 "kymo process %d does not record, or has not begun to: ask it a little later", pid);
}

/* With an error there is nothing to deinit, but is_flight_recorder is set. */
static struct kymo_error *recorder_init(pid_t pid, struct recorder *ret)
{
	struct recorder recorder = { .pid = pid, .process = pidfd_open(pid, 0), .directory = -1, .parent = -1 };
	struct kymo_process_info info = { .tgid = 0 };
	struct kymo_error *error;
	bool has_any = false;

	ret->is_flight_recorder = false;
	if (recorder.process < 0)
		return kymo_error_errno(errno, "there is no process %d to ask", pid);
	error = check_kymo(pid);
	if (!error)
		error = kymo_process_info(pid, &info);
	if (!error && !find_directory(&recorder, &info, &has_any))
		error = has_any ? kymo_error_create(KYMO_ERROR_NOT_FOUND,
						    "kymo process %d is no flight recorder: only 'kymo record' with "
						    "--keep or --overwrite has snapshots",
						    pid)
				: kymo_error_create(KYMO_ERROR_NOT_FOUND,
						    "kymo process %d does not record, or has not begun to: ask it a "
						    "little later",
						    pid);
	if (!error) {
		recorder.is_flight_recorder = true;
		error = check_signal(pid, &info);
	}
	*ret = recorder;
	if (!error) {
		ret->name = ret->path + (recorder.name - recorder.path);
		return NULL;
	}
	recorder_deinit(&recorder);
	return error;
}

/* ---- one recorder ---------------------------------------------------------------------------- */

enum state { ABSENT, BEGUN, WRITTEN };

/* Of snapshot `number`; `begin_ns_ret`: when it was begun, once it is written. Its metadata are written last. */
static enum state look_at_snapshot(const struct recorder *recorder, int number, uint64_t *begin_ns_ret)
{
	kymo_cleanup_free char *metadata = NULL;
	kymo_cleanup_close int fd = -1;
	char name[NAME_MAX + 16];

	snprintf(name, sizeof(name), "%s.%d", recorder->name, number);
	fd = openat(recorder->parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return ABSENT;
	metadata = read_metadata(fd);
	if (!metadata)
		return BEGUN;
	*begin_ns_ret = metadata_number(metadata, KYMO_ENV_SNAPSHOT);
	return WRITTEN;
}

/* Whether it has ended, after a while in which it has not. */
static bool has_ended(const struct recorder *recorder)
{
	struct pollfd ended = { .fd = recorder->process, .events = POLLIN };

	return poll(&ended, 1, LOOK_MS) == 1;
}

static struct kymo_error *none(const struct recorder *recorder, int number, const char *when)
{
	return kymo_error_create(KYMO_ERROR_FAILED,
				 "kymo process %d has written no snapshot to %s.%d%s; its own messages say why%s",
				 recorder->pid, recorder->path, number, when, *when ? ", or it is stopped" : "");
}

/*
 * Wait for a snapshot that was begun after `asked_ns`, from `number` on: one that a condition has asked for may come
 * before it. A snapshot that has begun may take as long as the disk needs.
 */
static struct kymo_error *wait_for(const struct recorder *recorder, uint64_t asked_ns, int number, int *ret)
{
	uint64_t end = kymo_now_ns() + WAIT_NS;
	bool has_begun = false;

	for (;;) {
		const bool ended = has_ended(recorder);
		uint64_t begin_ns = 0;
		const enum state state = look_at_snapshot(recorder, number, &begin_ns);

		if (state == WRITTEN && begin_ns >= asked_ns) {
			*ret = number;
			return NULL;
		}
		if (state == WRITTEN) {
			number++;
			has_begun = false;
			end = kymo_now_ns() + WAIT_NS;
			continue;
		}
		if (ended)
			return kymo_error_create(KYMO_ERROR_GONE,
						 "kymo process %d has ended, and has written no snapshot",
						 recorder->pid);
		if (has_begun && state == ABSENT)
			return none(recorder, number, "");
		has_begun = state == BEGUN;
		if (!has_begun && kymo_now_ns() > end)
			return none(recorder, number, " within 10 seconds");
	}
}

static struct kymo_error *ask_recorder(const struct recorder *recorder, bool quiet)
{
	int number = kymo_free_number(recorder->parent, recorder->name);
	const uint64_t asked_ns = kymo_now_ns();
	struct kymo_error *error;

	if (pidfd_send_signal(recorder->process, SIGUSR1, NULL, 0))
		return kymo_error_errno(errno, "kymo process %d cannot be asked", recorder->pid);
	error = wait_for(recorder, asked_ns, number, &number);
	if (!error && !quiet) {
		fputs("snapshot in ", stdout);
		kymo_utf8_print(stdout, recorder->path);
		printf(".%d\n", number);
		fflush(stdout);
	}
	return error;
}

/* `is_flight_recorder_ret`: an error is that of a snapshot. */
static struct kymo_error *ask_process(pid_t pid, bool quiet, bool *is_flight_recorder_ret)
{
	struct recorder recorder;
	struct kymo_error *error = recorder_init(pid, &recorder);

	*is_flight_recorder_ret = recorder.is_flight_recorder;
	if (error)
		return error;
	error = ask_recorder(&recorder, quiet);
	recorder_deinit(&recorder);
	return error;
}

/* ---- of a process ---------------------------------------------------------------------------- */

/* Several recorders: each failure is told, and those that are no flight recorders are passed over where another one
 * was asked. */
struct answers {
	size_t n_written, n_failed;
	struct kymo_error *refused; /* the last one */
};

static void take_answer(struct answers *answers, struct kymo_error *error, bool is_flight_recorder, bool is_alone)
{
	answers->n_written += !error;
	if (!error)
		return;
	if (!is_alone && (is_flight_recorder || error->code == KYMO_ERROR_PERMISSION)) {
		cli_warn("%s", error->message);
		answers->n_failed++;
		kymo_error_destroy(error);
		return;
	}
	kymo_error_destroy(answers->refused);
	answers->refused = error;
}

static struct kymo_error *refuse_recording(const struct kymo_status *recording, pid_t pid)
{
	if (recording->recorder == KYMO_RECORDER_ELSEWHERE)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "process %d is recorded from another PID namespace; run 'kymo snapshot' there "
					 "or on the host",
					 pid);
	return kymo_error_create(KYMO_ERROR_GONE, "the recorder of process %d is gone; 'kymo detach %d' cleans up", pid,
				 pid);
}

/* The exit status, or -1 and an error. */
static int ask_recorders(pid_t pid, bool quiet, struct kymo_error **error_ret)
{
	struct answers answers = { .n_written = 0 };
	struct kymo_status *all = NULL;
	struct kymo_error *error;
	size_t n = 0;

	error = kymo_status(pid, &all, &n);
	for (size_t i = 0; i < n; i++) {
		bool is_flight_recorder = false;
		struct kymo_error *refused = all[i].recorder > 0
						     ? ask_process(all[i].recorder, quiet, &is_flight_recorder)
						     : refuse_recording(&all[i], pid);

		take_answer(&answers, refused, is_flight_recorder, n == 1);
		kymo_status_deinit(&all[i]);
	}
	free(all);
	if (!error && (answers.n_written || answers.n_failed)) {
		kymo_error_destroy(answers.refused);
		return answers.n_failed ? 1 : 0;
	}
	if (error && error->code == KYMO_ERROR_NOT_FOUND) {
		kymo_error_destroy(error);
		error = kymo_error_create(
			KYMO_ERROR_NOT_FOUND,
			"process %d has no kymo probes; if it is recorded through the kernel, name the process "
			"of 'kymo record'",
			pid);
	}
	*error_ret = error ? error : answers.refused;
	return -1;
}

static int take_snapshots(pid_t pid, bool quiet)
{
	struct kymo_process_info info;
	struct kymo_error *error = NULL;
	bool is_flight_recorder;
	int status = -1;

	if (!kymo_process_peek(pid, &info))
		error = kymo_error_create(KYMO_ERROR_GONE, "there is no process %d", pid);
	else if (kymo_is_kymo(pid, NULL))
		error = ask_process(pid, quiet, &is_flight_recorder);
	else
		status = ask_recorders(pid, quiet, &error);
	if (status >= 0)
		return status;
	return error ? cli_fail("snapshot", error) : 0;
}

int cmd_snapshot(int argc, char **argv)
{
	const char *text;
	pid_t pid;
	bool quiet;
	int status = cli_flag_and_process("snapshot", &option, argc, argv, &quiet, &text);

	if (status >= 0)
		return status;
	if (!text)
		return cli_usage("snapshot", "of which process? give the PID of 'kymo record', or of what it records");
	if (!cli_parse_pid(text, &pid))
		return cli_usage("snapshot", "'%s' is no process id", text);
	return take_snapshots(pid, quiet);
}
