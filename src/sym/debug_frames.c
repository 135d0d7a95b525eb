/*
 * The innermost function is at the line that the line table has for the address. Each outer one is at the line of the
 * call that was inlined, which the entry of the inlined function tells.
 */
#include "sym/debug_frames.h"

#include "sym/debug_die.h"
#include "sym/debug_typename.h"
#include "sym/debug_unit.h"

/* Where the source is. */
struct spot {
	const char *file;
	unsigned int line;
};

static struct spot line_in(const struct sym_unit *unit, uint64_t vaddr)
{
	struct spot spot = { .file = NULL };
	Dwarf_Die die = unit->skeleton;
	Dwarf_Line *line;
	int number;

	line = dwarf_getsrc_die(&die, vaddr);
	if (line && !dwarf_lineno(line, &number) && number > 0)
		spot = (struct spot){ dwarf_linesrc(line, NULL, NULL), (unsigned int)number };
	return spot;
}

/* Of the entry alone: what it stands for is another place. */
static bool read_own(Dwarf_Die *die, unsigned int name, uint64_t *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attribute) || dwarf_formudata(&attribute, &value))
		return false;
	*ret = value;
	return true;
}

static struct spot call_of(const struct sym_unit *unit, Dwarf_Die *inlined)
{
	Dwarf_Die die = unit->die;
	Dwarf_Files *files;
	uint64_t file, line;
	size_t n;

	if (!read_own(inlined, DW_AT_call_file, &file) || !read_own(inlined, DW_AT_call_line, &line) || !line ||
	    line > INT32_MAX || dwarf_getsrcfiles(&die, &files, &n) || file >= n)
		return (struct spot){ .file = NULL };
	return (struct spot){ dwarf_filesrc(files, file, NULL, NULL), (unsigned int)line };
}

static const char *name_of(struct kymo_debug *debug, Dwarf_Die *die)
{
	const char *name = sym_die_string(debug, die, DW_AT_linkage_name);

	if (!name)
		name = sym_die_string(debug, die, DW_AT_MIPS_linkage_name);
	return name ? name : sym_qualified_name(debug, die);
}

/* No function is described there, but there may be a line. */
static size_t line_alone(struct kymo_debug *debug, uint64_t vaddr, struct kymo_source_frame *frame)
{
	const ptrdiff_t unit = sym_unit_at(debug, vaddr);
	struct spot spot = { .file = NULL };

	if (unit >= 0)
		spot = line_in(&debug->units.items[unit], vaddr);
	*frame = (struct kymo_source_frame){ .file = spot.file, .line = spot.line };
	return spot.file ? 1 : 0;
}

static size_t find_frames(struct kymo_debug *debug, uint64_t vaddr,
			  struct kymo_source_frame frames[KYMO_SOURCE_FRAMES_MAX])
{
	struct sym_scopes scopes;
	struct spot spot;
	bool is_entry;
	size_t n = 0;

	_Static_assert(SYM_SCOPES_MAX <= KYMO_SOURCE_FRAMES_MAX, "each scope has a frame");
	if (!sym_scopes_find(debug, vaddr, &scopes))
		return line_alone(debug, vaddr, frames);
	is_entry = scopes.has_entry && scopes.entry == vaddr;
	spot = line_in(scopes.unit, vaddr);
	for (size_t i = scopes.n; i-- > 0;) {
		Dwarf_Die *die = &scopes.dies[i];

		if (i && !sym_is_inlined(die))
			continue;
		if (!i || !is_entry)
			frames[n++] = (struct kymo_source_frame){ .function = name_of(debug, die),
								  .file = spot.file,
								  .line = spot.file ? spot.line : 0,
								  .is_inlined = i };
		if (i)
			spot = call_of(scopes.unit, die);
	}
	return n;
}

size_t kymo_debug_frames(struct kymo_debug *debug, uint64_t vaddr,
			 struct kymo_source_frame frames[KYMO_SOURCE_FRAMES_MAX])
{
	const size_t n = find_frames(debug, vaddr, frames);
	const bool is_whole = !debug->is_out_of_memory && debug->budget;

	kymo_error_destroy(sym_debug_end(debug));
	return is_whole ? n : 0;
}
