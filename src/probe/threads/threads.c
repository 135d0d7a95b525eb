/*
 * How the threads of a process are told apart (tids.c has where their ids are), and whether they can use restartable
 * sequences: what the live pages say.
 */
#include "probe/threads/threads.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "probe/code/cache.h"
#include "probe/code/code.h"
#include "probe/code/modules.h"
#include "probe/coexist/text.h"
#include "probe/memory/data.h"
#include "probe/memory/state.h"
#include "probe/threads/sample.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "probe/site/warning.h"
#include "probe/threads/readable.h"
#include "probe/threads/reading.h"
#include "probe/threads/thread_stacks.h"
#include "probe/threads/tids.h"
#include "probe/threads/watch.h"
#include "probe/threads/writes.h"
#include "proc/call.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "proc/stop.h"
#include "proc/thread.h"
#include "proc/tree.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "sym/files.h"

#define RSEQ_SIGNATURE 0x53053053 /* glibc's on x86, sysdeps/unix/sysv/linux/x86/bits/rseq.h */
#define RSEQ_CPU_ID 4             /* in struct rseq */
#define CONTROL_BLOCK_SELF 16     /* glibc's tcbhead_t */

/* ---- the live pages -------------------------------------------------------------------------- */

/*
 * While a process has one thread its own id is that thread's. So a process in which nothing is known yet is examined
 * when it makes its second: both are held then. Not while a program starts: that is looked at when it has started.
 */
static void watch_birth(const struct kymo_probes *probes, struct kymo_process *process, uint8_t state)
{
	bool is_starting = probes->is_starting && process == probes->process;

	kymo_process_freeze_birth(process,
				  state == KYMO_PAD_EARLY && probes->wanted.options.is_followed && !is_starting);
}

/* What is recorded as tid where it can't be read: for that moment only it is worth a look. */
static pid_t recorded_pid(struct kymo_process *process, uint8_t state)
{
	return state == KYMO_PAD_EARLY ? kymo_process_inner_pid(process) : kymo_process_pid(process);
}

/* The upper half of the address; 0: there are no clones. Forked children have none that is read. */
static uint32_t arena_of(const struct kymo_probes *probes)
{
	return probes->beside && probes->beside->has_shared ? (uint32_t)(probes->beside->shared.arena.address >> 32)
							    : 0;
}

static struct kymo_error *write_pages(const struct kymo_probes *probes, struct kymo_process *process, uint8_t state)
{
	const struct probe_stack_words stacks = probes_stack_words(probes, state, process != probes->process);
	const uint64_t reader_on[] = { probes_reader(probes, process), stacks.of_threads[0], stacks.of_threads[1],
				       (uint64_t)kymo_process_inner_pid(process) };
	const uint32_t arena = process == probes->process ? arena_of(probes) : 0;
	const uint64_t readable = process == probes->process ? probes_readable_address(probes) : 0;
	int64_t page[7] = { 0 }; /* up to what pads count */

	_Static_assert(KYMO_PAD_LIVE_THREAD_STACK == KYMO_PAD_LIVE_READER + 8 &&
			       KYMO_PAD_LIVE_INNER_PID == KYMO_PAD_LIVE_READER + 24,
		       "they are written at once");
	memcpy(&page[KYMO_PAD_LIVE_STACK_ENOUGH / 8], stacks.initial, sizeof(stacks.initial));
	page[KYMO_PAD_LIVE_TID_OFFSET / 8] = probes->threads.tid_offset;
	page[KYMO_PAD_LIVE_RSEQ_OFFSET / 8] = probes->threads.rseq_offset;
	bool is_own = process == probes->process;

