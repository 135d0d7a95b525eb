/* How a recording puts its probes into a process. */
#ifndef KYMO_PROBE_OPTIONS_H
#define KYMO_PROBE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_events;
struct kymo_form;
struct kymo_offline;
struct kymo_pad_print;

/* A pad that traps where a condition holds, or prints there: install/traps.h. */
struct kymo_probes_trap {
	uint64_t address;                   /* of an instruction in the process */
	const struct kymo_form *condition;  /* NULL: it always holds */
	const struct kymo_pad_print *print; /* its arguments, strings and number; NULL: it traps */
};

/* kymo_probes_create() gets as many specs, which are zero. */
struct kymo_probes_traps {
	const struct kymo_probes_trap *items;
	size_t n;
	const uint64_t *kept; /* addresses where breakpoints are: no jump changes these bytes, or relies on them */
	size_t n_kept;
	uint32_t slot_size; /* of what is printed; 0: nothing is */
};

/* What kymo_probes_resolve_clones() is to clone. There are no specs then. */
struct kymo_probes_clones {
	bool (*is_chosen)(uint64_t address, void *data); /* of a function in the process */
	bool (*is_given_up)(void *data);                 /* it is over before it has begun: FAILED */
	bool is_running;                                 /* threads stand anywhere: docs/design/running-clones.md */
	void *data;
};

struct kymo_probes_options {
	struct kymo_events *events; /* of the whole recording; must outlive the probes */
	const char *directory;      /* for kymo status */
	uint64_t buffer_size;       /* bytes a CPU */
	bool overwrite;
	bool is_tight;      /* one of many processes that share a limit: no ring is larger than the CPUs' own */
	uint64_t frequency; /* TSC ticks a second, if a spec has a rate of samples, or writes */
	bool no_rseq;       /* never use restartable sequences */
	const struct kymo_offline *kernel; /* sites with the kernel's breakpoints of the same recording, or NULL; must
					      outlive the probes */
	bool is_one_of_many;               /* of a tree, mostly short-lived: it gets less memory at first */
	bool is_followed;       /* the recorder is told of new threads, and will call kymo_probes_tell_apart() */
	bool displace_faulting; /* displace also what may fault, in a process that handles faults */
	const struct kymo_probes_traps *traps;   /* what is wanted are these, and specs have nothing else; or NULL. Must
						    outlive the probes */
	const struct kymo_probes_clones *clones; /* function clones are put in, and nothing else (install/clones.h); or
						    NULL. Must outlive the probes */
	bool may_go_on;        /* function clones may come beside the probes (kymo_probes_put_beside()): pads go on
				  where a word says */
	bool fast_reads;       /* memory is read by plain loads where that is proven to work; looked into once pads are
				  in */
	bool wants_fast_reads; /* … before they are in; and it is told why it does not work */
	bool has_addresses;    /* addresses in specs are those of this process */
	void (*has_begun)(
		void *data); /* called when pending sites were put in, while the process is still stopped; or NULL */
	/* A file has not what spec number `spec` means, or nothing of it can have a probe, and the rest goes on without
	 * that. NULL: this is an error. */
	void (*lacks)(size_t spec, const char *sentence, void *data);
	/* A sentence that the user should see although recording goes on. */
	void (*warn)(const char *sentence, void *data);
	void *data;
};

#endif
