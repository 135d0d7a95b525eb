/* From the bare names that people use to files: programs in PATH, libraries in the dynamic linker's cache. */
#include "sym/files.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/io.h"

#define CACHE "/etc/ld.so.cache"
#define CACHE_MAX (64u << 20)

static const char *const library_directories[] = {
	"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib",
};

/* ---- whether a name means a file ------------------------------------------------------------- */

/* Past "2.36.0" at `text`, or `text` itself. */
static const char *skip_version(const char *text)
{
	while (isdigit((unsigned char)*text)) {
		while (isdigit((unsigned char)*text))
			text++;
		if (*text != '.' || !isdigit((unsigned char)text[1]))
			break;
		text++;
	}
	return text;
}

/* Whether `rest` is what follows a name in that of a file: [.VERSION or -VERSION][.so[.VERSION]] */
static bool is_suffix(const char *rest)
{
	if ((*rest == '.' || *rest == '-') && isdigit((unsigned char)rest[1]))
		rest = skip_version(rest + 1);
	if (!strncmp(rest, ".so", 3)) {
		rest += 3;
		/* Versions of libraries may have letters: libcrypto.so.1.0.2k */
		if (*rest == '.' && isdigit((unsigned char)rest[1]))
			rest += strspn(rest, "0123456789.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_+~-");
	}
	return !*rest;
}

static bool is_called(const char *name, const char *file)
{
	size_t length = strlen(name);

	return length && !strncmp(name, file, length) && is_suffix(file + length);
}

/* Where /lib is a link to /usr/lib, files have two paths: the one without /usr. */
static const char *without_usr(const char *path)
{
	if (!strncmp(path, "/usr/lib", 8) || !strncmp(path, "/usr/bin/", 9) || !strncmp(path, "/usr/sbin/", 10))
		return path + 4;
	return path;
}

/* Whether `path` ends in the relative path `name`, after its leading "./" and "../". */
static bool ends_in(const char *path, const char *name)
{
	size_t length, path_length = strlen(path);

	for (;;) {
		if (!strncmp(name, "./", 2))
			name += 2;
		else if (!strncmp(name, "../", 3))
			name += 3;
		else if (*name == '/')
			name++;
		else
			break;
	}
	length = strlen(name);
	return length && path_length > length && path[path_length - length - 1] == '/' &&
	       !strcmp(path + path_length - length, name);
}

bool kymo_name_matches_file(const char *name, const char *path, const char *soname)
{
	if (!*name)
		return false;
	if (!strcmp(name, path))
		return true;
	if (*name == '/')
		return !strcmp(without_usr(name), without_usr(path));
	if (strchr(name, '/'))
		return ends_in(path, name);
	return is_called(name, basename(path)) || (soname && is_called(name, soname));
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* The best file so far. */
struct choice {
	const char *name;
	char *path;
	char *file; /* what was compared with the name */
	int rank;   /* 3: exact, 2: NAME.so…, 1: another that is called so */
};

static int rank_of(const char *name, const char *file)
{
	size_t length = strlen(name);

	if (!strcmp(name, file))
		return 3;
	if (!is_called(name, file) || !strstr(file, ".so"))
		return 0;
	return !strncmp(file + length, ".so", 3) ? 2 : 1;
}

/* Consider `file`, to be found at `path`. Of several versions take the highest. False when memory is out. */
static bool consider(void *data, const char *file, const char *path)
{
	struct choice *choice = data;
	int rank = rank_of(choice->name, file);
	struct stat st;
	char *copies[2];

	if (!rank || rank < choice->rank || (rank == choice->rank && strverscmp(file, choice->file) <= 0))
		return true;
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return true;
	copies[0] = strdup(path);
	copies[1] = strdup(file);
	if (!copies[0] || !copies[1]) {
		free(copies[0]);
		free(copies[1]);
		return false;
	}
	free(choice->path);
	free(choice->file);
	choice->path = copies[0];
	choice->file = copies[1];
	choice->rank = rank;
	return true;
}

/* ---- the dynamic linker's cache -------------------------------------------------------------- */

static const char cache_magic[] = "glibc-ld.so.cache1.1";
static const char old_cache_magic[] = "ld.so-1.7.0";

struct cache_header {
	char magic[sizeof(cache_magic) - 1];
	uint32_t n, strings_size, flags, extension, unused[3];
};

/* Offsets of strings count from the start of cache_header. */
struct cache_entry {
	int32_t flags;
	uint32_t key, value, os_version;
	uint64_t hwcap;
};

#define CACHE_ELF_LIBC6_X86_64 0x0303

_Static_assert(sizeof(struct cache_header) == 48 && sizeof(struct cache_entry) == 24, "the layout of ld.so.cache");

/* The offset of the cache after one in the form of libc5, which some distributions still write before it. */
static size_t skip_old_cache(const char *data, size_t size)
{
	uint32_t n;
	size_t end;

	if (size < 16 || memcmp(data, old_cache_magic, sizeof(old_cache_magic) - 1))
		return 0;
	memcpy(&n, data + 12, sizeof(n));
	end = 16 + (size_t)n * 12;
	end = (end + 7) & ~(size_t)7;
	return end < size ? end : size;
}

static const char *cache_string(const char *data, size_t size, uint32_t offset)
{
	return offset < size && memchr(data + offset, '\0', size - offset) ? data + offset : NULL;
}

bool sym_each_library(bool (*take)(void *data, const char *file, const char *path), void *data_of_take)
{
	kymo_cleanup_free char *buffer = NULL;
	struct cache_header header;
	const char *data;
	size_t size, at;

	/*
	 * The buffer ends in a NUL beyond `size`, so that looking for the end of a string costs no more than the
	 * string.
	 */
	if (kymo_read_file(AT_FDCWD, CACHE, CACHE_MAX, &buffer, &size))
		return true;
	at = skip_old_cache(buffer, size);
	data = buffer + at;
	size -= at;
	if (size < sizeof(header))
		return true;
	memcpy(&header, data, sizeof(header));
	if (memcmp(header.magic, cache_magic, sizeof(header.magic)) ||
	    header.n > (size - sizeof(header)) / sizeof(struct cache_entry))
		return true;
	for (uint32_t i = 0; i < header.n; i++) {
		struct cache_entry entry;
		const char *key, *value;

		memcpy(&entry, data + sizeof(header) + i * sizeof(entry), sizeof(entry));
		key = cache_string(data, size, entry.key);
		value = cache_string(data, size, entry.value);
		if ((entry.flags & 0xffff) != CACHE_ELF_LIBC6_X86_64 || !key || !value || *value != '/')
			continue;
		if (!take(data_of_take, key, value))
			return false;
	}
	return true;
}

/* ---- directories ----------------------------------------------------------------------------- */

static bool search_directory(struct choice *choice, const char *directory)
{
	DIR *dir = opendir(directory);
	struct dirent *entry;
	bool ok = true;

	while (dir && ok && (entry = readdir(dir))) {
		char path[PATH_MAX];

		if (!rank_of(choice->name, entry->d_name))
			continue;
		if (snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name) < (int)sizeof(path))
			ok = consider(choice, entry->d_name, path);
	}
	if (dir)
		closedir(dir);
	return ok;
}

