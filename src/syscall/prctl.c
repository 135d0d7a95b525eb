/*
 * prctl: what an option takes and gives is a row of a table. What most take is known at the entry; what
 * some give, at the exit.
 */
#include "syscall/prctl.h"

#include <inttypes.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <string.h>
#include <sys/prctl.h>

#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/limits.h"
#include "syscall/packet_filter.h"
#include "syscall/print.h"
#include "syscall/signal_names.h"

NAMES(dumpables, "SUID_DUMP_???", { "SUID_DUMP_DISABLE", 0 }, { "SUID_DUMP_USER", 1 }, { "SUID_DUMP_ROOT", 2 });
NAMES(seccomp_modes, "SECCOMP_MODE_???", { "SECCOMP_MODE_DISABLED", 0 }, { "SECCOMP_MODE_STRICT", 1 },
      { "SECCOMP_MODE_FILTER", 2 });
NAMES(unaligns, "PR_UNALIGN_???", NAME(PR_UNALIGN_NOPRINT), NAME(PR_UNALIGN_SIGBUS));
NAMES(tscs, "PR_TSC_???", NAME(PR_TSC_ENABLE), NAME(PR_TSC_SIGSEGV));
NAMES(securebits, "SECBIT_???", NAME(SECBIT_NOROOT), NAME(SECBIT_NOROOT_LOCKED), NAME(SECBIT_NO_SETUID_FIXUP),
      NAME(SECBIT_NO_SETUID_FIXUP_LOCKED), NAME(SECBIT_KEEP_CAPS), NAME(SECBIT_KEEP_CAPS_LOCKED),
      NAME(SECBIT_NO_CAP_AMBIENT_RAISE), NAME(SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED));
NAMES(memory_kills, "PR_MCE_KILL_???", NAME(PR_MCE_KILL_CLEAR), NAME(PR_MCE_KILL_SET));
NAMES(kill_policies, "PR_MCE_KILL_???", NAME(PR_MCE_KILL_LATE), NAME(PR_MCE_KILL_EARLY), NAME(PR_MCE_KILL_DEFAULT));
NAMES(fp_modes, "PR_FP_MODE_???", NAME(PR_FP_MODE_FR), NAME(PR_FP_MODE_FRE));
NAMES(ambients, "PR_CAP_AMBIENT_???", NAME(PR_CAP_AMBIENT_IS_SET), NAME(PR_CAP_AMBIENT_RAISE),
      NAME(PR_CAP_AMBIENT_LOWER), NAME(PR_CAP_AMBIENT_CLEAR_ALL));
NAMES(sve_flags, "PR_SVE_???", NAME(PR_SVE_SET_VL_ONEXEC), NAME(PR_SVE_VL_INHERIT));
NAMES(sme_flags, "PR_SME_???", { "PR_SME_SET_VL_ONEXEC", 1 << 18 }, { "PR_SME_VL_INHERIT", 1 << 17 });
NAMES(speculations, "PR_SPEC_???", NAME(PR_SPEC_STORE_BYPASS), NAME(PR_SPEC_INDIRECT_BRANCH), NAME(PR_SPEC_L1D_FLUSH));
NAMES(speculation_states, "PR_SPEC_???", NAME(PR_SPEC_ENABLE), NAME(PR_SPEC_DISABLE), NAME(PR_SPEC_FORCE_DISABLE),
      NAME(PR_SPEC_DISABLE_NOEXEC));
NAMES(speculation_results, "PR_SPEC_???", NAME(PR_SPEC_PRCTL), NAME(PR_SPEC_ENABLE), NAME(PR_SPEC_DISABLE),
      NAME(PR_SPEC_FORCE_DISABLE), NAME(PR_SPEC_DISABLE_NOEXEC));
NAMES(keys, "PR_PAC_???", NAME(PR_PAC_APIAKEY), NAME(PR_PAC_APIBKEY), NAME(PR_PAC_APDAKEY), NAME(PR_PAC_APDBKEY),
      NAME(PR_PAC_APGAKEY));
NAMES(enabled_keys, "PR_PAC_???", NAME(PR_PAC_APIAKEY), NAME(PR_PAC_APIBKEY), NAME(PR_PAC_APDAKEY),
      NAME(PR_PAC_APDBKEY));
