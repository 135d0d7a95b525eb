#include "cli/explain_site.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "cli/free_room.h"
#include "cli/output.h"
#include "probe/plan/faults.h"
#include "sym/demangle.h"
#include "sym/functions.h"
#include "sym/module.h"
#include "sym/sym.h"

#define INSN_MAX 15
#define SHOWN_WHEN_REFUSED 6 /* instructions */

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

/* From the location asked for to one instruction after the window; ">" marks what is displaced. */
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

static void print_proof_of_jump(const struct cli_explainer *explainer, const struct kymo_plan *plan)
{
	printf("  why safe   the instruction has %u bytes: a thread is before or after it, never inside;\n",
	       plan->window);
	if (!explainer->jit)
		puts("             nothing in the file leads into it;");
}

/* Code that was not analyzed, or cannot be. */
static void print_what_is_believed(const struct kymo_jit *jit)
{
	if (jit->is_named)
		printf("  believed   an instruction begins there: all from 0x%" PRIx64
		       " on decodes, where /tmp/perf-PID.map has the function;\n",
		       jit->start);
	else
		puts("  believed   an instruction begins there: you say so, and there is no perf map "
		     "(/tmp/perf-PID.map) to ask;");
	puts("             the program does not move this code, and replaces it as a whole if at all; of kinds that "
	     "are\n"
	     "             changed in place no instruction is displaced or relied on;");
}

static void print_proof_of_group(const struct cli_explainer *explainer, const struct kymo_plan *plan)
{
	const struct kymo_function *function = kymo_module_function_at(explainer->module, plan->vaddr);

	fputs("  why safe   ", stdout);
	if (function) {
		kymo_print_shown(stdout, function->name ? function->name : "the function");
		printf(" is 0x%" PRIx64 " to 0x%" PRIx64 ", and all of it decodes;\n", function->start, function->end);
	} else {
		puts("the code around it decodes;");
	}
	if (plan->n_insns == 1) {
		puts("             the flow ends here, and all up to the next function is padding: nothing leads to "
		     "it;");
		return;
	}
	fputs("             no branch, symbol, jump table, landing pad or relocation in the file leads to", stdout);
	for (int i = 1; i < plan->n_insns; i++) {
		const char *between = i == 1 ? "" : i + 1 == plan->n_insns ? " or" : ",";

		printf("%s 0x%" PRIx64, between, plan->vaddr + plan->insn_offset[i]);
	}
	puts(";\n             no system call is displaced, and a call only as the last: no thread returns into the "
	     "window;");
}

static void print_proof_of_pun(const struct kymo_plan *plan, const struct kymo_plan *evicted)
{
	puts("  why safe   one instruction is displaced, and nothing enters it after its first byte;\n"
	     "             those that follow begin where they did: no control flow has to be known;");
	if (evicted)
		printf("             the same holds for the one at 0x%" PRIx64 ", which continues in its own copy;\n",
		       evicted->vaddr);
	if (plan->n_copied)
		printf("             %s run%s in the pad too, from %s, as to go back into the jump's bytes is slow;\n",
		       plan->n_copied == 1 ? "the next one" : "some of them", plan->n_copied == 1 ? "s" : "",
		       plan->n_copied == 1 ? "a copy" : "copies");
	printf("             the %u bytes from 0x%" PRIx64 " are kept from other probes;\n", plan->lock_size,
	       plan->vaddr);
}

/* An address as linked; what is below 0 has a sign. */
static void print_trampoline(const struct kymo_plan *plan)
{
	int64_t to = (int64_t)plan->trampoline;

	printf("             from 0x%" PRIx64, plan->vaddr);
	for (unsigned int i = 0; i < plan->patch_size; i++)
		printf(i ? " %02x" : ": %02x", plan->patch[i]);
	printf(" leads to %s0x%" PRIx64 ", where a jump to a pad has to be\n", to < 0 ? "-" : "",
	       (uint64_t)(to < 0 ? -to : to));
}

