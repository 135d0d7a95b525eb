/*
 * One recording leaves the text of a process, which other recordings may have probes in.
 *
 * A site in the text belongs to a chain of pads: its link leads to the first one's entry, whose word `next` leads to
 * the second one's inner entry, and so on; the last goes on to its own displaced instructions. To leave is to be taken
 * out of that list: the link, or the word before, gets what the own `next` says. The last one to leave puts the
 * original bytes back. Sites are left in the reverse order in which they were taken, because later jumps may rely on
 * bytes of earlier ones.
 *
 * Everything here is idempotent: if a process dies half way, its successor finds each site either left or not.
 */
#include "probe/install/leave.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "arch/plan.h"
#include "arch/pad.h"
#include "arch/trap.h"
#include "arch/uprobe.h"
#include "probe/code/jit.h"
#include "probe/coexist/link.h"
#include "probe/memory/recorders.h"
#include "probe/memory/sessions.h"
#include "probe/memory/trust.h"
#include "probe/probe.h"
#include "probe/site/switches.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/maps.h"

#define WATCH_AHEAD 65536 /* of threads that had not asked yet, but will without looking again */

struct leaving {
	struct kymo_process *process;
	const struct kymo_maps *maps;
	const struct kymo_session *own;
	const struct kymo_session_list *all;
	struct kymo_detach_result *result;
	bool is_last;            /* all recordings go: bytes are restored whatever recording they belong to */
	bool must_go;            /* nothing is waited for any more */
	size_t modified, shared; /* sites that hold unknown bytes; that can't be left for the sake of another process,
				   or not yet */
	size_t rewritten;        /* sites in memory of no file that the program has unmapped, or put other code to */
	uint64_t first_modified; /* the lowest of the former */
	size_t n_corrupt;        /* entries that the files contradict */
	uint64_t first_corrupt;
	struct probe_trust trust;
};

/* ---- the others at the same site ------------------------------------------------------------- */

/* A journal entry of another recording, and where its word `next` is. */
struct neighbor {
	const struct kymo_session *session;
	const struct kymo_wire_site *site;
	uint64_t next_word, next; /* next_word 0: it is gone */
};

/* Entries whose jumps are not in the text yet, and may never be, can't inherit anything. */
static bool is_installed(const struct kymo_session *session, size_t index)
{
	return index < session->header.n_installed;
}

typedef bool is_it(const struct kymo_wire_site *site, uint64_t value);

static bool enters_at(const struct kymo_wire_site *site, uint64_t value)
{
	return site->entry == value;
}

static bool is_inner(const struct kymo_wire_site *site, uint64_t value)
{
	return site->inner == value;
}

static bool is_standby(const struct kymo_wire_site *site, uint64_t value)
{
	return site->flags & KYMO_WIRE_STANDBY;
}

/* Another recording's entry at `address` that is it. */
static bool find_neighbor(const struct leaving *leaving, uint64_t address, is_it *is, uint64_t value,
			  struct neighbor *ret)
{
	for (size_t i = 0; i < leaving->all->n; i++) {
		const struct kymo_session *other = &leaving->all->items[i];

		for (size_t k = 0; other->inode != leaving->own->inode && k < other->n_sites; k++) {
			if (other->sites[k].address != address || !is(&other->sites[k], value) ||
			    !probe_trust_is_pad(leaving->maps, other, other->sites[k].entry) ||
			    (other->sites[k].flags & KYMO_WIRE_STANDBY &&
			     (!is_installed(other, k) || other->is_leaving)))
				continue;
			*ret = (struct neighbor){ .session = other, .site = &other->sites[k] };
			if (!other->words || !other->sites[k].hop)
				return true;
			ret->next_word = other->words + kymo_wire_word_offset(k);
			/* The copy is older than what this leaving has written. */
			return !kymo_process_read(leaving->process, ret->next_word, &ret->next, sizeof(ret->next));
		}
	}
	return false;
}

/*
 * Whether what is at the site is another recording's: it has come when this one had left the site, but not yet the
 * process. Nothing of this one's is there any more then. But the other's jump may begin with the same bytes, and the
 * trampoline of this one's may still lead to its pad.
 */
