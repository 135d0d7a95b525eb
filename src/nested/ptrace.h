/* What ptrace() means there. */
#ifndef KYMO_NESTED_PTRACE_H
#define KYMO_NESTED_PTRACE_H

#include "nested/inner.h"

/* At the exit of ptrace(), with what the kernel gives. */
void inner_ptrace_left(struct inner_thread *thread, int64_t result);

#endif
