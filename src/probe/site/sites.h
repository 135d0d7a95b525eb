/* Sites in the text of the process, as specs select them. */
#ifndef KYMO_PROBE_SITE_SITES_H
#define KYMO_PROBE_SITE_SITES_H

#include "arch/pad.h"
#include "base/error.h"
#include "base/vec.h"
#include "probe/code/events.h"
#include "probe/code/resolver.h"

struct kymo_marker;
struct kymo_probes;

/* What a spec wants recorded at a site: it becomes an event when the site has a plan. */
struct probe_request {
	size_t spec;
	enum kymo_event_kind kind;
	uint64_t vaddr;                   /* what the user named; for RETURN, the function */
	char *location, *name;            /* "malloc+0x4", "libc:malloc+0x4" */
	bool is_exact;                    /* its location is all that the user named: leaving it out is an error */
	bool is_unknown;                  /* RETURN by a tail jump: $retval is not known */
	const struct kymo_marker *marker; /* MARKER; the file's */
	bool is_refused;
	bool was_refused; /* before the current installation */
	size_t event;     /* index, when the site is planned */
};

/* What threads do that pass a watch. */
enum probe_watched {
	PROBE_WATCH_LIBRARIES, /* load one, or unload it: the dynamic linker's function for debuggers */
	PROBE_WATCH_HANDLERS,  /* set a handler of a signal: sigaction */
	PROBE_WATCH_LIMITS,    /* limit what they may do: prctl */
};

/*
 * A site in the text of the process. Sites refer to others by index or address: the array grows. Those without
 * requests are guards, and instructions that were evicted for another site.
 */
struct probe_site {
	uint64_t address; /* of the plan's first byte, runtime */
	size_t module;
	KYMO_VEC(struct probe_request) requests;
	bool is_exact;              /* a spec names it without a glob: leaving it out is an error */
	bool is_guard;              /* a guard of kymo's own (arch/pad.h) */
	bool is_watch;              /* threads pass here that do what kymo has to know of */
	enum probe_watched watches; /* … then: what */
	bool was_watch;             /* and was refused */
	bool is_strike;             /* a system call that may take memory away from readers (threads/strikes.h) */
	bool was_strike;            /* and was refused */
	bool is_catch;              /* no probe: it leads into the clone of a function */
	bool is_left_out;           /* … which stays as it is for now: nothing is written */
	bool is_retired;            /* planned, and its library is not mapped now */
	bool is_revived;   /* it was retired, and is mapped again at the same address: plan and pad are unchanged */
	bool is_standby;   /* a guard that another recording's guard replaces for now */
	bool is_exchanged; /* planned when handlers of faults came: its pad may be in the first process alone, not in
			      children that were adopted before */
	bool is_planned, is_installed;
	/* when planned: */
	struct kymo_plan plan;
	uint32_t order;    /* index in the journal */
	uint64_t link;     /* address of the jump to the pad: in the text, or a trampoline */
	uint64_t behind;   /* the inner entry of another recording's pad at the same site, or 0 */
	uint64_t leads_to; /* then: where the link leads until it leads to this pad */
	bool wants_flags;
	uint64_t ahead; /* of a catch: the word of the pad that goes on here, where the text has a probe; or 0. The
			   word leads to `leads_to` before */
	uint64_t trap;  /* the word of a pad that traps, in the process; or 0 */
	uint64_t pad;
	struct kymo_pad_layout layout;
};

/* The site at exactly `address`, or NULL. */
struct probe_site *probes_site_at(struct kymo_probes *probes, uint64_t address);

/* Add a site in the order of addresses; takes over its requests. */
struct kymo_error *probes_insert_site(struct kymo_probes *probes, const struct probe_site *site,
				      struct probe_site **ret);

/* "libc:malloc", for messages. */
const char *probes_site_name(const struct probe_site *site);

void probes_site_deinit(struct probe_site *site);

/* Add what is wanted at `at` (vaddr); strings of `wanted` are copied, and its spec and kind are the meaning's. */
struct kymo_error *probes_add_request(struct kymo_probes *probes, const struct probe_meaning *meaning, uint64_t at,
				      const struct probe_request *wanted);

/* The number of sites that are planned and not installed. */
size_t kymo_probes_pending(const struct kymo_probes *probes);

/* Whether any of them is something else than the watch for libraries. */
bool probes_pending_but_watches(const struct kymo_probes *probes);

size_t kymo_probes_n_sites(const struct kymo_probes *probes);

#endif
