#include "probe/memory/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether two names are of one file; no file system is asked, as that of another user's program may never answer. */
static bool is_same_file(const char *a, const char *b)
{
	struct statx of_a, of_b;
	const int flags = AT_STATX_DONT_SYNC;

	return !statx(AT_FDCWD, a, flags, STATX_INO, &of_a) && !statx(AT_FDCWD, b, flags, STATX_INO, &of_b) &&
	       of_a.stx_dev_major == of_b.stx_dev_major && of_a.stx_dev_minor == of_b.stx_dev_minor &&
	       of_a.stx_ino == of_b.stx_ino;
}

/*
 * By its program: the file of this one, or a name that begins with "kymo". A recorder may not have come far enough to
 * be known by its memory. A program that lies about this keeps what a dead recorder has left.
 */
bool kymo_is_kymo(pid_t pid, int *err_ret)
{
	char link[32], path[PATH_MAX];
	const char *name;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	n = readlink(link, path, sizeof(path) - 1);
	if (err_ret)
		*err_ret = n < 0 ? -errno : 0;
	if (n < 0)
		return false;
	path[n] = '\0';
	name = strrchr(path, '/');
	return (name && !strncmp(name, "/kymo", 5)) || is_same_file(link, "/proc/self/exe");
}
