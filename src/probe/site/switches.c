/*
 * Turning markers on and off, from outside.
 *
 * A marker is on while a party wants it: the process itself (kymo_marker_gate.inside, or what an SDT probe's semaphore
 * counts besides), or recordings. Each of those has a bit of the gate's `outside`; of a semaphore it adds 1. For kymo's
 * own markers the text says so, too: the NOP is a jump to the marker's cold block. Those bytes are the same for all
 * parties, so no recording owns them. All of this happens with the threads stopped. Pads are in the text before markers
 * are turned on, and until they are off.
 *
 *	gate	on: journal entry (with the pads' journal, last), with the bit; the bit; the text, if it is the NOP.
 *		off: the bit; the text, if no party wants the marker on any more. Each step can be repeated
 *	counter	on: state UP with the counter's value; counter + 1; state IN. off: state DOWN with the value;
 *		counter - 1; state NONE. A recorder that dies between two steps leaves an entry from which the next
 *		recorder goes on. In UP it has counted if the value has changed; in DOWN it has not if it is the same.
 *		A third party that counts in between can make this wrong by one. Then the program computes a probe's
 *		arguments that nothing reads
 *
 * A recording chooses a bit that no journal in the process has. If two recordings choose the same one at once, they
 * notice it by the other journal's generation, as they notice all else.
 *
 * libkymo-marker changes the same text while threads run. It sets `busy` before it looks at `outside` and until it is
 * done: a stopped process in which that is set is resumed, and looked at again. A recorder that leaves and finds it
 * busy for seconds (the process does not get a processor) clears the bit alone: the library looks at `outside` once
 * more when it is done, and does what is left to do with the text. The text may be left as `test $imm32,%eax`, one of
 * its steps, only by a process that died; it is off as the NOP is.
 *
 * A kernel's uprobe may have come to the NOP's first byte meanwhile. The kernel restores the file's byte there, so the
 * other four are set to the NOP's. If it has replaced the whole NOP by a call it restores all five.
 *
 * A forked child has text, counters and words of its own, and its parent's journal.
 *
 * A jump that crosses a page takes three writes. Each leaves the jump, or an instruction of five bytes that does
 * nothing.
 */
#include "probe/site/switches.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "arch/marker.h"
#include "arch/trap.h"
#include "arch/uprobe.h"
#include "base/page.h"
#include "marker/list.h"
#include "marker/marker.h"
#include "marker/match.h"
#include "probe/code/code.h"
#include "probe/code/modules.h"
#include "probe/coexist/bytes.h"
#include "probe/coexist/modified.h"
#include "probe/coexist/peers.h"
#include "probe/memory/sessions.h"
#include "probe/memory/shared.h"
#include "probe/memory/trust.h"
#include "probe/probes.h"
#include "probe/site/sites.h"
#include "probe/spec/spec.h"
#include "proc/memory.h"
#include "procfs/maps.h"
#include "sym/module.h"
#include "sym/open.h"

#define SIZE KYMO_JUMP_SIZE
#define BUSY_AT (-1) /* of `busy`, from `outside` */
#define INSIDE_AT (-2)

/* ---- which there are ------------------------------------------------------------------------- */

static struct kymo_error *add_switch(struct kymo_probes *probes, const struct probe_switch *fresh)
{
	for (size_t i = 0; i < probes->switches.n; i++) {
		const struct probe_switch *known = &probes->switches.items[i];

		if (known->counter == fresh->counter && known->module == fresh->module &&
		    (!fresh->target || known->address == fresh->address))
			return NULL;
	}
	return kymo_vec_push(&probes->switches, *fresh) ? NULL : &kymo_error_no_memory;
}

struct kymo_error *probes_add_switch(struct kymo_probes *probes, size_t module, const struct kymo_marker_switch *wanted)
{
	uint64_t bias = probes->modules.items[module].bias;
	struct probe_switch fresh = {
		.module = module,
		.address = bias + (wanted->site ? wanted->site : wanted->gate),
		.target = wanted->site ? bias + wanted->cold : 0,
		.counter = bias + wanted->gate + 2,
		.is_gate = true,
		.provider = wanted->provider,
		.name = wanted->name,
		.original = kymo_marker_nop[0],
	};

	return add_switch(probes, &fresh);
}

struct kymo_error *probes_add_semaphore(struct kymo_probes *probes, size_t module, const struct kymo_marker *marker)
{
	uint64_t bias = probes->modules.items[module].bias;
	struct probe_switch fresh = {
		.module = module,
		.address = bias + marker->location,
		.counter = bias + marker->semaphore,
		.provider = marker->provider,
		.name = marker->name,
	};
	struct kymo_code *code;
	struct kymo_error *error = probes_code(probes, module, &code);

