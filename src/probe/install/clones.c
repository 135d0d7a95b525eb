#include "probe/install/clones.h"

#include <errno.h>

#include "arch/clone_stand.h"
#include "arch/clones.h"
#include "probe/code/code.h"
#include "probe/code/modules.h"
#include "probe/install/clone_entry.h"
#include "probe/install/stop.h"
#include "probe/memory/sessions.h"
#include "probe/memory/shared.h"
#include "probe/options.h"
#include "probe/plan/clone_beside.h"
#include "probe/plan/clone_sites.h"
#include "probe/probes.h"
#include "probe/threads/threads.h"
#include "proc/linker.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/stop.h"
#include "proc/thread.h"
#include "procfs/maps.h"
#include "sym/functions.h"
#include "sym/sym.h"
#include "wire/shared.h"

#define FIRST_SITE 1u

_Static_assert(KYMO_PROBES_CLONES_JUMPS == KYMO_JOURNAL_CAPACITY &&
		       (uint64_t)KYMO_PROBES_CLONES_MIB << 20 == KYMO_WINDOW_SIZE,
	       "what users are told is so");

/* Compilers' code has a write to the text each 40 bytes, and 80 where it has few calls; clones with their points take
 * nine to twelve times as many bytes. */
#define BYTES_A_WRITE 80u
#define CODE_A_BYTE 8u

/* glibc's control block points to itself here, and has the thread's id. */
#define BLOCK_SELF 16
#define WORDS 3

static struct kymo_error *no_block(struct kymo_process *process)
{
	return kymo_error_create(KYMO_ERROR_UNSAFE,
				 "process %d has no threads of glibc as kymo knows them: its functions can't be cloned",
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
	struct kymo_probes *probes;
	size_t n_hops;
};

static bool is_given_up(void *data)
{
	const struct kymo_probes_clones *wanted = ((const struct choice *)data)->wanted;

	return wanted->is_given_up && wanted->is_given_up(wanted->data);
}

static bool is_left_out(const struct kymo_clone *clone, void *data)
{
	struct choice *choice = data;
	const bool is = probes_are_in_the_way(choice->probes, clone, choice->bias, &choice->n_hops);

	choice->probes->n_in_the_way += is;
	return is;
}

static bool is_chosen(const struct kymo_extent *function, void *data)
{
	const struct choice *choice = data;

	return choice->wanted->is_chosen(function->start + choice->bias, choice->wanted->data);
}

/* Bytes of the chosen functions. */
static struct kymo_error *weigh(const struct kymo_probes *probes, size_t i, struct choice *choice, uint64_t *ret)
{
	const struct kymo_function *functions;
	struct kymo_error *error;
	size_t n;

	error = kymo_module_functions(probes->modules.items[i].module, &functions, &n);
	for (size_t k = 0; !error && k < n; k++) {
		const struct kymo_extent extent = { functions[k].start, functions[k].end };

		if (is_chosen(&extent, choice))
			*ret += extent.end - extent.start;
	}
	return error;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* What the files so far have left of what clones of all files may take. */
struct room {
	size_t n_writes;
	uint64_t bytes;
	uint32_t next_site;
};

static struct kymo_error *keep(struct kymo_probes *probes, const struct probe_clones *own, struct room *room)
{
	if (!kymo_vec_push(&probes->clones, *own)) {
		kymo_clones_destroy(own->clones);
		return &kymo_error_no_memory;
	}
	room->n_writes -= kymo_clones_n_writes(own->clones);
	room->next_site += kymo_clones_n_sites(own->clones);
	return NULL;
}

/*
 * Of the module with index `i`. A file in which nothing is chosen is not decoded. One whose clones would take more than
 * is left has none at all. Where that is as good as certain, it is not decoded either: that takes seconds.
 */
static struct kymo_error *clone_module(struct kymo_probes *probes, size_t i, struct room *room)
{
	const struct kymo_probes_clones *wanted = probes->wanted.options.clones;
	struct choice choice = { .wanted = wanted, .bias = probes->modules.items[i].bias, .probes = probes };
	const struct kymo_clones_bounds bounds = {
		.n_writes = room->n_writes, .is_given_up = is_given_up, .is_left_out = is_left_out, .data = &choice
	};
	struct probe_clones own = { .module = i, .first_site = room->next_site };
	struct kymo_code *code = NULL;
	uint64_t bytes = 0;
	struct kymo_error *error = weigh(probes, i, &choice, &bytes);
	const bool is_large = bytes / BYTES_A_WRITE > room->n_writes || bytes * CODE_A_BYTE > room->bytes;
	int err;

