#include "clones.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "arch/step.h"
#include "base/search.h"
#include "branch/blocks.h"
#include "probe/code/code.h"
#include "sym/open.h"
#include "wire/clones.h"

#define CHECK(what) \
	do { \
		if (!(what)) { \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #what, strerror(errno)); \
			abort(); \
		} \
	} while (0)

__thread uint64_t clones_position;
static __thread uint64_t ring;

/* ---- the ring -------------------------------------------------------------------------------- */

void clones_ring_begin(void)
{
	if (!ring) {
		uint8_t *at = mmap(NULL, 2 * KYMO_WIRE_ARENA_RING_SIZE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		CHECK(at != MAP_FAILED);
		ring = ((uint64_t)at + KYMO_WIRE_ARENA_RING_SIZE - 1) & ~(uint64_t)(KYMO_WIRE_ARENA_RING_SIZE - 1);
	}
	memset((void *)ring, 0, KYMO_WIRE_ARENA_RING_SIZE);
	clones_position = ring;
}

static size_t read_ring(const uint32_t *entries, uint32_t *ret)
{
	const size_t size = KYMO_WIRE_ARENA_RING_SIZE / 4;
	const struct branch_ring_entries found = branch_find_entries(entries, size, -1);

	for (size_t i = 0; i < found.n; i++)
		ret[i] = entries[(found.end + size - found.n + i) % size];
	return found.n;
}

size_t clones_ring_read(uint32_t *ret)
{
	return read_ring((const uint32_t *)ring, ret);
}

/* ---- the arena ------------------------------------------------------------------------------- */

static uint8_t *arena;

static void make_arena(void)
{
	for (uint64_t at = KYMO_WIRE_ARENA_ALIGN; !arena && at < UINT64_C(1) << 46; at += KYMO_WIRE_ARENA_ALIGN) {
		void *found = mmap((void *)at, KYMO_WIRE_ARENA_SIZE, PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

		if (found != MAP_FAILED && found != (void *)at)
			munmap(found, KYMO_WIRE_ARENA_SIZE);
		else if (found != MAP_FAILED)
			arena = found;
	}
	CHECK(arena);
}

struct kymo_wire_arena *clones_arena_begin(uint32_t n_ready)
{
	struct kymo_wire_arena *head;

	if (!arena)
		make_arena();
	head = (struct kymo_wire_arena *)arena;
	memset(arena + KYMO_WIRE_ARENA_FIRST, 0, (head->next + 1) * (size_t)KYMO_WIRE_ARENA_STRIDE);
	*head = (struct kymo_wire_arena){ .ready = n_ready };
	clones_position = 0;
	return head;
}

size_t clones_arena_read(const struct kymo_wire_arena *head, uint32_t number, uint32_t *ret)
{
	const uint8_t *at = (const uint8_t *)head + KYMO_WIRE_ARENA_FIRST + number * (size_t)KYMO_WIRE_ARENA_STRIDE;

	return read_ring((const uint32_t *)at, ret);
}

static int32_t position_from_fs(void)
{
	uint64_t fs;

	__asm__("mov %%fs:0,%0" : "=r"(fs));
	return (int32_t)((uint64_t)&clones_position - fs);
}

/* ---- putting them in ------------------------------------------------------------------------- */

static const struct link_map *map_of(void *handle)
{
	struct link_map *map;

	CHECK(!dlinfo(handle, RTLD_DI_LINKMAP, &map));
	return map;
}

static void find_text(struct clones *clones)
{
	const struct kymo_module_code *code = &clones->code->code;
	uint64_t low = UINT64_MAX, high = 0;

	for (size_t i = 0; i < code->n_text; i++) {
		low = code->text[i].vaddr < low ? code->text[i].vaddr : low;
		high = code->text[i].vaddr + code->text[i].size > high ? code->text[i].vaddr + code->text[i].size
								       : high;
	}
	low &= ~UINT64_C(4095);
	high = (high + 4095) & ~UINT64_C(4095);
	clones->text = (uint8_t *)(low + clones->bias);
	clones->text_size = high - low;
	CHECK(!mprotect(clones->text, clones->text_size, PROT_READ | PROT_WRITE | PROT_EXEC));
	clones->original = malloc(clones->text_size);
	CHECK(clones->original);
	memcpy(clones->original, clones->text, clones->text_size);
}

static void reserve_code(struct clones *clones, size_t size)
{
	for (uint64_t distance = 16 << 20; distance < UINT64_C(1) << 30; distance += 16 << 20) {
		void *want = clones->text - distance;
		void *at = mmap(want, size, PROT_READ | PROT_WRITE | PROT_EXEC,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

		if (at == MAP_FAILED)
			continue;
		CHECK(at == want);
		clones->code_out = at;
		clones->code_size = size;
		return;
	}
	CHECK(!"room for clones");
}

static void note_function(struct clones *clones, size_t index)
{
	struct branch_function *function = &clones->functions[index];
	const uint64_t *sites;
	size_t n;

	function->clone = kymo_clones_at(clones->all, index, &function->first_site);
	function->bias = clones->bias;
	CHECK(++function->first_site == clones->n_sites);
	sites = kymo_clone_sites(function->clone, &n);
	for (size_t i = 0; i < n; i++)
		clones->sites[clones->n_sites++] = sites[i] + clones->bias;
}

static void note_functions(struct clones *clones)
{
	clones->n_cloned = kymo_clones_n(clones->all);
	clones->functions = calloc(clones->n_cloned + 1, sizeof(*clones->functions));
	clones->sites = calloc(1 + (size_t)kymo_clones_n_sites(clones->all), sizeof(*clones->sites));
	CHECK(clones->functions && clones->sites);
	clones->n_sites = 1;
	for (size_t i = 0; i < clones->n_cloned; i++)
		note_function(clones, i);
}

static bool is_any(const struct kymo_extent *function, void *data)
{
	return true;
}

/* The patched text is made in `original`, and exchanged with the text when clones are put in. */
static void clone_all(struct clones *clones, enum clones_way way)
{
	struct kymo_clone_env env = { .bias = clones->bias,
				      .position = position_from_fs(),
				      .first_site = 1,
				      .calls_apart = way == CLONES_APART,
				      .checks_held = way == CLONES_GATED };
	const struct kymo_clones_write *writes;
	size_t n;

	CHECK(!kymo_clones_create(&clones->code->code, clones->code->map, is_any, NULL, NULL, &clones->all));
	note_functions(clones);
	if (way == CLONES_GATED)
		env.arena = (uint64_t)clones_arena_begin(0);
	reserve_code(clones, kymo_clones_size(clones->all));
	/* glibc's place for a thread's id, which the table of the arena shows. */
	CHECK(kymo_clones_emit(clones->all, &env, 0x2d0, (uint64_t)clones->code_out, clones->code_out,
			       clones->code_size) > 0);
	writes = kymo_clones_writes(clones->all, &n);
	for (size_t i = 0; i < n; i++)
		memcpy(clones->original + (writes[i].vaddr + clones->bias - (uint64_t)clones->text), writes[i].bytes,
		       writes[i].size);
}

bool clones_open(const char *path, bool is_private, enum clones_way way, struct clones *ret)
{
	char *real;

	memset(ret, 0, sizeof(*ret));
	ret->handle =
		is_private ? dlmopen(LM_ID_NEWLM, path, RTLD_NOW | RTLD_LOCAL) : dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!ret->handle)
		return false;
	ret->bias = map_of(ret->handle)->l_addr;
	real = realpath(map_of(ret->handle)->l_name, NULL);
	CHECK(real && !kymo_module_open(real, &ret->module) && !kymo_code_create(ret->module, NULL, &ret->code));
	free(real);
	find_text(ret);
	clone_all(ret, way);
	return true;
}

void clones_put_in(struct clones *clones)
{
	for (size_t i = 0; i < clones->text_size; i++) {
		uint8_t byte = clones->text[i];

		if (byte == clones->original[i])
			continue;
		clones->text[i] = clones->original[i];
		clones->original[i] = byte;
	}
	__builtin___clear_cache((char *)clones->text, (char *)clones->text + clones->text_size);
}

void clones_take_out(struct clones *clones)
{
	clones_put_in(clones);
}

void clones_close(struct clones *clones)
{
	if (!clones->handle)
		return;
	munmap(clones->code_out, clones->code_size);
	kymo_clones_destroy(clones->all);
	free(clones->functions);
	free(clones->original);
	free(clones->sites);
	kymo_code_destroy(clones->code);
	kymo_module_close(clones->module);
	dlclose(clones->handle);
}

/* ---- the reference --------------------------------------------------------------------------- */

struct site {
	uint64_t address;
	uint32_t number;
};

static int compare_sites(const void *a, const void *b)
{
	const struct site *left = a, *right = b;

	return left->address < right->address ? -1 : left->address > right->address;
}

static struct site *sorted_sites(const struct clones *clones)
{
	struct site *sites = calloc(clones->n_sites, sizeof(*sites));

	for (size_t i = 1; i < clones->n_sites; i++)
		sites[i] = (struct site){ clones->sites[i], (uint32_t)i };
	qsort(sites, clones->n_sites, sizeof(*sites), compare_sites);
	return sites;
}

/* A repeated string instruction is stepped a round at a time. */
static bool is_repeated(uint64_t pc, uint64_t before)
{
	const uint8_t *bytes = (const uint8_t *)pc;

	return pc == before && (bytes[0] == 0xf2 || bytes[0] == 0xf3);
}

/* What the child shares: it steps itself, by the trap flag, for two switches of processes a step take longer. */
static struct steps {
	const struct site *sites; /* or NULL: branches are noted */
	size_t n_sites, n, room;
	uint64_t before;
	long result;
	union {
		uint32_t list[1];
		struct clones_branch branches[1];
	};
} * steps;

static void note_site(uint64_t pc)
{
	size_t at = kymo_partition_point(i, steps->n_sites, steps->sites[i].address < pc);

	if (at < steps->n_sites && steps->sites[at].address == pc && !is_repeated(pc, steps->before) &&
	    steps->n < steps->room)
		steps->list[steps->n++] = steps->sites[at].number;
}

static void note_branch(uint64_t pc)
{
	const uint64_t before = steps->before;
	struct kymo_step step;

	if (!before || kymo_step_of((const uint8_t *)before, KYMO_STEP_BYTES, &step) ||
	    !kymo_step_branches(&step, before, pc) || steps->n == steps->room)
		return;
	steps->branches[steps->n++] = (struct clones_branch){ before, pc };
}

static void note_step(int number, siginfo_t *info, void *context)
{
	uint64_t pc = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];

	if (steps->sites)
		note_site(pc);
	else
		note_branch(pc);
	steps->before = pc;
}

static void step_in_child(long (*function)(long), long argument)
{
	struct sigaction action = { .sa_sigaction = note_step, .sa_flags = SA_SIGINFO | SA_NODEFER };

	sigaction(SIGTRAP, &action, NULL);
	__asm__ volatile("pushf; orl $0x100,(%%rsp); popf" ::: "cc", "memory");
	steps->result = function(argument);
	__asm__ volatile("pushf; andl $~0x100,(%%rsp); popf" ::: "cc", "memory");
	_exit(0);
}

/* A copy of what was noted, of `item` bytes each. */
static void *run_in_steps(const struct site *sites, size_t n_sites, long (*function)(long), long argument, size_t item,
			  size_t *n_ret, long *result_ret)
{
	size_t size = 256 << 20;
	pid_t child;
	int status;
	void *list;

	steps = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(steps != MAP_FAILED);
	steps->sites = sites;
	steps->n_sites = n_sites;
	steps->room = (size - sizeof(*steps)) / item;
	child = fork();
	CHECK(child >= 0);
	if (!child)
		step_in_child(function, argument);
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status));
	CHECK(steps->n < steps->room);
	list = malloc(steps->n * item + 1);
	CHECK(list);
	memcpy(list, steps->list, steps->n * item);
	*result_ret = steps->result;
	*n_ret = steps->n;
	munmap(steps, size);
	return list;
}

uint32_t *clones_reference(const struct clones *clones, long (*function)(long), long argument, size_t *n_ret,
			   long *result_ret)
{
	struct site *sites = sorted_sites(clones);
	uint32_t *list = run_in_steps(sites, clones->n_sites, function, argument, sizeof(*list), n_ret, result_ret);

	free(sites);
	return list;
}

struct clones_branch *clones_reference_branches(const struct clones *clones, long (*function)(long), long argument,
						size_t *n_ret)
{
	long result;

	return run_in_steps(NULL, 0, function, argument, sizeof(struct clones_branch), n_ret, &result);
}
