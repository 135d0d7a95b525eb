/*
 * kymo-coverage [-v] [-n N] [-s SEEDS] FILE...: on how many of a file's instructions a probe can be put, and how.
 *
 * Two figures a file. Alone: each instruction of each function is planned by itself. Nothing else is in the text, and
 * all other addresses within 2 GiB of the file are free; counted is the tactic that is taken, which is the best that
 * there is. Together: 1,000 instructions chosen at random are planned into one room, from the highest address to the
 * lowest, as a recording does; counted is how many get a place. Faults handled: alone, where nothing may be displaced
 * that may fault. -n N looks at N instructions alone, evenly spread, in place of all. -s SEEDS repeats the second so
 * often (3). -v prints each address that is refused.
 *
 * Which addresses are free is what a file tells, not what some process has: programs at fixed addresses have nothing
 * below 64 KiB.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "arch/code.h"
#include "arch/plan.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "probe/code/code.h"
#include "probe/coexist/text.h"
#include "probe/plan/pool.h"
#include "sym/files.h"
#include "sym/module.h"
#include "sym/open.h"
#include "sym/sym.h"

#define REACH (UINT64_C(1) << 31)          /* a jump's */
#define LOWEST_ADDRESS UINT64_C(0x10000)   /* vm.mmap_min_addr */
#define LOADED_AT UINT64_C(0x550000000000) /* what can be loaded anywhere */
#define PADS_SIZE (UINT64_C(1) << 20)      /* right after the module, for what plain jumps lead to */
#define PAD_SIZE 64
#define TOGETHER 1000
#define N_REASONS_SHOWN 12
#define REASON_SIZE 400

/* Around a module that is loaded at `bias`: what is planned, and where there is room for more. */
struct surroundings {
	uint64_t bias;
	uint64_t low, high; /* of the module, as loaded */
	uint64_t pad;       /* the next one */
	struct probe_pool room;
	struct probe_text text;
};

struct reason {
	char text[REASON_SIZE];
	size_t n;
};

struct counts {
	bool tells; /* each that is refused */
	size_t n;
	size_t by_tactic[KYMO_N_TACTICS]; /* NONE: refused */
	size_t watched;                   /* those that have a place in a process that handles all faults, too */
	KYMO_VEC(struct reason) reasons;
};

struct file {
	const char *path;
	struct kymo_module *module;
	struct kymo_code *code;
	KYMO_VEC(uint64_t) instructions;
	size_t n_functions, n_undecoded;
};

/* Entries of functions by what another tool's uprobe does to a probe there. */
struct bearings {
	size_t n, by[KYMO_BEARS_GONE + 1];
};

/* ---- the room ---------------------------------------------------------------------------------------------------- */

static void room_look(void *data, uint64_t vaddr, uint8_t *bytes, size_t size)
{
	const struct surroundings *around = data;

	probe_text_look(&around->text, vaddr + around->bias, bytes, size);
}

static bool room_is_locked(void *data, uint64_t vaddr, size_t size)
{
	const struct surroundings *around = data;

	return probe_text_is(&around->text, TEXT_LOCKED, vaddr + around->bias, size) ||
	       probe_text_is(&around->text, TEXT_WANTED, vaddr + around->bias, size);
}

static bool room_is_unsteady(void *data, uint64_t vaddr, size_t size)
{
	const struct surroundings *around = data;

	return probe_text_is(&around->text, TEXT_UNSTEADY, vaddr + around->bias, size);
}

static uint64_t room_reserve(void *data, uint64_t low, uint64_t high, size_t size)
{
	struct surroundings *around = data;
	uint64_t at = probe_pool_reserve(&around->room, low + around->bias, high + around->bias, size);

	return at ? at - around->bias : 0;
}

static void room_release(void *data, uint64_t vaddr, size_t size)
{
	struct surroundings *around = data;

	probe_pool_release(&around->room, vaddr + around->bias, size);
}

static const struct kymo_plan_room callbacks = {
	.look = room_look,
	.is_locked = room_is_locked,
	.is_unsteady = room_is_unsteady,
	.reserve = room_reserve,
	.release = room_release,
	.shares_entries = true,
};

static void surroundings_deinit(struct surroundings *around)
{
	probe_pool_deinit(&around->room);
	probe_text_deinit(&around->text);
}

