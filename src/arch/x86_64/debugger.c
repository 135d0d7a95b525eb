/*
 * Registers as gdb's descriptions of x86-64 have them (gdb/features/i386). The names of features and registers are a
 * contract: gdb looks for them. Offsets in the extended state are those of the processor's standard format (Intel SDM
 * 1, 13.4); those of components above AVX are asked of CPUID.
 */
#include <cpuid.h>
#include <stdio.h>
#include <string.h>
#include <sys/user.h>

#include "arch/registers.h"

#define CORE "org.gnu.gdb.i386.core"
#define SSE "org.gnu.gdb.i386.sse"
#define LINUX "org.gnu.gdb.i386.linux"
#define SEGMENTS "org.gnu.gdb.i386.segments"
#define AVX "org.gnu.gdb.i386.avx"
#define AVX512 "org.gnu.gdb.i386.avx512"
#define PKEYS "org.gnu.gdb.i386.pkeys"

enum {
	XSTATE_HEADER = 512,
	XSTATE_XCR0 = 464,
	XSTATE_MXCSR = 24,
	MXCSR_INITIAL = 0x1f80,
	FCTRL_INITIAL = 0x37f,
	COMPONENT_X87 = 0,
	COMPONENT_SSE = 1,
	COMPONENT_AVX = 2,
	COMPONENT_MASKS = 5,
	COMPONENT_ZMM_HIGH = 6,
	COMPONENT_ZMM_MORE = 7,
	COMPONENT_PKRU = 9,
};

const unsigned int kymo_registers_expedited[3] = { 6, KYMO_REGISTER_SP, KYMO_REGISTER_PC };

#define GENERAL(field, text) \
	{ \
		text, offsetof(struct user_regs_struct, field) \
	}

static const struct {
	const char *name;
	size_t offset;
} general[] = {
	GENERAL(rax, "rax"), GENERAL(rbx, "rbx"), GENERAL(rcx, "rcx"),       GENERAL(rdx, "rdx"), GENERAL(rsi, "rsi"),
	GENERAL(rdi, "rdi"), GENERAL(rbp, "rbp"), GENERAL(rsp, "rsp"),       GENERAL(r8, "r8"),   GENERAL(r9, "r9"),
	GENERAL(r10, "r10"), GENERAL(r11, "r11"), GENERAL(r12, "r12"),       GENERAL(r13, "r13"), GENERAL(r14, "r14"),
	GENERAL(r15, "r15"), GENERAL(rip, "rip"), GENERAL(eflags, "eflags"), GENERAL(cs, "cs"),   GENERAL(ss, "ss"),
	GENERAL(ds, "ds"),   GENERAL(es, "es"),   GENERAL(fs, "fs"),         GENERAL(gs, "gs"),
};

/* The x87 part of FXSAVE (64-bit form: FIP and FDP take eight bytes, of which gdb calls the upper half a segment). */
static const struct {
	const char *name;
	uint8_t offset, size;
} x87[] = {
	{ "fctrl", 0, 2 }, { "fstat", 2, 2 },  { "ftag", 4, 1 },   { "fiseg", 12, 2 },
	{ "fioff", 8, 4 }, { "foseg", 20, 2 }, { "fooff", 16, 4 }, { "fop", 6, 2 },
};

struct list {
	struct kymo_register *items;
	size_t n;
};

static struct kymo_register *add_register(struct list *list, const char *feature, enum kymo_register_set set,
					  size_t offset, unsigned int size, const char *type)
{
	static struct kymo_register spare;
	struct kymo_register *reg = list->n < KYMO_REGISTERS_MAX ? &list->items[list->n++] : &spare;

	*reg = (struct kymo_register){ .feature = feature,
				       .set = set,
				       .offset = (uint32_t)offset,
				       .size = (uint8_t)size,
				       .shown = (uint8_t)size,
				       .type = type };
	return reg;
}

static const char *type_of_general(const char *name)
{
	if (!strcmp(name, "rip"))
		return "code_ptr";
	if (!strcmp(name, "rsp") || !strcmp(name, "rbp"))
		return "data_ptr";
	return strcmp(name, "eflags") ? "int64" : "i386_eflags";
}

