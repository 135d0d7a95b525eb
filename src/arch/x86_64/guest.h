/* The image of guest.c, to be copied to the start of a pad region. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_GUEST_H
#define KYMO_ARCH_X86_64_GUEST_H

#include <stdint.h>

/* What `change` gives besides 0 (the record was lost, and counted). */
#define KYMO_GUEST_AGAIN 1	/* there is room: run the sequence again */
#define KYMO_GUEST_LOCKED 2	/* another thread is changing the sub-buffer: use a ring with a lock */

struct kymo_guest_image {
	const uint8_t *bytes;
	uint32_t size;
	/* offsets of the entries */
	uint32_t take, switch_, change, vfork;
};

void kymo_guest_image(struct kymo_guest_image *ret);

#endif
