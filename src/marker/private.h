/*
 * What the files of this room share while a module's markers are read. Private to the room.
 */
#ifndef KYMO_MARKER_PRIVATE_H
#define KYMO_MARKER_PRIVATE_H

#include "base/vec.h"
#include "marker/fields.h"
#include "marker/marker.h"

/* Only the layouts are wanted of it. */
#define KYMO_NO_MARKERS
#define KYMO_NO_MARK
#include "kymo/marker.h"

#define MARKERS_MAX (1u << 17) /* of one module; notes of either kind */
#define MARKER_NAME_SIZE 256   /* of a name or provider, with its NUL */

/* ---- strings.c: text that lives as long as the list -----------------------------------------------------------------
 */

struct marker_strings {
	KYMO_VEC(char *) blocks;
	size_t used;  /* of the last block */
	size_t total; /* bytes of all texts */
};

struct marker_reader {
	struct kymo_module *module;
	struct marker_strings *strings;
	KYMO_VEC(struct kymo_marker) markers;
	KYMO_VEC(struct kymo_marker_switch) switches;
	size_t n_notes;
	/* The strings that were copied last: most notes of a file name the same ones. */
	struct {
		uint64_t vaddr;
		const char *copy;
	} last[5];
};

/* A copy of the `length` bytes at `text` with a NUL. Notes may share their bytes, copies do not: BAD_DATA where there
 * are too many. */
struct kymo_error *marker_copy(struct marker_reader *reader, const char *text, size_t length, char **ret);
struct kymo_error *marker_print(struct marker_reader *reader, char **ret, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Copies of the fields' names for all fields of the marker. */
struct kymo_error *marker_copy_names(struct marker_reader *reader, const struct kymo_marker_fields *fields,
				     struct kymo_marker *marker);

void marker_strings_destroy(struct marker_strings *strings);

/* ---- check.c ---------------------------------------------------------------------------------------------------- */

/* BAD_DATA: "PATH: marker 'NAME' (note at offset 0x…): FORMAT..."; `name` may be NULL. */
struct kymo_error *marker_bad(const struct marker_reader *reader, const struct kymo_note *note, const char *name,
			      const char *format, ...) __attribute__((format(printf, 4, 5), returns_nonnull));

/* Whether `size` bytes at `vaddr` can be written by the program, once it runs. */
bool marker_is_writable(const struct kymo_module *module, uint64_t vaddr, size_t size);

/* ---- order.c: for qsort() and bsearch() ---------------------------------------------------------------------------
 */

/* Orders switches by site; those of the portable form, which have none, by provider and name. */
int marker_by_site(const void *a, const void *b);

/* Order markers by provider, name and place, and switches by provider, name, site and gate. */
int marker_by_name_and_place(const void *a, const void *b);
int marker_by_name_and_site(const void *a, const void *b);

/* ---- format.c -------------------------------------------------------------------------------------------------------
 */

/* What a format says about one argument. */
struct marker_conversion {
	const char *name; /* "fd" of "fd=%d", in the format; NULL where there is none */
	size_t name_length;
	bool has_precision;
	char letter; /* 'd', 's' …; '*' for a width or precision */
};

/* The first `max` arguments that a printf format takes; their number. 0 for formats that number them ("%2$d"). */
size_t marker_parse_format(const char *format, struct marker_conversion *ret, size_t max);

/* Make names for all fields: those of `conversions` (`n` of them, at most as many as fields) where they have one, else
 * arg1 …; no two are equal. */
void marker_make_names(const struct marker_conversion *conversions, size_t n, struct kymo_marker_fields *fields);

/* ---- operands.c -----------------------------------------------------------------------------------------------------
 */

/*
 * As kymo_marker_parse_operand(); where that is -EINVAL `why_ret` is the rest of the sentence "its argument …", static,
 * and `type_ret` the type that is implied all the same.
 */
int marker_parse_operand(struct kymo_module *module, const char *text, size_t length, struct kymo_fetch *ret,
			 enum kymo_type *type_ret, const char **why_ret);

/* The next operand of the list at `*at`, which is put behind it: blanks part them, but not those within parentheses.
 * False at the end. */
bool marker_next_operand(const char **at, const char **ret, size_t *length_ret);

/* ---- notes.c, sdt.c: one note --------------------------------------------------------------------------------------
 */

/* A note of the owner "kymo": a switch, a marker, or something of a later version, which is passed over. */
struct kymo_error *marker_read_kymo(struct marker_reader *reader, const struct kymo_note *note);

/* The same for SystemTap's. `base` is where .stapsdt.base is, or 0. All of kymo's must have been read, and
 * `reader->switches` be sorted by marker_by_site(). */
struct kymo_error *marker_read_sdt(struct marker_reader *reader, uint64_t base, const struct kymo_note *note);

#endif
