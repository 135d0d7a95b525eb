/*
 * From specs to sites of files, for probes that the kernel sets: no process' memory is touched, and no process need
 * have mapped the file. Names, events and refusals are those of probes in a process (install.h).
 */
#ifndef KYMO_PROBE_OFFLINE_OFFLINE_H
#define KYMO_PROBE_OFFLINE_OFFLINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_events;
struct kymo_file_id;
struct kymo_spec;
struct offline_file;

struct kymo_offline;

enum kymo_offline_kind {
	KYMO_OFFLINE_SITE, /* an instruction; of a return, the one by which the function is left */
	/* of a return: a jump to another function, so that what is returned is not known */
	KYMO_OFFLINE_TAIL,
	/* of a return: the function's first; to be recorded when it has come back to its caller */
	KYMO_OFFLINE_CALLER,
};

/* A site, and what is recorded there. An event of a return may have several. */
struct kymo_offline_site {
	size_t event;      /* index in the table of events */
	size_t spec, file; /* indexes */
	uint64_t offset;   /* in the file */
	uint64_t vaddr;    /* as linked */
	uint8_t length;    /* of the instruction */
	enum kymo_offline_kind kind;
	bool is_exact; /* named without a glob: leaving it out is an error */
	bool is_refused;
	bool may_be_data; /* nothing is known to lead there, or it was not looked at whether something does */
};

/* `specs` and `events` must outlive the result. `warn` as in struct kymo_probes_options. */
struct kymo_error *kymo_offline_create(const struct kymo_spec *specs, size_t n_specs, struct kymo_events *events,
				       void (*warn)(const char *sentence, void *data), void *data,
				       struct kymo_offline **ret);
void kymo_offline_destroy(struct kymo_offline *offline);

/*
 * Add the sites in files that process `pid` has mapped since the last time. NOT_FOUND: a file that a spec names has no
 * such function; UNSAFE: a site named exactly that uprobes must not be set on. Of globs such sites are left out.
 */
struct kymo_error *kymo_offline_look(struct kymo_offline *offline, pid_t pid);

/*
 * Add the sites of specs whose file was not met yet: by kymo_find_file(). With `pid` that is worth a warning: the
 * process may map the file later.
 */
struct kymo_error *kymo_offline_find(struct kymo_offline *offline, pid_t pid);

/*
 * Refuse those of the sites from `first` on whose text is not the file's in process `pid`: another recording, or a
 * debugger, has its own code there, and a breakpoint in the midst of it would break both. A process that can't be
 * looked at, or has ended, is left out.
 */
struct kymo_error *kymo_offline_check_text(struct kymo_offline *offline, size_t first, pid_t pid);

/* The same in every process. */
struct kymo_error *kymo_offline_check_all(struct kymo_offline *offline, size_t first);

/* All sites so far. Grows only; items move when it does. */
const struct kymo_offline_site *kymo_offline_sites(const struct kymo_offline *offline, size_t *n_ret);

/* A descriptor of file `i`, and its path; both stay the table's. */
int kymo_offline_file(const struct kymo_offline *offline, size_t i, const char **path_ret);

/* Whether processes' maps, or the file itself, name it so. */
bool offline_is_file(const struct offline_file *file, struct kymo_file_id id);

#endif
