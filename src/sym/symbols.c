/* Symbols of .dynsym, .symtab and separate debug information, joined into one list. Go's own names stand in where these
 * have none. */
#include "sym/symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "sym/golang.h"
#include "sym/module.h"
#include "sym/module_state.h"

/* Longer names are not listed: comparing them would take too much time. */
#define NAME_MAX_SIZE 65536u

#define FEW 8        /* sorted by insertion */
#define FEW_ASKED 16 /* objects that are looked for without sorting all */

/* ---- reading --------------------------------------------------------------------------------- */

struct kymo_error *sym_section_table(const struct sym_image *image, struct sym_table *ret)
{
	Elf64_Shdr header, strings;

	for (uint64_t i = 1; i < image->n_sections && sym_image_section(image, i, &header); i++) {
		struct sym_table table = { .names_have_versions = true };

		if (header.sh_type != SHT_SYMTAB || !header.sh_size)
			continue;
		table.entries = image->bytes + header.sh_offset;
		table.n = header.sh_size / sizeof(Elf64_Sym);
		if (!sym_image_section(image, header.sh_link, &strings) || strings.sh_type != SHT_STRTAB ||
		    !strings.sh_size ||
		    !sym_strings_init(&table.strings, image->bytes + strings.sh_offset, strings.sh_size))
			return sym_image_bad(image, "the string table of section %llu is damaged (section %u)", LLX(i),
					     header.sh_link);
		*ret = table;
		return NULL;
	}
	return NULL;
}

/* Cut "memcpy@@GLIBC_2.14" into a name of its own and the version, which stays where it is. */
static struct kymo_error *cut_version(struct kymo_module *module, struct kymo_symbol *symbol)
{
	const char *at = strchr(symbol->name, '@');
	char *name;

	if (!at || at == symbol->name)
		return NULL;
	name = strndup(symbol->name, (size_t)(at - symbol->name));
	if (!name || !kymo_vec_push(&module->names, name)) {
		free(name);
		return &kymo_error_no_memory;
	}
	symbol->name = name;
	symbol->is_default = at[1] == '@';
	symbol->version = at + 1 + symbol->is_default;
	return NULL;
}

static struct kymo_error *add_function(struct kymo_module *module, struct sym_image *image,
				       const struct sym_table *table, uint64_t i, const Elf64_Sym *entry,
				       const char *name)
{
	struct kymo_symbol symbol = {
		.name = name,
		.vaddr = entry->st_value,
		.size = entry->st_size,
		.is_ifunc = ELF64_ST_TYPE(entry->st_info) == STT_GNU_IFUNC,
		.is_default = true,
		.is_global = ELF64_ST_BIND(entry->st_info) != STB_LOCAL,
	};
	struct kymo_error *error = NULL;

	if (table->versym) {
		unsigned int index = table->versym[2 * i] | table->versym[2 * i + 1] << 8;

		symbol.version = (index & 0x7fff) < table->n_versions ? table->versions[index & 0x7fff] : NULL;
		symbol.is_default = !symbol.version || !(index & 0x8000);
	} else if (table->names_have_versions) {
		/* Names may share their bytes, copies do not. */
		if (!sym_image_spend(image, strlen(name)))
			return sym_image_bad(image, "the symbol names overlap too much (symbol %llu)", LLX(i));
		error = cut_version(module, &symbol);
	}
	if (!error && !kymo_vec_push(&module->symbols, symbol))
		return &kymo_error_no_memory;
	return error;
}

