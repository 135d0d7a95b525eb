/* Debug information of programs that the test compiles: in several ways, with the same answers. */
#include "testing.h"

#include "sym/debug.h"
#include "sym/find.h"
#include "sym/open.h"
#include "sym/sym.h"
#include "sym/symbols.h"
#include "wire/ctype.h"

static const char source[] =
	"#include <stddef.h>\n"
	"struct peer { int fd; struct { unsigned a : 3, b : 5; unsigned c : 24; }; union { long l; double d; } u; char "
	"name[16]; };\n"
	"typedef struct conn { struct peer *peer; size_t n; const char *const *argv; int (*cb)(struct conn *, char); "
	"struct conn *next; } conn_t;\n"
	"enum color { RED, GREEN = 5, BLUE }; enum { LEAST = -4, MOST = 4 } limit; const char word[3] = \"ab\";\n"
	"typedef struct { short x, y; } point_t;\n"
	"struct hidden;\n"
	"static int counter = 7;\n"
	"int shared[3][4]; point_t origin; _Thread_local int each = 3; __thread long later;\n"
	"static volatile enum color color = GREEN;\n"
	"static inline __attribute__((always_inline)) int twice(int v) { int w = v * 2; return w + counter; }\n"
	"__attribute__((noinline)) long work(conn_t *conn, const size_t size, unsigned char flag, struct hidden "
	"*secret)\n"
	"{\n"
	"	volatile long total = 0;\n"
	"	for (int k = 0; k < (int)size; k++)\n"
	"		total += twice(k + flag) + (conn ? conn->peer->fd : 0) + color;\n"
	"\n"
	"	return total + (long)secret;\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	struct peer peer = { .fd = 3 };\n"
	"	conn_t conn = { .peer = &peer };\n"
	"	shared[1][2] = argc;\n"
	"	return (int)work(&conn, argc + 2, 1, (void *)argv) & twice(argc);\n"
	"}\n";

struct built {
	struct kymo_module *module;
	struct kymo_debug *debug;
	uint64_t work;
};

static void take(struct kymo_error *error)
{
	if (error)
		fail_msg("%s", error->message);
}

static void open_built(struct built *built, const char *name)
{
	const struct kymo_symbol **found;
	char path[512];
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	take(kymo_module_open(path, &built->module));
	take(kymo_debug_open(built->module, NULL, &built->debug));
	take(kymo_module_find(built->module, "work", &found, &n));
	assert_int_equal(n, 1);
	built->work = found[0]->vaddr;
	free(found);
}

static void close_built(struct built *built)
{
	kymo_debug_close(built->debug);
	kymo_module_close(built->module);
}

static void write_source(void)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/app.c", directory);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs(source, file);
	fclose(file);
	snprintf(path, sizeof(path), "%s/other.c", directory);
	file = fopen(path, "we");
	assert_non_null(file);
	fputs("struct hidden { int inside; char more[4]; };\nstruct hidden hidden;\n", file);
	fclose(file);
}

static const struct kymo_variable *variable(const struct kymo_variable *variables, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(variables[i].name, name))
			return &variables[i];
	fail_msg("no variable %s", name);
	return NULL;
}

static const struct kymo_ctype_member *member(struct kymo_debug *debug, const struct kymo_ctype *type, const char *name)
{
	const struct kymo_ctype_member *members;
	size_t n;

	take(kymo_debug_members(debug, type, &members, &n));
	for (size_t i = 0; i < n; i++)
		if (members[i].name && !strcmp(members[i].name, name))
			return &members[i];
	fail_msg("%s has no member %s", type->name, name);
	return NULL;
}

static void check_register(const struct kymo_variable *variable, int64_t number)
{
	assert_int_equal(variable->location.kind, KYMO_LOCATION_VALUE);
	assert_int_equal(variable->location.form.n, 1);
	assert_int_equal(variable->location.form.ops[0].code, KYMO_FORM_REGISTER);
	assert_int_equal(variable->location.form.ops[0].value, number);
}

