#include "sym/debug_die.h"

#include <string.h>

bool sym_die_first(Dwarf_Die *parent, Dwarf_Die *ret)
{
	return dwarf_haschildren(parent) > 0 && !dwarf_child(parent, ret) && ret->addr > parent->addr;
}

bool sym_die_next(Dwarf_Die *die)
{
	Dwarf_Die next;

	if (dwarf_siblingof(die, &next) || next.addr <= die->addr)
		return false;
	*die = next;
	return true;
}

/* ---- strings --------------------------------------------------------------------------------- */

/* Note where the sections of a file lie in memory, once. */
static void add_spans(struct kymo_debug *debug, Dwarf *dwarf)
{
	Elf *elf = dwarf_getelf(dwarf);
	Elf_Scn *section = NULL;

	for (size_t i = 0; i < debug->spanned.n; i++)
		if (debug->spanned.items[i] == dwarf)
			return;
	if (!kymo_vec_push(&debug->spanned, dwarf)) {
		debug->is_out_of_memory = true;
		return;
	}
	while (elf && (section = elf_nextscn(elf, section))) {
		Elf64_Shdr *header = elf64_getshdr(section);
		Elf_Data *data;

		if (!header || header->sh_type == SHT_NOBITS || header->sh_flags & SHF_ALLOC || !header->sh_size)
			continue;
		data = elf_rawdata(section, NULL);
		if (data && data->d_buf && data->d_size &&
		    !kymo_vec_push(&debug->spans,
				   (struct sym_span){ data->d_buf, (const char *)data->d_buf + data->d_size }))
			debug->is_out_of_memory = true;
	}
}

static const struct sym_span *find_span(const struct kymo_debug *debug, const char *at)
{
	for (size_t i = 0; i < debug->spans.n; i++)
		if (at >= debug->spans.items[i].start && at < debug->spans.items[i].end)
			return &debug->spans.items[i];
	return NULL;
}

/* libdw trusts strings that stand in the entry to have an end. */
static bool has_end(struct kymo_debug *debug, Dwarf_Attribute *attribute, const char *text)
{
	const struct sym_span *span = find_span(debug, text);

	if (!span) {
		add_spans(debug, dwarf_cu_getdwarf(attribute->cu));
		span = find_span(debug, text);
	}
	return span && memchr(text, '\0', (size_t)(span->end - text));
}

const char *sym_die_string(struct kymo_debug *debug, Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	const char *text;

	if (!dwarf_attr_integrate(die, name, &attribute))
		return NULL;
	text = dwarf_formstring(&attribute);
	if (!text || (attribute.form == DW_FORM_string && !has_end(debug, &attribute, text)))
		return NULL;
	return text;
}

const char *sym_die_name(struct kymo_debug *debug, Dwarf_Die *die)
{
	return sym_die_string(debug, die, DW_AT_name);
}

/* ---- other attributes ------------------------------------------------------------------------ */

bool sym_die_reference(Dwarf_Die *die, unsigned int name, Dwarf_Die *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Die found;

	if (!dwarf_attr_integrate(die, name, &attribute) || !dwarf_formref_die(&attribute, &found))
		return false;
	*ret = found;
	return true;
}

bool sym_die_number(Dwarf_Die *die, unsigned int name, uint64_t *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (!dwarf_attr_integrate(die, name, &attribute) || dwarf_formudata(&attribute, &value))
		return false;
	*ret = value;
	return true;
}

bool sym_die_signed(Dwarf_Die *die, unsigned int name, int64_t *ret)
{
	Dwarf_Attribute attribute;
	Dwarf_Sword value;

	if (!dwarf_attr_integrate(die, name, &attribute) || dwarf_formsdata(&attribute, &value))
		return false;
	*ret = value;
	return true;
}

bool sym_die_flag(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attribute;
	bool value;

	return dwarf_attr(die, name, &attribute) && !dwarf_formflag(&attribute, &value) && value;
}

void sym_die_origin(Dwarf_Die *die, Dwarf_Die *ret)
{
	*ret = *die;
	for (int i = 0; i < SYM_CHAIN_MAX; i++) {
		Dwarf_Attribute attribute;
		Dwarf_Die next;

		if (!dwarf_attr(ret, DW_AT_abstract_origin, &attribute) &&
		    !dwarf_attr(ret, DW_AT_specification, &attribute))
			return;
		if (!dwarf_formref_die(&attribute, &next))
			return;
		*ret = next;
	}
}

bool sym_die_peel(Dwarf_Die *die, Dwarf_Die *ret, Dwarf_Die *alias_ret, bool *has_alias_ret)
{
	Dwarf_Die at = *die, next;

	for (int i = 0; i < SYM_CHAIN_MAX; i++) {
		switch (dwarf_tag(&at)) {
		case DW_TAG_typedef:
			if (alias_ret) {
				*alias_ret = at;
				*has_alias_ret = true;
			}
			break;
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
		case DW_TAG_immutable_type:
			break;
		default:
			/* What is in a unit of types stands here by its signature. */
			if (!dwarf_hasattr(&at, DW_AT_signature) || !sym_die_reference(&at, DW_AT_signature, &next) ||
			    next.addr == at.addr) {
				*ret = at;
				return true;
			}
			at = next;
			continue;
		}
		if (!sym_die_reference(&at, DW_AT_type, &next))
			return false;
		at = next;
	}
	return false;
}

bool sym_die_range(struct kymo_debug *debug, Dwarf_Die *die, struct sym_ranges *ranges, uint64_t *start_ret,
		   uint64_t *end_ret)
{
	Dwarf_Addr start, end;

	while (sym_debug_spend(debug, 1) &&
	       (ranges->at = dwarf_ranges(die, ranges->at, &ranges->base, &start, &end)) > 0)
		if (start < end && start >= debug->first_code) {
			*start_ret = start;
			*end_ret = end;
			return true;
		}
	return false;
}

bool sym_die_has(struct kymo_debug *debug, Dwarf_Die *die, uint64_t vaddr)
{
	struct sym_ranges ranges = { 0 };
	uint64_t start, end;

	while (sym_die_range(debug, die, &ranges, &start, &end))
		if (vaddr >= start && vaddr < end)
			return true;
	return false;
}