	if (!error && !kymo_code_bytes(code, marker->location, &fresh.original, 1))
		error = kymo_error_create(KYMO_ERROR_BAD_DATA, "%s has no code at the location of %s:%s",
					  probes->modules.items[module].path, marker->provider, marker->name);
	return error ? error : add_switch(probes, &fresh);
}

static bool is_to_install(const struct probe_switch *item)
{
	return !item->is_installed && !item->is_retired && !item->is_refused;
}

/* Whether the present installation is about the switch. */
static bool is_next(const struct probe_switch *item)
{
	return is_to_install(item) && item->is_ready;
}

/* A program that is being launched maps the whole of a library as its text first, and then its data over it. */
static bool is_there(const struct kymo_probes *probes, const struct probe_switch *item, const struct kymo_maps *maps)
{
	const struct kymo_map *map = kymo_maps_at(maps, item->counter);

	return map && (map->writable || !probes->is_starting);
}

static bool has_installed(const struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->switches.n; i++)
		if (probes->switches.items[i].has_entry && probes->switches.items[i].is_gate)
			return true;
	return false;
}

bool probes_prepare_switches(struct kymo_probes *probes, const struct probe_peers *peers, const struct kymo_maps *maps)
{
	uint16_t taken = 0;

	for (size_t i = 0; i < probes->switches.n; i++)
		probes->switches.items[i].is_ready = is_there(probes, &probes->switches.items[i], maps);
	if (has_installed(probes))
		return true;
	for (size_t i = 0; i < peers->n_entries; i++)
		if (peers->entries[i].site->flags & KYMO_WIRE_GATE)
			taken |= (uint16_t)peers->entries[i].site->state;
	for (unsigned int bit = 0; bit < 16; bit++)
		if (!(taken & 1u << bit)) {
			probes->gate_bit = (uint16_t)(1u << bit);
			return true;
		}
	return !probes->switches.n;
}

size_t probes_pending_switches(const struct kymo_probes *probes)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->switches.n; i++)
		n += is_to_install(&probes->switches.items[i]);
	return n;
}

/* ---- journal --------------------------------------------------------------------------------- */

static int set_state(struct kymo_probes *probes, uint64_t entry, enum kymo_wire_count count, uint16_t before)
{
	uint64_t state = (uint64_t)count | (uint64_t)before << 16;

	return kymo_process_write(probes->process, kymo_shared_word(&probes->shared, entry), &state, sizeof(state));
}

void probes_retire_switches(struct kymo_probes *probes, size_t module, bool is_gone)
{
	for (size_t i = 0; i < probes->switches.n; i++) {
		struct probe_switch *item = &probes->switches.items[i];

		if (item->module != module || item->is_retired == is_gone)
			continue;
		if (item->is_installed && !item->is_gate) /* the counter went with the mapping */
			set_state(probes, item->entry, KYMO_WIRE_COUNT_NONE, 0);
		item->is_installed = false;
		item->is_retired = is_gone;
	}
}

size_t probes_journal_switches(struct kymo_probes *probes, uint64_t first, struct kymo_wire_site *out)
{
	size_t n = 0;

	for (size_t i = 0; i < probes->switches.n; i++) {
		struct probe_switch *item = &probes->switches.items[i];
		struct kymo_wire_site *entry = &out[n];

		if (!is_next(item) || item->has_entry)
			continue;
		memset(entry, 0, sizeof(*entry));
		entry->address = entry->link = item->address;
		entry->next = item->counter;
		entry->flags = (uint8_t)(KYMO_WIRE_SWITCH | (item->is_gate ? KYMO_WIRE_GATE : 0));
		entry->inode = probes->modules.items[item->module].inode;
		entry->original[0] = item->original;
		entry->state = item->is_gate ? probes->gate_bit : 0;
		if (item->target) {
			memcpy(entry->original, kymo_marker_nop, SIZE);
			kymo_encode_jump(item->address, item->target, entry->patched);
			entry->patch_size = entry->window = entry->lock_size = SIZE;
		}
		snprintf(entry->name, sizeof(entry->name), "(marker)");
		item->entry = first + n++;
	}
	return n;
}

/* ---- text ------------------------------------------------------------------------------------ */

enum text_state { TEXT_OFF, TEXT_ON, TEXT_UNKNOWN };

static enum text_state text_state(const uint8_t now[SIZE], const uint8_t jump[SIZE])
{
	return !memcmp(now, jump, SIZE)                                               ? TEXT_ON
	       : !memcmp(now, kymo_marker_nop, SIZE) || now[0] == KYMO_MARKER_BETWEEN ? TEXT_OFF
										      : TEXT_UNKNOWN;
}

