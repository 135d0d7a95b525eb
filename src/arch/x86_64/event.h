/* The code that writes the record of one event. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_EVENT_H
#define KYMO_ARCH_X86_64_EVENT_H

#include "arch/pad.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/frame.h"

/* Places in the code of one event that the parts of it lead to. Zeroed before the first. */
struct x86_event_code {
	struct label state, full, broken, large, unregistered, not_glibcs, vfork; /* hot code's ways out */
	struct label locked; /* to the form with a lock, the tid in its slot */
	size_t restart, end; /* of the hot code */
};

/* What a sequence does with the slot of the stamp. Reading the counter is most of what a record costs. */
struct x86_stamp_use {
	bool takes;  /* another thread may have left a stamp there: it is used, unless the ring has a later one already
		      */
	bool leaves; /* another recording may come after this one */
};

/*
 * By a restartable sequence. The hot code goes on after itself; `descriptor[2]` is where the struct rseq_cs will be in
 * the code, the rest is filled in. The cold code belongs to it: other states, full sub-buffers, and the form with a
 * lock.
 */
void x86_event_sequence(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
			const struct x86_pad_site *site, struct x86_event_code *parts, uint64_t descriptor[3],
			struct x86_stamp_use use);
void x86_event_cold(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		    const struct x86_pad_site *site, struct x86_event_code *parts);

/* The struct rseq_cs at its place, and here the abort handler, which goes to `restart`. */
void x86_event_descriptor(struct code *c, const uint64_t descriptor[3], size_t restart);

/* Where no thread has restartable sequences: by a lock, in line, and after the way out the other states. */
void x86_event_plain(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_event *event,
		     const struct x86_pad_site *site, struct x86_event_code *parts);
void x86_event_plain_states(struct code *c, const struct kymo_pad_env *env, struct x86_event_code *parts);

#endif
