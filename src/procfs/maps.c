#include "procfs/maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/page.h"
#include "base/search.h"
#include "base/vec.h"
#include "procfs/info.h"
#include "procfs/pidns.h"

#define MAPS_LIMIT (64u << 20)
#define REACH ((1ull << 31) - (16ull << 20)) /* of a rel32, less room for what is around */
#define KEEP_CLEAR (64ull << 20)             /* for the heap above, the stack below */
#define BELOW_LIBRARIES \
	(64ull << 30) /* what is mapped later comes right below them; further down sanitizers and others keep \
			 addresses for themselves */
#define USER_LOW (1ull << 20)
#define USER_HIGH (1ull << 47)

#define PERMISSIONS 4

/* A number and the character after it, which `at_ret` is moved past. */
static bool take_number(char **at_ret, int base, char behind, uint64_t *ret)
{
	char *end;

	*ret = strtoull(*at_ret, &end, base);
	if (end == *at_ret || *end != behind)
		return false;
	*at_ret = end + 1;
	return true;
}

static bool take_permissions(char **at_ret, struct kymo_map *ret)
{
	const char *permissions = *at_ret;

	if (strnlen(permissions, PERMISSIONS + 1) <= PERMISSIONS || permissions[PERMISSIONS] != ' ')
		return false;
	ret->readable = permissions[0] == 'r';
	ret->writable = permissions[1] == 'w';
	ret->executable = permissions[2] == 'x';
	ret->shared = permissions[3] == 's';
	*at_ret += PERMISSIONS + 1;
	return true;
}

/* "start-end rwxp offset major:minor inode   path". By hand: sscanf() takes over three times as many
 * instructions. */
static bool parse_line(char *line, struct kymo_map *ret)
{
	static const char deleted[] = " (deleted)";
	uint64_t major, minor;
	size_t length;

	memset(ret, 0, sizeof(*ret));
	if (!take_number(&line, 16, '-', &ret->start) || !take_number(&line, 16, ' ', &ret->end) ||
	    !take_permissions(&line, ret) || !take_number(&line, 16, ' ', &ret->offset) ||
	    !take_number(&line, 16, ':', &major) || !take_number(&line, 16, ' ', &minor) ||
	    !take_number(&line, 10, ' ', &ret->inode))
		return false;
	ret->major = (uint32_t)major;
	ret->minor = (uint32_t)minor;
	line += strspn(line, " ");
	length = strlen(line);
	if (length > sizeof(deleted) - 1 && !strcmp(line + length - (sizeof(deleted) - 1), deleted)) {
		ret->deleted = true;
		line[length - (sizeof(deleted) - 1)] = '\0';
	}
	ret->path = line;
	return true;
}

/* procfs writes \n in a path as \012; the rest is as it is. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from;) {
		if (!strncmp(from, "\\012", 4)) {
			*to++ = '\n';
			from += 4;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

struct kymo_error *kymo_maps_read(pid_t pid, struct kymo_maps *ret)
{
	struct kymo_maps maps = { 0 };
	kymo_cleanup_free char *text = NULL;
	struct kymo_error *error = kymo_proc_check();
	char name[64], *rest = NULL;
	int err;

	if (error)
		return error;
	snprintf(name, sizeof(name), "/proc/%d/maps", pid);
	err = kymo_read_file(AT_FDCWD, name, MAPS_LIMIT, &text, NULL);
	if (!err && !*text && kymo_live_thread(pid) != pid) {
		free(kymo_take(text));
		snprintf(name, sizeof(name), "/proc/%d/maps", kymo_live_thread(pid));
		err = kymo_read_file(AT_FDCWD, name, MAPS_LIMIT, &text, NULL);
	}
	if (err == -ENOENT || err == -ESRCH)
		return kymo_error_create(KYMO_ERROR_GONE, "there is no process %d", pid);
	if (err)
		return kymo_error_errno(err, "cannot read %s", name);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		struct kymo_map map;

		if (!parse_line(line, &map))
			continue;
		map.path = strdup(map.path);
		if (!map.path || !kymo_vec_push(&maps, map)) {
			free(map.path);
			kymo_maps_deinit(&maps);
			return &kymo_error_no_memory;
		}
		unescape(map.path);
	}
	*ret = maps;
	return NULL;
}

/* All of them are in one file system of the kernel's (shmem_kernel_file_setup() in mm/shmem.c), which is mounted
 * nowhere. */