static struct kymo_error *add_entry(struct kymo_module *module, struct sym_image *image, const struct sym_table *table,
				    uint64_t i)
{
	const char *name;
	Elf64_Sym entry;
	unsigned int type;
	bool is_code;

	memcpy(&entry, table->entries + i * sizeof(entry), sizeof(entry));
	name = sym_string(&table->strings, entry.st_name);
	if (!name)
		return sym_image_bad(image, "the name of symbol %llu lies beyond the string table (offset 0x%x)",
				     LLX(i), entry.st_name);
	type = ELF64_ST_TYPE(entry.st_info);
	if (type == STT_SECTION || type == STT_FILE || type == STT_TLS)
		return NULL;
	is_code = sym_code_at(module, entry.st_value);
	module->cancels |= entry.st_shndx == SHN_UNDEF && !strcmp(name, "pthread_cancel");
	if (entry.st_shndx != SHN_UNDEF && *name && strnlen(name, NAME_MAX_SIZE) < NAME_MAX_SIZE) {
		if (is_code && (type == STT_FUNC || type == STT_GNU_IFUNC))
			return add_function(module, image, table, i, &entry, name);
		if (type == STT_OBJECT &&
		    !kymo_vec_push(
			    &module->objects,
			    (struct sym_object){ .name = name,
						 .vaddr = entry.st_value,
						 .size = entry.st_size,
						 .is_default = !table->versym || !(table->versym[2 * i + 1] & 0x80) }))
			return &kymo_error_no_memory;
	}
	/*
	 * Among these are the PLT entries that programs at fixed addresses use as the address of an undefined
	 * function.
	 */
	if (is_code && !kymo_vec_push(&module->marks, entry.st_value))
		return &kymo_error_no_memory;
	return NULL;
}

static struct kymo_error *add_table(struct kymo_module *module, struct sym_image *image, const struct sym_table *table)
{
	struct kymo_error *error = NULL;

	/* Most are functions. To grow step by step would use memory several times over. */
	if (!kymo_vec_reserve(&module->symbols, module->symbols.n + table->n))
		return &kymo_error_no_memory;
	for (uint64_t i = 1; i < table->n && !error; i++)
		error = add_entry(module, image, table, i);
	return error;
}

/* ---- one list -------------------------------------------------------------------------------- */

static int compare_strings(const char *a, const char *b)
{
	if (a == b)
		return 0;
	if (!a || !b)
		return a ? -1 : 1;
	return strcmp(a, b);
}

/* By vaddr, then name; of one function's versions the default first and those without one last. */
static int compare_symbols(const void *a, const void *b)
{
	const struct kymo_symbol *x = a, *y = b;
	int r;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	r = compare_strings(x->name, y->name);
	if (r)
		return r;
	if (!x->version != !y->version)
		return x->version ? -1 : 1;
	if (x->is_default != y->is_default)
		return x->is_default ? -1 : 1;
	return compare_strings(x->version, y->version);
}

/* What several entries for one function say together. */
static void absorb(struct kymo_symbol *symbol, const struct kymo_symbol *same)
{
	if (same->size > symbol->size)
		symbol->size = same->size;
	symbol->is_ifunc |= same->is_ifunc;
	symbol->is_global |= same->is_global;
}

/* Leave each (vaddr, name) once, and append what other versions it has after n_symbols. */
static struct kymo_error *unify(struct kymo_module *module)
{
	KYMO_VEC(struct kymo_symbol) others = { 0 };
	struct kymo_symbol *items = module->symbols.items;
	size_t n = 0;
	bool ok = true;

	for (size_t i = 0; i < module->symbols.n && ok; i++) {
		const struct kymo_symbol *last = others.n ? &others.items[others.n - 1] : NULL;

		if (!n || items[n - 1].vaddr != items[i].vaddr || strcmp(items[n - 1].name, items[i].name)) {
			items[n++] = items[i];
			continue;
		}
		absorb(&items[n - 1], &items[i]);
		if (!items[i].version || !compare_strings(items[i].version, items[n - 1].version))
			continue;
		if (last && last->vaddr == items[i].vaddr && !strcmp(last->name, items[i].name) &&
		    !compare_strings(last->version, items[i].version))
			continue;
		ok = kymo_vec_push(&others, items[i]);
	}
	module->n_symbols = n;
	if (ok && others.n)
		memcpy(items + n, others.items, others.n * sizeof(*items));
	module->symbols.n = n + others.n;
	kymo_vec_deinit(&others);
	return ok ? NULL : &kymo_error_no_memory;
}

/* A symbol's address, and where the symbol is. */
struct sort_key {
	uint64_t vaddr;
	size_t at;
};

