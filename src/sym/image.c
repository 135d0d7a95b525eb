#include "sym/image.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/large.h"

/* The medium code model of x86-64 ends at 2 GiB; a file that wants more read is a trap. */
#define READ_MAX (2ull << 30)
#define FILE_MAX (64ull << 30)

/* Linux refuses programs with more than 64 KiB of program headers. */
#define SEGMENT_TABLE_MAX 65536u

/* Of larger programs most are debug information, which is not read: a large page would be for little of it. */
#define LARGE_MAX (64ull << 20)

/* libdw looks a few bytes past an entry before it compares with the end. */
#define SLACK 16

struct kymo_error *sym_image_bad(const struct sym_image *image, const char *format, ...)
{
	kymo_cleanup_free char *what = NULL;
	va_list args;

	va_start(args, format);
	what = kymo_format(format, args);
	va_end(args);
	if (!what)
		return &kymo_error_no_memory;
	return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s: %s", image->path, what);
}

bool sym_image_holds(const struct sym_image *image, uint64_t offset, uint64_t size)
{
	return offset <= image->size && size <= image->size - offset;
}

bool sym_image_spend(struct sym_image *image, uint64_t size)
{
	if (size > image->budget)
		return false;
	image->budget -= size;
	return true;
}

bool sym_strings_init(struct sym_strings *strings, const void *bytes, uint64_t size)
{
	if (!size || ((const char *)bytes)[size - 1])
		return false;
	strings->bytes = bytes;
	strings->size = size;
	return true;
}

const char *sym_string(const struct sym_strings *strings, uint64_t offset)
{
	return offset < strings->size ? strings->bytes + offset : NULL;
}

bool sym_image_segment(const struct sym_image *image, uint64_t i, Elf64_Phdr *ret)
{
	return i < image->n_segments && gelf_getphdr(image->elf, (int)i, ret);
}

bool sym_image_section(const struct sym_image *image, uint64_t i, Elf64_Shdr *ret)
{
	Elf_Scn *scn = i && i < image->n_sections ? elf_getscn(image->elf, i) : NULL;

	return scn && gelf_getshdr(scn, ret);
}

const char *sym_image_section_name(const struct sym_image *image, const Elf64_Shdr *section)
{
	const char *name = sym_string(&image->section_names, section->sh_name);

	return name ? name : "";
}

static const char *machine_name(unsigned int machine)
{
	switch (machine) {
	case EM_386:
		return "i386";
	case EM_ARM:
		return "Arm";
	case EM_AARCH64:
		return "AArch64";
	case EM_RISCV:
		return "RISC-V";
	case EM_PPC64:
		return "PowerPC";
	case EM_S390:
		return "S/390";
	case EM_MIPS:
		return "MIPS";
	case EM_LOONGARCH:
		return "LoongArch";
	default:
		return "another architecture";
	}
}

/* What can be said from e_ident and the two halfwords after it, which all classes share. */
static struct kymo_error *check_identity(const struct sym_image *image, const uint8_t *head, size_t size)
{
	static const char only[] = "kymo traces x86-64 programs only";
	unsigned int machine;

	if (!size)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is empty", image->path);
	if (size >= 2 && !memcmp(head, "#!", 2))
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is a script, not an ELF file; name its interpreter",
					 image->path);
	if (size < SELFMAG || memcmp(head, ELFMAG, SELFMAG))
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is not an ELF file", image->path);
	if (size > EI_CLASS && head[EI_CLASS] == ELFCLASS32)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is a 32-bit program; %s", image->path, only);
	if (size > EI_DATA && head[EI_DATA] == ELFDATA2MSB)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is a big-endian program; %s", image->path, only);
	if (size < sizeof(Elf64_Ehdr))
		return sym_image_bad(image, "the file ends inside of the ELF header (size 0x%zx)", size);
	if (head[EI_CLASS] != ELFCLASS64 || head[EI_DATA] != ELFDATA2LSB || head[EI_VERSION] != EV_CURRENT)
		return sym_image_bad(image, "the ELF header has an unknown class, byte order or version");
	machine = head[18] | head[19] << 8;
	if (machine != EM_X86_64)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is a program for %s (ELF machine %u); %s",
					 image->path, machine_name(machine), machine, only);
	return NULL;
}