/* From one instruction of five bytes to another, `now` to `then`. */
static int write_text(struct kymo_process *process, uint64_t address, const uint8_t now[SIZE], const uint8_t then[SIZE])
{
	uint8_t between = KYMO_MARKER_BETWEEN;
	int err = 0;

	if (!memcmp(now, then, SIZE))
		return 0;
	if (kymo_page_has(address, SIZE))
		return kymo_process_write(process, address, then, SIZE);
	if (now[0] != KYMO_MARKER_BETWEEN)
		err = kymo_process_write(process, address, &between, 1);
	if (!err)
		err = kymo_process_write(process, address + 1, then + 1, SIZE - 1);
	return err ? err : kymo_process_write(process, address, then, 1);
}

/* ---- on -------------------------------------------------------------------------------------- */

bool probes_are_switches_busy(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->switches.n; i++) {
		const struct probe_switch *item = &probes->switches.items[i];
		uint8_t busy;

		if (is_next(item) && item->is_gate &&
		    !kymo_process_read(probes->process, item->counter + (uint64_t)BUSY_AT, &busy, 1) && busy)
			return true;
	}
	return false;
}

bool probes_copy_switch(const struct probe_switch *item, struct kymo_process *process, struct probe_bytes *ret)
{
	return probe_bytes_copy(ret, process, item->counter, sizeof(uint16_t)) &&
	       (!item->target || probe_bytes_copy(ret, process, item->address, SIZE));
}

struct kymo_error *probes_look_at_switch(const struct kymo_probes *probes, const struct probe_switch *item,
					 const struct probe_bytes *bytes, const char **why_ret)
{
	uint8_t now[SIZE] = { 0 }, jump[SIZE];
	uint16_t count;

	*why_ret = NULL;
	if (!probe_bytes_at(bytes, item->counter, &count, sizeof(count)))
		return kymo_error_create(KYMO_ERROR_GONE, "what turns a marker of %s on is not mapped any more",
					 probes->modules.items[item->module].path);
	if (item->is_gate && !item->has_entry && count & probes->gate_bit)
		*why_ret = "its gate counts recordings that kymo does not know of";
	else if (!item->is_gate && count == UINT16_MAX)
		*why_ret = "its counter has come to its end";
	else if (item->target &&
		 (kymo_encode_jump(item->address, item->target, jump) ||
		  !probe_bytes_at(bytes, item->address, now, SIZE) || text_state(now, jump) == TEXT_UNKNOWN))
		*why_ret =
			kymo_uprobe_is_breakpoint(now[0], kymo_marker_nop[0]) ? PROBE_HAS_BREAKPOINT : PROBE_IS_PATCHED;
	return NULL;
}

struct kymo_error *probes_check_switches(struct kymo_probes *probes, const struct probe_switch **corrupt_ret)
{
	struct kymo_error *error = NULL;

	*corrupt_ret = NULL;
	for (size_t i = 0; i < probes->switches.n && !error; i++) {
		struct probe_switch *item = &probes->switches.items[i];
		struct probe_bytes bytes = { .copies = { 0 } };

		if (!is_next(item))
			continue;
		error = probes_copy_switch(item, probes->process, &bytes)
				? probes_look_at_switch(probes, item, &bytes, &item->corrupt)
				: &kymo_error_no_memory;
		probe_bytes_deinit(&bytes);
		if (item->corrupt && !*corrupt_ret)
			*corrupt_ret = item;
	}
	return error;
}

static int count_up(struct kymo_probes *probes, const struct probe_switch *item)
{
	uint16_t count, more;
	int err = kymo_process_read(probes->process, item->counter, &count, sizeof(count));

	if (err)
		return err;
	more = (uint16_t)(item->is_gate ? count | probes->gate_bit : count + 1);
	if (!item->is_gate)
		err = set_state(probes, item->entry, KYMO_WIRE_COUNT_UP, count);
	if (!err)
		err = kymo_process_write(probes->process, item->counter, &more, sizeof(more));
	if (!err && !item->is_gate)
		err = set_state(probes, item->entry, KYMO_WIRE_COUNT_IN, 0);
	return err;
}

static int turn_on(struct kymo_probes *probes, struct probe_switch *item)
{
	uint8_t now[SIZE], jump[SIZE];
	int err = count_up(probes, item);

	item->has_entry = true;
	if (item->target && !err)
		err = kymo_process_read(probes->process, item->address, now, SIZE);
	if (item->target && !err)
		err = kymo_encode_jump(item->address, item->target, jump);
	if (item->target && !err)
		err = write_text(probes->process, item->address, now, jump);
	item->is_installed = !err;
	return err;
}

