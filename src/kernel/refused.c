#include "kernel/refused.h"

#include <errno.h>
#include <string.h>

struct kymo_error *kernel_refused(int err, const char *what)
{
	err = err < 0 ? -err : err;
	if (err == EPERM || err == EACCES)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "the kernel does not let this user %s: recording through it takes root, or "
					 "the capabilities CAP_BPF and CAP_PERFMON",
					 what);
	if (err == ENOSYS || err == EINVAL || err == EOPNOTSUPP)
		return kymo_error_create(
			KYMO_ERROR_NOT_FOUND,
			"this kernel cannot %s (%s): recording through it takes Linux 5.15, with BPF and uprobes", what,
			strerror(err));
	return kymo_error_errno(err, "the kernel does not %s", what);
}

int kernel_silence(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}
