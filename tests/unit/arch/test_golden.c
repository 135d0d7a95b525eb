/*
 * tests/golden/plan/NAME.txt: assembler source, then for each `==== site SYMBOL[+OFFSET]` what the planner says of it
 * and what objdump reads in the original and in the displaced bytes. objdump shares no code with the planner. An index
 * stands before each displaced instruction.
 *
 * Lines of the source that begin with "# room" give free addresses (low, high): sites get puns then, each in a
 * room of its own but for a line "# together". With a line "# shares entries" others set breakpoints there. "# locked
 * PLACE SIZE" and "# unsteady PLACE SIZE" are bytes of other probes and recorders.
 *
 * The source is linked at 0x1000, or at 0x401000 with a line `# position-dependent`. Sections: .text, .text.cold,
 * .rodata, .data. Symbols with type and size are functions; global labels are entries handed in, as landing pads are.
 *
 * KYMO_GOLDEN_UPDATE=1 writes what is, in place of what should be.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "load.h"
#include "room.h"

#define BIAS UINT64_C(0x555500000000) /* of a module that can move */
#define PAD UINT64_C(0x7000000)       /* where code is displaced to, from the bias on */

static const char linker_script[] = "SECTIONS {\n"
				    "  . = BASE;\n"
				    "  .text : { *(.text) }\n"
				    "  .text.cold : { *(.text.cold) }\n"
				    "  . = BASE + 0x8000;\n"
				    "  .rodata : { *(.rodata) }\n"
				    "  .data : { *(.data) }\n"
				    "}\n";

struct place {
	char directory[256];
	struct loaded module;
	struct kymo_entry_map *map;
	uint64_t bias;
	struct room room;
	bool has_room, together;
	const char *source;
};

static char *golden_path(const char *name)
{
	const char *root = getenv("KYMO_SOURCE");
	char *path;

	assert_true(asprintf(&path, "%s/tests/golden/plan/%s", root ? root : ".", name) > 0);
	return path;
}

static void write_file(const struct place *place, const char *name, const void *data, size_t size)
{
	kymo_cleanup_free char *path = NULL;
	kymo_cleanup_fclose FILE *file = NULL;

	assert_true(asprintf(&path, "%s/%s", place->directory, name) > 0);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
}

