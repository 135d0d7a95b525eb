/*
 * Any bytes as the notes of a program: the first tells what kind of program, the next how much of the rest is
 * .note.kymo, in 16 bytes each; what follows is .note.stapsdt, and its pieces up to each NUL are operands. Reading them
 * succeeds or is an error of BAD_DATA; what is accepted keeps the promises of marker/marker.h.
 */
#include <elf.h>
#include <errno.h>

#include "base/cleanup.h"
#include "marker/list.h"
#include "fuzz.h"
#include "marker/marker.h"
#include "marker/match.h"
#include "marker/operands.h"
#include "sym/module.h"
#include "sym/open.h"
#include "sym/sym.h"

/* ---- the program ----------------------------------------------------------------------------- */

enum {
	PAGE = 4096,
	NOTES = 1024, /* in the first page, which is read-only */
	TEXT = PAGE,
	DATA = 2 * PAGE,   /* and a page of zeros after it */
	TABLES = 4 * PAGE, /* not loaded */
	SECTIONS = TABLES,
	NAMES = TABLES + 1024,
	SYMBOLS = TABLES + 1280,
	SDT = TABLES + 2048,
};

enum { IS_FIXED = 1, HAS_NO_SECTIONS = 2 };

static const char names[] = "\0.note.kymo\0.text\0.data\0.stapsdt.base\0.note.stapsdt\0.names\0.symtab\0counter\0twin";

static uint32_t name_at(const char *name)
{
	for (uint32_t i = 1; i < sizeof(names); i++)
		if (!strcmp(names + i, name))
			return i;
	abort();
}

static void put_segment(uint8_t *file, int i, uint32_t type, uint32_t flags, uint64_t at, uint64_t size,
			uint64_t memory)
{
	Elf64_Phdr header = { .p_type = type,
			      .p_flags = flags,
			      .p_offset = at,
			      .p_vaddr = at,
			      .p_filesz = size,
			      .p_memsz = memory,
			      .p_align = type == PT_LOAD ? PAGE : 4 };

	memcpy(file + sizeof(Elf64_Ehdr) + (size_t)i * sizeof(header), &header, sizeof(header));
}

static void put_section(uint8_t *file, int i, const char *name, uint32_t type, uint64_t flags, uint64_t at,
			uint64_t size)
{
	Elf64_Shdr header = { .sh_name = name_at(name),
			      .sh_type = type,
			      .sh_flags = flags,
			      .sh_addr = flags ? at : 0,
			      .sh_offset = at,
			      .sh_size = size,
			      .sh_addralign = 4,
			      .sh_link = type == SHT_SYMTAB ? 6 : 0,
			      .sh_entsize = type == SHT_SYMTAB ? sizeof(Elf64_Sym) : 0 };

	memcpy(file + SECTIONS + (size_t)i * sizeof(header), &header, sizeof(header));
}

static void put_symbol(uint8_t *file, int i, const char *name, uint64_t vaddr)
{
	Elf64_Sym symbol = { .st_name = name_at(name),
			     .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
			     .st_shndx = 3,
			     .st_value = vaddr };

	memcpy(file + SYMBOLS + (size_t)i * sizeof(symbol), &symbol, sizeof(symbol));
}

/* Text that is markers' NOPs all over, data, three symbols, and the notes. */
static void put_program(uint8_t *file, unsigned int kind, const uint8_t *kymo, size_t kymo_size, const uint8_t *sdt,
			size_t sdt_size)
{
	static const uint8_t nop[] = { 0x0f, 0x1f, 0x44, 0x00, 0x00 };
	Elf64_Ehdr header = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			      .e_type = kind & IS_FIXED ? ET_EXEC : ET_DYN,
			      .e_machine = EM_X86_64,
			      .e_version = EV_CURRENT,
			      .e_entry = TEXT,
			      .e_phoff = sizeof(header),
			      .e_ehsize = sizeof(header),
			      .e_phentsize = sizeof(Elf64_Phdr),
			      .e_phnum = 4 };

	put_segment(file, 0, PT_LOAD, PF_R, 0, PAGE, PAGE);
	put_segment(file, 1, PT_LOAD, PF_R | PF_X, TEXT, PAGE, PAGE);
	put_segment(file, 2, PT_LOAD, PF_R | PF_W, DATA, PAGE, 2 * PAGE);
	put_segment(file, 3, PT_NOTE, PF_R, NOTES, kymo_size, kymo_size);
	memcpy(file + NOTES, kymo, kymo_size);
	for (size_t i = 0; i + sizeof(nop) <= PAGE; i += sizeof(nop))
		memcpy(file + TEXT + i, nop, sizeof(nop));
	if (!(kind & HAS_NO_SECTIONS)) {
		header.e_shoff = SECTIONS;
		header.e_shentsize = sizeof(Elf64_Shdr);
		header.e_shnum = 8;
		header.e_shstrndx = 6;
		put_section(file, 1, ".note.kymo", SHT_NOTE, SHF_ALLOC, NOTES, kymo_size);
		put_section(file, 2, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, PAGE);
		put_section(file, 3, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, PAGE);
		put_section(file, 4, ".stapsdt.base", SHT_PROGBITS, SHF_ALLOC, 1000, 1);
		put_section(file, 5, ".note.stapsdt", SHT_NOTE, 0, SDT, sdt_size);
		put_section(file, 6, ".names", SHT_STRTAB, 0, NAMES, sizeof(names));
		put_section(file, 7, ".symtab", SHT_SYMTAB, 0, SYMBOLS, 4 * sizeof(Elf64_Sym));
		memcpy(file + NAMES, names, sizeof(names));
		put_symbol(file, 1, "counter", DATA + 16);
		put_symbol(file, 2, "twin", DATA + 32);
		put_symbol(file, 3, "twin", DATA + 48);
		memcpy(file + SDT, sdt, sdt_size);
	}
	memcpy(file, &header, sizeof(header));
}

