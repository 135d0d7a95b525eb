#include "trace/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define LOCK_TRIES 20 /* 5 ms apart: for as long as another process only looks */
#define OPEN_AS_IT_IS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* ---- names ----------------------------------------------------------------------------------- */

/* Where a trace is to be: `name` in the directory open as `parent`; `path` for messages. */
struct target_directory {
	int parent;
	char *path, *name, *old;
};

char *kymo_directory_name(const char *path)
{
	size_t size = strlen(path);

	while (size > 1 && path[size - 1] == '/')
		size--;
	return strndup(path, size);
}

static void target_directory_deinit(struct target_directory *target)
{
	if (target->parent >= 0)
		close(target->parent);
	free(target->path);
	free(target->name);
	free(target->old);
}

/* A copy of what is before the last slash: "." where there is none. */
static char *parent_of(const char *path, const char *slash)
{
	if (!slash)
		return strdup(".");
	return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static struct kymo_error *target_directory_init(const char *path, struct target_directory *ret)
{
	struct target_directory target = { .parent = -1, .path = kymo_directory_name(path) };
	const char *slash = target.path ? strrchr(target.path, '/') : NULL;
	kymo_cleanup_free char *parent = target.path ? parent_of(target.path, slash) : NULL;
	struct kymo_error *error = NULL;

	target.name = target.path ? strdup(slash ? slash + 1 : target.path) : NULL;
	if (!target.name || asprintf(&target.old, "%s.old", target.name) < 0)
		target.old = NULL;
	if (!parent || !target.old)
		error = &kymo_error_no_memory;
	else if (!*target.name || !strcmp(target.name, ".") || !strcmp(target.name, ".."))
		error = kymo_error_create(KYMO_ERROR_FAILED,
					  "'%s' cannot be the name of a new directory; choose another with -o", path);
	if (!error) {
		target.parent = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (target.parent < 0)
			error = kymo_error_errno(errno, "cannot make the directory %s", path);
	}
	if (error) {
		target_directory_deinit(&target);
		return error;
	}
	*ret = target;
	return NULL;
}

/* ---- what is there --------------------------------------------------------------------------- */

static bool is_name_of_kymo(const char *name)
{
	static const char *const begins[] = { "stream_", "kernel_", "calls_",
					      "branches_" }; /* of streams: trace.c, kernel_stream.c */

	for (size_t i = 0; i < kymo_countof(begins); i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return !strcmp(name, "metadata") || !strcmp(name, KYMO_DIRECTORY_UNFINISHED);
}

/*
 * Calls `see` for each entry until that returns false, which is returned then, with the entry's name in `name_ret`
 * (which may be NULL). Entries may be removed meanwhile. False also where the directory cannot be read.
 */
static bool for_each(int fd, bool (*see)(int fd, const char *name), char name_ret[NAME_MAX + 1])
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	kymo_cleanup_closedir DIR *directory = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *entry;
	bool goes_on = directory;

	if (!directory && copy >= 0)
		close(copy);
	while (goes_on && (entry = readdir(directory))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		goes_on = see(fd, entry->d_name);
		if (!goes_on && name_ret)
			snprintf(name_ret, NAME_MAX + 1, "%s", entry->d_name);
	}
	return goes_on;
}

/* The one that a recorder was writing first of all when it was killed. */
static bool is_unfinished(int fd, const char *name)
{
	return !strcmp(name, KYMO_DIRECTORY_UNFINISHED);
}

static bool is_regular_of_kymo(int fd, const char *name)
{
	struct stat st;

	return is_name_of_kymo(name) && !fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode);
}

static bool unlink_but_metadata(int fd, const char *name)
{
	return !strcmp(name, "metadata") || !is_regular_of_kymo(fd, name) || !unlinkat(fd, name, 0);
}

/* The metadata go last: they tell that the directory is a recording, should this process be killed meanwhile. */
static bool unlink_all(int fd)
{
	return for_each(fd, unlink_but_metadata, NULL) &&
	       (!is_regular_of_kymo(fd, "metadata") || !unlinkat(fd, "metadata", 0));
}

static bool is_empty(int fd)
{
	return for_each(fd, is_unfinished, NULL);
}

