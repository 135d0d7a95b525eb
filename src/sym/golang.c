/*
 * Functions of Go programs, which have no .eh_frame and often no symbols: the table that Go's runtime walks stacks
 * with. It has their names. It also tells the runtime where to continue in a function that recovered from a panic, an
 * address that no code names. So is the return address of what a goroutine runs first: inside of runtime.goexit.
 *
 * The table is known by the name of its section, or else by its first eight bytes: ld puts that of a
 * position-independent program into .data.rel.ro, and there may be no section headers. Such bytes may stand in any
 * data, as in a Go program that another program carries along. So then a structure of the runtime's must agree with
 * them:
 *
 *	moduledata	[table|...|first function|end of the last|start of the text|...]
 *
 * From Go 1.26 on only that says where the text starts, on which all addresses in the table depend. The section of the
 * text does not: where ld made the program, C's start-up code is first in it.
 *
 * Reference: Go's runtime/symtab.go (pcHeader, functab, _func, moduledata, and moduledataverify1, which compares the
 * two as this code does) and debug/gosym/pclntab.go, which knows all four forms; runtime/stack.go (StackGuard -
 * StackSmall).
 */
#include "sym/golang.h"

#include <string.h>

#include "sym/module.h"
#include "sym/module_state.h"
#include "sym/relocs.h"

/* What a header begins with: its form, two bytes of zero, the least size of instructions and the size of addresses. */
#define HEAD_MASK 0xfffffffffffffff0u
#define HEAD 0x08010000fffffff0u

/* Words of moduledata in which the start of the text is looked for: number 12 up to Go 1.15, 22 since then. */
#define MODULEDATA_WORDS 32

/* What looking at something that begins as a table or as moduledata costs, in bytes read. */
#define LOOK_COST 4096

/* The fill between functions (int3), and a jump by one byte, which may be a 0xcc. */
#define FILL 0xcc
#define SHORT_JUMP 0xeb

/* The forms differ in the header, and in whether addresses are whole or relative to the text. */
static const struct form {
	uint32_t magic;
	unsigned int
		text_word; /* index of the header's word that holds the start of the text; 0: addresses are whole */
	unsigned int names_word; /* of the one that holds the offset of the names; 0: they count from the header on */
	unsigned int left;       /* bytes of a stack below the frame of a function that has looked at its limit */
	unsigned int table_word; /* of the one that holds the offset of the function table; 0: it follows the header */
} forms[] = {
	{ .magic = 0xfffffffb, .left = 512 }, /* Go 1.2; what is left was 512 in 1.5, and more later */
	{ .magic = 0xfffffffa, .names_word = 2, .table_word = 6, .left = 800 },                 /* 1.16 */
	{ .magic = 0xfffffff0, .text_word = 2, .names_word = 3, .table_word = 7, .left = 800 }, /* 1.18 */
	{ .magic = 0xfffffff1, .text_word = 2, .names_word = 3, .table_word = 7, .left = 800 }, /* 1.20 */
};

struct go_table {
	struct kymo_module *module;
	const char *where; /* for messages */
	const uint8_t *bytes;
	uint64_t vaddr, size; /* `size`: what may belong to it */
	const struct form *form;
	uint64_t n, text;
	uint64_t base;      /* offset that offsets of functions count from */
	uint64_t names;     /* offset of names */
	uint64_t functions; /* offset of the function table */
};

static struct kymo_error *bad_table(const struct go_table *table, const char *what)
{
	return sym_image_bad(&table->module->image, "%s is damaged: %s (vaddr 0x%llx)", table->where, what,
			     LLX(table->vaddr));
}

static bool holds(const struct go_table *table, uint64_t offset, uint64_t size)
{
	return offset <= table->size && size <= table->size - offset;
}

/* ---- the header ------------------------------------------------------------------------------ */

/*
 * Header word `i`, after four bytes of magic and four of sizes. The caller has checked that the table holds the
 * header.
 */
static bool header_word(const struct go_table *table, unsigned int i, uint64_t *ret)
{
	return sym_word(table->module, table->vaddr + 8 + 8 * (uint64_t)i, ret);
}

/* Fill in all that is after `size`. The function table lies inside of the bytes then. */
static struct kymo_error *read_header(struct go_table *table)
{
	const uint8_t *bytes = table->bytes;
	uint32_t magic;
	uint64_t pair;

	if (!holds(table, 0, 8 + 8 * 8))
		return bad_table(table, "too short");
	memcpy(&magic, bytes, sizeof(magic));
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
		if (forms[i].magic == magic)
			table->form = &forms[i];
	if (!table->form || bytes[4] || bytes[5] || bytes[7] != 8)
		return bad_table(table, "a form of Go that is not known");
	table->functions = 8 + 8;
	if (!header_word(table, 0, &table->n) ||
	    (table->form->text_word && !header_word(table, table->form->text_word, &table->text)) ||
	    (table->form->names_word && !header_word(table, table->form->names_word, &table->names)) ||
	    (table->form->table_word && !header_word(table, table->form->table_word, &table->functions)))
		return bad_table(table, "the header cannot be read");
	if (table->form->table_word)
		table->base = table->functions;
	pair = table->form->text_word ? 8 : 16;
	if (table->n > table->size / pair || !holds(table, table->functions, table->n * pair + pair / 2))
		return bad_table(table, "the function table lies outside");
	return NULL;
}