static bool find_device(uint64_t *ret)
{
	kymo_cleanup_close int fd = memfd_create("kymo-device", MFD_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return false;
	*ret = st.st_dev;
	return true;
}

bool kymo_is_memfd(const struct kymo_map *map)
{
	static _Atomic(uint64_t) known;
	uint64_t device = known;

	if (!device && !find_device(&device))
		return false;
	known = device;
	return map->deleted && map->major == major(device) && map->minor == minor(device);
}

struct kymo_error *kymo_maps_copy(const struct kymo_maps *maps, struct kymo_maps *ret)
{
	struct kymo_maps copy = { 0 };

	if (!kymo_vec_reserve(&copy, maps->n))
		return &kymo_error_no_memory;
	for (; copy.n < maps->n; copy.n++) {
		copy.items[copy.n] = maps->items[copy.n];
		copy.items[copy.n].path = strdup(maps->items[copy.n].path);
		if (!copy.items[copy.n].path) {
			kymo_maps_deinit(&copy);
			return &kymo_error_no_memory;
		}
	}
	*ret = copy;
	return NULL;
}

void kymo_maps_deinit(struct kymo_maps *maps)
{
	for (size_t i = 0; i < maps->n; i++)
		free(maps->items[i].path);
	kymo_vec_deinit(maps);
}

struct kymo_map_part kymo_map_part(const struct kymo_map *map)
{
	return (struct kymo_map_part){ .inode = map->inode,
				       .offset = map->offset,
				       .size = map->end - map->start,
				       .major = map->major,
				       .minor = map->minor };
}

bool kymo_map_is_part(const struct kymo_map *map, const struct kymo_map_part *part)
{
	return part->inode == map->inode && part->major == map->major && part->minor == map->minor &&
	       part->offset == map->offset && part->size == map->end - map->start;
}

const struct kymo_map *kymo_maps_at(const struct kymo_maps *maps, uint64_t address)
{
	size_t at = kymo_partition_point(i, maps->n, maps->items[i].end <= address);

	return at < maps->n && maps->items[at].start <= address ? &maps->items[at] : NULL;
}

/* The usable part of the hole before mapping `i` (i == n: after the last). */
static void hole_before(const struct kymo_maps *maps, size_t i, uint64_t *low_ret, uint64_t *high_ret)
{
	uint64_t low = USER_LOW, high = USER_HIGH - (1ull << 30);

	if (i > 0) {
		low = maps->items[i - 1].end;
		if (!strcmp(maps->items[i - 1].path, "[heap]"))
			low += KEEP_CLEAR;
	}
	if (i < maps->n) {
		high = maps->items[i].start;
		if (!strcmp(maps->items[i].path, "[stack]"))
			high = high > KEEP_CLEAR ? high - KEEP_CLEAR : 0;
	}
	*low_ret = low;
	*high_ret = high > USER_HIGH ? USER_HIGH : high;
}

uint64_t kymo_maps_hole(const struct kymo_maps *maps, uint64_t low, uint64_t high, uint64_t size)
{
	uint64_t least = high > REACH ? high - REACH : USER_LOW; /* of the hole's start */
	uint64_t most = low + REACH;                             /* of its end */
	uint64_t best = 0;

	size = kymo_page_up(size);
	for (size_t i = 0; i <= maps->n; i++) {
		uint64_t from, to;

		hole_before(maps, i, &from, &to);
		if (from < least)
			from = least;
		if (to > most)
			to = most;
		from = kymo_page_up(from);
		to = kymo_page_down(to);
		if (from >= to || to - from < size)
			continue;
		if (to <= low)
			best = to - size; /* the last such is the nearest below */
		else if (!best)
			return from + (to - from - size > KEEP_CLEAR ? KEEP_CLEAR : kymo_page_down(to - from - size));
	}
	return best;
}

uint64_t kymo_maps_hole_anywhere(const struct kymo_maps *maps, uint64_t size)
{
	uint64_t best = 0, best_size = 0;

	size = kymo_page_up(size);
	for (size_t i = 0; i <= maps->n; i++) {
		uint64_t from, to;

		hole_before(maps, i, &from, &to);
		if (to > from && to - from >= size + 2 * KEEP_CLEAR && to - from > best_size) {
			uint64_t spare = (to - from - size) / 2;

			best_size = to - from;
			best = kymo_page_down(to - size - (spare < BELOW_LIBRARIES ? spare : BELOW_LIBRARIES));
		}
	}
	return best;
}

/* A path of the process' own may lead to anything by now; nothing but a file may block us, or become our terminal. */
static int open_for_reading(const char *name)
{
	return open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Why nothing was opened. A process that has ended has no files, whatever is at their paths. */
static struct kymo_error *not_opened(pid_t pid, const struct kymo_map *map, int err)
{
	struct kymo_process_info info;

	if (!kymo_process_peek(kymo_live_thread(pid), &info) || info.state == 'Z' || info.state == 'X')
		return kymo_error_create(KYMO_ERROR_GONE, "process %d has ended", pid);
	if (map->deleted)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "%s was deleted since process %d mapped it; run kymo as root to read it",
					 map->path, pid);
	return kymo_error_errno(err, "cannot open %s of process %d", map->path, pid);
}

struct kymo_error *kymo_open_mapped(pid_t pid, const struct kymo_map *map, int *fd_ret)
{
	kymo_cleanup_close int fd = -1;
	char name[4400];
	struct stat st;

	if (map->path[0] != '/')
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "the memory at 0x%" PRIx64 " of process %d is not of a file", map->start, pid);
	snprintf(name, sizeof(name), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, map->start, map->end);
	fd = open_for_reading(name);
	if (fd < 0 &&
	    kymo_live_thread(pid) != pid) { /* the first thread has ended before the others, and has no memory */
		pid = kymo_live_thread(pid);
		snprintf(name, sizeof(name), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, pid, map->start, map->end);
		fd = open_for_reading(name);
	}
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode)))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "%s, which process %d has mapped, is not a regular file",
					 map->path, pid);
	if (fd < 0 && snprintf(name, sizeof(name), "/proc/%d/root%s", pid, map->path) < (int)sizeof(name)) {
		fd = open_for_reading(name);
		/* The device differs between maps and stat on some filesystems (btrfs, overlay); the inode does not. */
		if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_ino != map->inode))
			return kymo_error_create(
				KYMO_ERROR_NOT_FOUND,
				"%s was replaced since process %d mapped it; restart the process, or run kymo as root",
				map->path, pid);
	}
	if (fd < 0)
		return not_opened(pid, map, errno);
	*fd_ret = kymo_take_fd(fd);
	return NULL;
}

bool kymo_is_of_file(int fd, const struct kymo_map *map, uint64_t address, const void *bytes, size_t size)
{
	uint8_t file[64];

	return fd >= 0 && size <= sizeof(file) &&
	       !kymo_pread_all(fd, file, size, (off_t)(map->offset + (address - map->start))) &&
	       !memcmp(file, bytes, size);
}

bool kymo_is_of_mapped_file(pid_t pid, const struct kymo_map *map, uint64_t address, const void *bytes, size_t size)
{
	kymo_cleanup_close int fd = -1;

	kymo_error_destroy(kymo_open_mapped(pid, map, &fd));
	return kymo_is_of_file(fd, map, address, bytes, size);
}