NAMES(tag_checks, "PR_MTE_TCF_???", NAME(PR_MTE_TCF_NONE), NAME(PR_MTE_TCF_SYNC), NAME(PR_MTE_TCF_ASYNC),
      NAME(PR_MTE_TCF_MASK));
NAMES(dispatches, "PR_SYS_DISPATCH_???", NAME(PR_SYS_DISPATCH_OFF), NAME(PR_SYS_DISPATCH_ON));
NAMES(core_commands, "PR_SCHED_CORE_???", NAME(PR_SCHED_CORE_GET), NAME(PR_SCHED_CORE_CREATE),
      NAME(PR_SCHED_CORE_SHARE_TO), NAME(PR_SCHED_CORE_SHARE_FROM));
NAMES(map_options, "PR_SET_MM_???", NAME(PR_SET_MM_START_CODE), NAME(PR_SET_MM_END_CODE), NAME(PR_SET_MM_START_DATA),
      NAME(PR_SET_MM_END_DATA), NAME(PR_SET_MM_START_STACK), NAME(PR_SET_MM_START_BRK), NAME(PR_SET_MM_BRK),
      NAME(PR_SET_MM_ARG_START), NAME(PR_SET_MM_ARG_END), NAME(PR_SET_MM_ENV_START), NAME(PR_SET_MM_ENV_END),
      NAME(PR_SET_MM_AUXV), NAME(PR_SET_MM_EXE_FILE), NAME(PR_SET_MM_MAP), NAME(PR_SET_MM_MAP_SIZE));
struct option;
typedef void shape_fn(struct decode *d, const struct option *option);

struct option {
	const char *name;
	uint32_t number;
	shape_fn *write;            /* its arguments; NULL: it has none */
	const struct names *names;  /* of the first of them */
	bool is_output;             /* known at the exit */
	bool has_more;              /* the others follow, in hex */
	const struct names *result; /* of what a call that did not fail gives; NULL: a number */
};

/* ---- shapes ---------------------------------------------------------------------------------- */

static void put_rest(struct decode *d, unsigned first)
{
	for (unsigned i = first; i < 5; i++)
		put(d, "%s%#" PRIx64, i > first ? ", " : "", d->call->args[i]);
}

static void hex(struct decode *d, const struct option *option)
{
	put(d, "%#" PRIx64, d->call->args[1]);
}

static void decimal(struct decode *d, const struct option *option)
{
	put(d, "%" PRId64, (int64_t)d->call->args[1]);
}

static void without_sign(struct decode *d, const struct option *option)
{
	put(d, "%" PRIu64, d->call->args[1]);
}

static void name(struct decode *d, const struct option *option)
{
	put_name(d, option->names, d->call->args[1]);
}

static void name_of_int(struct decode *d, const struct option *option)
{
	put_name(d, option->names, (unsigned)d->call->args[1]);
}

static void flags(struct decode *d, const struct option *option)
{
	put_flags(d, option->names, d->call->args[1]);
}

static void name_at(struct decode *d, const struct option *option)
{
	unsigned value;

	if (!fetch_or_put(d, d->call->args[1], &value, sizeof(value)))
		return;
	puts_(d, "[");
	put_name(d, option->names, value);
	puts_(d, "]");
}

static void flags_of_int(struct decode *d, const struct option *option)
{
	put_flags(d, option->names, (unsigned)d->call->args[1]);
}

static void flags_at(struct decode *d, const struct option *option)
{
	unsigned value;

	if (!fetch_or_put(d, d->call->args[1], &value, sizeof(value)))
		return;
	puts_(d, "[");
	put_flags(d, option->names, value);
	puts_(d, "]");
}

static void number_at(struct decode *d, const struct option *option)
{
	unsigned value;

	if (fetch_or_put(d, d->call->args[1], &value, sizeof(value)))
		put(d, "[%u]", value);
}

static void signal_at(struct decode *d, const struct option *option)
{
	int value;

	if (!fetch_or_put(d, d->call->args[1], &value, sizeof(value)))
		return;
	puts_(d, "[");
	put_signal(d, value);
	puts_(d, "]");
}

