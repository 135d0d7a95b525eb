#include "probe/install/clone_entry.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arch/clone_stand.h"
#include "arch/clones.h"
#include "arch/leave_pad.h"
#include "arch/pad.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "probe/code/code.h"
#include "probe/code/modules.h"
#include "probe/install/frames.h"
#include "probe/memory/sessions.h"
#include "probe/options.h"
#include "probe/plan/clone_beside.h"
#include "probe/plan/clone_sites.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/thread.h"
#include "procfs/info.h"
#include "procfs/maps.h"

#define WAITS_MAX 8u /* a quarter of a second in all */
#define SPARE_RINGS 4u
#define CHUNK 65536u

bool probes_clones_enter(const struct kymo_probes *probes)
{
	return probes->wanted.options.clones && probes->wanted.options.clones->is_running;
}

/* ---- control blocks -------------------------------------------------------------------------- */

/* glibc's control block points to itself at these. */
#define BLOCK_SELF 16
#define WORDS 3

static bool has_block(struct kymo_process *process, uint64_t block)
{
	uint64_t self[WORDS];

	return block && !kymo_process_read(process, block, self, sizeof(self)) && self[0] == block &&
	       self[BLOCK_SELF / sizeof(self[0])] == block;
}

static struct kymo_error *check_thread(struct kymo_probes *probes, const struct kymo_thread *thread)
{
	const uint64_t block = thread->registers.fs_base;
	uint64_t word;

	if (!has_block(probes->process, block) ||
	    kymo_process_read(probes->process, block + PROBE_CLONES_WORD, &word, sizeof(word)))
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "thread %d of process %d is none of glibc as kymo knows them: its functions "
					 "can't be cloned",
					 thread->tid, probes->pid);
	if (!kymo_arena_may_be_word(word))
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "thread %d of process %d has something (0x%" PRIx64
					 ") where clones keep its ring (FS:%d)",
					 thread->tid, probes->pid, word, PROBE_CLONES_WORD);
	return NULL;
}

struct kymo_error *probes_clones_check_threads(struct kymo_probes *probes)
{
	const struct kymo_thread *threads;
	struct kymo_error *error = NULL;
	uint32_t tid = 0;
	size_t n;

	threads = kymo_process_threads(probes->process, &n);
	for (size_t i = 0; i < n && !error; i++)
		error = check_thread(probes, &threads[i]);
	if (error || !n)
		return error;
	if (!kymo_process_read(probes->process, threads[0].registers.fs_base + PROBE_CLONES_TID, &tid, sizeof(tid)) &&
	    tid == (uint32_t)kymo_inner_tid(threads[0].tid))
		return NULL;
	return kymo_error_create(KYMO_ERROR_UNSAFE,
				 "threads of process %d do not have their ids where kymo knows them in glibc: its "
				 "functions can't be cloned",
				 probes->pid);
}

/* ---- functions that stay as they are --------------------------------------------------------- */

static bool begin_choice(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->sites.n; i++)
		probes->sites.items[i].is_left_out = false;
	for (size_t i = 0; i < probes->clones.n; i++) {
		struct probe_clones *own = &probes->clones.items[i];

		free(own->stays);
		own->stays = calloc(kymo_clones_n(own->clones) + 1, sizeof(*own->stays));
		if (!own->stays)
			return false;
	}
	return true;
}

static void leave_out_site(struct kymo_probes *probes, uint64_t address)
{
	struct probe_site *site = address ? probes_site_at(probes, address) : NULL;

	if (site)
		site->is_left_out = true;
}

static void end_choice(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->clones.n; i++) {
		const struct probe_clones *own = &probes->clones.items[i];
		const uint64_t bias = probes->modules.items[own->module].bias;

		for (size_t k = 0; k < kymo_clones_n(own->clones); k++) {
			const struct kymo_catch *catches;
			uint32_t first_site;
			size_t n;

			if (!own->stays[k])
				continue;
			catches = kymo_clone_catches(kymo_clones_at(own->clones, k, &first_site), &n);
			for (size_t c = 0; c < n; c++) {
				leave_out_site(probes, catches[c].vaddr + bias);
				leave_out_site(probes, catches[c].island ? catches[c].island + bias : 0);
			}
		}
	}
}

/* ---- text that is not the file's ------------------------------------------------------------- */

/* What was read of the process' text last. */
struct text {
	struct kymo_process *process;
	uint64_t address;
	size_t size;
	uint8_t bytes[CHUNK], file[CHUNK];
};

static const uint8_t *read_text(struct text *text, uint64_t address, size_t size)
{
	if (text->size && address >= text->address && address + size - text->address <= text->size)
		return text->bytes + (address - text->address);
	text->address = address;
	text->size = CHUNK;
	if (!kymo_process_read(text->process, address, text->bytes, text->size))
		return text->bytes;
	text->size = kymo_process_read(text->process, address, text->bytes, size) ? 0 : size;
	return text->size ? text->bytes : NULL;
}

