/* Which way a recording goes: as it is asked for, or from one that a process refuses to one from outside, or one in two
 * halves. */
#include "record/fallback.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "probe/code/events.h"
#include "probe/offline/offline.h"
#include "probe/offline/offline_refusals.h"
#include "probe/offline/offline_sites.h"
#include "probe/site/refusals.h"
#include "proc/process.h"
#include "procfs/maps.h"
#include "record/kernel.h"
#include "record/mixed.h"
#include "record/recording.h"
#include "record/wanted.h"
#include "strace/recorded/kernel.h"

/* The kernel sets no uprobes in files that are mapped for others to see the change, and does not say so. */
static bool has_shared_text(pid_t pid)
{
	struct kymo_error *error;
	struct kymo_maps maps;
	bool found = false;

	error = kymo_maps_read(pid, &maps);
	if (error) {
		kymo_error_destroy(error);
		return true;
	}
	for (size_t i = 0; i < maps.n && !found; i++)
		found = maps.items[i].executable && maps.items[i].shared && maps.items[i].writable &&
			maps.items[i].path[0] == '/';
	kymo_maps_deinit(&maps);
	return found;
}

/*
 * What users get only if they ask for the kernel: breakpoints in what may be data, or is read; and returns that take a
 * changed return address, by which an exception would end the program.
 */
static bool has_risks(const struct kymo_offline *offline)
{
	const struct kymo_offline_site *sites;
	size_t n;

	sites = kymo_offline_sites(offline, &n);
	for (size_t i = 0; i < n; i++)
		if (sites[i].kind == KYMO_OFFLINE_CALLER || sites[i].may_be_data)
			return true;
	return false;
}

/* The sites as the kernel would be asked for them: none of an IFUNC that is not understood, or inside of an
 * instruction. */
static bool are_for_kernel(const struct kymo_spec *specs, size_t n_specs, pid_t pid)
{
	struct kymo_offline *offline = NULL;
	struct kymo_events *events = NULL;
	struct kymo_error *error = kymo_events_create(&events);
	bool are, is_read = false;

	if (!error)
		error = kymo_offline_create(specs, n_specs, events, NULL, NULL, &offline);
	if (!error)
		error = kymo_offline_look(offline, pid);
	if (!error)
		error = kymo_offline_check_text(offline, 0, pid);
	if (!error)
		error = kymo_offline_tell_refused(offline);
	if (!error)
		error = kymo_offline_are_read(offline, &is_read);
	are = !error && !is_read && !has_risks(offline) && !has_shared_text(pid);
	kymo_offline_destroy(offline);
	kymo_events_destroy(events);
	kymo_error_destroy(error);
	return are;
}

/* `refusal` with a remark after it, about why the kernel is no way out. */
static struct kymo_error *with_remark(struct kymo_error *refusal, const struct kymo_error *error)
{
	struct kymo_error *both;

	if (error->code == KYMO_ERROR_PERMISSION && geteuid())
		both = kymo_error_create(refusal->code, "%s (as root kymo could record it through the kernel)",
					 refusal->message);
	else
		both = kymo_error_create(refusal->code, "%s; and through the kernel: %s", refusal->message,
					 error->message);
	kymo_error_destroy(refusal);
	return both;
}

/* The reason of each spec that was refused as such, by its place among those for the process; others are NULL. The
 * number of reasons. */
static size_t find_reasons(const struct recording *recording, const char **reasons)
{
	size_t n = 0;

	for (size_t i = 0; i < recording->wanted.n_inproc && recording->run.sources.n; i++) {
		reasons[i] = kymo_probes_refusal(recording->run.sources.items[0]->probes, i);
		n += reasons[i] != NULL;
	}
	return n;
}

static struct kymo_error *keep_reasons(struct recording *recording, const char *const *reasons)
{
	for (size_t i = 0, at = 0; i < recording->wanted.options->n_specs; i++) {
		if (recording->wanted.reasons[i] || !reasons[at++])
			continue;
		recording->wanted.reasons[i] = strdup(reasons[at - 1]);
		if (!recording->wanted.reasons[i])
			return &kymo_error_no_memory;
	}
	return NULL;
}

/* Whether the refused ones are for the kernel; else the first that is not gives the error. */
static bool are_refused_for_kernel(const struct recording *recording, const char *const *reasons, pid_t pid,
				   struct kymo_error **refusal)
{
	kymo_cleanup_free struct kymo_spec *refused = calloc(recording->wanted.n_inproc, sizeof(*refused));
	size_t n = 0;

	for (size_t i = 0; refused && i < recording->wanted.n_inproc; i++)
		if (reasons[i])
			refused[n++] = recording->wanted.specs[i];
	if (!refused || are_for_kernel(refused, n, pid))
		return refused;
	for (size_t i = 0; i < recording->wanted.n_inproc; i++) {
		if (!reasons[i] || are_for_kernel(&recording->wanted.specs[i], 1, pid))
			continue;
		kymo_error_destroy(*refusal);
		*refusal = kymo_error_create(KYMO_ERROR_UNSAFE, "%s", reasons[i]);
		return false;
	}
	return false;
}