static void add_core(struct list *list)
{
	for (size_t i = 0; i < sizeof(general) / sizeof(general[0]); i++) {
		struct kymo_register *reg = add_register(list, CORE, KYMO_REGISTERS_GENERAL, general[i].offset, 8,
							 type_of_general(general[i].name));

		strcpy(reg->name, general[i].name);
		if (i > KYMO_REGISTER_PC) { /* flags and segments have 32 bits */
			reg->size = reg->shown = 4;
			reg->type = i == KYMO_REGISTER_PC + 1 ? reg->type : "int32";
		}
	}
	for (unsigned int i = 0; i < 8; i++)
		sprintf(add_register(list, CORE, KYMO_REGISTERS_EXTENDED, 32 + 16 * i, 10, "i387_ext")->name, "st%u",
			i);
	for (size_t i = 0; i < sizeof(x87) / sizeof(x87[0]); i++) {
		struct kymo_register *reg =
			add_register(list, CORE, KYMO_REGISTERS_EXTENDED, x87[i].offset, x87[i].size, "int");

		strcpy(reg->name, x87[i].name);
		reg->group = "float";
		reg->shown = 4;
	}
}

static void add_sse(struct list *list)
{
	for (unsigned int i = 0; i < 16; i++) {
		struct kymo_register *reg =
			add_register(list, SSE, KYMO_REGISTERS_EXTENDED, 160 + 16 * i, 16, "vec128");

		sprintf(reg->name, "xmm%u", i);
		reg->component = COMPONENT_SSE;
	}
	{
		struct kymo_register *reg =
			add_register(list, SSE, KYMO_REGISTERS_EXTENDED, XSTATE_MXCSR, 4, "i386_mxcsr");

		strcpy(reg->name, "mxcsr");
		reg->group = "vector";
		reg->component = COMPONENT_SSE;
	}
}

static void add_system(struct list *list)
{
	struct kymo_register *reg = add_register(list, LINUX, KYMO_REGISTERS_GENERAL,
						 offsetof(struct user_regs_struct, orig_rax), 8, "int");

	strcpy(reg->name, "orig_rax");
	reg->group = "system";
	strcpy(add_register(list, SEGMENTS, KYMO_REGISTERS_GENERAL, offsetof(struct user_regs_struct, fs_base), 8,
			    "int")
		       ->name,
	       "fs_base");
	strcpy(add_register(list, SEGMENTS, KYMO_REGISTERS_GENERAL, offsetof(struct user_regs_struct, gs_base), 8,
			    "int")
		       ->name,
	       "gs_base");
}

static uint32_t offset_of(unsigned int component)
{
	unsigned int size, offset, c, d;

	return __get_cpuid_count(0xd, component, &size, &offset, &c, &d) ? offset : 0;
}

/* Registers that lie side by side in a component. */
static void add_part(struct list *list, const char *feature, unsigned int component, unsigned int at, unsigned int step,
		     unsigned int size, unsigned int first, unsigned int n, const char *format, const char *type)
{
	uint32_t base = offset_of(component);

	for (unsigned int i = 0; base && i < n; i++) {
		struct kymo_register *reg =
			add_register(list, feature, KYMO_REGISTERS_EXTENDED, base + at + step * i, size, type);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(reg->name, sizeof(reg->name), format, first + i);
#pragma GCC diagnostic pop
		reg->component = (uint8_t)component;
	}
}