static void check_parameters(struct built *built)
{
	const struct kymo_variable *variables;
	size_t n;

	take(kymo_debug_variables(built->debug, built->work, &variables, &n));
	check_register(variable(variables, n, "conn"), 5);
	check_register(variable(variables, n, "size"), 4);
	check_register(variable(variables, n, "flag"), 1);
	check_register(variable(variables, n, "secret"), 2);
	assert_string_equal(variable(variables, n, "conn")->declared_type, "conn_t *");
	assert_string_equal(variable(variables, n, "size")->declared_type, "const size_t");
	assert_string_equal(variable(variables, n, "size")->type->name, "unsigned long");
	assert_int_equal(variable(variables, n, "flag")->type->kind, KYMO_CTYPE_CHARACTER);
	assert_true(variable(variables, n, "conn")->is_parameter);
	assert_false(variable(variables, n, "total")->is_parameter);
}

static void check_types(struct built *built)
{
	const struct kymo_ctype *conn, *peer, *type;
	const struct kymo_ctype_member *found;
	const struct kymo_variable *variables;
	size_t n;

	take(kymo_debug_variables(built->debug, built->work, &variables, &n));
	conn = variable(variables, n, "conn")->type->of;
	assert_string_equal(conn->name, "struct conn");
	assert_int_equal(conn->size, 40);
	assert_int_equal(member(built->debug, conn, "next")->offset, 32);
	assert_ptr_equal(member(built->debug, conn, "next")->type->of, conn);
	assert_string_equal(member(built->debug, conn, "argv")->type->name, "const char * const *");
	assert_string_equal(member(built->debug, conn, "cb")->type->name, "int (*)(struct conn *, char)");
	peer = member(built->debug, conn, "peer")->type->of;
	found = member(built->debug, peer, "b");
	assert_int_equal(found->bit_size, 5);
	assert_int_equal(found->bit_shift, 3);
	assert_int_equal(found->offset, 4);
	assert_int_equal(member(built->debug, peer, "c")->bit_shift, 8);
	assert_int_equal(member(built->debug, peer, "name")->type->n, 16);
	take(kymo_debug_type(built->debug, "conn_t *", 8, &type));
	assert_ptr_equal(type->of, conn);
	take(kymo_debug_type(built->debug, "point_t", 7, &type));
	assert_string_equal(type->name, "point_t");
	/* declared here, and complete in another unit */
	type = variable(variables, n, "secret")->type->of;
	assert_int_equal(member(built->debug, type, "more")->offset, 4);
	assert_int_equal(type->size, 8);
}

/* The block has `each` and then, aligned, `later`: 16 bytes before the thread pointer. */
static void check_thread_local(struct built *built)
{
	const struct kymo_variable *found;

	take(kymo_debug_global(built->debug, built->work, "each", 4, &found));
	assert_non_null(found);
	assert_true(found->is_static);
	assert_int_equal(found->location.kind, KYMO_LOCATION_MEMORY);
	assert_int_equal(found->location.form.n, 3);
	assert_int_equal(found->location.form.ops[0].code, KYMO_FORM_THREAD);
	assert_int_equal(found->location.form.ops[1].value, -16);
	assert_int_equal(found->location.form.ops[2].code, KYMO_FORM_ADD);
	take(kymo_debug_global(built->debug, built->work, "later", 5, &found));
	assert_int_equal(found->location.form.ops[1].value, -8);
}

