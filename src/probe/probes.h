/* What the files behind session.h share. Private to the room. */
#ifndef KYMO_PROBE_PROBES_H
#define KYMO_PROBE_PROBES_H

#include <signal.h>

#include "arch/arch.h"
#include "arch/pad.h"
#include "base/vec.h"
#include "probe/cache.h"
#include "probe/code.h"
#include "probe/jit.h"
#include "probe/session.h"
#include "probe/remove.h"
#include "probe/shared.h"
#include "probe/text.h"
#include "sym/sym.h"

/* A file that the process has mapped executable and some spec names; or the code around one address in memory of no
 * file. */
struct probe_module {
	uint32_t major, minor;
	uint64_t inode, bias;
	uint64_t low, high; /* where it is mapped, from end to end */
	char *path;
	struct probe_cached *file;
	struct kymo_module *module; /* the file's, as is the code: that is made when the first site is planned */
	struct kymo_code *code;
	struct kymo_jit
		*jit; /* else NULL; with it, there are no file, module and inode, and addresses are the process's own */
	bool is_gone; /* not mapped any more */
	bool is_replaced; /* and there is another version of its file in its place */
};

/* What of a spec has no safe place, for one warning. */
struct probe_refusals {
	size_t n;                 /* places */
	size_t n_switches;        /* of markers that can't be turned on */
	size_t n_reasons, length; /* of `reasons` */
};

struct probe_refused {
	struct probe_refusals now, before; /* the installation that goes on now */
	size_t tried;                      /* places */
	char reasons[1024];
	char *why;    /* the error: it has a place that is named exactly, or none left; or NULL */
	bool had_why; /* before the installation that goes on now */
};

/* The file that a spec's name leads to from here, through PATH and links; inode 0: none. */
struct probe_file {
	uint32_t major, minor;
	uint64_t inode;
};

/* What somebody wants recorded at a site: it becomes an event when the site has a plan. */
struct probe_wish {
	size_t spec;
	enum kymo_event_kind kind;
	uint64_t vaddr;                   /* what the user named; of RETURN, the function */
	char *place, *name;               /* "malloc+0x4", "libc:malloc+0x4" */
	bool is_unknown;                  /* RETURN by a tail jump: $retval is not known */
	const struct kymo_marker *marker; /* MARKER; the file's */
	bool is_refused;
	bool was_refused; /* before the installation that goes on now */
	size_t event;     /* index, when the site is planned */
};

/*
 * A place in the text of the process. Sites refer to others by index or address: the array grows. Those without wishes
 * are guards, and instructions that were evicted for another site.
 */
struct probe_site {
	uint64_t address; /* of the plan's first byte, runtime */
	size_t module;
	KYMO_VEC(struct probe_wish) wishes;
	bool exact;        /* some spec names it without a glob: leaving it out is an error */
	bool is_guard;     /* one of kymo's own (arch/pad.h) */
	bool is_watch;     /* threads that load libraries come along here */
	bool is_sigaction; /* … of those that set handlers of faults, where it is a watch */
	bool was_watch;    /* and was refused */
	bool is_retired;   /* planned, and its library is not mapped now */
	bool is_revived;   /* it was, and is again, at the same address: plan and pad are as they were */
	bool is_standby;   /* a guard for which another recording's stands in */
	bool is_exchanged; /* planned when handlers of faults came: its pad may be in the first process alone, not in
			      children that were adopted before */
	bool is_planned, installed;
	/* when planned: */
	struct kymo_plan plan;
	uint32_t order;    /* place in the journal */
	uint64_t link;     /* the jump that leads to the pad: in the text, or a trampoline */
	uint64_t behind;   /* the inner entry of another recording's pad at the same place, or 0 */
	uint64_t leads_to; /* then: where the link leads before it leads to this pad */
	bool wants_flags;
	uint64_t pad;
	struct kymo_pad_layout layout;
};

