/*
 * What operands become, as a list of texts in and fetches out. Two files are asked: a program at fixed addresses and a
 * shared object.
 */
#include "marked.h"
#include "marker/list.h"
#include "marker/marker.h"
#include "marker/operands.h"
#include "sym/open.h"

/* Data whose addresses the golden list knows. `twin` is there twice. */
static const char data[] = "	.text\n"
			   "	.globl _start\n"
			   "	.type _start, @function\n"
			   "_start: ret\n"
			   "	.macro object name, size\n"
			   "	.type \\name, @object\n"
			   "	.size \\name, \\size\n"
			   "\\name:\n"
			   "	.endm\n"
			   "	.data\n"
			   "	object counter, 8\n"
			   "	.8byte 1, 2\n"
			   "	object twin, 4\n"
			   "	.4byte 3\n"
			   "	object f.x$1, 4\n"
			   "	.4byte 3\n"
			   "label:	.4byte 5\n";

static struct kymo_module *fixed, *shared;
static uint64_t at_fixed, at_shared;

static int build(void **state)
{
	if (make_directory(state))
		return -1;
	write_file("data.s", data);
	write_file("more.s", "	.data\n	.type twin, @object\ntwin: .4byte 4\n");
	run("gcc -c data.s -o data.o && gcc -c more.s -o more.o && ld -shared data.o more.o -o shared && ld data.o "
	    "more.o -o fixed");
	fixed = open_module(in_directory("fixed"));
	shared = open_module(in_directory("shared"));
	at_fixed = address_of("fixed", "counter");
	at_shared = address_of("shared", "counter");
	return 0;
}

static int clean_up(void **state)
{
	kymo_module_close(fixed);
	kymo_module_close(shared);
	return remove_directory(state);
}

/* "REGISTER s32 0", "MEMORY u64 -20 5 -1 1": kind, type, value, and of memory base, index and scale. The value of what
 * depends on `counter` is relative to it. */
static const char *text_of(const struct kymo_fetch *fetch, uint64_t counter)
{
	static char text[128];
	long long value = (long long)fetch->value;

	switch (fetch->kind) {
	case KYMO_FETCH_REGISTER:
		snprintf(text, sizeof(text), "REGISTER %s %lld", kymo_type_name(fetch->type), value);
		break;
	case KYMO_FETCH_IMMEDIATE:
		if (value > (long long)counter - 100 && value < (long long)counter + 100)
			snprintf(text, sizeof(text), "IMMEDIATE %s counter%+lld", kymo_type_name(fetch->type),
				 value - (long long)counter);
		else
			snprintf(text, sizeof(text), "IMMEDIATE %s %lld", kymo_type_name(fetch->type), value);
		break;
	case KYMO_FETCH_GLOBAL:
		snprintf(text, sizeof(text), "GLOBAL %s %+lld", kymo_type_name(fetch->type),
			 value - (long long)counter);
		break;
	case KYMO_FETCH_MEMORY:
		if (value > (long long)counter - 100 && value < (long long)counter + 100)
			snprintf(text, sizeof(text), "MEMORY %s counter%+lld %d %d %u", kymo_type_name(fetch->type),
				 value - (long long)counter, fetch->base, fetch->index, fetch->scale);
		else
			snprintf(text, sizeof(text), "MEMORY %s %lld %d %d %u", kymo_type_name(fetch->type), value,
				 fetch->base, fetch->index, fetch->scale);
		break;
	default:
		return "?";
	}
	return text;
}

#define NONE NULL

