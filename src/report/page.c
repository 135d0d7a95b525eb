#include "report/page.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "report/text.h"

static void begin_ink(const struct page *page, enum ink ink)
{
	static const char *const codes[] = {
		[INK_HEAD] = "\x1b[1m",
		[INK_DIM] = "\x1b[2m",
		[INK_BAR] = "\x1b[36m",
		[INK_ALARM] = "\x1b[1;31m",
	};

	if (page->color && ink != INK_PLAIN)
		fputs(codes[ink], page->out);
}

static void finish_ink(const struct page *page, enum ink ink)
{
	if (page->color && ink != INK_PLAIN)
		fputs("\x1b[0m", page->out);
}

void kymo_page_spaces(const struct page *page, unsigned int n)
{
	fprintf(page->out, "%*s", (int)n, "");
}

/* Returns the columns used, at most `columns`. */
static unsigned int put_cut(const struct page *page, enum ink ink, const char *text, unsigned int columns)
{
	unsigned int used = kymo_text_columns(text);
	size_t fits;

	begin_ink(page, ink);
	if (used <= columns) {
		fputs(text, page->out);
	} else if (columns) {
		/* A wide character that does not fit leaves a column free. */
		fits = kymo_text_fit(text, columns - 1, &used);
		fwrite(text, 1, fits, page->out);
		fputs(page->unicode ? "…" : "~", page->out);
		used++;
	}
	finish_ink(page, ink);
	return used < columns ? used : columns;
}

void kymo_page_left(const struct page *page, enum ink ink, const char *text, unsigned int columns)
{
	kymo_page_spaces(page, columns - put_cut(page, ink, text, columns));
}

void kymo_page_right(const struct page *page, enum ink ink, const char *text, unsigned int columns)
{
	unsigned int used = kymo_text_columns(text);

	if (used < columns)
		kymo_page_spaces(page, columns - used);
	put_cut(page, ink, text, columns);
}

void kymo_page_text(const struct page *page, enum ink ink, const char *text)
{
	begin_ink(page, ink);
	fputs(text, page->out);
	finish_ink(page, ink);
}

void kymo_page_printf(const struct page *page, enum ink ink, const char *format, ...)
{
	va_list args;

	begin_ink(page, ink);
	va_start(args, format);
	vfprintf(page->out, format, args);
	va_end(args);
	finish_ink(page, ink);
}

unsigned int kymo_page_bar(const struct page *page, uint64_t part, uint64_t whole, unsigned int columns)
{
	static const char *const eighths[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	unsigned int steps = page->unicode ? 8 : 1;
	unsigned int length = whole ? (unsigned int)((double)part / (double)whole * columns * steps + 0.5) : 0;

	if (part && !length)
		length = 1;
	if (length > columns * steps)
		length = columns * steps;
	begin_ink(page, INK_BAR);
	for (unsigned int i = 0; i < length / steps; i++)
		fputs(page->unicode ? "█" : "#", page->out);
	if (length % steps)
		fputs(eighths[length % steps], page->out);
	finish_ink(page, INK_BAR);
	return (length + steps - 1) / steps;
}

struct kymo_error *kymo_page_flush(FILE *out)
{
	errno = 0;
	if (fflush(out) || ferror(out))
		return kymo_error_errno(errno ? errno : EIO, "cannot write the report");
	return NULL;
}