static bool is_of_other_recording(const struct leaving *leaving, const struct kymo_wire_site *site)
{
	for (size_t i = 0; i < leaving->all->n; i++) {
		const struct kymo_session *other = &leaving->all->items[i];

		for (size_t k = 0; other->inode != leaving->own->inode && k < other->n_sites; k++) {
			const struct kymo_wire_site *its = &other->sites[k];
			uint8_t now[KYMO_WIRE_PATCH_MAX];

			if (its->patch_size && its->patch_size <= sizeof(now) &&
			    its->address < site->address + site->patch_size &&
			    site->address < its->address + its->patch_size &&
			    !kymo_process_read(leaving->process, its->address, now, its->patch_size) &&
			    !memcmp(now, its->patched, its->patch_size))
				return true;
		}
	}
	return false;
}

/* ---- text ------------------------------------------------------------------------------------ */

static struct kymo_error *restore_bytes(struct leaving *leaving, const struct kymo_wire_site *site, uint64_t address,
					const void *bytes, size_t size)
{
	int err = kymo_process_write(leaving->process, address, bytes, size);

	if (err)
		return kymo_error_errno(err, "cannot restore the code at 0x%" PRIx64 " (%s)", site->address,
					site->name);
	leaving->result->sites_restored++;
	return NULL;
}

static void note_corrupt(struct leaving *leaving, uint64_t address)
{
	if (!leaving->n_corrupt++ || address < leaving->first_corrupt)
		leaving->first_corrupt = address;
}

/*
 * The text of a site is written if the entry holds against the maps and the file; the program may have its text
 * writable, and not executable, for a moment. Original bytes are the file's; those of JIT code are in the journal
 * alone.
 */
static bool may_write_text(struct leaving *leaving, const struct kymo_wire_site *site)
{
	const struct kymo_map *map = kymo_maps_at(leaving->maps, site->address);
	bool is_jit = site->flags & KYMO_WIRE_JIT;

	if (!is_jit && map->writable && !map->executable && !leaving->must_go)
		leaving->shared++;
	else if (is_jit ? !kymo_jit_is_map(map)
			: !probe_trust_is_text(map, site) || !probe_trust_original(&leaving->trust, map, site))
		note_corrupt(leaving, site->address);
	else
		return true;
	return false;
}

static struct kymo_error *put_text(struct leaving *leaving, const struct kymo_wire_site *site, const uint8_t *bytes)
{
	return may_write_text(leaving, site) ? restore_bytes(leaving, site, site->address, bytes, site->patch_size)
					     : NULL;
}

/* Our pad is the first of the chain. */
static struct kymo_error *leave_head(struct leaving *leaving, const struct kymo_wire_site *site, uint64_t next)
{
	uint8_t jump[KYMO_JUMP_SIZE];
	struct neighbor behind;

	if (!next || next == site->displaced)
		return put_text(leaving, site, site->original);
	if (!find_neighbor(leaving, site->address, is_inner, next, &behind) ||
	    kymo_encode_jump(site->link, behind.site->entry, jump))
		return put_text(leaving, site, site->original);
	if (!probe_trust_is_link(leaving->maps, site) ||
	    (site->link == site->address && !probe_trust_is_text(kymo_maps_at(leaving->maps, site->address), site))) {
		note_corrupt(leaving, site->address);
		return NULL;
	}
	return restore_bytes(leaving, site, site->link, jump, sizeof(jump));
}

/* Our pad is behind that of `first`, or nowhere. */
static struct kymo_error *leave_middle(struct leaving *leaving, const struct kymo_wire_site *site, uint64_t next,
				       struct neighbor *first)
{
	struct neighbor at = *first;

	for (size_t i = 0; i < leaving->all->n; i++) {
		uint64_t on = next && next != site->displaced ? next : at.site->displaced;

		if (at.next == site->inner && at.next_word)
			return restore_bytes(leaving, site, at.next_word, &on, sizeof(on));
		if (!at.next || !find_neighbor(leaving, site->address, is_inner, at.next, &at))
			break;
	}
	leaving->result->sites_clean++;
	return NULL;
}

