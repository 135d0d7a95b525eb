/* The threads of the tree, by their ids. */
#ifndef KYMO_NESTED_TABLE_H
#define KYMO_NESTED_TABLE_H

#include "nested/inner.h"

/* Events of every thread's engine. */
#define INNER_ALWAYS \
	(KYMO_EVENTS_SYSCALL | KYMO_EVENTS_SIGNAL | KYMO_EVENT_CLONE | KYMO_EVENT_EXEC | KYMO_EVENT_JCTL | \
	 KYMO_EVENT_DEATH | KYMO_EVENT_REAP)

void inner_add(struct inner_thread *thread);
void inner_forget(struct inner_thread *thread);

struct inner_thread *inner_find(const struct kymo_inner *inner, pid_t tid);

/* The first one, or the one after `thread`; NULL: there is none. */
struct inner_thread *inner_next(const struct kymo_inner *inner, const struct inner_thread *thread);

/* It traces or is traced from now on: it is told what belongs to that. */
void inner_involve(struct inner_thread *thread);

#endif
