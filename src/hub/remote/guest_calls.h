/* At the hub: what a connected process asks for. */
#ifndef KYMO_HUB_REMOTE_GUEST_CALLS_H
#define KYMO_HUB_REMOTE_GUEST_CALLS_H

#include "kymo/engine.h"

struct hub_guest;
struct hub_message;

/* The callbacks of its engines. */
extern const struct kymo_engine_ops hub_guest_ops;

/* Do what `message` asks for, and make the reply of it. The memory is the message's, and the reply's. Closes `proof`, a
 * descriptor that came along, or -1. */
void hub_guest_run(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof);

/* On the hub's thread, in a callback: have the guest prove again that it may trace `tid`. */
bool hub_guest_proves(struct hub_guest *guest, pid_t tid);

/* On the hub's thread: have it told, and put the answer in place of the message. False: it is lost. */
bool hub_guest_ask(struct hub_guest *guest, struct hub_message *message);

/* The last reference to an engine of a guest was put. */
void hub_guest_release(struct kymo_engine *engine);

#endif
