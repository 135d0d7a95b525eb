/*
 * Ask a flight recorder for a snapshot, as SIGUSR1 does, and wait for it. A process that is no flight recorder of
 * kymo's gets no signal: that would end it.
 */
#include "cli/cmd_snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
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
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "probe/probe.h"
#include "procfs/info.h"

#define WAIT_NS 10000000000u
#define LOOK_NS 10000000
#define NUMBER_MAX 1000000
#define METADATA_MAX (256u << 20)

static const struct cli_option option = { 1, 'q', "quiet", NULL };

/* ---- what a process is ----------------------------------------------------------------------- */

/* A running kymo, as its file is called: one that was replaced meanwhile is "kymo (deleted)". */
static bool is_kymo(pid_t pid)
{
	char path[32], file[PATH_MAX];
	const char *name;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, file, sizeof(file) - 1);
	if (n <= 0)
		return false;
	file[n] = '\0';
	name = strrchr(file, '/');
	return name && (!strcmp(name, "/kymo") || !strcmp(name, "/kymo (deleted)"));
}

/* The directory of the recording: the one that it has open with metadata in it. */
static bool find_directory(pid_t pid, char ret[PATH_MAX])
{
	char path[64];
	bool found = false;
	struct dirent *entry;
	DIR *descriptors;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	descriptors = opendir(path);
	while (descriptors && !found && (entry = readdir(descriptors))) {
		const ssize_t n = readlinkat(dirfd(descriptors), entry->d_name, ret, PATH_MAX - 1);
		char file[PATH_MAX + 16];
		struct stat st;

		if (n <= 0)
			continue;
		ret[n] = '\0';
		snprintf(file, sizeof(file), "%s/metadata", ret);
		found = *ret == '/' && !stat(ret, &st) && S_ISDIR(st.st_mode) && !stat(file, &st);
	}
	if (descriptors)
		closedir(descriptors);
	return found;
}

/* What its metadata say of the recording: the signal ends all others. Texts of the target's are escaped there. */
static bool is_flight_recorder(const char *directory)
{
	kymo_cleanup_free char *text = NULL;
	char path[PATH_MAX + 16];

	snprintf(path, sizeof(path), "%s/metadata", directory);
	return !kymo_read_file(AT_FDCWD, path, METADATA_MAX, &text, NULL) &&
	       strstr(text, "\n\tmode = \"overwrite\";\n");
}

/* ---- one recorder ---------------------------------------------------------------------------- */

/* The first that is free, as the recorder finds it. */
static int free_number(const char *directory)
{
	int number = 1;

	for (; number < NUMBER_MAX; number++) {
		char path[PATH_MAX + 16];
		struct stat st;

		snprintf(path, sizeof(path), "%s.%d", directory, number);
		if (lstat(path, &st))
			break;
	}
	return number;
}

static bool has_ended(pid_t pid)
{
	struct kymo_process_info info;

	return !kymo_process_peek(pid, &info) || info.state == 'Z' || info.state == 'X';
}

/* Its metadata are written last. */
static struct kymo_error *wait_for(pid_t recorder, const char *directory, int number)
{
	const uint64_t end = kymo_now_ns() + WAIT_NS;
	char path[PATH_MAX + 32];
	struct stat st;

	snprintf(path, sizeof(path), "%s.%d/metadata", directory, number);
	while (stat(path, &st)) {
		if (has_ended(recorder))
			return stat(path, &st)
				       ? kymo_error_create(KYMO_ERROR_GONE,
							   "kymo process %d has ended, and has written no snapshot",
							   recorder)
				       : NULL;
		if (kymo_now_ns() > end)
			return kymo_error_create(
				KYMO_ERROR_FAILED,
				"kymo process %d has written no snapshot to %s.%d within 10 seconds; its own messages "
				"say why, or it is stopped",
				recorder, directory, number);
		nanosleep(&(struct timespec){ 0, LOOK_NS }, NULL);
	}
	return NULL;
}

static struct kymo_error *check_recorder(pid_t recorder)
{
	if (!is_kymo(recorder) && errno == EACCES)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "process %d is another user's: that user, or root, can ask it", recorder);
	if (!is_kymo(recorder))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "process %d is no kymo, and no process is asked that may not know the signal",
					 recorder);
	return NULL;
}

static struct kymo_error *ask(pid_t recorder, bool quiet)
{
	const int fd = pidfd_open(recorder, 0); /* its id may become another's while it is looked at */
	struct kymo_error *error = NULL;
	char directory[PATH_MAX];
	int number, failed;

	if (fd < 0)
		return kymo_error_errno(errno, "there is no process %d to ask", recorder);
	error = check_recorder(recorder);
	if (!error && !find_directory(recorder, directory))
		error = kymo_error_create(KYMO_ERROR_NOT_FOUND,
					  "kymo process %d does not record, or has not begun to: ask it a little later",
					  recorder);
	if (!error && !is_flight_recorder(directory))
		error = kymo_error_create(KYMO_ERROR_NOT_FOUND,
					  "kymo process %d is no flight recorder: only 'kymo record' with --keep or "
					  "--overwrite has snapshots",
					  recorder);
	if (error) {
		close(fd);
		return error;
	}
	number = free_number(directory);
	failed = pidfd_send_signal(fd, SIGUSR1, NULL, 0) ? errno : 0;
	close(fd);
	if (failed)
		return kymo_error_errno(failed, "kymo process %d cannot be asked", recorder);
	error = wait_for(recorder, directory, number);
	if (!error && !quiet) {
		fputs("snapshot in ", stdout);
		cli_print_text(stdout, directory);
		printf(".%d\n", number);
	}
	return error;
}

/* ---- of a process ---------------------------------------------------------------------------- */

/* Each flight recorder of the process; `n_ret` is how many were asked. The error of the last one that was not. */
static struct kymo_error *ask_recorders(pid_t pid, bool quiet, size_t *n_ret)
{
	struct kymo_status *all = NULL;
	struct kymo_error *error, *refused = NULL;
	size_t n = 0;

	*n_ret = 0;
	error = kymo_status(pid, &all, &n);
	for (size_t i = 0; i < n; i++) {
		if (!error && !all[i].recorder && !refused)
			refused = kymo_error_create(KYMO_ERROR_GONE,
						    "the recorder of process %d is gone; 'kymo detach %d' cleans up",
						    pid, pid);
		else if (!error && all[i].recorder) {
			kymo_error_destroy(refused);
			refused = ask(all[i].recorder, quiet);
			*n_ret += !refused;
		}
		kymo_status_deinit(&all[i]);
	}
	free(all);
	if (!error || error->code != KYMO_ERROR_NOT_FOUND)
		return error ? error : refused;
	kymo_error_destroy(error);
	return kymo_error_create(
		KYMO_ERROR_NOT_FOUND,
		"process %d has no kymo probes; if it is recorded through the kernel, name the process "
		"of 'kymo record'",
		pid);
}

static struct kymo_error *take_snapshots(pid_t pid, bool quiet)
{
	struct kymo_process_info info;
	struct kymo_error *error;
	size_t n;

	if (!kymo_process_peek(pid, &info))
		return kymo_error_create(KYMO_ERROR_GONE, "there is no process %d", pid);
	if (is_kymo(pid))
		return ask(pid, quiet);
	error = ask_recorders(pid, quiet, &n);
	if (!n)
		return error;
	kymo_error_destroy(error); /* of several recorders one had a snapshot */
	return NULL;
}

int cmd_snapshot(int argc, char **argv)
{
	struct kymo_error *error;
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
	error = take_snapshots(pid, quiet);
	return error ? cli_fail("snapshot", error) : 0;
}
