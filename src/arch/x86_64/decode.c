#include "arch/x86_64/decode.h"

#include <errno.h>
#include <string.h>

#include "arch/code.h"

void x86_decoder_init(ZydisDecoder *decoder)
{
	ZydisDecoderInit(decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

static enum x86_flow flow_of(const ZydisDecodedInstruction *z)
{
	bool relative = z->raw.imm[0].is_relative;

	if (z->meta.branch_type == ZYDIS_BRANCH_TYPE_FAR)
		return z->mnemonic == ZYDIS_MNEMONIC_CALL ? X86_FLOW_NEXT : X86_FLOW_STOP;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_JMP:
		return relative ? X86_FLOW_JUMP : X86_FLOW_JUMP_INDIRECT;
	case ZYDIS_MNEMONIC_CALL:
		return relative ? X86_FLOW_CALL : X86_FLOW_CALL_INDIRECT;
	case ZYDIS_MNEMONIC_RET:
		return X86_FLOW_RETURN;
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
	case ZYDIS_MNEMONIC_IRET:
	case ZYDIS_MNEMONIC_IRETD:
	case ZYDIS_MNEMONIC_IRETQ:
	case ZYDIS_MNEMONIC_SYSRET:
	case ZYDIS_MNEMONIC_SYSEXIT:
	case ZYDIS_MNEMONIC_UIRET:
		return X86_FLOW_STOP;
	default:
		return relative ? X86_FLOW_BRANCH : X86_FLOW_NEXT;
	}
}

static void fill_insn(struct x86_insn *insn, uint64_t address)
{
	const ZydisDecodedInstruction *z = &insn->z;
	uint64_t next = address + z->length;

	insn->address = address;
	insn->length = z->length;
	insn->flow = flow_of(z);
	insn->has_target = z->raw.imm[0].is_relative;
	insn->target = insn->has_target ? next + z->raw.imm[0].value.u : 0;
	insn->has_rip = (z->attributes & ZYDIS_ATTRIB_HAS_MODRM) && z->raw.modrm.mod == 0 && z->raw.modrm.rm == 5 &&
			z->raw.disp.size == 32;
	insn->rip = insn->has_rip ? next + (uint64_t)z->raw.disp.value : 0;
	if (insn->has_rip && z->address_width == 32)
		insn->rip &= UINT32_MAX;
}

int x86_decode(const ZydisDecoder *decoder, const uint8_t *bytes, size_t size, uint64_t address, struct x86_insn *ret)
{
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, bytes, size, &ret->z)))
		return -EINVAL;
	fill_insn(ret, address);
	return 0;
}

int x86_decode_full(const ZydisDecoder *decoder, const uint8_t *bytes, size_t size, uint64_t address,
		    struct x86_insn *ret)
{
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, bytes, size, &ret->z, ret->op)))
		return -EINVAL;
	fill_insn(ret, address);
	return 0;
}

bool x86_decode_near(const uint8_t *bytes, size_t size, uint64_t address, struct x86_insn *ret)
{
	bool is_jcc = size > 1 && bytes[0] == 0x0f && (bytes[1] & 0xf0) == 0x80;
	bool is_short = size && (bytes[0] == 0xeb || (bytes[0] & 0xf0) == 0x70);
	size_t at = is_jcc ? 2 : 1, length = at + (is_short ? 1 : 4);
	int32_t displacement;

	if (size < length || !(is_jcc || is_short || bytes[0] == 0xe8 || bytes[0] == 0xe9))
		return false;
	if (is_short)
		displacement = (int8_t)bytes[at];
	else
		memcpy(&displacement, bytes + at, sizeof(displacement));
	ret->address = address;
	ret->length = (uint8_t)length;
	ret->flow = bytes[0] == 0xe8                       ? X86_FLOW_CALL
		    : bytes[0] == 0xe9 || bytes[0] == 0xeb ? X86_FLOW_JUMP
							   : X86_FLOW_BRANCH;
	ret->has_target = true;
	ret->target = address + length + (uint64_t)displacement;
	ret->has_rip = false;
	ret->rip = 0;
	ret->z.raw.imm[0].size = is_short ? 8 : 32;
	return true;
}

bool x86_is_rip_lea(const struct x86_insn *insn)
{
	return insn->has_rip && insn->z.mnemonic == ZYDIS_MNEMONIC_LEA;
}

bool x86_is_branch16(const struct x86_insn *insn)
{
	bool near = insn->has_target || insn->flow == X86_FLOW_JUMP_INDIRECT || insn->flow == X86_FLOW_CALL_INDIRECT ||
		    insn->flow == X86_FLOW_RETURN;

	/* REX.W overrules the prefix: that is how compilers pad calls of __tls_get_addr. */
	return near && (insn->z.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) && !insn->z.raw.rex.W;
}

bool x86_writes(const struct x86_insn *insn, int reg)
{
	for (int i = 0; i < insn->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &insn->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    x86_gpr(op->reg.value) == reg)
			return true;
	}
	return false;
}

int x86_gpr(ZydisRegister reg)
{
	ZydisRegister wide = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);

	return wide >= ZYDIS_REGISTER_RAX && wide <= ZYDIS_REGISTER_R15 ? (int)(wide - ZYDIS_REGISTER_RAX) : -1;
}

int kymo_disassemble(const uint8_t *bytes, size_t size, uint64_t address, char *text, size_t text_size)
{
	ZydisFormatter formatter;
	struct x86_insn insn;
	ZydisDecoder decoder;

	if (!text_size)
		return -EINVAL;
	x86_decoder_init(&decoder);
	if (x86_decode_full(&decoder, bytes, size, address, &insn) == 0 &&
	    ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)) &&
	    ZYAN_SUCCESS(ZydisFormatterFormatInstruction(&formatter, &insn.z, insn.op, insn.z.operand_count_visible,
							 text, text_size, address, NULL)))
		return insn.length;
	if (text_size < sizeof("(bad)"))
		text[0] = '\0';
	else
		memcpy(text, "(bad)", sizeof("(bad)"));
	return -EINVAL;
}
