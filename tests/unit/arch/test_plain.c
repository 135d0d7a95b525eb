/* What is said to be plain decodes to the same length, and leads nowhere but to the next instruction; near branches are
 * what the decoder makes of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <string.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/plain.h"

static ZydisDecoder decoder;

/* Whether the bytes are plain. */
static bool check(const uint8_t bytes[15])
{
	size_t length = x86_plain_length(bytes, 15);
	struct x86_insn insn;

	if (!length)
		return false;
	if (x86_decode(&decoder, bytes, 15, 0x1000, &insn) || insn.length != length || insn.flow != X86_FLOW_NEXT ||
	    insn.has_target || insn.has_rip)
		fail_msg("%02x %02x %02x %02x %02x is not plain", bytes[0], bytes[1], bytes[2], bytes[3], bytes[4]);
	assert_int_equal(x86_plain_length(bytes, length), length);
	for (size_t i = 0; i < length; i++)
		assert_int_equal(x86_plain_length(bytes, i), 0);
	return true;
}

/* Every ModRM byte after the opcode that ends at `at`, with some SIB bytes; what follows is filled. */
static size_t check_operands(uint8_t bytes[15], size_t at)
{
	static const uint8_t indexes[] = { 0x00, 0x05, 0x25, 0x64, 0xad, 0xe5, 0xff };
	size_t n = 0;

	for (int modrm = 0; modrm < 256; modrm++) {
		bytes[at] = (uint8_t)modrm;
		for (size_t i = 0; i < sizeof(indexes); i++) {
			bytes[at + 1] = indexes[i];
			n += check(bytes);
		}
	}
	return n;
}

static void test_all_opcodes(void **state)
{
	size_t n = 0;

	x86_decoder_init(&decoder);
	for (int prefixes = 0; prefixes < 2 * 17 * 2; prefixes++) {
		for (int opcode = 0; opcode < 256; opcode++) {
			uint8_t bytes[15];
			size_t at = 0;

			memset(bytes, 0x90, sizeof(bytes));
			if (prefixes & 1)
				bytes[at++] = 0x66;
			if (prefixes / 4)
				bytes[at++] = (uint8_t)(0x40 + prefixes / 4 - 1);
			if (prefixes & 2)
				bytes[at++] = 0x0f;
			bytes[at++] = (uint8_t)opcode;
			n += check_operands(bytes, at);
		}
	}
	assert_in_range(n, 1000000, SIZE_MAX);
}

static bool check_near(const uint8_t *bytes, size_t size, size_t full)
{
	struct x86_insn near = { .length = 0 }, insn;

	if (!x86_decode_near(bytes, size, 0x1000, &near))
		return false;
	if (x86_decode(&decoder, bytes, full, 0x1000, &insn) || near.length > size)
		fail_msg("%02x %02x is not a branch", bytes[0], bytes[1]);
	assert_int_equal(near.address, insn.address);
	assert_int_equal(near.length, insn.length);
	assert_int_equal(near.flow, insn.flow);
	assert_int_equal(near.has_target, insn.has_target);
	assert_int_equal(near.target, insn.target);
	assert_int_equal(near.has_rip, insn.has_rip);
	assert_int_equal(near.rip, insn.rip);
	assert_int_equal(near.z.raw.imm[0].size, insn.z.raw.imm[0].size);
	return true;
}

static void test_near_branches(void **state)
{
	static const uint8_t fills[] = { 0x00, 0x7f, 0x80, 0xff };
	size_t n = 0;

	x86_decoder_init(&decoder);
	for (int first = 0; first < 256; first++) {
		for (int second = 0; second < 256; second++) {
			for (size_t i = 0; i < sizeof(fills); i++) {
				uint8_t bytes[15];

				memset(bytes, fills[i], sizeof(bytes));
				bytes[0] = (uint8_t)first;
				bytes[1] = (uint8_t)second;
				for (size_t size = 0; size < 8; size++)
					n += check_near(bytes, size, sizeof(bytes));
			}
		}
	}
	/* jcc, and jmp short, call and jmp: with as many bytes as they have, and more */
	assert_int_equal(n, 4 * (16 * 256 * 6 + 256 * 6 + 2 * 256 * 3 + 16 * 2));
}

/* What must not be taken for plain, because it leads somewhere. */
static void test_not_plain(void **state)
{
	static const char *const others[] = {
		"\x48\x8b\x05\1\0\0\0", /* mov 1(%rip),%rax */
		"\xc6\xf8\x01",         /* xabort */
		"\xc7\xf8\1\0\0\0",     /* xbegin */
		"\xff\xe0",             /* jmp *%rax */
		"\xff\x10",             /* call *(%rax) */
		"\x74\x10",             /* je */
		"\x0f\x84\1\0\0\0",     /* je */
		"\xe8\1\0\0\0",         /* call */
		"\xc3",                 /* ret */
		"\xcc",                 /* int3 */
		"\x0f\x0b",             /* ud2 */
		"\xf4",                 /* hlt */
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		assert_int_equal(x86_plain_length((const uint8_t *)others[i], 7), 0);
	assert_int_equal(x86_plain_length((const uint8_t *)"", 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_opcodes),
		cmocka_unit_test(test_near_branches),
		cmocka_unit_test(test_not_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
