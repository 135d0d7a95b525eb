/* What an event's arguments and its filter are for the kernel. */
#ifndef KYMO_RECORD_KERNEL_ARGS_H
#define KYMO_RECORD_KERNEL_ARGS_H

#include <stdbool.h>

#include "base/error.h"
#include "kernel/kernel.h"
#include "probe/offline/offline.h"
#include "wire/event.h"

struct kymo_probe_event;
struct kymo_spec;

struct recording_kernel_args {
	struct kymo_kernel_arg args[KYMO_EVENT_MAX_ARGS]; /* as many as the event has */
	const struct kymo_kernel_form *filter;            /* one of `forms`, or NULL */
	bool need_address;                                /* of the site, as linked */
	struct kymo_kernel_form forms[KYMO_EVENT_MAX_ARGS + 1];
};

/* Those of `event` at sites of this kind. Forms stay the event's. USAGE for an argument that the kernel cannot have. */
struct kymo_error *recording_kernel_args_of(const struct kymo_probe_event *event, enum kymo_offline_kind kind,
					    struct recording_kernel_args *ret);

/* Why events of `spec` cannot be recorded through the kernel, by what they compute: as recording_kernel_args_of(), but
 * before there are any. `way` is what the user wrote: "--backend kernel". */
struct kymo_error *recording_kernel_check_spec(const struct kymo_spec *spec, const char *way);

#endif
