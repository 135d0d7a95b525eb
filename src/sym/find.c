/* From names to symbols. */
#include "sym/find.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/demangle.h"
#include "sym/glob.h"
#include "sym/module_state.h"
#include "sym/names.h"
#include "sym/pattern.h"

/* Longer words are not typing mistakes. */
#define NEAREST_MAX 256
#define N_NEAREST 3
#define SCANS_MAX 4 /* of all symbols for one name; sorting them all takes longer than so many */

/* ---- the index ------------------------------------------------------------------------------- */

static int compare_symbol_names(const void *a, const void *b, void *data)
{
	const struct kymo_symbol *symbols = data, *x = &symbols[*(const uint32_t *)a],
				 *y = &symbols[*(const uint32_t *)b];
	int r = strcmp(x->name, y->name);

	if (r)
		return r;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

bool sym_index(struct kymo_module *module)
{
	const size_t n = module->symbols.n;
	uint32_t *index;

	if (module->by_name)
		return true;
	/* A file of at most 64 GiB has fewer symbols than that. */
	index = n < UINT32_MAX ? malloc((n + 1) * sizeof(*index)) : NULL;
	if (!index)
		return false;
	for (size_t i = 0; i < n; i++)
		index[i] = (uint32_t)i;
	qsort_r(index, n, sizeof(*index), compare_symbol_names, module->symbols.items);
	module->by_name = index;
	return true;
}

static const struct kymo_symbol *nth_by_name(const struct kymo_module *module, size_t i)
{
	return &module->symbols.items[module->by_name[i]];
}

/* The end of the run of symbols that have the same name as number `i`. */
static size_t run_end(const struct kymo_module *module, size_t i)
{
	const char *name = nth_by_name(module, i)->name;

	do
		i++;
	while (i < module->symbols.n && !strcmp(nth_by_name(module, i)->name, name));
	return i;
}

static size_t first_of_name(const struct kymo_module *module, const char *name)
{
	size_t low = 0, high = module->symbols.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (strcmp(nth_by_name(module, mid)->name, name) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* ---- finding --------------------------------------------------------------------------------- */

struct found {
	KYMO_VEC(const struct kymo_symbol *) list;
};

/* A name without a version selects the default versions, or all versions of a name that only old programs use. */
static bool is_selected(const struct kymo_symbol *symbol, const char *version, bool has_default)
{
	return version ? symbol->version && !fnmatch(version, symbol->version, 0) : !has_default || symbol->is_default;
}

/* Add those of one name's symbols that the version selects. */
static bool add_run(const struct kymo_module *module, size_t start, size_t end, const char *version,
		    struct found *found)
{
	bool has_default = false;

	for (size_t i = start; i < end; i++)
		has_default |= nth_by_name(module, i)->is_default;
	for (size_t i = start; i < end; i++) {
		const struct kymo_symbol *symbol = nth_by_name(module, i);

		if (is_selected(symbol, version, has_default) && !kymo_vec_push(&found->list, symbol))
			return false;
	}
	return true;
}

/* The same for a name that is no glob, without an index. */
static bool scan(const struct kymo_module *module, const char *name, const char *version, struct found *found)
{
	bool has_default = false;
	size_t kept = 0;

	for (size_t i = 0; i < module->symbols.n; i++) {
		const struct kymo_symbol *symbol = &module->symbols.items[i];

		if (symbol->name[0] != name[0] || strcmp(symbol->name, name))
			continue;
		has_default |= symbol->is_default;
		if (!kymo_vec_push(&found->list, symbol))
			return false;
	}
	for (size_t i = 0; i < found->list.n; i++)
		if (is_selected(found->list.items[i], version, has_default))
			found->list.items[kept++] = found->list.items[i];
	found->list.n = kept;
	return true;
}

static bool find_all(const struct kymo_module *module, const char *name, const char *version, struct found *found)
{
	kymo_cleanup_free char *glob = NULL;
	size_t i, end;

	if (!kymo_is_glob(name)) {
		i = first_of_name(module, name);
		if (i == module->symbols.n || strcmp(nth_by_name(module, i)->name, name))
			return true;
		return add_run(module, i, run_end(module, i), version, found);
	}
	glob = kymo_glob_create(name);
	if (!glob)
		return false;
	for (i = 0; i < module->symbols.n; i = end) {
		end = run_end(module, i);
		if (!fnmatch(glob, nth_by_name(module, i)->name, 0) && !add_run(module, i, end, version, found))
			return false;
	}
	return true;
}

/* The run of symbols whose names may be mangled, in the order of names. */
static void find_mangled(const struct kymo_module *module, size_t *from_ret, size_t *to_ret)
{
	*from_ret = first_of_name(module, "_R");
	*to_ret = first_of_name(module, "_[");
}

/* Find the symbols that the name means in its source. */
static bool find_demangled(const struct kymo_module *module, const char *name, const char *version, struct found *found)
{
	struct kymo_pattern *pattern = kymo_pattern_create(name);
	size_t from, to;
	bool done = pattern;

	find_mangled(module, &from, &to);
	for (size_t i = from, end; done && i < to; i = end) {
		const char *mangled = nth_by_name(module, i)->name;

		end = run_end(module, i);
		if (kymo_pattern_means(pattern, mangled))
			done = add_run(module, i, end, version, found);
	}
	kymo_pattern_destroy(pattern);
	return done;
}

/* By address; of aliases the one first that a user would write: exported, without leading underscores, short. */
static int compare_found(const void *a, const void *b)
{
	const struct kymo_symbol *x = *(const struct kymo_symbol *const *)a, *y = *(const struct kymo_symbol *const *)b;
	size_t x_length = strlen(x->name), y_length = strlen(y->name);

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->is_global != y->is_global)
		return x->is_global ? -1 : 1;
	if ((x->name[0] == '_') != (y->name[0] == '_'))
		return x->name[0] == '_' ? 1 : -1;
	if (x_length != y_length)
		return x_length < y_length ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Leave one symbol for each address. */
static void unify(struct found *found)
{
	const struct kymo_symbol **items = found->list.items;
	size_t n = 0;

	for (size_t i = 0; i < found->list.n; i++)
		if (!n || items[n - 1]->vaddr != items[i]->vaddr)
			items[n++] = items[i];
	found->list.n = n;
}

/* An index pays where many names are looked for. */
static bool is_to_be_scanned(struct kymo_module *module, const char *name)
{
	return !module->by_name && *name && !kymo_is_glob(name) && !strstr(name, "::") && module->n_scans++ < SCANS_MAX;
}

struct kymo_error *kymo_module_find(struct kymo_module *module, const char *pattern, const struct kymo_symbol ***ret,
				    size_t *n_ret)
{
	const size_t length = strcspn(pattern, "@");
	kymo_cleanup_free char *name = strndup(pattern, length);
	const char *version = pattern[length] ? pattern + length + 1 : NULL;
	struct found found = { 0 };
	bool done;

	if (!name)
		return &kymo_error_no_memory;
	if (version && *version == '@')
		version++;
	done = !is_to_be_scanned(module, name) || scan(module, name, version, &found);
	if (done && !found.list.n)
		done = sym_index(module) && find_all(module, name, version, &found);
	if (!done ||
	    ((!found.list.n || strstr(name, "::")) && *name && !find_demangled(module, name, version, &found))) {
		kymo_vec_deinit(&found.list);
		return &kymo_error_no_memory;
	}
	if (found.list.n)
		qsort(found.list.items, found.list.n, sizeof(*found.list.items), compare_found);
	unify(&found);
	*ret = found.list.items;
	*n_ret = found.list.n;
	return NULL;
}

/* ---- near names ------------------------------------------------------------------------------ */

/*
 * Edit distance of two words of at most NEAREST_MAX letters, with neighbors that changed places as one edit; `limit`
 * + 1 for all that is more. Rows of the usual table, the last three of them.
 */
static unsigned int edit_distance(const char *a, size_t a_size, const char *b, size_t b_size, unsigned int limit)
{
	unsigned int rows[3][NEAREST_MAX + 1], *row = rows[0], *before = rows[1], *two_before = rows[2];

	for (size_t j = 0; j <= b_size; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; i <= a_size; i++) {
		unsigned int *oldest = two_before, least;

		two_before = before;
		before = row;
		row = oldest;
		row[0] = least = (unsigned int)i;
		for (size_t j = 1; j <= b_size; j++) {
			unsigned int best = before[j - 1] + (a[i - 1] != b[j - 1]);

			best = before[j] + 1 < best ? before[j] + 1 : best;
			best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    two_before[j - 2] + 1 < best)
				best = two_before[j - 2] + 1;
			row[j] = best;
			least = best < least ? best : least;
		}
		/* An exchange reaches back over one row: its distance is never below the least of the last row. */
		if (least > limit)
			return limit + 1;
	}
	return row[b_size] > limit ? limit + 1 : row[b_size];
}

#define NEAR_TEXT 400

struct near {
	char names[N_NEAREST][NEAR_TEXT];
	unsigned int distances[N_NEAREST];
	size_t n;
};

static bool is_known(const struct near *near, const char *name)
{
	for (size_t i = 0; i < near->n; i++)
		if (!strcmp(near->names[i], name))
			return true;
	return false;
}

/* Names come in order, so that of equal distances the first stays ahead. */
static void consider(struct near *near, const char *name, unsigned int d)
{
	size_t at = near->n;

	while (at && near->distances[at - 1] > d)
		at--;
	if (at == N_NEAREST || strlen(name) >= NEAR_TEXT || is_known(near, name))
		return;
	if (near->n < N_NEAREST)
		near->n++;
	for (size_t i = near->n - 1; i > at; i--) {
		strcpy(near->names[i], near->names[i - 1]);
		near->distances[i] = near->distances[i - 1];
	}
	strcpy(near->names[at], name);
	near->distances[at] = d;
}

/* A name that goes on where the user stopped is as near as one with two letters wrong. */
unsigned int sym_nearness(const char *name, size_t length, const char *other, size_t other_length, unsigned int limit)
{
	unsigned int d = edit_distance(name, length, other, other_length, limit);

	return length >= 3 && other_length > length && !strncmp(name, other, length) && d > 2 ? 2 : d;
}

static void consider_raw(const struct kymo_module *module, const char *name, size_t length, unsigned int limit,
			 struct near *near)
{
	for (size_t i = 0; i < module->symbols.n; i = run_end(module, i)) {
		const char *other = nth_by_name(module, i)->name;
		size_t other_length = strnlen(other, NEAREST_MAX + 1);
		unsigned int d;

		if (other_length > NEAREST_MAX || other_length + limit < length)
			continue;
		d = sym_nearness(name, length, other, other_length, limit);
		if (d <= limit)
			consider(near, other, d);
	}
}

/* Whether `name` is how `whole` ends, after a "::". */
static bool is_unqualified(const char *name, size_t length, const char *whole, size_t whole_length)
{
	return whole_length > length + 2 && !memcmp(whole + whole_length - length, name, length) &&
	       !memcmp(whole + whole_length - length - 2, "::", 2);
}

/* A name in its source, without parameters, is near; if nothing else differs it is taken with them. */
static void consider_demangled(const char *name, size_t length, unsigned int limit, const char *demangled,
			       struct near *near)
{
	char text[KYMO_DEMANGLED_MAX];
	struct sym_parts parts;
	size_t other_length;
	unsigned int d;

	sym_parts_find(demangled, &parts);
	other_length = (size_t)(parts.parameters - parts.name);
	memcpy(text, parts.name, other_length);
	text[other_length] = '\0';
	if (other_length > NEAREST_MAX || other_length + limit < length)
		return;
	if (is_unqualified(name, length, text, other_length))
		d = 1;
	else if (other_length > length + limit && strncmp(name, text, length) != 0)
		return;
	else
		d = sym_nearness(name, length, text, other_length, limit);
	if (d <= limit)
		consider(near, d ? text : demangled, d);
}

static void consider_mangled(const struct kymo_module *module, const char *name, unsigned int limit, struct near *near)
{
	struct sym_parts parts;
	char text[KYMO_DEMANGLED_MAX];
	size_t from, to;

	sym_parts_find(name, &parts);
	find_mangled(module, &from, &to);
	for (size_t i = from; i < to; i = run_end(module, i))
		if (kymo_demangle(nth_by_name(module, i)->name, text) && !strstr(text, " [clone "))
			consider_demangled(name, (size_t)(parts.parameters - name), limit, text, near);
}

void kymo_module_nearest(struct kymo_module *module, const char *name, char *out, size_t size)
{
	const size_t length = strcspn(name, "@");
	const unsigned int limit = length < 6 ? 2 : (unsigned int)length / 2;
	struct near near = { .n = 0 };
	size_t at = 0;

	if (!size)
		return;
	*out = '\0';
	if (!length || length > NEAREST_MAX || !sym_index(module))
		return;
	if (!kymo_is_mangled(name))
		consider_mangled(module, name, limit, &near);
	if (!near.n || !strstr(name, "::"))
		consider_raw(module, name, length, limit, &near);
	for (size_t i = 0; i < near.n && at < size; i++) {
		int r = snprintf(out + at, size - at, "%s%s", i ? ", " : "", near.names[i]);

		at += r < 0 ? 0 : (size_t)r;
	}
}
