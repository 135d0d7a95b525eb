#include "proc/start_stub.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "arch/start_stub.h"
#include "base/cleanup.h"
#include "base/page.h"
#include "hub/own_signal.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "proc/linker.h"
#include "proc/members.h"
#include "proc/memory.h"
#include "proc/request.h"
#include "proc/state.h"
#include "proc/thread.h"
#include "procfs/confined.h"
#include "procfs/info.h"
#include "procfs/maps.h"

#define TEXT_MAX (4u << 20)
#define MAX_HEADERS 32
#define BREAKPOINT 0xcc
#define USER_CS 0x33 /* arch/x86/include/asm/segment.h: __USER_CS */

const uint8_t kymo_start_zeros[KYMO_START_STUB];

/* ---- where it goes --------------------------------------------------------------------------- */

const struct kymo_map *kymo_start_text(const struct kymo_maps *maps, uint64_t linker)
{
	const struct kymo_map *first = linker ? kymo_maps_at(maps, linker) : NULL, *text = NULL;

	if (!first || first->path[0] != '/' || !first->inode)
		return NULL;
	for (const struct kymo_map *map = first; map < maps->items + maps->n && map->inode == first->inode; map++) {
		if (!map->executable || map->major != first->major || map->minor != first->minor)
			continue;
		if (text)
			return NULL;
		text = map;
	}
	return text && text->readable && !text->writable && !text->shared ? text : NULL;
}

/* Where the bytes of its segment end: there are none of the linker's behind, up to the end of the mapping. 0: that does
 * not show. `entry_ret` is where the linker begins. */
static uint64_t end_of_segment(struct kymo_process *process, const struct kymo_map *text, uint64_t *entry_ret)
{
	const uint64_t linker = process->startup.linker;
	Elf64_Phdr headers[MAX_HEADERS];
	Elf64_Ehdr header;

	if (kymo_process_read(process, linker, &header, sizeof(header)) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64 || header.e_phnum > MAX_HEADERS ||
	    header.e_phentsize != sizeof(headers[0]) ||
	    kymo_process_read(process, linker + header.e_phoff, headers, header.e_phnum * sizeof(headers[0])))
		return 0;
	*entry_ret = linker + header.e_entry;
	for (size_t i = 0; i < header.e_phnum; i++) {
		const uint64_t start = linker + headers[i].p_vaddr, end = start + headers[i].p_filesz;

		if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_X &&
		    headers[i].p_filesz == headers[i].p_memsz && start >= text->start && start < end &&
		    end <= text->end && text->end - end < KYMO_PAGE_SIZE)
			return end;
	}
	return 0;
}

static bool is_of_last(const struct kymo_tree *tree, const struct kymo_map *text)
{
	return tree->start.inode == text->inode && tree->start.major == text->major &&
	       tree->start.minor == text->minor && tree->start.offset == text->offset &&
	       tree->start.size == text->end - text->start;
}

bool kymo_start_is_within(const struct kymo_map *text, uint64_t site, uint64_t stub)
{
	return site >= text->start + KYMO_START_BEFORE && site + KYMO_START_CODE < text->end && stub > site &&
	       stub <= text->end - KYMO_START_STUB && stub % KYMO_START_ALIGNMENT == 0 &&
	       kymo_page_down(site) == kymo_page_down(site + KYMO_START_JUMP - 1) &&
	       kymo_page_down(stub) == kymo_page_down(stub + KYMO_START_STUB - 1);
}