/*
 * What turns a marker on: a counter of those who want it, in the process's data, and for kymo's own a jump in the text.
 * Puts nothing of a recording's into the text: several recordings have the same.
 */
struct probe_switch {
	size_t module;
	uint64_t address;            /* of the NOP; of an SDT probe, its place, which is not changed for this */
	uint64_t target;             /* of the jump; 0: there is none */
	uint64_t counter;            /* 16 bits */
	bool is_gate;                /* the counter is that of a struct kymo_marker_gate */
	const char *provider, *name; /* of the marker; the file's */
	const char *spoiled;         /* why it can't be turned on, as it was seen last; or NULL */
	bool is_refused;             /* it stays off: it is spoiled, or no place behind it can be had */
	bool was_refused;            /* before the installation that goes on now */
	uint8_t original;            /* first byte of the text at `address`, as the file has it */
	bool installed, is_retired;
	bool is_ready;  /* the counter's memory is there */
	bool has_entry; /* in the journal, for good; with the next also what is being put in */
	uint64_t entry;
};

/* A byte of the text that is neither the file's nor what kymo has put there. */
struct probe_foreign {
	uint64_t address;
	uint8_t now, file;
};

/* How far another recording was when something was planned. */
struct probe_seen {
	uint64_t inode, generation;
};

struct kymo_probes {
	struct kymo_process *process;
	const struct kymo_spec *specs;
	size_t n_specs;
	bool *met;                      /* per spec: some file and function was found */
	const struct probe_file *files; /* per spec; the cache's */
	struct kymo_probes_options options;
	uint64_t child_buffer; /* kymo_probes_set_child_buffer() */
	char *directory;       /* what options.directory points to */
	KYMO_VEC(struct probe_module) modules;
	KYMO_VEC(struct probe_site) sites; /* sorted by address; installed and pending ones */
	KYMO_VEC(struct probe_switch) switches;
	uint16_t gate_bit;                      /* this recording's, of the gates of its switches */
	bool was_busy;                          /* the program was changing a marker itself when it was stopped */
	bool was_written;                       /* … or was about to write code where it is to be changed */
	struct probe_text text;                 /* of the process, with all planned sites in */
	KYMO_VEC(struct probe_foreign) foreign; /* found by the installation that goes on now */
	struct probe_refused *refused;          /* per spec */
	bool is_dirty; /* some of what is pending may be in the text: an error came while it was written */
	int patience;  /* how often yet places that another recording is working on are worth another try */
	bool is_early; /* a place was refused that another recording is working on */
	KYMO_VEC(struct probe_seen) seen; /* the other recordings for which all this is planned */
	bool has_shared;
	struct kymo_shared shared;
	bool is_live;     /* threads have their thread pointers */
	bool is_starting; /* a launched program that has not reached its entry */
	bool is_confused; /* there were threads that could not be told apart */
	bool has_guards, has_watch;
	bool is_told_of_reading;
	bool is_reading;        /* its pads may read memory by a system call (reading.c) */
	bool is_watched;        /* a recorder answers: kymo_probes_watch() */
	bool has_handler_watch; /* threads that are about to set a handler of faults wait */
	bool told_other_code;
	uint32_t n_answers;              /* requests that were dealt with */
	uint32_t n_on_time;              /* … and nobody can have missed anything meanwhile, or it was told */
	bool were_let_pass;              /* some of the others have not waited */
	uint8_t state;                   /* what the live pages say */
	int64_t tid_offset, rseq_offset; /* 0: not known */
	uint64_t vforks; /* the list that counts: of this recording, or of the one whose guards are in */
	uint64_t stack_low, stack_high;
	uint64_t stack_end; /* the initial thread's stack grows down to there; 0: without a bound that is known */
	uint64_t thread_stack_offset, thread_stack_low; /* KYMO_PAD_LIVE_THREAD_…; 0: not known */
	size_t n_threads_seen, n_stack_looks;           /* when and how often those were looked for */
	uint64_t n_skipped;                             /* hits near that end, which were added to the rings' losses */
	unsigned int watched_faults; /* KYMO_FAULT_…: those that the process has been seen to handle */
	bool is_alone;               /* plans displace single instructions only (faults.c) */
	bool is_lenient;             /* places that were had before may be refused now: that is no error */
	uint64_t changes;            /* of what is installed; goes up with each */
};

