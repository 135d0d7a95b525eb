/*
 * The start stub of a program: one stop in place of one at each of its dynamic linker's system calls.
 * docs/internals/following.md has the rules, arch/start_stub.h the code.
 */
#ifndef KYMO_PROC_START_STUB_H
#define KYMO_PROC_START_STUB_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/start_stub.h"

struct kymo_map;
struct kymo_maps;
struct kymo_process;

/* Put it into a process of a tree that stands at its first instruction, if all is known to be well there:
 * process->startup.stub.is_in tells. */
void kymo_start_stub_put(struct kymo_process *process);

/* Take it out of a process that stands still; its thread is taken out of it, too. */
void kymo_start_stub_take(struct kymo_process *process);

/* ---- for left_stub.c ------------------------------------------------------------------------- */

/* What the file has where a stub goes. */
extern const uint8_t kymo_start_zeros[KYMO_START_STUB];

/* The linker's text, as it was mapped from the file that is mapped at `linker`; NULL: there is none, or several. */
const struct kymo_map *kymo_start_text(const struct kymo_maps *maps, uint64_t linker);

/* Both addresses lie in the mapping, and nothing that is written crosses a page. */
bool kymo_start_is_within(const struct kymo_map *text, uint64_t site, uint64_t stub);

/* Take the stub at `at` out of a process that stands still. False: some of it is left. */
bool kymo_start_take_out(struct kymo_process *process, uint64_t at, uint64_t site, bool *has_called_ret);

#endif
