/* Of which hits a record is made. Private to the room. */
#ifndef KYMO_ARCH_X86_64_SAMPLE_H
#define KYMO_ARCH_X86_64_SAMPLE_H

#include "arch/pad.h"
#include "arch/x86_64/code.h"

#define X86_SAMPLE_SIZE_MAX 160u /* code bytes */

bool x86_sample_is_valid(const struct kymo_pad_sample *sample);

/* A jump to `skip` where this hit is none of them. Uses the registers that the frame has. */
void x86_emit_sample(struct code *c, const struct kymo_pad_env *env, const struct kymo_pad_sample *sample,
		     struct label *skip);

#endif
