#include "arch/uprobe.h"

#include <asm/ptrace.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "arch/trap.h"
#include "arch/x86_64/decode.h"

#define CALL 0xe8
#define NOP 0x0f /* the first byte of one of five bytes */

/* ---- where a uprobe may be ------------------------------------------------------------------- */

/*
 * The kernel executes a copy of the instruction elsewhere, or emulates it. It refuses some (is_prefix_bad() and the
 * tables in arch/x86/kernel/uprobes.c), but says so only where the file is mapped at that moment; and some that it
 * takes go wrong: with an EVEX prefix the register that it uses for RIP-relative operands may be one that the
 * instruction has.
 */
static const char *why_not(const ZydisDecodedInstruction *z)
{
	if (z->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX || z->encoding == ZYDIS_INSTRUCTION_ENCODING_MVEX)
		return "the kernel's uprobes go wrong on instructions with an EVEX prefix (AVX-512)";
	if (z->attributes & ZYDIS_ATTRIB_HAS_LOCK)
		return "the kernel sets no uprobe on an instruction with a lock prefix";
	for (unsigned int i = 0; i < z->raw.prefix_count; i++) {
		uint8_t prefix = z->raw.prefixes[i].value;

		if (prefix == 0x26 || prefix == 0x2e || prefix == 0x36 || prefix == 0x3e)
			return "the kernel sets no uprobe on an instruction with a segment prefix";
	}
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_INT1:
		return "it is a breakpoint";
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_CLI:
	case ZYDIS_MNEMONIC_STI:
	case ZYDIS_MNEMONIC_IN:
	case ZYDIS_MNEMONIC_OUT:
	case ZYDIS_MNEMONIC_INSB:
	case ZYDIS_MNEMONIC_INSD:
	case ZYDIS_MNEMONIC_INSW:
	case ZYDIS_MNEMONIC_OUTSB:
	case ZYDIS_MNEMONIC_OUTSD:
	case ZYDIS_MNEMONIC_OUTSW:
		return "it is an instruction that programs may not execute";
	default:
		return NULL;
	}
}

int kymo_uprobe_check(const struct kymo_span *function, uint64_t vaddr, char *reason, size_t size)
{
	uint64_t at = function->vaddr;
	const char *why = NULL;
	ZydisDecoder decoder;
	struct x86_insn insn;

	x86_decoder_init(&decoder);
	if (vaddr < at || vaddr - at >= function->size)
		why = "it lies outside of the code that is known";
	while (!why) {
		uint64_t offset = at - function->vaddr;

		if (x86_decode(&decoder, function->bytes + offset, function->size - offset, at, &insn))
			why = "the function does not decode up to there";
		else if (at == vaddr)
			break;
		else if (at + insn.length > vaddr)
			why = "it lies inside of an instruction";
		at += insn.length;
	}
	if (!why)
		why = why_not(&insn.z);
	if (!why)
		return insn.length;
	snprintf(reason, size, "%s", why);
	return -EPERM;
}

/* Linux 6.18 replaces a NOP of five bytes by a call when a uprobe on it has been hit. */
bool kymo_uprobe_is_breakpoint(uint8_t now, uint8_t file)
{
	return now == KYMO_TRAP_BYTE || (now == CALL && file == NOP);
}

bool kymo_uprobe_is_free(const uint8_t *file, const uint8_t *memory, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (memory[i] != file[i] && memory[i] != KYMO_TRAP_BYTE)
			return false;
	return true;
}

/* ---- where values are ------------------------------------------------------------------------ */

/* struct pt_regs, by the numbers of kymo_register_parse(). */
static const uint16_t places[] = {
	offsetof(struct pt_regs, rax), offsetof(struct pt_regs, rcx), offsetof(struct pt_regs, rdx),
	offsetof(struct pt_regs, rbx), offsetof(struct pt_regs, rsp), offsetof(struct pt_regs, rbp),
	offsetof(struct pt_regs, rsi), offsetof(struct pt_regs, rdi), offsetof(struct pt_regs, r8),
	offsetof(struct pt_regs, r9),  offsetof(struct pt_regs, r10), offsetof(struct pt_regs, r11),
	offsetof(struct pt_regs, r12), offsetof(struct pt_regs, r13), offsetof(struct pt_regs, r14),
	offsetof(struct pt_regs, r15), offsetof(struct pt_regs, rip), offsetof(struct pt_regs, eflags),
};

