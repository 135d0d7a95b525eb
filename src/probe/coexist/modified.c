/*
 * Text that a third party has patched: a debugger's breakpoint, a uprobe of the kernel.
 *
 * It is found with the process stopped, when all that is about to be written is compared with what it was planned for.
 * Nothing is written then; planning begins again, and avoids those bytes. So a location there is left out, or is an
 * error if it was named exactly.
 */
#include "probe/coexist/modified.h"

#include "arch/uprobe.h"
#include "probe/code/modules.h"
#include "probe/coexist/bytes.h"
#include "probe/coexist/text.h"
#include "probe/offline/offline.h"
#include "probe/offline/offline_state.h"
#include "probe/probes.h"
#include "procfs/maps.h"
#include "sym/module.h"

#define BYTES_MAX 4096 /* more than that is a file that was changed as a whole */

static struct probe_modified *find_modified(const struct kymo_probes *probes, uint64_t address)
{
	for (size_t i = 0; i < probes->modified.n; i++)
		if (probes->modified.items[i].address == address)
			return &probes->modified.items[i];
	return NULL;
}

bool probes_note_modified(struct kymo_probes *probes, uint64_t address, const uint8_t *now, const uint8_t *want,
			  const uint8_t *file, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		struct probe_modified *known;

		/* The file's own bytes belong to no party: another recording has left that site meanwhile. */
		if (now[i] == want[i] || now[i] == file[i])
			continue;
		known = find_modified(probes, address + i);
		if (known)
			known->now = now[i];
		else if (probes->modified.n < BYTES_MAX &&
			 !kymo_vec_push(&probes->modified, (struct probe_modified){ address + i, now[i], file[i] }))
			return false;
	}
	return true;
}

bool probes_is_still_mapped(const struct kymo_probes *probes, const struct kymo_maps *maps, uint64_t address)
{
	const struct kymo_map *map = kymo_maps_at(maps, address);

	for (size_t i = 0; map && i < probes->modules.n; i++) {
		const struct probe_module *module = &probes->modules.items[i];

		if (!module->is_gone && address >= module->low && address < module->high &&
		    map->inode == module->inode && map->major == module->major && map->minor == module->minor)
			return true;
	}
	return false;
}

static bool keep_away(struct probe_text *text, uint64_t address, size_t size)
{
	return probe_text_mark(text, TEXT_MODIFIED, address, size, true) &&
	       probe_text_mark(text, TEXT_LOCKED, address, size, true) &&
	       probe_text_mark(text, TEXT_UNSTEADY, address, size, true);
}

bool probes_mark_modified(const struct kymo_probes *probes, const struct kymo_maps *maps,
			  const struct probe_bytes *bytes, struct probe_text *text)
{
	for (size_t i = 0; i < probes->modified.n; i++) {
		const struct probe_modified *modified = &probes->modified.items[i];
		uint8_t now;

		if (probe_text_is(text, TEXT_UNSTEADY, modified->address, 1) ||
		    !probes_is_still_mapped(probes, maps, modified->address) ||
		    !probe_bytes_at(bytes, modified->address, &now, 1) || now != modified->now)
			continue;
		if (!keep_away(text, modified->address, 1))
			return false;
	}
	return true;
}

static bool mark_in(const struct kymo_probes *probes, const struct probe_module *module, struct probe_text *text)
{
	const struct kymo_file_id id = { module->major, module->minor, module->inode };
	const struct kymo_offline *kernel = probes->wanted.options.kernel;
	uint64_t vaddr;

	for (size_t i = 0; i < kernel->sites.n; i++) {
		const struct kymo_offline_site *site = &kernel->sites.items[i];

		if (site->is_refused || !offline_is_file(&kernel->files.items[site->file], id) ||
		    kymo_module_offset_to_vaddr(module->module, site->offset, &vaddr))
			continue;
		if (!keep_away(text, module->bias + vaddr, site->length))
			return false;
	}
	return true;
}

bool probes_mark_kernel(const struct kymo_probes *probes, struct probe_text *text)
{
	for (size_t i = 0; probes->wanted.options.kernel && i < probes->modules.n; i++)
		if (!probes->modules.items[i].is_gone && !mark_in(probes, &probes->modules.items[i], text))
			return false;
	return true;
}

const char *probes_modified_reason(const struct kymo_probes *probes, uint64_t address)
{
	const struct probe_modified *modified = find_modified(probes, address);

	if (!modified)
		return "a probe of this recording is there that goes through the kernel";
	return kymo_uprobe_is_breakpoint(modified->now, modified->file) ? PROBE_HAS_BREAKPOINT : PROBE_IS_PATCHED;
}
