/*
 * The code of clones, as text: a loop whose position is held, a call in place and one taken apart, a register that is
 * saved, and an island. tests/unit/branch runs clones.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "alone.h"
#include "arch/clone.h"

#define TEXT 0x1000u

static void write_clone(const uint8_t *bytes, size_t size, bool calls_apart, char *out, size_t out_size)
{
	const struct kymo_clone_env env = { .position = -8, .first_site = 7, .calls_apart = calls_apart };
	const struct kymo_catch *catches;
	struct kymo_entry_map *map;
	struct alone alone;
	struct kymo_clone *clone;
	uint32_t catch_at[8];
	uint8_t code[1024];
	size_t n, used = 0;
	int end;

	alone_init(&alone, TEXT, bytes, size, (struct kymo_extent){ TEXT, TEXT + size }, TEXT);
	assert_int_equal(kymo_entry_map_create(&alone.code, &map), 0);
	assert_int_equal(kymo_clone_create(&alone.code, map, TEXT, &clone, NULL), 0);
	end = kymo_clone_emit(clone, &env, 0x2000, code, sizeof(code), catch_at);
	assert_true(end > 0 && (size_t)end <= kymo_clone_size(clone));
	for (int at = 0; at < end;) {
		char line[96];
		int length = kymo_disassemble(code + at, (size_t)(end - at), 0x2000 + (uint64_t)at, line, sizeof(line));

		assert_true(length > 0);
		used += (size_t)snprintf(out + used, out_size - used, "%x %s\n", 0x2000 + at, line);
		at += length;
	}
	catches = kymo_clone_catches(clone, &n);
	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(out + used, out_size - used, "%lx %lx -> %x\n", catches[i].vaddr,
					 catches[i].island, 0x2000 + catch_at[i]);
	/* Less room is told. */
	assert_int_equal(kymo_clone_emit(clone, &env, 0x2000, code, (size_t)end - 1, catch_at), -28);
	kymo_clone_destroy(clone);
	kymo_entry_map_destroy(map);
}

static void check(const uint8_t *bytes, size_t size, bool calls_apart, const char *expected)
{
	char found[4096];

	write_clone(bytes, size, calls_apart, found, sizeof(found));
	if (strcmp(found, expected) != 0)
		printf("%s", found);
	assert_string_equal(found, expected);
}

/* xor %eax,%eax; xor %ecx,%ecx; 1: add %ecx,%eax; dec %edi; jne 1b; mov %eax,%esi; mov %esi,(%rdx); ret, and what
 * fills the text up */
static void test_a_loop_holds_the_position(void **state)
{
	static const uint8_t bytes[] = { 0x31, 0xc0, 0x31, 0xc9, 0x01, 0xc8, 0xff, 0xcf, 0x75, 0xfa, 0x89, 0xc6,
					 0x89, 0x32, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };

	check(bytes, sizeof(bytes), false,
	      "2000 mov rsi, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "2009 mov dword ptr [rsi], 0x07\n"
	      "200f lea si, [rsi+0x04]\n"
	      "2013 mov fs:[0xFFFFFFFFFFFFFFF8], rsi\n"
	      "201c xor eax, eax\n"
	      "201e xor ecx, ecx\n"
	      "2020 mov dword ptr [rsi], 0x08\n"
	      "2026 lea si, [rsi+0x04]\n"
	      "202a mov fs:[0xFFFFFFFFFFFFFFF8], rsi\n"
	      "2033 add eax, ecx\n"
	      "2035 dec edi\n"
	      "2037 jnz 0x0000000000002020\n"
	      "203d mov esi, eax\n"
	      "203f mov [rdx], esi\n"
	      "2041 ret\n"
	      "2042 mov rsi, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "204b jmp 0x0000000000002020\n"
	      "1000 0 -> 2000\n");
}

/* push %rbx; call f; 1: mov %eax,%ebx; call *%rax; 2: pop %rbx; ret */
static const uint8_t calls[] = { 0x53, 0xe8, 0xfa, 0x1f, 0x00, 0x00, 0x89, 0xc3, 0xff, 0xd0, 0x5b, 0xc3,
				 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };

static void test_calls_are_executed_in_place(void **state)
{
	check(calls, sizeof(calls), false,
	      "2000 lea rsp, [rsp-0x80]\n"
	      "2005 push rax\n"
	      "2006 mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "200f mov dword ptr [rax], 0x07\n"
	      "2015 lea ax, [rax+0x04]\n"
	      "2019 mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "2022 pop rax\n"
	      "2023 lea rsp, [rsp+0x80]\n"
	      "202b push rbx\n"
	      "202c push 0x1006\n"
	      "2031 jmp 0x0000000000003000\n"
	      "2036 lea rsp, [rsp-0x80]\n"
	      "203b push rax\n"
	      "203c mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "2045 mov dword ptr [rax], 0x08\n"
	      "204b lea ax, [rax+0x04]\n"
	      "204f mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "2058 pop rax\n"
	      "2059 lea rsp, [rsp+0x80]\n"
	      "2061 mov ebx, eax\n"
	      "2063 jmp 0x0000000000001008\n"
	      "2068 lea rsp, [rsp-0x80]\n"
	      "206d push rax\n"
	      "206e mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "2077 mov dword ptr [rax], 0x09\n"
	      "207d lea ax, [rax+0x04]\n"
	      "2081 mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "208a pop rax\n"
	      "208b lea rsp, [rsp+0x80]\n"
	      "2093 pop rbx\n"
	      "2094 ret\n"
	      "1000 0 -> 2000\n"
	      "1006 100f -> 2036\n"
	      "100a 0 -> 2068\n");
}

static void test_calls_are_taken_apart(void **state)
{
	check(calls, sizeof(calls), true,
	      "2000 lea rsp, [rsp-0x80]\n"
	      "2005 push rax\n"
	      "2006 mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "200f mov dword ptr [rax], 0x07\n"
	      "2015 lea ax, [rax+0x04]\n"
	      "2019 mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "2022 pop rax\n"
	      "2023 lea rsp, [rsp+0x80]\n"
	      "202b push rbx\n"
	      "202c push 0x1006\n"
	      "2031 jmp 0x0000000000003000\n"
	      "2036 lea rsp, [rsp-0x80]\n"
	      "203b push rax\n"
	      "203c mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "2045 mov dword ptr [rax], 0x08\n"
	      "204b lea ax, [rax+0x04]\n"
	      "204f mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "2058 pop rax\n"
	      "2059 lea rsp, [rsp+0x80]\n"
	      "2061 mov ebx, eax\n"
	      "2063 push 0x100A\n"
	      "2068 jmp rax\n"
	      "206a lea rsp, [rsp-0x80]\n"
	      "206f push rax\n"
	      "2070 mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "2079 mov dword ptr [rax], 0x09\n"
	      "207f lea ax, [rax+0x04]\n"
	      "2083 mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "208c pop rax\n"
	      "208d lea rsp, [rsp+0x80]\n"
	      "2095 pop rbx\n"
	      "2096 ret\n"
	      "1000 0 -> 2000\n"
	      "1006 100f -> 2036\n"
	      "100a 0 -> 206a\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_loop_holds_the_position),
		cmocka_unit_test(test_calls_are_executed_in_place),
		cmocka_unit_test(test_calls_are_taken_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