static bool search(struct kymo_process *process, const struct kymo_map *text)
{
	uint64_t entry = 0, end = end_of_segment(process, text, &entry);
	const uint64_t size = end - text->start,
		       stub = (end + KYMO_START_ALIGNMENT - 1) / KYMO_START_ALIGNMENT * KYMO_START_ALIGNMENT;
	kymo_cleanup_free uint8_t *bytes = end && size <= TEXT_MAX ? malloc(size) : NULL;
	struct kymo_tree *tree = process->tree;
	int64_t site;

	if (!bytes || kymo_process_read(process, text->start, bytes, size))
		return false;
	site = kymo_start_find_site(bytes, size);
	if (site < 0 || !kymo_start_is_within(text, text->start + (uint64_t)site, stub))
		return false;
	tree->start.inode = text->inode;
	tree->start.major = text->major;
	tree->start.minor = text->minor;
	tree->start.offset = text->offset;
	tree->start.size = text->end - text->start;
	tree->start.entry = entry - text->start;
	tree->start.site = (uint64_t)site;
	tree->start.stub = stub - text->start;
	return true;
}

/* In the text as it is now, whatever the last process had there. Nothing of it has run. */
static bool find_site(struct kymo_process *process, const struct kymo_map *text, uint64_t *site_ret, uint64_t *stub_ret)
{
	const struct kymo_tree *tree = process->tree;
	uint8_t code[KYMO_START_CODE], padding[KYMO_START_STUB];
	uint64_t site, stub;

	if (!is_of_last(tree, text) && !search(process, text))
		return false;
	site = text->start + tree->start.site;
	stub = text->start + tree->start.stub;
	if (process->threads.items[0].registers.rip != text->start + tree->start.entry ||
	    kymo_process_read(process, site - KYMO_START_BEFORE, code, sizeof(code)) || !kymo_start_is_site(code) ||
	    kymo_process_read(process, stub, padding, sizeof(padding)) ||
	    memcmp(padding, kymo_start_zeros, sizeof(padding)) != 0)
		return false;
	*site_ret = site;
	*stub_ret = stub;
	return true;
}

/* ---- whether it may -------------------------------------------------------------------------- */

/* Another engine would see calls and signals that are not the program's, or step through them. */
static struct task *task_without_others(const struct kymo_process *process)
{
	struct task *task = hub_find(process->tree->hub, process->pid);

	return task && task->engines.n == 1 && !task->process->has_filter && !task->process->space ? task : NULL;
}

/* One that is ignored by default, and comes at once. Nothing of the program has run, so it has no handler. */
static int choose_signal(struct kymo_process *process)
{
	static const int signals[] = { SIGURG, SIGWINCH };
	struct kymo_tracee_facts facts;

	if (kymo_joined_facts(process->joined, process->pid, KYMO_FACT_MASK, &facts))
		return 0;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!(facts.mask >> (signals[i] - 1) & 1))
			return signals[i];
	return 0;
}

/* A seccomp filter might end it for the signal. A security module might refuse the signal, and calls would be missed.
 */
static bool may_call(const struct kymo_process *process)
{
	struct kymo_process_info info;

	return kymo_process_peek_status(process->pid, &info) && !info.seccomp &&
	       process->threads.items[0].registers.cs == USER_CS && !kymo_is_confined(process->pid);
}

/* ---- in and out ------------------------------------------------------------------------------ */

/* All of the stub before the jump to it. */
static bool write_both(struct kymo_process *process, uint64_t site, uint64_t at, int signal)
{
	uint8_t stub[KYMO_START_STUB], jump[KYMO_START_JUMP];

	if (kymo_start_make_stub(at, site, (uint8_t)signal, stub, jump) ||
	    kymo_process_write(process, at, stub, sizeof(stub)))
		return false;
	if (!kymo_process_write(process, site, jump, sizeof(jump)))
		return true;
	kymo_process_write(process, at, kymo_start_zeros, sizeof(kymo_start_zeros));
	return false;
}