static struct kymo_error *check_header(const struct sym_image *image, enum sym_image_kind kind)
{
	const Elf64_Ehdr *header = &image->header;

	/* What several files share (dwz) is no program. */
	if (header->e_type == ET_REL && kind != SYM_DWARF)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is an object file that was not linked", image->path);
	if (header->e_type == ET_CORE)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is a core dump, not a program", image->path);
	if (header->e_type != ET_EXEC && header->e_type != ET_DYN && kind != SYM_DWARF)
		return sym_image_bad(image, "ELF type %u is neither a program nor a shared object", header->e_type);
	if (header->e_version != EV_CURRENT)
		return sym_image_bad(image, "ELF version %u is unknown", header->e_version);
	if (header->e_phnum && header->e_phentsize != sizeof(Elf64_Phdr))
		return sym_image_bad(image, "program headers of %u bytes each", header->e_phentsize);
	if (header->e_shoff && header->e_shentsize != sizeof(Elf64_Shdr))
		return sym_image_bad(image, "section headers of %u bytes each", header->e_shentsize);
	return NULL;
}

struct reader {
	struct sym_image *image;
	int fd;
	uint64_t left; /* of READ_MAX */
};

static struct kymo_error *read_part(struct reader *reader, uint64_t offset, uint64_t size)
{
	struct sym_image *image = reader->image;
	int r;

	if (size > reader->left)
		return sym_image_bad(image, "more than %llu MiB of code, data and symbols", READ_MAX >> 20);
	reader->left -= size;
	r = kymo_pread_all(reader->fd, image->bytes + offset, size, (off_t)offset);
	if (r == -EIO)
		return sym_image_bad(image, "the file ended or failed while it was read (offset 0x%llx, size 0x%llx)",
				     (unsigned long long)offset, (unsigned long long)size);
	return r ? kymo_error_errno(r, "%s: reading", image->path) : NULL;
}

static struct kymo_error *read_table(struct reader *reader, const char *name, uint64_t offset, uint64_t n,
				     uint64_t size)
{
	struct sym_image *image = reader->image;

	/* n is below 2^32 or bounded by the caller, so the product holds. */
	if (!sym_image_holds(image, offset, n * size))
		return sym_image_bad(image,
				     "%s header table lies beyond the end of the file (offset 0x%llx, size 0x%llx)",
				     name, (unsigned long long)offset, (unsigned long long)(n * size));
	return read_part(reader, offset, n * size);
}

/* The program header table, then the section header table, whose true length may stand in its first entry. */
static struct kymo_error *read_header_tables(struct reader *reader)
{
	struct sym_image *image = reader->image;
	const Elf64_Ehdr *header = &image->header;
	struct kymo_error *error;
	Elf64_Shdr first;

	if (header->e_phnum * sizeof(Elf64_Phdr) > SEGMENT_TABLE_MAX)
		return sym_image_bad(image, "%u program headers are more than Linux loads", header->e_phnum);
	error = read_table(reader, "program", header->e_phoff, header->e_phnum, sizeof(Elf64_Phdr));
	if (error)
		return error;
	image->n_segments = header->e_phnum;
	image->n_sections = header->e_shnum;
	if (!header->e_shoff) {
		if (header->e_shnum)
			return sym_image_bad(image, "%u section headers at offset 0", header->e_shnum);
		return NULL;
	}
	error = read_table(reader, "section", header->e_shoff, 1, sizeof(first));
	if (error)
		return error;
	memcpy(&first, image->bytes + header->e_shoff, sizeof(first));
	if (!header->e_shnum)
		image->n_sections = first.sh_size;
	if (image->n_sections > image->size / sizeof(first))
		return sym_image_bad(
			image, "section header table lies beyond the end of the file (offset 0x%llx, 0x%llx entries)",
			(unsigned long long)header->e_shoff, (unsigned long long)image->n_sections);
	return read_table(reader, "section", header->e_shoff, image->n_sections, sizeof(first));
}

static struct kymo_error *read_segments(struct reader *reader)
{
	struct sym_image *image = reader->image;
	struct kymo_error *error;
	Elf64_Phdr segment;

