/* Threads that make system calls for a holder. */
#ifndef KYMO_HUB_FREEZE_BORROW_H
#define KYMO_HUB_FREEZE_BORROW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

struct kymo_hub;
struct hub_holder;
struct hub_message;
struct hub_process;
struct task;

int64_t hub_borrow_begin(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);
int64_t hub_borrow_call(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);
int64_t hub_borrow_end(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);

#endif
