/*
 * Where control may enter a module's code other than by falling through.
 *
 * The claim
 *
 *   Let A be the start of an instruction of a function that decodes, whose `bad` and `computed` are 0. If the map does
 *   not have A, then the only way to A is from the instruction before it.
 *
 * kymo_plan() overwrites the bytes of instructions after the first of a window on the strength of this. A false mark
 * costs a refusal; a missing one, a process. So each source below is a superset of what it stands for.
 *
 * Why it holds
 *
 *   The address in the PC after an instruction was either encoded in it, or read from a register, or from memory.
 *
 *   1. Encoded: direct branches. The sweep decodes each function from its start, and what lies between functions. It
 *	misreads what follows data in text. Therefore every byte is also taken for the start of a rel32 branch (scan.c).
 *	It is also taken for that of a rel8 branch where the sweep may be wrong: between functions, and in functions
 *	that do not decode or are entered inside of an instruction. Likewise after an instruction that ends the flow, if
 *	nothing is known to enter after it.
 *   2. Read from memory or a register, unchanged since the address was made. It can be made by the linker (a
 *	relocation: handed in; in modules that cannot move, a constant in data or code: scan.c), by code
 *	(RIP-relative lea: marked; a constant: marked; the return address of a call: no window goes on past a call),
 *	by the dynamic linker (symbols: handed in), by an unwinder (landing pads: handed in), or by the kernel (the PC
 *	of an interrupted thread: the recorder that applies a plan moves threads and saved frames out of windows; a
 *	restarted system call: never displaced; an rseq abort: its address is a relocated pointer). Addresses made in
 *	another module name symbols of this one.
 *   3. Computed from such an address. Compilers do this only for jump tables. tables.c marks these from the address of
 *      the table, whether or not the jump that uses it is found. People do it in assembler. So each indirect jump must
 *      be seen to use a pointer or a table (jumps.c). Else nothing is displaced past a first instruction in its
 *      function and in functions whose addresses it takes (`computed`). A function that takes an address inside of
 *      itself and jumps indirectly has its jumps distrusted even if they look like 2.
 *
 *   What would break it: a jump through a register by `push; ret` or a retpoline thunk, of an address computed other
 *   than by a jump table. No compiler makes that, and no library was found that does.
 *
 * The bitmaps, one bit a byte of text
 *
 *	KNOWN	entered, as code that decodes says, or the caller
 *	FIRM	the same, but the code that says so is itself known to be entered, and branches there
 *	LIKELY	entered if a guess is right: constants, what follows the sure part of a jump table, branches in gaps
 *		between functions
 *	SCANNED	entered if an instruction begins at some byte
 *	STARTS	the sweep of a function saw an instruction begin
 *	STOPS	it saw one begin after one that may not come back
 *	READ	an instruction loads it: a constant between the code, or an immediate used a second time (V8 does
 *		that). Nothing is written there
 *	ENTERED	a branch of another function leads there, or of what lies between functions: after the start of its own
 *
 * What follows an instruction that ends the flow may be data whose address is taken, and is read wrongly: OpenSSL has
 * strings in functions. If a FIRM one is not at the start of an instruction the sweep has misread the function (`bad`).
 * Lock prefixes are an exception, as glibc's atomics jump over them. Without a firm or likely mark, nothing shows that
 * what follows the end of the flow is code. Where a function has jumps that may lead
 * anywhere, what it branches to, or takes the address of, is firm in any case.
 */
#include "arch/x86_64/entries.h"

#include <errno.h>
#include <string.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/firm.h"
#include "arch/x86_64/jumps.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/plain.h"
#include "arch/x86_64/scan.h"
#include "arch/x86_64/sources.h"
#include "arch/x86_64/stacks.h"
#include "arch/x86_64/tables.h"
#include "base/large.h"
#include "base/search.h"

/* ---- the sweep ------------------------------------------------------------------------------- */

static int take_target(struct x86_builder *builder, size_t function, const struct x86_insn *insn, uint64_t target,
		       bool by_lea)
{
	const struct kymo_extent *extent;

	if (function != X86_NO_FUNCTION) {
		extent = &builder->code->functions[function];
		if (target > extent->start && target < extent->end)
			builder->map->functions[function].own_address = insn->address;
	}
	x86_note_taken(builder, function, target);
	return kymo_vec_push(&builder->taken, (struct x86_taken){ target, function, by_lea }) ? 0 : -ENOMEM;
}