static void run(const struct place *place, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void run(const struct place *place, const char *format, ...)
{
	kymo_cleanup_free char *command = NULL, *full = NULL;
	va_list args;

	va_start(args, format);
	assert_true(vasprintf(&command, format, args) > 0);
	va_end(args);
	assert_true(asprintf(&full, "cd '%s' && %s", place->directory, command) > 0);
	assert_int_equal(system(full), 0);
}

static void build(struct place *place, const char *source, size_t size)
{
	kymo_cleanup_free char *path = NULL, *copy = strndup(source, size);
	const char *temporary = getenv("TMPDIR");
	bool fixed;

	assert_non_null(copy);
	fixed = strstr(copy, "# position-dependent\n");
	snprintf(place->directory, sizeof(place->directory), "%s/kymo-golden-XXXXXX", temporary ? temporary : "/tmp");
	assert_non_null(mkdtemp(place->directory));
	write_file(place, "case.s", source, size);
	write_file(place, "case.ld", linker_script, sizeof(linker_script) - 1);
	run(place, "sed -i 's/BASE/%s/' case.ld", fixed ? "0x401000" : "0x1000");
	run(place, "as -o case.o case.s && ld %s -e 0 -z noexecstack -T case.ld -o case case.o",
	    fixed ? "-static" : "-shared");
	assert_true(asprintf(&path, "%s/case", place->directory) > 0);
	assert_true(load(path, &place->module));
	assert_true(place->module.code.position_independent == !fixed);
	place->bias = fixed ? 0 : BIAS;
	assert_int_equal(kymo_entry_map_create(&place->module.code, &place->map), 0);
}

static void unbuild(struct place *place)
{
	kymo_entry_map_destroy(place->map);
	unload(&place->module);
	run(place, "rm -r '%s'", place->directory);
}

/* objdump's reading of `size` bytes at `address`; `starts` numbers the lines of displaced and copied instructions. */
static void disassemble(const struct place *place, FILE *out, const uint8_t *bytes, size_t size, uint64_t address,
			const uint16_t *starts, unsigned int n_starts)
{
	kymo_cleanup_free char *text = NULL, *path = NULL;
	char *line, *rest;

	write_file(place, "bytes", bytes, size);
	run(place,
	    "objdump -D -b binary -m i386:x86-64 -w --no-show-raw-insn --adjust-vma=0x%" PRIx64 " bytes > listing",
	    address);
	assert_true(asprintf(&path, "%s/listing", place->directory) > 0);
	assert_int_equal(kymo_read_file(-1, path, 1 << 20, &text, NULL), 0);
	rest = strstr(text, "<.data>:\n");
	assert_non_null(rest);
	rest += strlen("<.data>:\n");
	while ((line = strsep(&rest, "\n"))) {
		uint64_t at = strtoull(line, NULL, 16);
		char index[16] = " ", *word;

		for (unsigned int i = 0; i < n_starts; i++) {
			if (at == address + starts[i])
				snprintf(index, sizeof(index), "%u", i);
		}
		if (!*line)
			continue;
		fprintf(out, "  %s", index);
		while ((word = strsep(&line, " \t"))) {
			if (*word)
				fprintf(out, " %s", word);
		}
		fputc('\n', out);
	}
}

/* What the plan writes, and what of it relies on bytes that are there. */
static void show_pun(const struct place *place, FILE *out, const struct kymo_plan *plan)
{
	const uint8_t *now = place->room.now + (plan->vaddr - place->room.low);
	int64_t to = (int64_t)plan->trampoline;

	fprintf(out, "%s0x%" PRIx64 " is where it leads; of %u bytes %u written\nwritten\n", to < 0 ? "-" : "",
		(uint64_t)(to < 0 ? -to : to), plan->lock_size, plan->patch_size);
	disassemble(place, out, now, plan->lock_size, place->bias + plan->vaddr, NULL, 0);
}

static void show_plan(const struct place *place, FILE *out, const struct kymo_plan *plan)
{
	static const char *const bears[] = { "breaks it", "is harmless until it leaves", "is harmless" };
	uint64_t from = place->bias + plan->vaddr, to = place->bias + PAD;
	unsigned int n = plan->n_insns + plan->n_copied;
	uint16_t at[KYMO_WINDOW_MAX_INSNS + 1];
	uint8_t bytes[KYMO_RELOCATED_MAX];
	int size;

	fprintf(out, "%s%s at 0x%" PRIx64 ", %u byte%s%s\n", plan->is_evicted ? "for another: " : "",
		kymo_tactic_name(plan->tactic), plan->vaddr, plan->window, plan->window == 1 ? "" : "s",
		plan->ends_flow ? ", never goes on" : "");
	if (plan->trampoline)
		show_pun(place, out, plan);
	else
		assert_int_equal(plan->patch_size, KYMO_JUMP_SIZE);
	if (place->room.ops.shares_entries)
		fprintf(out, "a uprobe on it %s\n", bears[kymo_plan_bears(plan)]);
	fprintf(out, "original\n");
	for (unsigned int i = 0; i <= n; i++)
		at[i] = plan->insn_offset[i];
	disassemble(place, out, plan->original, plan->insn_offset[n], from, at, n);
	size = kymo_relocate(plan, from, to, bytes, sizeof(bytes), at);
	assert_true(size > 0);
	fprintf(out, plan->n_copied ? "displaced, and %u copied\n" : "displaced\n", plan->n_copied);
	disassemble(place, out, bytes, (size_t)size, to, at, n);
}

static uint64_t resolve(const struct place *place, const char *expression)
{
	size_t length = strcspn(expression, "+\n ");
	const struct loaded_symbol *symbol = loaded_symbol(&place->module, expression, length);
	uint64_t offset = expression[length] == '+' ? strtoull(expression + length + 1, NULL, 0) : 0;

	if (expression[0] == '0')
		return strtoull(expression, NULL, 0);
	if (!symbol)
		fail_msg("no symbol %.*s", (int)length, expression);
	return symbol->vaddr + offset;
}

/* The directives of the source that begin with `name`: numbers, or a place and a size. */
static void make_room(struct place *place)
{
	struct room *room = &place->room;
	char at[64];
	int64_t low, high;
	unsigned int size;

	room_init(room, &place->module.code);
	room->ops.shares_entries = strstr(place->source, "# shares entries\n");
	for (const char *line = place->source; line && strncmp(line, "====", 4); line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "# room %" SCNi64 " %" SCNi64, &low, &high) == 2)
			room_free(room, low, high);
		else if (sscanf(line, "# locked %63s %u", at, &size) == 2)
			room_lock(room, resolve(place, at), size);
		else if (sscanf(line, "# unsteady %63s %u", at, &size) == 2)
			room_unsettle(room, resolve(place, at), size);
	}
}

