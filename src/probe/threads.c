/*
 * How the threads of a process are told apart, and whether they can use restartable sequences: what the live pages say.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "probe/probes.h"

#define RSEQ_SIGNATURE 0x53053053	/* glibc's on x86, sysdeps/unix/sysv/linux/x86/bits/rseq.h */
#define RSEQ_CPU_ID 4			/* in struct rseq */
#define CONTROL_BLOCK_SELF 16		/* glibc's tcbhead_t */
#define MAX_GUARDS 16

/* ---- thread ids ---------------------------------------------------------------------------------------------------- */

/* The value of a data object of a mapped library, by name. */
static bool read_object(struct kymo_probes *probes, const struct kymo_map *map, const char *name, void *data, size_t size)
{
	kymo_cleanup_close int fd = -1;
	struct kymo_module *module;
	struct kymo_error *error;
	uint64_t vaddr, vsize;
	bool found;

	error = kymo_open_mapped(kymo_process_pid(probes->process), map, &fd);
	if (!error)
		error = kymo_module_open_fd(fd, map->path, &module);
	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	found = !kymo_module_find_object(module, name, &vaddr, &vsize) &&
		!kymo_process_read(probes->process, map->start + vaddr, data, size);
	kymo_module_close(module);
	return found;
}

/* The first mapping of a library that is called so, or NULL. */
static const struct kymo_map *find_library(const struct kymo_maps *maps, const char *name)
{
	for (size_t i = 0; i < maps->n; i++)
		if (maps->items[i].path[0] == '/' && !maps->items[i].offset &&
		    kymo_name_matches_file(name, maps->items[i].path, NULL))
			return &maps->items[i];
	return NULL;
}

/*
 * Where threads keep their tid, from what glibc tells debuggers: three numbers, bits, count, offset (nptl_db's DB_STRUCT_FIELD). Reading the library takes
 * time, so it is done once, and if possible before the process is stopped.
 */
static bool tid_offset_of_glibc(struct kymo_probes *probes, const struct kymo_maps *maps)
{
	const struct kymo_map *map = find_library(maps, "libc");
	uint32_t description[3];

	if (probes->tid_offset)
		return true;
	if (!map || !read_object(probes, map, "_thread_db_pthread_tid", description, sizeof(description)) ||
	    description[0] != 32 || description[2] >= 65536)
		return false;
	probes->tid_offset = description[2];
	return true;
}

/* A thread in a container knows itself by another number. */
static pid_t inner_tid(pid_t tid)
{
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(tid, &info);

	if (!error)
		return info.inner_pid;
	kymo_error_destroy(error);
	return tid;
}

/* Whether each stopped thread has its tid there. */
static bool is_tid_offset(struct kymo_probes *probes, int64_t offset)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(probes->process, &n);
	for (size_t i = 0; i < n; i++) {
		int32_t tid;

		if (!threads[i].registers.fs_base ||
		    kymo_process_read(probes->process, threads[i].registers.fs_base + (uint64_t)offset, &tid, sizeof(tid)) ||
		    (tid != threads[i].tid && tid != inner_tid(threads[i].tid)))
			return false;
	}
	return n > 0;
}

/* Other libraries describe nothing; but where the first thread's block holds its tid, and all the others do so too, there it is. */
static bool find_tid_offset(struct kymo_probes *probes)
{
	enum { SEARCHED = 2048 };
	const struct kymo_thread *threads;
	int32_t words[SEARCHED / 4];
	size_t n;

	threads = kymo_process_threads(probes->process, &n);
	if (!n || !threads[0].registers.fs_base ||
	    kymo_process_read(probes->process, threads[0].registers.fs_base, words, sizeof(words)))
		return false;
	for (int64_t i = 0; i < SEARCHED / 4; i++) {
		if ((words[i] == threads[0].tid || words[i] == inner_tid(threads[0].tid)) && is_tid_offset(probes, 4 * i)) {
			probes->tid_offset = 4 * i;
			return true;
		}
	}
	return false;
}

/* ---- the live pages ------------------------------------------------------------------------------------------------ */

struct kymo_error *probes_write_state(struct kymo_probes *probes, uint8_t state)
{
	int64_t page[3] = { 0 };

	page[KYMO_PAD_LIVE_TID_OFFSET / 8] = probes->tid_offset;
	page[KYMO_PAD_LIVE_RSEQ_OFFSET / 8] = probes->rseq_offset;
	for (uint32_t i = 0; i < probes->shared.n_regions; i++) {
		/* The offsets are there before a state that uses them. */
		int err = kymo_process_write(probes->process, probes->shared.live[i] + 8, page + 1, sizeof(page) - 8);

		if (!err)
			err = kymo_process_write(probes->process, probes->shared.live[i], &state, 1);
		if (err)
			return kymo_error_errno(err, "cannot write to the live page");
	}
	return NULL;
}

struct kymo_error *kymo_probes_set_live(struct kymo_probes *probes)
{
	struct kymo_maps maps;
	struct kymo_error *error;
	bool known;

	probes->is_live = true;
	if (!probes->has_shared)
		return NULL;
	error = kymo_maps_read(kymo_process_pid(probes->process), &maps);
	if (error)
		return error;
	/* A program that is starting stores its tid right behind the call at which it stands now. */
	known = tid_offset_of_glibc(probes, &maps) && (probes->is_starting || is_tid_offset(probes, probes->tid_offset));
	kymo_maps_deinit(&maps);
	if (!known && !probes->is_starting)
		known = find_tid_offset(probes);
	if (known)
		return probes_write_state(probes, KYMO_PAD_LIVE);
	probes->tid_offset = 0;
	probes_warn(probes, "the threads of process %d can't be told apart (no thread id is found in its thread control blocks): all records carry the process id",
		    kymo_process_pid(probes->process));
	return probes_write_state(probes, KYMO_PAD_EARLY);
}

