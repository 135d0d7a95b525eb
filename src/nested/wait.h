/* Threads that wait for those that they trace. */
#ifndef KYMO_NESTED_WAIT_H
#define KYMO_NESTED_WAIT_H

#include "nested/inner.h"

bool inner_is_wait(uint64_t number);

/* At its entry. True: the thread stays here. */
bool inner_wait_entered(struct inner_thread *thread);

/* At its exit, with what the kernel gives. */
void inner_wait_left(struct inner_thread *thread, int64_t result);

/* Something is to be told of `thread` to `tracer`, by SIGCHLD with this code and status too. */
void inner_tell(struct inner_thread *tracer, const struct inner_thread *thread, int code, int status);

/* The held threads of process `pid` look for their children again. */
void inner_wake(struct kymo_inner *inner, pid_t pid);

/* Whether a held thread goes on because of a signal. */
bool inner_is_signalled(const struct inner_thread *thread);
void inner_let_wait(struct inner_thread *thread);

/* It ends, or is let go of. */
void inner_forget_wait(struct inner_thread *thread);

int inner_start_clock(struct kymo_inner *inner);
void inner_stop_clock(struct kymo_inner *inner);

#endif
