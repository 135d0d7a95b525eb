/* Rules of frames, beside what readelf says of them; what they lead to; and damaged ones. tests/unit/stack has whole
 * stacks. */
#include "sym/cfi.h"
#include "sym/files.h"
#include "sym/find.h"
#include "sym/functions.h"
#include "sym/open.h"
#include "sym/rows.h"
#include "sym/sym.h"
#include "testing.h"

/* ---- rows ------------------------------------------------------------------------------------ */

static const char *const register_names[KYMO_FRAME_REGISTERS] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi",
								  "rbp", "rsp", "r8",  "r9",  "r10", "r11",
								  "r12", "r13", "r14", "r15", "ra" };

static int register_of(const char *name)
{
	for (int i = 0; i < KYMO_FRAME_REGISTERS; i++)
		if (!strcmp(name, register_names[i]))
			return i;
	return -1;
}

/* A rule as readelf writes it. */
static const char *rule_text(const struct sym_rule *rule, bool is_cfa)
{
	static char text[32];

	switch (rule->kind) {
	case SYM_RULE_AT:
		snprintf(text, sizeof(text), "c%+ld", (long)rule->value);
		break;
	case SYM_RULE_IS:
		snprintf(text, sizeof(text), "v%+ld", (long)rule->value);
		break;
	case SYM_RULE_REGISTER:
		if (is_cfa)
			snprintf(text, sizeof(text), "%s%+ld", register_names[rule->value], (long)rule->extra);
		else
			snprintf(text, sizeof(text), "r%ld", (long)rule->value);
		break;
	case SYM_RULE_AT_EXPRESSION:
		return "exp";
	case SYM_RULE_IS_EXPRESSION:
		return is_cfa ? "exp" : "vexp";
	default:
		return "u";
	}
	return text;
}

/* One line of readelf's table, whose head was "LOC CFA rbx … ra". */
static void check_row(struct kymo_module *module, char *line, const char *head)
{
	struct sym_row row;
	char *words, *heads, copy[1024], *names, *word;
	const char *name;

	snprintf(copy, sizeof(copy), "%s", head);
	word = strtok_r(line, " \n", &words);
	name = strtok_r(copy, " \n", &names);
	sym_row_find(module, strtoull(word, NULL, 16), &row);
	heads = word;
	if (row.err)
		fail_msg("%s: no row: %d", heads, row.err);
	while ((word = strtok_r(NULL, " \n", &words))) {
		const char *text;
		bool is_cfa;

		if (*word == '(') /* the name of a register that was told by its number */
			continue;
		name = strtok_r(NULL, " \n", &names);
		assert_non_null(name);
		is_cfa = !strcmp(name, "CFA");
		text = is_cfa                  ? rule_text(&row.cfa, true)
		       : register_of(name) < 0 ? "u"
					       : rule_text(&row.registers[register_of(name)], false);

		if (strcmp(text, strcmp(word, "s") ? word : "u") &&
		    !(register_of(name) == KYMO_FRAME_RSP && !strcmp(word, "u")))
			fail_msg("0x%lx, %s: readelf says %s, kymo %s", (long)row.vaddr, name, word, text);
	}
}

static size_t check_rows(const char *path)
{
	kymo_cleanup_free char *line = NULL;
	struct kymo_module *module = open_module(path);
	FILE *lines = lines_of("readelf -wF '%s' 2>&1", path);
	char head[1024] = "";
	bool is_function = false;
	size_t size = 0, n = 0;

	while (getline(&line, &size, lines) > 0) {
		if (strstr(line, " FDE "))
			is_function = true;
		else if (strstr(line, " CIE "))
			is_function = false;
		else if (!strncmp(line, "   LOC ", 7))
			snprintf(head, sizeof(head), "%s", line);
		else if (is_function && strspn(line, "0123456789abcdef") == 16 && line[16] == ' ') {
			check_row(module, line, head);
			n++;
		}
	}
	pclose(lines);
	kymo_module_close(module);
	return n;
}

