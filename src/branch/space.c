#include "branch/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "probe/code/code.h"
#include "procfs/maps.h"
#include "sym/debug.h"
#include "sym/open.h"
#include "wire/shared.h"

#define REGIONS_MAX (1u << 20) /* of all spaces */
#define FILES_MAX 1024u        /* of which a descriptor is kept */
#define FILES_PART 4           /* of the descriptors that this process may have, at most one in so many */

/* ---- files ----------------------------------------------------------------------------------- */

static struct branch_file *find_file(const struct branch_spaces *spaces, const struct kymo_map *map)
{
	for (size_t i = 0; i < spaces->files.n; i++) {
		struct branch_file *file = spaces->files.items[i];

		if (file->inode == map->inode && file->major == map->major && file->minor == map->minor &&
		    !strcmp(file->path, map->path))
			return file;
	}
	return NULL;
}

static void close_file(struct branch_file *file)
{
	if (!file)
		return;
	kymo_code_destroy(file->code);
	if (file->debug)
		kymo_debug_close(file->debug);
	if (file->module)
		kymo_module_close(file->module);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file);
}

static bool is_room_for_file(const struct branch_spaces *spaces)
{
	struct rlimit limit;

	return spaces->files.n < FILES_MAX &&
	       (getrlimit(RLIMIT_NOFILE, &limit) || spaces->files.n < limit.rlim_cur / FILES_PART);
}

/* NULL where memory is out, or there are too many. */
static struct branch_file *get_file(struct branch_spaces *spaces, pid_t pid, const struct kymo_map *map)
{
	struct branch_file *file = find_file(spaces, map);

	if (file)
		return file;
	if (!is_room_for_file(spaces)) {
		spaces->lacks_files = true;
		return NULL;
	}
	file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	*file = (struct branch_file){
		.major = map->major, .minor = map->minor, .inode = map->inode, .path = strdup(map->path), .fd = -1
	};
	if (!file->path || !kymo_vec_push(&spaces->files, file)) {
		close_file(file);
		return NULL;
	}
	kymo_error_destroy(kymo_open_mapped(pid, map, &file->fd));
	return file;
}

struct kymo_module *branch_module(const struct branch_region *region)
{
	struct branch_file *file = region->file;

	if (!file)
		return NULL;
	if (!file->was_read && file->fd >= 0)
		kymo_error_destroy(kymo_module_open_fd(file->fd, file->path, &file->module));
	file->was_read = true;
	return file->module;
}

/* ---- spaces ---------------------------------------------------------------------------------- */

void branch_space_destroy(struct branch_space *space)
{
	if (!space)
		return;
	for (size_t i = 0; i < space->regions.n; i++)
		free(space->regions.items[i].name);
	kymo_vec_deinit(&space->regions);
	kymo_vec_deinit(&space->chosen);
	kymo_vec_deinit(&space->entries);
	free(space);
}

static bool add_region(struct branch_spaces *spaces, struct branch_space *space, pid_t pid, const struct kymo_map *map)
{
	struct branch_region region = {
		.range = { map->start, map->end },
		.offset = map->offset,
		.name = strdup(map->path),
		.is_pad = kymo_wire_is_own_path(map->path),
	};

	if (map->inode && !region.is_pad)
		region.file = get_file(spaces, pid, map);
	if (region.name && kymo_vec_push(&space->regions, region))
		return true;
	free(region.name);
	return false;
}

static struct branch_space *make_space(struct branch_spaces *spaces, pid_t pid, const struct kymo_maps *maps)
{
	struct branch_space *space = calloc(1, sizeof(*space));

	for (size_t i = 0; space && i < maps->n; i++) {
		if (!maps->items[i].executable || add_region(spaces, space, pid, &maps->items[i]))
			continue;
		branch_space_destroy(space);
		return NULL;
	}
	return space;
}

static bool are_same_spaces(const struct branch_space *a, const struct branch_space *b)
{
	bool is = a && a->regions.n == b->regions.n;

	for (size_t i = 0; is && i < a->regions.n; i++) {
		const struct branch_region *x = &a->regions.items[i], *y = &b->regions.items[i];

		is = x->range.start == y->range.start && x->range.end == y->range.end && x->offset == y->offset &&
		     x->file == y->file && !strcmp(x->name, y->name);
	}
	return is;
}

static uint64_t hash_space(const struct branch_space *space)
{
	uint64_t hash = space->regions.n;

	for (size_t i = 0; i < space->regions.n; i++) {
		const struct branch_region *region = &space->regions.items[i];

		hash = kymo_hash_number(hash, region->range.start);
		hash = kymo_hash_number(hash, region->range.end ^ region->offset << 20);
	}
	return hash;
}

/* A space that is the same; 0: there is none. */
static uint32_t find_space(const struct branch_spaces *spaces, const struct branch_space *space)
{
	for (size_t i = spaces->items.n; i-- > 0;)
		if (spaces->items.items[i]->hash == space->hash && are_same_spaces(spaces->items.items[i], space))
			return (uint32_t)i + 1;
	return 0;
}

/* Its number, where there is room for it. */
static int number_space(struct branch_spaces *spaces, struct branch_space *space, uint32_t *ret)
{
	if (spaces->items.n >= BRANCH_SPACES_MAX || spaces->n_regions + space->regions.n > REGIONS_MAX)
		return -ENOSPC;
	if (!kymo_vec_push(&spaces->items, space))
		return -ENOMEM;
	spaces->n_regions += space->regions.n;
	*ret = (uint32_t)spaces->items.n;
	return 0;
}

int branch_spaces_read(struct branch_spaces *spaces, pid_t pid, uint32_t *number, struct branch_space **unnumbered)
{
	kymo_cleanup(kymo_maps_deinit) struct kymo_maps maps = { 0 };
	struct kymo_error *error = kymo_maps_read(pid, &maps);
	struct branch_space *space = error ? NULL : make_space(spaces, pid, &maps);
	const bool is_gone = error || (space && !space->regions.n);
	uint32_t same;
	int err;

	kymo_error_destroy(error);
	if (is_gone || !space) {
		branch_space_destroy(space);
		return is_gone ? -ESRCH : -ENOMEM;
	}
	space->hash = hash_space(space);
	same = find_space(spaces, space);
	if (same) {
		branch_space_destroy(space);
		*number = same;
		return 0;
	}
	*number = 0;
	err = number_space(spaces, space, number);
	if (err)
		*unnumbered = space;
	return err;
}

void branch_spaces_deinit(struct branch_spaces *spaces)
{
	for (size_t i = 0; i < spaces->items.n; i++)
		branch_space_destroy(spaces->items.items[i]);
	for (size_t i = 0; i < spaces->files.n; i++)
		close_file(spaces->files.items[i]);
	kymo_vec_deinit(&spaces->items);
	kymo_vec_deinit(&spaces->files);
}

struct branch_space *branch_space_of(const struct branch_spaces *spaces, uint32_t number)
{
	return number ? spaces->items.items[number - 1] : NULL;
}

const struct branch_region *branch_region_at(const struct branch_space *space, uint64_t address)
{
	size_t low = 0, high = space ? space->regions.n : 0;

	while (low < high) {
		const size_t mid = low + (high - low) / 2;
		const struct branch_region *region = &space->regions.items[mid];

		if (address < region->range.start)
			high = mid;
		else if (address >= region->range.end)
			low = mid + 1;
		else
			return region;
	}
	return NULL;
}
