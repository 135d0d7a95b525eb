/* Clocks, times and timers. */
#include "syscall/time.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <utime.h>

#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/print.h"
#include "syscall/signal_names.h"

SHARED_NAMES(clock_ids, "CLOCK_???", NAME(CLOCK_REALTIME), NAME(CLOCK_MONOTONIC), NAME(CLOCK_PROCESS_CPUTIME_ID),
	     NAME(CLOCK_THREAD_CPUTIME_ID), NAME(CLOCK_MONOTONIC_RAW), NAME(CLOCK_REALTIME_COARSE),
	     NAME(CLOCK_MONOTONIC_COARSE), NAME(CLOCK_BOOTTIME), NAME(CLOCK_REALTIME_ALARM), NAME(CLOCK_BOOTTIME_ALARM),
	     NAME(CLOCK_TAI));
NAMES(timer_flags, "TIMER_???", NAME(TIMER_ABSTIME));
NAMES(timerfd_flags, "TFD_???", NAME(TFD_TIMER_ABSTIME), NAME(TFD_TIMER_CANCEL_ON_SET), NAME(TFD_CLOEXEC),
      NAME(TFD_NONBLOCK));
NAMES(itimers, "ITIMER_???", NAME(ITIMER_REAL), NAME(ITIMER_VIRTUAL), NAME(ITIMER_PROF));
NAMES(notifications, "SIGEV_???", NAME(SIGEV_SIGNAL), NAME(SIGEV_NONE), NAME(SIGEV_THREAD), NAME(SIGEV_THREAD_ID));

/* ---- struct timespec and struct timeval ------------------------------------------------------ */

void put_timespec(struct decode *d, const void *timespec)
{
	struct timespec t;

	memcpy(&t, timespec, sizeof(t));
	put(d, "{tv_sec=%" PRId64 ", tv_nsec=%" PRIu64 "}", (int64_t)t.tv_sec, (uint64_t)t.tv_nsec);
}

void put_timeval(struct decode *d, const void *timeval)
{
	struct timeval t;

	memcpy(&t, timeval, sizeof(t));
	put(d, "{tv_sec=%" PRId64 ", tv_usec=%" PRIu64 "}", (int64_t)t.tv_sec, (uint64_t)t.tv_usec);
}

void put_timespec_at(struct decode *d, uint64_t address)
{
	struct timespec t;

	if (fetch_or_put(d, address, &t, sizeof(t)))
		put_timespec(d, &t);
}

void put_timeval_at(struct decode *d, uint64_t address)
{
	struct timeval t;

	if (fetch_or_put(d, address, &t, sizeof(t)))
		put_timeval(d, &t);
}

PRINT(print_timespec)
{
	put_timespec_at(d, ARG);
}
PRINT(print_timeval)
{
	put_timeval_at(d, ARG);
}

/* " 2020-02-02T02:02:02.000000001+0000" in local time; nothing where the number is no time, or 0. */
void put_date(struct decode *d, int64_t seconds, int64_t fraction, int digits, const char *before, const char *after)
{
	const time_t time = (time_t)seconds;
	struct tm local;
	const int64_t second = digits == 9 ? 1000000000 : 1000000;
	char date[64], zone[16];

	if ((!seconds && !fraction) || fraction < 0 || fraction >= second || !localtime_r(&time, &local) ||
	    !strftime(date, sizeof(date), "%FT%T", &local) || !strftime(zone, sizeof(zone), "%z", &local))
		return;
	put(d, "%s%s", before, date);
	if (fraction)
		put(d, ".%0*" PRId64, digits, fraction);
	put(d, "%s%s", zone, after);
}

enum { TICKS_A_SECOND = 100 }; /* USER_HZ, on x86 */

void put_ticks(struct decode *d, int64_t ticks)
{
	put(d, "%" PRId64, ticks);
	if (ticks > 0 && d->target->style.constants != KYMO_CONSTANTS_NUMBERS)
		put(d, " /* %" PRId64 ".%02" PRId64 " s */", ticks / TICKS_A_SECOND, ticks % TICKS_A_SECOND);
}

PRINT(print_timezone)
{
	struct timezone zone;

	if (fetch_or_put(d, ARG, &zone, sizeof(zone)))
		put(d, "{tz_minuteswest=%d, tz_dsttime=%d}", zone.tz_minuteswest, zone.tz_dsttime);
}

PRINT(print_time)
{
	int64_t t;

	if (!fetch_or_put(d, ARG, &t, sizeof(t)))
		return;
	put(d, "[%" PRId64, t);
	put_date(d, t, 0, 0, " /* ", " */");
	puts_(d, "]");
}

void result_time(struct decode *d)
{
	put(d, "%" PRId64, d->call->result);
	put_date(d, d->call->result, 0, 0, " (", ")");
}

/* ---- sleeping -------------------------------------------------------------------------------- */

/* What is left is written only where a signal has ended the sleep. */
PRINT(print_rest)
{
	struct timespec t;
	const bool was_ended = call_failed(d) && (d->call->result == -516 || d->call->result == -4);

	if (was_ended && fetch(d, ARG, &t, sizeof(t)))
		put_timespec(d, &t);
	else
		put_address(d, ARG);
}

/* ---- timers ---------------------------------------------------------------------------------- */

PRINT(print_itimerval)
{
	struct itimerval t;

	if (!fetch_or_put(d, ARG, &t, sizeof(t)))
		return;
	puts_(d, "{it_interval=");
	put_timeval(d, &t.it_interval);
	puts_(d, ", it_value=");
	put_timeval(d, &t.it_value);
	puts_(d, "}");
}