void kymo_start_stub_put(struct kymo_process *process)
{
	struct task *task = process->stopped && process->threads.n == 1 ? task_without_others(process) : NULL;
	const struct kymo_map *text;
	struct kymo_maps maps;
	struct kymo_error *error;
	uint64_t site, at;
	int signal;

	/* Without DT_DEBUG a program that makes no calls is taken to be linked. */
	if (!task || !process->joined || process->remote.active || process->startup.stub.is_unwanted ||
	    !process->startup.debug || !may_call(process))
		return;
	signal = choose_signal(process);
	error = signal ? kymo_process_maps(process, &maps) : NULL;
	if (error || !signal) {
		kymo_error_destroy(error);
		return;
	}
	text = kymo_start_text(&maps, process->startup.linker);
	if (text && find_site(process, text, &site, &at) && write_both(process, site, at, signal)) {
		process->startup.stub.is_in = process->startup.stub.is_awaited = true;
		process->startup.stub.at = at;
		process->startup.stub.site = site;
		hub_own_signal_expect(task->engines.items[0], signal, kymo_start_told_at(at));
	}
	kymo_maps_deinit(&maps);
}

static bool is_in_stub(const struct kymo_thread *thread, uint64_t at)
{
	return thread->registers.rip - at < KYMO_START_STUB;
}

/* False: it is in the stub still. */
static bool lead_out(struct kymo_process *process, struct kymo_thread *thread, uint64_t at, uint64_t site,
		     bool *has_called_ret)
{
	struct user_regs_struct registers = thread->registers;
	uint64_t stack[KYMO_START_WORDS];

	if (!is_in_stub(thread, at))
		return true;
	if (kymo_process_read(process, registers.rsp, stack, sizeof(stack)) ||
	    kymo_start_leave_stub(at, site, stack, &registers, has_called_ret) ||
	    kymo_joined_set_registers(process->joined, thread->tid, &registers))
		return false;
	thread->registers = registers;
	return true;
}

/* The call's own bytes in place of the jump. A breakpoint of the kernel's may have come on top of the jump: its end
 * brings back the first byte, which may be the file's. */
static bool take_jump_out(struct kymo_process *process, uint64_t site, const uint8_t *jump, const uint8_t *call)
{
	uint8_t now[KYMO_START_JUMP];
	size_t first;
	bool is_known;

	if (kymo_process_read(process, site, now, sizeof(now)))
		return false;
	first = now[0] == BREAKPOINT;
	is_known = first || now[0] == jump[0] || now[0] == call[0];
	if (!is_known || memcmp(now + 1, jump + 1, sizeof(now) - 1) != 0)
		return !memcmp(now + first, call + first, sizeof(now) - first);
	return !kymo_process_write(process, site + first, call + first, sizeof(now) - first);
}

/* The jump first: until its zeros are back, the stub leads out by itself. */
bool kymo_start_take_out(struct kymo_process *process, uint64_t at, uint64_t site, bool *has_called_ret)
{
	uint8_t stub[KYMO_START_STUB], jump[KYMO_START_JUMP];
	bool is_out = true;

	if (kymo_start_make_stub(at, site, 0, stub, jump) || !take_jump_out(process, site, jump, stub))
		return false;
	for (size_t i = 0; i < process->threads.n; i++)
		is_out &= lead_out(process, &process->threads.items[i], at, site, has_called_ret);
	return is_out && !kymo_process_write(process, at, kymo_start_zeros, sizeof(kymo_start_zeros));
}

void kymo_start_stub_take(struct kymo_process *process)
{
	const uint64_t at = process->startup.stub.at, site = process->startup.stub.site;
	bool is_told, has_called = false;

	if (!process->threads.n)
		return;
	is_told = process->threads.items[0].registers.rip == kymo_start_told_at(at);
	process->startup.stub.is_awaited = false;
	process->startup.stub.is_in = !kymo_start_take_out(process, at, site, &has_called);
	process->startup.owes_tls |= has_called && process->threads.items[0].registers.fs_base != 0;
	/* A stop of another kind may have come before that of the signal. */
	if (!process->startup.stub.is_in)
		hub_own_signal_move(process->tree->hub, process->pid, is_told ? site + KYMO_START_CALL : 0);
}
