/* The image of guest.c, to be copied to the start of a pad region. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_GUEST_H
#define KYMO_ARCH_X86_64_GUEST_H

#include <stdint.h>

struct kymo_guest_image {
	const uint8_t *bytes;
	uint32_t size;
	uint32_t take, switch_;		/* offsets of the entries */
};

void kymo_guest_image(struct kymo_guest_image *ret);

#endif