/* Nothing is planned, and everything within reach is free but for the module and `pads` bytes after it. */
static struct kymo_error *clear(struct surroundings *around, uint64_t pads)
{
	uint64_t lowest = around->low > REACH + LOWEST_ADDRESS ? around->low - REACH : LOWEST_ADDRESS;

	surroundings_deinit(around);
	memset(&around->room, 0, sizeof(around->room));
	memset(&around->text, 0, sizeof(around->text));
	around->pad = around->high;
	if ((lowest < around->low && !probe_pool_add_hole(&around->room, lowest, around->low)) ||
	    !probe_pool_add_hole(&around->room, around->high + pads, around->high + REACH))
		return &kymo_error_no_memory;
	return NULL;
}

static struct kymo_error *surroundings_init(struct surroundings *around, const struct file *file)
{
	const struct kymo_segment *segments;
	uint64_t low = UINT64_MAX, high = 0;
	size_t n;

	segments = kymo_module_segments(file->module, &n);
	for (size_t i = 0; i < n; i++) {
		uint64_t end = segments[i].vaddr + segments[i].memory_size;

		low = segments[i].vaddr < low ? segments[i].vaddr : low;
		high = end > high ? end : high;
	}
	if (high <= low || high > LOADED_AT)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is not loaded anywhere near 0", file->path);
	around->bias = file->code->code.position_independent ? LOADED_AT : 0;
	around->low = (low & ~UINT64_C(0xfff)) + around->bias;
	around->high = ((high + 0xfff) & ~UINT64_C(0xfff)) + around->bias;
	return clear(around, 0);
}

/* ---- why not ----------------------------------------------------------------------------------------------------- */

/* The length of the number that `sentence` begins with: hexadecimal, decimal, or a byte of two digits ("be" is a word).
 */
static size_t number_length(const char *sentence)
{
	size_t length = strspn(sentence, "0123456789abcdef");

	if (sentence[0] == '-' && sentence[1] == '0')
		return 1 + number_length(sentence + 1);
	if (sentence[0] == '0' && sentence[1] == 'x')
		return 2 + strspn(sentence + 2, "0123456789abcdef");
	if (isalnum((unsigned char)sentence[length]) || (length == 2 && !strncmp(sentence, "be", 2)))
		return 0;
	return length == 2 || strspn(sentence, "0123456789") == length ? length : 0;
}

/* `sentence` with each number as "#": so those about different places become one. */
static void strip_numbers(const char *sentence, char *out, size_t size)
{
	size_t n = 0;

	while (*sentence && n + 1 < size) {
		size_t length = n && isalnum((unsigned char)out[n - 1]) ? 0 : number_length(sentence);

		out[n++] = length ? '#' : *sentence;
		sentence += length ? length : 1;
	}
	out[n] = '\0';
}

static bool count_text(struct counts *counts, const char *text)
{
	struct reason reason = { .n = 1 };

	for (size_t i = 0; i < counts->reasons.n; i++) {
		if (!strcmp(counts->reasons.items[i].text, text)) {
			counts->reasons.items[i].n++;
			return true;
		}
	}
	snprintf(reason.text, sizeof(reason.text), "%s", text);
	return kymo_vec_push(&counts->reasons, reason);
}

/* What forbids the site, where something does; else what each tactic lacks but jump and group, which lack the same
 * thing nearly always. */
static bool count_reason(struct counts *counts, const struct kymo_refusal *refusals, size_t n)
{
	char text[REASON_SIZE] = "", sentence[REASON_SIZE];
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		strip_numbers(refusals[i].reason, sentence, sizeof(sentence));
		if (refusals[i].tactic == KYMO_TACTIC_NONE)
			return count_text(counts, sentence);
		if (refusals[i].tactic <= KYMO_TACTIC_GROUP && n > 2)
			continue;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%snot %s: %s", at ? "; " : "",
				       kymo_tactic_name(refusals[i].tactic), sentence);
		if (at >= sizeof(text))
			break;
	}
	return count_text(counts, text);
}

static int by_number(const void *a, const void *b)
{
	const struct reason *x = a, *y = b;

	return (x->n < y->n) - (x->n > y->n);
}