/* ---- what has to hold ------------------------------------------------------------------------ */

static void check_fetch(struct kymo_module *module, const struct kymo_fetch *fetch)
{
	const struct kymo_segment *segment;

	switch (fetch->kind) {
	case KYMO_FETCH_REGISTER:
		check(fetch->value >= 0 && fetch->value < 16);
		break;
	case KYMO_FETCH_IMMEDIATE:
		break;
	case KYMO_FETCH_MEMORY:
		check(fetch->base < 16 && fetch->index < 16 && fetch->index != 4);
		check(fetch->base >= 0 || fetch->index >= 0);
		check(fetch->scale == 1 || fetch->scale == 2 || fetch->scale == 4 || fetch->scale == 8);
		check(fetch->value == (int32_t)fetch->value);
		break;
	case KYMO_FETCH_GLOBAL:
		segment = kymo_module_segment_at(module, (uint64_t)fetch->value);
		check(segment && segment->readable);
		check((uint64_t)fetch->value + kymo_type_size(fetch->type) <= segment->vaddr + segment->memory_size);
		break;
	case KYMO_FETCH_PAYLOAD:
		check(fetch->value == 10 && fetch->index == 11 && fetch->type == KYMO_TYPE_STRING);
		break;
	default:
		abort();
	}
}

static void check_names(const struct kymo_marker *marker)
{
	for (size_t i = 0; i < marker->n_fields; i++) {
		const char *name = marker->fields[i].name;

		check(*name &&
		      strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(name));
		check(*name < '0' || *name > '9');
		for (size_t other = 0; other < i; other++)
			check(strcmp(name, marker->fields[other].name));
	}
}

static void check_marker(struct kymo_module *module, const struct kymo_marker *marker)
{
	check(*marker->name && *marker->provider);
	check(!marker->is_sdt == !!marker->format);
	check(kymo_module_is_code(module, marker->location, marker->is_sdt ? 1 : 5));
	check(!marker->semaphore || kymo_module_segment_at(module, marker->semaphore)->writable);
	check(marker->n_fields <= KYMO_EVENT_MAX_ARGS);
	check_names(marker);
	if (marker->why_not) {
		check(*marker->why_not && !marker->n_fetches);
	} else if (marker->n_fetches == 1 && marker->fetches[0].kind == KYMO_FETCH_PAYLOAD) {
		check(!marker->is_sdt && marker->n_fields);
	} else {
		check(marker->n_fetches == marker->n_fields);
		for (size_t i = 0; i < marker->n_fetches; i++) {
			check(marker->fetches[i].kind != KYMO_FETCH_PAYLOAD);
			check(marker->fetches[i].type == marker->fields[i].type);
		}
	}
	for (size_t i = 0; i < marker->n_fetches; i++)
		check_fetch(module, &marker->fetches[i]);
	kymo_marker_matches(marker->name, "/bin/a", NULL, marker->provider, marker->name);
}

static void check_list(struct kymo_module *module, const struct kymo_marker_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		const struct kymo_marker *last = &list->items[i ? i - 1 : 0], *marker = &list->items[i];

		check(strcmp(last->provider, marker->provider) <= 0);
		check_marker(module, marker);
	}
	for (size_t i = 0; i < list->n_switches; i++) {
		const struct kymo_marker_switch *one = &list->switches[i];

		check(*one->name && *one->provider && kymo_module_segment_at(module, one->gate)->writable);
		check(!one->site ||
		      (kymo_module_is_code(module, one->site, 5) && kymo_module_is_code(module, one->cold, 5)));
	}
}

static void read_operands(struct kymo_module *module, const uint8_t *data, size_t size)
{
	while (size) {
		const uint8_t *end = memchr(data, '\0', size);
		size_t length = end ? (size_t)(end - data) : size;
		char *copy = malloc(length + !length);
		struct kymo_fetch fetch;
		int r;

		check(copy);
		memcpy(copy, data, length);
		r = kymo_marker_parse_operand(module, copy, length, &fetch);
		check(!r || r == -EINVAL);
		if (!r)
			check_fetch(module, &fetch);
		free(copy);
		length += !!end;
		data += length;
		size -= length;
	}
}

/* Whether a call failed, in a way that it may. */
static bool failed(struct kymo_error *error)
{
	if (!error)
		return false;
	check(error->code == KYMO_ERROR_BAD_DATA && strlen(error->message));
	kymo_error_destroy(error);
	return true;
}

static void read_program(const uint8_t *file, size_t size, const uint8_t *sdt, size_t sdt_size)
{
	kymo_cleanup_close int fd = fuzz_file(file, size);
	struct kymo_marker_list *list;
	struct kymo_module *module;

	if (fd < 0 || failed(kymo_module_open_fd(fd, "fuzz", &module)))
		return;
	if (!failed(kymo_markers_create(module, &list))) {
		check_list(module, list);
		kymo_markers_destroy(list);
	}
	read_operands(module, sdt, sdt_size);
	kymo_module_close(module);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t kymo_size, sdt_size;
	uint8_t *file;

	if (size < 2)
		return 0;
	kymo_size = data[1] * 16u;
	if (kymo_size > PAGE - NOTES)
		kymo_size = PAGE - NOTES;
	if (kymo_size > size - 2)
		kymo_size = size - 2;
	sdt_size = size - 2 - kymo_size;
	file = calloc(1, SDT + sdt_size);
	check(file);
	put_program(file, data[0], data + 2, kymo_size, data + 2 + kymo_size, sdt_size);
	read_program(file, SDT + sdt_size, data + 2 + kymo_size, sdt_size);
	free(file);
	return 0;
}