static bool may_go_elsewhere(const struct recording *recording, const struct kymo_error *refusal)
{
	return recording->wanted.options->backend == KYMO_RECORD_AUTO &&
	       !recording_needs_process(recording->wanted.options) && recording->wanted.options->n_pids <= 1 &&
	       refusal->code == KYMO_ERROR_UNSAFE && recording->run.process && !recording->run.has_run;
}

/*
 * Of what has system calls in it all goes one way: theirs; only the kernel can have probes with them. A process that
 * runs is not traced unasked for its sites, as others' recordings may have: only where it refuses as a whole.
 */
static enum recording_fallback way_out_of_calls(struct recording *recording, const char **reasons,
						struct kymo_error **refusal)
{
	const struct kymo_record_options *options = recording->wanted.options;
	kymo_cleanup_free struct kymo_spec *probes = calloc(options->n_specs, sizeof(*probes));
	struct kymo_error *error;
	bool may_be_traced;
	size_t n = 0;

	for (size_t i = 0; probes && i < options->n_specs; i++)
		if (!options->specs[i].syscalls)
			probes[n++] = options->specs[i];
	if (!probes || (n && !are_for_kernel(probes, n, kymo_process_pid(recording->run.process))))
		return RECORDING_NO_FALLBACK;
	error = kymo_call_source_check_kernel();
	if (!error)
		return RECORDING_BY_KERNEL;
	may_be_traced = !n && !(options->pid && find_reasons(recording, reasons));
	if (!may_be_traced)
		*refusal = with_remark(*refusal, error);
	kymo_error_destroy(error);
	return may_be_traced ? RECORDING_BY_PTRACE : RECORDING_NO_FALLBACK;
}

enum recording_fallback recording_fallback(struct recording *recording, struct kymo_error **refusal)
{
	const struct kymo_record_options *options = recording->wanted.options;
	kymo_cleanup_free const char **reasons = calloc(recording->wanted.n_inproc + 1, sizeof(*reasons));
	struct kymo_error *error;
	size_t n_refused;
	bool is_mixed;
	pid_t pid;

	if (!reasons || !may_go_elsewhere(recording, *refusal))
		return RECORDING_NO_FALLBACK;
	if (recording_has_syscalls(options))
		return way_out_of_calls(recording, reasons, refusal);
	pid = kymo_process_pid(recording->run.process);
	n_refused = options->follow ? 0 : find_reasons(recording, reasons);
	is_mixed = n_refused && n_refused < recording->wanted.n_inproc;
	if (is_mixed ? !are_refused_for_kernel(recording, reasons, pid, refusal)
		     : !are_for_kernel(options->specs, options->n_specs, pid))
		return RECORDING_NO_FALLBACK;
	error = recording_kernel_check(pid, options->follow);
	if (error)
		*refusal = with_remark(*refusal, error);
	else if (n_refused)
		error = keep_reasons(recording, reasons);
	if (!error)
		return is_mixed ? RECORDING_MIXED : RECORDING_BY_KERNEL;
	kymo_error_destroy(error);
	return RECORDING_NO_FALLBACK;
}

struct kymo_error *recording_fell_back(struct recording *recording, struct kymo_error *error)
{
	struct kymo_error *refusal = recording->wanted.refusal;

	recording->wanted.refusal = NULL;
	if (!refusal)
		return error;
	if (!error) {
		if (!recording->wanted.has_told_refusal)
			recording_tell_reasons(recording, refusal);
	} else if (error->code == KYMO_ERROR_UNSAFE) {
		refusal = strcmp(error->message, refusal->message) ? with_remark(refusal, error) : refusal;
		kymo_error_destroy(error);
		return refusal;
	}
	kymo_error_destroy(refusal);
	return error;
}

/* ---- the way that is asked for --------------------------------------------------------------- */

/* The kernel, where it may be used; else tracing, which can't do anything but calls. */
static struct kymo_error *choose_complete_backend(struct recording *recording)
{
	struct kymo_error *error = kymo_call_source_check_kernel(), *refusal;

	recording->wanted.backend = error ? KYMO_RECORD_PTRACE : KYMO_RECORD_KERNEL;
	if (!error || recording->wanted.options->n_specs == 1) {
		kymo_error_destroy(error);
		return NULL;
	}
	refusal = kymo_error_create(error->code,
				    "probes together with all system calls (--complete) go through the kernel, and %s; "
				    "leave the probes out, or --complete",
				    error->message);
	kymo_error_destroy(error);
	return refusal;
}

struct kymo_error *recording_choose_backend(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;

	recording->wanted.backend = options->all ? KYMO_RECORD_KERNEL : options->backend;
	if (recording->wanted.backend == KYMO_RECORD_AUTO && options->complete)
		return choose_complete_backend(recording);
	if (recording->wanted.backend == KYMO_RECORD_AUTO)
		recording->wanted.backend = KYMO_RECORD_INPROC;
	return NULL;
}
