/*
 * Separate debug information: by build-id under /usr/lib/debug/.build-id, by .gnu_debuglink beside the file and under
 * /usr/lib/debug. Only its symbols are read, and only where the file itself has no full table.
 * Reference: the GDB manual, "Debugging Information in Separate Files".
 */
#include "sym/debuglink.h"

#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "sym/module_state.h"

#define DEBUG_ROOT "/usr/lib/debug"

/* A checksum is only computed of files that can be read in reasonable time. */
#define CHECKSUM_MAX (4ll << 30)

/* CRC-32 of IEEE 802.3, as .gnu_debuglink has it. */
static uint32_t crc32_update(uint32_t crc, const uint8_t *data, size_t size)
{
	static uint32_t table[256];

	if (!table[1])
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t value = i;

			for (int bit = 0; bit < 8; bit++)
				value = value >> 1 ^ (value & 1 ? 0xedb88320u : 0);
			table[i] = value;
		}
	crc = ~crc;
	for (size_t i = 0; i < size; i++)
		crc = table[(crc ^ data[i]) & 0xff] ^ crc >> 8;
	return ~crc;
}

static bool has_checksum(int fd, uint32_t want)
{
	const size_t step = 1 << 16;
	kymo_cleanup_free uint8_t *buffer = malloc(step);
	uint32_t crc = 0;
	struct stat st;

	if (!buffer || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > CHECKSUM_MAX)
		return false;
	for (off_t at = 0; at < st.st_size;) {
		size_t size = st.st_size - at < (off_t)step ? (size_t)(st.st_size - at) : step;

		if (kymo_pread_all(fd, buffer, size, at))
			return false;
		crc = crc32_update(crc, buffer, size);
		at += (off_t)size;
	}
	return crc == want;
}

size_t sym_debug_build_id(const struct sym_image *image, uint8_t id[KYMO_BUILD_ID_MAX])
{
	Elf64_Shdr header;

	for (uint64_t i = 1; i < image->n_sections && sym_image_section(image, i, &header); i++) {
		int n;

		/* Nothing of what several files share (dwz) is loaded. */
		if (header.sh_type != SHT_NOTE || !header.sh_size ||
		    (!(header.sh_flags & SHF_ALLOC) && image->header.e_type != ET_REL))
			continue;
		n = sym_build_id(image->bytes + header.sh_offset, header.sh_size, header.sh_addralign == 8 ? 8 : 4, id,
				 KYMO_BUILD_ID_MAX);
		if (n > 0)
			return (size_t)n;
	}
	return 0;
}

/* What was found. */
struct found {
	struct sym_image *image;
	bool is_there;
	char *misfit; /* path of one that .gnu_debuglink names, and that is of another build; or NULL */
};

/*
 * Take the file at `path` as the module's debug information if it belongs to it: equal build-ids, or where one of the
 * two has none, the checksum of .gnu_debuglink (`crc`, NULL: build-id only).
 */
static struct kymo_error *try_file(const struct kymo_module *module, const char *path, const uint32_t *crc,
				   struct found *found)
{
	kymo_cleanup_close int fd = sym_image_open(path);
	uint8_t id[KYMO_BUILD_ID_MAX];
	struct kymo_error *error;
	struct sym_image image;
	size_t size;
	bool fits;

	if (fd < 0)
		return NULL;
	error = sym_image_init(&image, fd, path, SYM_DEBUG);
	if (error) {
		if (error->code == KYMO_ERROR_NO_MEMORY)
			return error;
		kymo_error_destroy(error);
		return NULL;
	}
	size = sym_debug_build_id(&image, id);
	if (size && module->build_id_size)
		fits = size == module->build_id_size && !memcmp(id, module->build_id, size);
	else
		fits = crc && has_checksum(fd, *crc);
	if (!fits) {
		sym_image_deinit(&image);
		if (crc && !found->misfit)
			found->misfit = strdup(path);
		return NULL;
	}
	*found->image = image;
	found->is_there = true;
	return NULL;
}

static struct kymo_error *try_build_id(const struct kymo_module *module, struct found *found)
{
	char path[sizeof(DEBUG_ROOT) + 32 + 2 * KYMO_BUILD_ID_MAX];
	int at;

