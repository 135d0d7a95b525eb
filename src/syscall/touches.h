/* Which paths a call names. */
#ifndef KYMO_SYSCALL_TOUCHES_H
#define KYMO_SYSCALL_TOUCHES_H

#include <stdbool.h>

struct kymo_syscall_call;
struct kymo_syscall_target;

/* The call's arguments name this path, or a descriptor of it: what -P asks for. */
bool kymo_syscall_touches(const struct kymo_syscall_call *call, const struct kymo_syscall_target *target,
			  const char *path);

#endif
