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

int x86_clone_next(const struct x86_clone_insn *insn, int32_t ret[2])
{
	int n = 0;

	switch ((enum x86_flow)insn->flow) {
	case X86_FLOW_NEXT:
		ret[n++] = insn->next;
		break;
	case X86_FLOW_BRANCH:
		ret[n++] = insn->next;
		if (insn->to < 0 || insn->to != insn->next)
			ret[n++] = insn->to;
		break;
	case X86_FLOW_JUMP:
		ret[n++] = insn->to;
		break;
	default:
		ret[n++] = -1;
		break;
	}
	return n;
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
	kymo_vec_deinit(&clone->stretches);
	kymo_vec_deinit(&clone->targets);
	kymo_vec_deinit(&clone->catches);
	kymo_vec_deinit(&clone->steps);
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

const struct kymo_clone_step *kymo_clone_steps(const struct kymo_clone *clone, size_t *n_ret)
{
	*n_ret = clone->steps.n;
	return clone->steps.items;
}

size_t kymo_clone_n_uncaught(const struct kymo_clone *clone)
{
	return clone->n_uncaught;
}

bool kymo_clone_is_catch(const struct kymo_clone *clone, uint64_t vaddr, enum kymo_catch_kind *kind_ret)
{
	const struct kymo_catch *items = clone->catches.items;
	size_t at = kymo_partition_point(i, clone->catches.n, items[i].vaddr < vaddr);

	if (at == clone->catches.n || items[at].vaddr != vaddr)
		return false;
	*kind_ret = items[at].kind;
	return true;
}

bool kymo_clone_comes_back(const struct kymo_clone *clone)
{
	const uint64_t start = clone->parts[0].start;
	bool comes = false;

	for (size_t i = 0; i < clone->insns.n && !comes; i++) {
		const struct x86_clone_insn *insn = &clone->insns.items[i];

		comes = insn->to >= 0 && !x86_flow_is_call((enum x86_flow)insn->flow) &&
			(insn->target == start || insn->target == kymo_site_of(clone->map, start));
	}
	return comes;
}

/* ---- the map --------------------------------------------------------------------------------- */

void kymo_clone_map_deinit(struct kymo_clone_map *map)
{
	kymo_vec_deinit(&map->points);
}

const struct kymo_clone_point *kymo_clone_origin(const struct kymo_clone_map *map, uint32_t at)
{
	size_t after = kymo_partition_point(i, map->points.n, map->points.items[i].at <= at);

	return after ? &map->points.items[after - 1] : NULL;
}
