/* The seccomp filter of picked calls. */
#ifndef KYMO_HUB_FILTER_H
#define KYMO_HUB_FILTER_H

#include <stddef.h>
#include <stdint.h>

struct sock_filter;

#define HUB_FILTER_MAX 2048
#define HUB_FILTER_MARK 0x6b79u /* tells our filter's stops from those that a filter of the program's own wants */

/* `out` has room for HUB_FILTER_MAX. How many instructions. Pure. */
size_t hub_filter_make(const uint64_t *calls, struct sock_filter *out);

/* For the calling thread and what it makes; safe after fork(). A negative errno. */
int hub_filter_install(const struct sock_filter *filter, size_t n);

#endif
