/*
 * The directory of a trace: made, and an earlier one moved out of the way.
 *
 * Root may record into a directory that others can write to, such as /tmp. Then every name may be exchanged between two
 * system calls. So:
 *
 *	1. The parent is opened once, and all that follows is relative to it. Its own path is the user's: links in it
 *	   are followed.
 *	2. A directory is looked at, and its files are removed, through one descriptor, which was opened without
 *	   following a link.
 *	3. It counts as a recording only if it belongs to the effective user. Also, it is empty, or its `metadata` is a
 *	regular file that begins as CTF's does.
 *	4. Files are removed by names that kymo gives to them, and only where there are no others.
 *	5. The new directory is one that belongs to the effective user and is empty, opened without following a link.
 *	6. A recorder has its directory locked (flock) as long as it lives. A directory is moved or removed by the
 *	   process that has it locked, and only if the name still means it then. So of several recorders that begin at
 *	   one moment, no two believe that the name is theirs. To look takes a shared lock, and what begins waits a
 *	   moment for that.
 *
 * What a user who can rename files in the parent can still do: an empty directory of that name is removed in place of
 * the earlier one, or something that lay in the parent is renamed within it. Such a user could do the same without
 * kymo.
 */
#ifndef KYMO_TRACE_DIRECTORY_H
#define KYMO_TRACE_DIRECTORY_H

#include "base/error.h"

#define KYMO_DIRECTORY_UNFINISHED ".metadata.new" /* kymo_ctf_write_metadata() renames it when it is whole */

/*
 * Make the directory `path`, with mode 0700 whatever the umask is, and open it: `fd_ret`. An earlier recording there
 * becomes PATH.old, and one that is there is removed. FAILED for anything else that is in the way, which is left as it
 * is.
 */
struct kymo_error *kymo_directory_make(const char *path, int *fd_ret);

/* Remove the directory of a recording that has failed, which kymo_directory_make() has opened as `fd`, with kymo's
 * files in it, as far as that goes. What `path` means meanwhile stays if it is another one. */
void kymo_directory_discard(const char *path, int fd);

/* Whether kymo_directory_make() would find something in the way, or no right to make the directory. Changes nothing. */
struct kymo_error *kymo_directory_check(const char *path);

/* `path` without slashes at its end: a fresh string, or NULL when memory is out. */
char *kymo_directory_name(const char *path);

#endif
