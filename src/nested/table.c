/* The threads of the tree, by their ids. */
#include "kymo/engine.h"
#include "nested/inner.h"
#include "nested/table.h"

struct inner_thread *inner_find(const struct kymo_inner *inner, pid_t tid)
{
	struct inner_thread *thread = tid > 0 ? inner->buckets[(unsigned int)tid % INNER_BUCKETS] : NULL;

	while (thread && thread->tid != tid)
		thread = thread->next;
	return thread;
}

struct inner_thread *inner_next(const struct kymo_inner *inner, const struct inner_thread *thread)
{
	unsigned int bucket = 0;

	if (thread && thread->next)
		return thread->next;
	if (thread)
		bucket = (unsigned int)thread->tid % INNER_BUCKETS + 1;
	while (bucket < INNER_BUCKETS && !inner->buckets[bucket])
		bucket++;
	return bucket < INNER_BUCKETS ? inner->buckets[bucket] : NULL;
}

void inner_add(struct inner_thread *thread)
{
	struct inner_thread **bucket = &thread->owner->buckets[(unsigned int)thread->tid % INNER_BUCKETS];

	thread->next = *bucket;
	*bucket = thread;
}

void inner_forget(struct inner_thread *thread)
{
	struct inner_thread **at = &thread->owner->buckets[(unsigned int)thread->tid % INNER_BUCKETS];

	while (*at && *at != thread)
		at = &(*at)->next;
	if (*at)
		*at = thread->next;
}

void inner_involve(struct inner_thread *thread)
{
	if (!thread->is_involved && thread->state != INNER_DEAD)
		thread->is_involved =
			!kymo_engine_set_events(thread->engine, INNER_ALWAYS | KYMO_EVENT_QUIESCE | KYMO_EVENT_EXIT);
}