	page[KYMO_PAD_LIVE_VFORKS / 8] =
		(int64_t)(probes->threads.vforks && is_own ? probes->threads.vforks
							   : probes->shared.live[0] + KYMO_PAD_LIVE_VFORK_LIST);
	page[KYMO_PAD_LIVE_PID / 8] = recorded_pid(process, state);
	watch_birth(probes, process, state);
	for (uint32_t i = 0; i < probes->shared.n_regions; i++) {
		/* The offsets are there before a state that uses them. */
		int err = kymo_process_write(process, probes->shared.live[i] + 8, page + 1, sizeof(page) - 8);

		if (!err)
			err = kymo_process_write(process, probes->shared.live[i] + KYMO_PAD_LIVE_READER, reader_on,
						 sizeof(reader_on));
		if (!err)
			err = kymo_process_write(process, probes->shared.live[i] + KYMO_PAD_LIVE_READABLE, &readable,
						 sizeof(readable));
		if (!err)
			err = kymo_process_write(process, probes->shared.live[i] + KYMO_PAD_LIVE_ARENA, &arena,
						 sizeof(arena));
		if (!err)
			err = kymo_process_write(process, probes->shared.live[i], &state, 1);
		if (err)
			return kymo_error_errno(err, "cannot write to the live page");
	}
	return NULL;
}

struct kymo_error *probes_write_state(struct kymo_probes *probes, uint8_t state)
{
	struct kymo_error *error = NULL;

	probes->threads.state = state;
	probes_register_readable(probes);
	probes_note_reader(probes);
	if (probes->wanted.options.is_one_of_many && !probes->threads.has_begun_samples && probes->shared.n_regions) {
		error = probes_begin_samples(probes, probes->process);
		probes->threads.has_begun_samples = !error;
	}
	if (!error)
		probes_begin_writes(probes, probes->process);
	if (kymo_probes_are_muted(probes)) /* for good: the thread that did it may be stopped before it clears pages */
		state = KYMO_PAD_OFF;
	return error ? error : write_pages(probes, probes->process, state);
}

/* A vfork child may have done it for its maker. A process that is not adopted has not made one that is. */
static bool is_muted(const struct kymo_probes *probes, struct kymo_process *maker, const struct kymo_adopted *makers)
{
	uint8_t state;

	if (!makers && maker != probes->process)
		return true;
	if (makers ? !kymo_adopted_is_muted(makers) : !kymo_probes_are_muted(probes))
		return false;
	return kymo_process_read(maker, probes->shared.live[0], &state, sizeof(state)) || !state;
}

/*
 * Its thread has the registration that its control block says: the kernel has seen to it. The guards of another
 * recording do nothing in it. With glibc the kernel has stored its tid, too; musl asks for it later, and till then, as
 * where a program forks without its library, its maker's is there.
 */
void kymo_probes_set_child_buffer(struct kymo_probes *probes, uint64_t bytes)
{
	probes->wanted.child_buffer = bytes;
}

struct kymo_error *kymo_probes_adopt(struct kymo_probes *probes, struct kymo_process *child, struct kymo_process *maker,
				     const struct kymo_adopted *makers, struct kymo_adopted **ret)
{
	uint8_t state = probes->threads.state == KYMO_PAD_RSEQ && probes->threads.vforks ? KYMO_PAD_LIVE
											 : probes->threads.state;
	struct kymo_adopted *adopted;
	struct kymo_error *error;

	*ret = NULL;
	if (!probes->has_shared || is_muted(probes, maker, makers))
		return NULL;
	error = probes_make_data(probes, child, makers, &adopted);
	if (error)
		return error;
	if (state != KYMO_PAD_EARLY && !probes_is_tid_offset(child, probes->threads.tid_offset))
		state = KYMO_PAD_EARLY;
	if (probes->shared.n_regions)
		error = probes_begin_samples(probes, child);
	if (!error) {
		probes_begin_writes(probes, child);
		error = write_pages(probes, child, state);
	}
	if (error) {
		kymo_adopted_destroy(adopted);
		return error;
	}
	*ret = adopted;
	return NULL;
}

static void tell_confusion(struct kymo_probes *probes, struct kymo_process *process)
{
	probes->threads.is_confused = true;
	probes_warn(probes,
		    "the threads of process %d cannot be told apart (no thread id is found in its thread control "
		    "blocks): all records carry the process id",
		    kymo_process_pid(process));
}

struct kymo_error *kymo_probes_set_live(struct kymo_probes *probes)
{
	struct kymo_maps maps;
	struct kymo_error *error;
	bool known;
	size_t n;