/* Text that the instruction reads or writes at a fixed address. */
static void note_access(struct x86_builder *builder, const struct x86_insn *insn)
{
	bool absolute = !builder->code->position_independent && !insn->has_rip && insn->z.raw.disp.size == 32;
	uint64_t vaddr = insn->has_rip ? insn->rip : (uint64_t)insn->z.raw.disp.value, size = 0;
	struct x86_insn full;
	const uint8_t *bytes;
	size_t n;

	if ((!insn->has_rip && !absolute) || insn->z.mnemonic == ZYDIS_MNEMONIC_LEA ||
	    !x86_area_at(builder->map, vaddr))
		return;
	bytes = x86_text_at(builder->map, insn->address, &n);
	if (!bytes || x86_decode_full(&builder->decoder, bytes, n, insn->address, &full) < 0)
		return;
	for (int i = 0; i < full.z.operand_count; i++) {
		if (full.op[i].type == ZYDIS_OPERAND_TYPE_MEMORY && full.op[i].size / 8u > size)
			size = full.op[i].size / 8u;
	}
	/* Operands without a size are those of fxsave and the like. */
	for (uint64_t i = 0; i < (size ? size : 1024); i++)
		x86_mark(builder->map, X86_READ, vaddr + i);
}

/* Constants of a position-dependent module that are addresses. */
static int take_constants(struct x86_builder *builder, size_t function, const struct x86_insn *insn)
{
	const ZydisDecodedInstructionRaw *raw = &insn->z.raw;
	uint64_t values[3];
	int n = 0, err;

	for (int i = 0; i < 2; i++) {
		if (raw->imm[i].size >= 32 && !raw->imm[i].is_relative)
			values[n++] = raw->imm[i].value.u;
	}
	if (raw->disp.size >= 32 && !insn->has_rip)
		values[n++] = (uint64_t)raw->disp.value;
	for (int i = 0; i < n; i++) {
		x86_mark(builder->map, X86_LIKELY, values[i]);
		x86_mark(builder->map, X86_LIKELY, (uint32_t)values[i]);
		err = take_target(builder, function, insn, values[i], false);
		if (err)
			return err;
	}
	return 0;
}

static int note_entry(struct x86_builder *builder, size_t function, const struct x86_insn *insn)
{
	enum x86_bitmap which = function == X86_NO_FUNCTION ? X86_LIKELY : X86_KNOWN;
	int err = 0;

	if (insn->has_target) {
		x86_mark(builder->map, which, insn->target);
		err = x86_note_branch(builder, function, insn->address, insn->target);
		x86_note_source(builder, function, insn);
	}
	if (!err && x86_is_rip_lea(insn)) {
		x86_mark(builder->map, which, insn->rip);
		err = x86_note_address(builder, function, insn->address, insn->rip);
		if (!err)
			err = take_target(builder, function, insn, insn->rip, true);
	}
	note_access(builder, insn);
	if (!err && !builder->code->position_independent)
		err = take_constants(builder, function, insn);
	if (!err && function != X86_NO_FUNCTION &&
	    (insn->flow == X86_FLOW_JUMP_INDIRECT || insn->flow == X86_FLOW_CALL_INDIRECT) &&
	    !kymo_vec_push(&builder->indirect, (struct x86_indirect){ insn->address, function }))
		err = -ENOMEM;
	return err;
}

/* A call of a label inside of the function itself: the old way to push the address of a string that follows. */
static bool is_local_call(const struct x86_builder *builder, size_t function, const struct x86_insn *insn)
{
	const struct kymo_extent *extent = &builder->code->functions[function];

	return insn->flow == X86_FLOW_CALL && insn->target > extent->start && insn->target < extent->end;
}

/* The sweep of `self` has come to the instruction at `at`. */
static void note_start(struct x86_builder *builder, uint64_t at, bool stopped)
{
	struct kymo_entry_map *map = builder->map;

	x86_mark(map, X86_STARTS, at);
	if (stopped)
		x86_mark(map, X86_STOPS, at);
	builder->is_firm =
		x86_test(map, X86_FIRM, at) || x86_test(map, X86_LIKELY, at) || (builder->is_firm && !stopped);
}

