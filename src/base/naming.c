#include "base/naming.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kymo_naming *kymo_naming_create(void)
{
	struct kymo_naming *naming = calloc(1, sizeof(*naming));

	if (naming) {
		naming->n_users = 1;
		naming->is_flags = true;
	}
	return naming;
}

/* Where a value is among the names, or belongs. */
static size_t naming_index(const struct kymo_naming *naming, int64_t value)
{
	size_t low = 0, high = naming->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (naming->names[middle].value < value)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct kymo_naming *naming, size_t place, int64_t value)
{
	return place < naming->n && naming->names[place].value == value;
}

int kymo_naming_add(struct kymo_naming *naming, const char *name, size_t size, int64_t value)
{
	const size_t place = naming_index(naming, value);
	struct kymo_naming_name *grown;
	char *copy;

	if (is_at(naming, place, value))
		return 0;
	if (!size || naming->n == KYMO_NAMING_NAMES_MAX)
		return -E2BIG;
	grown = reallocarray(naming->names, naming->n + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	naming->names = grown;
	copy = strndup(name, size < KYMO_NAMING_NAME_MAX ? size : KYMO_NAMING_NAME_MAX);
	if (!copy)
		return -ENOMEM;
	memmove(&grown[place + 1], &grown[place], (naming->n - place) * sizeof(*grown));
	grown[place] = (struct kymo_naming_name){ copy, value };
	naming->n++;
	naming->is_flags &= !((uint64_t)value & ((uint64_t)value - 1));
	return 0;
}

struct kymo_naming *kymo_naming_characters(void)
{
	static struct kymo_naming characters = { .n_users = 1, .is_character = true };

	return kymo_naming_share(&characters);
}

struct kymo_naming *kymo_naming_truth(void)
{
	static char no[] = "false", yes[] = "true";
	static struct kymo_naming_name names[] = { { no, 0 }, { yes, 1 } };
	static struct kymo_naming truth = { .n_users = 1, .n = 2, .names = names };

	return kymo_naming_share(&truth);
}

struct kymo_naming *kymo_naming_share(struct kymo_naming *naming)
{
	if (naming)
		naming->n_users++;
	return naming;
}

void kymo_naming_release(struct kymo_naming *naming)
{
	if (!naming || --naming->n_users)
		return;
	for (size_t i = 0; i < naming->n; i++)
		free(naming->names[i].name);
	free(naming->names);
	free(naming);
}

const char *kymo_naming_find(const struct kymo_naming *naming, int64_t value)
{
	const size_t place = naming ? naming_index(naming, value) : 0;

	return naming && is_at(naming, place, value) ? naming->names[place].name : NULL;
}

/* The bits that are set, lowest first. False: one has no name, or there is no room for all. */
static bool write_flags(char text[KYMO_NAMING_TEXT_MAX + 1], const struct kymo_naming *naming, uint64_t value)
{
	size_t used = 0;

	for (; value; value &= value - 1) {
		const char *name = kymo_naming_find(naming, (int64_t)(value & -value));
		const size_t room = KYMO_NAMING_TEXT_MAX + 1 - used;
		size_t n;

		if (!name)
			return false;
		n = (size_t)snprintf(text + used, room, "%s%s", used ? " | " : "", name);
		if (n >= room)
			return false;
		used += n;
	}
	return true;
}

/* Names of 0, 1 and 2 alone are those of three states. */
static bool has_flags(const struct kymo_naming *naming)
{
	return naming->n && naming->is_flags &&
	       (naming->names[naming->n - 1].value >= 4 || !kymo_naming_find(naming, 0));
}

char *kymo_naming_text(const struct kymo_naming *naming, int64_t value)
{
	const char *name = kymo_naming_find(naming, value);
	char text[KYMO_NAMING_TEXT_MAX + 1];

	if (!name && naming && value && has_flags(naming) && write_flags(text, naming, (uint64_t)value))
		name = text;
	return name ? strdup(name) : NULL;
}
