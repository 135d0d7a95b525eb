/* Writing breakpoints: a byte, or the word of a pad. The journal comes first. */
#include "hub/trap/put.h"

#include <errno.h>
#include <string.h>

#include "arch/trap.h"
#include "base/page.h"
#include "hub/thread/task.h"
#include "hub/trap/break.h"
#include "hub/trap/keeper.h"
#include "hub/trap/pad.h"
#include "procfs/memory.h"

void hub_put_strike(struct kymo_hub *hub, struct hub_break *b)
{
	hub_strike(hub, b->entry);
	b->entry = -1;
}

/* Up to the end of the page. */
static void read_next(struct hub_space *space, struct hub_break *b)
{
	b->n_next = (uint8_t)(kymo_page_part(b->address, 1 + sizeof(b->next)) - 1);
	if (hub_space_read(space, b->address + 1, b->next, b->n_next))
		b->n_next = 0;
}

/* The word is noted, and then set; it is not 0 for as long as a thread can run. */
static int put_in_by_pad(struct kymo_hub *hub, const struct hub_space *space, struct hub_break *b,
			 const struct hub_pad *pad)
{
	b->entry = hub_note_word(hub, space->memory->opened.fd, pad->word);
	if (b->entry < 0)
		return b->entry;
	b->by_pad = true;
	b->is_void = b->is_in_jump = false;
	hub_pad_arm(space, pad, !space->is_disarmed);
	return 0;
}

/* Note it, then write it. If no thread can run, it is disarmed at once; that it can be written is tried with the byte
 * that is there. */
static int put_in_byte(struct kymo_hub *hub, struct hub_space *space, struct hub_break *b)
{
	int err = 0;

	b->entry = hub_note_byte(hub, space->memory->opened.fd, b->address, b->original);
	if (b->entry < 0)
		return b->entry;
	b->by_pad = b->is_void = false;
	if (b->original != KYMO_TRAP_BYTE)
		err = kymo_memory_write(&space->memory->opened, b->address,
					&(uint8_t){ space->is_disarmed ? b->original : KYMO_TRAP_BYTE }, 1);
	if (err) {
		hub_put_strike(hub, b);
		return err;
	}
	b->is_in_jump = false;
	return 0;
}

int hub_put_in(struct kymo_hub *hub, struct hub_space *space, struct hub_break *b, const struct hub_code *code)
{
	const struct hub_pad *pad = hub_pad_at(space, b->address);
	int err = kymo_memory_read(&space->memory->opened, b->address, &b->original, 1);

	if (err)
		return err;
	read_next(space, b);
	b->code = *code;
	return pad && pad->is_used && hub_pad_is_written(space, pad) ? put_in_by_pad(hub, space, b, pad)
								     : put_in_byte(hub, space, b);
}

/* Once more, where its code was unmapped and other code is there now. */
int hub_put_in_again(struct kymo_hub *hub, struct hub_space *space, struct hub_break *b, const struct hub_code *code)
{
	int err;

	hub_put_strike(hub, b);
	err = hub_put_in(hub, space, b, code);
	b->is_void = err;
	return err;
}

/* The trap is in before the byte is out, so no thread passes unseen. */
static int change_to_pad(struct kymo_hub *hub, struct hub_space *space, struct hub_break *b, const struct hub_pad *pad)
{
	const int before = b->entry;
	int err = put_in_by_pad(hub, space, b, pad);

	if (err) {
		b->entry = before;
		return err;
	}
	if (!space->is_disarmed)
		hub_space_swap(space->memory, b->address, KYMO_TRAP_BYTE, b->original);
	hub_strike(hub, before);
	return 0;
}

static int change_to_byte(struct kymo_hub *hub, struct hub_space *space, struct hub_break *b)
{
	const struct hub_pad *pad = hub_pad_at(space, b->address);
	const int before = b->entry;
	int err = kymo_memory_read(&space->memory->opened, b->address, &b->original, 1);

	if (!err)
		err = put_in_byte(hub, space, b);
	if (err) {
		b->entry = before;
		return err;
	}
	if (pad)
		hub_pad_arm(space, pad, false);
	hub_strike(hub, before);
	return 0;
}

int hub_put_by(struct kymo_hub *hub, struct hub_space *space, struct hub_break *b, bool by_pad)
{
	const struct hub_pad *pad = hub_pad_at(space, b->address);

	if (!b->owners || b->is_void || b->by_pad == by_pad)
		return 0;
	if (!by_pad)
		return change_to_byte(hub, space, b);
	return pad && hub_pad_is_written(space, pad) ? change_to_pad(hub, space, b, pad) : -EBUSY;
}

struct hub_break *hub_put_break(struct hub_space *space, uint64_t address)
{
	size_t i = hub_space_index_of(space, address);

	if (!kymo_vec_reserve(&space->breaks, space->breaks.n + 1))
		return NULL;
	memmove(&space->breaks.items[i + 1], &space->breaks.items[i],
		(space->breaks.n - i) * sizeof(space->breaks.items[0]));
	space->breaks.n++;
	space->breaks.items[i] = (struct hub_break){ .address = address, .original = KYMO_TRAP_BYTE, .entry = -1 };
	return &space->breaks.items[i];
}
