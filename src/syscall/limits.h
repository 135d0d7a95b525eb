/* Resources, capabilities, and the system. Private to the room. */
#ifndef KYMO_SYSCALL_LIMITS_H
#define KYMO_SYSCALL_LIMITS_H

#include "syscall/decode.h"

extern const struct names capability_names;

extern const struct kind k_resource[1], k_rlimit[1], k_rlimit_out[1], k_rusage_who[1], k_uname[1], k_sysinfo[1],
	k_times[1];
extern const struct kind k_capability_header[1], k_capability_data[1], k_capability_out[1];

#endif
