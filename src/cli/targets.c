#include "cli/targets.h"

#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "procfs/info.h"
#include "procfs/pidns.h"

#define COMM_SIZE 16
#define ARGV0_LIMIT 65536 /* bytes of a command line that are looked at */
#define NEAREST_MAX 3

/* What a process is called, in the three ways that users know. */
struct called {
	char comm[COMM_SIZE];
	char program[NAME_MAX + 1];
	char argv0[NAME_MAX + 1];
};

/* ---- process ids ----------------------------------------------------------------------------- */

static bool has_pid(const struct cli_targets *targets, pid_t pid)
{
	for (size_t i = 0; i < targets->pids.n; i++)
		if (targets->pids.items[i] == pid)
			return true;
	return false;
}

static struct kymo_error *add_pid(struct cli_targets *targets, pid_t pid)
{
	return has_pid(targets, pid) || kymo_vec_push(&targets->pids, pid) ? NULL : &kymo_error_no_memory;
}

struct kymo_error *cli_targets_add_pids(struct cli_targets *targets, const char *text)
{
	const size_t before = targets->pids.n;
	struct kymo_error *error = NULL;
	static const char blanks[] = " \t\n";
	const char *at = text + strspn(text, blanks);

	while (!error) {
		char word[16] = "";
		size_t length = strcspn(at, ", \t\n");
		pid_t pid;

		if (length < sizeof(word))
			memcpy(word, at, length);
		if (!cli_parse_pid(word, &pid))
			error = kymo_error_create(KYMO_ERROR_USAGE, "--pid '%.*s' is no process id", (int)length, at);
		else
			error = add_pid(targets, pid);
		at += length;
		at += strspn(at, blanks);
		if (!*at)
			break;
		at += *at == ',';
		at += strspn(at, blanks);
	}
	if (error)
		targets->pids.n = before;
	return error;
}

/* Ids of threads become those of their processes. */
static struct kymo_error *find_pids(struct cli_targets *targets)
{
	struct cli_targets found = { 0 };
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < targets->pids.n && !error; i++) {
		if (kymo_process_exists(targets->pids.items[i]))
			error = add_pid(&found, kymo_process_of(targets->pids.items[i], NULL));
		else
			error = kymo_error_create(KYMO_ERROR_NOT_FOUND, "there is no process %d",
						  targets->pids.items[i]);
	}
	if (error) {
		kymo_vec_deinit(&found.pids);
		return error;
	}
	kymo_vec_deinit(&targets->pids);
	targets->pids.items = found.pids.items;
	targets->pids.n = found.pids.n;
	targets->pids.cap = found.pids.cap;
	return NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

struct kymo_error *cli_targets_add_name(struct cli_targets *targets, const char *name)
{
	if (!*name)
		return kymo_error_create(KYMO_ERROR_USAGE, "--name needs the name of a program, not ''");
	return kymo_vec_push(&targets->names, name) ? NULL : &kymo_error_no_memory;
}

static void copy_last_part(const char *path, char ret[NAME_MAX + 1])
{
	snprintf(ret, NAME_MAX + 1, "%.*s", NAME_MAX, basename(path));
}

/* A login shell has a dash before its name. */
static void read_argv0(int directory, char ret[NAME_MAX + 1])
{
	kymo_cleanup_close int fd = openat(directory, "cmdline", O_RDONLY | O_CLOEXEC);
	kymo_cleanup_free char *text = calloc(1, ARGV0_LIMIT + 1);

	if (fd < 0 || !text || read(fd, text, ARGV0_LIMIT) <= 0)
		return;
	copy_last_part(text + (*text == '-'), ret);
}

static void read_program(int directory, char ret[NAME_MAX + 1])
{
	char path[PATH_MAX], *deleted;
	ssize_t length = readlinkat(directory, "exe", path, sizeof(path) - 1);

	if (length <= 0) /* another user's is not readable */
		return;
	path[length] = '\0';
	deleted = strstr(path, " (deleted)");
	if (deleted)
		*deleted = '\0';
	copy_last_part(path, ret);
}

static void read_program_of_kymo(char ret[NAME_MAX + 1])
{
	kymo_cleanup_close int self = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (self >= 0)
		read_program(self, ret);
}

/* False for what has no program (a kernel thread, a process that has ended), and for kymo itself, whichever copy of it.
 */
