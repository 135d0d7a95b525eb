/* A thread that is traced. */
#ifndef KYMO_NESTED_STOP_H
#define KYMO_NESTED_STOP_H

#include "nested/inner.h"

/* It stands so from now on, and its tracer is told. `info`: NULL: what belongs to the code. */
void inner_stop(struct inner_thread *thread, enum inner_stop stop, int code, const siginfo_t *info,
		unsigned long message);

/* It is not traced before this, and is to stop if `stops`. */
void inner_trace(struct inner_thread *thread, struct inner_thread *tracer, bool is_seized, unsigned int options,
		 bool stops);

/* Whether the kernel tells its tracer of its end. */
void inner_find_parent(struct inner_thread *thread);

/* Let it go on, as its tracer wants. A negative errno. */
int inner_resume(struct inner_thread *thread, enum inner_mode mode, int signal);

/* No process traces it any more; it goes on. `signal`: as of inner_resume(). */
void inner_untrace(struct inner_thread *thread, int signal);

/* Make it stop soon. */
void inner_interrupt(struct inner_thread *thread);

/* It is stopped. Whether a stop that was owed is made now. */
bool inner_make_owed(struct inner_thread *thread);

/* Its tracer has ended. */
void inner_lose_tracer(struct inner_thread *thread);

#endif