	if (module->build_id_size < 2)
		return NULL;
	at = snprintf(path, sizeof(path), DEBUG_ROOT "/.build-id/%02x/", module->build_id[0]);
	for (size_t i = 1; i < module->build_id_size; i++)
		at += snprintf(path + at, sizeof(path) - (size_t)at, "%02x", module->build_id[i]);
	snprintf(path + at, sizeof(path) - (size_t)at, ".debug");
	return try_file(module, path, NULL, found);
}

/* The name and checksum in .gnu_debuglink. A name with a slash would lead elsewhere and is not followed. */
static bool read_link(const struct sym_image *image, const char **name_ret, uint32_t *crc_ret)
{
	Elf64_Shdr header;

	for (uint64_t i = 1; i < image->n_sections && sym_image_section(image, i, &header); i++) {
		const uint8_t *bytes, *end;
		uint64_t at;

		if (strcmp(sym_image_section_name(image, &header), ".gnu_debuglink") || header.sh_type == SHT_NOBITS ||
		    header.sh_type == SHT_NULL || header.sh_flags & SHF_ALLOC || !header.sh_size)
			continue;
		bytes = image->bytes + header.sh_offset;
		end = memchr(bytes, '\0', header.sh_size);
		if (!end || end == bytes || end - bytes > NAME_MAX || memchr(bytes, '/', (size_t)(end - bytes)))
			return false;
		at = ((uint64_t)(end - bytes) + 4) & ~3ull;
		if (at + sizeof(*crc_ret) > header.sh_size)
			return false;
		memcpy(crc_ret, bytes + at, sizeof(*crc_ret));
		*name_ret = (const char *)bytes;
		return true;
	}
	return false;
}

static struct kymo_error *try_link(const struct kymo_module *module, struct found *found)
{
	static const char *const formats[] = { "%s/%s", "%s/.debug/%s", DEBUG_ROOT "%s/%s" };
	kymo_cleanup_free char *real = NULL;
	const char *name, *directory;
	uint32_t crc;

	if (!read_link(&module->image, &name, &crc))
		return NULL;
	real = realpath(module->image.path, NULL);
	if (!real)
		return NULL;
	directory = dirname(real);
	for (size_t i = 0; i < kymo_countof(formats) && !found->is_there; i++) {
		kymo_cleanup_free char *path = NULL;
		struct kymo_error *error;

		if (asprintf(&path, formats[i], directory, name) < 0) {
			path = NULL;
			return &kymo_error_no_memory;
		}
		error = try_file(module, path, &crc, found);
		if (error)
			return error;
	}
	return NULL;
}

static bool has_full_table(const struct sym_image *image)
{
	Elf64_Shdr header;

	for (uint64_t i = 1; i < image->n_sections && sym_image_section(image, i, &header); i++)
		if (header.sh_type == SHT_SYMTAB && header.sh_size)
			return true;
	return false;
}

static struct kymo_error *find_link(const struct kymo_module *module, struct found *found)
{
	struct kymo_error *error = try_build_id(module, found);

	return error || found->is_there ? error : try_link(module, found);
}

struct kymo_error *sym_debug_attach(struct kymo_module *module)
{
	struct found found = { .image = &module->debug };
	struct kymo_error *error;

	if (has_full_table(&module->image))
		return NULL;
	error = find_link(module, &found);
	free(found.misfit);
	return error;
}

struct kymo_error *sym_debug_find(const struct kymo_module *module, char **ret, char **misfit_ret)
{
	struct sym_image image = { 0 };
	struct found found = { .image = &image };
	struct kymo_error *error;

	*misfit_ret = NULL;
	if (module->debug.path) {
		*ret = strdup(module->debug.path);
		return *ret ? NULL : &kymo_error_no_memory;
	}
	error = find_link(module, &found);
	*ret = found.is_there ? kymo_take(image.path) : NULL;
	*misfit_ret = found.misfit;
	sym_image_deinit(&image);
	return error;
}

static bool has_section(const struct sym_image *image, const char *name)
{
	Elf64_Shdr header;

	for (uint64_t i = 1; image->bytes && i < image->n_sections && sym_image_section(image, i, &header); i++)
		if (!strcmp(sym_image_section_name(image, &header), name))
			return true;
	return false;
}

bool kymo_module_has_lines(const struct kymo_module *module)
{
	return has_section(&module->image, ".debug_line") || has_section(&module->debug, ".debug_line");
}
