/*
 * The library's lock, and what is freed once no reader can have hold of it. Private to the library.
 */
#ifndef KYMO_LIB_LOCK_H
#define KYMO_LIB_LOCK_H

#include <link.h>
#include <stdbool.h>

/* What is freed once no thread can have got it from a slot, a marker or a list any more: the first member of such
 * structures. */
struct lib_retired {
	struct lib_retired *next;
	void (*free)(struct lib_retired *retired);
};

/* Of each thread. Static TLS: passing a marker must not allocate. */
struct lib_thread {
	unsigned int in_probe;     /* how deep; such a thread must not wait for readers */
	unsigned int in_loader;    /* in kymo_lib_iterate() */
	struct lib_reader *reader; /* NULL: it has none yet */
	bool forks_with_lock;
};
extern _Thread_local struct lib_thread kymo_lib_thread __attribute__((tls_model("initial-exec")));

static inline bool kymo_lib_is_in_probe(void)
{
	return kymo_lib_thread.in_probe > 0;
}

/* Whether this thread has the lock. */
bool kymo_lib_has_lock(void);

/* The lock alone; kymo_lib_enter() is what a change begins with. -EDEADLK where this thread has it. */
int kymo_lib_lock(void);
void kymo_lib_unlock(void);

/* Release the lock, wait for readers as kymo_lib_leave() says, free what was retired. */
void kymo_lib_unlock_and_wait(bool wait);

/* Free it after the lock was released, once all readers of now have ended. The lock is held. NULL is allowed. */
void kymo_lib_retire(struct lib_retired *retired);

/* The lock is held: all threads that are to be waited for are readers now. Without this, or where something was retired
 * since, kymo_lib_leave() waits for the readers that there are then. */
void kymo_lib_begin_grace(void);

/* dl_iterate_phdr(), during which no other thread forks: the loader's lock for it would stay locked in the child. */
int kymo_lib_iterate(int (*visit)(struct dl_phdr_info *info, size_t size, void *data), void *data);

#endif
