/* What has to hold for an instruction to be displaced at all, whatever the tactic: points 1, 2, 4 and 6 of plan.c. */
#include "arch/x86_64/check.h"

#include <string.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/faults.h"
#include "arch/x86_64/jit.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/relocate.h"
#include "arch/x86_64/stacks.h"
#include "base/page.h"

/* Whether all from `stop`, after an instruction that ends the flow, to the site are NOPs: padding, which is never
 * read. */
static bool is_behind_nops(const struct x86_site *site, uint64_t stop)
{
	struct x86_insn insn = { .length = 0 };

	if (stop == UINT64_MAX)
		return false;
	for (uint64_t at = stop; at <= site->vaddr; at += insn.length) {
		if (x86_decode_in(site, at, &insn) < 0 || !x86_is_nop(&insn))
			return false;
	}
	return true;
}

static int check_function(const struct x86_site *site, struct kymo_refusal *refusal)
{
	uint64_t vaddr = site->vaddr, start = site->function->start, last;
	const unsigned int entered = 1u << X86_FIRM | 1u << X86_LIKELY;

	if (!site->about->decodes)
		return x86_refuse(refusal, site->about->bad,
				  "the function at 0x%lx has bytes at 0x%lx that are no instruction", start,
				  site->about->bad);
	if (site->about->bad)
		return x86_refuse(
			refusal, site->about->bad,
			"control enters at 0x%lx, inside of an instruction: the function at 0x%lx may contain data",
			site->about->bad, start);
	if (!x86_test(site->map, X86_STARTS, vaddr))
		return x86_refuse(refusal, vaddr, "no instruction begins at 0x%lx", vaddr);
	last = x86_last(site->map, entered | 1u << X86_STOPS, start, vaddr);
	if ((last == UINT64_MAX || (!x86_test(site->map, X86_FIRM, last) && !x86_test(site->map, X86_LIKELY, last))) &&
	    !is_behind_nops(site, last))
		return x86_refuse(refusal, vaddr, "nothing is known to lead to 0x%lx: it may be data", vaddr);
	return 0;
}

/* Whether `size` bytes of the text at `vaddr` are these. */
static bool has_bytes(const struct x86_site *site, uint64_t vaddr, const void *bytes, size_t size)
{
	size_t available;
	const uint8_t *text = x86_text_at(site->map, vaddr, &available);

	return text && available >= size && !memcmp(text, bytes, size);
}