size_t kymo_registers_list(uint64_t components, struct kymo_register *ret)
{
	const uint64_t wide = 1 << COMPONENT_MASKS | 1 << COMPONENT_ZMM_HIGH | 1 << COMPONENT_ZMM_MORE;
	struct list list = { .items = ret };

	add_core(&list);
	add_sse(&list);
	add_system(&list);
	if (components & 1 << COMPONENT_AVX)
		add_part(&list, AVX, COMPONENT_AVX, 0, 16, 16, 0, 16, "ymm%uh", "uint128");
	if (components & 1 << COMPONENT_AVX && (components & wide) == wide) {
		add_part(&list, AVX512, COMPONENT_ZMM_MORE, 0, 64, 16, 16, 16, "xmm%u", "vec128");
		add_part(&list, AVX512, COMPONENT_ZMM_MORE, 16, 64, 16, 16, 16, "ymm%uh", "uint128");
		add_part(&list, AVX512, COMPONENT_MASKS, 0, 8, 8, 0, 8, "k%u", "uint64");
		add_part(&list, AVX512, COMPONENT_ZMM_HIGH, 0, 32, 32, 0, 16, "zmm%uh", "v2ui128");
		add_part(&list, AVX512, COMPONENT_ZMM_MORE, 32, 64, 32, 16, 16, "zmm%uh", "v2ui128");
	}
	if (components & 1 << COMPONENT_PKRU)
		add_part(&list, PKEYS, COMPONENT_PKRU, 0, 4, 4, 0, 1, "pkru", "uint32");
	return list.n;
}

/* ---- descriptions ---------------------------------------------------------------------------- */

const char *kymo_registers_architecture(void)
{
	return "i386:x86-64";
}

#define FLAG(name, bit) "<field name=\"" name "\" start=\"" #bit "\" end=\"" #bit "\"/>"
#define VECTOR \
	"<vector id=\"v8bf16\" type=\"bfloat16\" count=\"8\"/>" \
	"<vector id=\"v4f\" type=\"ieee_single\" count=\"4\"/>" \
	"<vector id=\"v2d\" type=\"ieee_double\" count=\"2\"/>" \
	"<vector id=\"v16i8\" type=\"int8\" count=\"16\"/>" \
	"<vector id=\"v8i16\" type=\"int16\" count=\"8\"/>" \
	"<vector id=\"v4i32\" type=\"int32\" count=\"4\"/>" \
	"<vector id=\"v2i64\" type=\"int64\" count=\"2\"/>" \
	"<union id=\"vec128\"><field name=\"v8_bfloat16\" type=\"v8bf16\"/><field name=\"v4_float\" type=\"v4f\"/>" \
	"<field name=\"v2_double\" type=\"v2d\"/><field name=\"v16_int8\" type=\"v16i8\"/>" \
	"<field name=\"v8_int16\" type=\"v8i16\"/><field name=\"v4_int32\" type=\"v4i32\"/>" \
	"<field name=\"v2_int64\" type=\"v2i64\"/><field name=\"uint128\" type=\"uint128\"/></union>"

static const struct {
	const char *feature, *types;
} types[] = {
	{ CORE, "<flags id=\"i386_eflags\" size=\"4\">" FLAG("", 22) FLAG("CF", 0) FLAG("", 1) FLAG("PF", 2)
			FLAG("AF", 4) FLAG("ZF", 6) FLAG("SF", 7) FLAG("TF", 8) FLAG("IF", 9) FLAG("DF", 10)
				FLAG("OF", 11) FLAG("NT", 14) FLAG("RF", 16) FLAG("VM", 17) FLAG("AC", 18)
					FLAG("VIF", 19) FLAG("VIP", 20) FLAG("ID", 21) "</flags>" },
	{ SSE, VECTOR "<flags id=\"i386_mxcsr\" size=\"4\">" FLAG("IE", 0) FLAG("DE", 1) FLAG("ZE", 2) FLAG("OE", 3)
		       FLAG("UE", 4) FLAG("PE", 5) FLAG("DAZ", 6) FLAG("IM", 7) FLAG("DM", 8) FLAG("ZM", 9)
			       FLAG("OM", 10) FLAG("UM", 11) FLAG("PM", 12) FLAG("FZ", 15) "</flags>" },
	{ AVX512, VECTOR "<vector id=\"v2ui128\" type=\"uint128\" count=\"2\"/>" },
};

const char *kymo_registers_types(const char *feature)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (!strcmp(types[i].feature, feature))
			return types[i].types;
	return "";
}

/* ---- the extended state ---------------------------------------------------------------------- */

uint64_t kymo_xstate_components(const uint8_t *image, size_t size)
{
	uint64_t components = 0;

	if (size >= XSTATE_HEADER + 64)
		memcpy(&components, image + XSTATE_XCR0, sizeof(components));
	return components;
}

