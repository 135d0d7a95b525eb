/*
 * Lines of source. A line has many rows in a table: it goes on after what the compiler has put between. What a probe
 * wants of it is where it begins, once in each function and each inlined instance. That is its first row after the
 * function's entry: parts that are seldom run may lie before it.
 */
#include "sym/debug_lines.h"

#include <stdlib.h>
#include <string.h>

#include "sym/debug_files.h"
#include "sym/debug_memory.h"
#include "sym/debug_unit.h"
#include "sym/module.h"
#include "sym/module_state.h"

#define ROWS_MAX (1u << 20)

/* A row, and the function or inlined instance that it is in. */
struct line_row {
	struct kymo_source_line line;
	const void *instance;
	bool is_before; /* the function's entry */
};

struct gathering {
	struct kymo_debug *debug;
	const char *file;
	unsigned int wanted, best; /* lines; 0: no best one so far */
	struct sym_scopes scopes;
	bool has_scopes;
	const char *seen, *path; /* the file of the last row, as the line table has it and whole */
	KYMO_VEC(struct line_row) rows;
};

static int by_instance(const void *a, const void *b)
{
	const struct line_row *x = a, *y = b;

	if (x->instance != y->instance)
		return x->instance < y->instance ? -1 : 1;
	if (x->is_before != y->is_before)
		return x->is_before ? 1 : -1;
	return x->line.vaddr < y->line.vaddr ? -1 : x->line.vaddr > y->line.vaddr;
}

