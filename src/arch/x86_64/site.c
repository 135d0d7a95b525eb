#include "arch/x86_64/site.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/marks.h"

int x86_refuse(struct kymo_refusal *refusal, uint64_t vaddr, const char *format, ...)
{
	va_list args;

	refusal->vaddr = vaddr;
	va_start(args, format);
	vsnprintf(refusal->reason, sizeof(refusal->reason), format, args);
	va_end(args);
	return -EPERM;
}

int x86_decode_in(const struct x86_site *site, uint64_t vaddr, struct x86_insn *ret)
{
	size_t size;
	const uint8_t *bytes = x86_text_at(site->map, vaddr, &size);

	if (!bytes || vaddr >= site->function->end)
		return -EINVAL;
	if (size > site->function->end - vaddr)
		size = (size_t)(site->function->end - vaddr);
	return x86_decode_full(&site->decoder, bytes, size, vaddr, ret);
}

bool x86_is_nop(const struct x86_insn *insn)
{
	return insn->z.meta.category == ZYDIS_CATEGORY_NOP || insn->z.meta.category == ZYDIS_CATEGORY_WIDENOP;
}

bool x86_is_locked(const struct x86_site *site, uint64_t vaddr, uint64_t size)
{
	return site->room && site->room->is_locked(site->room->data, vaddr, (size_t)size);
}

int x86_check_rseq(const struct x86_site *site, uint64_t low, uint64_t high, struct kymo_refusal *refusal)
{
	for (size_t i = 0; i < site->code->n_rseq; i++) {
		const struct kymo_extent *rseq = &site->code->rseq[i];

		if (low < rseq->end && rseq->start < high)
			return x86_refuse(refusal, low,
					  "the %lu bytes from 0x%lx touch the restartable sequence from 0x%lx to 0x%lx",
					  high - low, low, rseq->start, rseq->end);
	}
	return 0;
}