/* Decode [low, high) of one area; `function` may be X86_NO_FUNCTION. */
static int sweep(struct x86_builder *builder, size_t function, uint64_t low, uint64_t high)
{
	struct kymo_entry_map *map = builder->map;
	struct x86_function *self = function == X86_NO_FUNCTION ? NULL : &map->functions[function];
	bool stopped = false, moves = builder->code->position_independent; /* else any constant may be an address */
	size_t size;
	const uint8_t *bytes = low < high ? x86_text_at(map, low, &size) : NULL;

	for (uint64_t at = low; bytes && at < high;) {
		size_t left = (size_t)(high - at), plain = moves ? x86_plain_length(bytes + (at - low), left) : 0;
		struct x86_insn insn;
		int err;

		if (plain) {
			if (self)
				note_start(builder, at, stopped);
			stopped = false;
			at += plain;
			continue;
		}
		if (!(moves && x86_decode_near(bytes + (at - low), left, at, &insn)) &&
		    x86_decode(&builder->decoder, bytes + (at - low), left, at, &insn) < 0) {
			if (self && self->decodes) {
				self->decodes = false;
				self->bad = at;
			}
			at++;
			continue;
		}
		if (self) {
			note_start(builder, at, stopped);
			stopped = x86_flow_ends(insn.flow) || is_local_call(builder, function, &insn);
		}
		err = note_entry(builder, function, &insn);
		if (err)
			return err;
		at += insn.length;
	}
	return 0;
}

static int sweep_gap(struct x86_builder *builder, uint64_t low, uint64_t high)
{
	x86_scan_short(builder, low, high);
	x86_scan_absolute(builder, low, high);
	return sweep(builder, X86_NO_FUNCTION, low, high);
}

/* Functions that leave their section have no record of it in the bitmaps; `bad` keeps them from being used. */
static bool function_fits(const struct kymo_module_code *code, const struct x86_area *area, size_t function)
{
	const struct kymo_extent *extent = &code->functions[function];

	return extent->start >= area->span.vaddr && extent->end - area->span.vaddr <= area->span.size;
}

static int sweep_area(struct x86_builder *builder, const struct x86_area *area, size_t *function)
{
	const struct kymo_module_code *code = builder->code;
	uint64_t at = area->span.vaddr, end = at + area->span.size;
	int err;

	while (*function < code->n_functions && code->functions[*function].end <= at)
		(*function)++;
	for (; *function < code->n_functions && code->functions[*function].start < end; (*function)++) {
		const struct kymo_extent *extent = &code->functions[*function];

		if (!function_fits(code, area, *function))
			continue;
		err = sweep_gap(builder, at, extent->start);
		if (!err)
			err = sweep(builder, *function, extent->start, extent->end);
		if (err)
			return err;
		at = extent->end;
	}
	return sweep_gap(builder, at, end);
}

static int sweep_all(struct x86_builder *builder)
{
	struct kymo_entry_map *map = builder->map;
	const struct kymo_module_code *code = builder->code;

	for (size_t i = 0; i < code->n_functions; i++) {
		const struct x86_area *area = x86_area_at(map, code->functions[i].start);

		x86_mark_entered(map, code->functions[i].start);
		map->functions[i].decodes = area && function_fits(code, area, i);
		if (!map->functions[i].decodes)
			map->functions[i].bad = code->functions[i].start;
	}
	/* Without relocations, the caller had to guess which words of data are addresses. */
	for (size_t i = 0; i < code->n_entries; i++) {
		if (code->position_independent)
			x86_mark_entered(map, code->entries[i]);
		else
			x86_mark(map, X86_LIKELY, code->entries[i]);
	}
	/* .init and .fini are called by the dynamic linker, which finds them by their sections' addresses. */
	for (size_t i = 0; i < map->n_areas; i++)
		x86_mark_entered(map, map->areas[i].span.vaddr);
	for (size_t i = 0, function = 0; i < map->n_areas; i++) {
		int err = sweep_area(builder, &map->areas[i], &function);

		if (err)
			return err;
	}
	return 0;
}

/* ---- what the sweep has to be distrusted for ------------------------------------------------- */

/* The first firm entry of [low, high) that is not at the start of an instruction, or 0. */
static uint64_t entered_inside(const struct kymo_entry_map *map, uint64_t low, uint64_t high)
{
	const struct x86_area *area = x86_area_at(map, low);
	uint64_t bit = area->base + (low - area->span.vaddr), end = bit + (high - low);

	for (uint64_t word = bit / 64; word * 64 < end; word++) {
		uint64_t wrong = map->bits[X86_FIRM][word] & ~map->bits[X86_STARTS][word];

		for (; wrong; wrong &= wrong - 1) {
			uint64_t at = word * 64 + (uint64_t)__builtin_ctzll(wrong);
			uint64_t vaddr = area->span.vaddr + (at - area->base);

			if (at < bit || at >= end)
				continue;
			if (vaddr > low && area->span.bytes[vaddr - 1 - area->span.vaddr] == 0xf0 &&
			    x86_test(map, X86_STARTS, vaddr - 1))
				continue;
			return vaddr;
		}
	}
	return 0;
}