/* One half of a pair in the function table, `i` counting halves. */
static uint64_t table_half(const struct go_table *table, uint64_t i)
{
	const unsigned int size = table->form->text_word ? 4 : 8;
	uint64_t value = 0, at = table->functions + i * size;

	/* Only whole addresses are relocated; offsets in the other halves are not. */
	if (size == 8 && i % 2 == 0 && sym_word(table->module, table->vaddr + at, &value))
		return value;
	memcpy(&value, table->bytes + at, size);
	return value;
}

/* Where function `i` starts, or for `n` where the last one ends. */
static uint64_t start_of(const struct go_table *table, uint64_t i)
{
	return table->text + table_half(table, 2 * i);
}

/* ---- moduledata ------------------------------------------------------------------------------ */

/* Whether the words at `vaddr` are moduledata of this table. Its start of the text is the table's then. */
static bool is_moduledata(struct go_table *table, uint64_t vaddr)
{
	struct kymo_module *module = table->module;
	const bool relative = table->form->text_word;
	const uint64_t first = table_half(table, 0), end = table_half(table, 2 * table->n);
	uint64_t word, words[2], text;

	if (!sym_image_spend(&module->image, LOOK_COST) || !sym_word(module, vaddr, &word) || word != table->vaddr)
		return false;
	for (uint64_t at = vaddr + 8; at < vaddr + 8 * (MODULEDATA_WORDS - 2); at += 8) {
		if (!sym_word(module, at, &words[0]) || !sym_word(module, at + 8, &words[1]) ||
		    !sym_word(module, at + 16, &text))
			return false;
		if (words[0] == first + (relative ? text : 0) && words[1] == end + (relative ? text : 0) &&
		    words[0] < words[1] && sym_code_at(module, words[0])) {
			table->text = relative ? text : 0;
			return true;
		}
	}
	return false;
}

