/*
 * Where a hub's socket is follows from its user and its thread alone. So a process that finds the thread's id as a
 * TracerPid finds the socket: "hub-TID" in the first directory of a list that exists or can be made. Such a directory
 * belongs to the user, and no other user may enter it; any other directory is not used.
 *
 * The socket gets its name when the hub listens. So a socket that refuses connections was left by a hub that was
 * killed, and the next hub removes it.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "hub/remote/socket.h"
#include "procfs/info.h"

#define DIRECTORIES 3
#define BACKLOG 8

static bool name_directory(int i, uid_t uid, char *name, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	switch (i) {
	case 0:
		return uid == geteuid() && runtime && *runtime == '/' &&
		       (size_t)snprintf(name, size, "%s/kymo", runtime) < size;
	case 1:
		snprintf(name, size, uid ? "/run/user/%u/kymo" : "/run/kymo", uid);
		return true;
	default:
		snprintf(name, size, "/tmp/kymo-%u", uid);
		return true;
	}
}

/* A descriptor, or a negative errno. */
static int open_directory(int i, uid_t uid, bool makes)
{
	char name[4096];
	struct stat info;
	int fd;

	if (!name_directory(i, uid, name, sizeof(name)))
		return -ENOENT;
	if (makes && mkdir(name, 0700) && errno != EEXIST)
		return -errno;
	fd = open(name, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | (makes ? O_RDONLY : O_PATH));
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &info) && info.st_uid == uid && !(info.st_mode & 077))
		return fd;
	close(fd);
	return -EPERM;
}

/* So neither the length of the directory's name matters, nor whether it is renamed. */
static struct sockaddr_un address_of(int directory, const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/%s", directory, name);
	return address;
}

static int dial(int directory, const char *name, int *ret)
{
	struct sockaddr_un address = address_of(directory, name);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), err;

	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address))) {
		*ret = fd;
		return 0;
	}
	err = -errno;
	close(fd);
	return err;
}

/* ---- serving --------------------------------------------------------------------------------- */

static void close_directory(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

static void remove_left_over(int directory)
{
	kymo_cleanup(close_directory) DIR *list = NULL;
	int copy = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent *entry;

	list = copy < 0 ? NULL : fdopendir(copy);
	if (!list && copy >= 0)
		close(copy);
	while (list && (entry = readdir(list))) {
		int fd, err;

		if (strncmp(entry->d_name, "hub-", 4) || strlen(entry->d_name) > 20)
			continue;
		err = dial(directory, entry->d_name, &fd);
		if (!err)
			close(fd);
		if (err == -ECONNREFUSED)
			unlinkat(directory, entry->d_name, 0);
	}
}

static int listen_in(int directory, pid_t tid, struct hub_socket *listener)
{
	struct sockaddr_un address;
	char unready[32];
	int fd, err = 0;

	snprintf(unready, sizeof(unready), ".hub-%d", tid);
	snprintf(listener->name, sizeof(listener->name), "hub-%d", tid);
	address = address_of(directory, unready);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	unlinkat(directory, unready, 0);
	if (bind(fd, (struct sockaddr *)&address, sizeof(address))) {
		err = -errno;
	} else if (fchmodat(directory, unready, 0600, 0) || listen(fd, BACKLOG) ||
		   renameat(directory, unready, directory, listener->name)) {
		err = -errno;
		unlinkat(directory, unready, 0);
	}
	if (err) {
		close(fd);
		return err;
	}
	listener->socket = fd;
	listener->directory = directory;
	return 0;
}

int hub_socket_open(pid_t tid, struct hub_socket *ret)
{
	struct hub_socket listener;
	int err = -ENOENT;

	if (getauxval(AT_SECURE)) /* users that may run this program must not get privileges by it */
		return -EPERM;
	for (int i = 0; i < DIRECTORIES; i++) {
		int directory = open_directory(i, geteuid(), true);

		if (directory < 0) {
			err = directory;
			continue;
		}
		remove_left_over(directory);
		err = listen_in(directory, tid, &listener);
		if (!err) {
			*ret = listener;
			return 0;
		}
		close(directory);
	}
	return err;
}

void hub_socket_close(struct hub_socket *listener)
{
	unlinkat(listener->directory, listener->name, 0);
	close(listener->directory);
	close(listener->socket);
}

/* ---- connecting ------------------------------------------------------------------------------ */

int hub_socket_check_peer(int socket, pid_t pid)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return -errno;
	if (pid && peer.pid != pid)
		return -EPERM;
	return peer.uid == geteuid() || peer.uid == 0 || (pid && geteuid() == 0) ? 0 : -EPERM;
}

static int dial_in(int i, uid_t uid, pid_t tid, pid_t pid, int *ret)
{
	kymo_cleanup_close int directory = open_directory(i, uid, false);
	char name[32];
	int fd, err;

	if (directory < 0)
		return -ENOENT;
	snprintf(name, sizeof(name), "hub-%d", tid);
	err = dial(directory, name, &fd);
	if (err)
		return err == -EACCES ? -EPERM : err == -EAGAIN ? err : -ENOENT;
	err = hub_socket_check_peer(fd, pid);
	if (err)
		close(fd);
	else
		*ret = fd;
	return err;
}

int hub_socket_dial(pid_t tid, int *ret)
{
	struct kymo_process_info info;
	struct stat owner;
	char name[32];
	int err = -ENOENT;

	snprintf(name, sizeof(name), "/proc/%d", tid);
	if (!kymo_process_peek(tid, &info) || stat(name, &owner))
		return -ENOENT;
	for (int i = 0; i < 2 * DIRECTORIES && err == -ENOENT; i++)
		err = dial_in(i % DIRECTORIES, i < DIRECTORIES ? owner.st_uid : geteuid(), tid, info.tgid, ret);
	return err;
}