/* The file may be a pipe, or change while it is looked at: it is only read. */
static bool has_metadata(int fd)
{
	static const char mark[] = "/* CTF 1.8";
	kymo_cleanup_close int metadata =
		openat(fd, "metadata", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	char begin[sizeof(mark)];
	struct stat st;

	return metadata >= 0 && !fstat(metadata, &st) && S_ISREG(st.st_mode) &&
	       read(metadata, begin, sizeof(mark) - 1) == sizeof(mark) - 1 && !memcmp(begin, mark, sizeof(mark) - 1);
}

static struct kymo_error *in_the_way(const struct target_directory *target, const char *suffix, const char *why)
{
	return kymo_error_create(KYMO_ERROR_FAILED, "%s%s exists and %s; choose another directory with -o",
				 target->path, suffix, why);
}

/* The process that holds the lock; 0: it is not known. */
static pid_t owner_of(int fd)
{
	kymo_cleanup_fclose FILE *locks = fopen("/proc/locks", "re");
	char line[256];
	struct stat st;

	if (fstat(fd, &st))
		return 0;
	while (locks && fgets(line, sizeof(line), locks)) {
		unsigned long inode;
		int pid;

		if (sscanf(line, "%*d: FLOCK %*s WRITE %d %*x:%*x:%lu", &pid, &inode) == 2 && inode == st.st_ino)
			return pid;
	}
	return 0;
}

/* To look, others may look, too; what is to be changed is waited for. False: another process has it. */
static bool lock(int fd, bool changes)
{
	const struct timespec pause = { .tv_nsec = 5000000 };

	for (int i = 0; flock(fd, (changes ? LOCK_EX : LOCK_SH) | LOCK_NB); i++) {
		if (errno != EWOULDBLOCK)
			return true; /* some file systems have no locks */
		if (!changes || i == LOCK_TRIES)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}

/*
 * Lock what is to be looked at, or moved or removed (`changes`), until `fd` is closed. A recorder that lives would go
 * on in a directory of another name, and lose that with the next recording. One that has just made the directory and
 * not locked it yet finds that it is taken (make_new()).
 */
static struct kymo_error *lock_earlier(const struct target_directory *target, const char *suffix, bool changes, int fd)
{
	char why[64] = "another kymo process records into it";
	pid_t pid;

	if (lock(fd, changes))
		return NULL;
	pid = owner_of(fd);
	if (pid > 0)
		snprintf(why, sizeof(why), "kymo process %d records into it", pid);
	return in_the_way(target, suffix, why);
}

/* Whether the name means that directory still. */
static bool is_called(const struct target_directory *target, const char *name, const struct stat *st)
{
	struct stat now;

	return !fstatat(target->parent, name, &now, AT_SYMLINK_NOFOLLOW) && now.st_dev == st->st_dev &&
	       now.st_ino == st->st_ino;
}

/* An empty directory that this process has made; one that has its name meanwhile stays. */
static void remove_if_called(const struct target_directory *target, const struct stat *st)
{
	if (is_called(target, target->name, st))
		(void)unlinkat(target->parent, target->name, AT_REMOVEDIR);
}

/* Open what is called `name`, PATH with `suffix`, if it is a recording; `fd_ret` stays as it is where there is nothing.
 * FAILED where it is something else. */
static struct kymo_error *open_earlier(const struct target_directory *target, const char *name, const char *suffix,
				       bool changes, int *fd_ret)
{
	kymo_cleanup_close int fd = openat(target->parent, name, OPEN_AS_IT_IS);
	struct kymo_error *error;
	struct stat st;

	if (fd < 0 && errno == ENOENT)
		return NULL;
	if (fd < 0 && errno != ENOTDIR && errno != ELOOP)
		return kymo_error_errno(errno, "cannot look at %s%s", target->path, suffix);
	if (fd < 0 || fstat(fd, &st))
		return in_the_way(target, suffix, "is not a recording of kymo's");
	if (st.st_uid != geteuid())
		return in_the_way(target, suffix, "belongs to another user");
	if (!is_empty(fd) && !has_metadata(fd))
		return in_the_way(target, suffix, "is not a recording of kymo's");
	error = lock_earlier(target, suffix, changes, fd);
	if (!error && !is_called(target, name, &st)) /* moved before it was locked here */
		error = in_the_way(target, suffix, "is being moved by another kymo process");
	if (!error)
		*fd_ret = kymo_take_fd(fd);
	return error;
}

/* What is at PATH and, if there is something, at PATH.old; to move and remove it, if `changes`. */
static struct kymo_error *look_up(const struct target_directory *target, bool changes, int *fd_ret, int *old_ret)
{
	struct kymo_error *error = open_earlier(target, target->name, "", changes, fd_ret);
	char other_file[NAME_MAX + 1] = "";

	if (!error && *fd_ret >= 0)
		error = open_earlier(target, target->old, ".old", changes, old_ret);
	if (!error && *old_ret >= 0 && !for_each(*old_ret, is_regular_of_kymo, other_file))
		error = kymo_error_create(
			KYMO_ERROR_FAILED,
			"%s.old has '%s' in it, which is not kymo's; move it, or choose another directory with -o",
			target->path, other_file);
	return error;
}

/* ---- moving and making ----------------------------------------------------------------------- */

/* A recording's files, then itself. */
static struct kymo_error *remove_old(const struct target_directory *target, int fd)
{
	if (!unlink_all(fd) || unlinkat(target->parent, target->old, AT_REMOVEDIR))
		return kymo_error_errno(errno, "cannot remove the earlier recording %s.old", target->path);
	return NULL;
}

static struct kymo_error *move_earlier(const struct target_directory *target)
{
	kymo_cleanup_close int earlier = -1, old = -1;
	struct kymo_error *error = look_up(target, true, &earlier, &old);

	if (!error && old >= 0)
		error = remove_old(target, old);
	if (!error && earlier >= 0 && renameat(target->parent, target->name, target->parent, target->old))
		error = kymo_error_errno(errno, "cannot move the earlier recording %s to %s.old", target->path,
					 target->path);
	return error;
}

/* A umask may have taken the owner's rights, too: then the directory cannot be opened before it has them. */
static int open_new(const struct target_directory *target)
{
	kymo_cleanup_close int path =
		openat(target->parent, target->name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	char link[64];
	struct stat st;
	int fd;

	if (path < 0 || fstat(path, &st))
		return -errno;
	if (st.st_uid != geteuid())
		return -EEXIST;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path);
	if ((st.st_mode & 07777) != 0700 && chmod(link, 0700))
		return -errno;
	fd = openat(path, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Another recorder may take it for an earlier recording, which is empty, until it is locked. */
static struct kymo_error *make_new(const struct target_directory *target, int *fd_ret)
{
	struct stat st;
	bool is_locked;
	int fd;

	if (mkdirat(target->parent, target->name, 0700))
		return errno == EEXIST ? in_the_way(target, "", "was made by another process just now")
				       : kymo_error_errno(errno, "cannot make the directory %s", target->path);
	fd = open_new(target);
	if (fd < 0)
		return kymo_error_errno(fd, "cannot open %s", target->path);
	if (!is_empty(fd)) {
		close(fd);
		return in_the_way(target, "", "is not the directory that kymo has just made");
	}
	is_locked = lock(fd, true);
	if (!is_locked || fstat(fd, &st) || !is_called(target, target->name, &st)) {
		if (!is_locked && lock(fd, false) && !fstat(fd, &st)) /* no process moves it */
			remove_if_called(target, &st);
		close(fd);
		return in_the_way(target, "", "another kymo process has taken it");
	}
	*fd_ret = fd;
	return NULL;
}

struct kymo_error *kymo_directory_make(const char *path, int *fd_ret)
{
	struct target_directory target;
	struct kymo_error *error = target_directory_init(path, &target);

	if (error)
		return error;
	error = move_earlier(&target);
	if (!error)
		error = make_new(&target, fd_ret);
	target_directory_deinit(&target);
	return error;
}

struct kymo_error *kymo_directory_check(const char *path)
{
	kymo_cleanup_close int earlier = -1, old = -1;
	struct target_directory target;
	struct kymo_error *error = target_directory_init(path, &target);

	if (error)
		return error;
	error = look_up(&target, false, &earlier, &old);
	if (!error && faccessat(target.parent, ".", W_OK | X_OK, AT_EACCESS))
		error = kymo_error_errno(errno, "cannot make the directory %s", path);
	target_directory_deinit(&target);
	return error;
}

void kymo_directory_discard(const char *path, int fd)
{
	struct target_directory target;
	struct kymo_error *error = target_directory_init(path, &target);
	struct stat st;

	if (error) {
		kymo_error_destroy(error);
		return;
	}
	if (!fstat(fd, &st) && unlink_all(fd))
		remove_if_called(&target, &st);
	target_directory_deinit(&target);
}
