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
void stack_file_put(struct kymo_stacks *stacks, struct stack_file *file); /* NULL is allowed */
void stack_files_deinit(struct kymo_stacks *stacks);

#endif