/* But for the jumps of the probes beside the clones. */
static bool is_the_files(const struct kymo_probes *probes, const struct probe_module *module, struct text *text,
			 uint64_t from, uint64_t to)
{
	while (from < to) {
		const size_t size = to - from < CHUNK ? (size_t)(to - from) : CHUNK;
		const uint8_t *now = read_text(text, from + module->bias, size);

		if (!now || !kymo_code_bytes(module->code, from, text->file, size))
			return false;
		probes_put_jumps(probes, from + module->bias, text->file, size);
		if (memcmp(now, text->file, size) != 0)
			return false;
		from += size;
	}
	return true;
}

static struct kymo_error *compare_text(struct kymo_probes *probes)
{
	kymo_cleanup_free struct text *text = malloc(sizeof(*text));

	if (!text)
		return &kymo_error_no_memory;
	text->process = probes->process;
	text->size = 0;
	for (size_t i = 0; i < probes->clones.n; i++) {
		struct probe_clones *own = &probes->clones.items[i];

		for (size_t k = 0; k < kymo_clones_n(own->clones); k++) {
			uint32_t first_site;
			size_t n;
			const struct kymo_extent *parts =
				kymo_clone_parts(kymo_clones_at(own->clones, k, &first_site), &n);

			for (size_t p = 0; p < n; p++)
				own->stays[k] |= !is_the_files(probes, &probes->modules.items[own->module], text,
							       parts[p].start, parts[p].end);
		}
	}
	return NULL;
}

/* ---- where threads stand --------------------------------------------------------------------- */

/* The clones of the file of which that may be code; NULL: of none. */
static struct probe_clones *clones_around(const struct kymo_probes *probes, uint64_t pc)
{
	for (size_t i = 0; i < probes->clones.n; i++) {
		const struct probe_module *module = &probes->modules.items[probes->clones.items[i].module];

		if (pc >= module->low && pc <= module->high) /* a call may end the last function */
			return &probes->clones.items[i];
	}
	return NULL;
}

static enum kymo_clone_stand_kind stand_of(const struct kymo_probes *probes, const struct kymo_thread *thread,
					   struct probe_clones **own_ret, struct kymo_clone_stand *ret)
{
	*own_ret = clones_around(probes, thread->registers.rip);
	if (!*own_ret)
		return KYMO_STANDS_OUTSIDE;
	return kymo_clones_stand((*own_ret)->clones, &thread->registers, probes->modules.items[(*own_ret)->module].bias,
				 ret);
}

static void look_at_threads(struct kymo_probes *probes)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(probes->process, &n);
	for (size_t i = 0; i < n; i++) {
		struct kymo_clone_stand stand;
		struct probe_clones *own;

		if (stand_of(probes, &threads[i], &own, &stand) == KYMO_STANDS_ASTRAY)
			own->stays[stand.index] = true;
	}
}

/* ---- frames of signals ----------------------------------------------------------------------- */

struct frames {
	struct kymo_probes *probes;
	const struct kymo_maps *maps;
	bool has_any; /* that are in the way */
};

static void note_staying(struct frames *frames, uint64_t address)
{
	struct probe_clones *own = clones_around(frames->probes, address);
	size_t index;

	if (!own || !kymo_clones_find(own->clones, address - frames->probes->modules.items[own->module].bias, &index))
		return;
	frames->has_any |= !own->stays[index];
	own->stays[index] = true;
}

/* A thread in the pad of a probe may have looked already where it goes on: in the function's own text. One in code that
 * pads share returns to a pad, before that looks. */
static bool note_in_pad(struct frames *frames, uint64_t pc)
{
	const struct kymo_probes *beside = frames->probes->beside;
	const struct kymo_map *map = beside ? kymo_maps_at(frames->maps, pc) : NULL;

	if (!map || !map->executable || !kymo_is_shared_map(map) || map->inode != beside->shared.inode)
		return false;
	for (size_t i = 0; i < beside->sites.n; i++) {
		const struct probe_site *site = &beside->sites.items[i];

		if (!site->is_installed || pc < site->pad || pc - site->pad >= site->layout.size)
			continue;
		if (!kymo_pad_will_look(&site->layout, pc - site->pad))
			note_staying(frames, site->address);
		return true;
	}
	return true;
}

static void note_threads_in_pads(struct frames *frames)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(frames->probes->process, &n);
	for (size_t i = 0; i < n; i++)
		note_in_pad(frames, threads[i].registers.rip);
}

