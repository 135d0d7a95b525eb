/*
 * What compiled code leaves to the library. Private to the library; x86-64 only.
 */
#ifndef KYMO_LIB_RECORD_SLOW_H
#define KYMO_LIB_RECORD_SLOW_H

#include <stdint.h>

#include "wire/event.h"

/* rings.slow. */
void kymo_record_slow(void);

/* Types of the arguments of each event, by id: KYMO_RECORD_TYPES in each chunk. Grows only. */
#define RECORD_CHUNK 1024
#define RECORD_CHUNKS ((KYMO_EVENT_ID_MAX + 1) / RECORD_CHUNK)
extern const uint32_t *kymo_record_types[RECORD_CHUNKS];

/* Of each thread: its id, where the control block does not tell; 0: not asked for yet. */
extern _Thread_local uint32_t kymo_record_tid __attribute__((tls_model("initial-exec")));

#endif