static void print_faults(const struct cli_explainer *explainer, unsigned int faults)
{
	if (faults)
		printf("  may fault  what is displaced may fault (%s), and its handler would find the address of the "
		       "copy: a process that handles it\n"
		       "             gets another tactic, or none%s\n",
		       faults & KYMO_FAULT_MEMORY       ? "SIGSEGV, SIGBUS"
		       : faults & KYMO_FAULT_ARITHMETIC ? "SIGFPE"
							: "SIGILL",
		       explainer->indirects.pid ? "; this one does not handle it now" : "");
	else if (explainer->watched_faults)
		puts("             nothing that is displaced may fault, and the process handles faults: its handlers "
		     "find no copy's address;");
}

/* What another tool's uprobe at the same address does to it. */
static void print_bearing(const struct kymo_plan *plan)
{
	static const char *const words[] = {
		[KYMO_BEARS_NOTHING] = "another tool's would break the program until the recorder sees it, 50 ms later",
		[KYMO_BEARS_SET] = "another tool's works; if it is gone within 50 ms the program may break",
		[KYMO_BEARS_GONE] = "another tool's works, and leaves the file's bytes",
	};

	printf("  uprobe     %s\n", words[kymo_plan_bears(plan)]);
}

/* `evicted` is the plan for the instruction that makes room, or NULL. */
static void print_plan(const struct cli_explainer *explainer, uint64_t vaddr, const struct kymo_plan *plan,
		       const struct kymo_plan *evicted)
{
	bool one = plan->n_insns == 1;

	printf("  tactic     %s: %u instruction%s, %u byte%s, moved to a pad; ", kymo_tactic_name(plan->tactic),
	       plan->n_insns, one ? "" : "s", plan->window, plan->window == 1 ? "" : "s");
	printf("a jump to it is written at 0x%" PRIx64 "\n", plan->vaddr);
	if (evicted) {
		printf("             the instruction at 0x%" PRIx64 " makes room and is moved too\n", evicted->vaddr);
		print_trampoline(evicted);
	}
	if (plan->trampoline)
		print_trampoline(plan);
	if (plan->vaddr != vaddr)
		printf("             the endbr64 at 0x%" PRIx64 " stays: indirect calls must find it\n", vaddr);
	if (plan->tactic == KYMO_TACTIC_JUMP)
		print_proof_of_jump(explainer, plan);
	else if (plan->tactic == KYMO_TACTIC_GROUP)
		print_proof_of_group(explainer, plan);
	else
		print_proof_of_pun(plan, evicted);
	printf("             %s elsewhere the same: relative addresses are rewritten, calls push what they did;\n",
	       one ? "it runs" : "all of them run");
	if (explainer->jit)
		puts("             what is written lies in one page: one write makes it, with all threads stopped, if "
		     "the memory is still\n"
		     "             private, executable and not writable");
	else
		puts("             no restartable sequence covers it; what is written lies in one page: one write "
		     "makes it");
	if (explainer->jit) {
		print_what_is_believed(explainer->jit);
	} else {
		print_faults(explainer, plan->faults | (evicted ? evicted->faults : 0));
		print_bearing(plan);
	}
}

static void print_refusals(const struct kymo_refusal *refusals, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		fputs(i ? "             " : "  not taken  ", stdout);
		if (refusals[i].tactic != KYMO_TACTIC_NONE)
			printf("%s: ", kymo_tactic_name(refusals[i].tactic));
		kymo_utf8_print(stdout, refusals[i].reason);
		putchar('\n');
	}
}

void cli_explain_begin(struct cli_explainer *explainer)
{
	if (explainer->is_begun)
		putchar('\n');
	explainer->is_begun = true;
}

