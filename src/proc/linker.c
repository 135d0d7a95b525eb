/*
 * The first moments of a launched program, from its exec until the dynamic linker has mapped what the program is linked
 * with.
 *
 * A start stub tells that glibc has mapped all files (start_stub.c). This file is for the calls after that, and for
 * programs without one. glibc registers the thread for restartable sequences before it links the files; that call is
 * the end. Other and older linkers are watched in another way. The linker tells debuggers in a struct r_debug when it
 * is done (r_state is RT_CONSISTENT), and DT_DEBUG of the program tells where that is. kymo reads it after each system
 * call of the thread, of which there is usually one right then, and else after a moment.
 *
 * A debug register at the entry point would be more exact. But it survives its tracer, and its trap would kill the
 * program then.
 */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/backoff.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/io.h"
#include "proc/linker.h"
#include "proc/memory.h"
#include "proc/state.h"

#define MAX_HEADERS 256
#define MAX_DYNAMIC 4096
#define DYNAMIC_AT_ONCE 32
#define SECOND_NS 1000000000u
#define YOUNG_NS (4ull * SECOND_NS)
#define LOOK_MS 1 /* between two looks at what the linker tells */

struct start {
	uint64_t headers, n_headers, interpreter; /* AT_PHDR, AT_PHNUM, AT_BASE */
};

static struct kymo_error *read_auxv(pid_t pid, struct start *ret)
{
	kymo_cleanup_free char *data = NULL;
	struct start start = { 0 };
	char name[64];
	size_t size;
	int err;

	snprintf(name, sizeof(name), "/proc/%d/auxv", pid);
	err = kymo_read_file(AT_FDCWD, name, 65536, &data, &size);
	if (err)
		return kymo_error_errno(err, "cannot read %s", name);
	for (size_t i = 0; i + sizeof(Elf64_auxv_t) <= size; i += sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t entry;

		memcpy(&entry, data + i, sizeof(entry));
		if (entry.a_type == AT_PHDR)
			start.headers = entry.a_un.a_val;
		else if (entry.a_type == AT_PHNUM)
			start.n_headers = entry.a_un.a_val;
		else if (entry.a_type == AT_BASE)
			start.interpreter = entry.a_un.a_val;
	}
	*ret = start;
	return NULL;
}

/* The program's dynamic section in memory; 0 when it has none, or does not say where it was loaded. */
static uint64_t find_dynamic(struct kymo_process *process, const struct start *start)
{
	uint64_t dynamic = 0, bias = 0, n = start->n_headers < MAX_HEADERS ? start->n_headers : MAX_HEADERS;
	kymo_cleanup_free Elf64_Phdr *headers = calloc(n, sizeof(*headers));
	bool has_bias = false;

	if (!n || !headers || kymo_process_read(process, start->headers, headers, n * sizeof(*headers)))
		return 0;
	for (uint64_t i = 0; i < n; i++) {
		const Elf64_Phdr header = headers[i];

		if (header.p_type == PT_PHDR) {
			bias = start->headers - header.p_vaddr;
			has_bias = true;
		} else if (header.p_type == PT_DYNAMIC) {
			dynamic = header.p_vaddr;
		}
	}
	return has_bias && dynamic ? dynamic + bias : 0;
}

/* Where in the process the value of DT_DEBUG is, or 0. */
static uint64_t find_debug(struct kymo_process *process, uint64_t dynamic)
{
	Elf64_Dyn entries[DYNAMIC_AT_ONCE];

	for (uint64_t i = 0; dynamic && i < MAX_DYNAMIC; i++) {
		const uint64_t at = dynamic + i * sizeof(Elf64_Dyn), k = i % DYNAMIC_AT_ONCE;

		if (!k) { /* where there is less to be read, the rest is as the section's end: DT_NULL */
			memset(entries, 0, sizeof(entries));
			kymo_process_read(process, at, entries, sizeof(entries));
		}
		if (entries[k].d_tag == DT_NULL)
			return 0;
		if (entries[k].d_tag == DT_DEBUG)
			return at + offsetof(Elf64_Dyn, d_un);
	}
	return 0;
}