static struct kymo_error *leave_guard(struct leaving *leaving, const struct kymo_wire_site *site)
{
	struct neighbor heir;

	if (find_neighbor(leaving, site->address, is_standby, 0, &heir) && heir.site->patch_size == site->patch_size &&
	    kymo_jump_target(site->address, heir.site->patched) == heir.site->entry)
		return put_text(leaving, site, heir.site->patched);
	return put_text(leaving, site, site->original);
}

static void note_modified(struct leaving *leaving, uint64_t address)
{
	if (!leaving->modified++ || address < leaving->first_modified)
		leaving->first_modified = address;
}

/* ---- where text leads ------------------------------------------------------------------------ */

/* Whether the jump of the entry is there to its last byte: in the middle of what a program writes for itself, the few
 * bytes that a pun changes are no proof. */
static bool is_whole(const struct leaving *leaving, const struct kymo_wire_site *site)
{
	return probe_leads_to_link(leaving->process, site->address, site->patch_size, site->link);
}

/* ---- memory of no file ----------------------------------------------------------------------- */

/* Whether nothing is left of what was written there: the program has put something else there, or has fresh memory. */
static bool is_rewritten(const struct kymo_wire_site *site, const uint8_t *now)
{
	size_t kept = 0, zeros = 0;

	for (unsigned int i = 0; i < site->patch_size; i++) {
		kept += now[i] == site->patched[i];
		zeros += !now[i];
	}
	return !kept || zeros == site->patch_size;
}

/* Whether there is nothing (more) to do for the site. */
static bool is_past(struct leaving *leaving, const struct kymo_wire_site *site, const struct kymo_map *map,
		    const uint8_t *now)
{
	if (!(site->flags & KYMO_WIRE_JIT))
		return false;
	if (!kymo_jit_is_map(map) || is_rewritten(site, now)) {
		leaving->rewritten++;
		leaving->result->sites_clean++;
		return true;
	}
	if (!map->writable || leaving->must_go)
		return false;
	leaving->shared++; /* the program may be in the middle of a change */
	return true;
}

/*
 * Whether another build of the library has come to where it was (its file written over): then nothing of this
 * recording's is in its text, however much that looks as it. The few bytes that a jump to a trampoline changes are no
 * proof, and are the file's if it has the same.
 */
static bool is_rebuilt(struct leaving *leaving, const struct kymo_wire_site *site, const struct kymo_map *map,
		       const uint8_t *now)
{
	if (site->flags & KYMO_WIRE_JIT)
		return false;
	return probe_trust_is_of_file(&leaving->trust, map, site->address, now, site->patch_size);
}

/* Whether the site was planned anew: entries of the same short patch can be told apart by where the text leads only.
 */
static bool has_twin(const struct leaving *leaving, const struct kymo_wire_site *site)
{
	for (size_t i = 0; i < leaving->own->n_sites; i++)
		if (&leaving->own->sites[i] != site && leaving->own->sites[i].address == site->address)
			return true;
	return false;
}

/* ---- other tools' breakpoints ---------------------------------------------------------------- */

/* Whether `now` is a jump with another first byte: this recording's, or one to the pad of another at the same site. */
static bool is_rest_of_jump(struct leaving *leaving, const struct kymo_wire_site *site, const uint8_t *now)
{
	uint8_t jump[KYMO_JUMP_SIZE];
	struct neighbor other;
	uint64_t target;

	if (site->patch_size > 1 && !memcmp(now + 1, site->patched + 1, site->patch_size - 1u))
		return true;
	if (site->link != site->address || site->patch_size != KYMO_JUMP_SIZE)
		return false;
	memcpy(jump, now, sizeof(jump));
	jump[0] = site->patched[0];
	target = kymo_jump_target(site->address, jump);
	return target && find_neighbor(leaving, site->address, enters_at, target, &other);
}

/* Whether another tool's breakpoint is on the first byte. Linux 6.18 makes a call of one on a NOP of five bytes. */
static bool has_breakpoint(const struct kymo_wire_site *site, const uint8_t *now)
{
	return now[0] != site->patched[0] && now[0] != site->original[0] &&
	       kymo_uprobe_is_breakpoint(now[0], site->original[0]);
}

