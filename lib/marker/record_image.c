/*
 * What a module's file says about an address in its text: path and offset as the process has it mapped, build-id, and
 * the function's name. The file may be another by now, and may be damaged: each offset and size is checked, and what
 * does not fit is left out.
 */
#include "record_image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/search.h"

#define TABLE_MAX (UINT64_C(1) << 30) /* bytes of all symbols and their names */
#define SECTIONS_MAX 65536
#define NOTES_MAX_SIZE 65536
#define LOCATION_SIZE 5

struct record_symbol {
	uint64_t vaddr, size;
	const char *name;
	bool is_global;
};

/* ---- where it is mapped ---------------------------------------------------------------------- */

/* One line of maps: "55d0-55d4 r-xp 00001000 fe:00 1234    /usr/bin/x". The path, or NULL for another line. */
static char *parse_mapping(char *line, uintptr_t inside, struct record_image *image)
{
	unsigned long start, end, offset;
	int at = 0;

	if (sscanf(line, "%lx-%lx %*4s %lx %*s %*s %n", &start, &end, &offset, &at) < 3 || !at || inside < start ||
	    inside >= end)
		return NULL;
	image->start = start;
	image->offset = offset;
	return line + at;
}

static int find_mapping(uintptr_t inside, struct record_image *image)
{
	kymo_cleanup_free char *maps = NULL;
	char *rest, *path = NULL;

	if (kymo_read_file(AT_FDCWD, "/proc/self/maps", 256u << 20, &maps, NULL))
		maps = NULL;
	rest = maps;
	while (rest && !path) {
		char *line = strsep(&rest, "\n");

		path = parse_mapping(line, inside, image);
	}
	image->path = strdup(path && *path == '/' ? path : image->module->path);
	return image->path ? 0 : -ENOMEM;
}

/* ---- the file -------------------------------------------------------------------------------- */

struct file {
	int fd;
	uint64_t size;
	Elf64_Ehdr header;
};

static bool read_at(const struct file *file, void *data, uint64_t size, uint64_t offset)
{
	return offset <= file->size && size <= file->size - offset &&
	       kymo_pread_all(file->fd, data, size, (off_t)offset) == 0;
}

static bool open_file(const struct record_image *image, uintptr_t inside, struct file *file)
{
	static const unsigned char nop[LOCATION_SIZE] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	unsigned char text[LOCATION_SIZE];
	struct stat st;

	file->fd = open(image->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file->fd < 0 || fstat(file->fd, &st) || !S_ISREG(st.st_mode))
		return false;
	file->size = (uint64_t)st.st_size;
	/* A file that has taken its place does not have the marker there. */
	return read_at(file, text, sizeof(text), image->offset + (inside - image->start)) &&
	       memcmp(text, nop, sizeof(nop)) == 0 && read_at(file, &file->header, sizeof(file->header), 0) &&
	       memcmp(file->header.e_ident, ELFMAG, SELFMAG) == 0 && file->header.e_ident[EI_CLASS] == ELFCLASS64;
}

/* ---- build-id -------------------------------------------------------------------------------- */

static bool find_build_id(const char *notes, size_t size, char *out, size_t out_size)
{
	size_t at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t left = size - at - sizeof(note), name, desc;

		memcpy(&note, notes + at, sizeof(note));
		name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		desc = ((size_t)note.n_descsz + 3) & ~(size_t)3;
		if (name > left || note.n_descsz > left - name)
			return false;
		at += sizeof(note);
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(notes + at, "GNU", 4) == 0 &&
		    2 * (size_t)note.n_descsz < out_size) {
			for (size_t i = 0; i < note.n_descsz; i++)
				sprintf(out + 2 * i, "%02x", (unsigned char)notes[at + name + i]);
			return true;
		}
		if (desc > size - at - name)
			return false;
		at += name + desc;
	}
	return false;
}

