#include "probe/code/cache.h"

#include <errno.h>
#include <sys/stat.h>

#include "arch/exits.h"
#include "arch/guard.h"
#include "base/vec.h"
#include "marker/list.h"
#include "marker/marker.h"
#include "sym/open.h"

#define IDLE_FILES 32 /* kept although they are not in use, … */
#define IDLE_BYTES \
	((uint64_t)48 \
	 << 20) /* … if they are not larger than that together: what is known of a file is as large as it is */
#define SECOND_NS 1000000000ull

struct probe_cache {
	KYMO_VEC(struct probe_cached *) files;
	uint64_t uses;
	struct kymo_file_id *names;
};

struct kymo_error *probe_cache_create(struct probe_cache **ret)
{
	struct probe_cache *cache = calloc(1, sizeof(*cache));

	if (!cache)
		return &kymo_error_no_memory;
	*ret = cache;
	return NULL;
}

static void file_destroy(struct probe_cached *file)
{
	kymo_code_destroy(file->code);
	free(file->syscalls);
	kymo_markers_destroy(file->markers);
	kymo_module_close(file->module);
	free(file);
}

void probe_cache_destroy(struct probe_cache *cache)
{
	if (!cache)
		return;
	for (size_t i = 0; i < cache->files.n; i++)
		file_destroy(cache->files.items[i]);
	kymo_vec_deinit(&cache->files);
	free(cache->names);
	free(cache);
}

const struct kymo_file_id *probe_cache_names(const struct probe_cache *cache)
{
	return cache->names;
}

void probe_cache_keep_names(struct probe_cache *cache, struct kymo_file_id *files)
{
	cache->names = files;
}

/* A file that was written to has another time: that of its inode, which no process can set back. */
static bool is_same(const struct probe_cached *file, const struct stat *st)
{
	return file->device == st->st_dev && file->inode == st->st_ino && file->size == (uint64_t)st->st_size &&
	       file->changed_ns == (uint64_t)st->st_ctim.tv_sec * SECOND_NS + (uint64_t)st->st_ctim.tv_nsec;
}

bool probe_cached_is_of(const struct probe_cached *file, int fd)
{
	struct stat st;

	return !fstat(fd, &st) && is_same(file, &st);
}

static struct probe_cached *find_cached(const struct probe_cache *cache, const struct stat *st)
{
	for (size_t i = 0; i < cache->files.n; i++)
		if (is_same(cache->files.items[i], st))
			return cache->files.items[i];
	return NULL;
}

static struct kymo_error *add_file(struct probe_cache *cache, int fd, const char *path, const struct stat *st,
				   struct probe_cached **ret)
{
	struct probe_cached *file = calloc(1, sizeof(*file));
	struct kymo_error *error;

	if (!file || !kymo_vec_reserve(&cache->files, cache->files.n + 1)) {
		free(file);
		return &kymo_error_no_memory;
	}
	error = kymo_module_open_fd(fd, path, &file->module);
	if (error) {
		free(file);
		return error;
	}
	file->device = st->st_dev;
	file->inode = st->st_ino;
	file->size = (uint64_t)st->st_size;
	file->changed_ns = (uint64_t)st->st_ctim.tv_sec * SECOND_NS + (uint64_t)st->st_ctim.tv_nsec;
	cache->files.items[cache->files.n++] = file;
	*ret = file;
	return NULL;
}

struct kymo_error *probe_cache_get(struct probe_cache *cache, int fd, const char *path, struct probe_cached **ret)
{
	struct kymo_error *error = NULL;
	struct probe_cached *file;
	struct stat st;

	if (fstat(fd, &st))
		return kymo_error_errno(errno, "%s", path);
	file = find_cached(cache, &st);
	if (!file)
		error = add_file(cache, fd, path, &st, &file);
	if (error)
		return error;
	file->users++;
	file->used = ++cache->uses;
	*ret = file;
	return NULL;
}

/* The least recently used one, while there are too many of them; or NULL. */
static struct probe_cached **find_surplus(struct probe_cache *cache)
{
	struct probe_cached **oldest = NULL;
	uint64_t size = 0;
	size_t n = 0;

	for (size_t i = 0; i < cache->files.n; i++) {
		struct probe_cached *file = cache->files.items[i];

		if (file->users)
			continue;
		n++;
		size += file->size;
		if (!oldest || file->used < (*oldest)->used)
			oldest = &cache->files.items[i];
	}
	return n > IDLE_FILES || size > IDLE_BYTES ? oldest : NULL;
}

void probe_cache_put(struct probe_cache *cache, struct probe_cached *file)
{
	struct probe_cached **surplus;

	if (!file)
		return;
	file->users--;
	while ((surplus = find_surplus(cache))) {
		file_destroy(*surplus);
		*surplus = cache->files.items[--cache->files.n];
	}
}

struct kymo_error *probe_cached_code(struct probe_cached *file, struct kymo_code **ret)
{
	struct kymo_error *error = file->code ? NULL : kymo_code_create(file->module, file->markers, &file->code);

	if (!error)
		*ret = file->code;
	return error;
}

struct kymo_error *probe_cached_markers(struct probe_cached *file, const struct kymo_marker_list **ret)
{
	struct kymo_error *error = file->markers ? NULL : kymo_markers_create(file->module, &file->markers);

	if (!error)
		*ret = file->markers;
	return error;
}

struct kymo_error *probe_cached_guards(struct probe_cached *file, const struct kymo_plan **ret, int *n_ret)
{
	struct kymo_code *code;
	struct kymo_error *error = probe_cached_code(file, &code);

	if (error)
		return error;
	if (!file->knows_guards)
		file->n_guards = kymo_guard_find(&code->code, code->map, file->guards, CACHED_MAX_GUARDS);
	file->knows_guards = true;
	*ret = file->guards;
	*n_ret = file->n_guards;
	return NULL;
}

struct kymo_error *probe_cached_syscalls(struct probe_cached *file, const struct kymo_syscall_site **ret, size_t *n_ret)
{
	struct kymo_code *code;
	struct kymo_error *error = probe_cached_code(file, &code);

	if (error)
		return error;
	if (!file->knows_syscalls &&
	    kymo_syscall_sites_create(&code->code, code->map, &file->syscalls, &file->n_syscalls))
		return &kymo_error_no_memory;
	file->knows_syscalls = true;
	*ret = file->syscalls;
	*n_ret = file->n_syscalls;
	return NULL;
}

struct kymo_error *probe_cached_other_call(struct probe_cached *file, bool *ret)
{
	struct kymo_code *code;
	struct kymo_error *error = probe_cached_code(file, &code);
	uint64_t vaddr;
	int found;

	if (error)
		return error;
	found = file->knows_other_call ? file->has_other_call : kymo_find_other_call(&code->code, code->map, &vaddr);
	if (found < 0)
		return &kymo_error_no_memory;
	file->has_other_call = found;
	file->knows_other_call = true;
	*ret = found;
	return NULL;
}