/* Bytes after an instruction that ends the flow, up to where something is known to enter, may be data. */
static void scan_unreached(struct x86_builder *builder, const struct kymo_extent *extent)
{
	const unsigned int stops = 1u << X86_STOPS, entered = 1u << X86_FIRM | 1u << X86_LIKELY;
	struct kymo_entry_map *map = builder->map;
	uint64_t end = extent->end;

	while (end > extent->start) {
		uint64_t at = x86_last(map, stops | entered, extent->start, end - 1);

		if (at == UINT64_MAX)
			return;
		if (!x86_test(map, X86_FIRM, at) && !x86_test(map, X86_LIKELY, at))
			x86_scan_short(builder, at, end);
		end = at;
	}
}

static void judge_functions(struct x86_builder *builder)
{
	struct kymo_entry_map *map = builder->map;

	for (size_t i = 0; i < map->n_functions; i++) {
		const struct kymo_extent *extent = &builder->code->functions[i];
		struct x86_function *self = &map->functions[i];

		if (self->decodes)
			self->bad = entered_inside(map, extent->start, extent->end);
		if (self->bad) {
			x86_scan_short(builder, extent->start, extent->end);
			x86_scan_absolute(builder, extent->start, extent->end);
		} else {
			scan_unreached(builder, extent);
		}
	}
}

/* ---- computed jumps -------------------------------------------------------------------------- */

static int compare_by_function(const void *a, const void *b)
{
	const struct x86_taken *left = a, *right = b;

	return left->function < right->function ? -1 : left->function > right->function;
}

/* Distrust the functions whose addresses `function` takes: the jump of it at `vaddr` may lead into them. */
static void distrust_taken(struct x86_builder *builder, size_t function, uint64_t vaddr)
{
	const struct x86_taken *taken = builder->taken.items;
	size_t at = kymo_partition_point(i, builder->taken.n, taken[i].function < function);

	for (; at < builder->taken.n && taken[at].function == function; at++) {
		ptrdiff_t into = x86_function_at(builder->code, taken[at].target);

		if (into >= 0 && !builder->map->functions[into].computed)
			builder->map->functions[into].computed = vaddr;
	}
}

static void judge_jumps(struct x86_builder *builder)
{
	struct x86_jumps jumps;

	x86_jumps_init(builder, &jumps);
	if (builder->taken.n)
		qsort(builder->taken.items, builder->taken.n, sizeof(struct x86_taken), compare_by_function);
	for (size_t i = 0; i < builder->indirect.n; i++) {
		const struct x86_indirect *indirect = &builder->indirect.items[i];
		struct x86_function *self = &builder->map->functions[indirect->function];

		if (!self->bad && x86_jump_is_understood(&jumps, indirect->function, indirect->vaddr))
			continue;
		if (!self->computed)
			self->computed = indirect->vaddr;
		distrust_taken(builder, indirect->function, indirect->vaddr);
	}
}

/* ---- lifecycle ------------------------------------------------------------------------------- */

static int compare_spans(const void *a, const void *b)
{
	const struct kymo_span *left = a, *right = b;

	return left->vaddr < right->vaddr ? -1 : left->vaddr > right->vaddr;
}

