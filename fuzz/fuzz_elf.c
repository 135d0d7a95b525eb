/*
 * Any bytes as an ELF file. Opening succeeds or is an error of BAD_DATA; what is accepted answers each question
 * within what sym/sym.h promises: sorted, unique, not overlapping, inside of the file.
 */
#include "base/cleanup.h"
#include "sym/entries.h"
#include "sym/files.h"
#include "sym/find.h"
#include "sym/functions.h"
#include "sym/golang.h"
#include "sym/module.h"
#include "sym/open.h"
#include "sym/rseq.h"
#include "fuzz.h"
#include "sym/sym.h"
#include "sym/symbols.h"

/* Whether a call failed, in a way that it may. */
static bool failed(struct kymo_error *error)
{
	if (!error)
		return false;
	check(error->code == KYMO_ERROR_BAD_DATA || error->code == KYMO_ERROR_NO_MEMORY);
	check(strlen(error->message));
	kymo_error_destroy(error);
	return true;
}

static void check_sections(const struct kymo_module *module)
{
	const struct kymo_segment *segments;
	const struct kymo_section *sections;
	unsigned int sum = 0;
	size_t n;

	segments = kymo_module_segments(module, &n);
	check(n);
	for (size_t i = 1; i < n; i++)
		check(segments[i - 1].vaddr + segments[i - 1].memory_size <= segments[i].vaddr);
	sections = kymo_module_sections(module, &n);
	for (size_t i = 0; i < n; i++) {
		uint64_t offset, vaddr;

		check(sections[i].name && sections[i].size);
		check(!i || sections[i - 1].vaddr <= sections[i].vaddr);
		sum += sections[i].bytes[0] + sections[i].bytes[sections[i].size - 1];
		check(!kymo_module_vaddr_to_offset(module, sections[i].vaddr, &offset));
		check(!kymo_module_offset_to_vaddr(module, offset, &vaddr));
	}
	(void)sum;
}

static void check_symbols(struct kymo_module *module)
{
	static const char *const patterns[] = { "*", "f*", "foo", "foo@V1", "*@*", "[a-m]*", "main.(*T).*", "*[...]" };
	size_t n, n_found;
	const struct kymo_symbol *symbols = kymo_module_symbols(module, &n);
	char text[64];

	for (size_t i = 0; i < n; i++) {
		check(*symbols[i].name);
		check(!i || symbols[i - 1].vaddr < symbols[i].vaddr ||
		      (symbols[i - 1].vaddr == symbols[i].vaddr && strcmp(symbols[i - 1].name, symbols[i].name) < 0));
		kymo_module_describe(module, symbols[i].vaddr + (i & 1), text, sizeof(text));
	}
	for (size_t i = 0; i < kymo_countof(patterns); i++) {
		const struct kymo_symbol **found;

		if (failed(kymo_module_find(module, patterns[i], &found, &n_found)))
			continue;
		check(n_found <= n);
		for (size_t j = 1; j < n_found; j++)
			check(found[j - 1]->vaddr < found[j]->vaddr);
		free(found);
	}
	kymo_module_nearest(module, n ? symbols[n / 2].name : "malocc", text, sizeof(text));
}

static void check_code(struct kymo_module *module)
{
	const struct kymo_function *functions;
	const uint64_t *entries;
	uint64_t low, high;
	uint32_t left;
	size_t n;

	if (!failed(kymo_module_small_stacks(module, &low, &high, &left)))
		check(low <= high && (low == high || (kymo_module_is_code(module, low, 1) &&
						      kymo_module_is_code(module, high - 1, 1))));
	if (!failed(kymo_module_functions(module, &functions, &n)))
		for (size_t i = 0; i < n; i++) {
			check(functions[i].start < functions[i].end);
			check(!i || functions[i - 1].end <= functions[i].start);
			check(kymo_module_function_at(module, functions[i].end - 1) == &functions[i]);
		}
	if (!failed(kymo_module_entries(module, &entries, &n)))
		for (size_t i = 1; i < n; i++)
			check(entries[i - 1] < entries[i]);
	if (!failed(kymo_module_rseq(module, &functions, &n)))
		for (size_t i = 0; i < n; i++)
			check(functions[i].start < functions[i].end);
	/* Asking again gives the same answer, also where it is an error. */
	failed(kymo_module_entries(module, &entries, &n));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	kymo_cleanup_close int fd = fuzz_file(data, size);
	struct kymo_module *module;
	uint64_t vaddr, object_size;
	size_t n;

	if (fd < 0 || failed(kymo_module_open_fd(fd, "fuzz", &module)))
		return 0;
	check(!strcmp(kymo_module_path(module), "fuzz"));
	kymo_name_matches_file("libc", kymo_module_path(module), kymo_module_soname(module));
	if (kymo_module_interpreter(module))
		check(strlen(kymo_module_interpreter(module)) <= size);
	kymo_module_build_id(module, &n);
	check(n <= KYMO_BUILD_ID_MAX);
	kymo_module_find_object(module, "object", &vaddr, &object_size);
	check_sections(module);
	check_code(module);
	check_symbols(module);
	kymo_module_close(module);
	return 0;
}
