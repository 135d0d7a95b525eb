#include "probe/code/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/large.h"
#include "base/vec.h"

#define STORE_MAX (UINT64_C(512) << 20) /* bytes of all entries */
#define ENTRY_MAX (UINT64_C(128) << 20)
#define TEXT_MIN (UINT64_C(64) << 10)  /* a smaller module is decoded sooner than an entry is looked for */
#define STALE_SECONDS 3600             /* a name that is not final, and as old, is of a recorder that was killed */
#define USED_SECONDS 3600              /* the time of an entry's last use is as exact as this */
#define MAGIC UINT64_C(0x31706d6f796b) /* "kymop1" */
#define NAME_DIGITS 32

struct store_head {
	uint64_t magic, size; /* of what follows */
	XXH128_hash_t key;
	uint64_t sum; /* of what follows */
};

/* ---- the key --------------------------------------------------------------------------------- */

/* The build-id of the program that runs: another build may find something else. */
static int add_build(struct dl_phdr_info *info, size_t size, void *data)
{
	XXH3_state_t *state = data;

	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			XXH3_128bits_update(state, (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
					    info->dlpi_phdr[i].p_memsz);
	return 1; /* the first is the program */
}

static void add_spans(XXH3_state_t *state, const struct kymo_span *spans, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const uint64_t where[] = { spans[i].vaddr, spans[i].size };

		XXH3_128bits_update(state, where, sizeof(where));
		XXH3_128bits_update(state, spans[i].bytes, spans[i].size);
	}
}

static bool find_key(const struct kymo_module_code *code, XXH128_hash_t *ret)
{
	const uint64_t facts[] = {
		MAGIC,
		code->n_text,
		code->n_data,
		code->n_functions,
		code->n_entries,
		code->n_rseq,
		code->small_stacks.start,
		code->small_stacks.end,
		code->small_stacks_left,
		code->position_independent,
		code->is_jit,
	};
	XXH3_state_t *state = XXH3_createState();

	if (!state)
		return false;
	XXH3_128bits_reset(state);
	XXH3_128bits_update(state, facts, sizeof(facts));
	dl_iterate_phdr(add_build, state);
	add_spans(state, code->text, code->n_text);
	add_spans(state, code->data, code->n_data);
	XXH3_128bits_update(state, code->functions, code->n_functions * sizeof(*code->functions));
	XXH3_128bits_update(state, code->entries, code->n_entries * sizeof(*code->entries));
	XXH3_128bits_update(state, code->rseq, code->n_rseq * sizeof(*code->rseq));
	*ret = XXH3_128bits_digest(state);
	XXH3_freeState(state);
	return true;
}

static void name_of(XXH128_hash_t key, char name[NAME_DIGITS + 1])
{
	snprintf(name, NAME_DIGITS + 1, "%016llx%016llx", (unsigned long long)key.high64,
		 (unsigned long long)key.low64);
}

/* ---- the directory --------------------------------------------------------------------------- */

/* Its path, a fresh string; NULL where there is to be none. */
static char *find_path(void)
{
	const char *own = secure_getenv("KYMO_CACHE"), *xdg = secure_getenv("XDG_CACHE_HOME"),
		   *home = secure_getenv("HOME");
	char *path;
	int n;

	if (own)
		n = own[0] == '/' ? asprintf(&path, "%s", own) : -1;
	else if (xdg && xdg[0] == '/')
		n = asprintf(&path, "%s/kymo", xdg);
	else if (!geteuid())
		n = asprintf(&path, "/var/cache/kymo");
	else if (home && home[0] == '/')
		n = asprintf(&path, "%s/.cache/kymo", home);
	else
		n = -1;
	return n < 0 ? NULL : path;
}

static bool is_mine(const struct stat *st)
{
	return st->st_uid == geteuid() && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* The directory, which is made where it is not there; or -1. */
static int open_store(void)
{
	kymo_cleanup_free char *path = find_path();
	kymo_cleanup_close int fd = -1;
	struct stat st;

	if (!path)
		return -1;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT && !mkdir(path, 0700))
		fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !is_mine(&st))
		return -1;
	return kymo_take_fd(fd);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void note_use(int fd, const struct stat *st)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (now.tv_sec - st->st_mtim.tv_sec > USED_SECONDS)
		futimens(fd, NULL);
}

/* What the entry has after its head, of kymo_large_alloc(). False where there is no such entry, or none that can be
 * believed.
 */