static void print_heading(struct cli_explainer *explainer, uint64_t vaddr)
{
	const struct kymo_function *function = kymo_module_function_at(explainer->module, vaddr);
	char location[KYMO_MANGLED_MAX + 64];
	uint64_t offset;

	kymo_module_describe(explainer->module, vaddr, location, sizeof(location));
	cli_explain_begin(explainer);
	kymo_utf8_print(stdout, kymo_module_path(explainer->module));
	putchar(':');
	kymo_print_shown(stdout, location);
	printf("\n  site       0x%" PRIx64, vaddr);
	if (!kymo_module_vaddr_to_offset(explainer->module, vaddr, &offset))
		printf(", 0x%" PRIx64 " in the file", offset);
	if (function)
		printf(", in a function of %" PRIu64 " bytes, 0x%" PRIx64 " to 0x%" PRIx64,
		       function->end - function->start, function->start, function->end);
	putchar('\n');
}

static void print_jit_heading(const struct kymo_jit *jit)
{
	kymo_utf8_print(stdout, jit->location);
	printf("\n  site       0x%" PRIx64 ", in memory of no file", jit->address);
	if (jit->start != jit->address)
		printf("; its function begins at 0x%" PRIx64, jit->start);
	putchar('\n');
}

/* Whether `vaddr` lies inside of an instruction, and where that and the next one begin. */
static bool find_neighbors(const struct cli_explainer *explainer, uint64_t vaddr, uint64_t *before_ret,
			   uint64_t *after_ret)
{
	const struct kymo_function *function = kymo_module_function_at(explainer->module, vaddr);
	kymo_cleanup_free uint64_t *starts = NULL;
	size_t n = 0, i = 0;

	if (!function || kymo_instructions_create(explainer->code->map, function->start, function->end, &starts, &n))
		return false;
	while (i < n && starts[i] < vaddr)
		i++;
	if (!i || (i < n && starts[i] == vaddr))
		return false;
	*before_ret = starts[i - 1];
	*after_ret = i < n ? starts[i] : function->end;
	return true;
}

void cli_explain_site(struct cli_explainer *explainer, uint64_t vaddr)
{
	const struct kymo_module_code *code = &explainer->code->code;
	struct kymo_refusal refusals[KYMO_N_TACTICS];
	struct kymo_plan plans[KYMO_PLANS_MAX], *plan = NULL;
	struct cli_free_room room;
	size_t n_plans = 0, n_refusals = 0;
	uint64_t before, after;
	bool is_inside;
	int r;

	memset(refusals, 0, sizeof(refusals));
	if (explainer->jit)
		cli_free_room_init_at(&room, explainer->jit->low, explainer->jit->high);
	else
		cli_free_room_init(&room, explainer->module);
	room.ops.watched_faults = explainer->watched_faults | kymo_faults_of_code(code);
	room.ops.possible_faults = KYMO_FAULT_ANY & ~room.ops.watched_faults;
	r = kymo_plan(code, explainer->code->map, &room.ops, vaddr, plans, &n_plans, refusals, &n_refusals);
	if (!r)
		plan = &plans[n_plans - 1];
	if (explainer->jit)
		print_jit_heading(explainer->jit);
	else
		print_heading(explainer, vaddr);
	is_inside = !plan && explainer->module && find_neighbors(explainer, vaddr, &before, &after);
	print_code(code, is_inside ? before : vaddr, plan);
	if (plan)
		print_plan(explainer, vaddr, plan, n_plans > 1 ? &plans[0] : NULL);
	else if (r == -EPERM)
		puts("  tactic     none: a probe here is refused");
	else
		printf("  tactic     none: %s\n", strerror(-r));
	print_refusals(refusals, n_refusals);
	if (is_inside)
		printf("             instructions begin at 0x%" PRIx64 " and 0x%" PRIx64 "\n", before, after);
	explainer->n_sites++;
	explainer->n_by_tactic[plan ? plan->tactic : KYMO_TACTIC_NONE]++;
}