/* clang-format off */
static const struct {
	const char *operand, *in_fixed, *in_shared;
} golden[] = {
	/* registers: the size counts, not the name */
	{ "-4@%eax",			"REGISTER s32 0",		"REGISTER s32 0" },
	{ "4@%edi",			"REGISTER u32 7",		"REGISTER u32 7" },
	{ "8@%rax",			"REGISTER u64 0",		"REGISTER u64 0" },
	{ "-8@%rcx",			"REGISTER s64 1",		"REGISTER s64 1" },
	{ "2@%dx",			"REGISTER u16 2",		"REGISTER u16 2" },
	{ "-2@%bx",			"REGISTER s16 3",		"REGISTER s16 3" },
	{ "1@%al",			"REGISTER u8 0",		"REGISTER u8 0" },
	{ "-1@%dil",			"REGISTER s8 7",		"REGISTER s8 7" },
	{ "1@%sil",			"REGISTER u8 6",		"REGISTER u8 6" },
	{ "8@%rsp",			"REGISTER u64 4",		"REGISTER u64 4" },
	{ "8@%rbp",			"REGISTER u64 5",		"REGISTER u64 5" },
	{ "8@%r8",			"REGISTER u64 8",		"REGISTER u64 8" },
	{ "4@%r9d",			"REGISTER u32 9",		"REGISTER u32 9" },
	{ "2@%r10w",			"REGISTER u16 10",		"REGISTER u16 10" },
	{ "-1@%r15b",			"REGISTER s8 15",		"REGISTER s8 15" },
	{ "-4@%rax",			"REGISTER s32 0",		"REGISTER s32 0" },
	{ "8@%eax",			"REGISTER u64 0",		"REGISTER u64 0" },
	/* without a size the name tells */
	{ "%rax",			"REGISTER u64 0",		"REGISTER u64 0" },
	{ "%edx",			"REGISTER u32 2",		"REGISTER u32 2" },
	{ "%si",			"REGISTER u16 6",		"REGISTER u16 6" },
	{ "%r11b",			"REGISTER u8 11",		"REGISTER u8 11" },
	{ "$3",				"IMMEDIATE u64 3",		"IMMEDIATE u64 3" },
	{ "8(%rsp)",			"MEMORY u64 8 4 -1 1",		"MEMORY u64 8 4 -1 1" },
	/* constants */
	{ "-4@$5",			"IMMEDIATE s32 5",		"IMMEDIATE s32 5" },
	{ "-8@$-7",			"IMMEDIATE s64 -7",		"IMMEDIATE s64 -7" },
	{ "8@$0x10",			"IMMEDIATE u64 16",		"IMMEDIATE u64 16" },
	{ "8@$0xFFffffffffffffff",	"IMMEDIATE u64 -1",		"IMMEDIATE u64 -1" },
	{ "8@$18446744073709551615",	"IMMEDIATE u64 -1",		"IMMEDIATE u64 -1" },
	{ "8@$-9223372036854775808",	"IMMEDIATE u64 -9223372036854775808", "IMMEDIATE u64 -9223372036854775808" },
	{ "1@$010",			"IMMEDIATE u8 8",		"IMMEDIATE u8 8" },
	{ "1@$0",			"IMMEDIATE u8 0",		"IMMEDIATE u8 0" },
	{ "8@$1+2-4",			"IMMEDIATE u64 -1",		"IMMEDIATE u64 -1" },
	{ "8@$counter",			"IMMEDIATE u64 counter+0",	NONE },
	{ "8@$counter+8",		"IMMEDIATE u64 counter+8",	NONE },
	/* memory */
	{ "4@-20(%rbp)",		"MEMORY u32 -20 5 -1 1",	"MEMORY u32 -20 5 -1 1" },
	{ "8@(%rsp)",			"MEMORY u64 0 4 -1 1",		"MEMORY u64 0 4 -1 1" },
	{ "8@8(%rax,%rbx,4)",		"MEMORY u64 8 0 3 4",		"MEMORY u64 8 0 3 4" },
	{ "-4@(%rsi,%r11,4)",		"MEMORY s32 0 6 11 4",		"MEMORY s32 0 6 11 4" },
	{ "-1@(%rax,%rdx)",		"MEMORY s8 0 0 2 1",		"MEMORY s8 0 0 2 1" },
	{ "8@16(,%r12,8)",		"MEMORY u64 16 -1 12 8",	"MEMORY u64 16 -1 12 8" },
	{ "2@8+4(%r13)",		"MEMORY u16 12 13 -1 1",	"MEMORY u16 12 13 -1 1" },
	{ "8@-0x80000000(%rax)",	"MEMORY u64 -2147483648 0 -1 1", "MEMORY u64 -2147483648 0 -1 1" },
	{ "8@0x7fffffff(%rax)",		"MEMORY u64 2147483647 0 -1 1",	"MEMORY u64 2147483647 0 -1 1" },
	{ "8@counter(,%rax,8)",		"MEMORY u64 counter+0 -1 0 8",	NONE },
	{ "8@counter+8(%rbx)",		"MEMORY u64 counter+8 3 -1 1",	NONE },
	/* data of the program */
	{ "8@counter(%rip)",		"GLOBAL u64 +0",		"GLOBAL u64 +0" },
	{ "-4@counter+8(%rip)",		"GLOBAL s32 +8",		"GLOBAL s32 +8" },
	{ "-8@8+counter(%rip)",		"GLOBAL s64 +8",		"GLOBAL s64 +8" },
	{ "1@counter+12-4(%rip)",	"GLOBAL u8 +8",			"GLOBAL u8 +8" },
	{ "4@-4+counter+4(%rip)",	"GLOBAL u32 +0",		"GLOBAL u32 +0" },
	{ "4@f.x$1(%rip)",		"GLOBAL u32 +20",		"GLOBAL u32 +20" },
	{ "counter(%rip)",		"GLOBAL u64 +0",		"GLOBAL u64 +0" },
	{ "8@counter",			"GLOBAL u64 +0",		NONE },
	{ "8@counter+8",		"GLOBAL u64 +8",		NONE },
	/* what lies outside of it */
	{ "8@counter+65536(%rip)",	NONE,				NONE },
	{ "8@counter-65536(%rip)",	NONE,				NONE },
	{ "8@123",			NONE,				NONE },
	/* names that do not tell */
	{ "4@twin(%rip)",		NONE,				NONE },
	{ "4@label(%rip)",		NONE,				NONE },
	{ "8@nobody(%rip)",		NONE,				NONE },
	{ "8@.LC0(%rip)",		NONE,				NONE },
	{ "8@_start(%rip)",		NONE,				NONE },
	{ "8@counter@GOTPCREL(%rip)",	NONE,				NONE },
	{ "-4@%fs:tl@tpoff",		NONE,				NONE },
	{ "-4@%fs:0",			NONE,				NONE },
	{ "8@8(%rip)",			NONE,				NONE },
	{ "8@(%rip)",			NONE,				NONE },
	/* other kinds and sizes */
	{ "8f@%rax",			NONE,				NONE },
	{ "4f@-56(%rbp)",		NONE,				NONE },
	{ "8@%xmm0",			NONE,				NONE },
	{ "16@%xmm0",			NONE,				NONE },
	{ "8@%st",			NONE,				NONE },
	{ "8@%k1",			NONE,				NONE },
	{ "1@%ah",			NONE,				NONE },
	{ "8@%rip",			NONE,				NONE },
	{ "8@%flags",			NONE,				NONE },
	{ "16@%rax",			NONE,				NONE },
	{ "3@%rax",			NONE,				NONE },
	{ "0@%rax",			NONE,				NONE },
	{ "-@%rax",			NONE,				NONE },
	{ "99999999999999999999@%rax",	NONE,				NONE },
	/* no operands */
	{ "",				NONE,				NONE },
	{ "8@",				NONE,				NONE },
	{ "8@%",			NONE,				NONE },
	{ "8@$",			NONE,				NONE },
	{ "8@$5x",			NONE,				NONE },
	{ "8@$0x",			NONE,				NONE },
	{ "8@$08",			NONE,				NONE },
	{ "8@$18446744073709551616",	NONE,				NONE },
	{ "8@$-",			NONE,				NONE },
	{ "8@$--1",			NONE,				NONE },
	{ "8@$1+",			NONE,				NONE },
	{ "8@$-counter",		NONE,				NONE },
	{ "8@$counter+counter",		NONE,				NONE },
	{ "8@%rax,",			NONE,				NONE },
	{ "8@%rax)",			NONE,				NONE },
	{ "8@%RAX",			NONE,				NONE },
	{ "8@()",			NONE,				NONE },
	{ "8@(",			NONE,				NONE },
	{ "8@(%rax",			NONE,				NONE },
	{ "8@(%rax))",			NONE,				NONE },
	{ "8@(%rax)8",			NONE,				NONE },
	{ "8@(rax)",			NONE,				NONE },
	{ "8@(%eax)",			NONE,				NONE },
	{ "8@(%ax)",			NONE,				NONE },
	{ "8@(%rax,)",			NONE,				NONE },
	{ "8@(%rax,,4)",		NONE,				NONE },
	{ "8@(%rax,4)",			NONE,				NONE },
	{ "8@(%rax,%rsp)",		NONE,				NONE },
	{ "8@(%rax,%rip)",		NONE,				NONE },
	{ "8@(%rax,%rbx,3)",		NONE,				NONE },
	{ "8@(%rax,%rbx,16)",		NONE,				NONE },
	{ "8@(%rax,%rbx,)",		NONE,				NONE },
	{ "8@(%rax,%rbx,4,)",		NONE,				NONE },
	{ "8@(,,)",			NONE,				NONE },
	{ "8@0x80000000(%rax)",		NONE,				NONE },
	{ "8@-0x80000001(%rax)",	NONE,				NONE },
	{ "8@0x100000000(%rax)",	NONE,				NONE },
	{ "8@QWORD",			NONE,				NONE },
	{ "8@rax",			NONE,				NONE },
	{ "-4@DWORD PTR [rsp-4]",	NONE,				NONE },
	{ "8@@%rax",			NONE,				NONE },
	{ "@%rax",			NONE,				NONE },
};
/* clang-format on */