/* ---- events.c -----------------------------------------------------------------------------------------------------
 */

/* The files of the recording. */
struct probe_cache *probe_events_cache(struct kymo_events *events);

/* Where the event of system call 0 is. */
void probe_events_note_syscalls(struct kymo_events *events, size_t first);
size_t probe_events_syscalls(const struct kymo_events *events);

/* ---- faults.c ---------------------------------------------------------------------------------------------------- */

/* Of signals, 1 << each. */
unsigned int probes_faults_of(uint64_t mask);

/* KYMO_FAULT_…: what no plan may displace, and what plans had better not. */
unsigned int probes_watched_faults(const struct kymo_probes *probes, const struct kymo_module_code *code);
unsigned int probes_possible_faults(const struct kymo_probes *probes);

/* See what the process handles now. */
void probes_look_at_handlers(struct kymo_probes *probes);

#define PROBES_FAULT_SIGNALS (1u << SIGSEGV | 1u << SIGBUS | 1u << SIGFPE | 1u << SIGILL)

/* Threads that set handlers of these come along at the entry of the C library's sigaction, where its code is known
 * anyway. */
struct kymo_error *probes_add_handler_watch(struct kymo_probes *probes);

/* ---- stack.c ----------------------------------------------------------------------------------------------------- */

/* How far down the initial thread's stack may grow now; 0: that is not known. */
uint64_t probes_stack_end(const struct kymo_probes *probes);

/* What live pages that say `state` say of stacks. Early threads may have no thread pointer to read at. */
struct probe_stack_words {
	uint64_t initial[2];    /* from KYMO_PAD_LIVE_STACK_ENOUGH on */
	uint64_t of_threads[2]; /* from KYMO_PAD_LIVE_THREAD_STACK on */
};

struct probe_stack_words probes_stack_words(const struct kymo_probes *probes, uint8_t state);

/* ---- thread_stacks.c --------------------------------------------------------------------------------------------- */

/* Look where other threads' stacks end, if that is worth it now; true: it is known, and was not before. */
bool probes_find_thread_stacks(struct kymo_probes *probes);

/* What its pads take of the stack to read memory by a system call (kymo_pad_reads_stack()); 0: they read none. */
uint32_t probes_reads_stack(const struct kymo_spec *spec);
/* KYMO_PAD_LIVE_READER for a process with these probes: where specs read memory, and it may make the call. */
uint64_t probes_reader(const struct kymo_probes *probes, struct kymo_process *process);
/* Note whether the process that is recorded has one, and tell the user where specs need it. */
void probes_note_reader(struct kymo_probes *probes);
/* Whether that has changed, and tell the user; now and then. */
void probes_look_at_reader(struct kymo_probes *probes);

/* ---- syscalls.c -------------------------------------------------------------------------------------------------- */

/* What a pad records for `spec`. False when its events are not there. */
bool probe_syscalls_fill(const struct kymo_events *events, const struct kymo_spec *spec, struct kymo_pad_syscalls *ret);

/* Some process has them. */
void probe_syscalls_use(struct kymo_events *events, const struct kymo_spec *spec);

/* ---- modules.c --------------------------------------------------------------------------------------------------- */

/* Whether `map` is of one of the modules. */
bool probes_is_known(const struct kymo_probes *probes, const struct kymo_map *map);

/* The file of `map` becomes the last module; none, where the program has only mapped once more what it has loaded. */
struct kymo_error *probes_open_module(struct kymo_probes *probes, const struct kymo_map *map);

