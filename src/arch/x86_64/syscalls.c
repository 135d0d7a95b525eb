/*
 * Where a module's system calls are: its `syscall` instructions. In text that is in no function those bytes may be
 * data, as in libcrypto's tables; they are left out where nothing is known that leads to them. In files without any
 * known function they are not.
 *
 * One is left out if the stack must not be used any more, as a pad would use it: a thread that unmaps its own stack
 * (musl's __unmapself), or tells that it is done with it (Go's exitThread), ends itself by a literal exit(2). It does
 * so in a function that calls no other.
 */
#include "arch/x86_64/syscalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/code.h"
#include "arch/exits.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/gaps.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "base/cleanup.h"
#include "base/vec.h"

static const uint8_t opcode[KYMO_CALL_SIZE] = { 0x0f, 0x05 };

/* By these the kernel takes the calls of 32-bit programs: int $0x80, sysenter. */
static const uint8_t other_opcodes[][KYMO_CALL_SIZE] = { { 0xcd, 0x80 }, { 0x0f, 0x34 } };

/* mov $exit,%eax (or %al), push $exit */
static bool loads_exit(const struct x86_insn *insn)
{
	for (unsigned int i = 0; i < insn->z.operand_count; i++)
		if (insn->op[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && insn->op[i].imm.value.u == SYS_exit)
			return insn->z.mnemonic == ZYDIS_MNEMONIC_PUSH ||
			       (insn->z.mnemonic == ZYDIS_MNEMONIC_MOV && x86_gpr(insn->op[0].reg.value) == 0);
	return false;
}

/* Whether a function, which decodes, may have given its stack away at its end. */
static bool may_leave_stack(const struct kymo_entry_map *map, const struct kymo_extent *function)
{
	struct x86_insn insn = { .length = 1 };
	ZydisDecoder decoder;
	bool ends = false;

	x86_decoder_init(&decoder);
	for (uint64_t at = function->start; at < function->end; at += insn.length) {
		size_t size;
		const uint8_t *bytes = x86_text_at(map, at, &size);

		if (!bytes || x86_decode_full(&decoder, bytes, size, at, &insn))
			return true;
		if (x86_flow_is_call(insn.flow))
			return false;
		ends |= loads_exit(&insn);
	}
	return ends;
}

/* Whether the bytes at `vaddr` are part of some instruction of a function that is well understood, and so no system
 * call. */
static bool is_inside(const struct kymo_entry_map *map, ptrdiff_t function, uint64_t vaddr)
{
	return function >= 0 && (size_t)function < map->n_functions && map->functions[function].decodes &&
	       !map->functions[function].bad && !x86_test(map, X86_STARTS, vaddr);
}

/* What the instruction leaves in eax: a number, or -1 where that is not known. `before` is what was there. */
static int32_t number_after(const struct x86_insn *insn, int32_t before)
{
	const ZydisDecodedOperand *to = &insn->op[0], *from = &insn->op[1];

	if (x86_flow_is_call(insn->flow) || insn->z.mnemonic == ZYDIS_MNEMONIC_SYSCALL)
		return -1;
	if (!x86_writes(insn, RAX))
		return before;
	if (to->type != ZYDIS_OPERAND_TYPE_REGISTER || to->size < 32 || x86_gpr(to->reg.value) != RAX)
		return -1;
	if (insn->z.mnemonic == ZYDIS_MNEMONIC_MOV && from->type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return (int32_t)from->imm.value.u;
	if (insn->z.mnemonic == ZYDIS_MNEMONIC_XOR && from->type == ZYDIS_OPERAND_TYPE_REGISTER &&
	    from->reg.value == to->reg.value)
		return 0;
	return -1;
}

/* A walk over a function, from call to call: calls are asked for in the order of their addresses. */
struct walk {
	const struct kymo_extent *function;
	uint64_t at;    /* the next instruction */
	int32_t number; /* in eax before it; or -1 */
};

/* The number of the call at `vaddr` of the function, or -1: what is in eax on the only way that leads there. */
static int32_t number_on_the_way(const struct kymo_entry_map *map, const struct kymo_extent *function, uint64_t vaddr,
				 struct walk *walk)
{
	struct x86_insn insn;
	ZydisDecoder decoder;

	if (walk->function != function)
		*walk = (struct walk){ function, function->start, -1 };
	x86_decoder_init(&decoder);
	for (; walk->at < vaddr; walk->at += insn.length) {
		size_t size;
		const uint8_t *bytes = x86_text_at(map, walk->at, &size);

		if (!bytes || x86_decode_full(&decoder, bytes, size, walk->at, &insn))
			return -1;
		if (kymo_entry_map_has(map, walk->at))
			walk->number = -1;
		walk->number = x86_flow_ends(insn.flow) ? -1 : number_after(&insn, walk->number);
	}
	return kymo_entry_map_has(map, vaddr) ? -1 : walk->number;
}

/* The number that is known to be in eax there; and that of a signal return, which is known by its bytes. */
static int32_t number_before(const struct kymo_module_code *code, const struct kymo_entry_map *map, ptrdiff_t function,
			     uint64_t vaddr, struct walk *walk)
{
	static const uint8_t signal_return[] = { 0x48, 0xc7, 0xc0, SYS_rt_sigreturn, 0, 0, 0 }; /* mov $15,%rax */
	const struct x86_area *area = x86_area_at(map, vaddr);
	const uint64_t before = vaddr - area->span.vaddr;

	if (before >= sizeof(signal_return) &&
	    !memcmp(area->span.bytes + before - sizeof(signal_return), signal_return, sizeof(signal_return)))
		return SYS_rt_sigreturn;
	if (function < 0 || !map->functions[function].decodes || map->functions[function].bad ||
	    map->functions[function].computed)
		return -1;
	return number_on_the_way(map, &code->functions[function], vaddr, walk);
}

int32_t x86_syscall_number(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t vaddr)
{
	struct walk walk = { .function = NULL };

	return number_before(code, map, x86_function_at(code, vaddr), vaddr, &walk);
}

/* What is known of the function of the last call. */
struct last {
	struct walk walk;
	ptrdiff_t function; /* that the rest is of; or -1 */
	bool may_leave_stack;
};

static struct kymo_syscall_site look_at_call(const struct kymo_module_code *code, const struct kymo_entry_map *map,
					     ptrdiff_t function, uint64_t vaddr, struct last *last)
{
	struct kymo_syscall_site site = { .vaddr = vaddr,
					  .number = number_before(code, map, function, vaddr, &last->walk) };

	if (function >= 0 && function != last->function)
		last->may_leave_stack =
			map->functions[function].decodes && may_leave_stack(map, &code->functions[function]);
	last->function = function;
	if (function >= 0 && last->may_leave_stack)
		site.reason = "the thread ends there, and its stack may be gone";
	return site;
}

/* Whether the bytes, which are in no function, are data. `gap` is the last one that was looked at. */
static int find_data(const struct kymo_module_code *code, const struct kymo_entry_map *map,
		     const struct kymo_span *span, uint64_t vaddr, struct x86_gap *gap, bool *ret)
{
	*ret = false;
	if (!code->n_functions)
		return 0;
	if (!gap->is_code || vaddr < gap->low || vaddr >= gap->high) {
		free(gap->is_code);
		gap->is_code = NULL;
		if (x86_gap_at(code, map, span, vaddr, gap))
			return -ENOMEM;
	}
	*ret = !gap->is_code[vaddr - gap->low];
	return 0;
}

/* What is searched for two bytes, from the start of the text on. */
struct search {
	const struct kymo_module_code *code;
	const struct kymo_entry_map *map;
	size_t area;
	const uint8_t *at; /* in that; NULL: at its start */
	struct x86_gap gap;
};

struct found {
	uint64_t vaddr;
	ptrdiff_t function; /* or below 0 */
};

/* The next place of the bytes that may be an instruction: 1, 0 where there is none any more, or -ENOMEM. */
static int find_next(struct search *search, const uint8_t bytes[KYMO_CALL_SIZE], struct found *ret)
{
	for (; search->area < search->map->n_areas; search->area++, search->at = NULL) {
		const struct kymo_span *span = &search->map->areas[search->area].span;
		const uint8_t *end = span->bytes + span->size;

		search->at = search->at ? search->at : span->bytes;
		while ((search->at = memmem(search->at, (size_t)(end - search->at), bytes, KYMO_CALL_SIZE))) {
			const uint64_t vaddr = span->vaddr + (uint64_t)(search->at++ - span->bytes);
			const ptrdiff_t function = x86_function_at(search->code, vaddr);
			bool is_data = is_inside(search->map, function, vaddr);

			if (function < 0 && find_data(search->code, search->map, span, vaddr, &search->gap, &is_data))
				return -ENOMEM;
			if (is_data)
				continue;
			*ret = (struct found){ vaddr, function };
			return 1;
		}
	}
	return 0;
}

int kymo_syscall_sites_create(const struct kymo_module_code *code, const struct kymo_entry_map *map,
			      struct kymo_syscall_site **ret, size_t *n_ret)
{
	KYMO_VEC(struct kymo_syscall_site) sites = { 0 };
	struct search search = { .code = code, .map = map };
	struct last last = { .function = -1 };
	struct found found;
	int result;

	while ((result = find_next(&search, opcode, &found)) > 0)
		if (!kymo_vec_push(&sites, look_at_call(code, map, found.function, found.vaddr, &last))) {
			result = -ENOMEM;
			break;
		}
	free(search.gap.is_code);
	if (result) {
		kymo_vec_deinit(&sites);
		return result;
	}
	*ret = sites.items;
	*n_ret = sites.n;
	return 0;
}

static bool is_for_devices(ZydisMnemonic mnemonic)
{
	switch (mnemonic) {
	case ZYDIS_MNEMONIC_IN:
	case ZYDIS_MNEMONIC_OUT:
	case ZYDIS_MNEMONIC_INSB:
	case ZYDIS_MNEMONIC_INSD:
	case ZYDIS_MNEMONIC_OUTSB:
	case ZYDIS_MNEMONIC_OUTSD:
	case ZYDIS_MNEMONIC_INT1:
		return true;
	default:
		return false;
	}
}

/* Whether what is after the call is no code of a program: the call does not return then, as those do that take memory
 * away. */
static bool leads_nowhere(const struct kymo_entry_map *map, uint64_t vaddr)
{
	struct x86_insn insn = { .flow = X86_FLOW_NEXT };
	ZydisDecoder decoder;

	x86_decoder_init(&decoder);
	for (uint64_t at = vaddr + KYMO_CALL_SIZE; !x86_flow_ends(insn.flow); at += insn.length) {
		size_t size;
		const uint8_t *bytes = x86_text_at(map, at, &size);

		if (!bytes || x86_decode_full(&decoder, bytes, size, at, &insn) || is_for_devices(insn.z.mnemonic))
			return true;
	}
	return false;
}

int kymo_find_other_call(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t *ret)
{
	int result = 0;

	for (size_t i = 0; i < kymo_countof(other_opcodes) && result <= 0; i++) {
		struct search search = { .code = code, .map = map };
		struct found found;

		do
			result = find_next(&search, other_opcodes[i], &found);
		while (result > 0 && found.function < 0 && leads_nowhere(map, found.vaddr));
		free(search.gap.is_code);
		if (result < 0)
			return result;
		if (result > 0)
			*ret = found.vaddr;
	}
	return result;
}

size_t kymo_next_call(const uint8_t *bytes, size_t size, size_t from)
{
	for (size_t i = from; i + KYMO_CALL_SIZE <= size; i++) {
		if (!memcmp(bytes + i, opcode, KYMO_CALL_SIZE))
			return i;
		for (size_t k = 0; k < kymo_countof(other_opcodes); k++)
			if (!memcmp(bytes + i, other_opcodes[k], KYMO_CALL_SIZE))
				return i;
	}
	return size;
}
