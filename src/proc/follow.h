/* The engines of a tree: what they are told, and what is done at once. */
#ifndef KYMO_PROC_FOLLOW_H
#define KYMO_PROC_FOLLOW_H

#include <sys/types.h>

struct kymo_process;
struct kymo_tree;

/* Have an engine on a thread, or on each of a process: negative errno values as of kymo_engine_attach(). */
int kymo_follow_thread(struct kymo_tree *tree, pid_t tid);
int kymo_follow_process(struct kymo_tree *tree, pid_t pid);

/* A thread whose maker was killed before it could tell: of a member, or the first of a process with an unknown
 * maker. */
void kymo_follow_orphan(void *tree, pid_t tid);

/* The process starts a program when it goes on; it does so no more, if it did; it may have done all without having told
 * anything. */
void kymo_follow_start(struct kymo_process *process);
void kymo_follow_start_is_over(struct kymo_process *process);
void kymo_follow_look_at_start(struct kymo_process *process);

#endif