	if (error || !bytes)
		return error;
	if (!is_large)
		error = probes_code(probes, i, &code);
	if (error)
		return error;
	err = is_large ? -E2BIG : kymo_clones_create(&code->code, code->map, is_chosen, &choice, &bounds, &own.clones);
	if (err == -ECANCELED)
		return probes_clones_given_up(wanted->is_running);
	if (err)
		return err == -E2BIG && kymo_vec_push(&probes->unclonable, i) ? NULL : &kymo_error_no_memory;
	room->bytes -= bytes * CODE_A_BYTE;
	own.n_hops = choice.n_hops;
	return keep(probes, &own, room);
}

static bool is_of_file(const struct kymo_map *map)
{
	return map->executable && !map->shared && map->inode && map->path[0] == '/' &&
	       !kymo_wire_is_own_path(map->path);
}

/* All but that which is mapped around `away`. */
static struct kymo_error *clone_files(struct kymo_probes *probes, const struct kymo_maps *maps, uint64_t away)
{
	const struct kymo_probes_clones *wanted = probes->wanted.options.clones;
	struct room room = { .n_writes = KYMO_JOURNAL_CAPACITY, .bytes = KYMO_WINDOW_SIZE, .next_site = FIRST_SITE };
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < maps->n && !error; i++) {
		const size_t n = probes->modules.n;

		if (!is_of_file(&maps->items[i]) || probes_is_known(probes, &maps->items[i]))
			continue;
		error = wanted->is_given_up && wanted->is_given_up(wanted->data)
				? probes_clones_given_up(wanted->is_running)
				: probes_open_module(probes, &maps->items[i]);
		if (!error && probes->modules.n > n &&
		    (away < probes->modules.items[n].low || away >= probes->modules.items[n].high))
			error = clone_module(probes, n, &room);
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

/* It goes on while its files are decoded, and is looked at again when that is done. */
static struct kymo_error *check_running(struct kymo_probes *probes)
{
	struct kymo_error *error = probes_stop_patiently(probes->process);

	if (!error)
		error = probes_clones_check_threads(probes);
	kymo_process_resume(probes->process);
	return error;
}

struct kymo_error *kymo_probes_resolve_clones(struct kymo_probes *probes)
{
	const struct kymo_thread *thread = NULL;
	struct kymo_maps maps;
	struct kymo_error *error =
		probes_clones_enter(probes) ? check_running(probes) : check_thread(probes->process, &thread);

	if (!error)
		error = kymo_process_maps(probes->process, &maps);
	if (error)
		return error;
	/* The thread of one that starts stands in the linker, and would go on where jumps into clones are. */
	error = clone_files(probes, &maps, thread ? thread->registers.rip : kymo_linker_of(probes->pid));
	kymo_maps_deinit(&maps);
	if (!error && !n_functions(probes))
		error = kymo_error_create(KYMO_ERROR_UNSAFE, "none of the chosen functions %s",
					  probes->unclonable.n ? "is cloned: there are too many of them; choose fewer"
							       : "can be cloned; 'kymo explain --branch' says why");
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

size_t kymo_probes_n_staying(const struct kymo_probes *probes)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->clones.n; i++)
		for (size_t k = 0; probes->clones.items[i].stays && k < kymo_clones_n(probes->clones.items[i].clones);
		     k++)
			n += probes->clones.items[i].stays[k];
	return n;
}

size_t kymo_probes_n_unclonable(const struct kymo_probes *probes)
{
	return probes->unclonable.n;
}

const char *kymo_probes_unclonable(const struct kymo_probes *probes, size_t i)
{
	return probes->modules.items[probes->unclonable.items[i]].path;
}

void kymo_probes_put_beside(struct kymo_probes *probes, struct kymo_probes *others)
{
	probes->beside = others;
	others->beside = probes;
}

void kymo_probes_part(struct kymo_probes *probes)
{
	if (!probes)
		return;
	if (probes->beside)
		probes->beside->beside = NULL;
	probes->beside = NULL;
}

/* With the process stopped: a thread that runs may have taken away from a live page, meanwhile, what is written there
 * again. */
struct kymo_error *kymo_probes_note_clones(struct kymo_probes *probes)
{
	size_t n;
	const bool was_stopped = (kymo_process_threads(probes->process, &n), n > 0);
	struct kymo_error *error = was_stopped ? NULL : probes_stop_patiently(probes->process);

	if (!error)
		error = probes_write_state(probes, probes->threads.state);
	if (!was_stopped)
		kymo_process_resume(probes->process);
	return error;
}

size_t kymo_probes_n_in_the_way(const struct kymo_probes *probes)
{
	return probes->n_in_the_way;
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

bool kymo_probes_clone_origin(const struct kymo_probes *probes, struct user_regs_struct *registers)
{
	const uint64_t pc = registers->rip;

	for (size_t i = 0; i < probes->clones.n; i++) {
		const struct probe_clones *own = &probes->clones.items[i];
		const uint32_t at = (uint32_t)(pc - own->code);
		const struct kymo_clone_point *point =
			is_in(own, pc) ? kymo_clone_origin(kymo_clones_map(own->clones), at) : NULL;
		uint64_t pushed;

		if (!point || point->at != at)
			continue;
		if (point->pushed < KYMO_CLONE_HOLDS_NONE) {
			if (kymo_process_read(probes->process, registers->rsp, &pushed, sizeof(pushed)))
				return false;
			*kymo_clone_register(registers, point->pushed) = pushed;
		}
		registers->rsp += point->lowered;
		registers->rip = point->vaddr + probes->modules.items[own->module].bias;
		return true;
	}
	return false;
}