static void print_reasons(struct counts *counts, const char *what)
{
	size_t n = counts->reasons.n;

	if (!n)
		return;
	printf("  %s, refused:\n", what);
	qsort(counts->reasons.items, n, sizeof(*counts->reasons.items), by_number);
	for (size_t i = 0; i < n && i < N_REASONS_SHOWN; i++)
		printf("  %9zu  %s\n", counts->reasons.items[i].n, counts->reasons.items[i].text);
	if (n > N_REASONS_SHOWN)
		printf("             and %zu other reasons\n", n - N_REASONS_SHOWN);
}

/* ---- planning ---------------------------------------------------------------------------------------------------- */

static struct kymo_error *plan_one(const struct file *file, struct surroundings *around, uint64_t vaddr,
				   struct counts *counts, struct kymo_plan plans[KYMO_PLANS_MAX], size_t *n_ret)
{
	struct kymo_plan_room with = callbacks;
	struct kymo_refusal refusals[KYMO_N_TACTICS];
	size_t n_refusals = 0;
	int r;

	with.data = around;
	*n_ret = 0;
	memset(refusals, 0, sizeof(refusals));
	r = kymo_plan(&file->code->code, file->code->map, &with, vaddr, plans, n_ret, refusals, &n_refusals);
	if (r == -ENOMEM)
		return &kymo_error_no_memory;
	if (r && r != -EPERM)
		return kymo_error_errno(r, "%s: cannot plan 0x%" PRIx64, file->path, vaddr);
	counts->n++;
	if (r)
		*n_ret = 0;
	counts->by_tactic[r ? KYMO_TACTIC_NONE : plans[*n_ret - 1].tactic]++;
	if (r && counts->tells && n_refusals)
		printf("  0x%" PRIx64 "  %s\n", vaddr, refusals[n_refusals - 1].reason);
	return !r || count_reason(counts, refusals, n_refusals) ? NULL : &kymo_error_no_memory;
}

/* Whether there is a place where nothing may be displaced that may fault. `plans` are those made without that rule. */
static struct kymo_error *plan_watched(const struct file *file, struct surroundings *around, uint64_t vaddr,
				       const struct kymo_plan *plans, size_t n, struct counts *counts)
{
	struct kymo_plan_room with = callbacks;
	struct kymo_plan again[KYMO_PLANS_MAX];
	struct kymo_error *error;
	unsigned int faults = 0;

	for (size_t i = 0; i < n; i++)
		faults |= plans[i].faults;
	if (!n || !faults) {
		counts->watched += n > 0;
		return NULL;
	}
	error = clear(around, 0);
	if (error)
		return error;
	with.data = around;
	with.watched_faults = KYMO_FAULT_ANY;
	counts->watched += !kymo_plan(&file->code->code, file->code->map, &with, vaddr, again, &n, NULL, NULL);
	return NULL;
}

static struct kymo_error *plan_alone(const struct file *file, struct surroundings *around, size_t at_most,
				     struct counts *counts)
{
	size_t n = file->instructions.n < at_most ? file->instructions.n : at_most, n_plans;
	struct kymo_plan plans[KYMO_PLANS_MAX];
	struct kymo_error *error = NULL;

	for (size_t i = 0; !error && i < n; i++) {
		size_t which = (size_t)((unsigned __int128)i * file->instructions.n / n);

		error = clear(around, 0);
		if (!error)
			error = plan_one(file, around, file->instructions.items[which], counts, plans, &n_plans);
		if (!error)
			error = plan_watched(file, around, file->instructions.items[which], plans, n_plans, counts);
	}
	return error;
}

static uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Put it into the text. False when memory is out. */
static bool apply(struct surroundings *around, const struct kymo_plan *plan)
{
	uint8_t patch[KYMO_PATCH_MAX];
	uint64_t address = plan->vaddr + around->bias;

	memcpy(patch, plan->patch, sizeof(patch));
	if (!plan->trampoline) {
		kymo_encode_jump(address, around->pad, patch);
		around->pad += PAD_SIZE;
	}
	return probe_text_write(&around->text, address, patch, plan->patch_size) &&
	       probe_text_mark(&around->text, TEXT_LOCKED, address, plan->lock_size, true);
}

static int by_address_down(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x < y) - (x > y);
}