/* Look for moduledata of this table in the file, in relocations and in place. */
static bool find_moduledata(struct go_table *table)
{
	struct kymo_module *module = table->module;

	if (!table->n)
		return false;
	for (size_t i = 0; i < module->relocs.n; i++)
		if (module->relocs.items[i].value == table->vaddr &&
		    is_moduledata(table, module->relocs.items[i].where))
			return true;
	for (size_t i = 0; i < module->segments.n; i++) {
		const struct kymo_segment *segment = &module->segments.items[i];

		if (!sym_image_spend(&module->image, segment->file_size))
			return false;
		for (uint64_t at = -segment->vaddr % 8; at < segment->file_size && segment->file_size - at >= 8;
		     at += 8) {
			uint64_t word;

			memcpy(&word, module->image.bytes + segment->offset + at, sizeof(word));
			if (word == table->vaddr && is_moduledata(table, segment->vaddr + at))
				return true;
		}
	}
	return false;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* The end of the code in [start, end) without the fill after it, of whose first byte it may be unknown that it is
 * that. */
static uint64_t end_of_code(const struct go_table *table, uint64_t start, uint64_t end)
{
	const uint8_t *bytes = sym_bytes(table->module, start, end - start);
	uint64_t size = end - start;

	while (bytes && size > 1 && bytes[size - 1] == FILL)
		size--;
	return start + size + (bytes && size < end - start && bytes[size - 1] == SHORT_JUMP);
}

/* The string at `offset` of the names, or NULL where it does not end inside of the table. */
static const char *name_at(const struct go_table *table, uint32_t offset)
{
	uint64_t at = table->names + offset;
	const char *name;
	size_t length;

	if (at < table->names || at >= table->size)
		return NULL;
	name = (const char *)table->bytes + at;
	length = strnlen(name, table->size - at);
	/* Names may share their bytes, which are read for each. */
	return length < table->size - at && sym_image_spend(&table->module->image, length) ? name : NULL;
}

/* The function's own record: its address, as wide as in the table, then name, size of arguments, and deferreturn. */
static struct kymo_error *read_function(const struct go_table *table, uint64_t i)
{
	const uint64_t address_size = table->form->text_word ? 4 : 8;
	uint64_t start = start_of(table, i), end = start_of(table, i + 1);
	uint64_t record = table->base + table_half(table, 2 * i + 1);
	const struct sym_range *code = sym_code_at(table->module, start);
	struct sym_go_function function = { .start = start };
	uint32_t name;

	if (record < table->base || !holds(table, record, address_size + 12))
		return bad_table(table, "a function's record lies outside");
	if (!code || end < start || end > code->end)
		return bad_table(table, "a function lies outside of the code");
	memcpy(&name, table->bytes + record + address_size, sizeof(name));
	memcpy(&function.resume, table->bytes + record + address_size + 8, sizeof(function.resume));
	function.name = name_at(table, name);
	if (!function.name)
		return bad_table(table, "a function's name lies outside, or is shared with too many");
	if (end == start)
		return NULL;
	function.end = end_of_code(table, start, end);
	if (!strcmp(function.name, "runtime.goexit"))
		function.resume = 1;
	return kymo_vec_push(&table->module->go_functions, function) ? NULL : &kymo_error_no_memory;
}

/* All functions have been read. Code that other compilers made lies before them or after them. */
static void note_range(const struct go_table *table)
{
	struct sym_small_stacks *small = &table->module->small_stacks;
	uint64_t low = UINT64_MAX, high = 0;

	for (uint64_t i = 0; i < table->n; i++) {
		uint64_t start = start_of(table, i), end = start_of(table, i + 1);

		low = start < low ? start : low;
		high = end > high ? end : high;
	}
	if (small->low == small->high)
		*small = (struct sym_small_stacks){ low, high, table->form->left };
	small->low = low < small->low ? low : small->low;
	small->high = high > small->high ? high : small->high;
	small->left = table->form->left < small->left ? table->form->left : small->left;
}

static struct kymo_error *read_functions(const struct go_table *table)
{
	struct kymo_error *error = NULL;

	if (!sym_image_spend(&table->module->image, table->n * 16))
		return bad_table(table, "its parts overlap");
	for (uint64_t i = 0; i < table->n && !error; i++)
		error = read_function(table, i);
	if (!error && table->n)
		note_range(table);
	return error;
}

/* ---- finding it ------------------------------------------------------------------------------ */

static struct kymo_error *read_section(struct kymo_module *module, const struct kymo_section *section)
{
	struct go_table table = { .module = module,
				  .where = section->name,
				  .bytes = section->bytes,
				  .vaddr = section->vaddr,
				  .size = section->size };
	struct kymo_error *error = sym_relocs_read(module);

	if (!error)
		error = read_header(&table);
	if (!error && table.form->text_word && !table.text && table.n && !find_moduledata(&table))
		error = bad_table(&table, "nothing says where the text starts");
	return error ? error : read_functions(&table);
}

/* What begins as a table does, at offset `at` of a segment. It is one if moduledata agrees. */
static struct kymo_error *read_candidate(struct kymo_module *module, const struct kymo_segment *segment, uint64_t at,
					 bool *found)
{
	struct go_table table = { .module = module,
				  .where = "the function table of Go",
				  .bytes = module->image.bytes + segment->offset + at,
				  .vaddr = segment->vaddr + at,
				  .size = segment->file_size - at };
	struct kymo_error *error = sym_relocs_read(module);

	if (error)
		return error;
	if (!sym_image_spend(&module->image, LOOK_COST))
		return bad_table(&table, "too many begin like it");
	error = read_header(&table);
	if (error) {
		kymo_error_destroy(error);
		return NULL;
	}
	if (!find_moduledata(&table))
		return NULL;
	*found = true;
	return read_functions(&table);
}

static struct kymo_error *search_table(struct kymo_module *module)
{
	struct kymo_error *error = NULL;
	bool found = false;

	for (size_t i = 0; i < module->segments.n && !error && !found; i++) {
		const struct kymo_segment *segment = &module->segments.items[i];

		for (uint64_t at = -segment->vaddr % 8; at < segment->file_size && segment->file_size - at >= 8;
		     at += 8) {
			uint64_t head;

			memcpy(&head, module->image.bytes + segment->offset + at, sizeof(head));
			if ((head & HEAD_MASK) != HEAD)
				continue;
			error = read_candidate(module, segment, at, &found);
			if (error || found)
				break;
		}
	}
	return error;
}

static struct kymo_error *read_go(struct kymo_module *module)
{
	struct kymo_error *error = NULL;
	bool found = false;

	for (size_t i = 0; i < module->sections.n && !error; i++) {
		const char *name = module->sections.items[i].name;

		if (!strcmp(name, ".gopclntab") || !strcmp(name, ".data.rel.ro.gopclntab")) {
			found = true;
			error = read_section(module, &module->sections.items[i]);
		}
	}
	return error || found ? error : search_table(module);
}

struct kymo_error *sym_go_read(struct kymo_module *module)
{
	struct kymo_error *error;

	if (!sym_lazy_begin(&module->go_lazy, &error))
		return error;
	module->go_functions.n = 0;
	module->small_stacks = (struct sym_small_stacks){ 0 };
	return sym_lazy_end(&module->go_lazy, read_go(module));
}

struct kymo_error *kymo_module_small_stacks(struct kymo_module *module, uint64_t *low_ret, uint64_t *high_ret,
					    uint32_t *left_ret)
{
	struct kymo_error *error = sym_go_read(module);

	if (error)
		return error;
	*low_ret = module->small_stacks.low;
	*high_ret = module->small_stacks.high;
	*left_ret = module->small_stacks.left;
	return NULL;
}