/* So does the code around `address`, in memory of no file. Errors are those of kymo_jit_open(). */
struct kymo_error *probes_open_address(struct kymo_probes *probes, uint64_t address);

void probes_module_deinit(struct kymo_probes *probes, struct probe_module *module);

/* The code of the module with index `i`, made if need be. */
struct kymo_error *probes_code(struct kymo_probes *probes, size_t i, struct kymo_code **ret);

/* The first mapping of a library that is called so ("libc"), or NULL. */
const struct kymo_map *probes_find_library(const struct kymo_maps *maps, const char *name);

/* The value of a data object of a mapped library, by name; false when there is none of that size to be read. */
bool probes_read_object(struct kymo_probes *probes, const struct kymo_map *map, const char *name, void *data,
			size_t size);

/* ---- warning.c
 * -------------------------------------------------------------------------------------------------------- */

void probes_warn(const struct kymo_probes *probes, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- sites.c
 * ---------------------------------------------------------------------------------------------------------- */

/* What a spec means in one module. */
struct probe_meaning {
	size_t spec, module;
	enum kymo_event_kind kind;
	bool exact;
};

/* The site at exactly `address`, or NULL. */
struct probe_site *probes_site_at(struct kymo_probes *probes, uint64_t address);

/* Add a site in the order of addresses; its wishes are taken over. */
struct kymo_error *probes_insert_site(struct kymo_probes *probes, const struct probe_site *site,
				      struct probe_site **ret);

/* "libc:malloc", for messages. */
const char *probes_site_name(const struct probe_site *site);

void probes_site_deinit(struct probe_site *site);

/* Add what is wanted at `at` (vaddr); strings of `wanted` are copied, and its spec and kind are the meaning's. */
struct kymo_error *probes_add_wish(struct kymo_probes *probes, const struct probe_meaning *meaning, uint64_t at,
				   const struct probe_wish *wanted);

/* ---- resolve.c --------------------------------------------------------------------------------------------------- */

/* Free modules and sites. */
void probes_resolve_deinit(struct kymo_probes *probes);

/* The site is planned: its wishes become events. */
struct kymo_error *probes_make_events(struct kymo_probes *probes, struct probe_site *site);

/* Reasons for what somebody else has patched. */
#define PROBE_HAS_BREAKPOINT "a uprobe (perf, bpftrace) or a debugger's breakpoint is there"
#define PROBE_IS_PATCHED "what is there is not what its file holds: something else has patched it"

/* Whether some spec wants system calls: those of all files. */
bool probes_has_syscalls(const struct kymo_probes *probes);

/* The system calls of a module. */
struct kymo_error *probes_resolve_syscalls(struct kymo_probes *probes, const struct probe_meaning *meaning);

/* A warning, once, where the process has code that is of no file. */
void probes_tell_other_code(struct kymo_probes *probes, const struct kymo_maps *maps);

/* ---- refusals.c -------------------------------------------------------------------------------------------------- */

/* Put a reason on the list, or keep it as the spec's error when the user named this very place. */
struct kymo_error *probes_refuse_place(struct kymo_probes *probes, size_t spec, size_t module, bool exact,
				       const char *place, const char *reason);

/* `error`, which it takes, is the spec's, unless that has one. */
struct kymo_error *probes_keep_error(struct kymo_probes *probes, size_t spec, struct kymo_error *error);

/* What probes_refuse_place() does for a marker that can't be turned on, on the list of each spec that means it; never
 * an error by itself. */
struct kymo_error *probes_refuse_switch(struct kymo_probes *probes, const struct probe_switch *item);

/* One wish of a site, which is not refused yet. Markers are never named exactly. */
struct kymo_error *probes_refuse_wish(struct kymo_probes *probes, const struct probe_site *site,
				      struct probe_wish *wish, const char *reason);

/* "no safe place" for all of a site's: an error for specs that name it exactly, a line in the warnings of others. */
struct kymo_error *probes_refuse(struct kymo_probes *probes, struct probe_site *site, const char *reason);

/* An installation begins: keep in mind what is refused for good, and forget what others have patched; or go back to
 * that for another try. */
void probes_keep_refusals(struct kymo_probes *probes);
void probes_forget_refusals(struct kymo_probes *probes);

/* After planning: whether a return is refused that has other sites, which are refused then, too: planning has to begin
 * anew. */
bool probes_refuse_together(struct kymo_probes *probes);

/* The sentences (`why`) of all specs that have one, each in a line. */
struct kymo_error *probes_check_exact(const struct kymo_probes *probes);

/* The same, with those that are refused everywhere. */
struct kymo_error *probes_check_refused(struct kymo_probes *probes);

/* Forget the errors of an earlier installation. */
void probes_forget_errors(struct kymo_probes *probes);

/* Warnings for specs that are refused in part; then counting begins anew. */
void probes_tell_refused(struct kymo_probes *probes);

/* ---- markers.c --------------------------------------------------------------------------------------------------- */

/* Those of a module that a spec means. Notes that are damaged are a warning, and no markers. */
struct kymo_error *probes_resolve_marker(struct kymo_probes *probes, const struct probe_meaning *meaning);

/* What an event of `marker` holds; strings stay the marker's. `source` has room for the event's. */
void probe_marker_arguments(const struct kymo_marker *marker, struct kymo_probe_event *event, char *source,
			    size_t size);

/*
 * Sites and places of kymo's own markers, also where nobody has asked for any. A site's text is everybody's who turns
 * the marker on, the program itself too: nothing else is changed there. At a place another recording may come to put
 * its probe, so that no jump relies on its bytes, and only a probe on it touches it. False when memory is out.
 */
bool probes_mark_markers(const struct kymo_probes *probes, struct probe_text *text);

/* "kymo:request": the marker that is turned on at `address`, or NULL. To be freed. */
char *probes_marker_at(const struct kymo_probes *probes, size_t module, uint64_t address);

/* NOT_FOUND: no module of the process has a marker that `glob` means; with some that there are. */
struct kymo_error *probes_no_such_marker(struct kymo_probes *probes, const char *glob);

/* ---- files.c ---------------------------------------------------------------------------------------------------- */

/* Look up the files of all specs. */
struct kymo_error *probes_files_init(struct kymo_probes *probes);

/* Whether `map` is of the file that spec `spec_at` leads to. Names that fit (kymo_name_matches_file()) mean it too. */
bool probes_is_file(const struct kymo_probes *probes, size_t spec_at, const struct kymo_map *map);

/* Whether some spec, or kymo itself, wants something in the file of `map`; by its name alone. */
bool probes_is_wanted_file(const struct kymo_probes *probes, const struct kymo_map *map);

/* ---- tids.c ---------------------------------------------------------------------------------------------------------
 */

/*
 * Set probes->tid_offset to what glibc tells, unless it is known: false where there is no glibc, or it tells nothing.
 * Reading the library takes time, so it is done once, and if possible before the process is stopped.
 */
bool probes_tid_offset_of_glibc(struct kymo_probes *probes, const struct kymo_maps *maps);

/* Set it to the place where all threads of the stopped `process` have their tids; false where there is none, or it is
 * not proven yet. */
bool probes_find_tid_offset(struct kymo_probes *probes, struct kymo_process *process);

/* Whether each thread of the stopped `process` has its tid there; in Go's place new ones may have 0. */
bool probes_is_tid_offset(struct kymo_process *process, int64_t offset);

/* ---- threads.c ----------------------------------------------------------------------------------------------------
 */

/* Whether the process looks as if its threads could use restartable sequences: glibc says where, and the user did not
 * forbid it. */
bool probes_may_use_sequences(struct kymo_probes *probes);

/* Give those rings memory that will have the work: of which kind they are follows from whether there are guards, or may
 * be. */
struct kymo_error *probes_prepare_rings(struct kymo_probes *probes);

/* With the process stopped and guards in: let pads use sequences, if every thread turns out to be registered as glibc
 * does it, or not yet registered. */
struct kymo_error *probes_use_sequences(struct kymo_probes *probes);

/* Read what the stopped moments will ask for, while the process runs. */
void probes_read_ahead(struct kymo_probes *probes);

/* Write state and offsets to all live pages. */
struct kymo_error *probes_write_state(struct kymo_probes *probes, uint8_t state);

/* Add guards as pending sites, when glibc is mapped and has none yet. Leaves them out where one would touch a probe. */
struct kymo_error *probes_add_guards(struct kymo_probes *probes);

/* Guards that are not in yet: there will be none, and no sequences. */
void probes_drop_guards(struct kymo_probes *probes);

/* ---- watch.c ----------------------------------------------------------------------------------------------------- */

/* Threads have not waited, or some of them. While a program starts its system calls tell more, and nobody is to wait.
 */
bool probes_have_let_pass(const struct kymo_probes *probes);

/* A site where the dynamic linker tells debuggers what it has loaded. Where there is none, libraries that are loaded
 * later are not noticed. */
struct kymo_error *probes_add_watch(struct kymo_probes *probes);

/* The program has started: what its linker has mapped is known, and so the request that it still makes when that is
 * linked is answered already. */
void probes_watch_from_here(struct kymo_probes *probes);

/* Whether the file is a dynamic linker. */
bool probes_is_linker(const char *path);

/* Sites in files that are not mapped any more, or are again. */
struct kymo_error *probes_note_mappings(struct kymo_probes *probes, const struct kymo_maps *maps);

/* ---- place.c ----------------------------------------------------------------------------------------------------- */

/* A stretch of pads for sites that are near each other, before it is in the target: guest code, the live page, pads. */
struct probe_region {
	uint64_t address, size; /* in the target */
	uint64_t at;            /* in the window */
	uint64_t live;          /* in the target */
	uint8_t *bytes;         /* all of it */
	size_t n_bytes, cap;
};

/* A stretch of trampolines. */
struct probe_run {
	uint64_t address, size;
	uint64_t at; /* in the file that it is mapped from */
};

/* A trampoline: a jump at `address` to `target`. */
struct probe_trampoline {
	uint64_t address, target;
};

/* Memory that the pending sites need. */
struct probe_layout {
	KYMO_VEC(struct probe_region) regions;
	KYMO_VEC(struct probe_run) runs;
	KYMO_VEC(struct probe_run) joined;             /* of other recordings, with trampolines that are shared now */
	KYMO_VEC(struct probe_trampoline) trampolines; /* sorted by address */
};

/*
 * Plan all pending sites and emit their pads; the process may run. Sites that have no safe place are an error when they
 * are exact, and left out otherwise. On an error nothing is planned that was not before.
 */
struct kymo_error *probes_place(struct kymo_probes *probes, struct probe_layout *ret);
void probes_layout_deinit(struct probe_layout *layout);

/* Forget the plans of pending sites. */
struct kymo_error *probes_unplace(struct kymo_probes *probes);

/* ---- foreign.c --------------------------------------------------------------------------------------------------- */

/* Whether a debugger or the kernel has put the byte `now` in the place of `file`, the first of an instruction. */
bool probe_is_breakpoint(uint8_t now, uint8_t file);

/* With the process stopped: keep in mind those of the `size` bytes at `address` that are neither what they should be
 * nor the file's. False when memory is out. */
bool probes_note_foreign(struct kymo_probes *probes, uint64_t address, const uint8_t *now, const uint8_t *want,
			 const uint8_t *file, size_t size);

/* Whether `address` lies in a mapping of one of the modules: a library that has made way for another file meanwhile was
 * not patched. */
bool probes_is_still_mapped(const struct kymo_probes *probes, const struct kymo_maps *maps, uint64_t address);

/* Mark those that are there still, and not another recording's by now: no plan touches or relies on them. False when
 * memory is out. */
bool probes_mark_foreign(struct kymo_probes *probes, const struct kymo_maps *maps, struct probe_text *text);

/* The same for the places that the kernel has for this recording. */
bool probes_mark_kernel(const struct kymo_probes *probes, struct probe_text *text);

/* That a breakpoint is there, this recording's or somebody else's, or something else. */
const char *probes_foreign_reason(const struct kymo_probes *probes, uint64_t address);

/* ---- others.c ------------------------------------------------------------------------------------------------------
 */

/* What other recordings have in the process. */
struct probe_others {
	struct kymo_remains *items;
	size_t n;
};

struct kymo_error *probes_others_read(struct kymo_probes *probes, struct probe_others *ret);
void probes_others_deinit(struct probe_others *others);

/* Keep in mind what there is, for the plans that are made now. False when memory is out. */
bool probes_others_remember(const struct probe_others *others, struct kymo_probes *probes);

/* Whether it is still the same. */
struct kymo_error *probes_others_check(struct kymo_probes *probes, bool *same_ret);

/* Mark what they have changed and rely on. False when memory is out. */
bool probes_others_mark(const struct kymo_probes *probes, const struct probe_others *others, struct probe_text *text);

/* The entry whose pad the link at `address` leads to, of a probe or an evicted instruction, or NULL. */
const struct kymo_wire_site *probes_others_head(const struct kymo_probes *probes, const struct probe_others *others,
						uint64_t address);

/* Whether threads that come to this site run pads of other recordings, and not its. False where that can't be told. */
bool probes_others_leave_out(const struct kymo_probes *probes, const struct probe_others *others,
			     const struct probe_site *site);

/* Whether another recording is about to put a probe there, or to take one out. */
bool probes_others_are_busy_at(const struct kymo_probes *probes, const struct probe_others *others, uint64_t address);

/* Whether a jump of another recording's that is in the text is made of any of these bytes, or relies on it. */
bool probes_others_have(const struct kymo_probes *probes, const struct probe_others *others, uint64_t address,
			size_t size);

/* Whether a jump of some other entry is made of bytes of [address, address + size). */
bool probes_others_rely_on(const struct probe_others *others, uint64_t address, size_t size);

/* The run of trampolines that has `link`, of whoever `entry` is. False when there is none. */
bool probes_others_run(const struct probe_others *others, const struct kymo_wire_site *entry,
		       struct kymo_wire_run *ret);

/* The recording whose guards are in the text: its list of vforks, or 0. */
uint64_t probes_others_duty(const struct kymo_probes *probes, const struct probe_others *others);

/* ---- apply.c ----------------------------------------------------------------------------------------------------- */

enum probes_again {
	PROBES_DONE,
	PROBES_AGAIN_LATER, /* a thread stands where it cannot be moved */
	PROBES_AGAIN_ANEW,  /* the process is not any more what was planned for: another recording came or left */
};

/*
 * With the process stopped and pads and journal in place: write the text of all pending sites. When it is to be tried
 * again nothing was changed; with ANEW comes the error to tell when that does not help.
 */
struct kymo_error *probes_apply(struct kymo_probes *probes, enum probes_again *again_ret);

/*
 * Words on the stacks of the stopped threads that look like the program counter of a saved signal frame (a code
 * selector two words behind) and for which `is_hot` says yes: the first is returned, with its thread, or 0.
 */
uint64_t probes_find_saved_pc(struct kymo_process *process, const struct kymo_maps *maps,
			      bool (*is_hot)(uint64_t pc, void *data), void *data, pid_t *tid_ret);

/* Stop it, also when another tracer is there for a moment: another kymo that comes or goes is one. */
struct kymo_error *probes_stop_patiently(struct kymo_process *process);

#endif