static struct kymo_error *plan_together(const struct file *file, struct surroundings *around, uint64_t seed,
					struct counts *counts)
{
	KYMO_VEC(uint64_t) left = { 0 };
	uint64_t chosen[TOGETHER];
	struct kymo_plan plans[KYMO_PLANS_MAX];
	struct kymo_error *error = NULL;
	size_t n = 0, n_plans;

	if (!kymo_vec_reserve(&left, file->instructions.n))
		return &kymo_error_no_memory;
	left.n = file->instructions.n;
	memcpy(left.items, file->instructions.items, left.n * sizeof(*left.items));
	while (n < TOGETHER && left.n) {
		size_t i = (size_t)(next_random(&seed) % left.n);

		chosen[n++] = left.items[i];
		left.items[i] = left.items[--left.n];
	}
	kymo_vec_deinit(&left);
	qsort(chosen, n, sizeof(*chosen), by_address_down);
	error = clear(around, PADS_SIZE);
	for (size_t i = 0; !error && i < n; i++)
		if (!probe_text_mark(&around->text, TEXT_WANTED, chosen[i] + around->bias, 1, true))
			error = &kymo_error_no_memory;
	for (size_t i = 0; !error && i < n; i++) {
		if (!probe_text_mark(&around->text, TEXT_WANTED, chosen[i] + around->bias, 1, false))
			error = &kymo_error_no_memory;
		if (!error)
			error = plan_one(file, around, chosen[i], counts, plans, &n_plans);
		for (size_t k = 0; !error && k < n_plans; k++)
			if (!apply(around, &plans[k]))
				error = &kymo_error_no_memory;
	}
	return error;
}

/* What another tool's uprobe does to a probe on each function's entry, alone. */
static struct kymo_error *plan_entries(const struct file *file, struct surroundings *around, struct bearings *ret)
{
	const struct kymo_module_code *code = &file->code->code;
	struct counts unused = { .tells = false };
	struct kymo_error *error = NULL;

	for (size_t i = 0; !error && i < code->n_functions; i++) {
		struct kymo_plan plans[KYMO_PLANS_MAX];
		size_t n_plans = 0;

		error = clear(around, 0);
		if (!error)
			error = plan_one(file, around, code->functions[i].start, &unused, plans, &n_plans);
		if (error || !n_plans)
			continue;
		ret->n++;
		if (plans[n_plans - 1].vaddr != code->functions[i].start) /* the breakpoint is on the endbr64 */
			ret->by[KYMO_BEARS_GONE]++;
		else
			ret->by[kymo_plan_bears(&plans[n_plans - 1])]++;
	}
	kymo_vec_deinit(&unused.reasons);
	return error;
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

static void file_deinit(struct file *file)
{
	kymo_vec_deinit(&file->instructions);
	kymo_code_destroy(file->code);
	kymo_module_close(file->module);
}

static uint8_t byte_at(const struct kymo_module_code *code, uint64_t vaddr)
{
	for (size_t i = 0; i < code->n_text; i++)
		if (vaddr - code->text[i].vaddr < code->text[i].size)
			return code->text[i].bytes[vaddr - code->text[i].vaddr];
	return 0;
}

/* Some compilers' functions reach to the next one: what fills the gap (int3) is no instruction of theirs. */
static size_t without_filling(const struct kymo_module_code *code, const uint64_t *starts, size_t n)
{
	while (n && byte_at(code, starts[n - 1]) == 0xcc)
		n--;
	return n;
}

static struct kymo_error *gather_instructions(struct file *file)
{
	const struct kymo_module_code *code = &file->code->code;

	for (size_t i = 0; i < code->n_functions; i++) {
		kymo_cleanup_free uint64_t *starts = NULL;
		size_t n = 0;
		int r = kymo_instructions_create(file->code->map, code->functions[i].start, code->functions[i].end,
						 &starts, &n);

		if (r == -ENOMEM || !kymo_vec_reserve(&file->instructions, file->instructions.n + n))
			return &kymo_error_no_memory;
		file->n_functions++;
		file->n_undecoded += r != 0;
		n = without_filling(code, starts, n);
		for (size_t k = 0; !r && k < n; k++)
			file->instructions.items[file->instructions.n++] = starts[k];
	}
	return NULL;
}

static struct kymo_error *file_init(struct file *file, const char *name)
{
	kymo_cleanup_free char *path = NULL;
	struct kymo_error *error;

