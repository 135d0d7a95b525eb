#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/cli.h"
#include "cli/target.h"
#include "probe/code.h"
#include "probe/spec.h"

#define INSN_MAX 15
#define SHOWN_WHEN_REFUSED 6 /* instructions */

/* A module under explanation, and how its sites came out. */
struct explainer {
	struct kymo_module *module;
	struct kymo_code *code;
	size_t n_sites;
	size_t n_by_tactic[KYMO_N_TACTICS]; /* NONE: refused */
};

/* ---- one site ---------------------------------------------------------------------------------------------------- */

static const struct kymo_span *span_at(const struct kymo_module_code *code, uint64_t vaddr)
{
	for (size_t i = 0; i < code->n_text; i++)
		if (vaddr >= code->text[i].vaddr && vaddr - code->text[i].vaddr < code->text[i].size)
			return &code->text[i];
	return NULL;
}

/* One instruction as a line; returns its length, 1 for what does not decode. */
static size_t print_instruction(const struct kymo_span *span, uint64_t vaddr, char mark)
{
	size_t at = (size_t)(vaddr - span->vaddr), left = span->size - at, length;
	char text[128];
	int r;

	r = kymo_disassemble(span->bytes + at, left < INSN_MAX ? left : INSN_MAX, vaddr, text, sizeof(text));
	length = r > 0 ? (size_t)r : 1;
	printf("  %c 0x%" PRIx64 "  ", mark, vaddr);
	for (size_t i = 0; i < length; i++)
		printf("%02x ", span->bytes[at + i]);
	printf("%*s %s\n", length < 9 ? (int)(3 * (9 - length)) : 0, "", text);
	return length;
}

/* From the place asked for to one instruction behind the window; ">" marks what is displaced. */
static void print_code(const struct kymo_module_code *code, uint64_t vaddr, const struct kymo_plan *plan)
{
	const struct kymo_span *span = span_at(code, vaddr);
	uint64_t at = plan && plan->vaddr < vaddr ? plan->vaddr : vaddr;
	uint64_t window_end = plan ? plan->vaddr + plan->window : at;

	for (int n = 0; span && at >= span->vaddr && at - span->vaddr < span->size; n++) {
		bool displaced = plan && at >= plan->vaddr && at < window_end;

		if (plan ? at > window_end : n == SHOWN_WHEN_REFUSED)
			break;
		at += print_instruction(span, at, displaced ? '>' : ' ');
	}
}

static void print_proof_of_jump(const struct kymo_plan *plan)
{
	printf("  why safe   the instruction has %u bytes: a thread stands before or behind it, never inside;\n"
	       "             nothing in the file leads into it;\n", plan->window);
}

static void print_proof_of_group(const struct explainer *explainer, const struct kymo_plan *plan)
{
	const struct kymo_function *function = kymo_module_function_at(explainer->module, plan->vaddr);

	fputs("  why safe   ", stdout);
	if (function) {
		cli_print_text(stdout, function->name ? function->name : "the function");
		printf(" is 0x%" PRIx64 " to 0x%" PRIx64 ", and all of it decodes;\n", function->start, function->end);
	} else {
		puts("the code around it decodes;");
	}
	fputs("             no branch, symbol, jump table, landing pad or relocation in the file leads to", stdout);
	for (int i = 1; i < plan->n_insns; i++) {
		const char *between = i == 1 ? "" : i + 1 == plan->n_insns ? " or" : ",";

		printf("%s 0x%" PRIx64, between, plan->vaddr + plan->insn_offset[i]);
	}
	puts(";\n             no system call is displaced, and a call only as the last: nobody returns into the window;");
}

static void print_plan(const struct explainer *explainer, uint64_t vaddr, const struct kymo_plan *plan)
{
	bool one = plan->n_insns == 1;

	printf("  tactic     %s: %u instruction%s, %u bytes, moved to a pad; a jump to it is written at 0x%" PRIx64 "\n",
	       kymo_tactic_name(plan->tactic), plan->n_insns, one ? "" : "s", plan->window, plan->vaddr);
	if (plan->vaddr != vaddr)
		printf("             the endbr64 at 0x%" PRIx64 " stays: indirect calls must find it\n", vaddr);
	if (plan->tactic == KYMO_TACTIC_JUMP)
		print_proof_of_jump(plan);
	else
		print_proof_of_group(explainer, plan);
	printf("             %s elsewhere the same: relative addresses are rewritten, calls push what they did;\n",
	       one ? "it runs" : "all of them run");
	puts("             no restartable sequence covers it; the jump lies in one page, so that one write makes it");
}

static void print_refusals(const struct kymo_refusal *refusals, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fputs(i ? "             " : "  not taken  ", stdout);
		if (refusals[i].tactic != KYMO_TACTIC_NONE)
			printf("%s: ", kymo_tactic_name(refusals[i].tactic));
		cli_print_text(stdout, refusals[i].reason);
		putchar('\n');
	}
}

