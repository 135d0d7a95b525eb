/*
 * Recording in place where it is not built: no architecture but x86-64 has the compiled code for it
 * (KYMO_LIB_HAS_INLINE). Probes can be connected all the same.
 */
#include "record.h"

#include <errno.h>

#include "markers.h"

KYMO_LIB_API int kymo_marker_record(const char *globs, const char *directory)
{
	return globs ? -ENOTSUP : -EINVAL;
}

KYMO_LIB_API int kymo_marker_record_end(unsigned long *lost)
{
	return -ENOENT;
}

void kymo_record_marker_comes(struct lib_marker *marker)
{
}

void kymo_record_marker_goes(struct lib_marker *marker)
{
}

int kymo_record_add(struct lib_marker *marker)
{
	return -ENODEV;
}

void kymo_record_remove(struct lib_marker *marker)
{
}

bool kymo_record_is_running(void)
{
	return false;
}

void kymo_record_forked(void)
{
}
