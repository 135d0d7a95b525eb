#include "report/labels.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/text.h"

/* Ways to write a name, each tried where those before it do not fit, or are ambiguous. */
enum way {
	WAY_WHOLE,
	WAY_NO_FILE,
	WAY_CUT_EVENLY, /* the middle is left out, without the file; */
	WAY_CUT_EARLY,  /* nearer to the beginning; */
	WAY_CUT_LATE,   /* nearer to the end */
	WAY_LAST,       /* whole, and longer than the column */
};

struct row_label {
	const char *name;
	char *text;
	enum way way;
	bool is_stuck; /* no other way is left, or none is needed */
	bool is_ambiguous;
};

/* The name after "libc:" or "./app:": the first colon that stands alone, outside of any parentheses. */
static const char *without_file(const char *name)
{
	for (const char *at = name; *at && !strchr("(<{ ", *at); at++) {
		if (*at != ':')
			continue;
		if (at[1] == ':')
			return name;
		return at > name && at[1] ? at + 1 : name;
	}
	return name;
}

/* Columns of what must stay at the end: "+0x12" and "%return" tell the probes of one function apart. */
static unsigned int tail_columns(const char *name)
{
	const char *plus = strrchr(name, '+'), *percent = strrchr(name, '%');

	if (percent && !strcmp(percent, "%return"))
		return kymo_text_columns(percent);
	return plus && !strncmp(plus, "+0x", 3) ? kymo_text_columns(plus) : 0;
}

/* The longest end of `text` that takes at most `columns`. */
static const char *ending(const char *text, unsigned int columns)
{
	unsigned int total = kymo_text_columns(text), used;
	const char *at = text + kymo_text_fit(text, total > columns ? total - columns : 0, &used);

	while (kymo_text_columns(at) > columns)
		kymo_text_next(&at, true);
	return at;
}

/* `sixths` of the room go to the beginning. */
static char *cut(const char *name, unsigned int columns, unsigned int sixths, bool unicode)
{
	const unsigned int room = columns ? columns - 1 : 0, tail = tail_columns(name);
	/* An ending that leaves no room for a beginning says little. */
	const unsigned int kept = tail < room ? tail : 0;
	const unsigned int share = (room - kept) * sixths / 6, head = share || !room ? share : 1;
	unsigned int used;
	const size_t fits = kymo_text_fit(name, head, &used);
	char *text;

	return asprintf(&text, "%.*s%s%s", (int)fits, name, unicode ? "…" : "~", ending(name, room - head)) < 0 ? NULL
														: text;
}

/* Columns that a row of another one's is indented by, in every way. */
static unsigned int indent_of(const char *name)
{
	return (unsigned int)strspn(name, " ");
}

static char *write_own(const char *name, enum way way, unsigned int columns, bool unicode)
{
	const char *function = without_file(name);

	switch (way) {
	case WAY_NO_FILE:
		return strdup(function);
	case WAY_CUT_EVENLY:
		return cut(function, columns, 3, unicode);
	case WAY_CUT_EARLY:
		return cut(function, columns, 1, unicode);
	case WAY_CUT_LATE:
		return cut(function, columns, 5, unicode);
	default:
		return strdup(name);
	}
}

static char *write_so(const char *name, enum way way, unsigned int columns, bool unicode)
{
	const unsigned int indent = indent_of(name);
	kymo_cleanup_free char *own = write_own(name + indent, way, columns > indent ? columns - indent : 0, unicode);
	char *text;

	return own && asprintf(&text, "%*s%s", (int)indent, "", own) >= 0 ? text : NULL;
}

/* To the next way that makes sense of this name. */
static bool next_way(struct row_label *label, unsigned int columns, bool unicode)
{
	const unsigned int indent = indent_of(label->name);
	const char *function = without_file(label->name + indent);
	const bool fits = kymo_text_columns(function) + indent <= columns;

	label->way++;
	if (label->way == WAY_NO_FILE && (function == label->name + indent || !fits))
		label->way++;
	/* Nothing of a name that fits is cut: only its file may go. */
	else if (label->way == WAY_CUT_EVENLY && fits)
		label->way = WAY_LAST;
	label->is_stuck = label->way == WAY_LAST;
	free(label->text);
	label->text = write_so(label->name, label->way, columns, unicode);
	return label->text;
}

static int compare_labels(const void *a, const void *b)
{
	const struct row_label *const *x = a, *const *y = b;

	return strcmp((*x)->text, (*y)->text);
}

/* Mark those that are written as another name is. */
static bool find_ambiguous(struct row_label **sorted, size_t n)
{
	bool found = false;

	qsort(sorted, n, sizeof(*sorted), compare_labels);
	for (size_t i = 0; i < n; i++)
		sorted[i]->is_ambiguous = false;
	for (size_t from = 0, to; from < n; from = to) {
		bool differ = false;

		for (to = from + 1; to < n && !strcmp(sorted[from]->text, sorted[to]->text); to++)
			differ |= strcmp(sorted[from]->name, sorted[to]->name) != 0;
		for (size_t i = from; i < to && differ; i++) {
			sorted[i]->is_ambiguous = !sorted[i]->is_stuck;
			found |= sorted[i]->is_ambiguous;
		}
	}
	return found;
}

static bool write_labels(struct row_label *labels, struct row_label **sorted, size_t n, unsigned int columns,
			 bool unicode)
{
	for (size_t i = 0; i < n; i++) {
		sorted[i] = &labels[i];
		labels[i].is_stuck = kymo_text_columns(labels[i].name) <= columns;
		labels[i].text = strdup(labels[i].name);
		if (!labels[i].text || (!labels[i].is_stuck && !next_way(&labels[i], columns, unicode)))
			return false;
	}
	while (find_ambiguous(sorted, n))
		for (size_t i = 0; i < n; i++)
			if (labels[i].is_ambiguous && !next_way(&labels[i], columns, unicode))
				return false;
	return true;
}

char **kymo_labels_create(const char *const *names, size_t n, unsigned int columns, bool unicode,
			  unsigned int *longest_ret)
{
	kymo_cleanup_free struct row_label *labels = calloc(n + 1, sizeof(*labels));
	kymo_cleanup_free struct row_label **sorted = calloc(n + 1, sizeof(struct row_label *));
	char **texts = calloc(n + 1, sizeof(char *));
	bool done = labels && sorted && texts;

	*longest_ret = 0;
	for (size_t i = 0; i < n && done; i++)
		labels[i].name = names[i];
	done = done && write_labels(labels, sorted, n, columns, unicode);
	for (size_t i = 0; i < n && labels && texts; i++) {
		const unsigned int used = done ? kymo_text_columns(labels[i].text) : 0;

		texts[i] = labels[i].text;
		*longest_ret = used > *longest_ret ? used : *longest_ret;
	}
	if (done)
		return texts;
	kymo_labels_destroy(texts, n);
	return NULL;
}

void kymo_labels_destroy(char **labels, size_t n)
{
	for (size_t i = 0; labels && i < n; i++)
		free(labels[i]);
	free(labels);
}