PRINT(print_itimerspec)
{
	struct itimerspec t;

	if (!fetch_or_put(d, ARG, &t, sizeof(t)))
		return;
	puts_(d, "{it_interval=");
	put_timespec(d, &t.it_interval);
	puts_(d, ", it_value=");
	put_timespec(d, &t.it_value);
	puts_(d, "}");
}

PRINT(print_sigevent)
{
	struct sigevent event;
	uint64_t function[2];

	if (!fetch_or_put(d, ARG, &event, sizeof(event)))
		return;
	memcpy(function, (char *)&event + 16, sizeof(function));
	puts_(d, "{");
	if (event.sigev_value.sival_ptr) {
		put(d, "sigev_value={sival_int=%d, sival_ptr=", event.sigev_value.sival_int);
		put_address(d, (uint64_t)event.sigev_value.sival_ptr);
		puts_(d, "}, ");
	}
	puts_(d, "sigev_signo=");
	if (event.sigev_notify == SIGEV_SIGNAL || event.sigev_notify == SIGEV_THREAD ||
	    event.sigev_notify == SIGEV_THREAD_ID)
		put_signal(d, event.sigev_signo);
	else
		put(d, "%u", (unsigned)event.sigev_signo);
	puts_(d, ", sigev_notify=");
	put_name(d, &notifications, (unsigned)event.sigev_notify);
	if (event.sigev_notify == SIGEV_THREAD_ID)
		put(d, ", sigev_notify_thread_id=%d", (int)function[0]);
	if (event.sigev_notify == SIGEV_THREAD) {
		puts_(d, ", sigev_notify_function=");
		put_address(d, function[0]);
		puts_(d, ", sigev_notify_attributes=");
		put_address(d, function[1]);
	}
	puts_(d, "}");
}

/* ---- times of files -------------------------------------------------------------------------- */

static void put_file_time(struct decode *d, const struct timespec *t)
{
	const enum kymo_constants style = d->target->style.constants;
	const char *name = t->tv_nsec == UTIME_NOW ? "UTIME_NOW" : t->tv_nsec == UTIME_OMIT ? "UTIME_OMIT" : NULL;

	if (name && style == KYMO_CONSTANTS_NAMES) {
		puts_(d, name);
		return;
	}
	put_timespec(d, t);
	if (name && style == KYMO_CONSTANTS_BOTH)
		put(d, " /* %s */", name);
	if (!name)
		put_date(d, t->tv_sec, t->tv_nsec, 9, " /* ", " */");
}

PRINT(print_utimens)
{
	struct timespec t[2];

	if (!fetch_or_put(d, ARG, t, sizeof(t)))
		return;
	puts_(d, "[");
	put_file_time(d, &t[0]);
	puts_(d, ", ");
	put_file_time(d, &t[1]);
	puts_(d, "]");
}

PRINT(print_utimes)
{
	struct timeval t[2];

	if (!fetch_or_put(d, ARG, t, sizeof(t)))
		return;
	puts_(d, "[");
	for (int i = 0; i < 2; i++) {
		put_timeval(d, &t[i]);
		put_date(d, t[i].tv_sec, t[i].tv_usec, 6, " /* ", " */");
		puts_(d, i ? "]" : ", ");
	}
}

PRINT(print_utime)
{
	struct utimbuf t;

	if (!fetch_or_put(d, ARG, &t, sizeof(t)))
		return;
	put(d, "{actime=%" PRId64, (int64_t)t.actime);
	put_date(d, t.actime, 0, 0, " /* ", " */");
	put(d, ", modtime=%" PRId64, (int64_t)t.modtime);
	put_date(d, t.modtime, 0, 0, " /* ", " */");
	puts_(d, "}");
}

const struct kind k_timespec[1] = { { print_timespec, NULL, 0 } };
const struct kind k_timespec_out[1] = { { print_timespec, NULL, AT_EXIT } };
const struct kind k_timeval[1] = { { print_timeval, NULL, 0 } };
const struct kind k_timeval_out[1] = { { print_timeval, NULL, AT_EXIT } };
const struct kind k_timezone[1] = { { print_timezone, NULL, 0 } };
const struct kind k_timezone_out[1] = { { print_timezone, NULL, AT_EXIT } };
const struct kind k_time_out[1] = { { print_time, NULL, AT_EXIT } };
const struct kind k_sleep_rest[1] = { { print_rest, NULL, AT_EXIT } };
const struct kind k_clock[1] = { { print_name, &clock_ids, 0 } };
const struct kind k_timer_flags[1] = { { print_flags, &timer_flags, 0 } };
const struct kind k_timerfd_flags[1] = { { print_flags, &timerfd_flags, 0 } };
const struct kind k_itimer[1] = { { print_name, &itimers, 0 } };
const struct kind k_itimerval[1] = { { print_itimerval, NULL, 0 } };
const struct kind k_itimerval_out[1] = { { print_itimerval, NULL, AT_EXIT } };
const struct kind k_itimerspec[1] = { { print_itimerspec, NULL, 0 } };
const struct kind k_itimerspec_out[1] = { { print_itimerspec, NULL, AT_EXIT } };
const struct kind k_sigevent[1] = { { print_sigevent, NULL, 0 } };
const struct kind k_utimens[1] = { { print_utimens, NULL, 0 } };
const struct kind k_utimes[1] = { { print_utimes, NULL, 0 } };
const struct kind k_utime[1] = { { print_utime, NULL, 0 } };