struct kymo_error *probes_turn_on(struct kymo_probes *probes)
{
	for (size_t i = 0; i < probes->switches.n; i++) {
		struct probe_switch *item = &probes->switches.items[i];
		int err = is_next(item) ? turn_on(probes, item) : 0;

		if (err)
			return kymo_error_errno(err, "cannot turn on the marker at 0x%" PRIx64 " of %s", item->address,
						probes->modules.items[item->module].path);
	}
	return NULL;
}

/* ---- off ------------------------------------------------------------------------------------- */

struct turning_off {
	struct kymo_process *process;
	const struct kymo_wire_site *site;
	uint64_t state_word; /* in the target; 0: it is gone */
};

static int put_state(const struct turning_off *off, enum kymo_wire_count count, uint16_t before)
{
	uint64_t state = (uint64_t)count | (uint64_t)before << 16;

	return off->state_word ? kymo_process_write(off->process, off->state_word, &state, sizeof(state)) : 0;
}

/* Whether this recording's 1 is in the counter, which is `count` now. */
static bool is_counted(const struct turning_off *off, uint16_t count)
{
	uint16_t before = (uint16_t)(off->site->state >> 16);

	if (!count)
		return false;
	switch (off->site->state & 0xffff) {
	case KYMO_WIRE_COUNT_UP:
		return count != before;
	case KYMO_WIRE_COUNT_IN:
		return true;
	case KYMO_WIRE_COUNT_DOWN:
		return count == before;
	default:
		return false;
	}
}

static int clear_bit(const struct turning_off *off)
{
	uint16_t outside, less;
	int err = kymo_process_read(off->process, off->site->next, &outside, sizeof(outside));

	less = err ? 0 : (uint16_t)(outside & ~off->site->state);
	return err || less == outside ? err : kymo_process_write(off->process, off->site->next, &less, sizeof(less));
}

static int count_down(const struct turning_off *off)
{
	uint16_t count, less;
	int err;

	if (off->site->flags & KYMO_WIRE_GATE)
		return clear_bit(off);
	err = kymo_process_read(off->process, off->site->next, &count, sizeof(count));
	if (!err && is_counted(off, count)) {
		less = (uint16_t)(count - 1);
		err = put_state(off, KYMO_WIRE_COUNT_DOWN, count);
		if (!err)
			err = kymo_process_write(off->process, off->site->next, &less, sizeof(less));
	}
	return err ? err : put_state(off, KYMO_WIRE_COUNT_NONE, 0);
}

/* Another party wants it on: the process itself, or another recording. */
static bool is_wanted(const struct turning_off *off)
{
	uint8_t gate[4];

	return !kymo_process_read(off->process, off->site->next + (uint64_t)INSIDE_AT, gate, sizeof(gate)) &&
	       (gate[0] || gate[2] || gate[3]);
}

static bool is_busy(const struct turning_off *off)
{
	uint8_t busy;

	return off->site->flags & KYMO_WIRE_GATE &&
	       !kymo_process_read(off->process, off->site->next + (uint64_t)BUSY_AT, &busy, 1) && busy;
}

static int restore_text(const struct turning_off *off, enum switch_left *ret)
{
	const struct kymo_wire_site *site = off->site;
	uint8_t now[SIZE];
	int err = kymo_process_read(off->process, site->address, now, SIZE);

	if (err || !memcmp(now, kymo_marker_nop, SIZE) || is_wanted(off))
		return err;
	if (now[0] == KYMO_TRAP_BYTE) { /* the kernel's: it puts the file's byte back */
		*ret = SWITCH_RESTORED;
		return kymo_process_write(off->process, site->address + 1, kymo_marker_nop + 1, SIZE - 1);
	}
	/* A call in its place, which leads to the kernel: that puts back the whole NOP. */
	if (kymo_uprobe_is_breakpoint(now[0], kymo_marker_nop[0]))
		return 0;
	if (text_state(now, site->patched) == TEXT_UNKNOWN) {
		*ret = SWITCH_MODIFIED;
		return 0;
	}
	*ret = SWITCH_RESTORED;
	return write_text(off->process, site->address, now, kymo_marker_nop);
}