	probes->threads.is_live = true;
	if (!probes->has_shared)
		return NULL;
	error = kymo_process_maps(probes->process, &maps);
	if (error)
		return error;
	/* A program that is starting has no other thread yet, and may be about to store the id of this one. */
	known = probes_tid_offset_of_glibc(probes, &maps) &&
		(probes->is_starting || probes_is_tid_offset(probes->process, probes->threads.tid_offset));
	kymo_maps_deinit(&maps);
	if (!known && !probes->is_starting)
		known = probes_find_tid_offset(probes, probes->process);
	if (known) {
		probes_find_thread_stacks(probes);
		return probes_write_state(probes, KYMO_PAD_LIVE);
	}
	probes->threads.tid_offset = 0;
	kymo_process_threads(probes->process, &n);
	if (!probes->wanted.options.is_followed || (n > 1 && !probes->is_starting))
		tell_confusion(probes, probes->process);
	return probes_write_state(probes, KYMO_PAD_EARLY);
}

/*
 * Threads of `process` are known by their tids from now on. It may have been forked before there were all regions, and
 * may have been muted: what does not look like a live page of its own that is early is left alone.
 */
static struct kymo_error *end_early(const struct kymo_probes *probes, struct kymo_process *process)
{
	const uint8_t live = KYMO_PAD_LIVE;
	int64_t page[5], pid = recorded_pid(process, KYMO_PAD_EARLY);

	for (uint32_t i = 0; i < probes->shared.n_regions; i++) {
		uint64_t at = probes->shared.live[i];
		int err = kymo_process_read(process, at, page, sizeof(page));

		if (err || (uint8_t)page[0] != KYMO_PAD_EARLY || page[KYMO_PAD_LIVE_PID / 8] != pid)
			continue;
		err = kymo_process_write(process, at + KYMO_PAD_LIVE_TID_OFFSET, &probes->threads.tid_offset,
					 sizeof(probes->threads.tid_offset));
		if (!err)
			err = kymo_process_write(process, at, &live, sizeof(live));
		if (err)
			return kymo_error_errno(err, "cannot write to the live page");
	}
	return NULL;
}

/* With `process` stopped. */
static struct kymo_error *look_at_threads(struct kymo_probes *probes, struct kymo_process *process)
{
	bool known = probes->threads.tid_offset ? probes_is_tid_offset(process, probes->threads.tid_offset)
						: probes_find_tid_offset(probes, process);

	if (!known) {
		tell_confusion(probes, process);
		return NULL;
	}
	if (process == probes->process) {
		probes->threads.is_live = true;
		probes->threads.state = KYMO_PAD_LIVE;
	}
	return end_early(probes, process);
}

struct kymo_error *kymo_probes_tell_apart(struct kymo_probes *probes, struct kymo_process *process)
{
	struct kymo_error *error;

	if (!probes->has_shared)
		return NULL;
	error = kymo_process_stop(process);
	if (!error)
		error = look_at_threads(probes, process);
	probes->threads.is_confused |= error != NULL;
	return error;
}

bool kymo_probes_lack_thread_ids(const struct kymo_probes *probes)
{
	if (!probes->has_shared || probes->is_starting || !kymo_probes_n_sites(probes))
		return false;
	return probes->wanted.options.is_followed ? probes->threads.is_confused
						  : probes->threads.state == KYMO_PAD_EARLY;
}

/* ---- restartable sequences ------------------------------------------------------------------- */

bool probes_may_use_sequences(struct kymo_probes *probes)
{
	const struct kymo_map *linker;
	struct kymo_maps maps;
	struct kymo_error *error;
	int64_t offset;
	bool may;

	if (probes->wanted.options.no_rseq || (!probes->is_starting && !probes->watch.has_guards))
		return false;
	error = kymo_process_maps(probes->process, &maps);
	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	linker = probes_find_library(&maps, "ld-linux-x86-64");
	may = linker && probes_read_object(probes, linker, "__rseq_offset", &offset, sizeof(offset));
	kymo_maps_deinit(&maps);
	return may;
}