static void check(struct kymo_module *module, const char *operand, uint64_t counter, const char *expected)
{
	struct kymo_fetch fetch = { .kind = KYMO_FETCH_RETVAL };
	/* Not NUL-terminated, so that a look after the end is seen. */
	size_t length = strlen(operand);
	char *text = malloc(length ? length : 1);
	int r;

	memcpy(text, operand, length);
	r = kymo_marker_parse_operand(module, text, length, &fetch);
	free(text);
	if (r != (expected ? 0 : -EINVAL))
		fail_msg("%s: %d %s", operand, r, r ? "" : text_of(&fetch, counter));
	if (!r && strcmp(text_of(&fetch, counter), expected))
		fail_msg("%s: %s instead of %s", operand, text_of(&fetch, counter), expected);
	if (r)
		assert_int_equal(fetch.kind, KYMO_FETCH_RETVAL);
}

static void a_program_at_fixed_addresses_is_read_as_listed(void **state)
{
	for (size_t i = 0; i < kymo_countof(golden); i++)
		check(fixed, golden[i].operand, at_fixed, golden[i].in_fixed);
}

static void a_shared_object_is_read_as_listed(void **state)
{
	for (size_t i = 0; i < kymo_countof(golden); i++)
		check(shared, golden[i].operand, at_shared, golden[i].in_shared);
}