static void show_site(struct place *place, FILE *out, const char *expression)
{
	struct kymo_refusal refusals[KYMO_N_TACTICS];
	struct kymo_plan plans[KYMO_PLANS_MAX];
	size_t n, n_plans = 0;
	int err;

	if (!place->room.now)
		make_room(place);
	err = kymo_plan(&place->module.code, place->map, place->has_room ? &place->room.ops : NULL,
			resolve(place, expression), plans, &n_plans, refusals, &n);
	assert_true(place->has_room || n_plans <= 1);
	fprintf(out, "==== site %.*s\n", (int)strcspn(expression, "\n"), expression);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "not %s: %s\n", refusals[i].tactic ? kymo_tactic_name(refusals[i].tactic) : "possible",
			refusals[i].reason);
	for (size_t i = 0; i < n_plans; i++)
		room_put(&place->room, &plans[i]);
	for (size_t i = 0; !err && i < n_plans; i++)
		show_plan(place, out, &plans[i]);
	fputc('\n', out);
	if (!place->together) {
		room_deinit(&place->room);
		place->room.now = NULL;
	}
}

/* What the file should be, by what the planner does. The caller frees. */
static char *render(const char *golden)
{
	const char *sites = strstr(golden, "==== site ");
	struct place place = { .bias = 0 };
	char *text = NULL;
	size_t size;
	FILE *out;

	assert_non_null(sites);
	build(&place, golden, (size_t)(sites - golden));
	place.source = golden;
	place.has_room = strstr(golden, "# room ");
	place.together = strstr(golden, "# together\n");
	out = open_memstream(&text, &size);
	assert_non_null(out);
	fwrite(golden, 1, (size_t)(sites - golden), out);
	for (; sites; sites = strstr(sites + 1, "==== site "))
		show_site(&place, out, sites + strlen("==== site "));
	fclose(out);
	if (place.room.now)
		room_deinit(&place.room);
	unbuild(&place);
	/* One empty line between sites, none at the end. */
	assert_true(size > 1);
	text[size - 1] = '\0';
	return text;
}

static void the_plan_is_as_written_down(void **state)
{
	kymo_cleanup_free char *golden = NULL, *text = NULL, *path = golden_path(*state);

	assert_int_equal(kymo_read_file(-1, path, 1 << 20, &golden, NULL), 0);
	text = render(golden);
	if (strcmp(text, golden) && getenv("KYMO_GOLDEN_UPDATE")) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fputs(text, file);
		fclose(file);
	} else {
		assert_string_equal(text, golden);
	}
}

int main(void)
{
	kymo_cleanup_free char *pattern = golden_path("*.txt");
	struct CMUnitTest tests[200] = { 0 };
	size_t n = 0;
	glob_t found;

	if (glob(pattern, 0, NULL, &found)) {
		print_error("nothing matches %s\n", pattern);
		return 1;
	}
	for (; n < found.gl_pathc && n < kymo_countof(tests); n++) {
		char *name = strrchr(found.gl_pathv[n], '/') + 1;

		tests[n] = (struct CMUnitTest){ name, the_plan_is_as_written_down, NULL, NULL, name };
	}
	/* The array is filled to `n`; cmocka's macro would take its size. */
	n = (size_t)_cmocka_run_group_tests("plan", tests, n, NULL, NULL);
	globfree(&found);
	return (int)n;
}
