/* What /proc says of the signals of a thread. */
#ifndef KYMO_PROCFS_DISPOSITION_H
#define KYMO_PROCFS_DISPOSITION_H

#include <stdbool.h>
#include <sys/types.h>

/* What thread `tid` does with a signal; where it can't be asked, what is the default. */
enum kymo_disposition {
	KYMO_DISPOSITION_CAUGHT,
	KYMO_DISPOSITION_IGNORED, /* by default, too */
	KYMO_DISPOSITION_STOP,
	KYMO_DISPOSITION_TERM,
	KYMO_DISPOSITION_CORE,
};
enum kymo_disposition kymo_signal_disposition(pid_t tid, int signal);

/* Whether one that was sent to this very thread waits to be delivered. False where it can't be asked. */
bool kymo_signal_is_pending(pid_t tid, int signal);

#endif
