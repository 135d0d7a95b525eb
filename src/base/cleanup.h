/*
 * Scope cleanup, after systemd's habit: `kymo_cleanup_free char *path = NULL;` is freed where its scope ends, and
 * kymo_take(path) gives it away.
 */
#ifndef KYMO_BASE_CLEANUP_H
#define KYMO_BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void kymo_cleanup_free_(void *p)
{
	free(*(void **)p);
}

static inline void kymo_cleanup_close_(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void kymo_cleanup_fclose_(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline void kymo_cleanup_closedir_(DIR **directory)
{
	if (*directory)
		closedir(*directory);
}

#define kymo_cleanup(destroy) __attribute__((cleanup(destroy)))
#define kymo_cleanup_free kymo_cleanup(kymo_cleanup_free_)
#define kymo_cleanup_close kymo_cleanup(kymo_cleanup_close_)
#define kymo_cleanup_fclose kymo_cleanup(kymo_cleanup_fclose_)
#define kymo_cleanup_closedir kymo_cleanup(kymo_cleanup_closedir_)

/* The pointer's value; the variable becomes NULL, so that its cleanup does nothing. */
#define kymo_take(pointer) \
	__extension__({ \
		__typeof__(pointer) taken_ = (pointer); \
		(pointer) = NULL; \
		taken_; \
	})

/* The same for a descriptor; the variable becomes -1. */
#define kymo_take_fd(fd) \
	__extension__({ \
		int taken_ = (fd); \
		(fd) = -1; \
		taken_; \
	})

#define kymo_countof(array) (sizeof(array) / sizeof((array)[0]))

#endif
