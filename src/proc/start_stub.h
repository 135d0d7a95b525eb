/*
 * The start stub of a program: one stop in place of one at each of its dynamic linker's system calls.
 * docs/internals/following.md has the rules, arch/start_stub.h the code.
 */
#ifndef KYMO_PROC_START_STUB_H
#define KYMO_PROC_START_STUB_H

struct kymo_process;

/* Put it into a process of a tree that is stopped at its first instruction, if nothing is known to be against it:
 * process->startup.stub tells. */
void kymo_start_stub_put(struct kymo_process *process);

/* Take it out of a stopped process; its thread is taken out of it, too. */
void kymo_start_stub_take(struct kymo_process *process);

#endif