static void check_globals(struct built *built)
{
	const struct kymo_ctype_enumerator *enumerators;
	struct kymo_ctype_enumerator one;
	const struct kymo_variable *found;
	const struct kymo_ctype *type;
	uint64_t vaddr, size;
	bool is_one;
	size_t n;

	take(kymo_debug_global(built->debug, built->work, "shared", 6, &found));
	assert_non_null(found);
	assert_string_equal(found->declared_type, "int [3][4]");
	assert_int_equal(found->type->of->n, 4);
	assert_int_equal(found->type->size, 48);
	assert_int_equal(kymo_module_find_object(built->module, "shared", &vaddr, &size), 0);
	assert_int_equal(found->location.form.ops[0].code, KYMO_FORM_ADDRESS);
	assert_int_equal(found->location.form.ops[0].value, vaddr);
	check_thread_local(built);
	take(kymo_debug_global(built->debug, built->work, "word", 4, &found));
	assert_string_equal(found->declared_type, "const char [3]");
	take(kymo_debug_global(built->debug, built->work, "color", 5, &found));
	take(kymo_debug_enumerators(built->debug, found->type, &enumerators, &n));
	assert_int_equal(n, 3);
	assert_string_equal(enumerators[1].name, "GREEN");
	assert_int_equal(enumerators[1].value, 5);
	take(kymo_debug_enumerator(built->debug, built->work, "BLUE", 4, &type, &one, &is_one));
	assert_ptr_equal(type, found->type);
	assert_true(is_one);
	assert_int_equal(one.value, 6);
	take(kymo_debug_enumerator(built->debug, built->work, "LEAST", 5, &type, &one, &is_one));
	assert_int_equal(one.value, -4);
	take(kymo_debug_enumerator(built->debug, built->work, "color::BLUE", 11, &type, &one, &is_one));
	assert_null(type); /* C has no such names */
	take(kymo_debug_enumerator(built->debug, built->work, "BLU", 3, &type, &one, &is_one));
	assert_null(type);
	take(kymo_debug_global(built->debug, built->work, "nothing", 7, &found));
	assert_null(found);
}

static void check_lines(struct built *built)
{
	const struct kymo_instance *instances;
	const struct kymo_source_line *lines;
	const char *const *paths;
	struct kymo_error *error;
	bool has_loop = false;
	size_t n;

	take(kymo_debug_lines(built->debug, "app.c", 12, &lines, &n));
	assert_int_equal(n, 1);
	assert_int_equal(lines[0].vaddr, built->work);
	take(kymo_debug_lines(built->debug, "./app.c", 16, &lines, &n));
	assert_true(n > 0);
	assert_int_equal(lines[0].line, 17);
	assert_string_equal(lines[0].function, "work");
	take(kymo_debug_lines(built->debug, "app.c", 1000, &lines, &n));
	assert_int_equal(n, 0);
	error = kymo_debug_lines(built->debug, "ap.c", 12, &lines, &n);
	assert_non_null(error);
	assert_non_null(strstr(error->message, "near are app.c"));
	kymo_error_destroy(error);
	take(kymo_debug_sources(built->debug, "app.c", &paths, &n));
	assert_int_equal(n, 1);
	assert_int_equal(paths[0][0], '/');
	take(kymo_debug_lines(built->debug, paths[0], 12, &lines, &n));
	assert_int_equal(n, 1);
	assert_string_equal(lines[0].file, paths[0]);
	error = kymo_debug_sources(built->debug, "other/app.c", &paths, &n);
	assert_non_null(error);
	kymo_error_destroy(error);
	take(kymo_debug_function_lines(built->debug, built->work, &lines, &n));
	for (size_t i = 0; i < n; i++)
		has_loop |= lines[i].line == 15;
	assert_true(has_loop);
	take(kymo_debug_instances(built->debug, "twice", 5, &instances, &n));
	assert_true(n == 1 || n == 2); /* clang leaves nothing of one that it has made vectors of */
	assert_true(instances[0].is_inlined && instances[n - 1].is_inlined);
}

static void test_compilers_agree(void **state)
{
	static const char *const ways[] = { "gcc -O0 -gdwarf-5",   "gcc -O2 -gdwarf-4",   "gcc -O2 -gdwarf-5",
					    "clang -O0 -gdwarf-4", "clang -O2 -gdwarf-5", "gcc -O1 -g -gsplit-dwarf" };

	write_source();
	for (size_t i = 0; i < kymo_countof(ways); i++) {
		struct built built;

		print_message("%s\n", ways[i]);
		run("%s -w -o app app.c other.c", ways[i]);
		open_built(&built, "app");
		check_parameters(&built);
		check_types(&built);
		check_globals(&built);
		check_lines(&built);
		close_built(&built);
	}
}