static bool read_entry(int store, XXH128_hash_t key, void **ret, size_t *size_ret)
{
	char name[NAME_DIGITS + 1];
	kymo_cleanup_close int fd = -1;
	struct store_head head;
	struct stat st;
	void *bytes;

	name_of(key, name);
	fd = openat(store, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || !is_mine(&st) || (uint64_t)st.st_size < sizeof(head) ||
	    (uint64_t)st.st_size > ENTRY_MAX || kymo_pread_all(fd, &head, sizeof(head), 0))
		return false;
	if (head.magic != MAGIC || !XXH128_isEqual(head.key, key) || head.size != (uint64_t)st.st_size - sizeof(head))
		return false;
	bytes = kymo_large_alloc(head.size);
	if (!bytes)
		return false;
	if (kymo_pread_all(fd, bytes, head.size, sizeof(head)) || XXH3_64bits(bytes, head.size) != head.sum) {
		kymo_large_free(bytes, head.size);
		return false;
	}
	note_use(fd, &st);
	*size_ret = head.size;
	*ret = bytes;
	return true;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct entry {
	struct timespec used;
	uint64_t size;
	char name[NAME_DIGITS + 1];
};

static int by_use(const void *a, const void *b)
{
	const struct timespec *x = &((const struct entry *)a)->used, *y = &((const struct entry *)b)->used;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

static bool is_final(const char *name)
{
	return strlen(name) == NAME_DIGITS && strspn(name, "0123456789abcdef") == NAME_DIGITS;
}

static bool is_temporary(const char *name)
{
	return !strncmp(name, "new-", 4);
}

/* The least recently used entries go, until there is room. */
static void make_room(int store)
{
	KYMO_VEC(struct entry) entries = { 0 };
	int fd = openat(store, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	kymo_cleanup_closedir DIR *directory = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *each;
	uint64_t size = 0;

	if (!directory && fd >= 0)
		close(fd);
	while (directory && (each = readdir(directory))) {
		struct entry entry;
		struct stat st;

		if (fstatat(store, each->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
			continue;
		if (is_temporary(each->d_name) && time(NULL) - st.st_mtim.tv_sec > STALE_SECONDS)
			unlinkat(store, each->d_name, 0);
		if (!is_final(each->d_name))
			continue;
		entry = (struct entry){ .used = st.st_mtim, .size = (uint64_t)st.st_size };
		memcpy(entry.name, each->d_name, sizeof(entry.name));
		size += entry.size;
		if (!kymo_vec_push(&entries, entry))
			break;
	}
	if (size > STORE_MAX)
		qsort(entries.items, entries.n, sizeof(*entries.items), by_use);
	for (size_t i = 0; i < entries.n && size > STORE_MAX; i++) {
		unlinkat(store, entries.items[i].name, 0);
		size -= entries.items[i].size;
	}
	kymo_vec_deinit(&entries);
}

/* A limit on file sizes is a signal, which ends programs that do not ignore it. */
static bool may_write(uint64_t size)
{
	struct rlimit limit;

	return size <= ENTRY_MAX && !getrlimit(RLIMIT_FSIZE, &limit) &&
	       (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= size);
}

static void write_entry(int store, XXH128_hash_t key, const void *bytes, size_t size)
{
	struct store_head head = { MAGIC, size, key, XXH3_64bits(bytes, size) };
	struct iovec parts[] = { { &head, sizeof(head) }, { (void *)bytes, size } };
	char name[NAME_DIGITS + 1], temporary[64];
	kymo_cleanup_close int fd = -1;

	if (!may_write(sizeof(head) + size))
		return;
	name_of(key, name);
	snprintf(temporary, sizeof(temporary), "new-%d-%.16s", getpid(), name);
	fd = openat(store, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (kymo_writev_all(fd, parts, 2) || renameat(store, temporary, store, name))
		unlinkat(store, temporary, 0);
	else
		make_room(store);
}

/* ---- the front door -------------------------------------------------------------------------- */

static uint64_t text_size(const struct kymo_module_code *code)
{
	uint64_t size = 0;

	for (size_t i = 0; i < code->n_text; i++)
		size += code->text[i].size;
	return size;
}

static void keep_entries(int store, XXH128_hash_t key, const struct kymo_entry_map *map)
{
	kymo_cleanup_free void *bytes = NULL;
	size_t size;

	if (!kymo_entry_map_pack(map, &bytes, &size))
		write_entry(store, key, bytes, size);
}

int probe_store_map(const struct kymo_module_code *code, struct kymo_entry_map **ret)
{
	kymo_cleanup_close int store = text_size(code) < TEXT_MIN ? -1 : open_store();
	XXH128_hash_t key;
	void *bytes;
	size_t size;
	int err;

	if (store < 0 || !find_key(code, &key))
		return kymo_entry_map_create(code, ret);
	if (read_entry(store, key, &bytes, &size)) {
		if (!kymo_entry_map_unpack(code, bytes, size, ret))
			return 0;
		kymo_large_free(bytes, size);
	}
	err = kymo_entry_map_create(code, ret);
	if (!err)
		keep_entries(store, key, *ret);
	return err;
}
