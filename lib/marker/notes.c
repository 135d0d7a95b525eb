#include "notes.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define NOTES_MAX (1u << 20) /* of one module */
#define STRING_MAX 65536     /* bytes of a format or path with its NUL: the end of those that have none */
#define NAME_MAX_ 256        /* of a name or provider */
#define TEXT_SIZE 5
#define OWNER "kymo"

/* One note that was checked. */
struct note {
	uint32_t kind;
	uint32_t types, line;
	const char *provider, *name, *format, *file;
	unsigned char *text; /* of a site: the NOP */
	unsigned char *cold; /* where a site jumps; of a location: the NOP */
	uintptr_t data;      /* its gate; or a location's slots */
};

struct notes {
	struct note *items;
	size_t n, cap;
};

/* What stands in memory is at any alignment, and is not what the compiler thinks that an address of ours points to. */
static uint32_t read32(uintptr_t at)
{
	uint32_t value;
	memcpy(&value, (const void *)at, sizeof(value));
	return value;
}

/* ---- segments -------------------------------------------------------------------------------- */

/* Whether `size` bytes at `address` are all in one loaded segment whose flags include `flags`; the bytes that are left
 * in it. */
static size_t room_at(const struct lib_found *found, uintptr_t address, ElfW(Word) flags)
{
	for (size_t i = 0; i < found->n_phdrs; i++) {
		const ElfW(Phdr) *phdr = &found->phdrs[i];
		uintptr_t begin = found->base + phdr->p_vaddr;

		if (phdr->p_type == PT_LOAD && (phdr->p_flags & flags) == flags && address >= begin &&
		    address - begin < phdr->p_memsz)
			return phdr->p_memsz - (address - begin);
	}
	return 0;
}

static bool is_text(const struct lib_found *found, uintptr_t address, size_t size)
{
	return room_at(found, address, PF_R | PF_X) >= size;
}

static bool is_writable(const struct lib_found *found, uintptr_t address, size_t size)
{
	for (size_t i = 0; i < found->n_phdrs; i++) {
		const ElfW(Phdr) *phdr = &found->phdrs[i];
		uintptr_t begin = found->base + phdr->p_vaddr;

		if (phdr->p_type == PT_GNU_RELRO && address + size > begin && address < begin + phdr->p_memsz)
			return false;
	}
	return room_at(found, address, PF_R | PF_W) >= size;
}

bool kymo_lib_is_inside(const struct lib_found *found, uintptr_t address)
{
	return room_at(found, address, 0) > 0;
}

/* ---- one note -------------------------------------------------------------------------------- */

/* The address that the s32 at `field` gives; 0 where it gives none. */
static uintptr_t target_of(uintptr_t field)
{
	int32_t offset = (int32_t)read32(field);
	return offset ? field + (uintptr_t)(intptr_t)offset : 0;
}

static const char *string_at(const struct lib_found *found, uintptr_t address, size_t max)
{
	size_t room = address ? room_at(found, address, PF_R) : 0;
	const char *text = (const char *)address;

	if (room == 0 || !memchr(text, 0, room < max ? room : max))
		return NULL;
	return text;
}

static bool are_types(uint32_t types)
{
	for (; types; types >>= 4) {
		if ((types & 15) == KYMO_MARKER_END || (types & 15) > KYMO_MARKER_POINTER32)
			return false;
	}
	return true;
}

static bool read_site(const struct lib_found *found, uintptr_t desc, struct note *ret)
{
	uintptr_t text = target_of(desc + offsetof(struct kymo_marker_note, code));
	uintptr_t cold = target_of(desc + offsetof(struct kymo_marker_note, target));

	ret->data = target_of(desc + offsetof(struct kymo_marker_note, gate));
	if (!ret->data || !is_writable(found, ret->data, sizeof(struct kymo_marker_gate)))
		return false;
	if (!text)
		return true; /* the portable form: where the cold block is does not matter */
	if (!KYMO_LIB_HAS_TEXT || !is_text(found, text, TEXT_SIZE) || !cold || !is_text(found, cold, 1))
		return false;
	intptr_t distance = (intptr_t)(cold - (text + TEXT_SIZE));
	if (distance != (int32_t)distance)
		return false;
	ret->text = (unsigned char *)text;
	ret->cold = (unsigned char *)cold;
	return true;
}

