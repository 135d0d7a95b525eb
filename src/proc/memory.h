/* The memory of a process, its mappings, and its status. */
#ifndef KYMO_PROC_MEMORY_H
#define KYMO_PROC_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_maps;
struct kymo_process;
struct kymo_process_info;

/*
 * The mappings of `process`, for kymo_maps_deinit(). While a followed process is frozen they are read once, and again
 * after each remote call. Errors as kymo_maps_read() has them.
 */
struct kymo_error *kymo_process_maps(struct kymo_process *process, struct kymo_maps *ret);

/*
 * What kymo_process_peek_status() tells of `process`, or false. While a followed process is frozen it is read once:
 * what remote calls change of it is as it was before them.
 */
bool kymo_process_status(struct kymo_process *process, struct kymo_process_info *ret);

/*
 * Whole reads and writes of memory, of running or stopped processes, read-only text too. Negative errno; -EIO where
 * unmapped. A write within one page is one copy: it is made or not made, also if this process is killed.
 */
int kymo_process_read(struct kymo_process *process, uint64_t address, void *data, size_t size);
int kymo_process_write(struct kymo_process *process, uint64_t address, const void *data, size_t size);

#endif
