/* Events that write the program's registers. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_WRITES_H
#define KYMO_ARCH_X86_64_WRITES_H

#include <stdbool.h>

struct code;
struct kymo_fetch;
struct kymo_pad_env;
struct kymo_pad_event;
struct label;
struct x86_pad_site;

/* What the byte in SLOT_WRITES says. */
enum x86_writes {
	X86_WRITES_NOTHING,
	X86_WRITES,        /* a recorder lives: if the record is committed the values are written */
	X86_WRITES_RETURN, /* … it was, and the function returns */
};

#define X86_WRITE_SIZE_MAX 96u /* code bytes of one write in one copy, without its form */

/* Whether what the argument says about writes can be done. */
bool x86_write_is_valid(const struct kymo_fetch *fetch);

/* Whether all writes of the event can be done together. */
bool x86_writes_are_valid(const struct kymo_pad_event *event);

/* Before everything else of the event: nothing is written yet. */
void x86_begin_writes(struct code *c, const struct kymo_pad_event *event);

/* Before the record is composed or begun: decide. rax, rdx and r10 are changed. */
void x86_decide_writes(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event);

/* A jump to `fault` where nothing is written. */
void x86_check_writes(struct code *c, struct label *fault);

/* Right after the record was committed. rax, rdx, r10 and r11 are changed, and what is below the frame. */
void x86_commit_writes(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		       const struct x86_pad_site *site);

/* Whether it is one whose function may return at once. */
bool x86_may_return(const struct kymo_pad_event *event);

/* After such an event, with the frame as it was: a jump to `runs` unless the function returns. */
void x86_check_return(struct code *c, struct label *runs);

#endif
