/* The files of mapped code: opened once for all processes. Private to the room. */
#ifndef KYMO_STACK_FILES_H
#define KYMO_STACK_FILES_H

struct kymo_module;
struct kymo_stack_thread;
struct kymo_stacks;
struct stack_file;
struct stack_region;

/* The region's file, opened at the first time; NULL where that can't be. */
struct kymo_module *stack_module(struct kymo_stacks *stacks, struct stack_region *region,
				 const struct kymo_stack_thread *thread);
/* A stack of a record has it: it stays open, as its debug information may be wanted at the end, if that is so and there
 * are not too many of them. */
void stack_file_name(struct kymo_stacks *stacks, struct stack_file *file);

void stack_file_put(struct kymo_stacks *stacks, struct stack_file *file); /* NULL is allowed */
void stack_files_deinit(struct kymo_stacks *stacks);

#endif
