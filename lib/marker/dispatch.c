/*
 * What a thread does that passes a marker: no lock, no memory is allocated, errno is kept. A reader's section is around
 * all that is read, so that what was disconnected is not freed meanwhile (readers.h).
 */
#include "dispatch.h"

#include <errno.h>

#include "readers.h"

void kymo_lib_describe(const struct lib_marker *marker, struct kymo_marker_info *ret)
{
	*ret = (struct kymo_marker_info){
		.provider = marker->provider,
		.name = marker->name,
		.format = marker->format,
		.file = marker->file,
		.line = marker->line,
		.module = marker->module->path,
		.n_sites = (unsigned int)marker->n_sites,
		.n_probes = __atomic_load_n(&marker->n_probes, __ATOMIC_RELAXED),
		.is_recorded = __atomic_load_n(&marker->is_recorded, __ATOMIC_RELAXED),
		.has_inline = KYMO_LIB_HAS_INLINE && marker->n_locations > 0,
	};
	for (size_t i = 0; i < marker->n_sites && !ret->is_recorded_outside; i++)
		ret->is_recorded_outside = __atomic_load_n(&marker->sites[i].gate->outside, __ATOMIC_RELAXED) != 0;
}

/* One after the other; each gets its own copy of `arguments`. */
static void call_probes(const struct lib_marker *marker, va_list arguments)
{
	const struct lib_probe *probe = __atomic_load_n(&marker->probes, __ATOMIC_SEQ_CST);
	struct kymo_marker_info info;

	if (!probe)
		return;
	kymo_lib_describe(marker, &info);
	for (; probe; probe = __atomic_load_n(&probe->next, __ATOMIC_SEQ_CST)) {
		va_list copy;
		va_copy(copy, arguments);
		probe->probe(&info, probe->data, copy);
		va_end(copy);
	}
}

static void pass(const struct kymo_marker_slots *slots, va_list arguments)
{
	int error = errno;

	kymo_lib_thread.in_probe++;
	struct lib_reader *reader = kymo_lib_begin_reading();
	if (reader) {
		const struct lib_marker *marker = __atomic_load_n(&slots->owner, __ATOMIC_SEQ_CST);
		if (marker)
			call_probes(marker, arguments);
		kymo_lib_end_reading(reader);
	}
	kymo_lib_thread.in_probe--;
	errno = error;
}

#if defined(__x86_64__) && defined(__LP64__)

/* From call_x86_64.S. The arguments lie as a variadic function finds those that did not fit into registers. So a
 * va_list whose registers are used up reads them. */
void kymo_lib_pass(const struct kymo_marker_slots *slots, uint64_t *frame);
void kymo_lib_pass(const struct kymo_marker_slots *slots, uint64_t *frame)
{
	va_list arguments;

	if (kymo_lib_thread.in_probe)
		return;
	arguments->gp_offset = 48;
	arguments->fp_offset = 176;
	arguments->overflow_arg_area = frame;
	arguments->reg_save_area = frame;
	pass(slots, arguments);
}

#else

/* Called by the marker as what it is: see marker_generic.h. */
void kymo_lib_call_variadic(const struct kymo_marker_slots *slots, const char *format, ...) __asm__("kymo_lib_call");
void kymo_lib_call_variadic(const struct kymo_marker_slots *slots, const char *format, ...)
{
	va_list arguments;

	if (kymo_lib_thread.in_probe)
		return;
	va_start(arguments, format);
	pass(slots, arguments);
	va_end(arguments);
}

void kymo_lib_nothing(void)
{
}

#endif
