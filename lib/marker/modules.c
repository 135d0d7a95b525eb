/*
 * Which modules with markers there are.
 *
 * One that tells calls kymo_marker_module_comes() from a constructor and kymo_marker_module_goes() from a destructor.
 * It can't be unmapped before the latter has returned, and that takes the lock: so a thread that holds the lock may
 * touch it. A module that could not see this library when it was loaded does not do so. A thread that does not take the
 * lock may unmap such a module at any time. So before the lock is taken dlopen(RTLD_NOLOAD) holds it, and dlclose()
 * lets it go when the lock is released. Between two calls it may have gone, and another may be where it was: where
 * anything was unloaded meanwhile it is read anew.
 *
 * The loader's callback is called with a lock of the loader's held. Nothing is allocated there: a malloc() may have
 * locks under which it asks the loader.
 */
#include "modules.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connect.h"
#include "record.h"
#include "registry.h"
#include "update.h"

static size_t cap;
static unsigned long long known_adds, known_subs; /* of the last look that was adopted */
static size_t n_silent;                           /* modules that don't tell, but the program */
static struct lib_look current;                   /* the holder of the lock has it; its pins hold modules */

/* By name: static programs have neither it nor anything to hold, and linkers warn about those that name it. No lock is
 * held. */
static void *hold(const char *name)
{
	__typeof__(dlopen) *open;
	void *symbol = dlsym(RTLD_DEFAULT, "dlopen");

	memcpy(&open, &symbol, sizeof(open));
	return open ? open(name, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/* ---- asking the loader ----------------------------------------------------------------------- */

/* Until all fits into what was allocated before. */
struct search {
	struct lib_look *look;
	size_t cap, names_cap;
	size_t n, names_used; /* counted beyond what there is room for */
};

static int search_one(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *search = data;
	struct lib_found found = { info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum };
	const char *name = info->dlpi_name ? info->dlpi_name : "";
	size_t length = strlen(name) + 1;

	search->look->adds = info->dlpi_adds;
	search->look->subs = info->dlpi_subs;
	if (!kymo_lib_has_notes(&found))
		return 0;
	if (search->n < search->cap && search->names_used + length <= search->names_cap) {
		char *copy = search->look->names + search->names_used;
		memcpy(copy, name, length);
		search->look->seen[search->n] = (struct lib_seen){ found, copy, NULL };
	}
	search->n++;
	search->names_used += length;
	return 0;
}

static int only_count(struct dl_phdr_info *info, size_t size, void *data)
{
	struct lib_look *look = data;

	look->adds = info->dlpi_adds;
	look->subs = info->dlpi_subs;
	return 1;
}

static void look_deinit(struct lib_look *look)
{
	free(look->seen);
	free(look->names);
	*look = (struct lib_look){ 0 };
}

/* All modules with notes. -ENOMEM. */
static int search_all(struct lib_look *ret)
{
	struct lib_look look = { 0 };
	struct search search = { .look = &look, .cap = 8, .names_cap = 1024 };

	for (;;) {
		look.seen = calloc(search.cap, sizeof(*look.seen));
		look.names = malloc(search.names_cap);
		if (!look.seen || !look.names) {
			look_deinit(&look);
			return -ENOMEM;
		}
		search.n = search.names_used = 0;
		kymo_lib_iterate(search_one, &search);
		if (search.n <= search.cap && search.names_used <= search.names_cap)
			break;
		search.cap = search.n + 8;
		search.names_cap = search.names_used + 1024;
		look_deinit(&look);
	}
	look.n = search.n;
	look.is_new = true;
	*ret = look;
	return 0;
}

static bool has_anything_changed(void)
{
	struct lib_look counts = { 0 };

	kymo_lib_iterate(only_count, &counts);
	return counts.adds != __atomic_load_n(&known_adds, __ATOMIC_RELAXED) ||
	       counts.subs != __atomic_load_n(&known_subs, __ATOMIC_RELAXED);
}

/* ---- holding modules that do not tell -------------------------------------------------------- */

static struct lib_module *find_known(const struct lib_found *found)
{
	for (size_t i = 0; i < kymo_lib_registry.n_modules; i++) {
		struct lib_module *module = kymo_lib_registry.modules[i];
		if (module->base == found->base && module->phdrs == found->phdrs)
			return module;
	}
	return NULL;
}

/* Whether it needs not be held. Between this and the lock it may begin to tell, or go: then it is held for nothing. */
static bool is_telling(const struct lib_found *found)
{
	if (kymo_lib_lock() < 0)
		return true;
	const struct lib_module *known = find_known(found);
	bool tells = known && known->tells;
	kymo_lib_unlock();
	return tells;
}

void kymo_lib_look_around(struct lib_look *ret)
{
	if ((!has_anything_changed() && __atomic_load_n(&n_silent, __ATOMIC_RELAXED) == 0) || search_all(ret) < 0)
		return;
	for (size_t i = 0; i < ret->n; i++) {
		struct lib_seen *seen = &ret->seen[i];
		if (*seen->name && !is_telling(&seen->found))
			seen->pin = hold(seen->name);
	}
}

struct lib_look kymo_lib_end_look(void)
{
	struct lib_look look = current;

	for (size_t i = 0; i < kymo_lib_registry.n_modules; i++)
		kymo_lib_registry.modules[i]->pin = NULL;
	current = (struct lib_look){ 0 };
	return look;
}

void kymo_lib_unpin(struct lib_look *look)
{
	for (size_t i = 0; i < look->n; i++) {
		if (look->seen[i].pin)
			dlclose(look->seen[i].pin);
	}
	look_deinit(look);
}

/* ---- coming and going ------------------------------------------------------------------------ */

static void count_silent(void)
{
	size_t n = 0;

	for (size_t i = 0; i < kymo_lib_registry.n_modules; i++)
		n += !kymo_lib_registry.modules[i]->is_program && !kymo_lib_registry.modules[i]->tells;
	__atomic_store_n(&n_silent, n, __ATOMIC_RELAXED);
}

static bool reserve_names(void)
{
	if (kymo_lib_registry.n_modules < cap)
		return true;
	size_t want = cap ? 2 * cap : 16;
	struct lib_module **modules = realloc(kymo_lib_registry.modules, want * sizeof(struct lib_module *));
	if (!modules)
		return false;
	kymo_lib_registry.modules = modules;
	cap = want;
	return true;
}

/* The loader does not know the program's file. */
static char *path_of(const char *name)
{
	char path[PATH_MAX];

	if (*name)
		return strdup(name);
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	return strdup(path);
}

/* Read it, put it into the registry, connect; the caller updates. Errors leave it unknown, and untouched. */
static void module_comes(const struct lib_seen *seen, bool tells)
{
	struct lib_module *module;

	if (!reserve_names() || kymo_lib_read_module(&seen->found, &module) < 0)
		return;
	module->path = path_of(seen->name);
	if (!module->path) {
		kymo_lib_destroy_module(module);
		return;
	}
	module->is_program = !*seen->name;
	module->tells = tells;
	module->pin = seen->pin;
	kymo_lib_registry.modules[kymo_lib_registry.n_modules++] = module;
	count_silent();
	for (size_t i = 0; i < module->n_markers; i++) {
		kymo_lib_inherit(&module->markers[i]);
		kymo_lib_connect_new(&module->markers[i]);
		kymo_record_marker_comes(&module->markers[i]);
	}
}

static void free_module(struct lib_retired *retired)
{
	kymo_lib_destroy_module((struct lib_module *)retired);
}

/* Forget it. Its memory is touched only where that is known to be there. */
static void module_goes(size_t index)
{
	struct lib_module *module = kymo_lib_registry.modules[index];

	for (size_t i = 0; i < module->n_markers; i++) {
		kymo_record_marker_goes(&module->markers[i]);
		if (kymo_lib_is_usable(module))
			kymo_lib_silence(&module->markers[i]);
		kymo_lib_disconnect_gone(&module->markers[i]);
	}
	kymo_lib_unchanged(module);
	kymo_lib_registry.n_modules--;
	memmove(&kymo_lib_registry.modules[index], &kymo_lib_registry.modules[index + 1],
		(kymo_lib_registry.n_modules - index) * sizeof(struct lib_module *));
	count_silent();
	module->retired.free = free_module;
	kymo_lib_retire(&module->retired);
}

/* A module that does not tell is known by where it is. Where anything was unloaded it may be another by now: it is read
 * again. */
static void forget_silent(void)
{
	for (size_t i = kymo_lib_registry.n_modules; i-- > 0;) {
		struct lib_module *module = kymo_lib_registry.modules[i];
		if (!module->is_program && !module->tells)
			module_goes(i);
	}
}

void kymo_lib_adopt(struct lib_look *look)
{
	if (!look->is_new)
		return;
	current = *look;
	if (look->subs != known_subs)
		forget_silent();
	for (size_t i = 0; i < look->n; i++) {
		struct lib_seen *seen = &look->seen[i];
		struct lib_module *known = find_known(&seen->found);

		if (known)
			known->pin = seen->pin;
		else if (!*seen->name || seen->pin)
			module_comes(seen, false);
	}
	__atomic_store_n(&known_adds, look->adds, __ATOMIC_RELAXED);
	__atomic_store_n(&known_subs, look->subs, __ATOMIC_RELAXED);
	kymo_lib_update(false);
}

/* ---- changing something ---------------------------------------------------------------------- */

int kymo_lib_enter(void)
{
	struct lib_look look = { 0 };

	if (kymo_lib_has_lock())
		return -EDEADLK;
	/* From a probe nothing is asked of the loader: a thread that has its lock may be waiting for this probe to end.
	 */
	if (!kymo_lib_is_in_probe())
		kymo_lib_look_around(&look);
	kymo_lib_lock();
	kymo_lib_adopt(&look);
	return 0;
}

void kymo_lib_leave(bool wait)
{
	struct lib_look look = kymo_lib_end_look();

	kymo_lib_unlock_and_wait(wait);
	kymo_lib_unpin(&look);
}

/* ---- modules that tell ----------------------------------------------------------------------- */

struct inside {
	uintptr_t address;
	struct lib_seen seen;
};

/* Each file of a module calls this: the first one counts. Its constructor runs meanwhile: the name stays where it is.
 */
static int find_inside(struct dl_phdr_info *info, size_t size, void *data)
{
	struct inside *inside = data;
	struct lib_found found = { info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum };

	if (!kymo_lib_is_inside(&found, inside->address))
		return 0;
	inside->seen = (struct lib_seen){ found, info->dlpi_name ? info->dlpi_name : "", NULL };
	return 1;
}

KYMO_LIB_API void kymo_marker_module_comes(const void *address)
{
	struct inside inside = { .address = (uintptr_t)address };

	if (!kymo_lib_iterate(find_inside, &inside) || kymo_lib_lock() < 0)
		return;
	struct lib_module *known = find_known(&inside.seen.found);
	if (known && known->is_program)
		known->tells = true;
	if (known && !known->tells) { /* seen before its constructor ran; or another that was there before */
		module_goes(kymo_lib_index_of(known));
		known = NULL;
	}
	if (!known)
		module_comes(&inside.seen, true);
	kymo_lib_update(false);
	kymo_lib_leave(false);
}

/* Destructors that run after this one may still pass its markers. At the end of the program its own markers stay on. */
KYMO_LIB_API void kymo_marker_module_goes(const void *address)
{
	uintptr_t inside = (uintptr_t)address;
	bool found = false;

	if (kymo_lib_lock() < 0)
		return;
	for (size_t i = 0; i < kymo_lib_registry.n_modules && !found; i++) {
		const struct lib_module *module = kymo_lib_registry.modules[i];
		found = module->tells && inside >= module->begin && inside < module->end;
		if (found && !module->is_program)
			module_goes(i);
	}
	kymo_lib_leave(found);
}
