/*
 * Functions of Go programs, which have no .eh_frame and often no symbols: the table that Go's runtime walks stacks
 * with. It is also what tells the runtime where to go on in a function that recovered from a panic, an address that
 * no code names.
 * Reference: Go's runtime/symtab.go (pcHeader, functab, _func) and debug/gosym/pclntab.go, which knows all four
 * forms.
 */
#include <string.h>

#include "sym/module.h"

/* The forms differ in the header, and in whether addresses are whole or relative to the text. */
static const struct form {
	uint32_t magic;
	unsigned int
		text_word; /* index of the header's word that holds the start of the text; 0: addresses are whole */
	unsigned int table_word; /* of the one that holds the offset of the function table; 0: it follows the header */
} forms[] = {
	{ 0xfffffffb, 0, 0 }, /* Go 1.2 */
	{ 0xfffffffa, 0, 6 }, /* 1.16 */
	{ 0xfffffff0, 2, 7 }, /* 1.18 */
	{ 0xfffffff1, 2, 7 }, /* 1.20 */
};

struct go_table {
	struct kymo_module *module;
	const struct kymo_section *section;
	const struct form *form;
	uint64_t n, text;
	uint64_t base; /* offset in the section that offsets of functions count from */
	uint64_t functions; /* offset of the function table */
};

static struct kymo_error *bad_table(const struct go_table *table, const char *what)
{
	return sym_image_bad(&table->module->image, "%s is damaged: %s (vaddr 0x%llx)", table->section->name, what,
			     LLX(table->section->vaddr));
}

static bool holds(const struct go_table *table, uint64_t offset, uint64_t size)
{
	return offset <= table->section->size && size <= table->section->size - offset;
}

/*
 * Header word `i`, after four bytes of magic and four of sizes. The caller has checked that the section holds the
 * header.
 */
static bool header_word(const struct go_table *table, unsigned int i, uint64_t *ret)
{
	return sym_word(table->module, table->section->vaddr + 8 + 8 * (uint64_t)i, ret);
}

static struct kymo_error *read_header(struct go_table *table)
{
	const uint8_t *bytes = table->section->bytes;
	uint32_t magic;

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
	    (table->form->table_word && !header_word(table, table->form->table_word, &table->functions)))
		return bad_table(table, "the header cannot be read");
	if (table->form->table_word)
		table->base = table->functions;
	return NULL;
}

/* One half of a pair in the function table, `i` counting halves. */
static uint64_t half(const struct go_table *table, uint64_t i)
{
	const unsigned int size = table->form->text_word ? 4 : 8;
	uint64_t value = 0, at = table->functions + i * size;

	/* Only whole addresses are relocated; offsets in the other halves are not. */
	if (size == 8 && i % 2 == 0 && sym_word(table->module, table->section->vaddr + at, &value))
		return value;
	memcpy(&value, table->section->bytes + at, size);
	return value;
}

/* The function's own record: its address, as wide as in the table, then name, size of arguments, and deferreturn. */
static struct kymo_error *read_function(const struct go_table *table, uint64_t i)
{
	const uint64_t address_size = table->form->text_word ? 4 : 8;
	uint64_t start = table->text + half(table, 2 * i), end = table->text + half(table, 2 * i + 2);
	uint64_t record = table->base + half(table, 2 * i + 1);
	const struct sym_range *code = sym_code_at(table->module, start);
	uint32_t deferreturn;

	if (record < table->base || !holds(table, record, address_size + 12))
		return bad_table(table, "a function's record lies outside");
	if (!code || end <= start || end > code->end)
		return bad_table(table, "a function lies outside of the code");
	memcpy(&deferreturn, table->section->bytes + record + address_size + 8, sizeof(deferreturn));
	if (deferreturn && !kymo_vec_push(&table->module->frame_marks, start + deferreturn))
		return &kymo_error_no_memory;
	return kymo_vec_push(&table->module->fdes, (struct sym_fde){ start, end, 0, true }) ? NULL
											    : &kymo_error_no_memory;
}

static struct kymo_error *read_section(struct kymo_module *module, const struct kymo_section *section)
{
	struct go_table table = { .module = module, .section = section };
	struct kymo_error *error = read_header(&table);
	uint64_t pair;

	if (error)
		return error;
	pair = table.form->text_word ? 8 : 16;
	if (table.n > section->size / pair || !holds(&table, table.functions, table.n * pair + pair / 2) ||
	    !sym_image_spend(&module->image, table.n * pair))
		return bad_table(&table, "the function table lies outside");
	for (uint64_t i = 0; i < table.n && !error; i++)
		error = read_function(&table, i);
	return error;
}

struct kymo_error *sym_go_read(struct kymo_module *module)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < module->sections.n && !error; i++) {
		const char *name = module->sections.items[i].name;

		if (!strcmp(name, ".gopclntab") || !strcmp(name, ".data.rel.ro.gopclntab"))
			error = read_section(module, &module->sections.items[i]);
	}
	return error;
}
