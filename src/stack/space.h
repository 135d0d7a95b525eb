/* The code that processes have mapped, as it changes. The room's front door includes it. */
#ifndef KYMO_STACK_SPACE_H
#define KYMO_STACK_SPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct kymo_stack_thread;
struct kymo_stacks;
struct stack_region;
struct stack_space;

/* The space of a thread's process, as it is now or was a moment ago. NULL: memory is out, or it can't be read. */
struct stack_space *stack_space_of(struct kymo_stacks *stacks, const struct kymo_stack_thread *thread);

/* Read it again, unless that was done a moment ago. All regions are others then. */
bool stack_space_renew(struct kymo_stacks *stacks, struct stack_space *space, const struct kymo_stack_thread *thread);

/* The region of an address, or NULL. */
struct stack_region *stack_region_at(struct stack_space *space, uint64_t address);

/* NULL when memory is out. */
struct kymo_stacks *kymo_stacks_create(void);
void kymo_stacks_destroy(struct kymo_stacks *stacks);

/* Process `pid` has, or will have, other code mapped than before. Changes that are not reported are found out up to 0.1
 * s later. */
void kymo_stacks_changed(struct kymo_stacks *stacks, pid_t pid);

/*
 * A process whose stacks come from records, some time after they were: note what it has mapped now, and open the files.
 * `number` stands for it from now on, in place of `pid` of struct kymo_stack_thread. What it has had mapped stays known
 * when it has ended, or has no recording of kymo's mapped any more: then its id is another program's.
 */
void kymo_stacks_note(struct kymo_stacks *stacks, pid_t number, pid_t pid);

/* It executes another program, or is gone. */
void kymo_stacks_forget(struct kymo_stacks *stacks, pid_t pid);

#endif
