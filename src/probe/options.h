/* How a recording puts its probes into a process. */
#ifndef KYMO_PROBE_OPTIONS_H
#define KYMO_PROBE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct kymo_events;
struct kymo_offline;

struct kymo_probes_options {
	struct kymo_events *events; /* of the whole recording; must outlive the probes */
	const char *directory;      /* for kymo status */
	uint64_t buffer_size;       /* bytes a CPU */
	bool overwrite;
	bool is_tight;                     /* one of many that share a bound: no ring is larger than the CPUs' own */
	uint64_t frequency;                /* TSC ticks a second, where a spec has a rate of samples */
	bool no_rseq;                      /* never use restartable sequences */
	const struct kymo_offline *kernel; /* sites that the kernel has breakpoints on for the same recording, or NULL;
					      must outlive the probes */
	bool is_one_of_many;               /* of a tree, mostly short: less memory is there at once */
	bool is_followed;                  /* the recorder hears of new threads: kymo_probes_tell_apart() will come */
	bool displace_faulting;            /* also what may fault, in a process that handles faults */
	bool has_addresses;                /* what specs say of addresses is said of this process */
	void (*has_begun)(void *data); /* pending sites were put in, and the process is still stopped: what is to begin
					  with them; or NULL */
	/* A sentence that the user should see although all goes on. */
	void (*warn)(const char *sentence, void *data);
	void *data;
};

#endif
