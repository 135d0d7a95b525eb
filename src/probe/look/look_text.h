/* The bytes that a look has read. Private to the room. */
#ifndef KYMO_PROBE_LOOK_LOOK_TEXT_H
#define KYMO_PROBE_LOOK_LOOK_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_look;

/* The `size` bytes at `address`, as this look has read them; false where it has not. */
bool look_bytes(const struct kymo_look *look, uint64_t address, uint8_t *out, size_t size);

/* Read all stretches. What cannot be read is taken for unchanged, if it has been read before. */
void look_read(struct kymo_look *look);

#endif
