/* What /proc says of the rights of threads. */
#ifndef KYMO_NESTED_ALLOW_H
#define KYMO_NESTED_ALLOW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct inner_status {
	unsigned int uid[3], gid[3]; /* real, effective, saved */
	pid_t parent;
	uint64_t pending, blocked, ignored; /* signals; bit 0 is number 1 */
	uint64_t permitted, effective;      /* capabilities */
	bool is_nested;                     /* in another pid namespace */
};

/* Of a thread. False: there is none. Any thread may call it. */
bool inner_read_status(pid_t tid, struct inner_status *ret);

/* Whether the kernel would let thread `tracer` attach to thread `tid`, were it not traced. */
bool inner_may_trace(pid_t tracer, pid_t tid);

#endif
