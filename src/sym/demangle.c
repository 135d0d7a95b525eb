#include "sym/demangle.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "base/utf8.h"
#include "sym/names.h"
#include "sym/rust.h"
#include "sym/rust_v0.h"

/* libsupc++: hands the text over in pieces, takes no memory from the heap, and refuses names that nest too deeply. Not
 * 0: no name of C++. */
int __gcclibcxx_demangle_callback(const char *name, void (*take)(const char *text, size_t n, void *data), void *data);

static bool shows_raw_names;

/* ---- C++ ------------------------------------------------------------------------------------- */

struct cxx_text {
	struct sym_sink sink;
	jmp_buf full;
};

/* A short name can stand for any amount of text. The demangler has nothing that it would have to release. */
static void take_text(const char *text, size_t n, void *data)
{
	struct cxx_text *cxx = data;

	sym_sink_put(&cxx->sink, text, n);
	if (cxx->sink.is_full)
		longjmp(cxx->full, 1);
}

/* `name` ends in a NUL. */
static bool demangle_cxx(const char *name, char out[KYMO_DEMANGLED_MAX])
{
	struct cxx_text cxx = { .sink = { .text = out, .size = KYMO_DEMANGLED_MAX } };

	if (setjmp(cxx.full))
		return false;
	return !__gcclibcxx_demangle_callback(name, take_text, &cxx) && out[0];
}

/* ---- Rust ------------------------------------------------------------------------------------ */

static bool is_mangled_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Where the compiler's suffix begins. Names of the older mangling have dots, too, and end in a hash. */
static size_t rust_end(const char *name, size_t n)
{
	size_t end = 2;

	if (name[1] == 'R') {
		while (end < n && is_mangled_char(name[end]))
			end++;
		return end;
	}
	for (end = 20; end <= n; end++)
		if (name[end - 1] == 'E' && (end == n || name[end] == '.') && !memcmp(name + end - 20, "17h", 3))
			return end;
	return n;
}

/* `name` ends in a NUL. */
static bool demangle_rust(const char *name, size_t n, char out[KYMO_DEMANGLED_MAX])
{
	struct sym_sink sink = { .text = out, .size = KYMO_DEMANGLED_MAX };
	const size_t end = rust_end(name, n);
	const char *suffix = name + end, *own = strstr(suffix, ".llvm.");
	const size_t kept = own ? (size_t)(own - suffix) : strlen(suffix);

	out[0] = '\0';
	if (!(name[1] == 'R' ? sym_rust_v0(name, end, &sink) : sym_rust_legacy(name, end, &sink)) || !out[0] ||
	    (*suffix && *suffix != '.'))
		return false;
	if (kept) {
		sym_sink_put(&sink, " [clone ", 8);
		sym_sink_put(&sink, suffix, kept);
		sym_sink_put(&sink, "]", 1);
	}
	return !sink.is_full;
}

/* ---- the front door -------------------------------------------------------------------------- */

bool kymo_is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* What it returns is no part of how a function is called. */
static void drop_result(char *text)
{
	struct sym_parts parts;

	sym_parts_find(text, &parts);
	if (parts.name > text && parts.parameters > parts.name)
		memmove(text, parts.name, strlen(parts.name) + 1);
}

bool kymo_demangle(const char *name, char out[KYMO_DEMANGLED_MAX])
{
	const size_t length = kymo_is_mangled(name) ? strnlen(name, KYMO_MANGLED_MAX + 1) : 0;
	char copy[KYMO_MANGLED_MAX + 1], text[KYMO_DEMANGLED_MAX];
	size_t n = strcspn(name, "@");
	bool is_rust;

	if (length < 3 || length > KYMO_MANGLED_MAX)
		return false;
	memcpy(copy, name, n);
	copy[n] = '\0';
	is_rust = demangle_rust(copy, n, text);
	if (!is_rust && (name[1] != 'Z' || !demangle_cxx(copy, text)))
		return false;
	if (!is_rust)
		drop_result(text);
	if (strlen(text) + length - n >= KYMO_DEMANGLED_MAX)
		return false;
	strcat(text, name + n);
	strcpy(out, text);
	return true;
}

/* ---- names in texts -------------------------------------------------------------------------- */

void kymo_show_raw_names(void)
{
	shows_raw_names = true;
}

static bool begins_name(const char *text, const char *at)
{
	return kymo_is_mangled(at) && (at == text || !(is_mangled_char(at[-1]) || strchr("$./", at[-1])));
}

/* The name at `at`, as far as it goes. A dot may end it, or a sentence. */
static size_t name_size(const char *at, char out[KYMO_DEMANGLED_MAX])
{
	size_t n = 0;
	char name[KYMO_MANGLED_MAX + 1];

	while (is_mangled_char(at[n]) || at[n] == '$' || at[n] == '.')
		n++;
	if (n > KYMO_MANGLED_MAX)
		return 0;
	memcpy(name, at, n);
	for (;; n--) {
		name[n] = '\0';
		if (kymo_demangle(name, out))
			return n;
		if (n < 4 || name[n - 1] != '.')
			return 0;
	}
}

/* The 16 digits that end [name, name + n) of Rust's older mangling; NULL: it has none. */
static const char *rust_hash(const char *name, size_t n)
{
	const size_t end = name[1] == 'R' || n < 22 ? 0 : rust_end(name, n);

	if (end < 22 || memcmp(name + end - 20, "17h", 3) != 0 || strspn(name + end - 17, "0123456789abcdef") < 16)
		return NULL;
	return name + end - 17;
}

static char *show(const char *text, bool has_hashes)
{
	char name[KYMO_DEMANGLED_MAX], *shown = NULL;
	const char *hash;
	size_t size, n;
	FILE *out;

	if (shows_raw_names || (!strstr(text, "_Z") && !strstr(text, "_R")))
		return strdup(text);
	out = open_memstream(&shown, &size);
	if (!out)
		return NULL;
	for (const char *at = text; *at; at += n) {
		n = begins_name(text, at) ? name_size(at, name) : 0;
		hash = n && has_hashes ? rust_hash(at, n) : NULL;
		if (n)
			fprintf(out, "%s%s%.16s", name, hash ? "::h" : "", hash ? hash : "");
		else
			putc(*at, out);
		n = n ? n : 1;
	}
	if (!fclose(out))
		return shown;
	free(shown);
	return NULL;
}

char *kymo_shown(const char *text)
{
	return show(text, false);
}

char *kymo_shown_apart(const char *text)
{
	return show(text, true);
}

void kymo_print_shown(FILE *out, const char *text)
{
	kymo_cleanup_free char *shown = kymo_shown(text);

	kymo_utf8_print(out, shown ? shown : text);
}