static void address_at(struct decode *d, const struct option *option)
{
	uint64_t value;

	if (fetch_or_put(d, d->call->args[1], &value, sizeof(value)))
		put(d, "[%#" PRIx64 "]", value);
}

static void signal_number(struct decode *d, const struct option *option)
{
	if (d->call->args[1] > INT32_MAX)
		put(d, "%" PRIu64, d->call->args[1]);
	else
		put_signal(d, (int)d->call->args[1]);
}

enum { NAME_SIZE = 16 };

static void thread_name(struct decode *d, const struct option *option)
{
	char name[NAME_SIZE];
	struct kymo_syscall_target target = *d->target;
	struct decode inner = *d;
	size_t n;

	if (call_failed(d) && option->is_output) {
		put_address(d, d->call->args[1]);
		return;
	}
	for (n = 0; n < NAME_SIZE - 1 && fetch(d, d->call->args[1] + n, &name[n], 1) && name[n]; n++)
		;
	if (n == NAME_SIZE - 1 && !option->is_output &&
	    !(fetch(d, d->call->args[1] + n, &name[n], 1) &&
	      !name[n])) { /* what is after it is not the kernel's business */
		put_bytes(d, d->call->args[1], n < target.string_size ? n : target.string_size);
		puts_(d, "...");
		return;
	}
	if (target.string_size > NAME_SIZE - 1)
		target.string_size = NAME_SIZE - 1;
	inner.target = &target;
	put_string(&inner, d->call->args[1]);
}

static void ambient(struct decode *d, const struct option *option)
{
	const uint64_t *a = d->call->args;

	put_name(d, &ambients, a[1]);
	puts_(d, ", ");
	if (a[1] != PR_CAP_AMBIENT_IS_SET && a[1] != PR_CAP_AMBIENT_RAISE && a[1] != PR_CAP_AMBIENT_LOWER) {
		put_rest(d, 2);
		return;
	}
	put_name(d, &capability_names, a[2]);
	puts_(d, ", ");
	put_rest(d, 3);
}

static void memory_kill(struct decode *d, const struct option *option)
{
	const uint64_t *a = d->call->args;

	put_name(d, &memory_kills, a[1]);
	puts_(d, ", ");
	if (a[1] != PR_MCE_KILL_SET) {
		put_rest(d, 2);
		return;
	}
	put_name(d, &kill_policies, a[2]);
	puts_(d, ", ");
	put_rest(d, 3);
}

static void two_keys(struct decode *d, const struct option *option)
{
	put_flags(d, &enabled_keys, d->call->args[1]);
	puts_(d, ", ");
	put_flags(d, &enabled_keys, d->call->args[2]);
	puts_(d, ", ");
	put_rest(d, 3);
}

static void vma(struct decode *d, const struct option *option)
{
	static const struct name items[] = { { "PR_SET_VMA_ANON_NAME", 0 } };
	static const struct names vmas = { items, 1, "PR_SET_VMA_???", false };
	const uint64_t *a = d->call->args;

	put_name(d, &vmas, a[1]);
	puts_(d, ", ");
	if (a[1]) {
		put_rest(d, 2);
		return;
	}
	put_address(d, a[2]);
	put(d, ", %" PRIu64 ", ", a[3]);
	put_string(d, a[4]);
}

static void seccomp(struct decode *d, const struct option *option)
{
	const uint64_t mode = d->call->args[1];

	put_name(d, &seccomp_modes, mode);
	if (mode == SECCOMP_MODE_STRICT)
		return;
	puts_(d, ", ");
	if (mode == SECCOMP_MODE_FILTER)
		put_seccomp_program_at(d, d->call->args[2]);
	else
		put_rest(d, 2);
}

static void tracer(struct decode *d, const struct option *option)
{
	if ((int)d->call->args[1] == -1)
		put_constant(d, "PR_SET_PTRACER_ANY", -1);
	else
		put_pid(d, (int)d->call->args[1]);
}

static void dispatch(struct decode *d, const struct option *option)
{
	const uint64_t *a = d->call->args;

	put_name(d, &dispatches, a[1]);
	if (a[1] == PR_SYS_DISPATCH_ON) {
		put(d, ", %#" PRIx64 ", %#" PRIx64 ", ", a[2], a[3]);
		put_address(d, a[4]);
		return;
	}
	puts_(d, ", ");
	put_rest(d, 2);
}

