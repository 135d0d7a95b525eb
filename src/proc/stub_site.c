#include "proc/stub_site.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/page.h"
#include "proc/members.h"
#include "proc/memory.h"
#include "proc/state.h"
#include "procfs/maps.h"

#define TEXT_MAX (4u << 20)
#define MAX_HEADERS 32

const uint8_t kymo_start_zeros[KYMO_START_STUB];

const struct kymo_map *kymo_start_text(const struct kymo_maps *maps, uint64_t linker)
{
	const struct kymo_map *first = linker ? kymo_maps_at(maps, linker) : NULL, *text = NULL;

	if (!first || first->path[0] != '/' || !first->inode)
		return NULL;
	for (const struct kymo_map *map = first; map < maps->items + maps->n && map->inode == first->inode; map++) {
		if (!map->executable || map->major != first->major || map->minor != first->minor)
			continue;
		if (text)
			return NULL;
		text = map;
	}
	return text && text->readable && !text->writable && !text->shared ? text : NULL;
}

/* Where the bytes of its segment end: there are none of the linker's behind, up to the end of the mapping. 0: that does
 * not show. `entry_ret` is where the linker begins. */
static uint64_t end_of_segment(struct kymo_process *process, const struct kymo_map *text, uint64_t *entry_ret)
{
	const uint64_t linker = process->startup.linker;
	Elf64_Phdr headers[MAX_HEADERS];
	Elf64_Ehdr header;

	if (kymo_process_read(process, linker, &header, sizeof(header)) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != KYMO_START_MACHINE ||
	    header.e_phnum > MAX_HEADERS || header.e_phentsize != sizeof(headers[0]) ||
	    kymo_process_read(process, linker + header.e_phoff, headers, header.e_phnum * sizeof(headers[0])))
		return 0;
	*entry_ret = linker + header.e_entry;
	for (size_t i = 0; i < header.e_phnum; i++) {
		const uint64_t start = linker + headers[i].p_vaddr, end = start + headers[i].p_filesz;

		if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_X &&
		    headers[i].p_filesz == headers[i].p_memsz && start >= text->start && start < end &&
		    end <= text->end && text->end - end < KYMO_PAGE_SIZE)
			return end;
	}
	return 0;
}

bool kymo_start_is_within(const struct kymo_map *text, uint64_t site, uint64_t stub)
{
	return site >= text->start + KYMO_START_BEFORE && site + KYMO_START_CODE < text->end && stub > site &&
	       stub <= text->end - KYMO_START_STUB && stub % KYMO_START_ALIGNMENT == 0 &&
	       kymo_page_down(site) == kymo_page_down(site + KYMO_START_JUMP - 1) &&
	       kymo_page_down(stub) == kymo_page_down(stub + KYMO_START_STUB - 1);
}

static bool search_text(struct kymo_process *process, const struct kymo_map *text)
{
	uint64_t entry = 0, end = end_of_segment(process, text, &entry);
	const uint64_t size = end - text->start,
		       stub = (end + KYMO_START_ALIGNMENT - 1) / KYMO_START_ALIGNMENT * KYMO_START_ALIGNMENT;
	kymo_cleanup_free uint8_t *bytes = end && size <= TEXT_MAX ? malloc(size) : NULL;
	struct kymo_tree *tree = process->tree;
	int64_t site;

	if (!bytes || kymo_process_read(process, text->start, bytes, size))
		return false;
	site = kymo_start_find_site(bytes, size);
	if (site < 0 || !kymo_start_is_within(text, text->start + (uint64_t)site, stub))
		return false;
	tree->start.text = kymo_map_part(text);
	tree->start.entry = entry - text->start;
	tree->start.site = (uint64_t)site;
	tree->start.stub = stub - text->start;
	return true;
}

bool kymo_start_find(struct kymo_process *process, const struct kymo_map *text, uint64_t *site_ret, uint64_t *stub_ret)
{
	const struct kymo_tree *tree = process->tree;
	uint8_t code[KYMO_START_CODE], padding[KYMO_START_STUB];
	uint64_t site, stub;

	/* In the text as it is now, whatever the last process had there. */
	if (!kymo_map_is_part(text, &tree->start.text) && !search_text(process, text))
		return false;
	site = text->start + tree->start.site;
	stub = text->start + tree->start.stub;
	if (process->threads.items[0].registers.rip != text->start + tree->start.entry ||
	    kymo_process_read(process, site - KYMO_START_BEFORE, code, sizeof(code)) || !kymo_start_is_site(code) ||
	    kymo_process_read(process, stub, padding, sizeof(padding)) ||
	    memcmp(padding, kymo_start_zeros, sizeof(padding)) != 0)
		return false;
	*site_ret = site;
	*stub_ret = stub;
	return true;
}