/* By address; of several with one address the order stays. A byte of the addresses at a time, the least significant
 * first, and only those in which addresses differ. */
static void sort_keys(struct sort_key *keys, struct sort_key *spare, size_t n)
{
	struct sort_key *from = keys, *to = spare;
	uint64_t differing = 0;

	for (size_t i = 0; i < n; i++)
		differing |= keys[i].vaddr ^ keys[0].vaddr;
	for (unsigned int shift = 0; shift < 64; shift += 8) {
		size_t ends[256] = { 0 }, sum = 0;
		struct sort_key *swap = from;

		if (!(differing >> shift & 0xff))
			continue;
		for (size_t i = 0; i < n; i++)
			ends[from[i].vaddr >> shift & 0xff]++;
		for (size_t i = 0; i < kymo_countof(ends); i++) {
			sum += ends[i];
			ends[i] = sum;
		}
		for (size_t i = n; i-- > 0;)
			to[--ends[from[i].vaddr >> shift & 0xff]] = from[i];
		from = to;
		to = swap;
	}
	if (n && from != keys)
		memcpy(keys, from, n * sizeof(*keys));
}

/* The symbols of one address: nearly always two or three. */
static void sort_few(struct kymo_symbol *symbols, size_t n)
{
	if (n > FEW) {
		qsort(symbols, n, sizeof(*symbols), compare_symbols);
		return;
	}
	for (size_t i = 1; i < n; i++) {
		const struct kymo_symbol symbol = symbols[i];
		size_t at = i;

		for (; at && compare_symbols(&symbols[at - 1], &symbol) > 0; at--)
			symbols[at] = symbols[at - 1];
		symbols[at] = symbol;
	}
}

/* Put symbol keys[i].at in place i, for all i. There is no room for a second copy of them: each cycle of places is
 * followed to its end, and a place that is done has the key of itself. */
static void reorder(struct kymo_symbol *symbols, struct sort_key *keys, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct kymo_symbol first = symbols[i];
		size_t at = i;

		while (keys[at].at != i) {
			const size_t from = keys[at].at;

			symbols[at] = symbols[from];
			keys[at].at = at;
			at = from;
		}
		symbols[at] = first;
		keys[at].at = at;
	}
}

/* By address alone at first: keys are small, and a comparison of theirs does not read names all over the file. Then the
 * few symbols of each address. */
static struct kymo_error *sort(struct kymo_module *module)
{
	const size_t n = module->symbols.n;
	struct kymo_symbol *symbols = module->symbols.items;
	kymo_cleanup_free struct sort_key *keys = malloc(2 * (n + 1) * sizeof(*keys));

	if (!keys)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct sort_key){ symbols[i].vaddr, i };
	sort_keys(keys, keys + n + 1, n);
	reorder(symbols, keys, n);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && symbols[end].vaddr == symbols[i].vaddr; end++)
			;
		sort_few(&symbols[i], end - i);
	}
	return NULL;
}

/* Whether one of the first `n` symbols, which are sorted, is at `vaddr`. */
static bool has_symbol_at(const struct kymo_module *module, size_t n, uint64_t vaddr)
{
	size_t at = kymo_partition_point(i, n, module->symbols.items[i].vaddr < vaddr);

	return at < n && module->symbols.items[at].vaddr == vaddr;
}

/* Name functions of Go that no symbol table names: stripped programs keep the table of Go's runtime. The symbols are
 * sorted. */
static struct kymo_error *add_go_names(struct kymo_module *module)
{
	struct kymo_error *error = sym_go_read(module);
	const size_t n = module->symbols.n;

