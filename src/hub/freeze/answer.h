/* Requests of owners. */
#ifndef KYMO_HUB_FREEZE_ANSWER_H
#define KYMO_HUB_FREEZE_ANSWER_H

#include "kymo/engine.h"

struct hub_owner;
struct hub_message;

/* Do what a message of an owner asks for. -EINVAL: another kind of message. */
int64_t hub_freeze_run(struct hub_owner *owner, struct hub_message *message, uint8_t *memory);

#endif