/*
 * A breakpoint of another tool's, or what one has left: the first byte is its, or the file's, and the rest may be a
 * jump's. The rest becomes the file's, and the first byte stays: the tool's breakpoint works on, and leaves the file's
 * bytes. Nothing else is there to be left then. False: this is none.
 */
static bool leave_breakpoint(struct leaving *leaving, const struct kymo_wire_site *site, const uint8_t *now,
			     struct kymo_error **error_ret)
{
	const bool is_rest = is_rest_of_jump(leaving, site, now);

	*error_ret = NULL;
	if (site->flags & KYMO_WIRE_JIT ||
	    !(has_breakpoint(site, now) || (now[0] == site->original[0] && now[0] != site->patched[0] && is_rest)))
		return false;
	if (is_rest) {
		if (may_write_text(leaving, site))
			*error_ret = restore_bytes(leaving, site, site->address + 1, site->original + 1,
						   site->patch_size - 1u);
		return true;
	}
	if (now[0] == KYMO_TRAP_BYTE && memcmp(now + 1, site->original + 1, site->patch_size - 1u))
		return false;
	leaving->result->sites_clean++;
	return true;
}

static struct kymo_error *leave_site(struct leaving *leaving, size_t index)
{
	const struct kymo_wire_site *site = &leaving->own->sites[index];
	const struct kymo_map *map = kymo_maps_at(leaving->maps, site->address);
	uint8_t now[KYMO_WIRE_PATCH_MAX];
	struct neighbor first;
	uint64_t next = site->next, target;
	struct kymo_error *error;

	/* The library may have been unloaded; something else may be there. */
	if (site->patch_size > sizeof(now) || !map || map->inode != site->inode ||
	    kymo_process_read(leaving->process, site->address, now, site->patch_size)) {
		leaving->rewritten += site->flags & KYMO_WIRE_JIT && is_installed(leaving->own, index);
		leaving->result->sites_clean++;
		return NULL;
	}
	if (!memcmp(now, site->original, site->patch_size) ||
	    (!is_whole(leaving, site) &&
	     (is_rebuilt(leaving, site, map, now) || is_of_other_recording(leaving, site)))) {
		leaving->result->sites_clean++;
		return NULL;
	}
	if (is_past(leaving, site, map, now))
		return NULL;
	if (leave_breakpoint(leaving, site, now, &error))
		return error;
	if (site->flags & KYMO_WIRE_GUARD) {
		if (!memcmp(now, site->patched, site->patch_size))
			return leave_guard(leaving, site);
		if (!(site->flags & KYMO_WIRE_STANDBY) && is_installed(leaving->own, index) &&
		    !is_of_other_recording(leaving, site) && !is_rebuilt(leaving, site, map, now))
			note_modified(leaving, site->address);
		return NULL;
	}
	target = !(site->flags & KYMO_WIRE_JIT) || is_whole(leaving, site) ? probe_jump_at(leaving->process, site->link)
									   : 0;
	/* A trampoline leads to its pad also when the text does not lead to it any more. */
	if (site->link != site->address && memcmp(now, site->patched, site->patch_size))
		target = 0;
	if (leaving->is_last &&
	    (target == site->entry || (target && find_neighbor(leaving, site->address, enters_at, target, &first))))
		return put_text(leaving, site, site->original);
	if (target == site->entry &&
	    (site->link == site->address ||
	     (!memcmp(now, site->patched, site->patch_size) && (is_whole(leaving, site) || !has_twin(leaving, site)))))
		return leave_head(leaving, site, next);
	if (target && find_neighbor(leaving, site->address, enters_at, target, &first))
		return leave_middle(leaving, site, next, &first);
	/* Bytes that are not this recording's, in a site that it never had. */
	if (is_installed(leaving->own, index) && !is_of_other_recording(leaving, site) &&
	    !is_rebuilt(leaving, site, map, now))
		note_modified(leaving, site->address);
	else
		leaving->result->sites_clean++;
	return NULL;
}

