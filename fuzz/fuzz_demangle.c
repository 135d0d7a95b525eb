/* Names of C++ and Rust: up to a line's end what is demangled, after it what a user may have meant by it. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sym/demangle.h"
#include "sym/glob.h"

static void match(const char *words, const char *name, const char *demangled)
{
	struct kymo_pattern *pattern = kymo_pattern_create(words);
	char *glob = kymo_glob_create(words);

	if (!pattern || !glob)
		abort();
	kymo_pattern_matches(pattern, demangled);
	kymo_pattern_means(pattern, name);
	if (!*words && *demangled && kymo_pattern_matches(pattern, "f"))
		abort();
	kymo_pattern_destroy(pattern);
	free(glob);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), *words, *shown, out[KYMO_DEMANGLED_MAX] = "";

	memcpy(text, data, size);
	text[size] = '\0';
	words = strchr(text, '\n');
	if (words)
		*words++ = '\0';
	if (kymo_demangle(text, out) && (strlen(out) >= sizeof(out) || !*out))
		abort();
	shown = kymo_shown(text);
	if (!shown)
		abort();
	free(shown);
	if (words)
		match(words, text, out);
	if (words && *out)
		match(out, text, out);
	free(text);
	return 0;
}
