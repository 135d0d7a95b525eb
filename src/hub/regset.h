/* What the stub does to threads that an engine has stopped, beside the calls of include/kymo/engine.h. */
#ifndef KYMO_HUB_REGSET_H
#define KYMO_HUB_REGSET_H

#include <stddef.h>

struct kymo_engine;

/*
 * The extended state (NT_X86_XSTATE) of a stopped thread: in callbacks, and while the engine's STOP holds. Reading
 * stores at most `size` bytes, and how many there are. Writing takes an image that was read.
 *
 *   -EAGAIN   the thread is not stopped
 *   -ESRCH    it is dead, or the engine is detached
 *   -ENODEV   the processor has none
 *   -E2BIG    of another process' hub: it is larger than a message may be
 */
int kymo_engine_get_xstate(struct kymo_engine *engine, void *ret, size_t size, size_t *size_ret);
int kymo_engine_set_xstate(struct kymo_engine *engine, const void *image, size_t size);

/*
 * The thread comes to the breakpoint at its address as if it had not been told of it: when it goes on, that is a hit.
 * As if its program counter had been changed, and changed back.
 *
 *   -EAGAIN   the thread is not stopped
 *   -ESRCH    it is dead, or the engine is detached
 */
int kymo_engine_hit_again(struct kymo_engine *engine);

/* Rows of the table in local.c. */
int hub_local_get_xstate(struct kymo_engine *engine, void *ret, size_t size, size_t *size_ret);
int hub_local_set_xstate(struct kymo_engine *engine, const void *image, size_t size);
int hub_local_hit_again(struct kymo_engine *engine);

#endif
