/*
 * Order: text first, then wait, then memory. After the text is restored no thread enters a pad; those that are inside
 * leave by themselves within nanoseconds, unless a signal handler runs on top of them. Pads stay mapped until every
 * program counter, and every saved one on a stack, is elsewhere. Nor may a thread be about to enter them from another
 * recording's pad, or be about to look at this recording's list of vforks there.
 */
#include "probe/install/remove.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/leave_pad.h"
#include "arch/remote.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/page.h"
#include "probe/install/clone_islands.h"
#include "probe/install/clone_threads.h"
#include "probe/install/frames.h"
#include "probe/install/leave.h"
#include "probe/install/stop.h"
#include "probe/memory/recorders.h"
#include "probe/memory/sessions.h"
#include "probe/probe.h"
#include "probe/site/switches.h"
#include "proc/call.h"
#include "proc/memory.h"
#include "proc/nap.h"
#include "proc/process.h"
#include "proc/sharing.h"
#include "proc/stop.h"
#include "proc/thread.h"
#include "procfs/maps.h"
#include "wire/clones.h"
#include "wire/readable.h"

#define DRAIN_TRIES 12 /* about two seconds, with pauses that grow by half */
#define MAX_LEFT 64
#define DRAIN_PAUSE_NS 5000000

/* One recording on its way out; the process is stopped. */
struct removal {
	struct kymo_process *process;
	struct kymo_session_list list;
	const struct kymo_session *own; /* of the list; NULL: what has no header */
	struct kymo_maps maps;
	struct kymo_detach_result *result;
};

/* ---- checking the text ----------------------------------------------------------------------- */

/* Compare the pages that were patched with the file. The bytes come from a copy-on-write page, so this is the proof. */
static void verify_page(struct kymo_process *process, const struct kymo_maps *maps, uint64_t page,
			struct kymo_detach_result *result, size_t *different)
{
	const struct kymo_map *map = kymo_maps_at(maps, page);
	uint8_t memory[KYMO_PAGE_SIZE], file[KYMO_PAGE_SIZE];
	struct kymo_error *error;
	int fd;

	if (!map || map->path[0] != '/' || !map->executable) /* a library is gone, and has left its place to data */
		return;
	error = kymo_open_mapped(kymo_process_pid(process), map, &fd);
	if (error) {
		kymo_error_destroy(error);
		return;
	}
	/* The last page of a file may be short; the kernel fills it with zeros. */
	memset(file, 0, sizeof(file));
	if (!kymo_process_read(process, page, memory, sizeof(memory)) &&
	    pread(fd, file, sizeof(file), (off_t)(map->offset + (page - map->start))) > 0) {
		result->pages_verified++;
		if (memcmp(memory, file, sizeof(file)))
			probe_excuse_markers(fd, map->offset + (page - map->start), memory, file);
		*different += memcmp(memory, file, sizeof(file)) != 0;
	}
	close(fd);
}

static bool is_page_of_other(const struct removal *removal, uint64_t page)
{
	for (size_t i = 0; i < removal->list.n; i++)
		for (size_t k = 0; &removal->list.items[i] != removal->own && k < removal->list.items[i].n_sites; k++)
			if (kymo_page_down(removal->list.items[i].sites[k].address) == page)
				return true;
	return false;
}

static void verify_text(struct removal *removal)
{
	uint64_t last = 0;
	size_t different = 0;

	for (size_t i = 0; i < removal->own->n_sites; i++) {
		uint64_t page = kymo_page_down(removal->own->sites[i].address);

		if (removal->own->sites[i].patch_size && page != last && !is_page_of_other(removal, page))
			verify_page(removal->process, &removal->maps, page, removal->result, &different);
		last = page;
	}
	if (different && !removal->result->note &&
	    asprintf(&removal->result->note,
		     "%zu text pages differ from their file although every probe is out: something else changed them",
		     different) < 0)
		removal->result->note = NULL;
}

/* ---- whose memory ---------------------------------------------------------------------------- */

static bool is_listed(const struct removal *removal, uint64_t inode)
{
	for (size_t i = 0; i < removal->list.n; i++)
		if (removal->list.items[i].inode == inode)
			return true;
	return false;
}