/* One that continues where a catch begins comes into the clone by itself. */
static bool note_frame(const struct probes_pc *pc, void *data)
{
	struct frames *frames = data;
	struct probe_clones *own = note_in_pad(frames, pc->address) ? NULL : clones_around(frames->probes, pc->address);
	enum kymo_catch_kind kind;
	uint32_t first_site;
	uint64_t vaddr;
	size_t index;

	if (!own)
		return false;
	vaddr = pc->address - frames->probes->modules.items[own->module].bias;
	if (!kymo_clones_find(own->clones, vaddr, &index) || own->stays[index] ||
	    kymo_clone_is_catch(kymo_clones_at(own->clones, index, &first_site), vaddr, &kind))
		return false;
	own->stays[index] = frames->has_any = true;
	return false;
}

struct kymo_error *probes_clones_look(struct kymo_probes *probes, const struct kymo_maps *maps, bool *occupied_ret)
{
	struct frames frames = { .probes = probes, .maps = maps };
	struct kymo_error *error = probes_clones_check_threads(probes);
	pid_t tid;

	*occupied_ret = false;
	if (!error && !begin_choice(probes))
		error = &kymo_error_no_memory;
	if (error)
		return error;
	note_threads_in_pads(&frames);
	probes_find_saved_pc(probes->process, maps, note_frame, &frames, &tid);
	*occupied_ret = frames.has_any && probes->attempt.n_waits++ < WAITS_MAX;
	if (*occupied_ret)
		return NULL;
	look_at_threads(probes);
	error = compare_text(probes);
	if (!error)
		error = probe_find_frames(probes->process, maps, note_frame, &frames);
	end_choice(probes);
	return error;
}

/* ---- moving ---------------------------------------------------------------------------------- */

static int give_words(struct kymo_probes *probes, const struct kymo_thread *threads, size_t n, uint64_t *words)
{
	kymo_cleanup_free struct kymo_wire_arena_thread *entries = calloc(n ? n : 1, sizeof(*entries));
	struct kymo_arena *arena = &probes->shared.arena;
	int err;

	if (!entries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		entries[i] = (struct kymo_wire_arena_thread){ .block = threads[i].registers.fs_base,
							      .tid = (uint32_t)threads[i].tid };
	kymo_arena_grow(arena, (uint32_t)n + SPARE_RINGS); /* those that are not ready get the sink */
	err = kymo_arena_give(arena, entries, n, words);
	for (size_t i = 0; i < n && !err; i++)
		err = kymo_process_write(probes->process, threads[i].registers.fs_base + PROBE_CLONES_WORD, &words[i],
					 sizeof(words[i]));
	return err;
}

/* Else their bytes, which may be another party's, would be taken for what remains of a catch. */
static int strike_left_out(struct kymo_probes *probes)
{
	int err = 0;

	for (size_t i = 0; i < probes->sites.n && !err; i++)
		if (probes->sites.items[i].is_left_out)
			err = -kymo_shared_strike(&probes->shared, probes->sites.items[i].order);
	return err;
}

static int move_thread(struct kymo_probes *probes, size_t index, uint64_t word)
{
	const struct kymo_thread *threads;
	struct user_regs_struct registers;
	struct kymo_clone_stand stand;
	struct probe_clones *own;
	uint64_t had;
	size_t n;
	int err = 0;

	threads = kymo_process_threads(probes->process, &n);
	if (probes_before(probes, threads[index].registers.rip)) /* it comes by the probe, and by its hop */
		return 0;
	if (stand_of(probes, &threads[index], &own, &stand) != KYMO_STANDS_IN || own->stays[stand.index])
		return 0;
	registers = threads[index].registers;
	had = *kymo_clone_register(&registers, stand.held);
	kymo_clone_stand_move(&stand, own->code, word, &registers);
	if (stand.lowered)
		err = kymo_process_write(probes->process, registers.rsp, &had, sizeof(had));
	return err ? err : kymo_thread_set_registers(probes->process, index, &registers);
}

struct kymo_error *probes_clones_move(struct kymo_probes *probes)
{
	kymo_cleanup_free uint64_t *words = NULL;
	const struct kymo_thread *threads;
	size_t n;
	int err;

	threads = kymo_process_threads(probes->process, &n);
	words = calloc(n ? n : 1, sizeof(*words));
	err = words ? strike_left_out(probes) : -ENOMEM;
	if (!err)
		err = give_words(probes, threads, n, words);
	for (size_t i = 0; i < n && !err; i++) {
		err = move_thread(probes, i, words[i]);
		if (err == -ESRCH) /* it was killed, as is all of the process then */
			err = 0;
	}
	return err ? kymo_error_errno(err, "cannot lead the threads of process %d into clones", probes->pid) : NULL;
}