struct kymo_error *probe_turn_off(struct probe_trust *trust, const struct kymo_maps *maps,
				  const struct kymo_session *own, size_t index, bool must_go, enum switch_left *ret)
{
	const struct kymo_wire_site *site = &own->sites[index];
	const struct kymo_map *map = kymo_maps_at(maps, site->address);
	struct turning_off off = { .process = trust->process,
				   .site = site,
				   .state_word = own->words ? own->words + kymo_wire_word_offset(index) : 0 };
	enum switch_left left = SWITCH_CLEAN;
	bool busy;
	int err;

	if (!map || map->inode != site->inode) {
		*ret = SWITCH_CLEAN;
		return NULL;
	}
	if (!probe_trust_switch(trust, maps, map, site)) {
		*ret = SWITCH_CORRUPT;
		return NULL;
	}
	busy = is_busy(&off);
	if (busy && !must_go) {
		*ret = SWITCH_BUSY;
		return NULL;
	}
	err = count_down(&off);
	if (!err && !busy && site->patch_size == SIZE && site->flags & KYMO_WIRE_GATE)
		err = restore_text(&off, &left);
	if (err)
		return kymo_error_errno(err, "cannot turn off the marker at 0x%" PRIx64, site->address);
	*ret = left;
	return NULL;
}

/* A breakpoint at a marker was there before a recording, which left that site out. */
static void excuse_breakpoint(uint64_t at, uint64_t low, const uint8_t memory[KYMO_PAGE_SIZE],
			      uint8_t file[KYMO_PAGE_SIZE])
{
	size_t from = at - low, size = memory[from] == KYMO_TRAP_BYTE || from + SIZE > KYMO_PAGE_SIZE ? 1 : SIZE;

	if (kymo_uprobe_is_breakpoint(memory[from], file[from]))
		memcpy(file + from, memory + from, size);
}

static void excuse(const struct kymo_marker_switch *one, uint64_t low, const uint8_t memory[KYMO_PAGE_SIZE],
		   uint8_t file[KYMO_PAGE_SIZE])
{
	uint8_t jump[SIZE];

	if (!one->site || one->site + SIZE <= low || one->site >= low + KYMO_PAGE_SIZE ||
	    kymo_encode_jump(one->site, one->cold, jump))
		return;
	if (one->site >= low)
		excuse_breakpoint(one->site, low, memory, file);
	for (size_t i = 0; i < SIZE; i++) {
		uint64_t at = one->site + i - low;

		if (at < KYMO_PAGE_SIZE && (memory[at] == jump[i] || memory[at] == KYMO_TRAP_BYTE ||
					    (!i && memory[at] == KYMO_MARKER_BETWEEN)))
			file[at] = memory[at];
	}
}

void probe_excuse_markers(int fd, uint64_t offset, const uint8_t memory[KYMO_PAGE_SIZE], uint8_t file[KYMO_PAGE_SIZE])
{
	struct kymo_marker_list *list = NULL;
	struct kymo_module *module = NULL;
	struct kymo_error *error = kymo_module_open_fd(fd, "", &module);
	uint64_t low;

	if (!error)
		error = kymo_markers_create(module, &list);
	if (!error && !kymo_module_offset_to_vaddr(module, offset, &low)) {
		for (size_t i = 0; i < list->n_switches; i++)
			excuse(&list->switches[i], low, memory, file);
		for (size_t i = 0; i < list->n; i++)
			if (list->items[i].location >= low && list->items[i].location - low < KYMO_PAGE_SIZE)
				excuse_breakpoint(list->items[i].location, low, memory, file);
	}
	kymo_error_destroy(error);
	kymo_markers_destroy(list);
	kymo_module_close(module);
}

/* ---- which are selected ------------------------------------------------------------------------- */

bool probes_means_switch(const struct kymo_probes *probes, size_t spec, const struct probe_switch *item)
{
	const struct probe_module *module = &probes->modules.items[item->module];
	const char *glob = probes->wanted.specs[spec].marker;

	return glob &&
	       kymo_marker_matches(glob, module->path, kymo_module_soname(module->module), item->provider, item->name);
}

static bool has_live_sdt(const struct kymo_probes *probes, size_t spec)
{
	for (size_t i = 0; i < probes->sites.n; i++)
		for (size_t k = 0; k < probes->sites.items[i].requests.n; k++) {
			const struct probe_request *request = &probes->sites.items[i].requests.items[k];

			if (request->spec == spec && request->marker && request->marker->is_sdt && !request->is_refused)
				return true;
		}
	return false;
}

bool probes_has_live_marker(const struct kymo_probes *probes, size_t spec)
{
	for (size_t i = 0; i < probes->switches.n; i++) {
		const struct probe_switch *item = &probes->switches.items[i];

		if ((!item->is_refused || item->has_entry) && probes_means_switch(probes, spec, item))
			return true;
	}
	return has_live_sdt(probes, spec);
}
