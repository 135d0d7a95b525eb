/* Where a start stub goes: the call in the dynamic linker that it makes in its place, and the zeros after the linker's
 * text. Private to the room. */
#ifndef KYMO_PROC_STUB_SITE_H
#define KYMO_PROC_STUB_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "arch/start_stub.h"

struct kymo_map;
struct kymo_maps;
struct kymo_process;

/* What the file has where a stub goes. */
extern const uint8_t kymo_start_zeros[KYMO_START_STUB];

/* The linker's text, as it was mapped from the file that is mapped at `linker`; NULL: there is none, or several. */
const struct kymo_map *kymo_start_text(const struct kymo_maps *maps, uint64_t linker);

/* Both addresses lie in the mapping, and nothing that is written crosses a page. */
bool kymo_start_is_within(const struct kymo_map *text, uint64_t site, uint64_t stub);

/* The addresses of both in a process that is stopped at the linker's first instruction. What was found in the linker of
 * the tree's last program is kept for the next one. False: this linker has no such call, or no zeros. */
bool kymo_start_find(struct kymo_process *process, const struct kymo_map *text, uint64_t *site_ret, uint64_t *stub_ret);

#endif
