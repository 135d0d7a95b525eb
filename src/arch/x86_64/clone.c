#include "arch/x86_64/clone.h"

#include <errno.h>
#include <stdlib.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/marks.h"
#include "base/search.h"

int32_t x86_clone_find(const struct kymo_clone *clone, uint64_t vaddr)
{
	size_t at = kymo_partition_point(i, clone->insns.n, clone->insns.items[i].vaddr < vaddr);

	return at < clone->insns.n && clone->insns.items[at].vaddr == vaddr ? (int32_t)at : -1;
}

int x86_clone_decode(const struct kymo_clone *clone, const struct x86_clone_insn *insn, uint64_t bias,
		     struct x86_insn *ret, const uint8_t **bytes_ret)
{
	size_t size;

	*bytes_ret = x86_text_at(clone->map, insn->vaddr, &size);
	if (!*bytes_ret || size < insn->length)
		return -EINVAL;
	return x86_decode_full(&clone->decoder, *bytes_ret, insn->length, insn->vaddr + bias, ret);
}

void kymo_clone_destroy(struct kymo_clone *clone)
{
	if (!clone)
		return;
	kymo_vec_deinit(&clone->insns);
	kymo_vec_deinit(&clone->sites);
	kymo_vec_deinit(&clone->catches);
	free(clone);
}

const struct kymo_extent *kymo_clone_parts(const struct kymo_clone *clone, size_t *n_ret)
{
	*n_ret = clone->n_parts;
	return clone->parts;
}

const uint64_t *kymo_clone_sites(const struct kymo_clone *clone, size_t *n_ret)
{
	*n_ret = clone->sites.n;
	return clone->sites.items;
}

const struct kymo_catch *kymo_clone_catches(const struct kymo_clone *clone, size_t *n_ret)
{
	*n_ret = clone->catches.n;
	return clone->catches.items;
}

size_t kymo_clone_n_uncaught(const struct kymo_clone *clone)
{
	return clone->n_uncaught;
}
