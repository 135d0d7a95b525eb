#include "probe/install/clones.h"

#include "arch/clones.h"
#include "probe/code/code.h"
#include "probe/code/modules.h"
#include "probe/memory/sessions.h"
#include "probe/memory/shared.h"
#include "probe/options.h"
#include "probe/plan/clone_sites.h"
#include "probe/probes.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/thread.h"
#include "procfs/maps.h"
#include "wire/shared.h"

#define FIRST_SITE 1u

/* glibc's control block points to itself here, and has the thread's id. */
#define BLOCK_SELF 16
#define WORDS 3

static struct kymo_error *no_block(struct kymo_process *process)
{
	return kymo_error_create(
		KYMO_ERROR_UNSAFE,
		"process %d has no threads of glibc as kymo knows them: its functions can't be cloned; "
		"record by steps",
		kymo_process_pid(process));
}

/* The one thread's control block is glibc's, and its word is not used. */
static struct kymo_error *check_thread(struct kymo_process *process, const struct kymo_thread **ret)
{
	const struct kymo_thread *threads;
	uint64_t block, self[WORDS] = { 0 }, word = 0;
	uint32_t tid = 0;
	size_t n;

	threads = kymo_process_threads(process, &n);
	if (n != 1)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "process %d has %zu threads that are stopped; clones are put into a program "
					 "that has begun with one",
					 kymo_process_pid(process), n);
	block = threads[0].registers.fs_base;
	if (!block || kymo_process_read(process, block, self, sizeof(self)) || self[0] != block ||
	    self[BLOCK_SELF / sizeof(self[0])] != block ||
	    kymo_process_read(process, block + PROBE_CLONES_TID, &tid, sizeof(tid)) ||
	    tid != (uint32_t)kymo_process_inner_pid(process) ||
	    kymo_process_read(process, block + PROBE_CLONES_WORD, &word, sizeof(word)) || word)
		return no_block(process);
	*ret = threads;
	return NULL;
}

/* ---- what is chosen -------------------------------------------------------------------------- */

/* What kymo_clones_create() asks of each function of a module. */
struct choice {
	const struct kymo_probes_clones *wanted;
	uint64_t bias;
};

static bool is_chosen(const struct kymo_extent *function, void *data)
{
	const struct choice *choice = data;

	return choice->wanted->is_chosen(function->start + choice->bias, choice->wanted->data);
}

static bool has_any(const struct kymo_code *code, struct choice *choice)
{
	for (size_t i = 0; i < code->code.n_functions; i++)
		if (is_chosen(&code->code.functions[i], choice))
			return true;
	return false;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Of the module with index `i`. A file in which nothing is chosen is not decoded. */
static struct kymo_error *clone_module(struct kymo_probes *probes, size_t i, uint32_t *next_site)
{
	struct choice choice = { .wanted = probes->wanted.options.clones, .bias = probes->modules.items[i].bias };
	struct probe_clones own = { .module = i, .first_site = *next_site };
	struct kymo_code *code;
	struct kymo_error *error = probes_code(probes, i, &code);

	if (error || !has_any(code, &choice))
		return error;
	if (kymo_clones_create(&code->code, code->map, is_chosen, &choice, &own.clones))
		return &kymo_error_no_memory;
	if (!kymo_vec_push(&probes->clones, own)) {
		kymo_clones_destroy(own.clones);
		return &kymo_error_no_memory;
	}
	*next_site += kymo_clones_n_sites(own.clones);
	return NULL;
}

static bool is_of_file(const struct kymo_map *map)
{
	return map->executable && !map->shared && map->inode && map->path[0] == '/' &&
	       !kymo_wire_is_own_path(map->path);
}

/* The thread may stand anywhere in its file, and would go on where jumps into clones are. */
static struct kymo_error *clone_files(struct kymo_probes *probes, const struct kymo_maps *maps, uint64_t pc)
{
	uint32_t next_site = FIRST_SITE;
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < maps->n && !error; i++) {
		const size_t n = probes->modules.n;

		if (!is_of_file(&maps->items[i]) || probes_is_known(probes, &maps->items[i]))
			continue;
		error = probes_open_module(probes, &maps->items[i]);
		if (!error && probes->modules.n > n &&
		    (pc < probes->modules.items[n].low || pc >= probes->modules.items[n].high))
			error = clone_module(probes, n, &next_site);
	}
	return error;
}

static size_t n_functions(const struct kymo_probes *probes)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->clones.n; i++)
		n += kymo_clones_n(probes->clones.items[i].clones);
	return n;
}

struct kymo_error *kymo_probes_resolve_clones(struct kymo_probes *probes)
{
	const struct kymo_thread *thread = NULL;
	struct kymo_maps maps;
	struct kymo_error *error = check_thread(probes->process, &thread);

	if (!error)
		error = kymo_process_maps(probes->process, &maps);
	if (error)
		return error;
	error = clone_files(probes, &maps, thread->registers.rip);
	kymo_maps_deinit(&maps);
	if (!error && !n_functions(probes))
		error = kymo_error_create(
			KYMO_ERROR_NOT_FOUND,
			"none of the chosen functions can be cloned; 'kymo explain --branch' says why");
	return error;
}

size_t kymo_probes_n_cloned(const struct kymo_probes *probes)
{
	return probes->clones.n;
}

struct kymo_probes_cloned kymo_probes_cloned(const struct kymo_probes *probes, size_t i)
{
	const struct probe_clones *own = &probes->clones.items[i];
	const struct probe_module *module = &probes->modules.items[own->module];

	return (struct kymo_probes_cloned){ own->clones, module->bias, own->first_site };
}

struct kymo_arena *kymo_probes_arena(struct kymo_probes *probes)
{
	return &probes->shared.arena;
}

uint64_t kymo_probes_clones_word(uint64_t block)
{
	return block + PROBE_CLONES_WORD;
}

static bool is_in(const struct probe_clones *own, uint64_t pc)
{
	return pc >= own->code && pc - own->code < own->size;
}

bool kymo_probes_is_in_clone(const struct kymo_probes *probes, uint64_t pc)
{
	for (size_t i = 0; i < probes->clones.n; i++)
		if (is_in(&probes->clones.items[i], pc))
			return true;
	return false;
}

bool kymo_probes_clone_origin(const struct kymo_probes *probes, uint64_t pc, uint64_t *ret)
{
	for (size_t i = 0; i < probes->clones.n; i++) {
		const struct probe_clones *own = &probes->clones.items[i];
		uint64_t vaddr;

		if (!is_in(own, pc) ||
		    !kymo_clone_origin(kymo_clones_map(own->clones), (uint32_t)(pc - own->code), &vaddr))
			continue;
		*ret = vaddr + probes->modules.items[own->module].bias;
		return true;
	}
	return false;
}