static void speculation(struct decode *d, const struct option *option)
{
	const uint64_t *a = d->call->args;

	put_name(d, &speculations, a[1]);
	puts_(d, ", ");
	if (name_of(&speculations, a[1]))
		put_name(d, &speculation_states, a[2]);
	else
		put(d, "%#" PRIx64, a[2]);
}

static void core(struct decode *d, const struct option *option)
{
	enum { PGID = 2 };
	static const char *const scopes[] = { "PIDTYPE_PID", "PIDTYPE_TGID", [PGID] = "PIDTYPE_PGID", "PIDTYPE_SID" };
	const uint64_t *a = d->call->args;
	const unsigned scope = (unsigned)a[3];
	uint64_t cookie;

	put_name(d, &core_commands, (unsigned)a[1]);
	puts_(d, ", ");
	if (scope < PGID)
		put_pid(d, (int)a[2]);
	else
		put_process_group(d, (int)a[2]);
	put(d, ", %#x", scope);
	if (d->target->style.constants != KYMO_CONSTANTS_NUMBERS)
		put(d, " /* %s */", scope < kymo_countof(scopes) ? scopes[scope] : "PIDTYPE_???");
	puts_(d, ", ");
	if ((unsigned)a[1] != PR_SCHED_CORE_GET)
		put_address(d, a[4]);
	else if (fetch_or_put(d, a[4], &cookie, sizeof(cookie)))
		put(d, "[%#" PRIx64 "]", cookie);
}

/* Flags in the upper half, as numbers where they have no name, and a length in the lower one. */
static void put_length(struct decode *d, const struct names *names, uint64_t value)
{
	uint64_t rest = value & ~0xffffull;

	for (size_t i = 0; i < names->n; i++)
		if (rest & names->items[i].value) {
			put(d, "%s|", names->items[i].text);
			rest &= ~names->items[i].value;
		}
	if (rest)
		put(d, "%#" PRIx64 "|", rest);
	put(d, "%#" PRIx64, value & 0xffff);
}

static void vector_length(struct decode *d, const struct option *option)
{
	const uint64_t value = d->call->args[1], upper = value & ~0xffffull;
	const enum kymo_constants style = d->target->style.constants;

	if (!upper || style != KYMO_CONSTANTS_NAMES)
		put(d, "%#" PRIx64, value);
	if (!upper || style == KYMO_CONSTANTS_NUMBERS)
		return;
	puts_(d, style == KYMO_CONSTANTS_BOTH ? " /* " : "");
	put_length(d, option->names, value);
	puts_(d, style == KYMO_CONSTANTS_BOTH ? " */" : "");
}

static void put_tagged(struct decode *d, uint64_t value)
{
	const uint64_t tags = (value & PR_MTE_TAG_MASK) >> PR_MTE_TAG_SHIFT,
		       rest = value & ~(PR_TAGGED_ADDR_ENABLE | PR_MTE_TCF_MASK | PR_MTE_TAG_MASK);

	put(d, "%sPR_TAGGED_ADDR_ENABLE|%s", value & PR_TAGGED_ADDR_ENABLE ? "" : "!",
	    name_of(&tag_checks, value & PR_MTE_TCF_MASK));
	if (tags)
		put(d, "|%#" PRIx64 "<<PR_MTE_TAG_SHIFT", tags);
	if (rest)
		put(d, "|%#" PRIx64, rest);
}

static void tagged(struct decode *d, const struct option *option)
{
	const uint64_t value = d->call->args[1];
	const enum kymo_constants style = d->target->style.constants;

	if (style != KYMO_CONSTANTS_NAMES)
		put(d, "%#" PRIx64, value);
	if (style == KYMO_CONSTANTS_NUMBERS)
		return;
	puts_(d, style == KYMO_CONSTANTS_BOTH ? " /* " : "");
	put_tagged(d, value);
	puts_(d, style == KYMO_CONSTANTS_BOTH ? " */" : "");
}

/* ---- the table ------------------------------------------------------------------------------- */