uint64_t kymo_linker_of(pid_t pid)
{
	struct start start = { 0 };

	kymo_error_destroy(read_auxv(pid, &start));
	return start.interpreter;
}

struct kymo_error *kymo_startup_begin(struct kymo_process *process)
{
	struct start start;
	struct kymo_error *error = read_auxv(process->pid, &start);

	if (error)
		return error;
	kymo_process_set_startup(process, STARTUP_AT_EXEC);
	process->startup.linker = start.interpreter;
	process->startup.debug = find_debug(process, find_dynamic(process, &start));
	return NULL;
}

/* What the linker tells debuggers. Linkers fill r_version in before r_state means anything. */
static bool read_state(struct kymo_process *process, int *state_ret)
{
	struct r_debug debug;
	uint64_t at;

	at = process->startup.r_debug;
	if (!at &&
	    (!process->startup.debug || kymo_process_read(process, process->startup.debug, &at, sizeof(at)) || !at))
		return false;
	process->startup.r_debug = at; /* it stays where it is */
	if (kymo_process_read(process, at, &debug, sizeof(debug)) || debug.r_version <= 0 || !debug.r_map)
		return false;
	*state_ret = debug.r_state;
	return true;
}

static bool is_loaded(struct kymo_process *process)
{
	int state;

	return read_state(process, &state) && state == RT_CONSISTENT;
}

bool kymo_process_is_linking(struct kymo_process *process)
{
	int state;

	return read_state(process, &state) && state == RT_ADD;
}

/* What the call that just ended means for probes; false: nothing. */
static bool call_ended(long number, const uint64_t args[6], int64_t result, enum kymo_startup_event *ret)
{
	if (number == SYS_set_tid_address) {
		*ret = KYMO_STARTUP_TLS;
		return true;
	}
	if (number == SYS_rseq) { /* glibc's last call before it links what it has mapped */
		*ret = KYMO_STARTUP_LOADED;
		return true;
	}
	if (result < 0 && result > -4096)
		return false;
	if ((number == SYS_mmap && args[2] & PROT_EXEC && !(args[3] & MAP_ANONYMOUS)) ||
	    (number == SYS_mprotect && args[2] & PROT_EXEC)) {
		*ret = KYMO_STARTUP_MAPPED;
		return true;
	}
	return false;
}

bool kymo_startup_returned(struct kymo_process *process, long number, const uint64_t args[6], int64_t result,
			   enum kymo_startup_event *ret)
{
	process->startup.moment_ns = kymo_now_ns() + KYMO_STARTUP_MOMENT_NS;
	*ret = KYMO_STARTUP_LOADED;
	return is_loaded(process) || call_ended(number, args, result, ret);
}

bool kymo_startup_looks_done(struct kymo_process *process)
{
	return process->startup.debug ? is_loaded(process) : true;
}

/* Since it was forked; 0: not known. */
static uint64_t age_ns(uint64_t start_time)
{
	const uint64_t tick_ns = SECOND_NS / (uint64_t)sysconf(_SC_CLK_TCK);
	struct timespec booted;
	uint64_t now;

	if (clock_gettime(CLOCK_BOOTTIME, &booted))
		return 0;
	now = (uint64_t)booted.tv_sec * SECOND_NS + (uint64_t)booted.tv_nsec;
	return now > start_time * tick_ns ? now - start_time * tick_ns : 0;
}

void kymo_linker_wait(struct kymo_process *process, uint64_t start_time)
{
	const struct process_startup before = process->startup;
	struct pollfd ended = { .fd = process->memory.pidfd, .events = POLLIN };
	struct start start = { 0 };

	if (age_ns(start_time) > YOUNG_NS)
		return;
	kymo_error_destroy(read_auxv(process->pid, &start)); /* then there is nothing to wait for */
	process->startup.debug = find_debug(process, find_dynamic(process, &start));
	while (!kymo_startup_looks_done(process) && age_ns(start_time) <= YOUNG_NS && poll(&ended, 1, LOOK_MS) <= 0)
		;
	process->startup = before;
}
