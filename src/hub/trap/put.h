/* Writing breakpoints into a memory. */
#ifndef KYMO_HUB_TRAP_PUT_H
#define KYMO_HUB_TRAP_PUT_H

#include "kymo/engine.h"

struct hub_break;
struct hub_code;
struct hub_space;

/* A breakpoint at an address that has none: nothing is written, and it has no owner. An int3 that is there is the
 * program's own until hub_put_in(). NULL: memory is out. */
struct hub_break *hub_put_break(struct hub_space *space, uint64_t address);

/* Put it in, by the pad of its address or by a byte; once more, where its code was unmapped and other code is there
 * now. `code` is what is mapped. A negative errno. */
int hub_put_in(struct kymo_hub *hub, struct hub_space *space, struct hub_break *b, const struct hub_code *code);
int hub_put_in_again(struct kymo_hub *hub, struct hub_space *space, struct hub_break *b, const struct hub_code *code);

/* One that is in is by the pad from now on, or by a byte. -EBUSY: the pad's jump is not there; others. All stays then.
 */
int hub_put_by(struct kymo_hub *hub, struct hub_space *space, struct hub_break *b, bool by_pad);

/* It is out. */
void hub_put_strike(struct kymo_hub *hub, struct hub_break *b);

#endif