static void print_heading(const struct explainer *explainer, uint64_t vaddr)
{
	const struct kymo_function *function = kymo_module_function_at(explainer->module, vaddr);
	char place[512];
	uint64_t offset;

	kymo_module_describe(explainer->module, vaddr, place, sizeof(place));
	if (explainer->n_sites)
		putchar('\n');
	cli_print_text(stdout, kymo_module_path(explainer->module));
	putchar(':');
	cli_print_text(stdout, place);
	printf("\n  site       0x%" PRIx64, vaddr);
	if (!kymo_module_vaddr_to_offset(explainer->module, vaddr, &offset))
		printf(", 0x%" PRIx64 " in the file", offset);
	if (function)
		printf(", in a function of %" PRIu64 " bytes, 0x%" PRIx64 " to 0x%" PRIx64,
		       function->end - function->start, function->start, function->end);
	putchar('\n');
}

static void explain_site(struct explainer *explainer, uint64_t vaddr)
{
	const struct kymo_module_code *code = &explainer->code->code;
	struct kymo_refusal refusals[KYMO_N_TACTICS];
	struct kymo_plan plan;
	size_t n_refusals = 0;
	int r;

	memset(refusals, 0, sizeof(refusals));
	r = kymo_plan(code, explainer->code->map, vaddr, &plan, refusals, &n_refusals);
	print_heading(explainer, vaddr);
	print_code(code, vaddr, r ? NULL : &plan);
	if (!r)
		print_plan(explainer, vaddr, &plan);
	else if (r == -EPERM)
		puts("  tactic     none: a probe here is refused");
	else
		printf("  tactic     none: %s\n", strerror(-r));
	print_refusals(refusals, n_refusals);
	explainer->n_sites++;
	explainer->n_by_tactic[r ? KYMO_TACTIC_NONE : plan.tactic]++;
}

/* What an IFUNC's symbol points to runs once, in the dynamic linker; what callers reach is another function. */
static void explain_ifunc(struct explainer *explainer, const struct kymo_symbol *symbol)
{
	if (explainer->n_sites++)
		putchar('\n');
	explainer->n_by_tactic[KYMO_TACTIC_NONE]++;
	cli_print_text(stdout, kymo_module_path(explainer->module));
	putchar(':');
	cli_print_text(stdout, symbol->name);
	printf("\n  site       none: it is an indirect function (IFUNC). 0x%" PRIx64 " is its resolver, which chooses an\n"
	       "             implementation when the program starts; 'kymo list' with the glob '*", symbol->vaddr);
	cli_print_text(stdout, symbol->name);
	puts("*' shows candidates");
}

/* ---- all sites of a location ------------------------------------------------------------------------------------- */

static struct kymo_error *explain_symbols(struct explainer *explainer, const struct kymo_spec *spec)
{
	kymo_cleanup_free const struct kymo_symbol **symbols = NULL;
	struct kymo_error *error;
	size_t n;

	error = kymo_module_find(explainer->module, spec->symbol, &symbols, &n);
	if (error || !n)
		return error;
	error = kymo_code_create(explainer->module, &explainer->code);
	for (size_t i = 0; !error && i < n; i++) {
		if (symbols[i]->is_ifunc)
			explain_ifunc(explainer, symbols[i]);
		else
			explain_site(explainer, symbols[i]->vaddr + (uint64_t)spec->offset);
	}
	return error;
}

static struct kymo_error *explain_offset(struct explainer *explainer, const struct kymo_spec *spec)
{
	struct kymo_error *error;
	uint64_t vaddr;

	if (kymo_module_offset_to_vaddr(explainer->module, (uint64_t)spec->offset, &vaddr))
		return kymo_error_create(KYMO_ERROR_NOT_FOUND,
					 "offset 0x%" PRIx64 " of %s is in no segment that is loaded",
					 (uint64_t)spec->offset, kymo_module_path(explainer->module));
	error = kymo_code_create(explainer->module, &explainer->code);
	if (!error)
		explain_site(explainer, vaddr);
	return error;
}

/* `file` is NULL where every file is meant. */
static struct kymo_error *explain_file(struct explainer *explainer, const struct cli_target *target, size_t i,
				       const char *file, const struct kymo_spec *spec)
{
	struct kymo_error *error = cli_target_open(target, i, &explainer->module);

	if (!error && explainer->module &&
	    (!file ||
	     kymo_name_matches_file(file, kymo_module_path(explainer->module), kymo_module_soname(explainer->module))))
		error = spec->symbol ? explain_symbols(explainer, spec) : explain_offset(explainer, spec);
	kymo_code_destroy(explainer->code);
	kymo_module_close(explainer->module);
	explainer->code = NULL;
	explainer->module = NULL;
	/* One file of a process that cannot be read does not hide the others. */
	if (error && target->pid && !file && error->code != KYMO_ERROR_NO_MEMORY) {
		cli_warn("%s", error->message);
		kymo_error_destroy(error);
		error = NULL;
	}
	return error;
}

