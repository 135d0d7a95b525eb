/* personality. Private to the room. */
#ifndef KYMO_SYSCALL_PERSONALITY_H
#define KYMO_SYSCALL_PERSONALITY_H

#include "syscall/decode.h"

void result_personality(struct decode *d);

extern const struct kind k_personality[1];

#endif
