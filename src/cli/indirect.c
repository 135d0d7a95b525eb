#include "cli/indirect.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/utf8.h"
#include "cli/output.h"
#include "proc/memory.h"
#include "proc/process.h"
#include "procfs/maps.h"
#include "sym/demangle.h"
#include "sym/module.h"
#include "sym/relocs.h"

static void print_name(const struct cli_indirects *indirects, uint64_t vaddr)
{
	char name[300];

	kymo_indirect_describe(indirects->module, vaddr, name, sizeof(name));
	kymo_print_shown(stdout, name);
}

static bool has_function(const struct kymo_indirect *indirect, uint64_t vaddr)
{
	for (size_t i = 0; i < indirect->n; i++)
		if (indirect->functions[i] == vaddr)
			return true;
	return false;
}

/* The function that the process calls by one of the words in which the module keeps what was chosen. */
static bool find_bound(const struct cli_indirects *indirects, const struct kymo_indirect *indirect, uint64_t *ret)
{
	struct kymo_process *process = NULL;
	struct kymo_error *error;
	uint64_t bias, word, value;
	bool found = false;

	if (!indirects->pid ||
	    kymo_module_bias(indirects->module, indirects->map->start, indirects->map->offset, &bias))
		return false;
	error = kymo_process_look(indirects->pid, &process);
	for (size_t i = 0; !error && !found && !kymo_module_bound_word(indirects->module, indirect->resolver, i, &word);
	     i++)
		found = !kymo_process_read(process, bias + word, &value, sizeof(value)) &&
			has_function(indirect, value - bias);
	kymo_process_destroy(process);
	kymo_error_destroy(error);
	if (found)
		*ret = value - bias;
	return found;
}

static void print_shared(const struct cli_indirects *indirects, const struct kymo_indirect *indirect)
{
	size_t n = 0;

	for (size_t i = 0; i < indirects->n; i++) {
		const struct kymo_indirect *other = &indirects->items[i];

		if (other == indirect || !kymo_indirects_share(indirect, other))
			continue;
		fputs(n++ ? ", " : "  shared     some of them with ", stdout);
		kymo_utf8_print(stdout, other->name);
	}
	if (n)
		puts(": a probe there records its calls too");
}

void cli_print_indirect(const struct cli_indirects *indirects, const struct kymo_indirect *indirect, const char *name)
{
	uint64_t bound;

	kymo_utf8_print(stdout, kymo_module_path(indirects->module));
	putchar(':');
	kymo_utf8_print(stdout, name);
	if (!indirect->n) {
		printf("\n  site       none: it is an indirect function (IFUNC), and its resolver at 0x%" PRIx64 "\n"
		       "             does not tell which functions it chooses from: ",
		       indirect->resolver);
		kymo_utf8_print(stdout, indirect->reason);
		putchar('\n');
		return;
	}
	printf("\n  ifunc      an indirect function: its resolver at 0x%" PRIx64
	       " chooses one of %zu function%s when the program\n"
	       "             is linked, and a probe is put on each:\n",
	       indirect->resolver, indirect->n, indirect->n == 1 ? "" : "s");
	for (size_t i = 0; i < indirect->n; i++) {
		printf("             0x%" PRIx64 "  ", indirect->functions[i]);
		print_name(indirects, indirect->functions[i]);
		putchar('\n');
	}
	if (find_bound(indirects, indirect, &bound)) {
		printf("  bound      process %d has chosen ", indirects->pid);
		print_name(indirects, bound);
		putchar('\n');
	}
	print_shared(indirects, indirect);
}
