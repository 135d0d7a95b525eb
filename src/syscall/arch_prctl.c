/* arch_prctl: registers of threads, and which state of the processor a program may use. */
#include "syscall/arch_prctl.h"

#include <asm/prctl.h>
#include <inttypes.h>

#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/print.h"

NAMES(arch_options, "ARCH_???", NAME(ARCH_SET_GS), NAME(ARCH_SET_FS), NAME(ARCH_GET_FS), NAME(ARCH_GET_GS),
      NAME(ARCH_GET_CPUID), NAME(ARCH_SET_CPUID), { "ARCH_GET_XCOMP_SUPP", 0x1021 }, { "ARCH_GET_XCOMP_PERM", 0x1022 },
      { "ARCH_REQ_XCOMP_PERM", 0x1023 }, { "ARCH_GET_XCOMP_GUEST_PERM", 0x1024 },
      { "ARCH_REQ_XCOMP_GUEST_PERM", 0x1025 }, { "ARCH_MAP_VDSO_X32", 0x2001 }, { "ARCH_MAP_VDSO_32", 0x2002 },
      { "ARCH_MAP_VDSO_64", 0x2003 });

/* Of the processor's state: bits, and their numbers. */
NAMES(features, "XFEATURE_MASK_???", { "XFEATURE_MASK_FPSSE", 3 }, { "XFEATURE_MASK_FP", 1 },
      { "XFEATURE_MASK_SSE", 2 }, { "XFEATURE_MASK_YMM", 4 }, { "XFEATURE_MASK_BNDREGS", 8 },
      { "XFEATURE_MASK_BNDCSR", 0x10 }, { "XFEATURE_MASK_AVX512", 0xe0 }, { "XFEATURE_MASK_OPMASK", 0x20 },
      { "XFEATURE_MASK_ZMM_Hi256", 0x40 }, { "XFEATURE_MASK_Hi16_ZMM", 0x80 }, { "XFEATURE_MASK_PT", 0x100 },
      { "XFEATURE_MASK_PKRU", 0x200 }, { "XFEATURE_MASK_PASID", 0x400 }, { "XFEATURE_MASK_LBR", 0x8000 },
      { "XFEATURE_MASK_XTILE", 0x60000 }, { "XFEATURE_MASK_XTILE_CFG", 0x20000 },
      { "XFEATURE_MASK_XTILE_DATA", 0x40000 });
NAMES(feature_bits, "XFEATURE_???", { "XFEATURE_FP", 0 }, { "XFEATURE_SSE", 1 }, { "XFEATURE_YMM", 2 },
      { "XFEATURE_BNDREGS", 3 }, { "XFEATURE_BNDCSR", 4 }, { "XFEATURE_OPMASK", 5 }, { "XFEATURE_ZMM_Hi256", 6 },
      { "XFEATURE_Hi16_ZMM", 7 }, { "XFEATURE_PT_UNIMPLEMENTED_SO_FAR", 8 }, { "XFEATURE_PKRU", 9 },
      { "XFEATURE_PASID", 10 }, { "XFEATURE_LBR", 15 }, { "XFEATURE_XTILE_CFG", 17 }, { "XFEATURE_XTILE_DATA", 18 });

enum {
	GET_XCOMP_SUPPORTED = 0x1021,
	GET_XCOMP_PERMITTED = 0x1022,
	REQUEST_XCOMP = 0x1023,
	GET_XCOMP_GUEST = 0x1024,
	REQUEST_XCOMP_GUEST = 0x1025,
};

static bool is_request(uint64_t option)
{
	return (int)option == REQUEST_XCOMP || (int)option == REQUEST_XCOMP_GUEST;
}

/* A number, with what it means unless -X asks for numbers alone: there is no header that has these names. */
static void put_feature(struct decode *d, const struct names *names, uint64_t value)
{
	const char *name = names == &feature_bits ? name_of(names, value) : NULL;

	put(d, "%#" PRIx64, value);
	if (d->target->style.constants == KYMO_CONSTANTS_NUMBERS || (names == &features && !value))
		return;
	puts_(d, " /* ");
	if (name)
		puts_(d, name);
	else if (names == &features && has_any_flag(names, value))
		put_flags_plainly(d, names, value);
	else
		puts_(d, names->unknown);
	puts_(d, " */");
}

static bool arch_writes(int option)
{
	return option == ARCH_GET_FS || option == ARCH_GET_GS || option == GET_XCOMP_SUPPORTED ||
	       option == GET_XCOMP_PERMITTED || option == GET_XCOMP_GUEST;
}

PRINT(print_arch_prctl)
{
	put_name(d, &arch_options, (unsigned)ARG);
	d->call->is_stopped = (int)ARG == ARCH_GET_CPUID;
	puts_(d, d->call->is_stopped ? "" : ", ");
}

PRINT(print_arch_in)
{
	if (arch_writes((int)d->call->args[0]))
		return;
	if (is_request(d->call->args[0]))
		put_feature(d, &feature_bits, d->call->args[1]);
	else
		put(d, "%#" PRIx64, d->call->args[1]);
	d->call->is_stopped = true;
}

/* Of a request, what a later kernel may give. */
void result_arch_prctl(struct decode *d)
{
	const uint64_t value = (uint64_t)d->call->result;
	const bool has_features = is_request(d->call->args[0]) && (int64_t)value > 0;

	put(d, has_features ? "%#" PRIx64 : "%" PRId64, value);
	if (!has_features || d->target->style.constants == KYMO_CONSTANTS_NUMBERS || !has_any_flag(&features, value))
		return;
	puts_(d, " (");
	put_flags_plainly(d, &features, value);
	puts_(d, ")");
}

PRINT(print_arch_out)
{
	uint64_t value;

	if (!fetch_or_put(d, d->call->args[1], &value, sizeof(value)))
		return;
	puts_(d, "[");
	if ((int)d->call->args[0] == ARCH_GET_FS || (int)d->call->args[0] == ARCH_GET_GS)
		put_address(d, value);
	else
		put_feature(d, &features, value);
	puts_(d, "]");
}

const struct kind k_arch_prctl[1] = { { print_arch_prctl, NULL, 0 } };
const struct kind k_arch_in[1] = { { print_arch_in, NULL, OWN_COMMA } };
const struct kind k_arch_out[1] = { { print_arch_out, NULL, AT_EXIT | OWN_COMMA } };
