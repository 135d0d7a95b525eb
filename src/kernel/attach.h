/* Probes: what the kernel makes samples of, and where. */
#ifndef KYMO_KERNEL_ATTACH_H
#define KYMO_KERNEL_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kernel/form.h"
#include "wire/event.h"
#include "wire/types.h"

struct kymo_kernel;

struct kymo_kernel_arg {
	enum kymo_kernel_source source;
	/* the low bytes are recorded; of STRING, which a form has, those from its value on, up to a NUL or `limit` */
	enum kymo_type type;
	uint16_t at; /* a multiple of 8 */
	int64_t value;
	const struct kymo_kernel_form *form;
	uint16_t limit;
};

/* Bytes that strings may take in one event, each with two more than its limit; a program's stack has no more room. */
#define KYMO_KERNEL_STRINGS_MAX 272

/* What is recorded at some sites of one file. */
struct kymo_kernel_probe {
	int file;       /* open; need not stay so */
	bool is_return; /* sites are functions: record when they return to their callers */
	const struct kymo_kernel_arg *args;
	size_t n_args;                         /* <= KYMO_EVENT_MAX_ARGS */
	bool has_faults;                       /* records carry the faults byte (wire/event.h) */
	const struct kymo_kernel_form *filter; /* records are made if it has a value, and that is not 0; NULL: always */
};

struct kymo_kernel_site {
	uint32_t id;     /* of the event; several sites of one have the same arguments' types */
	uint64_t offset; /* in the file */
	uint64_t vaddr;  /* as linked, for forms with ADDRESS; below KYMO_KERNEL_VADDR_MAX */
	/* set by kymo_kernel_attach(): 0, or a negative errno where the kernel refuses the site */
	int err;
};

/* A site's cookie has the event's id, and above it the address as linked. */
#define KYMO_KERNEL_VADDR_MAX (UINT64_C(1) << (64 - KYMO_EVENT_ID_BITS))

/* Where the kernel sets uprobes one by one: a minute at most. */
#define KYMO_KERNEL_MAX_SINGLE 1000

/*
 * Put a probe at `n` sites (UNSAFE: more than KYMO_KERNEL_MAX_SINGLE, where that is the limit). Processes need not be
 * stopped; those that map the file later get it before they can run it. An error is about all sites. That single ones
 * are refused is no error, and known only where some process of those that are recorded has the file mapped.
 */
struct kymo_error *kymo_kernel_attach(struct kymo_kernel *kernel, const struct kymo_kernel_probe *probe,
				      struct kymo_kernel_site *sites, size_t n);

/* Take all probes out. What was recorded stays to be drained; counts of losses are final then. */
void kymo_kernel_detach(struct kymo_kernel *kernel);

/* Private to the room: whether one link can stand for many sites, and tell a process with all its threads from others.
 */
bool kernel_has_multi(void);

#endif
