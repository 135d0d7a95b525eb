/*
 * What planning has to know of a process's text beside the files: which bytes are changed, or will be when all that is
 * planned is in, and which of them jumps rely on. Addresses are the target's. Pure. Private to the room.
 */
#ifndef KYMO_PROBE_COEXIST_TEXT_H
#define KYMO_PROBE_COEXIST_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct text_page;

struct probe_text {
	KYMO_VEC(struct text_page *) pages; /* sorted by address */
};

void probe_text_deinit(struct probe_text *text);

/* Change those of the bytes at `address`, given as the file has them, that are changed. */
void probe_text_look(const struct probe_text *text, uint64_t address, uint8_t *bytes, size_t size);

enum probe_text_mark {
	TEXT_CHANGED,  /* probe_text_look() tells to what */
	TEXT_LOCKED,   /* may not be changed: part of a jump, or of what a jump displaces */
	TEXT_UNSTEADY, /* a third party's, which may change it at any time: another recording's, a marker's */
	TEXT_WANTED,   /* a probe will be planned on the instruction that begins here */
	TEXT_PENDING,  /* changed in what is planned, and not yet in the process */
	TEXT_SWITCH,   /* the NOP that turns a marker on */
	TEXT_MODIFIED, /* neither what the file has nor kymo's: a breakpoint, or whatever else has patched it */
	N_TEXT_MARKS,
};

bool probe_text_is(const struct probe_text *text, enum probe_text_mark mark, uint64_t address, size_t size);

/* Set or clear a mark on some bytes. False when memory is out; nothing is changed then. */
bool probe_text_mark(struct probe_text *text, enum probe_text_mark mark, uint64_t address, size_t size, bool on);

/* The bytes will be these. Marks them as changed. False when memory is out. */
bool probe_text_write(struct probe_text *text, uint64_t address, const uint8_t *bytes, size_t size);

#endif
