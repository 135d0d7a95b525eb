/* Mappings. Private to the room. */
#ifndef KYMO_SYSCALL_MEMORY_H
#define KYMO_SYSCALL_MEMORY_H

#include "syscall/decode.h"

extern const struct kind k_prot[1], k_map_flags[1], k_map_offset[1], k_advice[1], k_residence[1], k_remap_flags[1],
	k_msync[1], k_mlockall[1];
extern const struct kind k_mlock2[1];

#endif
