#include "probe/coexist/text.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/page.h"
#include "base/search.h"

struct text_page {
	uint64_t address;
	uint8_t bytes[KYMO_PAGE_SIZE];
	uint64_t marks[N_TEXT_MARKS][KYMO_PAGE_SIZE / 64];
};

void probe_text_deinit(struct probe_text *text)
{
	for (size_t i = 0; i < text->pages.n; i++)
		free(text->pages.items[i]);
	kymo_vec_deinit(&text->pages);
}

/* Where the page of `address` is, or would be. */
static size_t place_of(const struct probe_text *text, uint64_t address)
{
	return kymo_partition_point(i, text->pages.n, text->pages.items[i]->address + KYMO_PAGE_SIZE <= address);
}

static struct text_page *page_of(const struct probe_text *text, uint64_t address)
{
	size_t at = place_of(text, address);

	return at < text->pages.n && text->pages.items[at]->address <= address ? text->pages.items[at] : NULL;
}

static bool add_page(struct probe_text *text, uint64_t address)
{
	size_t at = place_of(text, address);
	struct text_page *page;

	if (at < text->pages.n && text->pages.items[at]->address <= address)
		return true;
	if (!kymo_vec_reserve(&text->pages, text->pages.n + 1))
		return false;
	page = calloc(1, sizeof(*page));
	if (!page)
		return false;
	page->address = kymo_page_down(address);
	memmove(&text->pages.items[at + 1], &text->pages.items[at], (text->pages.n - at) * sizeof(page));
	text->pages.items[at] = page;
	text->pages.n++;
	return true;
}

static bool add_pages(struct probe_text *text, uint64_t address, size_t size)
{
	for (uint64_t page = kymo_page_down(address); page < address + size; page += KYMO_PAGE_SIZE)
		if (!add_page(text, page))
			return false;
	return true;
}

static bool test(const struct text_page *page, enum probe_text_mark mark, uint64_t address)
{
	uint64_t at = address - page->address;

	return page->marks[mark][at / 64] >> at % 64 & 1;
}

static void set(struct text_page *page, enum probe_text_mark mark, uint64_t address, bool on)
{
	uint64_t at = address - page->address, bit = (uint64_t)1 << at % 64;

	if (on)
		page->marks[mark][at / 64] |= bit;
	else
		page->marks[mark][at / 64] &= ~bit;
}

void probe_text_look(const struct probe_text *text, uint64_t address, uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		const struct text_page *page = page_of(text, address + i);

		if (page && test(page, TEXT_CHANGED, address + i))
			bytes[i] = page->bytes[address + i - page->address];
	}
}

bool probe_text_is(const struct probe_text *text, enum probe_text_mark mark, uint64_t address, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		const struct text_page *page = page_of(text, address + i);

		if (page && test(page, mark, address + i))
			return true;
	}
	return false;
}

bool probe_text_mark(struct probe_text *text, enum probe_text_mark mark, uint64_t address, size_t size, bool on)
{
	if (!add_pages(text, address, size))
		return false;
	for (size_t i = 0; i < size; i++)
		set(page_of(text, address + i), mark, address + i, on);
	return true;
}

bool probe_text_write(struct probe_text *text, uint64_t address, const uint8_t *bytes, size_t size)
{
	if (!probe_text_mark(text, TEXT_CHANGED, address, size, true))
		return false;
	for (size_t i = 0; i < size; i++) {
		struct text_page *page = page_of(text, address + i);

		page->bytes[address + i - page->address] = bytes[i];
	}
	return true;
}