/* Header, words, pads of the recording; without one, of no recording. */
static bool is_own_shared(const struct removal *removal, const struct kymo_map *map)
{
	if (!kymo_is_shared_map(map))
		return false;
	return removal->own ? map->inode == removal->own->inode : !is_listed(removal, map->inode);
}

/* What its pads write; without a recording, what no other one's do. */
static bool is_own_data(const struct removal *removal, const struct kymo_map *map)
{
	if (!kymo_is_data_map(map))
		return false;
	for (size_t i = 0; i < removal->list.n && !removal->own; i++)
		if (removal->list.items[i].data == map->start)
			return false;
	return !removal->own || removal->own->data == map->start;
}

/* A mapping may be of several stretches that touch each other. */
static bool has_run(const struct kymo_session *session, const struct kymo_map *map)
{
	for (size_t i = 0; i < session->n_trampolines; i++)
		if (session->trampolines[i].address < map->end &&
		    session->trampolines[i].address + session->trampolines[i].size > map->start)
			return true;
	return false;
}

/* Trampolines that no other recording has. */
static bool is_own_jumps(const struct removal *removal, const struct kymo_map *map)
{
	if (!kymo_is_jumps_map(map))
		return false;
	for (size_t i = 0; i < removal->list.n; i++)
		if (&removal->list.items[i] != removal->own && has_run(&removal->list.items[i], map))
			return false;
	return !removal->own || has_run(removal->own, map);
}

/* A forked child's own memory in the arena's place may be one mapping with what lies around it. */
static bool has_arena(const struct removal *removal, const struct kymo_map *map)
{
	return removal->own && removal->own->arena && map->start <= removal->own->arena &&
	       map->end > removal->own->arena;
}

/* ---- threads that are still there ---------------------------------------------------------------------- */

static bool is_in_pads(uint64_t pc, const struct removal *removal)
{
	const struct kymo_map *map = kymo_maps_at(&removal->maps, pc);

	return map && map->executable && (is_own_shared(removal, map) || is_own_jumps(removal, map));
}

/* Whether the pad of another recording's entry goes on to one of ours. Where all that stay are left over, text is
 * restored, and words `next` stay as they are. */
static bool leads_to_us(const struct removal *removal, const struct kymo_wire_site *site)
{
	const struct kymo_map *map = site->next ? kymo_maps_at(&removal->maps, site->next) : NULL;

	return map && map->executable && is_own_shared(removal, map);
}

static bool does_any_lead_to_us(const struct removal *removal, const struct kymo_session *other)
{
	for (size_t k = 0; k < other->n_sites; k++)
		if (leads_to_us(removal, &other->sites[k]))
			return true;
	return false;
}

/* It may have loaded the address of our arena. A pad that is not as far yet will find none (probe_end_anchors()). */
static bool makes_anchor(const struct removal *removal, const struct kymo_wire_site *site, uint64_t pc)
{
	return removal->own->arena && site->event_id && pc <= site->hop && site->hop - pc <= KYMO_PAD_ANCHOR_SPAN;
}

/* Another recording's pad jumps to an address that it has loaded already, perhaps to one of ours, or is about to load
 * one; or it makes an anchor in our arena, after a record. */
static bool is_hopping(const struct removal *removal, const struct kymo_session *other, uint64_t pc)
{
	for (size_t k = 0; k < other->n_sites; k++) {
		const struct kymo_wire_site *site = &other->sites[k];

		if (pc - site->pad < site->pad_size)
			return (site->hop && (site->hop == pc || makes_anchor(removal, site, pc))) ||
			       leads_to_us(removal, site);
	}
	/* Code that its pads share, from which they go on to all of that. */
	return does_any_lead_to_us(removal, other);
}

/*
 * Another recording's pad loads where the list of vforks is, and looks at the list an instruction later. Leaving has
 * changed what it loads, but not what it has loaded.
 */
static bool has_our_list(const struct removal *removal, const struct probes_pc *pc)
{
	const uint64_t list = removal->own->header.vforks;

	for (size_t i = 0; list && pc->registers && i < pc->n_registers; i++)
		if (pc->registers[i] - list < sizeof(struct kymo_wire_vforks))
			return true;
	return list && !pc->registers;
}

