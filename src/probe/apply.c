/*
 * Writing text. All threads are stopped; pads and journal are complete.
 *
 * A thread may stand inside of a window: then its next instruction would be in the middle of the jump. Each such thread is
 * moved to the same instruction of the displaced copy. A signal handler may have interrupted a thread inside of a window: then the program
 * counter to which it returns is in a signal frame on some stack. Frames are not ours to change, so nothing is written in that case,
 * and the caller tries again a little later. Return addresses never lie inside of a window: the planner displaces nothing behind a call.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "probe/probes.h"

#define STACK_SCAN_MAX ((uint64_t)8 << 20)
#define USER_CS 0x33	/* arch/x86/include/asm/segment.h: __USER_CS */

void probes_warn(const struct kymo_probes *probes, const char *format, ...)
{
	char sentence[2048];
	va_list args;

	if (!probes->options.warn)
		return;
	va_start(args, format);
	vsnprintf(sentence, sizeof(sentence), format, args);
	va_end(args);
	probes->options.warn(sentence, probes->options.data);
}

/* ---- saved program counters --------------------------------------------------------------------------------------- */

/* In struct sigcontext rip is followed by eflags and the 16-bit selectors, cs first. */
static uint64_t scan_words(const uint64_t *words, size_t n, bool (*is_hot)(uint64_t pc, void *data), void *data)
{
	for (size_t i = 0; i + 2 < n; i++)
		if ((words[i + 2] & 0xffff) == USER_CS && is_hot(words[i], data))
			return words[i];
	return 0;
}

/* Scan [low, end of its mapping). A stack that can't be read may hold anything: that counts as found. */
static uint64_t scan_stack(struct kymo_process *process, const struct kymo_maps *maps, uint64_t low,
			   bool (*is_hot)(uint64_t pc, void *data), void *data)
{
	const struct kymo_map *map = kymo_maps_at(maps, low);
	kymo_cleanup_free uint64_t *words = NULL;
	uint64_t size;

	if (!map)
		return 0;
	size = map->end - low < STACK_SCAN_MAX ? map->end - low : STACK_SCAN_MAX;
	words = malloc(size);
	if (!words || kymo_process_read(process, low, words, size))
		return low;
	return scan_words(words, size / 8, is_hot, data);
}

/* Where the initial thread's stack begins if that thread is on another one: it is scanned as well, for what it may have left there. */
static uint64_t left_stack(const struct kymo_thread *thread, pid_t pid, const struct kymo_maps *maps)
{
	for (size_t i = 0; i < maps->n && thread->tid == pid; i++)
		if (!strcmp(maps->items[i].path, "[stack]"))
			return kymo_maps_at(maps, thread->registers.rsp) == &maps->items[i] ? 0 : maps->items[i].start;
	return 0;
}

uint64_t probes_find_saved_pc(struct kymo_process *process, const struct kymo_maps *maps,
			      bool (*is_hot)(uint64_t pc, void *data), void *data, pid_t *tid_ret)
{
	const struct kymo_thread *threads;
	uint64_t found = 0;
	size_t n;

	threads = kymo_process_threads(process, &n);
	for (size_t i = 0; i < n && !found; i++) {
		uint64_t other = left_stack(&threads[i], kymo_process_pid(process), maps);

		found = scan_stack(process, maps, threads[i].registers.rsp & ~(uint64_t)7, is_hot, data);
		if (!found && other)
			found = scan_stack(process, maps, other, is_hot, data);
		*tid_ret = threads[i].tid;
	}
	return found;
}

/* ---- windows ------------------------------------------------------------------------------------------------------ */