	file->path = name;
	error = kymo_find_file(name, &path);
	if (!error)
		error = kymo_module_open(path, &file->module);
	if (!error)
		error = kymo_code_create(file->module, NULL, &file->code);
	if (!error)
		error = gather_instructions(file);
	return error;
}

static double percent(size_t part, size_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_heading(void)
{
	printf("%-28s %12s", "file", "instructions");
	for (int tactic = KYMO_TACTIC_JUMP; tactic < KYMO_N_TACTICS; tactic++)
		printf("  %17s", kymo_tactic_name((enum kymo_tactic)tactic));
	printf("  %10s  %10s  %13s  %14s\n", "in-process", "refused", "1000 together", "faults handled");
}

static void print_row(const struct file *file, const struct counts *alone, const struct counts *together)
{
	const char *slash = strrchr(file->path, '/');
	size_t refused = alone->by_tactic[KYMO_TACTIC_NONE], unplaced = together->by_tactic[KYMO_TACTIC_NONE];

	printf("%-28s %12zu", slash ? slash + 1 : file->path, alone->n);
	for (int tactic = KYMO_TACTIC_JUMP; tactic < KYMO_N_TACTICS; tactic++)
		printf("  %15.3f %%", percent(alone->by_tactic[tactic], alone->n));
	printf("  %8.3f %%  %10zu  %11.2f %%  %12.2f %%\n", percent(alone->n - refused, alone->n), refused,
	       percent(together->n - unplaced, together->n), percent(alone->watched, alone->n));
}

static void print_bearings(const struct bearings *bearings)
{
	printf("  %zu entries of functions; another tool's uprobe there is harmless at %.2f %%, harmless while it is "
	       "set at %.2f %%, neither at %.2f %%\n",
	       bearings->n, percent(bearings->by[KYMO_BEARS_GONE], bearings->n),
	       percent(bearings->by[KYMO_BEARS_SET], bearings->n),
	       percent(bearings->by[KYMO_BEARS_NOTHING], bearings->n));
}

static struct kymo_error *cover(const char *name, size_t at_most, unsigned int n_seeds, bool tells)
{
	kymo_cleanup(file_deinit) struct file file = { 0 };
	kymo_cleanup(surroundings_deinit) struct surroundings around = { 0 };
	struct counts alone = { .tells = tells }, together = { .tells = tells };
	struct bearings bearings = { .n = 0 };
	struct kymo_error *error;

	error = file_init(&file, name);
	if (!error)
		error = surroundings_init(&around, &file);
	if (!error)
		error = plan_alone(&file, &around, at_most, &alone);
	for (unsigned int seed = 1; !error && seed <= n_seeds; seed++)
		error = plan_together(&file, &around, seed, &together);
	if (!error)
		error = plan_entries(&file, &around, &bearings);
	if (!error) {
		print_row(&file, &alone, &together);
		print_bearings(&bearings);
		if (file.n_undecoded)
			printf("  %zu of %zu functions do not decode and are not counted\n", file.n_undecoded,
			       file.n_functions);
		print_reasons(&alone, "alone");
		print_reasons(&together, "together");
		fflush(stdout);
	}
	kymo_vec_deinit(&alone.reasons);
	kymo_vec_deinit(&together.reasons);
	return error;
}

int main(int argc, char **argv)
{
	size_t at_most = SIZE_MAX;
	unsigned int n_seeds = 3;
	bool tells = false;
	int option, status = 0;

	while ((option = getopt(argc, argv, "vn:s:")) != -1) {
		if (option == 'n')
			at_most = strtoull(optarg, NULL, 0);
		else if (option == 's')
			n_seeds = (unsigned int)strtoul(optarg, NULL, 0);
		else if (option == 'v')
			tells = true;
		else
			return 2;
	}
	if (optind == argc) {
		fprintf(stderr, "usage: kymo-coverage [-v] [-n INSTRUCTIONS] [-s SEEDS] FILE...\n");
		return 2;
	}
	print_heading();
	for (; optind < argc; optind++) {
		struct kymo_error *error = cover(argv[optind], at_most, n_seeds, tells);

		if (error) {
			fprintf(stderr, "kymo-coverage: %s\n", error->message);
			kymo_error_destroy(error);
			status = 1;
		}
	}
	return status;
}
