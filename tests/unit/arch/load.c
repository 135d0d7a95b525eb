#include "load.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/search.h"
#include "base/vec.h"

struct work {
	KYMO_VEC(struct kymo_span) text;
	KYMO_VEC(struct kymo_span) data;
	KYMO_VEC(struct kymo_extent) fixed;
	KYMO_VEC(struct kymo_extent) functions;
	KYMO_VEC(struct kymo_extent) rseq;
	KYMO_VEC(uint64_t) entries;
	KYMO_VEC(struct loaded_symbol) symbols;
};

#define push(vec, ...) \
	do { \
		if (!kymo_vec_push((vec), __VA_ARGS__)) \
			abort(); \
	} while (0)

static void take_section(struct work *work, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	struct kymo_span span;

	if (!(shdr->sh_flags & SHF_ALLOC) || shdr->sh_type == SHT_NOBITS || !data || !data->d_size)
		return;
	span = (struct kymo_span){ shdr->sh_addr, data->d_buf, data->d_size };
	if (shdr->sh_flags & SHF_EXECINSTR)
		push(&work->text, span);
	else if (!(shdr->sh_flags & SHF_TLS))
		push(&work->data, span);
}

static void take_symbols(struct work *work, Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		const char *name = elf_strptr(elf, shdr->sh_link, sym.st_name);
		int type = GELF_ST_TYPE(sym.st_info);
		bool is_function = type == STT_FUNC || type == STT_GNU_IFUNC;
		bool is_global = GELF_ST_BIND(sym.st_info) != STB_LOCAL;

		if (!name || !*name || sym.st_shndx == SHN_UNDEF || sym.st_shndx >= SHN_LORESERVE ||
		    (!is_function && type != STT_NOTYPE))
			continue;
		push(&work->symbols,
		     (struct loaded_symbol){ strdup(name), sym.st_value, sym.st_size, is_function, is_global });
		if (is_function || is_global)
			push(&work->entries, sym.st_value);
		if (is_function && sym.st_size)
			push(&work->functions, (struct kymo_extent){ sym.st_value, sym.st_value + sym.st_size });
	}
}

static void take_relocations(struct work *work, Elf_Scn *scn)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	GElf_Rela rela;

	for (int i = 0; data && gelf_getrela(data, i, &rela); i++) {
		if (GELF_R_TYPE(rela.r_info) == R_X86_64_RELATIVE || GELF_R_TYPE(rela.r_info) == R_X86_64_IRELATIVE)
			push(&work->entries, (uint64_t)rela.r_addend);
	}
}

static void take_word(struct work *work, uint64_t vaddr)
{
	for (size_t i = 0; i < work->data.n; i++) {
		const struct kymo_span *span = &work->data.items[i];
		uint64_t value;

		if (vaddr - span->vaddr >= span->size || span->size - (vaddr - span->vaddr) < 8)
			continue;
		memcpy(&value, span->bytes + (vaddr - span->vaddr), sizeof(value));
		push(&work->entries, value);
	}
}

/* SHT_RELR: an address, then bitmaps of the 63 words after it. */
static void take_packed_relocations(struct work *work, const Elf_Data *data)
{
	uint64_t at = 0;

	for (size_t i = 0; data && i + 8 <= data->d_size; i += 8) {
		uint64_t word;

		memcpy(&word, (const char *)data->d_buf + i, sizeof(word));
		if (!(word & 1)) {
			take_word(work, word);
			at = word + 8;
			continue;
		}
		for (int bit = 1; bit < 64; bit++) {
			if (word >> bit & 1)
				take_word(work, at + 8u * (unsigned int)(bit - 1));
		}
		at += 63 * 8;
	}
}

/* Each entry of .eh_frame_hdr's table is the start of a function and its FDE, both relative to the header. */
static void take_frames(struct work *work, const GElf_Shdr *hdr, const Elf_Data *table, const GElf_Shdr *frame,
			const Elf_Data *fdes)
{
	const char *bytes = table->d_buf, *fde = fdes->d_buf;
	uint32_t n;

	if (table->d_size < 12 || memcmp(bytes, "\x01\x1b\x03\x3b", 4))
		return;
	memcpy(&n, bytes + 8, sizeof(n));
	for (size_t at = 12; n-- && at + 8 <= table->d_size; at += 8) {
		int32_t start, where;
		uint32_t size;
		uint64_t offset;

		memcpy(&start, bytes + at, sizeof(start));
		memcpy(&where, bytes + at + 4, sizeof(where));
		offset = hdr->sh_addr + (uint64_t)where - frame->sh_addr;
		if (offset + 16 > fdes->d_size)
			continue;
		memcpy(&size, fde + offset + 12, sizeof(size));
		if (size)
			push(&work->functions, (struct kymo_extent){ hdr->sh_addr + (uint64_t)start,
								     hdr->sh_addr + (uint64_t)start + size });
	}
}

static int compare_extents(const void *a, const void *b)
{
	const struct kymo_extent *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	return left->end > right->end ? -1 : left->end < right->end;
}