/* The pending site in whose window `pc` lies behind the first byte, or NULL. */
static const struct probe_site *site_around(const struct kymo_probes *probes, uint64_t pc)
{
	size_t low = 0, high = probes->sites.n;
	const struct probe_site *site;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (probes->sites.items[middle].address + probes->sites.items[middle].plan.window <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	site = low < probes->sites.n ? &probes->sites.items[low] : NULL;
	return site && !site->installed && site->address < pc ? site : NULL;
}

static bool is_in_a_window(uint64_t pc, void *data)
{
	return site_around(data, pc) != NULL;
}

/* Where a thread at `pc` inside of the window of `site` goes; 0 when `pc` is between instructions, or the thread must not be moved past what a guard does. */
static uint64_t moved_pc(const struct probe_site *site, uint64_t pc)
{
	if (site->is_guard)
		return 0;
	for (unsigned int i = 1; i < site->plan.n_insns; i++)
		if (site->address + site->plan.insn_offset[i] == pc)
			return site->pad + site->insn_at[i];
	return 0;
}

/* ---- text, page by page --------------------------------------------------------------------------------------------- */

/* Sites are sorted, and thousands lie on a few hundred pages; a system call for each page is what keeps the stop short. */
struct text_page {
	uint64_t address;	/* 0: none */
	uint8_t bytes[4096];
};

static uint64_t page_of(uint64_t address)
{
	return address & ~(uint64_t)4095;
}

static bool read_text(struct kymo_process *process, struct text_page *page, uint64_t address, uint8_t *out, size_t size)
{
	if (page_of(address) != page_of(address + size - 1))
		return !kymo_process_read(process, address, out, size);
	if (page->address != page_of(address)) {
		page->address = 0;
		if (kymo_process_read(process, page_of(address), page->bytes, sizeof(page->bytes)))
			return false;
		page->address = page_of(address);
	}
	memcpy(out, page->bytes + (address - page->address), size);
	return true;
}

/* ---- checks ------------------------------------------------------------------------------------------------------- */

/* Compare the window of a site with the file's bytes; `page` is of the memory around it, which is read again only for another page. */
static struct kymo_error *check_text(struct kymo_probes *probes, const struct probe_site *site, struct text_page *page)
{
	const char *name = probes_site_name(probes, site);
	uint8_t now[KYMO_WINDOW_MAX];

	if (!read_text(probes->process, page, site->address, now, site->plan.window))
		return kymo_error_create(KYMO_ERROR_GONE, "the code at %s is not mapped any more", name);
	if (!memcmp(now, site->plan.original, site->plan.window))
		return NULL;
	return kymo_error_create(KYMO_ERROR_UNSAFE,
				 "the code at %s (0x%" PRIx64 ") is not what its file holds: something else has patched it", name,
				 site->address);
}

/* Whether `pc` is where the system call of a guard that is being put in returns to. */
static bool is_behind_a_guard(const struct kymo_probes *probes, uint64_t pc)
{
	const struct probe_site *site = site_around(probes, pc - 1);

	return site && site->is_guard;
}

/* Threads inside of windows: where each would go. False when one cannot be moved. */
static bool can_move_all(const struct kymo_probes *probes)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(probes->process, &n);
	for (size_t i = 0; i < n; i++) {
		const struct probe_site *site = site_around(probes, threads[i].registers.rip);

		if (site && !moved_pc(site, threads[i].registers.rip))
			return false;
		if (is_behind_a_guard(probes, threads[i].registers.rip) && kymo_remote_restarts(&threads[i].registers))
			return false;	/* the system call begins anew, two bytes back */
	}
	return true;
}

/*
 * Death between moving a thread and writing the text is harmless: in the pad's copy it does what it would have done in place. So threads go
 * first.
 */
static void move_threads(struct kymo_probes *probes)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(probes->process, &n);
	for (size_t i = 0; i < n; i++) {
		const struct probe_site *site = site_around(probes, threads[i].registers.rip);

		if (site)
			kymo_thread_set_pc(probes->process, i, moved_pc(site, threads[i].registers.rip));
	}
}

/* What is written at a site: its jump, or what was there. */
static int patch_of(const struct probe_site *site, bool in, uint8_t out[KYMO_PATCH_SIZE])
{
	if (in)
		return kymo_encode_jump(site->address, site->pad + site->entry, out);
	memcpy(out, site->plan.original, KYMO_PATCH_SIZE);
	return 0;
}

/*
 * Write the pending ones of the sites from `first` that lie on one page, with one write: bytes in between stay what they are. No jump crosses a page, and a write
 * within one is a single copy. `end_ret` is the first site of another page.
 */
static int write_page(struct kymo_probes *probes, size_t first, bool in, struct text_page *page, size_t *end_ret)
{
	const struct probe_site *sites = probes->sites.items;
	uint64_t start = page_of(sites[first].address), low = UINT64_MAX, high = 0;
	size_t i;
	int err = kymo_process_read(probes->process, start, page->bytes, sizeof(page->bytes));

	for (i = first; !err && i < probes->sites.n && page_of(sites[i].address) == start; i++) {
		if (sites[i].installed)
			continue;
		err = patch_of(&sites[i], in, page->bytes + (sites[i].address - start));
		low = sites[i].address < low ? sites[i].address : low;
		high = sites[i].address + KYMO_PATCH_SIZE;
	}
	if (!err && high)
		err = kymo_process_write(probes->process, low, page->bytes + (low - start), high - low);
	*end_ret = i;
	return err;
}

static struct kymo_error *write_text(struct kymo_probes *probes)
{
	struct text_page page = { .address = 0 };

	for (size_t i = 0, end; i < probes->sites.n; i = end) {
		int err = write_page(probes, i, true, &page, &end);

		if (!err)
			continue;
		for (size_t k = 0, back; k < i; k = back)
			if (write_page(probes, k, false, &page, &back))
				break;
		return kymo_error_errno(err, "cannot change the code near %s (does the kernel forbid writes through /proc/PID/mem?)",
					probes_site_name(probes, &probes->sites.items[i]));
	}
	for (size_t i = 0; i < probes->sites.n; i++)
		probes->sites.items[i].installed = true;
	return NULL;
}

struct kymo_error *probes_apply(struct kymo_probes *probes, bool *again_ret)
{
	struct text_page page = { .address = 0 };
	struct kymo_error *error = NULL;
	struct kymo_maps maps;
	uint64_t pc;
	pid_t tid;

	*again_ret = false;
	for (size_t i = 0; i < probes->sites.n && !error; i++)
		if (!probes->sites.items[i].installed)
			error = check_text(probes, &probes->sites.items[i], &page);
	if (!error)
		error = kymo_maps_read(kymo_process_pid(probes->process), &maps);
	if (error)
		return error;
	pc = probes_find_saved_pc(probes->process, &maps, is_in_a_window, probes, &tid);
	kymo_maps_deinit(&maps);
	if (pc || !can_move_all(probes)) {
		*again_ret = true;
		return NULL;
	}
	move_threads(probes);
	return write_text(probes);
}