/* __rseq_offset, once the dynamic linker has set it; __rseq_size is not 0 where it registered threads at all. */
static bool read_rseq_offset(struct kymo_probes *probes)
{
	const struct kymo_map *linker;
	struct kymo_maps maps;
	struct kymo_error *error;
	uint32_t size = 0;
	bool found;

	if (probes->threads.rseq_offset)
		return true;
	error = kymo_process_maps(probes->process, &maps);
	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	linker = probes_find_library(&maps, "ld-linux-x86-64");
	found = linker && probes_read_object(probes, linker, "__rseq_size", &size, sizeof(size)) && size &&
		probes_read_object(probes, linker, "__rseq_offset", &probes->threads.rseq_offset,
				   sizeof(probes->threads.rseq_offset)) &&
		probes->threads.rseq_offset > -(1 << 20) && probes->threads.rseq_offset < 1 << 20 &&
		probes->threads.rseq_offset;
	kymo_maps_deinit(&maps);
	if (!found)
		probes->threads.rseq_offset = 0;
	return found;
}

/* What can be read before the process is stopped. Failures come again, and are told, when it is. */
void probes_read_ahead(struct kymo_probes *probes)
{
	struct kymo_maps maps;
	struct kymo_error *error;

	kymo_error_destroy(kymo_remote_prepare(probes->process));
	if (probes->is_starting)
		return;
	error = kymo_process_maps(probes->process, &maps);
	if (!error) {
		probes_tid_offset_of_glibc(probes, &maps);
		kymo_maps_deinit(&maps);
		read_rseq_offset(probes);
	}
	kymo_error_destroy(error);
}

/*
 * What the kernel says of a thread must be what its control block says. A thread that is not registered (not yet, or
 * glibc was told not to) gets a cpu_id that says so, as it should have anyway.
 */
static bool is_thread_fit(struct kymo_probes *probes, size_t i, const struct kymo_thread *thread)
{
	const int32_t unregistered = -1;
	uint64_t area = thread->registers.fs_base + (uint64_t)probes->threads.rseq_offset, pointer, self;
	uint32_t signature;

	if (!thread->registers.fs_base || kymo_thread_rseq(probes->process, i, &pointer, &signature))
		return false;
	if (pointer)
		return pointer == area && signature == RSEQ_SIGNATURE;
	return !kymo_process_read(probes->process, thread->registers.fs_base + CONTROL_BLOCK_SELF, &self,
				  sizeof(self)) &&
	       self == thread->registers.fs_base &&
	       !kymo_process_write(probes->process, area + RSEQ_CPU_ID, &unregistered, sizeof(unregistered));
}

/* A program that is starting has made the call, and not yet stored where: the kernel knows. */
static bool ask_rseq_offset(struct kymo_probes *probes)
{
	const struct kymo_thread *threads;
	uint64_t pointer;
	uint32_t signature;
	size_t n;

	threads = kymo_process_threads(probes->process, &n);
	if (!n || kymo_thread_rseq(probes->process, 0, &pointer, &signature) || !pointer || signature != RSEQ_SIGNATURE)
		return false;
	probes->threads.rseq_offset = (int64_t)(pointer - threads[0].registers.fs_base);
	return probes->threads.rseq_offset > -(1 << 20) && probes->threads.rseq_offset < 1 << 20;
}

struct kymo_error *probes_use_sequences(struct kymo_probes *probes)
{
	const struct kymo_thread *threads;
	size_t n;

	if (!probes->has_shared || !probes->shared.is_sequenced || !probes->watch.has_guards ||
	    !probes->threads.tid_offset || (!read_rseq_offset(probes) && !ask_rseq_offset(probes)))
		return NULL;
	threads = kymo_process_threads(probes->process, &n);
	for (size_t i = 0; i < n; i++)
		if (!is_thread_fit(probes, i, &threads[i]))
			return NULL;
	return probes_write_state(probes, KYMO_PAD_RSEQ);
}

static bool has_libc(const struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->modules.n; i++)
		if (kymo_name_matches_file("libc", probes->modules.items[i].path, NULL))
			return true;
	return false;
}

/* While a program is starting its C library is still to come, and the guards with it. */
static bool may_guards_come(const struct kymo_probes *probes)
{
	return probes->is_starting && probes->shared.is_sequenced && !probes->wanted.options.no_rseq &&
	       !has_libc(probes);
}

/* Nothing is planned yet: what has a C library has guards soon. */
void probes_prepare_rings_early(struct kymo_probes *probes)
{
	bool has_guards = probes->watch.has_guards || may_guards_come(probes) ||
			  (probes->shared.is_sequenced && !probes->wanted.options.no_rseq && has_libc(probes));

	probes_prepare_readable(probes);
	if (!probes->wanted.options.is_one_of_many && (has_guards || !probes->shared.is_sequenced))
		kymo_data_prepare_ahead(&probes->shared, &probes->wanted.options, &probes->shared.data, !has_guards);
}

