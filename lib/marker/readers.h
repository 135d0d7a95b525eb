/*
 * The threads that read what markers say, and how long until all that did have ended. Private to the library.
 */
#ifndef KYMO_LIB_READERS_H
#define KYMO_LIB_READERS_H

#include "markers.h"

/* Of one thread, on a line of the cache of its own. */
struct lib_reader {
	_Alignas(64) unsigned long section; /* the epoch of the section that the thread is in; 0: it is in none */
	bool is_taken;
};

extern unsigned long kymo_lib_epoch; /* odd, so never 0 */

/* The first time in a thread; with signals blocked. NULL: no memory. */
struct lib_reader *kymo_lib_take_reader(void);

/*
 * A section: what is loaded in it, by loads that are sequentially consistent, is not freed before its end. No lock, no
 * system call but for the first one of a thread. Sections do not nest. NULL: no memory, and there is no section.
 */
static inline struct lib_reader *kymo_lib_begin_reading(void)
{
	struct lib_reader *reader = kymo_lib_thread.reader;

	if (!reader) {
		reader = kymo_lib_take_reader();
		if (!reader)
			return NULL;
	}
	__atomic_store_n(&reader->section, __atomic_load_n(&kymo_lib_epoch, __ATOMIC_ACQUIRE), __ATOMIC_SEQ_CST);
	return reader;
}

static inline void kymo_lib_end_reading(struct lib_reader *reader)
{
	__atomic_store_n(&reader->section, 0, __ATOMIC_RELEASE); /* with the loads of kymo_lib_wait_for_readers() */
}

/* Begin another epoch: what was taken out before this, by stores that are sequentially consistent, is in no thread's
 * hands once the result was waited for. */
unsigned long kymo_lib_next_epoch(void);

/* Until all sections have ended that had begun before that epoch. No lock is held; the caller is in no section. */
void kymo_lib_wait_for_readers(unsigned long epoch);

/* In the child of a fork(): the parent's other threads read nothing here. */
void kymo_lib_forget_readers(void);

#endif