static void test_separate_files(void **state)
{
	struct kymo_module *module;
	struct kymo_debug *debug;
	struct kymo_error *error;
	struct built built;
	char path[512];

	write_source();
	run("gcc -O1 -g -w -o app app.c other.c && objcopy --only-keep-debug app app.debug && "
	    "objcopy --strip-debug --add-gnu-debuglink=app.debug app apart && gcc -O0 -g -w -o old app.c other.c && "
	    "gcc -w -o none app.c other.c");
	open_built(&built, "apart");
	check_parameters(&built);
	check_types(&built);
	snprintf(path, sizeof(path), "%s/old", directory);
	error = kymo_debug_open(built.module, path, &debug);
	assert_non_null(error);
	assert_int_equal(error->code, KYMO_ERROR_USAGE);
	assert_non_null(strstr(error->message, "is of another build than"));
	kymo_error_destroy(error);
	close_built(&built);
	snprintf(path, sizeof(path), "%s/none", directory);
	take(kymo_module_open(path, &module));
	error = kymo_debug_open(module, NULL, &debug);
	assert_non_null(error);
	assert_int_equal(error->code, KYMO_ERROR_NOT_FOUND);
	assert_non_null(strstr(error->message, "none-dbgsym"));
	kymo_error_destroy(error);
	kymo_module_close(module);
}

/* The first typedef leads to the second, and this to the first: its reference is overwritten. DWARF 4, 32 bits: the
 * entry of a typedef ends in four bytes, the offset of its type in the unit. */
static void make_circle(void)
{
	run("printf 'typedef int a_t; typedef a_t b_t; int work(b_t x) { return x; }\\nint main(void) { return 0; "
	    "}\\n' "
	    "> circle.c && gcc -O0 -gdwarf-4 -o circle circle.c && "
	    "python3 - <<'END'\n"
	    "import re, subprocess\n"
	    "info = subprocess.run(['objdump', '--dwarf=info', 'circle'], capture_output=True, text=True).stdout\n"
	    "entries = re.findall(r'<([0-9a-f]+)>: Abbrev Number: \\d+ \\(DW_TAG_typedef\\)(.*?)(?=<\\d+><)', info, "
	    "re.S)\n"
	    "spot = {re.search(r': ([ab]_t)', text)[1]: (int(at, 16), int(re.search(r'<([0-9a-f]+)> +DW_AT_type', "
	    "text)[1], 16)) "
	    "for at, text in entries}\n"
	    "sections = subprocess.run(['readelf', '-SW', 'circle'], capture_output=True, text=True).stdout\n"
	    "start = int(re.search(r'\\.debug_info +PROGBITS +\\w+ (\\w+)', sections)[1], 16)\n"
	    "with open('circle', 'r+b') as file:\n"
	    "    file.seek(start + spot['a_t'][1])\n"
	    "    file.write(spot['b_t'][0].to_bytes(4, 'little'))\n"
	    "END");
}

static void test_types_in_a_circle(void **state)
{
	const struct kymo_variable *variables;
	const struct kymo_symbol **found;
	struct kymo_module *module;
	struct kymo_debug *debug;
	char path[512];
	size_t n;

	make_circle();
	snprintf(path, sizeof(path), "%s/circle", directory);
	take(kymo_module_open(path, &module));
	take(kymo_debug_open(module, NULL, &debug));
	take(kymo_module_find(module, "work", &found, &n));
	take(kymo_debug_variables(debug, found[0]->vaddr, &variables, &n));
	assert_int_equal(n, 1);
	assert_string_equal(variables[0].declared_type, "b_t");
	assert_int_equal(variables[0].type->kind, KYMO_CTYPE_VOID);
	free(found);
	kymo_debug_close(debug);
	kymo_module_close(module);
}

/* Each block's sibling is its own first child: a walk that believes it takes 2 to the power of their number of steps.
 */
