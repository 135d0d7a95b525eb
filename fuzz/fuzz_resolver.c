/*
 * Random bytes as the text of a module with functions in it, each of them taken for the resolver of an indirect
 * function: whatever it does, what comes out are starts of functions, or a sentence.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "arch/code.h"
#include "arch/exits.h"
#include "arch/plan.h"

#define TEXT UINT64_C(0x10f00)
#define FUNCTIONS_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* Words after the text: each third has an address. */
static bool read_constant(void *data, uint64_t vaddr, uint64_t *ret)
{
	const struct kymo_span *text = data;

	if (vaddr < text->vaddr + text->size || vaddr % 3)
		return false;
	*ret = TEXT + vaddr % 256;
	return true;
}

static bool begins_function(const struct kymo_module_code *code, uint64_t vaddr)
{
	for (size_t i = 0; i < code->n_functions; i++)
		if (code->functions[i].start == vaddr)
			return true;
	return false;
}

static void resolve(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t vaddr)
{
	struct kymo_refusal refusal = { .vaddr = 0 };
	uint64_t *functions = NULL;
	size_t n = 0;
	int err = kymo_resolver_create(code, map, vaddr, read_constant, (void *)code->text, &functions, &n, &refusal);

	require(!err || err == -EPERM);
	if (err) {
		require(!functions && !n && refusal.reason[0] && memchr(refusal.reason, '\0', sizeof(refusal.reason)));
		return;
	}
	require(n > 0 && n <= code->n_functions);
	for (size_t i = 0; i < n; i++)
		require(begins_function(code, functions[i]) && (!i || functions[i] > functions[i - 1]));
	free(functions);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kymo_extent functions[FUNCTIONS_MAX];
	struct kymo_span text;
	struct kymo_module_code code = { .text = &text, .n_text = 1, .functions = functions };
	struct kymo_entry_map *map;
	uint64_t at = TEXT;

	if (size < 16)
		return 0;
	code.position_independent = data[0] & 1;
	for (unsigned int i = 0; i < FUNCTIONS_MAX; i++) {
		if (!data[1 + i])
			continue;
		functions[code.n_functions++] = (struct kymo_extent){ at, at + data[1 + i] };
		at += data[1 + i] + (data[0] >> 1 & 3);
	}
	text = (struct kymo_span){ TEXT, data + 9, size - 9 };
	if (text.size > 16384 || kymo_entry_map_create(&code, &map))
		return 0;
	for (size_t i = 0; i < code.n_functions; i++)
		resolve(&code, map, functions[i].start);
	resolve(&code, map, TEXT + text.size / 2);
	kymo_entry_map_destroy(map);
	return 0;
}