/* Whether the program counter lies in executable memory of any recording: few do, so the search for hops is rare. */
static bool is_hot(const struct probes_pc *pc, void *data)
{
	const struct removal *removal = data;
	const struct kymo_map *map = kymo_maps_at(&removal->maps, pc->address);
	bool found = is_in_pads(pc->address, removal), is_jump = map && map->executable && kymo_is_jumps_map(map);

	for (size_t i = 0; removal->own && map && map->executable && i < removal->list.n && !found; i++) {
		const struct kymo_session *other = &removal->list.items[i];

		if (other == removal->own)
			continue;
		found = (is_jump && does_any_lead_to_us(removal, other)) ||
			(kymo_is_shared_map(map) && map->inode == other->inode &&
			 (is_hopping(removal, other, pc->address) || has_our_list(removal, pc)));
	}
	return found;
}

/* Leaving has changed some. */
static void read_next_words(struct removal *removal)
{
	for (size_t i = 0; i < removal->list.n; i++) {
		struct kymo_session *other = &removal->list.items[i];

		if (other != removal->own)
			kymo_error_destroy(kymo_session_read_words(removal->process, other));
	}
}

/*
 * The entry whose pad a thread is in, in the system call that was displaced; or NULL. Nothing of the pad's is on its
 * stack there. The bytes alone are no proof: another instruction may end with them.
 */
static const struct kymo_wire_site *called_from(const struct removal *removal, const struct user_regs_struct *registers)
{
	uint8_t before[KYMO_REMOTE_CALL];
	uint64_t pc = registers->rip;

	for (size_t i = 0; i < removal->own->n_sites && (int64_t)registers->orig_rax >= 0; i++) {
		const struct kymo_wire_site *site = &removal->own->sites[i];

		if (site->pad >= pc || pc - site->pad > site->pad_size || site->window != sizeof(before) ||
		    !kymo_remote_is_syscall(site->original))
			continue;
		return kymo_process_read(removal->process, pc - sizeof(before), before, sizeof(before)) ||
				       !kymo_remote_is_syscall(before)
			       ? NULL
			       : site;
	}
	return NULL;
}

/*
 * A thread may sleep in a pad's system call for ever. It is sent to after the call in the text, which is restored:
 * there, as in the pad, the kernel makes the call again where it has to be, two bytes back. A death right after it
 * changes nothing.
 */
static void send_home(struct removal *removal)
{
	const struct kymo_thread *threads;
	size_t n;

	threads = kymo_process_threads(removal->process, &n);
	for (size_t i = 0; i < n && removal->own; i++) {
		const struct kymo_wire_site *site = is_in_pads(threads[i].registers.rip, removal)
							    ? called_from(removal, &threads[i].registers)
							    : NULL;

		if (site)
			kymo_thread_set_pc(removal->process, i, site->address + site->window);
	}
}

