/*
 * What the tests of this room share: assembly for files with notes, and looking at what was read from them.
 */
#ifndef KYMO_TEST_MARKER_MARKED_H
#define KYMO_TEST_MARKER_MARKED_H

#include "../sym/testing.h"
#include "marker/list.h"

#include "marker/marker.h"
#include "sym/notes.h"
#include "sym/open.h"

/*
 * kymo NAME, TYPE, CODE, TARGET, THIRD, TYPES, FORMAT: a note of kymo's in marked.c, line 7, provider "app".
 * NAME_FORMAT and the like are labels of strings. sdt NAME, PLACE, SEMAPHORE, ARGUMENTS: one of SystemTap's, of the
 * same provider.
 */
static const char macros[] = ".macro note owner, type\n"
			     "	.balign 4\n"
			     "	.4byte 2f - 1f, 4f - 3f, \\type\n"
			     "1:	.asciz \"\\owner\"\n"
			     "2:	.balign 4\n"
			     "3:\n"
			     ".endm\n"
			     ".macro kymo name, type, code, target, third, types, format\n"
			     "	.pushsection .note.kymo, \"a\", @note\n"
			     "	note kymo, \\type\n"
			     "	.4byte \\code\n"
			     "	.4byte \\target\n"
			     "	.4byte \\third\n"
			     "	.4byte \\types\n"
			     "	.4byte 5f - .\n"
			     "	.4byte 6f - .\n"
			     "	.4byte 7f - .\n"
			     "	.4byte 7\n"
			     "	.4byte 8f - .\n"
			     "4:	.balign 4\n"
			     "	.popsection\n"
			     "	.pushsection .rodata\n"
			     "5:	.asciz \"\\name\"\n"
			     "6:	.asciz \"\\format\"\n"
			     "7:	.asciz \"marked.c\"\n"
			     "8:	.asciz \"app\"\n"
			     "	.popsection\n"
			     ".endm\n"
			     ".macro sdt name, place, semaphore, arguments\n"
			     "	.pushsection .note.stapsdt, \"\", @note\n"
			     "	note stapsdt, 3\n"
			     "	.8byte \\place, _.stapsdt.base, \\semaphore\n"
			     "	.asciz \"app\"\n"
			     "	.asciz \"\\name\"\n"
			     "	.asciz \"\\arguments\"\n"
			     "4:	.balign 4\n"
			     "	.popsection\n"
			     ".endm\n"
			     ".macro five\n"
			     "	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
			     ".endm\n"
			     "	.pushsection .stapsdt.base, \"a\"\n"
			     "_.stapsdt.base: .space 1\n"
			     "	.popsection\n";

/* Assemble `code`, after the macros, to a shared object of that name. */
static inline void assemble(const char *name, const char *code)
{
	size_t size = sizeof(macros) + strlen(code);
	char *text = malloc(size), file[64];

	assert_non_null(text);
	snprintf(text, size, "%s%s", macros, code);
	snprintf(file, sizeof(file), "%s.s", name);
	write_file(file, text);
	free(text);
	run("gcc -nostdlib -shared -Wl,--build-id=none %s -o %s", file, name);
}

/* The directory, and in it the file that most tests read. For the setup of a group. */
static inline int build_base(void **state, const char *code)
{
	if (make_directory(state))
		return -1;
	assemble("base", code);
	return 0;
}

static inline struct kymo_marker_list *markers_of(struct kymo_module *module)
{
	struct kymo_marker_list *list = NULL;

	succeeds(kymo_markers_create(module, &list));
	return list;
}

/* The list of a file in the directory; the module is closed already. */
static inline struct kymo_marker_list *markers_in(const char *name)
{
	struct kymo_module *module = open_module(in_directory(name));
	struct kymo_marker_list *list = markers_of(module);

	kymo_module_close(module);
	return list;
}

static inline const struct kymo_marker *find_marker(const struct kymo_marker_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (!strcmp(list->items[i].name, name))
			return &list->items[i];
	fail_msg("no marker is called %s", name);
	return NULL;
}

/* "fd:s32 path:string" */
static inline const char *fields_text(const struct kymo_marker *marker)
{
	static char text[1024];
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < marker->n_fields; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s:%s", i ? " " : "", marker->fields[i].name,
				      kymo_type_name(marker->fields[i].type));
	return text;
}

/* The vaddr of a symbol of the file. */
static inline uint64_t address_of(const char *file, const char *symbol)
{
	char format[80], line[300];
	unsigned long long vaddr = 0;
	FILE *lines = lines_of("nm %s", file);

	snprintf(format, sizeof(format), " %%llx %%*c %s%%n", symbol);
	while (fgets(line, sizeof(line), lines)) {
		int end = 0;

		if (sscanf(line, format, &vaddr, &end) == 1 && end && line[end] == '\n')
			break;
		vaddr = 0;
	}
	pclose(lines);
	assert_true(vaddr != 0);
	return vaddr;
}

/* What the bytes of a file give as a list of markers: an error, or NULL. Notes of segments are looked at when it is
 * opened, too. */
static inline struct kymo_error *read_markers(const uint8_t *bytes, size_t size)
{
	struct kymo_marker_list *list = NULL;
	struct kymo_module *module = NULL;
	struct kymo_error *error;

	error = open_bytes(bytes, size, &module);
	if (!error)
		error = kymo_markers_create(module, &list);
	if (!error)
		kymo_markers_destroy(list);
	kymo_module_close(module);
	return error;
}

/* Where in the file note `i` of that owner has its descriptor. */
static inline size_t descriptor_of(const uint8_t *bytes, size_t size, const char *owner, size_t i)
{
	const struct kymo_note *notes;
	struct kymo_module *module = NULL;
	size_t n, at = 0;

	succeeds(open_bytes(bytes, size, &module));
	succeeds(kymo_module_notes(module, &notes, &n));
	for (size_t j = 0; j < n; j++)
		if (!strcmp(notes[j].owner, owner) && !i--) {
			at = notes[j].offset + 12 + ((strlen(owner) + 1 + 3) & ~3ul);
			break;
		}
	kymo_module_close(module);
	assert_true(at != 0);
	return at;
}

#endif
