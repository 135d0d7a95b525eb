#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

int kymo_write_all(int fd, const void *data, size_t size)
{
	struct iovec part = { (void *)(uintptr_t)data, size };

	return kymo_writev_all(fd, &part, 1);
}

int kymo_writev_all(int fd, struct iovec *parts, int n)
{
	while (n > 0) {
		ssize_t done;

		if (!parts->iov_len) {
			parts++, n--;
			continue;
		}
		done = writev(fd, parts, n);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		for (size_t left = (size_t)done; left;) {
			size_t step = left < parts->iov_len ? left : parts->iov_len;

			parts->iov_base = (char *)parts->iov_base + step;
			parts->iov_len -= step;
			left -= step;
			if (!parts->iov_len)
				parts++, n--;
		}
	}
	return 0;
}

enum direction { READ, WRITE };

static int transfer_at(int fd, char *at, size_t size, off_t offset, enum direction direction)
{
	while (size) {
		const ssize_t done = direction == READ ? pread(fd, at, size, offset) : pwrite(fd, at, size, offset);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		at += done;
		offset += done;
		size -= (size_t)done;
	}
	return 0;
}

int kymo_pread_all(int fd, void *data, size_t size, off_t offset)
{
	return transfer_at(fd, data, size, offset, READ);
}

int kymo_pwrite_all(int fd, const void *data, size_t size, off_t offset)
{
	return transfer_at(fd, (char *)(uintptr_t)data, size, offset, WRITE); /* which is only read then */
}

int kymo_read_fd(int fd, size_t limit, char **ret, size_t *size_ret)
{
	kymo_cleanup_free char *data = NULL;
	size_t size = 0, cap = 0;

	for (;;) {
		ssize_t done;

		if (size + 1 >= cap) {
			char *grown = realloc(data, cap = cap ? cap * 2 : 4096);

			if (!grown)
				return -ENOMEM;
			data = grown;
		}
		done = read(fd, data + size, cap - size - 1);
		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (!done)
			break;
		size += (size_t)done;
		if (size > limit)
			return -EFBIG;
	}
	data[size] = '\0';
	*ret = kymo_take(data);
	if (size_ret)
		*size_ret = size;
	return 0;
}

int kymo_read_file(int dirfd, const char *path, size_t limit, char **ret, size_t *size_ret)
{
	kymo_cleanup_close int fd = openat(dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	return fd < 0 ? -errno : kymo_read_fd(fd, limit, ret, size_ret);
}

int kymo_free_number(int dirfd, const char *path)
{
	int number = 1;

	for (; number < KYMO_NUMBERS; number++) {
		kymo_cleanup_free char *numbered = NULL;
		struct stat st;

		if (asprintf(&numbered, "%s.%d", path, number) < 0) {
			numbered = NULL;
			return KYMO_NUMBERS;
		}
		if (fstatat(dirfd, numbered, &st, AT_SYMLINK_NOFOLLOW) && errno == ENOENT)
			break;
	}
	return number;
}

uint64_t kymo_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