enum { RAX = 0, RCX = 1, RDX = 2, RSP = 4, RSI = 6, RDI = 7, RIP = 16 };

const struct kymo_call_layout kymo_call_layout = {
	.args = { offsetof(struct pt_regs, rdi), offsetof(struct pt_regs, rsi), offsetof(struct pt_regs, rdx),
		  offsetof(struct pt_regs, r10), offsetof(struct pt_regs, r8), offsetof(struct pt_regs, r9) },
	.stack_pointer = offsetof(struct pt_regs, rsp),
	.number = offsetof(struct pt_regs, orig_rax),
	.args32 = { offsetof(struct pt_regs, rbx), offsetof(struct pt_regs, rcx), offsetof(struct pt_regs, rdx),
		    offsetof(struct pt_regs, rsi), offsetof(struct pt_regs, rdi), offsetof(struct pt_regs, rbp) },
	.is_32_bits = 2, /* TS_COMPAT of the kernel's <asm/thread_info.h> */
};

#define WORD 8

static struct kymo_uprobe_value in_register(int64_t number, bool is_return)
{
	/* ret has popped the return address. */
	return (struct kymo_uprobe_value){
		.source = KYMO_UPROBE_REGISTER,
		.at = places[number],
		.value = number == RSP && is_return ? -WORD : 0,
	};
}

static struct kymo_uprobe_value on_stack(int64_t n, bool is_return)
{
	/* Where the return address was there may be the kernel's own; the real one is where the thread goes on. */
	if (is_return && !n)
		return in_register(RIP, true);
	return (struct kymo_uprobe_value){
		.source = KYMO_UPROBE_MEMORY,
		.at = places[RSP],
		.value = WORD * n - (is_return ? WORD : 0),
	};
}

int kymo_uprobe_resolve(const struct kymo_fetch *fetch, bool is_return, struct kymo_uprobe_value *ret)
{
	static const uint8_t arguments[] = { RDI, RSI, RDX, RCX, 8, 9 };
	const int64_t n_arguments = sizeof(arguments), n = fetch->value;

	switch (fetch->kind) {
	case KYMO_FETCH_REGISTER:
		if (n < 0 || n >= (int64_t)(sizeof(places) / sizeof(places[0])))
			return -EINVAL;
		*ret = in_register(n, is_return);
		return 0;
	case KYMO_FETCH_ARGUMENT:
		if (n < 1 || n > n_arguments + KYMO_FETCH_STACK_MAX)
			return -EINVAL;
		*ret = n <= n_arguments ? in_register(arguments[n - 1], is_return)
					: on_stack(n - n_arguments, is_return);
		return 0;
	case KYMO_FETCH_STACK:
		if (n < 0 || n > KYMO_FETCH_STACK_MAX)
			return -EINVAL;
		*ret = on_stack(n, is_return);
		return 0;
	case KYMO_FETCH_STACK_POINTER:
		*ret = in_register(RSP, is_return);
		return 0;
	case KYMO_FETCH_IMMEDIATE:
		*ret = (struct kymo_uprobe_value){ .source = KYMO_UPROBE_IMMEDIATE, .value = n };
		return 0;
	case KYMO_FETCH_RETVAL:
		*ret = in_register(RAX, is_return);
		return 0;
	case KYMO_FETCH_MEMORY:
	case KYMO_FETCH_GLOBAL:
	case KYMO_FETCH_PAYLOAD:
	case KYMO_FETCH_FORM:
	case KYMO_FETCH_COPY:
	case KYMO_FETCH_CHAIN:
		return -EINVAL;
	}
	return -EINVAL;
}
