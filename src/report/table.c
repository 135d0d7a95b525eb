#include "report/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/labels.h"
#include "report/text.h"

#define RATE_COLUMNS 6
#define SHARE_COLUMNS 6 /* "100.0%" */
#define THREADS_COLUMNS 7
#define MIN_NAME 12
#define MIN_BAR 6
#define MAX_BAR 30
#define MAX_NAME 240 /* columns that a pipe's rows have for names: the row of a longer one is longer */

/* What there is room for beside names and bars; the columns that these two get. */
static unsigned int plan_numbers(const struct summary *summary, const struct page *page, struct columns *c)
{
	const struct model *model = summary->model;
	uint64_t duration = kymo_model_duration_ns(model);
	char number[TEXT_NUMBER];
	unsigned int fixed;

	*c = (struct columns){ .threads = THREADS_COLUMNS };
	c->decimals = duration >= 1000000000 ? 3 : duration >= 1000000 ? 6 : 9;
	c->time = kymo_at_least((unsigned int)strlen(kymo_text_seconds(number, (int64_t)duration, c->decimals)), 5);
	c->count = kymo_at_least((unsigned int)strlen(kymo_text_count(number, model->count)), 5);
	/* Each column has two spaces before it, but the share has its bar after it. */
	fixed = 2 + c->count + 2 + RATE_COLUMNS + 2 + SHARE_COLUMNS + 1;
	if (page->whole)
		return UINT16_MAX;
	if (fixed + 2 + c->threads + 2 * (2 + c->time) + MIN_BAR + 16 > page->width)
		c->time = 0;
	if (fixed + 2 + c->threads + MIN_BAR + 12 > page->width)
		c->threads = 0;
	fixed += (c->threads ? 2 + c->threads : 0) + (c->time ? 2 * (2 + c->time) : 0);
	return page->width > fixed + MIN_BAR + 8 ? page->width - fixed : MIN_BAR + 8;
}

struct kymo_error *kymo_table_plan(const struct summary *summary, const struct page *page, const char *const *names,
				   size_t n, struct columns *ret, char ***labels_ret)
{
	struct columns c;
	unsigned int room = plan_numbers(summary, page, &c), longest;
	char **labels = kymo_labels_create(names, n, room - MIN_BAR, page->unicode, &longest);

	if (!labels)
		return &kymo_error_no_memory;
	c.name = kymo_at_least(longest, room - MIN_BAR < MIN_NAME ? room - MIN_BAR : MIN_NAME);
	c.name = c.name > MAX_NAME ? MAX_NAME : c.name;
	c.bar = room <= c.name ? 0 : room - c.name > MAX_BAR ? MAX_BAR : room - c.name;
	*ret = c;
	*labels_ret = labels;
	return NULL;
}

void kymo_table_right(const struct page *page, enum ink ink, const char *text, unsigned int columns)
{
	kymo_page_spaces(page, 2);
	kymo_page_right(page, ink, text, columns);
}

void kymo_table_heading(const struct page *page, const struct columns *c, const char *name)
{
	kymo_page_left(page, INK_DIM, name, c->name);
	kymo_table_right(page, INK_DIM, "COUNT", c->count);
	kymo_table_right(page, INK_DIM, "RATE/S", RATE_COLUMNS);
	kymo_table_right(page, INK_DIM, "SHARE", SHARE_COLUMNS);
	if (c->threads || c->time)
		kymo_page_spaces(page, 1 + c->bar);
	if (c->threads)
		kymo_table_right(page, INK_DIM, "THREADS", c->threads);
	if (c->time) {
		kymo_table_right(page, INK_DIM, "FIRST", c->time);
		kymo_table_right(page, INK_DIM, "LAST", c->time);
	}
	putc('\n', page->out);
}

unsigned int kymo_table_counts(const struct summary *summary, const struct page *page, const struct columns *c,
			       const char *name, uint64_t count, uint64_t recent, uint64_t all)
{
	const struct model *model = summary->model;
	char number[TEXT_NUMBER];

	if (kymo_text_columns(name) > c->name)
		kymo_page_text(page, INK_HEAD, name);
	else
		kymo_page_left(page, INK_HEAD, name, c->name);
	kymo_table_right(page, INK_PLAIN, kymo_text_count(number, count), c->count);
	kymo_table_right(page, INK_PLAIN,
			 kymo_model_rated_ns(model) ? kymo_text_short(number, kymo_model_rate(model, recent)) : "-",
			 RATE_COLUMNS);
	snprintf(number, sizeof(number), "%.1f%%", (double)count * 100 / (double)all);
	kymo_table_right(page, INK_PLAIN, number, SHARE_COLUMNS);
	kymo_page_spaces(page, 1);
	return c->bar - kymo_page_bar(page, count, all, c->bar);
}

void kymo_table_times(const struct summary *summary, const struct page *page, const struct columns *c, uint64_t first,
		      uint64_t last)
{
	char number[TEXT_NUMBER];

	if (!c->time)
		return;
	kymo_table_right(page, INK_DIM,
			 kymo_text_seconds(number, kymo_model_relative_ns(summary->model, first), c->decimals),
			 c->time);
	kymo_table_right(page, INK_DIM,
			 kymo_text_seconds(number, kymo_model_relative_ns(summary->model, last), c->decimals), c->time);
}