static struct kymo_error *leave_switch(struct leaving *leaving, size_t index)
{
	enum switch_left left = SWITCH_CLEAN;
	struct kymo_error *error =
		probe_turn_off(&leaving->trust, leaving->maps, leaving->own, index, leaving->must_go, &left);

	leaving->result->sites_restored += left == SWITCH_RESTORED;
	leaving->result->sites_clean += left == SWITCH_CLEAN;
	leaving->shared += left == SWITCH_BUSY;
	if (left == SWITCH_MODIFIED)
		note_modified(leaving, leaving->own->sites[index].address);
	if (left == SWITCH_CORRUPT)
		note_corrupt(leaving, leaving->own->sites[index].address);
	return error;
}

/* ---- guards' lists --------------------------------------------------------------------------- */

/* The recording whose guards are in the text now, or NULL. */
static const struct kymo_session *on_duty(const struct leaving *leaving)
{
	for (size_t i = 0; i < leaving->all->n; i++) {
		const struct kymo_session *other = &leaving->all->items[i];

		if (other->inode != leaving->own->inode && kymo_session_has_guards(leaving->process, other))
			return other;
	}
	return NULL;
}

/* Another recording's region looks at the list of `header`'s from now on. Without guards its threads use locks. */
static void point_to_list(struct leaving *leaving, const struct kymo_wire_region *region,
			  const struct kymo_wire_header *header, bool has_guards)
{
	uint64_t word = region->live + KYMO_PAD_LIVE_VFORKS;
	uint8_t state;

	if (!has_guards && !kymo_process_read(leaving->process, region->live, &state, 1) && state == KYMO_PAD_RSEQ)
		kymo_process_write(leaving->process, region->live, &(uint8_t){ KYMO_PAD_LIVE }, 1);
	kymo_process_write(leaving->process, word, &header->vforks, sizeof(header->vforks));
}

/* The recording that has the guards keeps the list of threads that wait for a vfork child: recordings that use ours are
 * told where it is now. */
static void hand_over(struct leaving *leaving)
{
	const struct kymo_session *heir = on_duty(leaving);

	for (size_t i = 0; i < leaving->all->n; i++) {
		const struct kymo_wire_header *header = &leaving->all->items[i].header;

		for (uint32_t k = 0; leaving->all->items[i].inode != leaving->own->inode && k < header->n_regions;
		     k++) {
			uint64_t known;

			if (header->regions[k].live && leaving->own->header.vforks &&
			    !kymo_process_read(leaving->process, header->regions[k].live + KYMO_PAD_LIVE_VFORKS, &known,
					       sizeof(known)) &&
			    known == leaving->own->header.vforks)
				point_to_list(leaving, &header->regions[k], heir ? &heir->header : header,
					      heir != NULL);
		}
	}
}

/* A thread is in the middle of a vfork, as our guards see it. A new owner of them would take it for the child. */
static bool has_listed_threads(const struct leaving *leaving)
{
	struct kymo_wire_vforks list;

	return leaving->own->header.vforks &&
	       !kymo_process_read(leaving->process, leaving->own->header.vforks, &list, sizeof(list)) && list.n > 0 &&
	       list.n <= KYMO_WIRE_MAX_VFORKS;
}

/* Threads in the pads of the dynamic linker and of sigaction wait for a recorder that will not answer any more; no
 * thread could leave their pads meanwhile. */
static void release_waiting(struct leaving *leaving, size_t offset)
{
	const uint64_t address = leaving->own->data + offset;
	struct kymo_wire_watch watch;

	if (!leaving->own->data || kymo_process_read(leaving->process, address, &watch, sizeof(watch)))
		return;
	watch.answers = watch.requests + WATCH_AHEAD;
	watch.given_up = 1;
	kymo_process_write(leaving->process, address + offsetof(struct kymo_wire_watch, answers), &watch.answers,
			   offsetof(struct kymo_wire_watch, signals) - offsetof(struct kymo_wire_watch, answers));
}

