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

static void note_sites(struct clones *clones, const struct kymo_clone *clone)
{
	size_t n;
	const uint64_t *sites = kymo_clone_sites(clone, &n);

	clones->sites = realloc(clones->sites, (clones->n_sites + n) * sizeof(*sites));
	CHECK(clones->sites);
	for (size_t i = 0; i < n; i++)
		clones->sites[clones->n_sites++] = sites[i] + clones->bias;
}

static size_t note_function(struct clones *clones, struct kymo_clone *clone, uint64_t code_at)
{
	size_t n = clones->n_cloned;

	clones->functions = realloc(clones->functions, (n + 1) * sizeof(*clones->functions));
	clones->maps = realloc(clones->maps, (n + 1) * sizeof(*clones->maps));
	clones->code_at = realloc(clones->code_at, (n + 1) * sizeof(*clones->code_at));
	CHECK(clones->functions && clones->maps && clones->code_at);
	clones->functions[n] = (struct branch_function){ clone, clones->bias, (uint32_t)clones->n_sites };
	clones->maps[n] = (struct kymo_clone_map){ 0 };
	clones->code_at[n] = code_at;
	return clones->n_cloned++;
}

/* The patched text is made in `original`, and exchanged with the text when clones are put in. */
static struct kymo_clone_env env_of(const struct clones *clones, enum clones_way way)
{
	if (way == CLONES_GATED)
		(void)clones_arena_begin(0);
	return (struct kymo_clone_env){ .bias = clones->bias,
					.position = position_from_fs(),
					.first_site = (uint32_t)clones->n_sites,
					.calls_apart = way == CLONES_APART,
					.never_holds = way == CLONES_GATED,
					.arena = way == CLONES_GATED ? (uint64_t)arena : 0,
					.slow = (uint64_t)clones->code_out };
}

static size_t emit(struct clones *clones, struct kymo_clone *clone, enum clones_way way, size_t used)
{
	struct kymo_clone_env env = env_of(clones, way);
	uint64_t to = (uint64_t)clones->code_out + used;
	size_t n;
	const struct kymo_catch *catches = kymo_clone_catches(clone, &n);
	uint32_t *at = malloc(n * sizeof(*at));
	size_t index = note_function(clones, clone, to);
	int size = kymo_clone_emit(clone, &env, to, (uint8_t *)to, clones->code_size - used, at, &clones->maps[index]);

	CHECK(size > 0);
	for (size_t i = 0; i < n; i++) {
		uint64_t from = catches[i].vaddr + clones->bias, text = (uint64_t)clones->text;
		uint64_t jump = catches[i].island ? catches[i].island + clones->bias : from;

		CHECK(!kymo_encode_jump(jump, to + at[i], clones->original + (jump - text)));
		if (catches[i].island) {
			CHECK((int64_t)(jump - from - 2) == (int8_t)(jump - from - 2));
			clones->original[from - text] = 0xeb;
			clones->original[from - text + 1] = (uint8_t)(jump - from - 2);
		}
	}
	free(at);
	note_sites(clones, clone);
	return used + ((size_t)size + 63) / 64 * 64;
}

static bool is_taken(const struct clones *clones, const bool *taken, const struct kymo_clone *clone)
{
	const struct kymo_module_code *code = &clones->code->code;
	size_t n;
	const struct kymo_extent *parts = kymo_clone_parts(clone, &n);

	for (size_t k = 0; k < code->n_functions; k++)
		for (size_t i = 0; i < n; i++)
			if (taken[k] && code->functions[k].start >= parts[i].start &&
			    code->functions[k].start < parts[i].end)
				return true;
	return false;
}

static void take(const struct clones *clones, bool *taken, const struct kymo_clone *clone)
{
	const struct kymo_module_code *code = &clones->code->code;
	size_t n;
	const struct kymo_extent *parts = kymo_clone_parts(clone, &n);

	for (size_t k = 0; k < code->n_functions; k++)
		for (size_t i = 0; i < n; i++)
			taken[k] |=
				code->functions[k].start >= parts[i].start && code->functions[k].start < parts[i].end;
}

static void clone_all(struct clones *clones, enum clones_way way)
{
	const struct kymo_module_code *code = &clones->code->code;
	bool *taken = calloc(code->n_functions + 1, 1);
	const struct kymo_clone_env env = env_of(clones, way);
	/* glibc's place for a thread's id, which the table of the arena shows. */
	size_t used = (size_t)kymo_clone_emit_slow(&env, 0x2d0, clones->code_out, clones->code_size);

	/* Those with parts come first, for a part is none by itself. */
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < code->n_functions; i++) {
			struct kymo_clone *clone;
			size_t n;

			if (kymo_clone_create(code, clones->code->map, code->functions[i].start, &clone, NULL)) {
				clones->n_refused += (size_t)pass;
				continue;
			}
			(void)kymo_clone_parts(clone, &n);
			if ((n > 1) == !pass && !is_taken(clones, taken, clone)) {
				take(clones, taken, clone);
				used = emit(clones, clone, way, used);
				clones->n_uncaught += kymo_clone_n_uncaught(clone);
			} else {
				kymo_clone_destroy(clone);
			}
		}
	}
	free(taken);
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
	ret->sites = calloc(1, sizeof(*ret->sites));
	ret->n_sites = 1;
	find_text(ret);
	reserve_code(ret, ret->text_size * 16 + (1 << 20));
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
	for (size_t i = 0; i < clones->n_cloned; i++) {
		kymo_clone_destroy((struct kymo_clone *)(uintptr_t)clones->functions[i].clone);
		kymo_clone_map_deinit(&clones->maps[i]);
	}
	free(clones->functions);
	free(clones->maps);
	free(clones->code_at);
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
