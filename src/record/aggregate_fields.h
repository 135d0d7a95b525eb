/* Fields of records that the recorder reads. Private to the room. */
#ifndef KYMO_RECORD_AGGREGATE_FIELDS_H
#define KYMO_RECORD_AGGREGATE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

#include "ctf/ctf.h"

/* Bytes of the field at `at`, which is in a record that is whole. */
size_t aggregate_field_size(const struct kymo_ctf_field *field, const uint8_t *at);

#endif