	for (uint64_t i = 0; i < image->n_segments; i++) {
		if (!sym_image_segment(image, i, &segment))
			return sym_image_bad(image, "program header %llu cannot be read", (unsigned long long)i);
		if (segment.p_type != PT_LOAD || !segment.p_filesz)
			continue;
		if (!sym_image_holds(image, segment.p_offset, segment.p_filesz))
			return sym_image_bad(
				image, "segment %llu lies beyond the end of the file (offset 0x%llx, size 0x%llx)",
				(unsigned long long)i, (unsigned long long)segment.p_offset,
				(unsigned long long)segment.p_filesz);
		error = read_part(reader, segment.p_offset, segment.p_filesz);
		if (error)
			return error;
	}
	return NULL;
}

static struct kymo_error *read_section_names(struct reader *reader)
{
	struct sym_image *image = reader->image;
	struct kymo_error *error;
	Elf64_Shdr names;
	size_t index;

	if (!image->n_sections || elf_getshdrstrndx(image->elf, &index) || index == SHN_UNDEF)
		return NULL;
	if (!sym_image_section(image, index, &names) || names.sh_type != SHT_STRTAB || !names.sh_size ||
	    !sym_image_holds(image, names.sh_offset, names.sh_size))
		return sym_image_bad(
			image, "section %zu is not the table of section names that the ELF header calls it", index);
	error = read_part(reader, names.sh_offset, names.sh_size);
	if (error)
		return error;
	if (!sym_strings_init(&image->section_names, image->bytes + names.sh_offset, names.sh_size))
		return sym_image_bad(image,
				     "the table of section names does not end in a NUL (offset 0x%llx, size 0x%llx)",
				     (unsigned long long)names.sh_offset, (unsigned long long)names.sh_size);
	return NULL;
}

static bool is_of_dwarf(const struct sym_image *image, const Elf64_Shdr *section)
{
	const char *name = sym_image_section_name(image, section);

	return section->sh_type == SHT_NOTE || !strncmp(name, ".debug_", 7) || !strncmp(name, ".zdebug_", 8) ||
	       !strcmp(name, ".gnu_debugaltlink");
}

/* Sections that no segment holds but that are looked at. */
static bool is_wanted_section(const struct sym_image *image, const Elf64_Shdr *section, enum sym_image_kind kind)
{
	if (kind == SYM_DWARF)
		return is_of_dwarf(image, section);
	if (section->sh_flags & SHF_ALLOC)
		return kind == SYM_DEBUG && section->sh_type == SHT_NOTE;
	return section->sh_type == SHT_SYMTAB || section->sh_type == SHT_STRTAB ||
	       (kind == SYM_PROGRAM && section->sh_type == SHT_NOTE) ||
	       !strcmp(sym_image_section_name(image, section), ".gnu_debuglink");
}

static struct kymo_error *read_sections(struct reader *reader, enum sym_image_kind kind)
{
	struct sym_image *image = reader->image;
	struct kymo_error *error;
	Elf64_Shdr section;

	for (uint64_t i = 1; i < image->n_sections; i++) {
		if (!sym_image_section(image, i, &section))
			return sym_image_bad(image, "section header %llu cannot be read", (unsigned long long)i);
		if (section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL || !section.sh_size)
			continue;
		if (!sym_image_holds(image, section.sh_offset, section.sh_size))
			return sym_image_bad(
				image, "section %llu %s lies beyond the end of the file (offset 0x%llx, size 0x%llx)",
				(unsigned long long)i, sym_image_section_name(image, &section),
				(unsigned long long)section.sh_offset, (unsigned long long)section.sh_size);
		if (!is_wanted_section(image, &section, kind))
			continue;
		error = read_part(reader, section.sh_offset, section.sh_size);
		if (error)
			return error;
	}
	return NULL;
}

int sym_image_open(const char *path)
{
	kymo_cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);
	char link[sizeof("/proc/self/fd/") + 16];
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EINVAL;
		return -1;
	}
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* What a file system in user space says of a file is that user's word. */
static bool is_protected(int fd, const struct stat *st)
{
	struct statfs fs;

	return (!st->st_uid || st->st_uid == geteuid()) && !(st->st_mode & (S_IWGRP | S_IWOTH)) && !fstatfs(fd, &fs) &&
	       fs.f_type != FUSE_SUPER_MAGIC;
}

