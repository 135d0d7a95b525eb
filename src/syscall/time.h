/* Times, clocks, and timers. Private to the room. */
#ifndef KYMO_SYSCALL_TIME_H
#define KYMO_SYSCALL_TIME_H

#include <stdint.h>

#include "syscall/decode.h"

extern const struct names clock_ids;

void put_date(struct decode *d, int64_t seconds, int64_t fraction, int digits, const char *before,
	      const char *after); /* "2026-01-31T12:00:00.500000000+0000"; nothing for 0 */
void put_timespec(struct decode *d, const void *timespec);
void put_timeval(struct decode *d, const void *timeval);
void put_timespec_at(struct decode *d, uint64_t address);
void put_timeval_at(struct decode *d, uint64_t address);
void put_ticks(struct decode *d, int64_t ticks); /* of the user's clock, with seconds after them */

void result_time(struct decode *d);

extern const struct kind k_timespec[1], k_timespec_out[1], k_timeval[1], k_timeval_out[1], k_timezone[1],
	k_timezone_out[1];
extern const struct kind k_time_out[1], k_sleep_rest[1], k_clock[1], k_timer_flags[1], k_timerfd_flags[1], k_itimer[1];
extern const struct kind k_itimerval[1], k_itimerval_out[1], k_itimerspec[1], k_itimerspec_out[1], k_sigevent[1],
	k_utimens[1];
extern const struct kind k_utimes[1], k_utime[1];

#endif