static struct kymo_error *nothing_found(const struct cli_target *target, const char *where, const char *file,
					const struct kymo_spec *spec)
{
	char near[512] = "";

	if (!spec->symbol)
		return kymo_error_create(KYMO_ERROR_NOT_FOUND, "process %s has no file '%s'", where, spec->file);
	if (!kymo_is_glob(spec->symbol))
		cli_target_nearest(target, file, spec->symbol, near, sizeof(near));
	return kymo_error_create(KYMO_ERROR_NOT_FOUND, "no function in %s is called '%s'%s%s", where, spec->symbol,
				 *near ? "; near are " : "", near);
}

static void print_totals(const struct explainer *explainer)
{
	if (explainer->n_sites < 2)
		return;
	printf("\n%zu sites:", explainer->n_sites);
	for (int tactic = KYMO_TACTIC_NONE + 1; tactic < KYMO_N_TACTICS; tactic++)
		printf(" %zu %s,", explainer->n_by_tactic[tactic], kymo_tactic_name((enum kymo_tactic)tactic));
	printf(" %zu refused\n", explainer->n_by_tactic[KYMO_TACTIC_NONE]);
}

/* `text` with what ends a file in a SPEC quoted. */
static char *quote(const char *text)
{
	char *quoted = malloc(2 * strlen(text) + 1), *to = quoted;

	for (; quoted && *text; text++) {
		if (strchr(" \t\n\v\f\r:\\", *text))
			*to++ = '\\';
		*to++ = *text;
	}
	if (quoted)
		*to = '\0';
	return quoted;
}

/* LOCATION is read as the place of a SPEC whose file is `where`; with a process it may name its file itself. */
static struct kymo_error *parse_location(const char *where, const char *location, bool names_file,
					 struct kymo_spec *ret)
{
	kymo_cleanup_free char *file = quote(where), *text = NULL;
	struct kymo_error *error;
	struct kymo_spec spec;

	if (names_file)
		text = strdup(location);
	else if (!file || asprintf(&text, "%s:%s", file, location) < 0)
		text = NULL;
	if (!text)
		return &kymo_error_no_memory;
	error = kymo_spec_parse(text, &spec);
	if (error)
		return error;
	if (spec.n_args || spec.event) {
		error = kymo_error_create(KYMO_ERROR_USAGE, "a location has no arguments and no event: '%s'", location);
		kymo_spec_deinit(&spec);
		return error;
	}
	*ret = spec;
	return NULL;
}

static struct kymo_error *explain(const char *where, const char *location)
{
	kymo_cleanup(cli_target_deinit) struct cli_target target = { 0 };
	kymo_cleanup(kymo_spec_deinit) struct kymo_spec spec = { 0 };
	struct explainer explainer = { 0 };
	struct kymo_error *error;
	bool names_file;

	error = cli_target_init(where, &target);
	if (error)
		return error;
	names_file = target.pid && strchr(location, ':');
	error = parse_location(where, location, names_file, &spec);
	if (error)
		return error;
	if (target.pid && !names_file && !spec.symbol)
		return kymo_error_create(KYMO_ERROR_USAGE, "of which file of process %d? write libc:%s", target.pid,
					 location);
	for (size_t i = 0; !error && i < cli_target_count(&target); i++)
		error = explain_file(&explainer, &target, i, names_file ? spec.file : NULL, &spec);
	if (error)
		return error;
	print_totals(&explainer);
	if (!explainer.n_sites)
		return nothing_found(&target, where, names_file ? spec.file : NULL, &spec);
	if (explainer.n_by_tactic[KYMO_TACTIC_NONE] == explainer.n_sites)
		return kymo_error_create(KYMO_ERROR_UNSAFE, "no probe can be put at '%s'", location);
	return NULL;
}

int cmd_explain(int argc, char **argv)
{
	struct cli_options options = { "explain", NULL, 0, argc, argv, .at = 1 };
	const char *operands[2] = { NULL, NULL };
	struct kymo_error *error;
	size_t n = 0;

	for (;;) {
		switch (cli_options_next(&options)) {
		case CLI_OPERAND:
			if (n == kymo_countof(operands))
				return cli_usage("explain", "one file or process and one location: '%s' is too much",
						 options.value);
			operands[n++] = options.value;
			break;
		case CLI_END:
			if (n < 2)
				return cli_usage(
					"explain",
					"explain what? give a file or PID and a location, such as libc malloc");
			error = explain(operands[0], operands[1]);
			return error ? cli_fail("explain", error) : 0;
		case CLI_HELP:
			return 0;
		default:
			return 2;
		}
	}
}
