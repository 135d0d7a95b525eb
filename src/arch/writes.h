/*
 * Pads that write the program's registers and memory (docs/internals/writes.md). An event of which an argument writes
 * (struct kymo_fetch) is the last at its site. Its pad is the last of its chain, and has no watch. Each value is
 * computed of what the registers are before any of the writes.
 *
 * Public header of the room.
 */
#ifndef KYMO_ARCH_WRITES_H
#define KYMO_ARCH_WRITES_H

#include <stdbool.h>

struct kymo_form;
struct kymo_pad_event;

/*
 * In the live page, a u64; that of the first region counts. Until this stamp (TSC) pads write registers. The recorder
 * renews it. A pad takes a stamp before the record, and writes if this one is less than 1 << KYMO_PAD_LEASE_BITS ticks
 * ahead: a clock that was set back ends it, too. A pad that finds it ended makes it 0: nothing is written.
 */
#define KYMO_PAD_LIVE_LEASE 224
#define KYMO_PAD_LEASE_BITS 33

/* Whether a form may be written: it is computed of registers and constants alone, and always has a value. */
bool kymo_form_can_be_written(const struct kymo_form *form);

/* Whether one of the event's arguments is written. */
bool kymo_pad_writes(const struct kymo_pad_event *event);

#endif