/* Sort, and cut what overlaps: of two that begin together the longer one stays. */
static void settle_functions(struct work *work)
{
	struct kymo_extent *items = work->functions.items;
	size_t n = 0;

	if (work->functions.n)
		qsort(items, work->functions.n, sizeof(*items), compare_extents);
	for (size_t i = 0; i < work->functions.n; i++) {
		push(&work->entries, items[i].start);
		if (n && items[i].start == items[n - 1].start)
			continue;
		if (n && items[i].end <= items[n - 1].end)
			continue;
		if (n && items[n - 1].end > items[i].start)
			items[n - 1].end = items[i].start;
		items[n++] = items[i];
	}
	work->functions.n = n;
}

static void take_rseq(struct work *work)
{
	struct kymo_extent rseq = { 0 };

	for (size_t i = 0; i < work->symbols.n; i++) {
		if (!strcmp(work->symbols.items[i].name, "rseq_start"))
			rseq.start = work->symbols.items[i].vaddr;
		if (!strcmp(work->symbols.items[i].name, "rseq_end"))
			rseq.end = work->symbols.items[i].vaddr;
	}
	if (rseq.end)
		push(&work->rseq, rseq);
}

static void read_all(struct work *work, Elf *elf)
{
	Elf_Data *header = NULL, *fdes = NULL;
	GElf_Shdr shdr, header_shdr = { 0 }, fdes_shdr = { 0 };
	Elf_Scn *scn = NULL;
	size_t strings = 0;

	elf_getshdrstrndx(elf, &strings);
	while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &shdr))
		take_section(work, scn, &shdr);
	while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &shdr)) {
		const char *name = elf_strptr(elf, strings, shdr.sh_name);

		if (shdr.sh_type == SHT_SYMTAB || shdr.sh_type == SHT_DYNSYM)
			take_symbols(work, elf, scn, &shdr);
		else if (shdr.sh_type == SHT_RELA)
			take_relocations(work, scn);
		else if (shdr.sh_type == 19)
			take_packed_relocations(work, elf_rawdata(scn, NULL));
		if (name && !strcmp(name, ".eh_frame_hdr")) {
			header = elf_rawdata(scn, NULL);
			header_shdr = shdr;
		} else if (name && !strcmp(name, ".eh_frame")) {
			fdes = elf_rawdata(scn, NULL);
			fdes_shdr = shdr;
		}
	}
	if (header && fdes)
		take_frames(work, &header_shdr, header, &fdes_shdr, fdes);
	settle_functions(work);
	take_rseq(work);
}

static void take_segments(struct work *work, Elf *elf)
{
	GElf_Phdr phdr;
	size_t n;

	if (elf_getphdrnum(elf, &n))
		return;
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &phdr) && phdr.p_type == PT_LOAD && (phdr.p_flags & PF_X) &&
		    !(phdr.p_flags & PF_W))
			push(&work->fixed, (struct kymo_extent){ phdr.p_vaddr, phdr.p_vaddr + phdr.p_filesz });
}

bool load(const char *path, struct loaded *ret)
{
	struct work work = { 0 };
	GElf_Ehdr ehdr;
	Elf *elf;
	int fd;

	elf_version(EV_CURRENT);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	elf = fd < 0 ? NULL : elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!elf || !gelf_getehdr(elf, &ehdr)) {
		elf_end(elf);
		close(fd);
		return false;
	}
	read_all(&work, elf);
	take_segments(&work, elf);
	push(&work.entries, ehdr.e_entry);
	qsort(work.entries.items, work.entries.n, sizeof(work.entries.items[0]), kymo_compare_u64);
	*ret = (struct loaded){
		.code = {
			.text = work.text.items, .n_text = work.text.n,
			.fixed = work.fixed.items, .n_fixed = work.fixed.n,
			.data = work.data.items, .n_data = work.data.n,
			.functions = work.functions.items, .n_functions = work.functions.n,
			.entries = work.entries.items, .n_entries = work.entries.n,
			.rseq = work.rseq.items, .n_rseq = work.rseq.n,
			.position_independent = ehdr.e_type == ET_DYN,
		},
		.symbols = work.symbols.items,
		.n_symbols = work.symbols.n,
		.elf = elf,
		.fd = fd,
	};
	return true;
}

void unload(struct loaded *loaded)
{
	free((void *)loaded->code.text);
	free((void *)loaded->code.fixed);
	free((void *)loaded->code.data);
	free((void *)loaded->code.functions);
	free((void *)loaded->code.entries);
	free((void *)loaded->code.rseq);
	for (size_t i = 0; i < loaded->n_symbols; i++)
		free(loaded->symbols[i].name);
	free(loaded->symbols);
	elf_end(loaded->elf);
	close(loaded->fd);
}

const struct loaded_symbol *loaded_symbol(const struct loaded *loaded, const char *name, size_t length)
{
	for (size_t i = 0; i < loaded->n_symbols; i++) {
		if (strlen(loaded->symbols[i].name) == length && !memcmp(loaded->symbols[i].name, name, length))
			return &loaded->symbols[i];
	}
	return NULL;
}