/* From now on nothing is handed to this recording, and others see that it is not what it was. */
static void resign(struct leaving *leaving)
{
	const uint64_t has_left = 1;
	struct kymo_wire_words words;

	if (leaving->own->words && !kymo_process_read(leaving->process, leaving->own->words, &words, sizeof(words))) {
		words.generation++;
		words.is_leaving = 1;
		kymo_process_write(leaving->process, leaving->own->words, &words, sizeof(words));
	}
	release_waiting(leaving, offsetof(struct kymo_wire_data, watch));
	release_waiting(leaving, offsetof(struct kymo_wire_data, handlers));
	if (leaving->own->data)
		kymo_process_write(leaving->process, leaving->own->data + offsetof(struct kymo_wire_data, has_left),
				   &has_left, sizeof(has_left));
}

static bool is_last_recording(const struct kymo_session_list *all, const struct kymo_session *own)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->items[i].inode != own->inode && kymo_session_has_recorder(&all->items[i], all->pid))
			return false;
	return true;
}

static struct kymo_error *modified_left(const struct leaving *leaving)
{
	pid_t pid = kymo_process_pid(leaving->process);

	if (leaving->modified == 1)
		return kymo_error_create(KYMO_ERROR_UNSAFE,
					 "1 location in the code of process %d (0x%" PRIx64
					 ") holds bytes that neither kymo nor the file put there; that location and "
					 "the pads are left as they are",
					 pid, leaving->first_modified);
	return kymo_error_create(
		KYMO_ERROR_UNSAFE,
		"%zu locations in the code of process %d (from 0x%" PRIx64
		" on) hold bytes that neither kymo nor the file put there; they and the pads are left as they are",
		leaving->modified, pid, leaving->first_modified);
}

/* The file has no such bytes at these locations, or the journal has others: nothing is written there. */
static struct kymo_error *corrupt_left(const struct leaving *leaving)
{
	return kymo_error_create(
		KYMO_ERROR_BAD_DATA,
		"the journal in process %d cannot be trusted: of %zu of its locations (from 0x%" PRIx64
		" on) it contradicts the mapped files; nothing was written there, and the pads are left as they are",
		kymo_process_pid(leaving->process), leaving->n_corrupt, leaving->first_corrupt);
}

/* Of all tries the first tells: the rest finds the same sites. */
static void tell_rewritten(const struct leaving *leaving)
{
	const char *are = leaving->rewritten == 1 ? "location in code that the program has made is"
						  : "locations in code that the program has made are";

	if (leaving->rewritten && !leaving->result->note &&
	    asprintf(&leaving->result->note,
		     "%zu probed %s gone: it was unmapped, or other code was put there; nothing was recorded from then "
		     "on",
		     leaving->rewritten, are) < 0)
		leaving->result->note = NULL;
}

/* A function's own text is whole after each write of its clone's jumps, in their order. So a jump that has to stay
 * keeps all those that were written before it. */
static bool has_to_wait(const struct leaving *leaving)
{
	return leaving->own->header.arena_address && (leaving->shared || leaving->n_corrupt);
}

struct kymo_error *probe_leave_text(struct kymo_process *process, const struct kymo_maps *maps,
				    const struct kymo_session *own, const struct kymo_session_list *all, bool must_go,
				    bool *stays_ret, struct kymo_detach_result *result)
{
	struct leaving leaving = {
		.process = process,
		.maps = maps,
		.own = own,
		.all = all,
		.result = result,
		.is_last = is_last_recording(all, own),
		.must_go = must_go,
		.trust = { .process = process },
	};
	struct kymo_error *error = NULL;

	*stays_ret = !must_go && has_listed_threads(&leaving);
	if (*stays_ret)
		return NULL;
	resign(&leaving);
	for (size_t i = own->n_sites; i-- > 0 && !error && !has_to_wait(&leaving);)
		error = own->sites[i].flags & KYMO_WIRE_SWITCH ? leave_switch(&leaving, i) : leave_site(&leaving, i);
	if (!error)
		hand_over(&leaving);
	probe_trust_deinit(&leaving.trust);
	*stays_ret = leaving.shared > 0;
	tell_rewritten(&leaving);
	if (!error && leaving.n_corrupt)
		error = corrupt_left(&leaving);
	if (!error && leaving.modified)
		error = modified_left(&leaving);
	return error;
}