void probes_prepare_rings_ahead(struct kymo_probes *probes)
{
	if (!probes->wanted.options.is_one_of_many)
		kymo_data_prepare_ahead(&probes->shared, &probes->wanted.options, &probes->shared.data,
					!probes->watch.has_guards && !may_guards_come(probes));
}

struct kymo_error *probes_prepare_rings(struct kymo_probes *probes)
{
	return kymo_data_prepare(&probes->shared, &probes->wanted.options, &probes->shared.data,
				 !probes->watch.has_guards && !may_guards_come(probes));
}

void kymo_probes_starting(struct kymo_probes *probes)
{
	probes->is_starting = true;
}

/* Constructors may have made threads, which run: they are stopped for this. */
struct kymo_error *kymo_probes_started(struct kymo_probes *probes)
{
	bool is_to_look = probes->threads.state == KYMO_PAD_EARLY && probes->wanted.options.is_followed;
	struct kymo_error *error;
	size_t n;

	probes->is_starting = false;
	probes_watch_from_here(probes);
	if (!probes->has_shared || (!probes->shared.is_sequenced && !is_to_look))
		return NULL;
	error = probes_prepare_rings(probes);
	if (!error)
		error = kymo_process_stop_others(probes->process);
	kymo_process_threads(probes->process, &n);
	if (!error && is_to_look && n > 1)
		error = look_at_threads(probes, probes->process);
	else if (!error && is_to_look)
		watch_birth(probes, probes->process, probes->threads.state);
	return error ? error : probes_use_sequences(probes);
}

/* ---- guards ---------------------------------------------------------------------------------- */

/* Whether a user's probe is, or will be, where a guard has to be, or so close before it that its jump ends there. */
static bool is_in_the_way(const struct kymo_probes *probes, uint64_t address, unsigned int size)
{
	uint64_t low = address - (KYMO_JUMP_SIZE - 1);

	for (size_t i = 0; i < probes->sites.n; i++)
		if (probes->sites.items[i].address - low < address + size - low)
			return true;
	return probe_text_is(&probes->text, TEXT_LOCKED, address, size);
}

/* All of a library's guards, or none. */
static struct kymo_error *add_guards_of(struct kymo_probes *probes, size_t module_at)
{
	const struct probe_module *module = &probes->modules.items[module_at];
	const struct kymo_plan *plans;
	struct kymo_code *code;
	struct kymo_error *error = probes_code(probes, module_at, &code);
	int n = 0;

	if (!error)
		error = probe_cached_guards(module->file, &plans, &n);
	if (error)
		return error;
	for (int i = 0; i < n; i++)
		if (is_in_the_way(probes, module->bias + plans[i].vaddr, plans[i].window))
			return NULL;
	for (int i = 0; i < n && !error; i++) {
		struct probe_site site = { .module = module_at, .plan = plans[i], .is_guard = true }, *inserted;

		site.address = module->bias + plans[i].vaddr;
		error = probes_insert_site(probes, &site, &inserted);
	}
	if (!error && n > 0)
		probes->watch.has_guards = true;
	return error;
}

void probes_drop_guards(struct kymo_probes *probes)
{
	size_t kept = 0;

	for (size_t i = 0; i < probes->sites.n; i++)
		if (!probes->sites.items[i].is_guard || probes->sites.items[i].is_installed)
			probes->sites.items[kept++] = probes->sites.items[i];
	probes->sites.n = kept;
	probes->watch.has_guards = probes->watch.has_limits_watch = false;
	probes->wanted.options.no_rseq = true;
}

struct kymo_error *probes_add_guards(struct kymo_probes *probes)
{
	struct kymo_error *error = NULL;

	if (probes->wanted.options.no_rseq || probes->watch.has_guards ||
	    (probes->has_shared && !probes->shared.is_sequenced))
		return NULL;
	for (size_t i = 0; i < probes->modules.n && !error && !probes->watch.has_guards; i++)
		if (kymo_name_matches_file("libc", probes->modules.items[i].path, NULL))
			error = add_guards_of(probes, i);
	return error;
}