static bool is_program(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !faccessat(AT_FDCWD, path, X_OK, AT_EACCESS);
}

static bool is_elf(const char *path)
{
	kymo_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	char magic[SELFMAG];

	return fd >= 0 && !kymo_pread_all(fd, magic, sizeof(magic), 0) && !memcmp(magic, ELFMAG, SELFMAG);
}

/* The first ELF program in PATH. Wrapper scripts before it are passed over, and given where there is nothing else. */
static struct kymo_error *search_path(const char *name, char **ret)
{
	const char *at = getenv("PATH");
	char *best = NULL;

	for (at = at ? at : "/usr/local/bin:/usr/bin:/bin";; at++) {
		size_t length = strcspn(at, ":");
		char path[PATH_MAX];
		int n = length ? snprintf(path, sizeof(path), "%.*s/%s", (int)length, at, name)
			       : snprintf(path, sizeof(path), "./%s", name);
		bool usable = n > 0 && n < (int)sizeof(path) && is_program(path), found = usable && is_elf(path);

		if (found || (usable && !best)) {
			char *copy = strdup(path);

			if (!copy || found)
				free(best);
			if (!copy)
				return &kymo_error_no_memory;
			best = copy;
			if (found)
				break;
		}
		at += length;
		if (!*at)
			break;
	}
	*ret = best;
	return NULL;
}

struct kymo_error *kymo_find_file(const char *name, char **ret)
{
	struct choice choice = { .name = name };
	struct kymo_error *error;
	char *path = NULL;
	bool ok;

	if (strchr(name, '/')) {
		if (access(name, F_OK))
			return kymo_error_errno(errno, "%s", name);
		*ret = strdup(name);
		return *ret ? NULL : &kymo_error_no_memory;
	}
	error = *name ? search_path(name, &path) : NULL;
	if (error)
		return error;
	if (path) {
		*ret = path;
		return NULL;
	}
	ok = sym_each_library(consider, &choice);
	for (size_t i = 0; i < kymo_countof(library_directories) && ok && !choice.path; i++)
		ok = search_directory(&choice, library_directories[i]);
	path = choice.path;
	free(choice.file);
	if (!ok) {
		free(path);
		return &kymo_error_no_memory;
	}
	if (!path)
		return kymo_error_create(
			KYMO_ERROR_NOT_FOUND,
			"%s: no such program in PATH, and no such library in %s or the library directories", name,
			CACHE);
	*ret = path;
	return NULL;
}

/* ---- which file it is ------------------------------------------------------------------------ */

struct kymo_file_id kymo_file_id_of(const struct stat *st)
{
	return (struct kymo_file_id){ major(st->st_dev), minor(st->st_dev), st->st_ino };
}

bool kymo_is_same_file(struct kymo_file_id a, struct kymo_file_id b)
{
	return a.inode && a.inode == b.inode && a.major == b.major && a.minor == b.minor;
}

struct kymo_file_id kymo_identify_file(const char *name)
{
	kymo_cleanup_free char *path = NULL;
	struct kymo_error *error = kymo_find_file(name, &path);
	const bool is_found = !error;
	struct stat st;

	kymo_error_destroy(error);
	return is_found && !stat(path, &st) && S_ISREG(st.st_mode) ? kymo_file_id_of(&st)
								   : (struct kymo_file_id){ .inode = 0 };
}