static bool read_called(pid_t pid, struct called *ret)
{
	kymo_cleanup_close int directory = -1;
	char path[64], own[NAME_MAX + 1] = "";

	memset(ret, 0, sizeof(*ret));
	snprintf(path, sizeof(path), "/proc/%d", pid);
	directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (directory < 0)
		return false;
	kymo_read_comm(pid, ret->comm);
	read_argv0(directory, ret->argv0);
	read_program(directory, ret->program);
	read_program_of_kymo(own);
	return *ret->argv0 && *ret->comm && strcmp(ret->program, own) && strcmp(ret->comm, own);
}

static bool is_called(const struct called *called, const char *name)
{
	return !fnmatch(name, called->comm, 0) || !fnmatch(name, called->argv0, 0) ||
	       !fnmatch(name, called->program, 0);
}

static int by_id(const void *a, const void *b)
{
	const pid_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* All processes that there are now, by id. */
static struct kymo_error *list_processes(struct cli_targets *ret)
{
	kymo_cleanup_closedir DIR *processes = opendir("/proc");
	struct kymo_error *error = kymo_proc_check();
	struct dirent *entry;
	pid_t pid;

	if (!error && !processes)
		return kymo_error_create(KYMO_ERROR_FAILED, "cannot read /proc: %m");
	while (!error && (entry = readdir(processes)))
		if (cli_parse_pid(entry->d_name, &pid) && !kymo_vec_push(&ret->pids, pid))
			error = &kymo_error_no_memory;
	if (ret->pids.n)
		qsort(ret->pids.items, ret->pids.n, sizeof(*ret->pids.items), by_id);
	return error;
}

/* ", did you mean 'nginx' or 'nginx-debug'?" into `out`, or "". */
static void suggest(const char *name, const struct cli_targets *all, char *out, size_t size)
{
	kymo_cleanup_free char(*names)[COMM_SIZE] = calloc(all->pids.n + 1, sizeof(*names));
	kymo_cleanup_free const char **words = calloc(all->pids.n + 1, sizeof(*words));
	size_t n = 0, length = 0;
	struct called called;
	const char *near;

	*out = '\0';
	for (size_t i = 0; names && words && i < all->pids.n; i++)
		if (read_called(all->pids.items[i], &called)) {
			memcpy(names[n], called.comm, COMM_SIZE);
			words[n] = names[n];
			n++;
		}
	for (unsigned int i = 0; i < NEAREST_MAX && length < size && (near = cli_nearest(name, words, n)); i++) {
		size_t left = 0;

		length += (size_t)snprintf(out + length, size - length, "%s'%s'", i ? " or " : "; did you mean ", near);
		for (size_t k = 0; k < n; k++) /* each name once */
			if (strcmp(words[k], near))
				words[left++] = words[k];
		n = left;
	}
	if (length && length < size - 1)
		strcpy(out + length, "?");
}

static struct kymo_error *find_named_targets(struct cli_targets *targets, const char *name,
					     const struct cli_targets *all, FILE *told)
{
	struct kymo_error *error = NULL;
	struct called called;
	char near[256];
	size_t n = 0;

	for (size_t i = 0; i < all->pids.n && !error; i++) {
		pid_t pid = all->pids.items[i];

		if (pid == getpid() || !read_called(pid, &called) || !is_called(&called, name))
			continue;
		error = add_pid(targets, pid);
		if (told && !n)
			fprintf(told, "kymo: --name %s matches %d", name, pid);
		else if (told)
			fprintf(told, ", %d", pid);
		n++;
	}
	if (told && n)
		fputc('\n', told);
	if (error || n)
		return error;
	suggest(name, all, near, sizeof(near));
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "no process is called '%s'%s", name, near);
}

bool cli_targets_is_empty(const struct cli_targets *targets)
{
	return !targets->pids.n && !targets->names.n;
}

struct kymo_error *cli_targets_find(struct cli_targets *targets, FILE *told)
{
	struct kymo_error *error = find_pids(targets);
	struct cli_targets all = { 0 };

	if (!error && targets->names.n)
		error = list_processes(&all);
	for (size_t i = 0; i < targets->names.n && !error; i++)
		error = find_named_targets(targets, targets->names.items[i], &all, told);
	kymo_vec_deinit(&all.pids);
	return error;
}

void cli_targets_deinit(struct cli_targets *targets)
{
	kymo_vec_deinit(&targets->pids);
	kymo_vec_deinit(&targets->names);
}