#define OPTION(option, ...) \
	{ \
		.name = #option, .number = (uint32_t)(option), __VA_ARGS__ \
	}

static const struct option options[] = {
	OPTION(PR_SET_PDEATHSIG, .write = signal_number),
	OPTION(PR_GET_PDEATHSIG, .write = signal_at, .is_output = true),
	OPTION(PR_GET_DUMPABLE, .result = &dumpables),
	OPTION(PR_SET_DUMPABLE, .write = name, .names = &dumpables),
	OPTION(PR_GET_UNALIGN, .write = flags_at, .names = &unaligns, .is_output = true),
	OPTION(PR_SET_UNALIGN, .write = flags_of_int, .names = &unaligns),
	OPTION(PR_GET_KEEPCAPS, .write = NULL),
	OPTION(PR_SET_KEEPCAPS, .write = without_sign),
	OPTION(PR_GET_FPEMU, .write = number_at, .is_output = true),
	OPTION(PR_SET_FPEMU, .write = without_sign),
	OPTION(PR_GET_FPEXC, .write = number_at, .is_output = true),
	OPTION(PR_SET_FPEXC, .write = without_sign),
	OPTION(PR_GET_TIMING, .write = NULL),
	OPTION(PR_SET_TIMING, .write = without_sign),
	OPTION(PR_SET_NAME, .write = thread_name),
	OPTION(PR_GET_NAME, .write = thread_name, .is_output = true),
	OPTION(PR_GET_ENDIAN, .write = number_at, .is_output = true),
	OPTION(PR_SET_ENDIAN, .write = without_sign),
	OPTION(PR_GET_SECCOMP, .write = NULL),
	OPTION(PR_SET_SECCOMP, .write = seccomp),
	OPTION(PR_CAPBSET_READ, .write = name, .names = &capability_names),
	OPTION(PR_CAPBSET_DROP, .write = name, .names = &capability_names),
	OPTION(PR_GET_TSC, .write = name_at, .names = &tscs, .is_output = true),
	OPTION(PR_SET_TSC, .write = name_of_int, .names = &tscs),
	OPTION(PR_GET_SECUREBITS, .result = &securebits),
	OPTION(PR_SET_SECUREBITS, .write = flags, .names = &securebits),
	OPTION(PR_SET_TIMERSLACK, .write = decimal),
	OPTION(PR_GET_TIMERSLACK, .write = NULL),
	OPTION(PR_TASK_PERF_EVENTS_DISABLE, .write = NULL),
	OPTION(PR_TASK_PERF_EVENTS_ENABLE, .write = NULL),
	OPTION(PR_MCE_KILL, .write = memory_kill),
	OPTION(PR_MCE_KILL_GET, .write = hex, .has_more = true, .result = &kill_policies),
	OPTION(PR_SET_MM, .write = name_of_int, .names = &map_options, .has_more = true),
	OPTION(PR_SET_CHILD_SUBREAPER, .write = without_sign),
	OPTION(PR_GET_CHILD_SUBREAPER, .write = number_at, .is_output = true),
	OPTION(PR_SET_NO_NEW_PRIVS, .write = without_sign, .has_more = true),
	OPTION(PR_GET_NO_NEW_PRIVS, .write = hex, .has_more = true),
	OPTION(PR_GET_TID_ADDRESS, .write = address_at, .is_output = true),
	OPTION(PR_SET_THP_DISABLE, .write = without_sign, .has_more = true),
	OPTION(PR_GET_THP_DISABLE, .write = hex, .has_more = true),
	OPTION(PR_MPX_ENABLE_MANAGEMENT, .write = hex, .has_more = true),
	OPTION(PR_MPX_DISABLE_MANAGEMENT, .write = hex, .has_more = true),
	OPTION(PR_SET_FP_MODE, .write = flags_of_int, .names = &fp_modes),
	OPTION(PR_GET_FP_MODE, .result = &fp_modes),
	OPTION(PR_CAP_AMBIENT, .write = ambient),
	OPTION(PR_SVE_SET_VL, .write = vector_length, .names = &sve_flags, .result = &sve_flags),
	OPTION(PR_SVE_GET_VL, .write = NULL, .result = &sve_flags),
	OPTION(PR_GET_SPECULATION_CTRL, .write = name, .names = &speculations, .result = &speculation_results),
	OPTION(PR_SET_SPECULATION_CTRL, .write = speculation),
	OPTION(PR_PAC_RESET_KEYS, .write = flags, .names = &keys, .has_more = true),
	OPTION(PR_SET_TAGGED_ADDR_CTRL, .write = tagged, .has_more = true),
	OPTION(PR_GET_TAGGED_ADDR_CTRL, .write = hex, .has_more = true, .result = &tag_checks),
	OPTION(PR_SET_IO_FLUSHER, .write = without_sign, .has_more = true),
	OPTION(PR_GET_IO_FLUSHER, .write = hex, .has_more = true),
	OPTION(PR_SET_SYSCALL_USER_DISPATCH, .write = dispatch),
	OPTION(PR_PAC_SET_ENABLED_KEYS, .write = two_keys),
	OPTION(PR_PAC_GET_ENABLED_KEYS, .write = hex, .has_more = true, .result = &enabled_keys),
	OPTION(PR_SCHED_CORE, .write = core, .is_output = true),
	{ .name = "PR_SME_SET_VL", .number = 63, .write = vector_length, .names = &sme_flags, .result = &sme_flags },
	{ .name = "PR_SME_GET_VL", .number = 64, .result = &sme_flags },
	{ .name = "PR_SET_VMA", .number = 0x53564d41, .write = vma },
	{ .name = "PR_SET_PTRACER", .number = 0x59616d61, .write = tracer },
};