	/* Callers that need more of the table than names are told what is wrong with it. */
	if (error && error->code != KYMO_ERROR_NO_MEMORY) {
		kymo_error_destroy(error);
		return NULL;
	}
	for (size_t i = 0; i < module->go_functions.n && !error; i++) {
		const struct sym_go_function *function = &module->go_functions.items[i];

		if (!*function->name || strnlen(function->name, NAME_MAX_SIZE) == NAME_MAX_SIZE ||
		    has_symbol_at(module, n, function->start))
			continue;
		if (!kymo_vec_push(&module->symbols, (struct kymo_symbol){ .name = function->name,
									   .vaddr = function->start,
									   .size = function->end - function->start,
									   .is_default = true,
									   .is_global = true }))
			error = &kymo_error_no_memory;
	}
	return !error && module->symbols.n > n ? sort(module) : error;
}

static int compare_objects(const void *a, const void *b)
{
	const struct sym_object *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	if (!r)
		r = y->is_default - x->is_default;
	if (!r && x->vaddr != y->vaddr)
		r = x->vaddr < y->vaddr ? -1 : 1;
	return r;
}

struct kymo_error *sym_symbols_read(struct kymo_module *module)
{
	struct sym_table table = { 0 };
	struct kymo_error *error = add_table(module, &module->image, &module->dynsym);

	if (!error)
		error = sym_section_table(&module->image, &table);
	if (!error)
		error = add_table(module, &module->image, &table);
	if (!error && module->debug.bytes) {
		table = (struct sym_table){ 0 };
		error = sym_section_table(&module->debug, &table);
		if (!error)
			error = add_table(module, &module->debug, &table);
	}
	if (error)
		return error;
	error = sort(module);
	if (!error)
		error = add_go_names(module);
	return error || !module->symbols.n ? error : unify(module);
}

/* ---- asking ---------------------------------------------------------------------------------- */

const struct kymo_symbol *kymo_module_symbols(const struct kymo_module *module, size_t *n_ret)
{
	*n_ret = module->n_symbols;
	return module->symbols.items;
}

/* The first object that is called `name`, or comes after all that are when `behind` is set, in the sorted list. */
static size_t object_place(const struct kymo_module *module, const char *name, bool behind)
{
	size_t low = 0, high = module->objects.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(module->objects.items[mid].name, name);

		if (order < 0 || (behind && !order))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* The first and the last of the objects that are called `name`, in the order of compare_objects(). */
struct same_name {
	const struct sym_object *first, *last;
};

static struct same_name find_in_unsorted(const struct kymo_module *module, const char *name)
{
	struct same_name found = { NULL, NULL };

	for (size_t i = 0; i < module->objects.n; i++) {
		const struct sym_object *object = &module->objects.items[i];

		if (strcmp(object->name, name))
			continue;
		if (!found.first || compare_objects(object, found.first) < 0)
			found.first = object;
		if (!found.last || compare_objects(object, found.last) > 0)
			found.last = object;
	}
	return found;
}

/* Most modules are asked for a few objects only: to sort all would take longer. */
static struct same_name find_objects(struct kymo_module *module, const char *name)
{
	size_t first, end;

	if (module->n_asked < FEW_ASKED) {
		module->n_asked++;
		return find_in_unsorted(module, name);
	}
	if (module->objects.n && !module->are_objects_sorted)
		qsort(module->objects.items, module->objects.n, sizeof(*module->objects.items), compare_objects);
	module->are_objects_sorted = true;
	first = object_place(module, name, false);
	end = object_place(module, name, true);
	if (first == end)
		return (struct same_name){ NULL, NULL };
	return (struct same_name){ &module->objects.items[first], &module->objects.items[end - 1] };
}

int kymo_module_find_object(struct kymo_module *module, const char *name, uint64_t *vaddr_ret, uint64_t *size_ret)
{
	const struct same_name found = find_objects(module, name);

	if (!found.first)
		return -ENOENT;
	*vaddr_ret = found.first->vaddr;
	*size_ret = found.first->size;
	return 0;
}

int kymo_module_only_object(struct kymo_module *module, const char *name, uint64_t *ret)
{
	const struct same_name found = find_objects(module, name);

	if (!found.first)
		return -ENOENT;
	/* They are sorted by address, but for old versions, which come last. */
	if (found.first->is_default != found.last->is_default || found.first->vaddr != found.last->vaddr)
		return -ENOTUNIQ;
	*ret = found.first->vaddr;
	return 0;
}
