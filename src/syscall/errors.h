/* Errors by name. */
#ifndef KYMO_SYSCALL_ERRORS_H
#define KYMO_SYSCALL_ERRORS_H

#include <stdbool.h>

struct kymo_line;
struct kymo_syscall_call;

/* "-1 ENOENT (No such file or directory)", "? ERESTARTSYS (To be restarted if SA_RESTART is set)". */
void syscall_put_error(struct kymo_line *text, int number);

bool kymo_syscall_failed(const struct kymo_syscall_call *call);

/* "ENOENT" for 2, also the kernel's own ERESTARTSYS and its like; NULL for what has no name. */
const char *kymo_syscall_errno(int number);

#endif