static void test_rows_are_those_of_readelf(void **state)
{
	static const char *const names[] = { "libc", "ld-linux-x86-64" };
	size_t n = 0;

	for (size_t i = 0; i < kymo_countof(names); i++) {
		kymo_cleanup_free char *path = NULL;
		struct kymo_error *error = kymo_find_file(names[i], &path);

		if (!error)
			n += check_rows(path);
		kymo_error_destroy(error);
	}
	if (n < 10000)
		fail_msg("only %zu rows", n);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A stack of 16 words at 0x1000. */
static uint64_t stack[16];

static bool read_stack(void *context, uint64_t address, uint64_t *ret)
{
	if (address < 0x1000 || address % 8 || address >= 0x1000 + sizeof(stack))
		return false;
	*ret = stack[(address - 0x1000) / 8];
	return true;
}

/* The start of function `name` of the program, with the stack pointer at `sp`. */
static uint64_t start_of(struct kymo_module *module, const char *name, uint64_t sp, struct kymo_frame *frame)
{
	const struct kymo_symbol **found = NULL;
	uint64_t vaddr;
	size_t n;

	succeeds(kymo_module_find(module, name, &found, &n));
	assert_int_equal(n, 1);
	vaddr = found[0]->vaddr;
	free(found);
	*frame = (struct kymo_frame){ .is_exact = true };
	frame->registers[KYMO_FRAME_RSP] = sp;
	frame->registers[3] = 33;
	return vaddr;
}

/* The result there. */
static int step(struct kymo_module *module, const char *name, uint64_t sp, struct kymo_frame *frame)
{
	const uint64_t vaddr = start_of(module, name, sp, frame);

	return kymo_module_unwind(module, vaddr, frame, read_stack, NULL);
}

static const char assembler[] = ".text\n.globl _start\n"
				"_start: ret\n"
#define FUNCTION(name, cfi) \
	".globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n" cfi \
	"\n ret\n.cfi_endproc\n.size " name ", .-" name "\n"
	FUNCTION("plain", "") FUNCTION("saves", ".cfi_def_cfa_offset 24\n.cfi_offset rbx, -16")
		FUNCTION("popped", ".cfi_offset rbx, -16") FUNCTION("outermost", ".cfi_undefined rip")
			FUNCTION("down", ".cfi_def_cfa_offset -8\n.cfi_escape 0x14, 16, 1")
				FUNCTION("in_register", ".cfi_register rip, rbx")
					FUNCTION("interrupted", ".cfi_signal_frame")
	/* CFA: the word at rsp + 8 */
	FUNCTION("by_expression", ".cfi_escape 0x0f, 3, 0x77, 8, 6")
		FUNCTION("endless_expression", ".cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff") /* DW_OP_skip -3 */
	FUNCTION("huge_register", ".cfi_escape 0x05, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 1")
		FUNCTION("huge_cfa_register", ".cfi_escape 0x0c, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f, 8")
			FUNCTION("nothing_remembered", ".cfi_escape 0x0b") FUNCTION(
				"unknown_instruction",
				".cfi_escape 0x3f") ".globl bare\n.type bare, @function\nbare: ret\n.size bare, 1\n"
						    ".section .note.GNU-stack,\"\",@progbits\n";

static int build(void **state)
{
	if (make_directory(state))
		return -1;
	write_file("frames.s", assembler);
	run("gcc -nostdlib -no-pie -static frames.s -o frames");
	return 0;
}

static void test_a_step_leads_to_the_caller(void **state)
{
	struct kymo_module *module = open_module(in_directory("frames"));
	struct kymo_frame frame;

	for (size_t i = 0; i < kymo_countof(stack); i++)
		stack[i] = 100 + i;
	assert_int_equal(step(module, "plain", 0x1010, &frame), 0);
	assert_int_equal(frame.registers[KYMO_FRAME_PC], 102);
	assert_int_equal(frame.registers[KYMO_FRAME_RSP], 0x1018);
	assert_int_equal(frame.registers[3], 33);
	assert_false(frame.is_exact);
	assert_int_equal(step(module, "saves", 0x1010, &frame), 0);
	assert_int_equal(frame.registers[KYMO_FRAME_PC], 104);
	assert_int_equal(frame.registers[3], 103);
	assert_int_equal(step(module, "popped", 0x1010, &frame), 0);
	assert_int_equal(frame.registers[KYMO_FRAME_PC], 102);
	assert_int_equal(frame.registers[3], 101);
	assert_int_equal(step(module, "popped", 0x1000, &frame), 0); /* nothing below can be read */
	assert_int_equal(frame.registers[KYMO_FRAME_PC], 100);
	assert_int_equal(frame.registers[3], 33);
	assert_int_equal(step(module, "in_register", 0x1010, &frame), 0);
	assert_int_equal(frame.registers[KYMO_FRAME_PC], 33);
	assert_int_equal(step(module, "interrupted", 0x1010, &frame), 0);
	assert_true(frame.is_exact);
	stack[1] = 0x1020;
	assert_int_equal(step(module, "by_expression", 0x1000, &frame), 0);
	assert_int_equal(frame.registers[KYMO_FRAME_RSP], 0x1020);
	assert_int_equal(frame.registers[KYMO_FRAME_PC], 103);
	assert_int_equal(step(module, "huge_register", 0x1010, &frame), 0);
	assert_int_equal(frame.registers[KYMO_FRAME_PC], 102);
	kymo_module_close(module);
}

static void test_what_leads_nowhere_is_told_and_changes_nothing(void **state)
{
	static const struct {
		const char *name;
		uint64_t sp;
		int err;
	} cases[] = {
		{ "outermost", 0x1010, -ENODATA },
		{ "bare", 0x1010, -ENOENT },
		{ "plain", 0x10000, -EFAULT },
		{ "plain", UINT64_MAX - 3, -EFAULT },
		{ "down", 0x1010, -EBADMSG },
		{ "endless_expression", 0x1010, -EBADMSG },
		{ "huge_cfa_register", 0x1010, -EBADMSG },
		{ "nothing_remembered", 0x1010, -EBADMSG },
		{ "unknown_instruction", 0x1010, -EBADMSG },
	};
	struct kymo_module *module = open_module(in_directory("frames"));
	struct kymo_frame frame;

	for (size_t i = 0; i < kymo_countof(cases); i++) {
		if (step(module, cases[i].name, cases[i].sp, &frame) != cases[i].err)
			fail_msg("%s: not %d", cases[i].name, cases[i].err);
		assert_int_equal(frame.registers[KYMO_FRAME_RSP], cases[i].sp);
	}
	kymo_module_close(module);
}

/* It need not be one that can be read. */
static void test_return_addresses_have_a_place(void **state)
{
	static const struct {
		const char *name;
		uint64_t sp;
		int err;
		uint64_t place;
	} cases[] = {
		{ "plain", 0x1010, 0, 0x1010 },
		{ "plain", 0x10000, 0, 0x10000 },
		{ "saves", 0x1010, 0, 0x1020 },
		{ "interrupted", 0x1010, 0, 0x1010 },
		{ "by_expression", 0x1000, 0, 0x1018 },
		{ "by_expression", 0x10000, -EFAULT, 0 },
		{ "in_register", 0x1010, -EBADMSG, 0 },
		{ "down", 0x1010, -EBADMSG, 0 },
		{ "outermost", 0x1010, -ENODATA, 0 },
		{ "bare", 0x1010, -ENOENT, 0 },
		{ "unknown_instruction", 0x1010, -EBADMSG, 0 },
	};
	struct kymo_module *module = open_module(in_directory("frames"));

	stack[1] = 0x1020;
	for (size_t i = 0; i < kymo_countof(cases); i++) {
		struct kymo_frame frame;
		const uint64_t vaddr = start_of(module, cases[i].name, cases[i].sp, &frame);
		uint64_t place = 0;

		if (kymo_module_return_place(module, vaddr, &frame, read_stack, NULL, &place) != cases[i].err)
			fail_msg("%s: not %d", cases[i].name, cases[i].err);
		assert_int_equal(place, cases[i].place);
	}
	kymo_module_close(module);
}

static void test_frame_pointers_lead_up_the_stack_alone(void **state)
{
	struct kymo_frame frame = { .registers = { [KYMO_FRAME_RBP] = 0x1010, [KYMO_FRAME_RSP] = 0x1008 } };

	stack[2] = 0x1000;
	stack[3] = 7;
	assert_int_equal(kymo_frame_unwind_by_pointer(&frame, read_stack, NULL), 0);
	assert_int_equal(frame.registers[KYMO_FRAME_PC], 7);
	assert_int_equal(frame.registers[KYMO_FRAME_RSP], 0x1020);
	assert_int_equal(kymo_frame_unwind_by_pointer(&frame, read_stack, NULL), -EBADMSG);
	frame.registers[KYMO_FRAME_RBP] = 0x5000;
	assert_int_equal(kymo_frame_unwind_by_pointer(&frame, read_stack, NULL), -EFAULT);
	frame.registers[KYMO_FRAME_RBP] = UINT64_MAX - 7;
	assert_int_equal(kymo_frame_unwind_by_pointer(&frame, read_stack, NULL), -EBADMSG);
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* Any place of any function; what comes of it does not matter. */
static void unwind_everywhere(const void *bytes, size_t size)
{
	const struct kymo_function *functions;
	struct kymo_module *module;
	struct kymo_error *error = open_bytes(bytes, size, &module);
	size_t n;

	if (!error) {
		error = kymo_module_functions(module, &functions, &n);
		for (size_t i = 0; i < n && !error; i++) {
			struct kymo_frame frame = { .registers = {
							    [KYMO_FRAME_RBP] = 0x1010, [KYMO_FRAME_RSP] = 0x1008 } };

			kymo_module_unwind(module, functions[i].start, &frame, read_stack, NULL);
			kymo_module_unwind(module, functions[i].end - 1, &frame, read_stack, NULL);
			kymo_module_function_at(module, functions[i].start);
		}
		kymo_module_close(module);
	}
	kymo_error_destroy(error);
}

static void test_damaged_files_do_no_harm(void **state)
{
	kymo_cleanup_free uint8_t *bytes = malloc(1 << 16);
	FILE *file = fopen(in_directory("frames"), "r");
	size_t size;

	assert_non_null(file);
	size = fread(bytes, 1, 1 << 16, file);
	fclose(file);
	assert_in_range(size, 1000, (1 << 16) - 1);
	for (size_t i = 0; i < size; i += 37)
		unwind_everywhere(bytes, i);
	for (size_t i = 0; i < size * 8; i += 11) {
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		unwind_everywhere(bytes, size);
		bytes[i / 8] ^= (uint8_t)(1 << i % 8);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_are_those_of_readelf),
		cmocka_unit_test(test_a_step_leads_to_the_caller),
		cmocka_unit_test(test_what_leads_nowhere_is_told_and_changes_nothing),
		cmocka_unit_test(test_return_addresses_have_a_place),
		cmocka_unit_test(test_frame_pointers_lead_up_the_stack_alone),
		cmocka_unit_test(test_damaged_files_do_no_harm),
	};

	return cmocka_run_group_tests(tests, build, remove_directory);
}