static void test_siblings_within(void **state)
{
	const struct kymo_instance *instances;
	struct kymo_source_frame frames[KYMO_SOURCE_FRAMES_MAX];
	struct built built;
	size_t n;

	run("python3 - > lie.s <<'END'\n"
	    "print('.text\\n.globl work, main\\n.type work, @function\\nwork: nop\\nmain: ret\\n.Lend: .section "
	    ".debug_abbrev')\n"
	    "print('.byte 1,0x11,1,0x11,1,0x12,7,0,0, 2,0xb,1,1,0x13,0,0, 3,0x2e,0,3,8,0x11,1,0x12,7,0,0, 0')\n"
	    "print('.section .debug_info\\n.Lstart: .long .Ldone-.Lversion\\n.Lversion: .value 4\\n.long 0\\n.byte "
	    "8')\n"
	    "print('.byte 1\\n.quad work, .Lend-work')\n"
	    "for i in range(50): print(f'.byte 2\\n.long .Lchild{i}-.Lstart\\n.Lchild{i}:')\n"
	    "print('.byte 3\\n.string \"work\"\\n.quad work, main-work')\n"
	    "print('.fill 51, 1, 0\\n.Ldone:')\n"
	    "END\n"
	    "gcc -z noexecstack -o lie lie.s");
	open_built(&built, "lie");
	assert_int_equal(kymo_debug_frames(built.debug, built.work, frames), 1);
	assert_string_equal(frames[0].function, "work");
	take(kymo_debug_instances(built.debug, "work", 4, &instances, &n));
	close_built(&built);
}

/*
 * A linker leaves 0 where it has dropped a function, which is no code of the program. A unit that does not say where
 * its code is has the address if no other does.
 */
static void test_dropped_functions(void **state)
{
	struct kymo_source_frame frames[KYMO_SOURCE_FRAMES_MAX];
	struct built built;

	run("python3 - > dropped.s <<'END'\n"
	    "print('.text\\n.globl work, main\\n.type work, @function\\nwork: nop\\nnop\\nmain: ret')\n"
	    "print('.section .debug_abbrev\\n.byte 1,0x11,1,0x11,1,0x12,7,0,0, 2,0x2e,0,3,8,0x11,1,0x12,7,0,0')\n"
	    "print('.byte 3,0x11,1,0,0, 0\\n.section .debug_info')\n"
	    "for name, at, size, places in ('dropped', 0, 1 << 40, 1), ('work', 'work', 1, 1), ('late', 'work + 1', 1, "
	    "0):\n"
	    "    print('.long 2f-1f\\n1: .value 4\\n.long 0\\n.byte 8')\n"
	    "    print(f'.byte 1\\n.quad {at}, {size}' if places else '.byte 3')\n"
	    "    print(f'.byte 2\\n.string \"{name}\"\\n.quad {at}, {size}\\n.byte 0\\n2:')\n"
	    "END\n"
	    "gcc -z noexecstack -o dropped dropped.s");
	open_built(&built, "dropped");
	assert_int_equal(kymo_debug_frames(built.debug, built.work, frames), 1);
	assert_string_equal(frames[0].function, "work");
	assert_int_equal(kymo_debug_frames(built.debug, built.work + 1, frames), 1);
	assert_string_equal(frames[0].function, "late");
	assert_int_equal(kymo_debug_frames(built.debug, 16, frames), 0);
	close_built(&built);
}

/* At the first address of a function nothing that is inlined there is called yet. */
static void test_frames_at_an_entry(void **state)
{
	struct kymo_source_frame frames[KYMO_SOURCE_FRAMES_MAX];
	struct built built;

	run("printf 'int count;\nnamespace shop {\nstatic inline __attribute__((always_inline)) void add()\n"
	    "{ asm volatile(\"nop\\\\n nop\"); }\n}\nextern \"C\" void work()\n{\n\tshop::add();\n}\n"
	    "int main() { work(); }\n' > entry.cc && g++ -O2 -g -fcf-protection=none -o entry entry.cc");
	open_built(&built, "entry");
	assert_int_equal(kymo_debug_frames(built.debug, built.work, frames), 1);
	assert_string_equal(frames[0].function, "work");
	assert_int_equal(kymo_debug_frames(built.debug, built.work + 1, frames), 2);
	assert_true(frames[0].is_inlined);
	assert_true(strstr(frames[0].function, "shop"));
	assert_int_equal(frames[1].line, 8);
	close_built(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_compilers_agree, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_separate_files, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_types_in_a_circle, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_siblings_within, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_dropped_functions, make_directory, remove_directory),
		cmocka_unit_test_setup_teardown(test_frames_at_an_entry, make_directory, remove_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
