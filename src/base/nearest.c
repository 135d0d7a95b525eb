#include "base/nearest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LENGTH_MAX 40 /* of names, for their distance; what is behind does not count */
#define LISTED_MAX 10

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

unsigned int kymo_edit_distance(const char *a, size_t n, const char *b, size_t m)
{
	unsigned int row[KYMO_EDITED_MAX + 1];

	for (size_t j = 0; j <= m; j++)
		row[j] = (unsigned int)j;
	for (size_t i = 1; i <= n; i++) {
		unsigned int diagonal = row[0];

		row[0] = (unsigned int)i;
		for (size_t j = 1; j <= m; j++) {
			const unsigned int above = row[j];

			row[j] = least(least(row[j - 1], above) + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[m];
}

static bool is_earlier(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (names[i] && !strcmp(names[i], name))
			return true;
	return false;
}

/* The nearest names so far, in order. */
struct nearest_list {
	const char *names[LISTED_MAX];
	unsigned int distances[LISTED_MAX];
	size_t n;
	bool is_cut;
};

static void insert_name(struct nearest_list *list, const char *name, unsigned int away)
{
	size_t i = list->n;

	list->is_cut |= i == LISTED_MAX;
	while (i && away < list->distances[i - 1])
		i--;
	if (i == LISTED_MAX)
		return;
	if (list->n < LISTED_MAX)
		list->n++;
	memmove(&list->names[i + 1], &list->names[i], (list->n - 1 - i) * sizeof(list->names[0]));
	memmove(&list->distances[i + 1], &list->distances[i], (list->n - 1 - i) * sizeof(list->distances[0]));
	list->names[i] = name;
	list->distances[i] = away;
}

const char *kymo_nearest_list(const char *name, size_t size, const char *const *names, size_t n,
			      char out[KYMO_NEAREST_MAX])
{
	struct nearest_list list = { .n = 0 };
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned int away;

		if (!names[i] || is_earlier(names, i, names[i]))
			continue;
		away = kymo_edit_distance(name, size < LENGTH_MAX ? size : LENGTH_MAX, names[i],
					  strnlen(names[i], LENGTH_MAX));
		insert_name(&list, names[i], away <= size / 2 ? away : LENGTH_MAX);
	}
	*out = '\0';
	for (size_t i = 0; i < list.n; i++) {
		const size_t length = strlen(list.names[i]);

		if (used + length + sizeof(", , …") > KYMO_NEAREST_MAX) {
			list.is_cut = true;
			break;
		}
		used += (size_t)snprintf(out + used, KYMO_NEAREST_MAX - used, "%s%s", used ? ", " : "", list.names[i]);
	}
	if (list.is_cut && used)
		snprintf(out + used, KYMO_NEAREST_MAX - used, ", …");
	return out;
}