/* Whether the instruction is one of mov $15,%eax (or %rax); syscall */
static bool is_signal_return(const struct x86_site *site, const struct x86_insn *insn)
{
	static const uint8_t wide[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t narrow[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	uint64_t at = insn->address;

	if (has_bytes(site, at, wide, sizeof(wide)) || has_bytes(site, at, narrow, sizeof(narrow)))
		return true;
	return insn->z.mnemonic == ZYDIS_MNEMONIC_SYSCALL &&
	       (has_bytes(site, at - 7, wide, sizeof(wide)) || has_bytes(site, at - 5, narrow, sizeof(narrow)));
}

/*
 * Whether a cancellable system call is at `vaddr`, or follows in the function within some instructions. musl's
 * __syscall_cp_asm and glibc's __syscall_cancel_arch (2.41) load the last two of their eight arguments right
 * before the call; the signal handler that cancels a thread asks whether it stands between the start of this code
 * and the end of the call.
 */
static bool is_cancellable(const struct x86_site *site, uint64_t vaddr)
{
	static const uint8_t loads[] = { 0x4c, 0x8b, 0x44, 0x24, 0x08, 0x4c, 0x8b, 0x4c, 0x24, 0x10 };
	static const uint8_t call[] = { 0x0f, 0x05 }, store_call[] = { 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05 };
	const uint64_t before = sizeof(loads) + sizeof(store_call), after = 48;

	for (uint64_t at = vaddr - before; at != vaddr + after && at != site->function->end; at++) {
		uint64_t next = at + sizeof(loads);
		bool is_plain;

		if (!has_bytes(site, at, loads, sizeof(loads)))
			continue;
		is_plain = has_bytes(site, next, call, sizeof(call));
		if (!is_plain && !has_bytes(site, next, store_call, sizeof(store_call)))
			continue;
		if (vaddr < next + (is_plain ? sizeof(call) : sizeof(store_call)))
			return true;
	}
	return false;
}

int x86_check_insn(const struct x86_site *site, const struct x86_insn *insn, uint64_t end, bool alone,
		   struct kymo_refusal *refusal)
{
	const char *why = alone ? x86_cannot_move_alone(insn) : x86_cannot_move(insn);

	if (!why && x86_reads_code(insn, site->vaddr, end - site->vaddr))
		why = "reads the bytes that would be replaced";
	if (!why && is_signal_return(site, insn))
		why = "belongs to a signal return, which unwinders know by its bytes";
	if (!why && is_cancellable(site, insn->address))
		why = "leads to a system call at which threads are canceled, known by its address";
	if (why)
		return x86_refuse(refusal, insn->address, "the instruction at 0x%lx %s", insn->address, why);
	return 0;
}

int x86_skip_endbr(struct x86_site *site, struct kymo_refusal *refusal)
{
	uint64_t next = site->vaddr + site->insn.length;

	if (site->insn.z.mnemonic != ZYDIS_MNEMONIC_ENDBR64)
		return 0;
	if (next >= site->function->end || x86_decode_in(site, next, &site->insn) < 0)
		return x86_refuse(refusal, site->vaddr,
				  "the function ends after the endbr64 at 0x%lx, which has to stay", site->vaddr);
	if (kymo_entry_map_has(site->map, next))
		return x86_refuse(refusal, next,
				  "0x%lx, after an endbr64 that has to stay, is entered from elsewhere too", next);
	site->vaddr = next;
	return 0;
}

int x86_find_insn(struct x86_site *site, struct kymo_refusal *refusal)
{
	uint64_t vaddr = site->vaddr;
	ptrdiff_t function = x86_function_at(site->code, vaddr);
	int err;

	if (!x86_area_at(site->map, vaddr))
		return x86_refuse(refusal, vaddr, "0x%lx is not in an executable section", vaddr);
	if (function < 0 || (size_t)function >= site->map->n_functions)
		return x86_refuse(refusal, vaddr, "no function with a known end contains 0x%lx", vaddr);
	site->function = &site->code->functions[function];
	site->about = &site->map->functions[function];
	err = check_function(site, refusal);
	if (!err && x86_decode_in(site, vaddr, &site->insn) < 0)
		err = x86_refuse(refusal, vaddr, "no instruction begins at 0x%lx", vaddr);
	return err;
}

int x86_check_site(const struct x86_site *site, struct kymo_refusal *refusal)
{
	uint64_t end = site->vaddr + site->insn.length;
	int err = x86_check_rseq(site, site->vaddr, end, refusal);

	if (!err)
		err = x86_check_insn(site, &site->insn, end, true, refusal);
	if (!err)
		err = x86_check_faults(site, &site->insn, refusal);
	if (!err)
		err = x86_check_stack(site, refusal);
	if (!err)
		err = x86_check_jit(site, site->insn.length, refusal);
	if (!err && x86_is_locked(site, site->vaddr, 1))
		err = x86_refuse(refusal, site->vaddr, "another probe has taken 0x%lx, or relies on what is there",
				 site->vaddr);
	return err;
}

int x86_find_evictable(const struct x86_site *site, uint64_t vaddr, struct x86_site *ret, struct kymo_refusal *refusal)
{
	struct x86_site found = {
		.code = site->code,
		.map = site->map,
		.room = site->room,
		.decoder = site->decoder,
		.watched_faults = site->watched_faults,
	};
	int err;

	found.vaddr = vaddr;
	err = x86_find_insn(&found, refusal);
	if (!err)
		err = x86_check_site(&found, refusal);
	if (err)
		return err;
	if (found.insn.z.mnemonic == ZYDIS_MNEMONIC_SYSCALL || found.insn.z.mnemonic == ZYDIS_MNEMONIC_INT)
		return x86_refuse(refusal, vaddr,
				  "the instruction at 0x%lx, which would have to make room, is a system call", vaddr);
	if (x86_is_locked(&found, vaddr, found.insn.length))
		return x86_refuse(refusal, vaddr, "another probe wants the instruction at 0x%lx, or relies on it",
				  vaddr);
	*ret = found;
	return 0;
}

unsigned int x86_changeable(const struct x86_site *site)
{
	unsigned int n = 0;

	for (; n < site->insn.length; n++) {
		uint64_t at = site->vaddr + n;

		if (n && (kymo_page_down(at) == at || kymo_entry_map_has(site->map, at)))
			break;
		if (x86_test(site->map, X86_READ, at) || x86_is_locked(site, at, 1))
			break;
	}
	return n;
}

int x86_refuse_fixed(const struct x86_site *site, struct kymo_refusal *refusal)
{
	if (x86_test(site->map, X86_READ, site->vaddr))
		return x86_refuse(refusal, site->vaddr, "0x%lx is read as data", site->vaddr);
	return x86_refuse(refusal, site->vaddr, "another probe has taken 0x%lx, or relies on what is there",
			  site->vaddr);
}