static const struct option unknown = { .write = hex, .has_more = true };

static const struct option *option_of(const struct decode *d)
{
	for (size_t i = 0; i < kymo_countof(options); i++)
		if (options[i].number == (uint32_t)d->call->args[0])
			return &options[i];
	return &unknown;
}

PRINT(print_prctl)
{
	static const struct names none = { NULL, 0, "PR_???", false };
	const struct option *option = option_of(d);

	if (option->name)
		put_hex_constant(d, option->name, (unsigned)ARG);
	else
		put_name(d, &none, (unsigned)ARG);
	d->call->is_stopped = !option->write;
	puts_(d, option->write ? ", " : "");
}

static void put_option(struct decode *d, const struct option *option)
{
	option->write(d, option);
	if (!option->has_more)
		return;
	puts_(d, ", ");
	put_rest(d, 2);
}

PRINT(print_prctl_in)
{
	const struct option *option = option_of(d);

	if (option->is_output)
		return;
	put_option(d, option);
	d->call->is_stopped = true;
}

PRINT(print_prctl_out)
{
	put_option(d, option_of(d));
}

void result_prctl(struct decode *d)
{
	const struct names *names = option_of(d)->result;
	const uint64_t value = (uint64_t)d->call->result;
	const bool is_unknown = names == &speculation_results && !name_of(&speculations, d->call->args[1]);
	const bool is_single = names == &dumpables || names == &kill_policies,
		   is_length = names == &sve_flags || names == &sme_flags;

	put(d, names && !is_single && !is_unknown ? "%#" PRIx64 : "%" PRId64, value);
	if (is_single && name_of(names, value)) /* whatever -X says */
		put(d, " (%s)", name_of(names, value));
	if (is_single || is_unknown || d->target->style.constants == KYMO_CONSTANTS_NUMBERS)
		return;
	if (is_length && value & ~0xffffull) {
		puts_(d, " (");
		put_length(d, names, value);
		puts_(d, ")");
	} else if (is_length) {
		return;
	} else if (names == &speculation_results && !value) {
		puts_(d, " (PR_SPEC_NOT_AFFECTED)");
	} else if (names == &tag_checks) {
		puts_(d, " (");
		put_tagged(d, value);
		puts_(d, ")");
	} else if (names && has_any_flag(names, value)) {
		puts_(d, " (");
		put_flags_plainly(d, names, value);
		puts_(d, ")");
	}
}

const struct kind k_prctl[1] = { { print_prctl, NULL, 0 } };
const struct kind k_prctl_in[1] = { { print_prctl_in, NULL, OWN_COMMA } };
const struct kind k_prctl_out[1] = { { print_prctl_out, NULL, AT_EXIT | OWN_COMMA } };
