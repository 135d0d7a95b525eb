#include "trace/held.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "trace/directory.h"

#define LARGE (64u << 20)
#define STACK_SIZE (64u << 10)

struct kymo_held {
	KYMO_VEC(int) fds;
};

static void *close_all(void *data)
{
	struct kymo_held *held = data;

	for (size_t i = 0; i < held->fds.n; i++)
		close(held->fds.items[i]);
	kymo_vec_deinit(&held->fds);
	free(held);
	return NULL;
}

static bool is_large(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size >= LARGE;
}

static void hold(struct kymo_held *held, int dirfd, const char *name)
{
	kymo_cleanup_close int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0 && is_large(fd) && kymo_vec_push(&held->fds, fd))
		fd = -1;
}

/* PATH.old, if it is this user's: another one could have devices in it, which are not to be opened. */
static DIR *open_old(const char *path)
{
	kymo_cleanup_free char *name = kymo_directory_name(path), *old = NULL;
	kymo_cleanup_close int fd = -1;
	DIR *directory = NULL;
	struct stat st;

	if (!name || asprintf(&old, "%s.old", name) < 0)
		return NULL;
	fd = open(old, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid())
		directory = fdopendir(fd);
	if (directory)
		fd = -1;
	return directory;
}

struct kymo_held *kymo_held_open(const char *path)
{
	kymo_cleanup_closedir DIR *directory = open_old(path);
	struct kymo_held *held;
	struct dirent *entry;

	held = directory ? calloc(1, sizeof(*held)) : NULL;
	while (held && (entry = readdir(directory)))
		hold(held, dirfd(directory), entry->d_name);
	if (held && !held->fds.n) {
		free(held);
		held = NULL;
	}
	return held;
}

void kymo_held_close(struct kymo_held *held)
{
	pthread_attr_t attributes;
	sigset_t all, mask;
	pthread_t thread;
	int err;

	if (!held)
		return;
	if (pthread_attr_init(&attributes)) {
		close_all(held);
		return;
	}
	pthread_attr_setstacksize(&attributes, STACK_SIZE);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &mask);
	err = pthread_create(&thread, &attributes, close_all, held);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	pthread_attr_destroy(&attributes);
	if (err)
		close_all(held);
}
