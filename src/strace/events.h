/* System calls and signals as they are seen, by either source. */
#ifndef KYMO_STRACE_EVENTS_H
#define KYMO_STRACE_EVENTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct kymo_strace;
struct strace_thread;

/* A call is made. Then is_shown is to be set, what is shown is to be shown, and entered_ns to be set. */
void strace_enter(struct strace_thread *thread, uint64_t number, const uint64_t args[6], uint64_t stack_pointer);
void strace_set_mode(struct strace_thread *thread, bool is_i386); /* of the call that was entered */
void strace_show_entry(struct strace_thread *thread);
void strace_leave(struct strace_thread *thread, int64_t result, uint64_t now_ns);
void strace_signal(struct strace_thread *thread, const siginfo_t *info);
void strace_end_call(struct strace_thread *thread); /* that does not return, as its thread has died */
void strace_end(struct strace_thread *thread, int status);

/* Nothing more is seen, of any thread or of one: what was begun stays without an end. */
void strace_let_go(struct kymo_strace *s);
void strace_let_go_of(struct strace_thread *thread);

#endif