static void read_build_id(const struct file *file, struct record_image *image)
{
	for (unsigned int i = 0; i < file->header.e_phnum; i++) {
		kymo_cleanup_free char *notes = NULL;
		Elf64_Phdr phdr;

		if (file->header.e_phentsize != sizeof(phdr) ||
		    !read_at(file, &phdr, sizeof(phdr), file->header.e_phoff + i * sizeof(phdr)))
			return;
		/* Notes of alignment 8 are GNU properties, and laid out in another way. */
		if (phdr.p_type != PT_NOTE || phdr.p_align > 4 || phdr.p_filesz > NOTES_MAX_SIZE)
			continue;
		notes = malloc(phdr.p_filesz + 1);
		if (notes && read_at(file, notes, phdr.p_filesz, phdr.p_offset) &&
		    find_build_id(notes, phdr.p_filesz, image->build_id, sizeof(image->build_id)))
			return;
	}
}

/* ---- symbols --------------------------------------------------------------------------------- */

/* A table of symbols and one of names, as pieces of the file. */
struct table {
	Elf64_Shdr symbols, names;
};

static bool is_piece(const struct file *file, const Elf64_Shdr *section)
{
	return section->sh_offset <= file->size && section->sh_size <= file->size - section->sh_offset &&
	       section->sh_size < TABLE_MAX;
}

static bool read_section(const struct file *file, uint64_t i, Elf64_Shdr *ret)
{
	return i < file->header.e_shnum && i < SECTIONS_MAX &&
	       read_at(file, ret, sizeof(*ret), file->header.e_shoff + i * sizeof(*ret));
}

/* The first of that type. */
static bool find_table(const struct file *file, uint32_t type, struct table *ret)
{
	if (file->header.e_shentsize != sizeof(Elf64_Shdr))
		return false;
	for (uint64_t i = 1; read_section(file, i, &ret->symbols); i++) {
		if (ret->symbols.sh_type == type)
			return read_section(file, ret->symbols.sh_link, &ret->names) &&
			       ret->names.sh_type == SHT_STRTAB && is_piece(file, &ret->symbols) &&
			       is_piece(file, &ret->names) && ret->names.sh_size > 0;
	}
	return false;
}

/* Symbols of functions that are defined here. */
static size_t take_symbols(const char *entries, size_t n, const char *names, size_t names_size,
			   struct record_symbol *out)
{
	size_t taken = 0;

	for (size_t i = 1; i < n; i++) {
		unsigned int type;
		Elf64_Sym entry;

		memcpy(&entry, entries + i * sizeof(entry), sizeof(entry));
		type = ELF64_ST_TYPE(entry.st_info);
		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || entry.st_shndx == SHN_UNDEF ||
		    entry.st_name >= names_size || !names[entry.st_name])
			continue;
		out[taken++] = (struct record_symbol){ entry.st_value, entry.st_size, names + entry.st_name,
						       ELF64_ST_BIND(entry.st_info) != STB_LOCAL };
	}
	return taken;
}

