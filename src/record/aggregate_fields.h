/* Fields of records that the recorder reads. Private to the room. */
#ifndef KYMO_RECORD_AGGREGATE_FIELDS_H
#define KYMO_RECORD_AGGREGATE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "ctf/ctf.h"

/* Bytes of the field at `at`, which is in a record that is whole. */
size_t aggregate_field_size(const struct kymo_ctf_field *field, const uint8_t *at);

/* The value of an integer field, extended to 64 bits by its sign. */
uint64_t aggregate_field_value(const uint8_t *at, enum kymo_type type);

/* A stamp of which `low` has 44 bits, near `base`. */
uint64_t aggregate_whole_stamp(uint64_t low, uint64_t base);

#endif
