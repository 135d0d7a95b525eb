/* The calls of include/kymo/marker_probe.h about connections and markers. */
#include <errno.h>

#include "connect.h"
#include "dispatch.h"
#include "modules.h"
#include "registry.h"

#define TYPES (KYMO_MARKER_INLINE | KYMO_MARKER_EXCLUSIVE | KYMO_MARKER_PENDING)

/* What the arguments alone say. */
static int check_arguments(const char *name, kymo_marker_probe *probe, int type)
{
	if (!name || (type & ~TYPES) || !!probe == !!(type & KYMO_MARKER_INLINE))
		return -EINVAL;
	return 0;
}

KYMO_LIB_API int kymo_marker_set_probe(const char *name, const char *format, kymo_marker_probe *probe, void *data,
				       int type)
{
	int status = check_arguments(name, probe, type);
	if (status == 0)
		status = kymo_lib_enter();
	if (status < 0)
		return status;
	status = kymo_lib_connect(name, format, probe, data, type);
	/* What was undone may have been called in between. */
	kymo_lib_leave(status < 0);
	return status;
}

KYMO_LIB_API int kymo_marker_disable_probe(const char *name, kymo_marker_probe *probe, void *data, int type)
{
	if (!name)
		return -ENOENT;
	int status = kymo_lib_enter();
	if (status < 0)
		return status;
	const bool was_connected = kymo_lib_disconnect(name, probe, data, type);
	/* Its probes may have been retired before, with their module, by a thread that is waiting still. */
	kymo_lib_leave(was_connected);
	return was_connected ? 0 : -ENOENT;
}

KYMO_LIB_API int kymo_marker_for_each(int (*visit)(const struct kymo_marker_info *marker, void *data), void *data)
{
	int status = kymo_lib_enter();
	if (status < 0)
		return status;
	kymo_lib_each_marker(marker)
	{
		struct kymo_marker_info info;
		kymo_lib_describe(marker, &info);
		status = visit(&info, data);
		if (status)
			break;
	}
	kymo_lib_leave(false);
	return status;
}