static void every_general_register_is_known_in_every_width(void **state)
{
	static const char *const names[16][4] = {
		{ "al", "ax", "eax", "rax" },      { "cl", "cx", "ecx", "rcx" },      { "dl", "dx", "edx", "rdx" },
		{ "bl", "bx", "ebx", "rbx" },      { "spl", "sp", "esp", "rsp" },     { "bpl", "bp", "ebp", "rbp" },
		{ "sil", "si", "esi", "rsi" },     { "dil", "di", "edi", "rdi" },     { "r8b", "r8w", "r8d", "r8" },
		{ "r9b", "r9w", "r9d", "r9" },     { "r10b", "r10w", "r10d", "r10" }, { "r11b", "r11w", "r11d", "r11" },
		{ "r12b", "r12w", "r12d", "r12" }, { "r13b", "r13w", "r13d", "r13" }, { "r14b", "r14w", "r14d", "r14" },
		{ "r15b", "r15w", "r15d", "r15" },
	};

	for (int i = 0; i < 16; i++)
		for (int width = 0; width < 4; width++) {
			char operand[16], expected[32];

			snprintf(operand, sizeof(operand), "-%d@%%%s", 1 << width, names[i][width]);
			snprintf(expected, sizeof(expected), "REGISTER s%d %d", 8 << width, i);
			check(shared, operand, at_shared, expected);
			snprintf(expected, sizeof(expected), "REGISTER u%d %d", 8 << width, i);
			check(shared, strchr(operand, '%'), at_shared, expected);
		}
}

/* What gcc and clang write for the same arguments, without a look at it by hand. */
static void what_compilers_write_is_understood(void **state)
{
	static const char *const options[] = {
		"-O0", "-O1", "-O2", "-O3 -fPIC", "-O2 -no-pie -fno-pie", "-O1 -fno-omit-frame-pointer"
	};

	write_file("sdt.c",
		   "#include <sys/sdt.h>\n"
		   "static volatile long counter; static char letters[16]; static struct { int a; short b; } pair;\n"
		   "__attribute__((noinline)) int f(int a, unsigned char b, short c, char *d, int *e, long g, long h, "
		   "int i)\n"
		   "{ volatile int local = a; char array[20]; __asm__(\"\" : \"+m\"(array));\n"
		   "  DTRACE_PROBE8(unit, all, a, b, c, d, e[a], local, array[i], letters[i & 15]);\n"
		   "  DTRACE_PROBE6(unit, more, counter, pair.b, 5, -7L, h, (unsigned short)g);\n"
		   "  return letters[0] + pair.a; }\n"
		   "int main(int c, char **v) { int e[9] = { 0 }; return f(c & 3, 2, 3, *v, e, c, 7, c & 7); }\n");
	for (size_t i = 0; i < kymo_countof(options); i++)
		for (int clang = 0; clang < 2; clang++) {
			struct kymo_marker_list *list;

			if (clang && system("command -v clang >/dev/null"))
				continue;
			run("%s %s sdt.c -o sdt", clang ? "clang" : "gcc", options[i]);
			list = markers_in("sdt");
			assert_true(list->n >= 2);
			for (size_t j = 0; j < list->n; j++)
				if (list->items[j].why_not)
					fail_msg("%s: %s", options[i], list->items[j].why_not);
			assert_string_equal(fields_text(find_marker(list, "all")),
					    "arg1:s32 arg2:u8 arg3:s16 arg4:u64 arg5:s32 arg6:s32 arg7:s8 arg8:s8");
			assert_string_equal(fields_text(find_marker(list, "more")),
					    "arg1:s64 arg2:s16 arg3:s32 arg4:s64 arg5:s64 arg6:u16");
			kymo_markers_destroy(list);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_at_fixed_addresses_is_read_as_listed),
		cmocka_unit_test(a_shared_object_is_read_as_listed),
		cmocka_unit_test(every_general_register_is_known_in_every_width),
		cmocka_unit_test(what_compilers_write_is_understood),
	};

	return cmocka_run_group_tests(tests, build, clean_up);
}