static int by_address(const void *a, const void *b)
{
	const struct record_symbol *x = a, *y = b;

	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* The name by which a function with aliases is known: a global one, then the shortest. */
static const struct record_symbol *better_name(const struct record_symbol *a, const struct record_symbol *b)
{
	if (a->is_global != b->is_global)
		return a->is_global ? a : b;
	return strlen(b->name) < strlen(a->name) ? b : a;
}

/* Extents that don't overlap: a symbol inside of another one's has none of its own, and one that runs into the next
 * ends there. */
static void make_functions(struct record_image *image)
{
	struct record_symbol *out = image->functions;
	size_t n = 0;

	for (size_t i = 0, next; i < image->n_symbols; i = next) {
		const struct record_symbol *best = &image->symbols[i];
		struct record_symbol one;
		uint64_t size = best->size;

		for (next = i + 1; next < image->n_symbols && image->symbols[next].vaddr == best->vaddr; next++) {
			best = better_name(best, &image->symbols[next]);
			size = image->symbols[next].size > size ? image->symbols[next].size : size;
		}
		one = *best;
		one.size = size < UINT64_MAX - one.vaddr ? size : UINT64_MAX - one.vaddr;
		if (!size || (n && one.vaddr + one.size <= out[n - 1].vaddr + out[n - 1].size))
			continue;
		if (n && one.vaddr < out[n - 1].vaddr + out[n - 1].size)
			out[n - 1].size = one.vaddr - out[n - 1].vaddr;
		out[n++] = one;
	}
	image->n_functions = n;
}

static const uint32_t table_types[] = { SHT_DYNSYM, SHT_SYMTAB };
#define TABLES kymo_countof(table_types)

static int read_symbols(const struct file *file, struct record_image *image)
{
	struct table tables[TABLES];
	uint64_t total = 0, n_symbols = 0;
	char *at;

	for (size_t i = 0; i < TABLES; i++) {
		if (!find_table(file, table_types[i], &tables[i]))
			tables[i].symbols.sh_size = tables[i].names.sh_size = 0;
		total += tables[i].symbols.sh_size + tables[i].names.sh_size + 1;
		n_symbols += tables[i].symbols.sh_size / sizeof(Elf64_Sym);
	}
	image->bytes = malloc(total);
	image->symbols = calloc(n_symbols + 1, sizeof(*image->symbols));
	image->functions = calloc(n_symbols + 1, sizeof(*image->functions));
	if (!image->bytes || !image->symbols || !image->functions)
		return -ENOMEM;
	at = image->bytes;
	for (size_t i = 0; i < TABLES; i++) {
		char *names = at + tables[i].symbols.sh_size;

		if (!tables[i].symbols.sh_size ||
		    !read_at(file, at, tables[i].symbols.sh_size, tables[i].symbols.sh_offset) ||
		    !read_at(file, names, tables[i].names.sh_size, tables[i].names.sh_offset))
			continue;
		names[tables[i].names.sh_size] = '\0';
		image->n_symbols += take_symbols(at, tables[i].symbols.sh_size / sizeof(Elf64_Sym), names,
						 tables[i].names.sh_size, image->symbols + image->n_symbols);
		at = names + tables[i].names.sh_size + 1;
	}
	qsort(image->symbols, image->n_symbols, sizeof(*image->symbols), by_address);
	make_functions(image);
	return 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

int kymo_record_image_create(const struct lib_module *module, uintptr_t inside, struct record_image *ret)
{
	struct record_image image = { .module = module };
	struct file file = { .fd = -1 };
	int status = find_mapping(inside, &image);

	if (status == 0 && open_file(&image, inside, &file)) {
		read_build_id(&file, &image);
		status = read_symbols(&file, &image);
	}
	if (file.fd >= 0)
		close(file.fd);
	if (status < 0)
		kymo_record_image_deinit(&image);
	else
		*ret = image;
	return status;
}

void kymo_record_image_deinit(struct record_image *image)
{
	free(image->path);
	free(image->bytes);
	free(image->symbols);
	free(image->functions);
	*image = (struct record_image){ .module = NULL };
}

/* The index of the first one after `vaddr`. */
static size_t first_behind(const struct record_symbol *symbols, size_t n, uint64_t vaddr)
{
	return kymo_partition_point(i, n, symbols[i].vaddr <= vaddr);
}

/* Names of versions ("memcpy@@GLIBC_2.14") are left out. */
static int name_length(const struct record_symbol *symbol)
{
	const char *at = strchr(symbol->name, '@');

	return (int)(at && at > symbol->name ? (size_t)(at - symbol->name) : strlen(symbol->name));
}

void kymo_record_image_describe(const struct record_image *image, uintptr_t address, char *out, size_t size)
{
	uint64_t vaddr = address - image->module->base;
	const struct record_symbol *best = NULL;
	size_t i;

	for (i = first_behind(image->symbols, image->n_symbols, vaddr); i-- > 0 && image->symbols[i].vaddr == vaddr;)
		best = best ? better_name(best, &image->symbols[i]) : &image->symbols[i];
	if (best) {
		snprintf(out, size, "%.*s", name_length(best), best->name);
		return;
	}
	i = first_behind(image->functions, image->n_functions, vaddr);
	best = i ? &image->functions[i - 1] : NULL;
	if (best && vaddr - best->vaddr < best->size)
		snprintf(out, size, "%.*s+0x%llx", name_length(best), best->name,
			 (unsigned long long)(vaddr - best->vaddr));
	else
		snprintf(out, size, "0x%llx", (unsigned long long)vaddr);
}