static bool read_location(const struct lib_found *found, uintptr_t desc, struct note *ret)
{
	uintptr_t code = target_of(desc + offsetof(struct kymo_marker_note, code));

	ret->data = target_of(desc + offsetof(struct kymo_marker_note, target));
	ret->cold = (unsigned char *)code;
	return (!code || is_text(found, code, TEXT_SIZE)) && ret->data &&
	       ret->data % _Alignof(struct kymo_marker_slots) == 0 &&
	       is_writable(found, ret->data, sizeof(struct kymo_marker_slots));
}

static bool read_desc(const struct lib_found *found, uint32_t kind, uintptr_t desc, size_t size, struct note *ret)
{
	if (size < sizeof(struct kymo_marker_note))
		return false;
	*ret = (struct note){
		.kind = kind,
		.types = read32(desc + offsetof(struct kymo_marker_note, types)),
		.line = read32(desc + offsetof(struct kymo_marker_note, line)),
		.name = string_at(found, target_of(desc + offsetof(struct kymo_marker_note, name)), NAME_MAX_),
		.format = string_at(found, target_of(desc + offsetof(struct kymo_marker_note, format)), STRING_MAX),
		.file = string_at(found, target_of(desc + offsetof(struct kymo_marker_note, file)), STRING_MAX),
		.provider = string_at(found, target_of(desc + offsetof(struct kymo_marker_note, provider)), NAME_MAX_),
	};
	if (!ret->name || !ret->format || !ret->file || !ret->provider || !are_types(ret->types))
		return false;
	return kind == KYMO_MARKER_NOTE_SITE ? read_site(found, desc, ret) : read_location(found, desc, ret);
}

/* ---- all notes ------------------------------------------------------------------------------- */

/* A cursor over the notes of one segment. */
struct cursor {
	uintptr_t at, end;
};

static bool is_note_segment(const struct lib_found *found, const ElfW(Phdr) * phdr, struct cursor *ret)
{
	uintptr_t begin = found->base + phdr->p_vaddr;

	/* Notes of alignment 8 are GNU properties, and laid out in another way. */
	if (phdr->p_type != PT_NOTE || phdr->p_align > 4 || begin % 4 || phdr->p_memsz == 0 ||
	    room_at(found, begin, PF_R) < phdr->p_memsz)
		return false;
	*ret = (struct cursor){ begin, begin + phdr->p_memsz };
	return true;
}

struct raw_note {
	uint32_t kind;
	bool is_ours;
	uintptr_t desc;
	size_t size;
};

/* 1, 0 at the end, or -EBADMSG. */
static int next_note(struct cursor *cursor, struct raw_note *ret)
{
	size_t room = cursor->end - cursor->at;
	if (room == 0)
		return 0;
	if (room < 12)
		return -EBADMSG;
	uint64_t name_size = read32(cursor->at), size = read32(cursor->at + 4);
	uint64_t desc = 12 + ((name_size + 3) & ~UINT64_C(3)), next = desc + ((size + 3) & ~UINT64_C(3));

	if (desc > room || size > room - desc)
		return -EBADMSG;
	*ret = (struct raw_note){
		.kind = read32(cursor->at + 8),
		.is_ours = name_size == sizeof(OWNER) &&
			   memcmp((const void *)(cursor->at + 12), OWNER, sizeof(OWNER)) == 0,
		.desc = cursor->at + desc,
		.size = size,
	};
	cursor->at = next > room ? cursor->end : cursor->at + next;
	return 1;
}

bool kymo_lib_has_notes(const struct lib_found *found)
{
	for (size_t i = 0; i < found->n_phdrs; i++) {
		struct cursor cursor;
		struct raw_note note;

		if (!is_note_segment(found, &found->phdrs[i], &cursor))
			continue;
		while (next_note(&cursor, &note) > 0) {
			if (note.is_ours)
				return true;
		}
	}
	return false;
}

static int append_note(struct notes *notes, const struct note *note)
{
	if (notes->n == NOTES_MAX)
		return -EBADMSG;
	if (notes->n == notes->cap) {
		size_t cap = notes->cap ? 2 * notes->cap : 32;
		struct note *items = realloc(notes->items, cap * sizeof(*items));
		if (!items)
			return -ENOMEM;
		notes->items = items;
		notes->cap = cap;
	}
	notes->items[notes->n++] = *note;
	return 0;
}

