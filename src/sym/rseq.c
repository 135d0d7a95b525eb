/*
 * Restartable sequences that a module declares: descriptors in a section of their own, where librseq, and code that was
 * copied from it, put them. Reference: linux/rseq.h, struct rseq_cs.
 */
#include "sym/rseq.h"

#include <stdlib.h>
#include <string.h>

#include "sym/module.h"
#include "sym/module_state.h"
#include "sym/relocs.h"

struct descriptor {
	uint32_t version, flags;
	uint64_t start, size, abort;
};

static struct kymo_error *add_section(struct kymo_module *module, const struct kymo_section *section)
{
	for (uint64_t at = 0; at < section->size; at += sizeof(struct descriptor)) {
		struct descriptor descriptor;

		if (section->size - at < sizeof(descriptor))
			return sym_image_bad(&module->image, "__rseq_cs ends inside of a descriptor (vaddr 0x%llx)",
					     LLX(section->vaddr + at));
		memcpy(&descriptor, section->bytes + at, sizeof(descriptor));
		if (!sym_word(module, section->vaddr + at + offsetof(struct descriptor, start), &descriptor.start))
			return sym_image_bad(&module->image, "__rseq_cs cannot be read (vaddr 0x%llx)",
					     LLX(section->vaddr + at));
		if (descriptor.size > UINT64_MAX - descriptor.start)
			return sym_image_bad(&module->image, "a descriptor in __rseq_cs is damaged (vaddr 0x%llx)",
					     LLX(section->vaddr + at));
		if (!descriptor.size)
			continue;
		if (!kymo_vec_push(&module->rseq, (struct kymo_function){ NULL, descriptor.start,
									  descriptor.start + descriptor.size }))
			return &kymo_error_no_memory;
	}
	return NULL;
}

static int compare_sequences(const void *a, const void *b)
{
	const struct kymo_function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static struct kymo_error *read_sequences(struct kymo_module *module)
{
	struct kymo_error *error = sym_relocs_read(module);

	module->rseq.n = 0;
	for (size_t i = 0; i < module->sections.n && !error; i++) {
		const struct kymo_section *section = &module->sections.items[i];

		if (strcmp(section->name, "__rseq_cs"))
			continue;
		if (!sym_image_spend(&module->image, section->size))
			return sym_image_bad(&module->image, "sections __rseq_cs overlap (vaddr 0x%llx)",
					     LLX(section->vaddr));
		error = add_section(module, section);
	}
	if (!error && module->rseq.n)
		qsort(module->rseq.items, module->rseq.n, sizeof(*module->rseq.items), compare_sequences);
	return error;
}

struct kymo_error *kymo_module_rseq(struct kymo_module *module, const struct kymo_function **ret, size_t *n_ret)
{
	struct kymo_error *error;

	if (sym_lazy_begin(&module->rseq_lazy, &error))
		error = sym_lazy_end(&module->rseq_lazy, read_sequences(module));
	if (error)
		return error;
	*ret = module->rseq.items;
	*n_ret = module->rseq.n;
	return NULL;
}
