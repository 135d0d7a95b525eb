/*
 * System calls that are recorded by kymo, too (`kymo record -s`), are made in a pad. The stack there is what it would
 * be at the location in the text (arch/x86_64/syscall_pad.c), which the recording's journal tells. The journal is in
 * the target's memory: what it says is looked at as everything there.
 */
#include "stack/pads.h"

#include "arch/remote.h"
#include "stack/stack.h"
#include "stack/state.h"
#include "wire/shared.h"

enum { CHUNK = 32 };

bool stack_is_pad(const struct stack_region *region)
{
	return kymo_wire_is_own_path(region->map.path);
}

/* Where the call that ends at `pc` is in the text; 0: the entry is of something else. */
static uint64_t home_by(const struct kymo_wire_site *site, uint64_t pc)
{
	if (site->pad >= pc || pc - site->pad > site->pad_size || site->window != KYMO_REMOTE_CALL ||
	    !kymo_remote_is_syscall(site->original))
		return 0;
	return site->address + KYMO_REMOTE_CALL;
}

static uint64_t search_journal(const struct kymo_stack_thread *thread, uint64_t journal, uint64_t pc)
{
	struct kymo_wire_site sites[CHUNK];
	struct kymo_wire_header header;

	if (!thread->read(thread->context, journal, &header, sizeof(header)) ||
	    header.n_sites > header.journal_capacity || header.journal_capacity > KYMO_WIRE_MAX_SITES)
		return 0;
	for (uint64_t i = 0; i < header.n_sites; i += CHUNK) {
		const size_t n = header.n_sites - i < CHUNK ? (size_t)(header.n_sites - i) : CHUNK;

		if (!thread->read(thread->context, journal + header.journal_offset + i * sizeof(*sites), sites,
				  n * sizeof(*sites)))
			return 0;
		for (size_t k = 0; k < n; k++)
			if (home_by(&sites[k], pc))
				return home_by(&sites[k], pc);
	}
	return 0;
}

uint64_t stack_home(struct stack_space *space, const struct kymo_stack_thread *thread)
{
	const uint64_t pc = thread->registers.rip;
	const size_t at = (pc ^ pc >> 6) % STACK_HOMES;
	uint64_t home = 0;

	if (space->homes[at].pc == pc)
		return space->homes[at].home;
	for (size_t i = 0; i < space->n_journals && !home; i++)
		home = search_journal(thread, space->journals[i], pc);
	space->homes[at].pc = pc;
	space->homes[at].home = home;
	return home;
}