/* Sort a copy of `n` spans. -EINVAL where they overlap or wrap around. */
static int sort_spans(const struct kymo_span *spans, size_t n, struct kymo_span **ret)
{
	struct kymo_span *sorted = calloc(n + 1, sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	if (n) {
		memcpy(sorted, spans, n * sizeof(*sorted));
		qsort(sorted, n, sizeof(*sorted), compare_spans);
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t end = sorted[i].vaddr + sorted[i].size;

		if (end < sorted[i].vaddr || (i + 1 < n && end > sorted[i + 1].vaddr)) {
			free(sorted);
			return -EINVAL;
		}
	}
	*ret = sorted;
	return 0;
}

static int check_functions(const struct kymo_module_code *code)
{
	for (size_t i = 0; i < code->n_functions; i++) {
		if (code->functions[i].start >= code->functions[i].end ||
		    (i && code->functions[i].start < code->functions[i - 1].end))
			return -EINVAL;
	}
	return 0;
}

static int map_init(struct kymo_entry_map *map, const struct kymo_module_code *code)
{
	struct kymo_span *text = NULL;
	int err = sort_spans(code->text, code->n_text, &text);

	if (err)
		return err;
	map->areas = calloc(code->n_text + 1, sizeof(*map->areas));
	if (!map->areas) {
		free(text);
		return -ENOMEM;
	}
	map->n_functions = code->n_functions;
	map->extents = code->functions;
	for (size_t i = 0; i < code->n_text; i++) {
		if (!text[i].size)
			continue;
		if (!map->n_areas)
			map->low = text[i].vaddr;
		map->high = text[i].vaddr + text[i].size;
		map->areas[map->n_areas++] = (struct x86_area){ text[i], map->n_bits };
		if (text[i].size > map->areas[map->largest].span.size)
			map->largest = map->n_areas - 1;
		map->n_bits += (text[i].size + 63) / 64 * 64;
	}
	free(text);
	return 0;
}

/* Memory for what the sweep finds. */
static int allocate(struct kymo_entry_map *map)
{
	map->functions = calloc(map->n_functions + 1, sizeof(*map->functions));
	if (!map->functions)
		return -ENOMEM;
	for (int i = 0; i < X86_N_BITMAPS; i++) {
		map->bits[i] = calloc(map->n_bits / 64 + 1, sizeof(uint64_t));
		if (!map->bits[i])
			return -ENOMEM;
	}
	return 0;
}

static int build(struct x86_builder *builder)
{
	int err = sort_spans(builder->code->data, builder->code->n_data, &builder->data);

	if (!err)
		err = sweep_all(builder);
	if (err)
		return err;
	x86_scan_text(builder);
	x86_scan_data(builder);
	/* Real modules need some entries for each address taken; the rest of the bound is for the small ones. */
	builder->budget = 1000000 + builder->map->n_bits * 4;
	err = x86_find_tables(builder);
	if (err)
		return err;
	/* What a jump that may lead anywhere could reach is code after all, which may show that others were misread. */
	x86_firm_reached(builder);
	do {
		judge_functions(builder);
		judge_jumps(builder);
	} while (x86_firm_computed(builder));
	err = x86_find_stacks(builder);
	if (err)
		return err;
	builder->map->tables = builder->sure.items;
	builder->map->n_tables = builder->sure.n;
	memset(&builder->sure, 0, sizeof(builder->sure));
	return 0;
}

int x86_entry_map_begin(const struct kymo_module_code *code, struct kymo_entry_map **ret)
{
	struct kymo_entry_map *map = calloc(1, sizeof(*map));
	int err;

	if (!map)
		return -ENOMEM;
	err = check_functions(code);
	if (!err)
		err = map_init(map, code);
	if (err) {
		kymo_entry_map_destroy(map);
		return err;
	}
	*ret = map;
	return 0;
}

int kymo_entry_map_create(const struct kymo_module_code *code, struct kymo_entry_map **ret)
{
	struct x86_builder builder = { .code = code };
	int err = x86_entry_map_begin(code, &builder.map);

	if (err)
		return err;
	x86_decoder_init(&builder.decoder);
	err = allocate(builder.map);
	if (!err)
		err = build(&builder);
	free(builder.data);
	kymo_vec_deinit(&builder.taken);
	kymo_vec_deinit(&builder.indirect);
	kymo_vec_deinit(&builder.doubted);
	kymo_vec_deinit(&builder.sure);
	kymo_vec_deinit(&builder.tables);
	if (err) {
		kymo_entry_map_destroy(builder.map);
		return err;
	}
	*ret = builder.map;
	return 0;
}

void x86_entry_map_forget(struct kymo_entry_map *map)
{
	free(map->areas);
	free(map);
}

void kymo_entry_map_destroy(struct kymo_entry_map *map)
{
	if (!map)
		return;
	if (map->packed) {
		kymo_large_free(map->packed, map->packed_size);
	} else {
		for (int i = 0; i < X86_N_BITMAPS; i++)
			free(map->bits[i]);
		free(map->functions);
		free(map->stacks);
		free(map->tables);
	}
	x86_entry_map_forget(map);
}

bool kymo_entry_map_has(const struct kymo_entry_map *map, uint64_t vaddr)
{
	return !x86_area_at(map, vaddr) || x86_test(map, X86_KNOWN, vaddr) || x86_test(map, X86_LIKELY, vaddr) ||
	       x86_test(map, X86_SCANNED, vaddr);
}

uint64_t kymo_site_of(const struct kymo_entry_map *map, uint64_t vaddr)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t size;
	const uint8_t *bytes = x86_text_at(map, vaddr, &size);

	return bytes && size >= sizeof(endbr64) && !memcmp(bytes, endbr64, sizeof(endbr64)) ? vaddr + sizeof(endbr64)
											    : vaddr;
}