static int read_segment(const struct lib_found *found, struct cursor *cursor, struct notes *notes)
{
	struct raw_note raw;
	struct note note;
	int status;

	while ((status = next_note(cursor, &raw)) > 0) {
		if (!raw.is_ours || (raw.kind != KYMO_MARKER_NOTE_SITE && raw.kind != KYMO_MARKER_NOTE_LOCATION))
			continue; /* of another owner, or of a later version */
		if (!read_desc(found, raw.kind, raw.desc, raw.size, &note))
			return -EBADMSG;
		status = append_note(notes, &note);
		if (status < 0)
			return status;
	}
	return status;
}

static int read_notes(const struct lib_found *found, struct notes *notes)
{
	for (size_t i = 0; i < found->n_phdrs; i++) {
		struct cursor cursor;
		if (!is_note_segment(found, &found->phdrs[i], &cursor))
			continue;
		int status = read_segment(found, &cursor, notes);
		if (status < 0)
			return status;
	}
	return notes->n ? 0 : -ENOENT;
}

/* ---- no two overlap -------------------------------------------------------------------------- */

static int compare_addresses(const void *left, const void *right)
{
	uintptr_t a = *(const uintptr_t *)left, b = *(const uintptr_t *)right;
	return (a > b) - (a < b);
}

/* `may_be_equal`: where the portable form has static objects, copies of a marker share one. */
static bool are_apart(uintptr_t *addresses, size_t n, size_t distance, bool may_be_equal)
{
	qsort(addresses, n, sizeof(*addresses), compare_addresses);
	for (size_t i = 1; i < n; i++) {
		uintptr_t difference = addresses[i] - addresses[i - 1];
		if (difference < distance && !(difference == 0 && may_be_equal))
			return false;
	}
	return true;
}

enum overlap {
	OVERLAP_TEXTS,
	OVERLAP_GATES_OF_TEXTS,
	OVERLAP_GATES,
	OVERLAP_SLOTS,
	N_OVERLAPS,
};

static const struct {
	size_t size;
	bool may_be_equal;
} overlaps[N_OVERLAPS] = {
	[OVERLAP_TEXTS] = { TEXT_SIZE, false },
	[OVERLAP_GATES_OF_TEXTS] = { sizeof(struct kymo_marker_gate), false },
	[OVERLAP_GATES] = { sizeof(struct kymo_marker_gate), true },
	[OVERLAP_SLOTS] = { sizeof(struct kymo_marker_slots), true },
};

/* 0 where the note has none of that. */
static uintptr_t address_of(const struct note *note, enum overlap what)
{
	bool is_site = note->kind == KYMO_MARKER_NOTE_SITE;

	switch (what) {
	case OVERLAP_TEXTS:
		return (uintptr_t)note->text;
	case OVERLAP_GATES_OF_TEXTS:
		return note->text ? note->data : 0;
	case OVERLAP_GATES:
		return is_site ? note->data : 0;
	default:
		return is_site ? 0 : note->data;
	}
}

static int check_overlaps(const struct notes *notes)
{
	uintptr_t *some = malloc(notes->n * sizeof(*some));
	bool is_good = some != NULL;

	for (enum overlap what = 0; is_good && what < N_OVERLAPS; what++) {
		size_t n = 0;
		for (size_t i = 0; i < notes->n; i++) {
			some[n] = address_of(&notes->items[i], what);
			n += some[n] != 0;
		}
		is_good = are_apart(some, n, overlaps[what].size, overlaps[what].may_be_equal);
	}
	int status = !some ? -ENOMEM : is_good ? 0 : -EBADMSG;
	free(some);
	return status;
}

/* ---- markers --------------------------------------------------------------------------------- */

static int compare_text(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a, b);
}

/* In the order in which markers are told; 0 for copies of one. */
static int compare_markers(const struct note *a, const struct note *b)
{
	int difference = compare_text(a->file, b->file);
	if (!difference)
		difference = (a->line > b->line) - (a->line < b->line);
	if (!difference)
		difference = compare_text(a->name, b->name);
	if (!difference)
		difference = compare_text(a->format, b->format);
	if (!difference)
		difference = compare_text(a->provider, b->provider);
	if (!difference)
		difference = (a->types > b->types) - (a->types < b->types);
	return difference;
}

static int compare_notes(const void *left, const void *right)
{
	const struct note *a = left, *b = right;
	int difference = compare_markers(a, b);

	if (!difference)
		difference = (a->kind > b->kind) - (a->kind < b->kind);
	if (!difference)
		difference = (a->data > b->data) - (a->data < b->data);
	return difference;
}