static int by_address(const void *a, const void *b)
{
	const struct kymo_source_line *x = a, *y = b;
	int order;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	order = strcmp(x->file, y->file);
	return order;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* What the row says, where a statement begins. */
static bool read_row(Dwarf_Line *from, struct kymo_source_line *ret)
{
	Dwarf_Addr address;
	bool is_end, is_statement;
	int number;

	if (!from || dwarf_lineaddr(from, &address) || dwarf_lineno(from, &number) || number <= 0 ||
	    dwarf_lineendsequence(from, &is_end) || is_end || dwarf_linebeginstatement(from, &is_statement) ||
	    !is_statement)
		return false;
	*ret = (struct kymo_source_line){ .vaddr = address, .line = (unsigned int)number };
	ret->file = dwarf_linesrc(from, NULL, NULL);
	return ret->file;
}

static const char *name_or(const char *name, const char *other)
{
	return name ? name : other;
}

/* Say what function and inlined instance a row is in. */
static void place_row(struct kymo_debug *debug, struct sym_scopes *scopes, struct line_row *row)
{
	const size_t inlined = sym_scopes_inlined(scopes);

	row->line.function = name_or(sym_scope_name(debug, scopes, 0), "a function without a name");
	row->line.entry = scopes->entry;
	row->line.inlined = inlined ? name_or(sym_scope_name(debug, scopes, inlined), "an inlined function") : NULL;
	row->instance = scopes->dies[inlined].addr;
	row->is_before = row->line.vaddr < scopes->entry;
}

static bool find_scopes(struct gathering *gathering, uint64_t vaddr)
{
	if (gathering->has_scopes && sym_scopes_move(&gathering->scopes, vaddr))
		return true;
	gathering->has_scopes = sym_scopes_find(gathering->debug, vaddr, &gathering->scopes);
	return gathering->has_scopes;
}

/* A line table has one text for all rows of a file, so most rows have that of the row before. */
static void add_line(struct gathering *gathering, const struct sym_unit *unit, const struct kymo_source_line *line)
{
	struct line_row row = { .line = *line };

	if (gathering->seen != line->file)
		gathering->path = sym_unit_path(gathering->debug, unit, line->file);
	gathering->seen = line->file;
	row.line.file = gathering->path;
	if (find_scopes(gathering, line->vaddr))
		place_row(gathering->debug, &gathering->scopes, &row);
	if (gathering->rows.n < ROWS_MAX && !kymo_vec_push(&gathering->rows, row))
		gathering->debug->is_out_of_memory = true;
}

/* ---- of a file ------------------------------------------------------------------------------- */

static void gather_unit(struct gathering *gathering, const struct sym_unit *unit)
{
	Dwarf_Die die = unit->skeleton;
	struct kymo_source_line line;
	Dwarf_Lines *lines;
	size_t n;

	if (dwarf_getsrclines(&die, &lines, &n))
		return;
	for (size_t i = 0; i < n && !gathering->debug->is_out_of_memory; i++) {
		if (!read_row(dwarf_onesrcline(lines, i), &line) || line.line < gathering->wanted ||
		    (gathering->best && line.line > gathering->best) ||
		    !sym_unit_file_is(gathering->debug, unit, line.file, gathering->file))
			continue;
		if (line.line != gathering->best)
			gathering->rows.n = 0;
		gathering->best = line.line;
		add_line(gathering, unit, &line);
	}
}

/* The first row of each instance, into what lives on. */
static void keep_first(struct gathering *gathering, const struct kymo_source_line **ret, size_t *n_ret)
{
	struct kymo_source_line *kept = sym_debug_alloc(gathering->debug, gathering->rows.n * sizeof(*kept) + 1);
	size_t n = 0;

	*ret = kept;
	*n_ret = 0;
	if (!kept)
		return;
	if (gathering->rows.n)
		qsort(gathering->rows.items, gathering->rows.n, sizeof(struct line_row), by_instance);
	for (size_t i = 0; i < gathering->rows.n; i++)
		if (!i || !gathering->rows.items[i].instance ||
		    gathering->rows.items[i].instance != gathering->rows.items[i - 1].instance)
			kept[n++] = gathering->rows.items[i].line;
	qsort(kept, n, sizeof(*kept), by_address);
	for (size_t i = 0; i < n; i++)
		if (!i || kept[i].vaddr != kept[*n_ret - 1].vaddr)
			kept[(*n_ret)++] = kept[i];
}

struct kymo_error *kymo_debug_lines(struct kymo_debug *debug, const char *file, unsigned int line,
				    const struct kymo_source_line **ret, size_t *n_ret)
{
	struct gathering gathering = { .debug = debug, .file = file, .wanted = line };
	bool is_known = false;

	for (size_t i = 0; i < debug->units.n; i++)
		if (sym_unit_has_file(debug, &debug->units.items[i], file)) {
			is_known = true;
			gather_unit(&gathering, &debug->units.items[i]);
		}
	keep_first(&gathering, ret, n_ret);
	kymo_vec_deinit(&gathering.rows);
	if (!is_known)
		return sym_no_file(debug, file);
	return sym_debug_end(debug);
}

/* ---- files with code ------------------------------------------------------------------------- */

struct sources {
	struct kymo_debug *debug;
	const char *file;
	KYMO_VEC(const char *) paths;
};

static void add_source(struct sources *sources, const char *path)
{
	for (size_t i = 0; i < sources->paths.n; i++)
		if (!strcmp(sources->paths.items[i], path))
			return;
	if (!kymo_vec_push(&sources->paths, path))
		sources->debug->is_out_of_memory = true;
}

/* Most rows are of the file of the row before. */
static void add_sources_of(struct sources *sources, const struct sym_unit *unit)
{
	Dwarf_Die die = unit->skeleton;
	struct kymo_source_line line;
	const char *seen = NULL;
	Dwarf_Lines *lines;
	size_t n;

	if (dwarf_getsrclines(&die, &lines, &n))
		return;
	for (size_t i = 0; i < n && !sources->debug->is_out_of_memory; i++) {
		if (!read_row(dwarf_onesrcline(lines, i), &line) || line.file == seen)
			continue;
		seen = line.file;
		if (sym_unit_file_is(sources->debug, unit, seen, sources->file))
			add_source(sources, sym_unit_path(sources->debug, unit, seen));
	}
}

struct kymo_error *kymo_debug_sources(struct kymo_debug *debug, const char *file, const char *const **ret,
				      size_t *n_ret)
{
	struct sources sources = { .debug = debug, .file = file };
	bool is_known = false;

	for (size_t i = 0; i < debug->units.n; i++)
		if (sym_unit_has_file(debug, &debug->units.items[i], file)) {
			is_known = true;
			add_sources_of(&sources, &debug->units.items[i]);
		}
	*n_ret = sources.paths.n;
	*ret = sym_debug_copy(debug, sources.paths.items, sources.paths.n, sizeof(*sources.paths.items));
	kymo_vec_deinit(&sources.paths);
	if (!is_known)
		return sym_no_file(debug, file);
	return sym_debug_end(debug);
}

/* ---- of a function --------------------------------------------------------------------------- */

static bool are_same_lines(const struct kymo_source_line *a, const struct kymo_source_line *b)
{
	return a->vaddr == b->vaddr && a->line == b->line && !strcmp(a->file, b->file);
}

static void gather_function(struct gathering *gathering, Dwarf_Lines *lines, size_t n)
{
	const struct sym_unit *unit = gathering->scopes.unit;
	struct kymo_source_line line;

	for (size_t i = 0; i < n && !gathering->debug->is_out_of_memory; i++) {
		if (!read_row(dwarf_onesrcline(lines, i), &line) || !sym_scopes_move(&gathering->scopes, line.vaddr))
			continue;
		gathering->has_scopes = true;
		add_line(gathering, unit, &line);
	}
}

static void keep_all(struct gathering *gathering, const struct kymo_source_line **ret, size_t *n_ret)
{
	struct kymo_source_line *kept = sym_debug_alloc(gathering->debug, gathering->rows.n * sizeof(*kept) + 1);

	*ret = kept;
	*n_ret = 0;
	if (!kept)
		return;
	for (size_t i = 0; i < gathering->rows.n; i++)
		kept[i] = gathering->rows.items[i].line;
	qsort(kept, gathering->rows.n, sizeof(*kept), by_address);
	for (size_t i = 0; i < gathering->rows.n; i++)
		if (!i || !are_same_lines(&kept[i], &kept[*n_ret - 1]))
			kept[(*n_ret)++] = kept[i];
}

struct kymo_error *kymo_debug_function_lines(struct kymo_debug *debug, uint64_t vaddr,
					     const struct kymo_source_line **ret, size_t *n_ret)
{
	struct gathering gathering = { .debug = debug };
	Dwarf_Lines *lines;
	Dwarf_Die die;
	size_t n;

	if (!sym_scopes_find(debug, vaddr, &gathering.scopes))
		return sym_no_function(debug, vaddr);
	die = gathering.scopes.unit->skeleton;
	if (!dwarf_getsrclines(&die, &lines, &n))
		gather_function(&gathering, lines, n);
	keep_all(&gathering, ret, n_ret);
	kymo_vec_deinit(&gathering.rows);
	return sym_debug_end(debug);
}

/* ---- of an address --------------------------------------------------------------------------- */

bool kymo_debug_line_of(struct kymo_debug *debug, uint64_t vaddr, struct kymo_source_line *ret)
{
	const ptrdiff_t unit = sym_unit_at(debug, vaddr);
	struct line_row row = { .instance = NULL };
	struct sym_scopes scopes;
	Dwarf_Line *line;
	Dwarf_Die die;
	int number;

	if (unit < 0)
		return false;
	die = debug->units.items[unit].skeleton;
	line = dwarf_getsrc_die(&die, vaddr);
	if (!line || dwarf_lineno(line, &number) || number <= 0)
		return false;
	row.line = (struct kymo_source_line){ .vaddr = vaddr, .line = (unsigned int)number };
	row.line.file = dwarf_linesrc(line, NULL, NULL);
	if (!row.line.file)
		return false;
	if (sym_scopes_find(debug, vaddr, &scopes))
		place_row(debug, &scopes, &row);
	*ret = row.line;
	return true;
}
