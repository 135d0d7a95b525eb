/* What a refusal of the kernel means to the user. Private to the room. */
#ifndef KYMO_KERNEL_REFUSED_H
#define KYMO_KERNEL_REFUSED_H

#include <bpf/libbpf.h>
#include <stdarg.h>

#include "base/error.h"

/* "…: the kernel lets …", or what else a refusal of bpf() or perf_event_open() means to the user. */
struct kymo_error *kernel_refused(int err, const char *what);

/* For libbpf_set_print(): the caller reports errors. */
int kernel_silence(enum libbpf_print_level level, const char *format, va_list args);

#endif