/* Memory for all of them; no more than is used. */
static bool allocate(const struct notes *notes, struct lib_module *module)
{
	for (size_t i = 0; i < notes->n; i++) {
		module->n_markers += i == 0 || compare_markers(&notes->items[i - 1], &notes->items[i]) != 0;
		module->n_sites += notes->items[i].kind == KYMO_MARKER_NOTE_SITE;
	}
	module->n_locations = notes->n - module->n_sites;
	module->markers = calloc(module->n_markers, sizeof(*module->markers));
	module->named = calloc(module->n_markers, sizeof(struct lib_marker *));
	module->sites = calloc(module->n_sites + 1, sizeof(*module->sites));
	module->locations = calloc(module->n_locations + 1, sizeof(*module->locations));
	return module->markers && module->named && module->sites && module->locations;
}

static void add_copy(struct lib_marker *marker, const struct note *note)
{
	if (note->kind == KYMO_MARKER_NOTE_SITE)
		marker->sites[marker->n_sites++] = (struct lib_site){
			.text = note->text,
			.cold = note->cold,
			.gate = (struct kymo_marker_gate *)note->data,
			.marker = marker,
		};
	else
		marker->locations[marker->n_locations++] = (struct lib_location){
			.code = note->cold,
			.slots = (struct kymo_marker_slots *)note->data,
			.marker = marker,
		};
}

/* Sorted notes become markers: those of one lie together, its sites first. */
static void fill_module(const struct notes *notes, struct lib_module *module)
{
	struct lib_marker *marker = NULL, *next = module->markers;
	struct lib_site *sites = module->sites;
	struct lib_location *locations = module->locations;

	for (size_t i = 0; i < notes->n; i++) {
		const struct note *note = &notes->items[i];
		if (i == 0 || compare_markers(&notes->items[i - 1], note) != 0) {
			marker = next++;
			*marker = (struct lib_marker){
				.module = module,
				.provider = note->provider,
				.name = note->name,
				.format = note->format,
				.file = note->file,
				.line = note->line,
				.types = note->types,
				.sites = sites,
				.locations = locations,
			};
		}
		add_copy(marker, note);
		if (note->kind == KYMO_MARKER_NOTE_SITE)
			sites++;
		else
			locations++;
	}
}

static int compare_names(const void *left, const void *right)
{
	const struct lib_marker *a = *(struct lib_marker *const *)left, *b = *(struct lib_marker *const *)right;
	int difference = compare_text(a->name, b->name);

	return difference ? difference : (a > b) - (a < b);
}

static void sort_names(struct lib_module *module)
{
	for (size_t i = 0; i < module->n_markers; i++)
		module->named[i] = &module->markers[i];
	qsort(module->named, module->n_markers, sizeof(struct lib_marker *), compare_names);
}

static void measure(const struct lib_found *found, struct lib_module *module)
{
	module->begin = UINTPTR_MAX;
	for (size_t i = 0; i < found->n_phdrs; i++) {
		const ElfW(Phdr) *phdr = &found->phdrs[i];
		uintptr_t begin = found->base + phdr->p_vaddr;

		if (phdr->p_type != PT_LOAD)
			continue;
		module->begin = begin < module->begin ? begin : module->begin;
		module->end = begin + phdr->p_memsz > module->end ? begin + phdr->p_memsz : module->end;
	}
}

int kymo_lib_read_module(const struct lib_found *found, struct lib_module **ret)
{
	struct notes notes = { 0 };
	struct lib_module *module = NULL;
	int status = read_notes(found, &notes);

	if (status == 0)
		status = check_overlaps(&notes);
	if (status == 0) {
		qsort(notes.items, notes.n, sizeof(*notes.items), compare_notes);
		module = calloc(1, sizeof(*module));
		status = module && allocate(&notes, module) ? 0 : -ENOMEM;
	}
	if (status == 0) {
		module->base = found->base;
		module->phdrs = found->phdrs;
		measure(found, module);
		fill_module(&notes, module);
		sort_names(module);
		*ret = module;
	} else {
		kymo_lib_destroy_module(module);
	}
	free(notes.items);
	return status;
}

void kymo_lib_destroy_module(struct lib_module *module)
{
	if (!module)
		return;
	free(module->path);
	free(module->markers);
	free(module->named);
	free(module->sites);
	free(module->locations);
	free(module);
}
