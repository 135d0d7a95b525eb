/* What is told of sites that cannot be probed, without a process. */
#ifndef KYMO_PROBE_OFFLINE_OFFLINE_REFUSALS_H
#define KYMO_PROBE_OFFLINE_OFFLINE_REFUSALS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct kymo_offline;

/* Leave a site out: UNSAFE when it is named exactly. */
struct kymo_error *kymo_offline_refuse(struct kymo_offline *offline, size_t site, const char *reason);

/* UNSAFE for a spec that has no site left, warnings for those refused in part; then counting begins anew. */
struct kymo_error *kymo_offline_tell_refused(struct kymo_offline *offline);

void offline_warn(struct kymo_offline *offline, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Put a reason on the spec's list, or make it the error when the user named this very location. */
struct kymo_error *offline_refuse(struct kymo_offline *offline, size_t spec, bool is_exact, const char *path,
				  const char *location, const char *reason);

#endif
