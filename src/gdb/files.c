/* Numbers of flags, modes and errors are the protocol's own (gdb manual, "File-I/O"). */
#include "gdb/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "gdb/packet.h"

enum { READ_MAX = GDB_PACKET_MAX / 2 };

/* ---- replies --------------------------------------------------------------------------------- */

static const struct {
	int here, there;
} errors[] = {
	{ EPERM, 1 },   { ENOENT, 2 },  { EINTR, 4 },   { EBADF, 9 },         { EACCES, 13 },
	{ EFAULT, 14 }, { EBUSY, 16 },  { EEXIST, 17 }, { ENODEV, 19 },       { ENOTDIR, 20 },
	{ EISDIR, 21 }, { EINVAL, 22 }, { ENFILE, 23 }, { EMFILE, 24 },       { EFBIG, 27 },
	{ ENOSPC, 28 }, { ESPIPE, 29 }, { EROFS, 30 },  { ENAMETOOLONG, 91 },
};

static void fail(struct gdb_text *reply, int err)
{
	int there = 9999;

	for (size_t i = 0; i < kymo_countof(errors); i++)
		if (errors[i].here == err)
			there = errors[i].there;
	gdb_text_format(reply, "F-1,%x", (unsigned int)there);
}

static void answer(struct gdb_text *reply, long result)
{
	if (result < 0)
		fail(reply, errno);
	else
		gdb_text_format(reply, "F%lx", (unsigned long)result);
}

/* ---- names and descriptors ------------------------------------------------------------------- */

static bool take_path(struct gdb_words *words, char ret[PATH_MAX])
{
	return gdb_take_hex_string(words, ret, PATH_MAX);
}

/* As the process sees it that vFile:setfs has named, which may have another root: no link leads out of that. */
static int open_path(const struct kymo_gdb *gdb, const char *path, int flags, mode_t mode)
{
	const struct open_how how = { .flags = (uint64_t)flags,
				      .mode = flags & O_CREAT ? mode : 0,
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	if (gdb->files_root < 0 || *path != '/')
		return open(path, flags, mode);
	return (int)syscall(SYS_openat2, gdb->files_root, path, &how, sizeof(how));
}

/* A slot's number is what the client has. */
static int *take_slot(struct kymo_gdb *gdb, struct gdb_words *words)
{
	uint64_t number;

	if (!gdb_take_number(words, &number) || number >= kymo_countof(gdb->files) || gdb->files[number] < 0)
		return NULL;
	return &gdb->files[number];
}

void gdb_init_files(struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < kymo_countof(gdb->files); i++)
		gdb->files[i] = -1;
	gdb->files_root = -1;
}

void gdb_close_files(struct kymo_gdb *gdb)
{
	for (size_t i = 0; i < kymo_countof(gdb->files); i++)
		if (gdb->files[i] >= 0)
			close(gdb->files[i]);
	if (gdb->files_root >= 0)
		close(gdb->files_root);
	gdb_init_files(gdb);
}

static int flags_of(uint64_t there)
{
	static const struct {
		int there, here;
	} flags[] = { { 0x8, O_APPEND }, { 0x200, O_CREAT }, { 0x400, O_TRUNC }, { 0x800, O_EXCL } };
	int here = O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (int)(there & 3);

	for (size_t i = 0; i < kymo_countof(flags); i++)
		if (there & (uint64_t)flags[i].there)
			here |= flags[i].here;
	return here;
}

/* ---- each call ------------------------------------------------------------------------------- */