/* The size of the file and its first bytes, as far as they are there. */
static struct kymo_error *read_head(struct sym_image *image, int fd, enum sym_image_kind kind)
{
	uint8_t head[sizeof(Elf64_Ehdr)];
	struct kymo_error *error;
	struct stat st;
	int r;

	if (fstat(fd, &st))
		return kymo_error_errno(errno, "%s", image->path);
	if (!S_ISREG(st.st_mode))
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s is not a regular file", image->path);
	if ((uint64_t)st.st_size > FILE_MAX)
		return sym_image_bad(image, "files of more than %llu GiB are not read", FILE_MAX >> 30);
	image->size = (uint64_t)st.st_size;
	image->is_protected = is_protected(fd, &st);
	/* Enough for a table to be walked for several purposes, and for small files with much sharing. */
	image->budget = image->size * 32 + (1 << 20);
	r = kymo_pread_all(fd, head, image->size < sizeof(head) ? image->size : sizeof(head), 0);
	if (r)
		return kymo_error_errno(r, "%s: reading", image->path);
	error = check_identity(image, head, image->size < sizeof(head) ? image->size : sizeof(head));
	if (error)
		return error;
	memcpy(&image->header, head, sizeof(head));
	image->is_large = kind == SYM_PROGRAM && image->size <= LARGE_MAX;
	if (image->is_large)
		image->bytes = kymo_large_alloc(image->size + SLACK);
	else if (kind == SYM_DEBUG) /* symbols and headers of sections come last */
		image->bytes = kymo_sparse_alloc_to_end(image->size + SLACK);
	else
		image->bytes = kymo_sparse_alloc(image->size + SLACK);
	if (!image->bytes)
		return &kymo_error_no_memory;
	memcpy(image->bytes, head, sizeof(head));
	return check_header(image, kind);
}

static struct kymo_error *read_image(struct sym_image *image, int fd, enum sym_image_kind kind)
{
	struct reader reader = { image, fd, READ_MAX };
	struct kymo_error *error = read_head(image, fd, kind);

	if (!error)
		error = read_header_tables(&reader);
	if (error)
		return error;
	elf_version(EV_CURRENT);
	image->elf = elf_memory((char *)image->bytes, image->size);
	if (!image->elf || elf_kind(image->elf) != ELF_K_ELF)
		return sym_image_bad(image, "%s", elf_errmsg(-1));
	if (kind == SYM_PROGRAM)
		error = read_segments(&reader);
	if (!error)
		error = read_section_names(&reader);
	return error ? error : read_sections(&reader, kind);
}

struct kymo_error *sym_image_init(struct sym_image *image, int fd, const char *path, enum sym_image_kind kind)
{
	struct kymo_error *error;

	*image = (struct sym_image){ .path = strdup(path) };
	if (!image->path)
		return &kymo_error_no_memory;
	error = read_image(image, fd, kind);
	if (error)
		sym_image_deinit(image);
	return error;
}

void sym_image_deinit(struct sym_image *image)
{
	elf_end(image->elf);
	if (image->is_large)
		kymo_large_free(image->bytes, image->size + SLACK);
	else
		kymo_sparse_free(image->bytes, image->size + SLACK);
	free(image->path);
	*image = (struct sym_image){ 0 };
}

int sym_build_id(const uint8_t *notes, uint64_t size, uint64_t align, uint8_t *id, size_t max)
{
	const uint64_t mask = align - 1;
	uint64_t at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		uint64_t name, desc, end;
		Elf64_Nhdr note;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		desc = (name + note.n_namesz + mask) & ~mask;
		end = desc + note.n_descsz;
		if (note.n_namesz > size - name || (note.n_descsz && end > size))
			return -1;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && note.n_descsz &&
		    !memcmp(notes + name, "GNU", 4)) {
			max = note.n_descsz < max ? note.n_descsz : max;
			memcpy(id, notes + desc, max);
			return (int)max;
		}
		at = (end + mask) & ~mask;
		if (at > size)
			break;
	}
	return 0;
}