static bool has_thread_in_pads(struct removal *removal)
{
	const struct kymo_thread *threads;
	pid_t tid;
	size_t n;

	threads = kymo_process_threads(removal->process, &n);
	for (size_t i = 0; i < n; i++) {
		const struct user_regs_struct *registers = &threads[i].registers;
		uint64_t words[sizeof(*registers) / 8];

		memcpy(words, registers, sizeof(words));
		if (is_hot(&(struct probes_pc){ registers->rip, words, kymo_countof(words) }, removal))
			return true;
	}
	return probes_find_saved_pc(removal->process, &removal->maps, is_hot, removal, &tid) != 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static struct kymo_error *unmap(struct removal *removal, const struct kymo_map *map)
{
	uint64_t args[6] = { map->start, map->end - map->start };
	int64_t unmapped;
	struct kymo_error *error;

	if (has_arena(removal, map)) {
		args[0] = removal->own->arena;
		args[1] = kymo_page_up(KYMO_WIRE_ARENA_SIZE);
	}
	error = kymo_remote_syscall(removal->process, SYS_munmap, args, &unmapped);

	if (!error && unmapped)
		error = kymo_error_errno((int)unmapped, "process %d could not unmap kymo's memory",
					 kymo_process_pid(removal->process));
	if (!error)
		removal->result->mappings_removed++;
	return error;
}

static bool is_live_page(const struct removal *removal, size_t i)
{
	const struct kymo_maps *maps = &removal->maps;

	return i > 0 && is_own_shared(removal, &maps->items[i - 1]) &&
	       kymo_is_live_page(maps, i, maps->items[i - 1].inode);
}

/* Live pages are known by their neighbors, all else by the journal: so in this order, for a death in between. */
enum remove_order { LIVE_PAGES, JUMPS, PADS, ARENA, DATA, WORDS, JOURNAL, N_ORDER, NOT_OURS };

static enum remove_order order_of(const struct removal *removal, size_t i)
{
	const struct kymo_map *map = &removal->maps.items[i];

	if (is_live_page(removal, i))
		return LIVE_PAGES;
	if (is_own_jumps(removal, map))
		return JUMPS;
	if (has_arena(removal, map))
		return ARENA;
	if (is_own_data(removal, map))
		return DATA;
	if (!is_own_shared(removal, map))
		return NOT_OURS;
	return map->executable ? PADS : map->shared ? JOURNAL : WORDS;
}

static bool is_ours(size_t i, void *data)
{
	const struct removal *removal = data;

	return order_of(removal, i) != NOT_OURS;
}

static bool has_context_in_clones(struct removal *removal)
{
	return removal->own && probe_clones_are_saved(removal->process, removal->own, &removal->maps, is_ours, removal);
}

static struct kymo_error *unmap_all(struct removal *removal)
{
	struct kymo_error *error = NULL;

	for (enum remove_order order = LIVE_PAGES; order < N_ORDER; order++)
		for (size_t i = 0; i < removal->maps.n && !error; i++)
			if (order_of(removal, i) == order)
				error = unmap(removal, &removal->maps.items[i]);
	return error;
}

static struct kymo_error *close_descriptors(struct kymo_process *process)
{
	struct kymo_error *error = NULL;
	pid_t pid = kymo_process_pid(process);

	for (int fd = kymo_next_descriptor(pid, -1); fd >= 0 && !error; fd = kymo_next_descriptor(pid, fd)) {
		int64_t result;

		error = kymo_remote_syscall(process, SYS_close, (uint64_t[6]){ (uint64_t)fd }, &result);
	}
	return error;
}

static struct kymo_error *unmap_and_close(struct removal *removal)
{
	struct kymo_error *error = kymo_remote_begin(removal->process);

	if (error)
		return error;
	if (!removal->list.is_recorder) /* it needs its own */
		error = close_descriptors(removal->process);
	if (!error)
		error = unmap_all(removal);
	return kymo_error_first(error, kymo_remote_end(removal->process));
}

/* ---- all of it ------------------------------------------------------------------------------- */

/*
 * The first that is to go, of the recordings that the stopped process has: `inode`'s, or one whose recorder is gone.
 * Clones go before the probes beside them. The bytes after a probe's may be an island, where no thread comes as long as
 * the probe's pad leads to the clone.
 */
static bool choose_removals(struct removal *removal, uint64_t inode)
{
	removal->own = NULL;
	for (size_t i = 0; i < removal->list.n; i++) {
		const struct kymo_session *session = &removal->list.items[i];

		if ((inode ? session->inode == inode : !kymo_session_has_recorder(session, removal->list.pid)) &&
		    (!removal->own || (session->header.arena_address && !removal->own->header.arena_address)))
			removal->own = session;
	}
	return removal->own || (!inode && removal->list.has_strays);
}

/* Before the first pad of a call that takes memory away is out. No thread is in a load: all are stopped. */
static void close_readable(const struct removal *removal)
{
	const uint64_t at = removal->own->header.readable_address, closed = 0, for_good = 1;
	const struct kymo_map *map = at ? kymo_maps_at(&removal->maps, at) : NULL;

	if (!map || !is_own_data(removal, map) || at % KYMO_PAGE_SIZE ||
	    map->end - at < sizeof(struct kymo_wire_readable))
		return;
	kymo_process_write(removal->process, at + offsetof(struct kymo_wire_readable, is_closed_for_good), &for_good,
			   sizeof(for_good));
	kymo_process_write(removal->process, at + offsetof(struct kymo_wire_readable, state), &closed, sizeof(closed));
}

/* One try, the process stopped. `inode` becomes that of the recording that is on its way out. */
static struct kymo_error *remove_stopped(struct kymo_process *process, uint64_t *inode, int try, bool *found_ret,
					 bool *done_ret, struct kymo_detach_result *result)
{
	bool stays = false;
	size_t clean;

	struct removal removal = { .process = process, .result = result };
	struct kymo_error *error = kymo_sessions_read(process, &removal.list);

	*done_ret = false;
	if (error)
		return error;
	*found_ret = choose_removals(&removal, *inode);
	error = *found_ret ? kymo_process_maps(process, &removal.maps) : NULL;
	if (error || !*found_ret) {
		*done_ret = true;
		kymo_sessions_deinit(&removal.list);
		return error;
	}
	*inode = removal.own ? removal.own->inode : 0;
	if (removal.own)
		close_readable(&removal);
	/* Again each time: another recording that leaves meanwhile may have handed something over. */
	clean = result->sites_clean;
	stays = removal.own && removal.own->arena && !probe_pass_islands(process, removal.own, &removal.maps);
	if (removal.own && !stays)
		error = probe_leave_text(process, &removal.maps, removal.own, &removal.list, try == DRAIN_TRIES - 1,
					 &stays, result);
	result->text_left = stays;
	if (try > 0)
		result->sites_clean = clean; /* counted before */
	read_next_words(&removal);
	if (!error && !stays)
		send_home(&removal);
	if (!error && !stays && removal.own)
		probe_send_clones_home(process, removal.own);
	if (removal.own)
		probe_end_anchors(process, removal.own, &removal.list);
	if (!error && !stays && !has_thread_in_pads(&removal) && !has_context_in_clones(&removal)) {
		if (removal.own)
			verify_text(&removal);
		if (removal.own)
			probe_clear_clone_words(process, removal.own);
		error = unmap_and_close(&removal);
		*done_ret = true;
	}
	kymo_maps_deinit(&removal.maps);
	kymo_sessions_deinit(&removal.list);
	return error;
}

static struct kymo_error *remove_one(struct kymo_process *process, uint64_t inode, int n_tries, bool *found_ret,
				     struct kymo_detach_result *result)
{
	struct kymo_error *error = NULL;
	uint64_t pause_ns = DRAIN_PAUSE_NS;
	bool done = false, found = false;

	*found_ret = false;
	for (int i = 0; i < n_tries && !done && !error; i++) {
		if (i) {
			kymo_process_nap(process, pause_ns);
			pause_ns = pause_ns * 3 / 2;
		}
		error = probes_stop_patiently(process);
		if (!error)
			error = remove_stopped(process, &inode, i, &found, &done, result);
		*found_ret |= found;
		kymo_process_resume(process);
	}
	result->pads_left = !done;
	return error;
}

static struct kymo_error *remove_in(struct kymo_process *process, uint64_t inode, int n_tries,
				    struct kymo_detach_result *ret)
{
	struct kymo_detach_result result = { .sites_restored = 0 };
	struct removal removal = { .process = process };
	struct kymo_error *error = kymo_sessions_read(process, &removal.list);
	bool found;

	if (error)
		return error;
	found = choose_removals(&removal, inode);
	kymo_sessions_deinit(&removal.list);
	if (found)
		error = kymo_process_check_alone(process);
	for (int i = 0; i < MAX_LEFT && found && !error && !result.pads_left; i++)
		error = remove_one(process, inode, n_tries, &found, &result);
	if (error) {
		free(result.note);
		return error;
	}
	*ret = result;
	return NULL;
}

struct kymo_error *kymo_remove(struct kymo_process *process, uint64_t inode, struct kymo_detach_result *ret)
{
	return remove_in(process, inode, DRAIN_TRIES, ret);
}

struct kymo_error *kymo_remove_at_once(struct kymo_process *process, uint64_t inode, struct kymo_detach_result *ret)
{
	return remove_in(process, inode, 1, ret);
}
