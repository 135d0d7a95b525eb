#include <stdio.h>
#include <string.h>

#include "arch/fetch.h"

/* Stems of the first eight; the kernel's grammar has them without a letter for the width, and means all 64 bits. */
static const char *const stems[] = { "ax", "cx", "dx", "bx", "sp", "bp", "si", "di" };
static const char *const bytes[] = { "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil" };

static const struct {
	const char *name;
	int number;
	enum kymo_type type;
} others[] = {
	{ "ip", 16, KYMO_TYPE_X64 },     { "rip", 16, KYMO_TYPE_X64 },    { "flags", 17, KYMO_TYPE_X64 },
	{ "rflags", 17, KYMO_TYPE_X64 }, { "eflags", 17, KYMO_TYPE_X32 },
};

static int parse_stem(const char *name, enum kymo_type *type_ret)
{
	enum kymo_type type = KYMO_TYPE_X64;
	const char *stem = name;

	if (name[0] == 'r' || name[0] == 'e') {
		type = name[0] == 'r' ? KYMO_TYPE_X64 : KYMO_TYPE_X32;
		stem++;
	}
	for (int i = 0; i < 8; i++) {
		if (!strcmp(stem, stems[i])) {
			*type_ret = type;
			return i;
		}
		if (!strcmp(name, bytes[i])) {
			*type_ret = KYMO_TYPE_X8;
			return i;
		}
	}
	return -1;
}

/* r8 … r15, with d, w or b for less. */
static int parse_numbered(const char *name, enum kymo_type *type_ret)
{
	enum kymo_type type;
	int number = 0, used = 0;

	if (name[0] == 'r' && name[1] >= '8' && name[1] <= '9') {
		number = name[1] - '0';
		used = 2;
	} else if (name[0] == 'r' && name[1] == '1' && name[2] >= '0' && name[2] <= '5') {
		number = 10 + name[2] - '0';
		used = 3;
	} else {
		return -1;
	}
	switch (name[used]) {
	case '\0':
		*type_ret = KYMO_TYPE_X64;
		return number;
	case 'd':
		type = KYMO_TYPE_X32;
		break;
	case 'w':
		type = KYMO_TYPE_X16;
		break;
	case 'b':
		type = KYMO_TYPE_X8;
		break;
	default:
		return -1;
	}
	if (name[used + 1])
		return -1;
	*type_ret = type;
	return number;
}

int kymo_register_parse(const char *name, size_t length, enum kymo_type *type_ret)
{
	char text[8];
	int number;

	if (!length || length >= sizeof(text) || memchr(name, '\0', length))
		return -1;
	memcpy(text, name, length);
	text[length] = '\0';
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (!strcmp(text, others[i].name)) {
			*type_ret = others[i].type;
			return others[i].number;
		}
	}
	number = parse_numbered(text, type_ret);
	return number >= 0 ? number : parse_stem(text, type_ret);
}

/* The kernel's asm/segment.h: selectors of 64-bit programs. A breakpoint is no system call. */
bool kymo_register_constant(const char *name, size_t length, uint64_t *ret)
{
	static const struct {
		const char *name;
		uint64_t value;
	} constants[] = { { "cs", 0x33 }, { "ss", 0x2b }, { "orig_ax", UINT64_MAX } };

	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		if (strlen(constants[i].name) == length && !memcmp(constants[i].name, name, length)) {
			*ret = constants[i].value;
			return true;
		}
	}
	return false;
}

const char *kymo_register_name(int number)
{
	static const char *const numbered[] = { "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15" };

	return number < 8 ? stems[number] : numbered[number - 8];
}

/* System V ABI for x86-64, figure 3.36. */
int kymo_register_of_dwarf(int dwarf)
{
	static const int8_t first[] = { 0, 2, 1, 3, 6, 7, 5, 4 };

	if (dwarf < 0 || dwarf > 15)
		return -1;
	return dwarf < 8 ? first[dwarf] : dwarf;
}

/* gdb's org.gnu.gdb.i386.core. */
int kymo_register_of_debugger(unsigned int number)
{
	static const int8_t first[] = { 0, 3, 1, 2, 6, 7, 5, 4 };

	if (number > 15)
		return -1;
	return number < 8 ? first[number] : (int)number;
}