/* ---- restartable sequences ------------------------------------------------------------------------------------------ */

bool probes_may_use_sequences(struct kymo_probes *probes)
{
	const struct kymo_map *linker;
	struct kymo_maps maps;
	struct kymo_error *error;
	int64_t offset;
	bool may;

	if (probes->options.no_rseq || (!probes->is_starting && !probes->has_guards))
		return false;
	error = kymo_maps_read(kymo_process_pid(probes->process), &maps);
	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	linker = find_library(&maps, "ld-linux-x86-64");
	may = linker && read_object(probes, linker, "__rseq_offset", &offset, sizeof(offset));
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

	if (probes->rseq_offset)
		return true;
	error = kymo_maps_read(kymo_process_pid(probes->process), &maps);
	if (error) {
		kymo_error_destroy(error);
		return false;
	}
	linker = find_library(&maps, "ld-linux-x86-64");
	found = linker && read_object(probes, linker, "__rseq_size", &size, sizeof(size)) && size &&
		read_object(probes, linker, "__rseq_offset", &probes->rseq_offset, sizeof(probes->rseq_offset)) &&
		probes->rseq_offset > -(1 << 20) && probes->rseq_offset < 1 << 20 && probes->rseq_offset;
	kymo_maps_deinit(&maps);
	if (!found)
		probes->rseq_offset = 0;
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
	error = kymo_maps_read(kymo_process_pid(probes->process), &maps);
	if (!error) {
		tid_offset_of_glibc(probes, &maps);
		kymo_maps_deinit(&maps);
		read_rseq_offset(probes);
	}
	kymo_error_destroy(error);
}

/*
 * What the kernel says of a thread must be what its control block says. A thread that is not registered (it is on its way to it, or glibc was told not to) gets a
 * cpu_id that says so, which is what it should hold anyway.
 */
static bool is_thread_fit(struct kymo_probes *probes, size_t i, const struct kymo_thread *thread)
{
	const int32_t unregistered = -1;
	uint64_t area = thread->registers.fs_base + (uint64_t)probes->rseq_offset, pointer, self;
	uint32_t signature;

	if (!thread->registers.fs_base || kymo_thread_rseq(probes->process, i, &pointer, &signature))
		return false;
	if (pointer)
		return pointer == area && signature == RSEQ_SIGNATURE;
	return !kymo_process_read(probes->process, thread->registers.fs_base + CONTROL_BLOCK_SELF, &self, sizeof(self)) &&
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
	probes->rseq_offset = (int64_t)(pointer - threads[0].registers.fs_base);
	return probes->rseq_offset > -(1 << 20) && probes->rseq_offset < 1 << 20;
}

struct kymo_error *probes_use_sequences(struct kymo_probes *probes)
{
	const struct kymo_thread *threads;
	size_t n;

	if (!probes->has_shared || !probes->shared.is_sequenced || !probes->has_guards || !probes->tid_offset ||
	    (!read_rseq_offset(probes) && !ask_rseq_offset(probes)))
		return NULL;
	threads = kymo_process_threads(probes->process, &n);
	for (size_t i = 0; i < n; i++)
		if (!is_thread_fit(probes, i, &threads[i]))
			return NULL;
	return probes_write_state(probes, KYMO_PAD_RSEQ);
}

void kymo_probes_starting(struct kymo_probes *probes)
{
	probes->is_starting = true;
}

/* Constructors may have made threads, which run: they are stopped for this. */
struct kymo_error *kymo_probes_started(struct kymo_probes *probes)
{
	struct kymo_error *error;

	probes->is_starting = false;
	if (!probes->has_shared || !probes->shared.is_sequenced)
		return NULL;
	error = kymo_process_stop_others(probes->process);
	return error ? error : probes_use_sequences(probes);
}

/* ---- guards --------------------------------------------------------------------------------------------------------- */

/* All of a library's guards, or none. */
static struct kymo_error *add_guards_of(struct kymo_probes *probes, size_t module_at)
{
	const struct probe_module *module = &probes->modules.items[module_at];
	struct kymo_plan plans[MAX_GUARDS];
	struct kymo_code *code;
	struct kymo_error *error = probes_code(probes, module_at, &code);
	int n;

	if (error)
		return error;
	n = kymo_guard_find(&code->code, code->map, plans, MAX_GUARDS);
	for (int i = 0; i < n; i++)
		if (probes_overlapped(probes, module->bias + plans[i].vaddr, plans[i].window))
			return NULL;
	for (int i = 0; i < n && !error; i++) {
		struct probe_site site = { .module = module_at, .plan = plans[i], .is_guard = true }, *inserted;

		site.address = module->bias + plans[i].vaddr;
		error = probes_insert_site(probes, &site, &inserted);
	}
	if (!error && n > 0)
		probes->has_guards = true;
	return error;
}

struct kymo_error *probes_add_guards(struct kymo_probes *probes)
{
	struct kymo_error *error = NULL;

	if (probes->options.no_rseq || probes->has_guards || (probes->has_shared && !probes->shared.is_sequenced))
		return NULL;
	for (size_t i = 0; i < probes->modules.n && !error && !probes->has_guards; i++)
		if (kymo_name_matches_file("libc", probes->modules.items[i].path, NULL))
			error = add_guards_of(probes, i);
	return error;
}
