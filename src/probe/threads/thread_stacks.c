/*
 * Where the stacks of other threads than the first end.
 *
 * glibc keeps it in each thread's control block (struct pthread): stackblock, where the mapping with the guard begins;
 * stackblock_size; guardsize. A pad reads the first of these at its thread pointer plus an offset. The offset differs
 * between versions of glibc, which does not publish it. So it is looked for in the blocks of threads that there are,
 * without stopping them: a block lies at the top of its thread's stack, points to itself at 0 and at 16, and holds a
 * tid where tids are. The offset is believed if three words say what the mappings of the process say: where the guard
 * ends and the stack begins, and where the stack ends. All blocks that can be told must agree.
 *
 * All this is memory of the program's, which may say anything, and may change later. What a pad does with it costs
 * records at the most: it compares the stack pointer with it. The offset itself is of the recorder's making, and lies
 * within the size of struct pthread, so that each thread's block has it.
 */
#include "probe/threads/thread_stacks.h"

#include <string.h>

#include "arch/pad.h"
#include "base/page.h"
#include "probe/memory/state.h"
#include "probe/probes.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/info.h"
#include "procfs/maps.h"

#define PAGES_SEARCHED 32u   /* at the top: the kernel joins the first stack and the initial thread's TLS above it */
#define STACKS_MAX 64u       /* that are looked at */
#define LOOKS_MAX 40u        /* until something is found; one for each count of threads that is new */
#define GUARD_MAX (1u << 20) /* larger ones are not believed */
#define BLOCK_WORDS 288u     /* of struct pthread: what pads may read in each thread's */
#define BLOCK_ALIGN 8u       /* words; glibc aligns struct pthread to 64 bytes */
#define SELF 2u              /* word of a control block, as the first */

/* One stack: where the memory in front begins, where it begins itself, and where it ends. */
struct stack {
	uint64_t front, low, high;
};

struct finding {
	uint64_t offset, guard; /* 0: nothing yet */
	bool is_contradicted;
};

/* The words of struct pthread at `at`, if they are those of the stack that the block at `address` is the top of. */
static bool are_of_stack(const uint64_t *at, uint64_t address, const struct stack *stack)
{
	uint64_t block = at[0], size = at[1], guard = at[2];

	return block >= stack->front && block < stack->low && guard == stack->low - block && guard <= GUARD_MAX &&
	       !(block & (KYMO_PAGE_SIZE - 1)) && size <= stack->high - block &&
	       block + size == kymo_page_down(address) + KYMO_PAGE_SIZE;
}

static void note_stack(struct finding *finding, uint64_t offset, uint64_t guard)
{
	if (finding->offset && finding->offset != offset)
		finding->is_contradicted = true;
	finding->offset = offset;
	/* Where guards differ, the smallest: no thread loses records for another one's. */
	if (!finding->guard || guard < finding->guard)
		finding->guard = guard;
}

/* The page at `at`: struct pthread is the last thing in its stack, and smaller than a page. */
static bool look_at_page(const struct kymo_probes *probes, const struct stack *stack, uint64_t at,
			 struct finding *finding)
{
	uint64_t words[KYMO_PAGE_SIZE / 8];
	const size_t n = sizeof(words) / sizeof(words[0]);
	int32_t tid;

	if (kymo_process_read(probes->process, at, words, sizeof(words)))
		return false;
	for (size_t block = 0; block + SELF < n; block += BLOCK_ALIGN) {
		uint64_t address = at + 8 * block;

		if (words[block] != address || words[block + SELF] != address ||
		    kymo_process_read(probes->process, address + (uint64_t)probes->threads.tid_offset, &tid,
				      sizeof(tid)) ||
		    tid <= 0)
			continue;
		for (size_t i = block + SELF + 1; i + 3 <= n && i + 3 <= block + BLOCK_WORDS; i++)
			if (are_of_stack(&words[i], address, stack)) {
				note_stack(finding, 8 * (i - block), words[i + 2]);
				return true;
			}
	}
	return false;
}

static void look_at_stack(const struct kymo_probes *probes, const struct stack *stack, struct finding *finding)
{
	const uint64_t n = finding->offset ? 1 : PAGES_SEARCHED; /* later ones only confirm */

	for (uint64_t i = 1; i <= n && stack->low + i * KYMO_PAGE_SIZE <= stack->high; i++)
		if (look_at_page(probes, stack, stack->high - i * KYMO_PAGE_SIZE, finding))
			return;
}

static bool is_anonymous(const struct kymo_map *map)
{
	return !map->path[0] && !map->inode && !map->shared && !map->executable;
}

/* After a guard; the memory in front of that may belong to it, or to something else. */
static bool is_stack(const struct kymo_map *guard, const struct kymo_map *map)
{
	return is_anonymous(guard) && !guard->readable && !guard->writable && guard->end == map->start &&
	       is_anonymous(map) && map->readable && map->writable;
}

static struct finding find_stack_fields(const struct kymo_probes *probes)
{
	struct finding finding = { .offset = 0 };
	struct kymo_maps maps;
	struct kymo_error *error = kymo_process_maps(probes->process, &maps);
	size_t n = 0;

	if (error) {
		kymo_error_destroy(error);
		return finding;
	}
	for (size_t i = 1; i < maps.n && n < STACKS_MAX; i++)
		if (is_stack(&maps.items[i - 1], &maps.items[i])) {
			const struct stack stack = { maps.items[i - 1].start, maps.items[i].start, maps.items[i].end };

			look_at_stack(probes, &stack, &finding);
			n++;
		}
	kymo_maps_deinit(&maps);
	return finding;
}

bool probes_find_thread_stacks(struct kymo_probes *probes)
{
	struct finding finding;
	size_t n;

	if (probes->stacks.thread_offset || probes->is_starting || probes->threads.tid_offset <= 0 ||
	    probes->stacks.n_looks == LOOKS_MAX)
		return false;
	n = kymo_count_threads(kymo_process_pid(probes->process));
	if (n < 2 || n == probes->stacks.n_threads_seen)
		return false;
	probes->stacks.n_threads_seen = n;
	probes->stacks.n_looks++;
	finding = find_stack_fields(probes);
	if (!finding.offset || finding.is_contradicted)
		return false;
	probes->stacks.thread_offset = finding.offset;
	probes->stacks.thread_low = finding.guard + KYMO_PAD_STACK_ENOUGH;
	return true;
}

/*
 * Pads compare with the initial thread's end first. Where that has none, the words say of each stack that it is another
 * thread's: the block of the initial one has no beginning of a stack, so nothing is near that.
 */
struct probe_stack_words probes_stack_words(const struct kymo_probes *probes, uint8_t state, bool is_child)
{
	struct probe_stack_words words = { .initial = { 0 } };

	_Static_assert(KYMO_PAD_LIVE_STACK_LOW == KYMO_PAD_LIVE_STACK_ENOUGH + 8 &&
			       KYMO_PAD_LIVE_THREAD_LOW == KYMO_PAD_LIVE_THREAD_STACK + 8,
		       "both are written at once");
	if (probes->beside || (is_child && probes->wanted.options.may_go_on))
		return words;
	if (state != KYMO_PAD_EARLY && probes->stacks.thread_offset) {
		words.of_threads[0] = probes->stacks.thread_offset;
		words.of_threads[1] = probes->stacks.thread_low;
		words.initial[0] = words.initial[1] = UINT64_MAX;
	}
	if (probes->stacks.end) {
		words.initial[0] = probes->stacks.end + KYMO_PAD_STACK_ENOUGH;
		words.initial[1] = probes->stacks.end;
	}
	return words;
}
