#include "gdb/libraries.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "gdb/thread.h"

enum { AUXV_MAX = 4096, HEADERS_MAX = 128, ENTRIES_MAX = 1024, LIBRARIES_MAX = 4096, SPACES_MAX = 64, PART = 64 };
enum { DOCUMENT_MAX = 1 << 20 };

static bool read_at(struct gdb_thread *thread, uint64_t address, void *ret, size_t size)
{
	return !kymo_engine_read(thread->engine, address, ret, size);
}

static bool find_headers(struct gdb_thread *thread, uint64_t *address, uint64_t *n)
{
	kymo_cleanup_free char *bytes = NULL;
	char path[64];
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/auxv", thread->tid);
	if (kymo_read_file(AT_FDCWD, path, AUXV_MAX, &bytes, &size))
		return false;
	*address = *n = 0;
	for (size_t at = 0; at + sizeof(Elf64_auxv_t) <= size; at += sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.a_type == AT_PHDR)
			*address = entry.a_un.a_val;
		else if (entry.a_type == AT_PHNUM)
			*n = entry.a_un.a_val;
	}
	return *address && *n;
}

/* Where the program's dynamic section is. */
static bool find_dynamic(struct gdb_thread *thread, uint64_t *ret)
{
	uint64_t address, n, base = 0, dynamic = 0;
	bool has_dynamic = false;

	if (!find_headers(thread, &address, &n))
		return false;
	for (uint64_t i = 0; i < n && i < HEADERS_MAX; i++) {
		Elf64_Phdr header;

		if (!read_at(thread, address + i * sizeof(header), &header, sizeof(header)))
			return false;
		if (header.p_type == PT_PHDR)
			base = address - header.p_vaddr;
		if (header.p_type == PT_DYNAMIC) {
			dynamic = header.p_vaddr;
			has_dynamic = true;
		}
	}
	*ret = base + dynamic;
	return has_dynamic;
}

/* Where the address of the linker's list is, and that address, 0: there is none yet. False: the program has no place
 * for one, and never will. */
static bool find_debug(struct gdb_thread *thread, uint64_t *place_ret, uint64_t *ret)
{
	uint64_t dynamic;

	if (!find_dynamic(thread, &dynamic))
		return false;
	for (size_t i = 0; i < ENTRIES_MAX; i++) {
		Elf64_Dyn entry;

		if (!read_at(thread, dynamic + i * sizeof(entry), &entry, sizeof(entry)) || entry.d_tag == DT_NULL)
			return false;
		if (entry.d_tag != DT_DEBUG)
			continue;
		*place_ret = dynamic + i * sizeof(entry) + offsetof(Elf64_Dyn, d_un);
		*ret = entry.d_un.d_ptr;
		return true;
	}
	return false;
}

/* Part by part, as it may lie at the end of what is mapped. */
static void read_library_name(struct gdb_thread *thread, uint64_t address, char name[PATH_MAX])
{
	size_t n = 0;

	while (n + PART < PATH_MAX) {
		const size_t part = PART - (address + n) % PART;

		if (!read_at(thread, address + n, name + n, part) || memchr(name + n, '\0', part))
			break;
		n += part;
	}
	name[PATH_MAX - 1] = '\0';
}

static void put_library(const struct link_map *map, uint64_t at, const char *name, uint64_t space,
			struct gdb_text *document)
{
	gdb_text_put(document, "<library name=\"");
	gdb_text_xml(document, name);
	gdb_text_format(document, "\" lm=\"0x%lx\" l_addr=\"0x%lx\" l_ld=\"0x%lx\" lmid=\"0x%lx\"/>", at, map->l_addr,
			(uint64_t)(uintptr_t)map->l_ld, space);
}

/* Of one namespace; the first library of the first one is the program. `left`: of all that may be told. */
static void list(struct gdb_thread *thread, uint64_t at, uint64_t space, bool skips_first, size_t *left,
		 struct gdb_text *document)
{
	struct link_map map;

	while (at && *left && document->n < DOCUMENT_MAX && read_at(thread, at, &map, sizeof(map))) {
		char name[PATH_MAX] = "";

		--*left;
		if (!skips_first)
			read_library_name(thread, (uint64_t)(uintptr_t)map.l_name, name);
		if (*name)
			put_library(&map, at, name, space, document);
		skips_first = false;
		at = (uint64_t)(uintptr_t)map.l_next;
	}
}

bool gdb_list_libraries(struct gdb_thread *thread, struct gdb_text *document)
{
	struct r_debug_extended debug = { .base.r_map = NULL };
	size_t left = LIBRARIES_MAX;
	bool is_first = true;
	uint64_t place, space;

	if (!find_debug(thread, &place, &space))
		return false;
	gdb_text_put(document, "<library-list-svr4 version=\"1.0\"");
	if (space && read_at(thread, space, &debug.base, sizeof(debug.base)) && debug.base.r_map)
		gdb_text_format(document, " main-lm=\"0x%lx\"", (uint64_t)(uintptr_t)debug.base.r_map);
	gdb_text_put(document, ">");
	for (size_t i = 0; space && i < SPACES_MAX; i++) {
		debug.r_next = NULL;
		if (!read_at(thread, space, &debug.base, sizeof(debug.base)))
			break;
		if (debug.base.r_version > 1 && !read_at(thread, space, &debug, sizeof(debug)))
			break;
		list(thread, (uint64_t)(uintptr_t)debug.base.r_map, space, is_first, &left, document);
		is_first = false;
		space = (uint64_t)(uintptr_t)debug.r_next;
	}
	gdb_text_put(document, "</library-list-svr4>");
	return true;
}

void gdb_tell_debug_address(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_thread *thread = gdb_memory_thread(gdb);
	uint64_t place, list;

	if (thread && find_debug(thread, &place, &list))
		gdb_text_format(reply, "%lx", place);
	else
		gdb_text_put(reply, "E01");
}
