/* Threads that make system calls for a owner. */
#ifndef KYMO_HUB_FREEZE_REMOTE_CALL_H
#define KYMO_HUB_FREEZE_REMOTE_CALL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

struct kymo_hub;
struct hub_owner;
struct hub_message;
struct hub_process;
struct task;

int64_t hub_remote_call_begin(struct hub_owner *owner, struct hub_message *message, uint8_t *memory);
int64_t hub_remote_call_make(struct hub_owner *owner, struct hub_message *message, uint8_t *memory);
int64_t hub_remote_call_end(struct hub_owner *owner, struct hub_message *message, uint8_t *memory);

#endif
