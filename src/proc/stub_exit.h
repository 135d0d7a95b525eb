/* Out of a start stub: its threads, and the text. Private to the room. */
#ifndef KYMO_PROC_STUB_EXIT_H
#define KYMO_PROC_STUB_EXIT_H

#include <stdbool.h>
#include <stdint.h>

struct kymo_process;

/* Take the stub at `at` out of a stopped process, and its threads out of the stub. `has_called_ret`: set where a thread
 * has made the call in it. False: some of it is left. */
bool kymo_start_take_out(struct kymo_process *process, uint64_t at, uint64_t site, bool *has_called_ret);

#endif