static bool is_initial(const struct kymo_register *reg, const uint8_t *image, size_t size)
{
	uint64_t used;

	if (size < XSTATE_HEADER + 64)
		return false;
	memcpy(&used, image + XSTATE_HEADER, sizeof(used));
	return !(used & 1ull << reg->component);
}

/* Two bits a register in what gdb sees; one bit, whether it is in use, in the processor's. gdb works the kind out from
 * the values only in its own files, so used ones are called valid. (Intel SDM 1, 10.5.1.1.) */
static uint32_t wide_tag(uint8_t narrow)
{
	uint32_t wide = 0;

	for (unsigned int i = 0; i < 8; i++)
		wide |= (narrow & 1u << i ? 0u : 3u) << (2 * i);
	return wide;
}

static uint8_t narrow_tag(const uint8_t *value)
{
	uint32_t wide = value[0] | (uint32_t)value[1] << 8;
	uint8_t narrow = 0;

	for (unsigned int i = 0; i < 8; i++)
		if ((wide >> (2 * i) & 3) != 3)
			narrow |= (uint8_t)(1u << i);
	return narrow;
}

bool kymo_xstate_read(const struct kymo_register *reg, const uint8_t *image, size_t size, uint8_t *ret)
{
	const bool is_tag = !strcmp(reg->name, "ftag"), is_mxcsr = !strcmp(reg->name, "mxcsr");
	const uint32_t fctrl = FCTRL_INITIAL, mxcsr = MXCSR_INITIAL;

	if ((size_t)reg->offset + reg->size > size)
		return false;
	memset(ret, 0, reg->shown);
	if (!is_initial(reg, image, size))
		memcpy(ret, image + reg->offset, reg->size);
	else if (!strcmp(reg->name, "fctrl"))
		memcpy(ret, &fctrl, reg->shown);
	else if (is_mxcsr)
		memcpy(ret, &mxcsr, reg->shown);
	if (is_tag)
		memcpy(ret, &(uint32_t){ wide_tag(ret[0]) }, reg->shown);
	return true;
}

/* A component that was initial has anything in its place: it gets its initial values before it is in use. */
static void put_in_use(const struct kymo_register *reg, uint8_t *image)
{
	static const struct {
		uint8_t component;
		uint16_t from, to;
	} areas[] = { { COMPONENT_X87, 0, 24 }, { COMPONENT_X87, 32, 160 }, { COMPONENT_SSE, 160, 416 } };
	const uint16_t fctrl = FCTRL_INITIAL;
	const uint32_t mxcsr = MXCSR_INITIAL;

	for (size_t i = 0; i < sizeof(areas) / sizeof(areas[0]); i++)
		if (areas[i].component == reg->component)
			memset(image + areas[i].from, 0, areas[i].to - areas[i].from);
	if (reg->component == COMPONENT_X87)
		memcpy(image, &fctrl, sizeof(fctrl));
	else if (reg->component == COMPONENT_SSE)
		memcpy(image + XSTATE_MXCSR, &mxcsr, sizeof(mxcsr));
}

static void clear_component(const struct kymo_register *reg, uint8_t *image, size_t size)
{
	unsigned int length, offset, c, d;

	if (reg->component < 2 || !__get_cpuid_count(0xd, reg->component, &length, &offset, &c, &d))
		return;
	if (offset < size && length <= size - offset)
		memset(image + offset, 0, length);
}

bool kymo_xstate_write(const struct kymo_register *reg, uint8_t *image, size_t size, const uint8_t *value)
{
	uint8_t tag = 0;
	uint64_t used;

	if ((size_t)reg->offset + reg->size > size)
		return false;
	if (is_initial(reg, image, size)) {
		put_in_use(reg, image);
		clear_component(reg, image, size);
		memcpy(&used, image + XSTATE_HEADER, sizeof(used));
		used |= 1ull << reg->component;
		memcpy(image + XSTATE_HEADER, &used, sizeof(used));
	}
	if (!strcmp(reg->name, "ftag"))
		tag = narrow_tag(value);
	memcpy(image + reg->offset, strcmp(reg->name, "ftag") ? value : &tag, reg->size);
	return true;
}