static bool are_same_texts(const char *a, const char *b)
{
	struct stat here, there;

	return !stat(a, &here) && !stat(b, &there) && here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* The root is opened now, so that it is that of no other process that gets the id later. */
static void set_root(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	char root[64], space[64];
	int pid, fd = -1;

	if (!gdb_take_int(words, &pid) || !gdb_words_are_over(words)) {
		fail(reply, EINVAL);
		return;
	}
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	snprintf(space, sizeof(space), "/proc/%d/ns/mnt", pid);
	if (pid && !(are_same_texts("/", root) && are_same_texts("/proc/self/ns/mnt", space)) &&
	    (fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0) {
		fail(reply, errno);
		return;
	}
	if (gdb->files_root >= 0)
		close(gdb->files_root);
	gdb->files_root = fd;
	answer(reply, 0);
}

static void open_remote_file(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	char path[PATH_MAX];
	uint64_t flags, mode;
	size_t i = 0;
	int fd;

	if (!take_path(words, path) || !gdb_take_char(words, ',') || !gdb_take_number(words, &flags) ||
	    !gdb_take_char(words, ',') || !gdb_take_number(words, &mode) || !gdb_words_are_over(words)) {
		fail(reply, EINVAL);
		return;
	}
	while (i < kymo_countof(gdb->files) && gdb->files[i] >= 0)
		i++;
	if (i == kymo_countof(gdb->files)) {
		fail(reply, EMFILE);
		return;
	}
	fd = open_path(gdb, path, flags_of(flags), (mode_t)(mode & 0777));
	if (fd >= 0)
		gdb->files[i] = fd;
	answer(reply, fd < 0 ? -1 : (long)i);
}

static void close_file(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	int *slot = take_slot(gdb, words);

	if (!slot || !gdb_words_are_over(words)) {
		fail(reply, slot ? EINVAL : EBADF);
		return;
	}
	answer(reply, close(*slot));
	*slot = -1;
}

static void put_data(struct gdb_text *reply, const void *bytes, size_t n)
{
	n = gdb_packet_fitting(bytes, n, GDB_PACKET_MAX - 32);
	gdb_text_format(reply, "F%zx;", n);
	gdb_packet_escape(reply, bytes, n);
}

static void read_file(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const int *slot = take_slot(gdb, words);
	kymo_cleanup_free char *bytes = malloc(READ_MAX);
	uint64_t size, offset;
	ssize_t n;

	if (!slot || !bytes || !gdb_take_char(words, ',') || !gdb_take_number(words, &size) ||
	    !gdb_take_char(words, ',') || !gdb_take_number(words, &offset) || offset > INT64_MAX ||
	    !gdb_words_are_over(words)) {
		fail(reply, slot ? EINVAL : EBADF);
		return;
	}
	n = pread(*slot, bytes, size < READ_MAX ? size : READ_MAX, (off_t)offset);
	if (n < 0)
		fail(reply, errno);
	else
		put_data(reply, bytes, (size_t)n);
}

static void write_file(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const int *slot = take_slot(gdb, words);
	uint64_t offset;

	if (!slot || !gdb_take_char(words, ',') || !gdb_take_number(words, &offset) || offset > INT64_MAX ||
	    !gdb_take_char(words, ',')) {
		fail(reply, slot ? EINVAL : EBADF);
		return;
	}
	answer(reply, pwrite(*slot, words->at, gdb_words_left(words), (off_t)offset));
}

static void put_big(uint8_t **at, uint64_t value, size_t n)
{
	for (size_t i = n; i-- > 0;)
		*(*at)++ = (uint8_t)(value >> (8 * i));
}

/* struct stat of the protocol: big endian. */
static void stat_file(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const int *slot = take_slot(gdb, words);
	uint8_t bytes[64], *at = bytes;
	struct stat file;

	if (!slot || !gdb_words_are_over(words)) {
		fail(reply, slot ? EINVAL : EBADF);
		return;
	}
	if (fstat(*slot, &file)) {
		fail(reply, errno);
		return;
	}
	put_big(&at, file.st_dev, 4);
	put_big(&at, file.st_ino, 4);
	put_big(&at, file.st_mode, 4);
	put_big(&at, file.st_nlink, 4);
	put_big(&at, file.st_uid, 4);
	put_big(&at, file.st_gid, 4);
	put_big(&at, file.st_rdev, 4);
	put_big(&at, (uint64_t)file.st_size, 8);
	put_big(&at, (uint64_t)file.st_blksize, 8);
	put_big(&at, (uint64_t)file.st_blocks, 8);
	put_big(&at, (uint64_t)file.st_atime, 4);
	put_big(&at, (uint64_t)file.st_mtime, 4);
	put_big(&at, (uint64_t)file.st_ctime, 4);
	put_data(reply, bytes, sizeof(bytes));
}

/* In its directory, which is found first. */
static int unlink_path(const struct kymo_gdb *gdb, char *path)
{
	char *slash = strrchr(path, '/');
	kymo_cleanup_close int directory = -1;

	if (!slash)
		return unlink(path);
	*slash = '\0';
	directory = open_path(gdb, slash == path ? "/" : path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	return directory < 0 ? -1 : unlinkat(directory, slash + 1, 0);
}

static void remove_file(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	char path[PATH_MAX];

	if (take_path(words, path) && gdb_words_are_over(words))
		answer(reply, unlink_path(gdb, path));
	else
		fail(reply, EINVAL);
}

static void read_link(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	char path[PATH_MAX], text[PATH_MAX];
	kymo_cleanup_close int link = -1;
	ssize_t n;

	if (!take_path(words, path) || !gdb_words_are_over(words)) {
		fail(reply, EINVAL);
		return;
	}
	link = open_path(gdb, path, O_PATH | O_NOFOLLOW | O_CLOEXEC, 0);
	n = link < 0 ? -1 : readlinkat(link, "", text, sizeof(text));
	if (n < 0)
		fail(reply, errno);
	else
		put_data(reply, text, (size_t)n);
}

static const struct {
	const char *name;
	void (*run)(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
} calls[] = {
	{ "setfs:", set_root },     { "open:", open_remote_file }, { "close:", close_file },
	{ "pread:", read_file },    { "pwrite:", write_file },     { "fstat:", stat_file },
	{ "unlink:", remove_file }, { "readlink:", read_link },
};

void gdb_use_file(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	for (size_t i = 0; i < kymo_countof(calls); i++) {
		if (!gdb_take_text(words, calls[i].name))
			continue;
		calls[i].run(gdb, words, reply);
		return;
	}
}
