#include "probe/install/changed_calls.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "arch/exits.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "probe/code/modules.h"
#include "probe/coexist/text.h"
#include "probe/probes.h"
#include "proc/memory.h"
#include "procfs/maps.h"
#include "sym/module.h"
#include "sym/sym.h"

/* In the page map. */
#define OF_FILE (UINT64_C(1) << 61)
#define SWAPPED (UINT64_C(1) << 62)
#define PRESENT (UINT64_C(1) << 63)
#define AT_ONCE 512u /* pages */

static const struct probe_module *module_at(const struct kymo_probes *probes, uint64_t address)
{
	for (size_t i = 0; i < probes->modules.n; i++) {
		const struct probe_module *module = &probes->modules.items[i];

		if (!module->is_gone && !module->jit && address >= module->low && address < module->high)
			return module;
	}
	return NULL;
}

static bool is_as_in_file(const struct probe_module *module, uint64_t vaddr, const uint8_t *bytes)
{
	const struct kymo_section *sections;
	size_t n;

	sections = kymo_module_sections(module->module, &n);
	for (size_t i = 0; i < n; i++)
		if (sections[i].bytes && vaddr >= sections[i].vaddr &&
		    vaddr + KYMO_CALL_SIZE <= sections[i].vaddr + sections[i].size)
			return !memcmp(sections[i].bytes + (vaddr - sections[i].vaddr), bytes, KYMO_CALL_SIZE);
	return false;
}

/* One page, with the first byte of the next one, which an instruction may end in. */
static bool has_changed(const struct kymo_probes *probes, const struct kymo_map *map, uint64_t page)
{
	uint8_t bytes[KYMO_PAGE_SIZE + KYMO_CALL_SIZE - 1];
	const size_t size = page + sizeof(bytes) <= map->end ? sizeof(bytes) : KYMO_PAGE_SIZE;
	const struct probe_module *module = module_at(probes, page);

	if (!module || kymo_process_read(probes->process, page, bytes, size))
		return true;
	for (size_t i = 0; (i = kymo_next_call(bytes, size, i)) < size; i++)
		if (!is_as_in_file(module, page + i - module->bias, bytes + i) &&
		    !probe_text_is(&probes->text, TEXT_LOCKED, page + i, KYMO_CALL_SIZE))
			return true;
	return false;
}

static bool has_changed_in(const struct kymo_probes *probes, const struct kymo_map *map, int pagemap)
{
	uint64_t entries[AT_ONCE];

	for (uint64_t at = map->start; at < map->end; at += AT_ONCE * KYMO_PAGE_SIZE) {
		const uint64_t left = (map->end - at) / KYMO_PAGE_SIZE;
		const size_t size = (left < AT_ONCE ? left : AT_ONCE) * sizeof(*entries);

		if (pread(pagemap, entries, size, (off_t)(at / KYMO_PAGE_SIZE * sizeof(*entries))) != (ssize_t)size)
			return true;
		for (size_t i = 0; i < size / sizeof(*entries); i++)
			if ((entries[i] & SWAPPED || (entries[i] & PRESENT && !(entries[i] & OF_FILE))) &&
			    has_changed(probes, map, at + i * KYMO_PAGE_SIZE))
				return true;
	}
	return false;
}

bool probes_has_changed_calls(const struct kymo_probes *probes, const struct kymo_maps *maps)
{
	kymo_cleanup_close int pagemap = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/pagemap", probes->pid);
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; i < maps->n; i++) {
		const struct kymo_map *map = &maps->items[i];

		if (map->executable && map->path[0] == '/' && probes_is_known(probes, map) &&
		    has_changed_in(probes, map, pagemap))
			return true;
	}
	return false;
}
