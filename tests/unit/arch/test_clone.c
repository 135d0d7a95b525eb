/*
 * The code of clones, as text: a loop whose position is held, a call in place and one taken apart, a register that is
 * saved, and an island. tests/unit/branch runs clones.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alone.h"
#include "arch/clone.h"

#define TEXT 0x1000u

static const struct kymo_clone_env in_place = { .position = -8, .first_site = 7 },
				   apart = { .position = -8, .first_site = 7, .calls_apart = true },
				   gated = { .position = 56,
					     .first_site = 7,
					     .checks_held = true,
					     .arena = UINT64_C(0x4500000000),
					     .slow = 0x3000 };

/* After an instruction's address is that of the function that it is exactly (=) or a part of (~); or exactly, once the
 * stack pointer is given back (-), and a register as well (+). */
static char relation(const struct kymo_clone_point *point, int at)
{
	if (!point || point->at != (uint32_t)at)
		return '~';
	return point->pushed < KYMO_CLONE_HOLDS_NONE ? '+' : point->lowered ? '-' : '=';
}

static void write_code(const uint8_t *code, int end, const struct kymo_clone_map *map, char *out, size_t out_size)
{
	size_t used = 0;

	*out = '\0';
	for (int at = 0; at < end;) {
		char line[96];
		const struct kymo_clone_point *point = kymo_clone_origin(map, (uint32_t)at);
		int length = kymo_disassemble(code + at, (size_t)(end - at), 0x2000 + (uint64_t)at, line, sizeof(line));

		assert_true(length > 0);
		used += (size_t)snprintf(out + used, out_size - used, "%x %c%lx %s\n", 0x2000 + at, relation(point, at),
					 point ? point->vaddr : 0, line);
		at += length;
	}
}

static void write_clone(const uint8_t *bytes, size_t size, const struct kymo_clone_env *env, char *out, size_t out_size)
{
	struct kymo_clone_map points = { 0 };
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
	end = kymo_clone_emit(clone, env, 0x2000, code, sizeof(code), catch_at, &points);
	assert_true(end > 0 && (size_t)end <= kymo_clone_size(clone));
	write_code(code, end, &points, out, out_size);
	used = strlen(out);
	catches = kymo_clone_catches(clone, &n);
	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(out + used, out_size - used, "%lx %lx -> %x\n", catches[i].vaddr,
					 catches[i].island, 0x2000 + catch_at[i]);
	/* Less room is told. */
	assert_int_equal(kymo_clone_emit(clone, env, 0x2000, code, (size_t)end - 1, catch_at, NULL), -28);
	kymo_clone_map_deinit(&points);
	kymo_clone_destroy(clone);
	kymo_entry_map_destroy(map);
}

static void compare(const char *found, const char *expected)
{
	if (strcmp(found, expected) != 0)
		printf("%s", found);
	assert_string_equal(found, expected);
}

static void check(const uint8_t *bytes, size_t size, const struct kymo_clone_env *env, const char *expected)
{
	char found[8192];

	write_clone(bytes, size, env, found, sizeof(found));
	compare(found, expected);
}

/* xor %eax,%eax; xor %ecx,%ecx; 1: add %ecx,%eax; dec %edi; jne 1b; mov %eax,%esi; mov %esi,(%rdx); ret, and what
 * fills the text up */
static void test_a_loop_holds_the_position(void **state)
{
	static const uint8_t bytes[] = { 0x31, 0xc0, 0x31, 0xc9, 0x01, 0xc8, 0xff, 0xcf, 0x75, 0xfa, 0x89, 0xc6,
					 0x89, 0x32, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };

	check(bytes, sizeof(bytes), &in_place,
	      "2000 =1000 mov rsi, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "2009 =1000 mov qword ptr [rsi], 0x07\n"
	      "2010 =1000 lea si, [rsi+0x04]\n"
	      "2014 =1000 mov fs:[0xFFFFFFFFFFFFFFF8], rsi\n"
	      "201d =1000 xor eax, eax\n"
	      "201f =1002 xor ecx, ecx\n"
	      "2021 =1004 mov qword ptr [rsi], 0x08\n"
	      "2028 =1004 lea si, [rsi+0x04]\n"
	      "202c =1004 mov fs:[0xFFFFFFFFFFFFFFF8], rsi\n"
	      "2035 =1004 add eax, ecx\n"
	      "2037 =1006 dec edi\n"
	      "2039 =1008 jnz 0x0000000000002021\n"
	      "203f =100a mov esi, eax\n"
	      "2041 =100c mov [rdx], esi\n"
	      "2043 =100e ret\n"
	      "2044 =1004 mov rsi, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "204d =1004 jmp 0x0000000000002021\n"
	      "1000 0 -> 2000\n");
}

/* The same. In a process what has interrupted the loop may have recorded: the position is compared there, where the
 * flags are free, and loaded where it differs. */
static void test_a_loop_checks_the_position(void **state)
{
	static const uint8_t bytes[] = { 0x31, 0xc0, 0x31, 0xc9, 0x01, 0xc8, 0xff, 0xcf, 0x75, 0xfa, 0x89, 0xc6,
					 0x89, 0x32, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };

	check(bytes, sizeof(bytes), &gated,
	      "2000 =1000 mov rsi, fs:[0x0000000000000038]\n"
	      "2009 =1000 mov qword ptr [rsi], 0x07\n"
	      "2010 =1000 lea si, [rsi+0x04]\n"
	      "2014 =1000 mov fs:[0x0000000000000038], rsi\n"
	      "201d =1000 xor eax, eax\n"
	      "201f =1002 xor ecx, ecx\n"
	      "2021 =1004 cmp fs:[0x0000000000000038], rsi\n"
	      "202a =1004 jnz 0x0000000000002053\n"
	      "2030 =1004 mov qword ptr [rsi], 0x08\n"
	      "2037 =1004 lea si, [rsi+0x04]\n"
	      "203b =1004 mov fs:[0x0000000000000038], rsi\n"
	      "2044 =1004 add eax, ecx\n"
	      "2046 =1006 dec edi\n"
	      "2048 =1008 jnz 0x0000000000002021\n"
	      "204e =100a mov esi, eax\n"
	      "2050 =100c mov [rdx], esi\n"
	      "2052 =100e ret\n"
	      "2053 =1004 mov rsi, fs:[0x0000000000000038]\n"
	      "205c =1004 jmp 0x0000000000002030\n"
	      "2061 =1000 cmp dword ptr fs:[0x000000000000003C], 0x45\n"
	      "206d ~1000 jz 0x0000000000002000\n"
	      "2073 ~1000 lea rsp, [rsp-0x80]\n"
	      "2078 ~1000 call 0x0000000000003000\n"
	      "207d ~1000 lea rsp, [rsp+0x80]\n"
	      "2085 =1000 jmp 0x0000000000002000\n"
	      "1000 0 -> 2061\n");
}

/* 1: add %esi,(%rdi); decl (%rdi); jne 1b; ret. No register is free in the loop: one that it does not use is pushed all
 * the while, and the thread comes in and leaves by way of that. */
static void test_a_loop_has_a_register_of_its_own(void **state)
{
	static const uint8_t bytes[] = { 0x01, 0x37, 0xff, 0x0f, 0x75, 0xfa, 0xc3, 0x90,
					 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };

	check(bytes, sizeof(bytes), &gated,
	      "2000 +1000 cmp fs:[0x0000000000000038], r15\n"
	      "2009 +1000 jnz 0x0000000000002065\n"
	      "200f +1000 mov qword ptr [r15], 0x07\n"
	      "2016 +1000 lea r15w, [r15+0x04]\n"
	      "201b +1000 mov fs:[0x0000000000000038], r15\n"
	      "2024 +1000 add [rdi], esi\n"
	      "2026 +1002 dec [rdi]\n"
	      "2028 +1004 jnz 0x0000000000002000\n"
	      "202e +1006 pop r15\n"
	      "2030 -1006 lea rsp, [rsp+0x80]\n"
	      "2038 =1006 lea rsp, [rsp-0x80]\n"
	      "203d -1006 push rax\n"
	      "203e +1006 mov rax, fs:[0x0000000000000038]\n"
	      "2047 +1006 mov qword ptr [rax], 0x08\n"
	      "204e +1006 lea ax, [rax+0x04]\n"
	      "2052 +1006 mov fs:[0x0000000000000038], rax\n"
	      "205b +1006 pop rax\n"
	      "205c -1006 lea rsp, [rsp+0x80]\n"
	      "2064 =1006 ret\n"
	      "2065 +1000 mov r15, fs:[0x0000000000000038]\n"
	      "206e +1000 jmp 0x000000000000200F\n"
	      "2073 =1000 lea rsp, [rsp-0x80]\n"
	      "2078 -1000 push r15\n"
	      "207a +1000 mov r15, fs:[0x0000000000000038]\n"
	      "2083 +1000 jmp 0x000000000000200F\n"
	      "2088 =1000 cmp dword ptr fs:[0x000000000000003C], 0x45\n"
	      "2094 ~1000 jz 0x0000000000002073\n"
	      "209a ~1000 lea rsp, [rsp-0x80]\n"
	      "209f ~1000 call 0x0000000000003000\n"
	      "20a4 ~1000 lea rsp, [rsp+0x80]\n"
	      "20ac =1000 jmp 0x0000000000002073\n"
	      "1000 0 -> 2088\n");
}

/* xor %eax,%eax; 1: test $1,%dil; je 2f; inc %eax; jmp 3f; 2: dec %eax; 3: dec %edi; jne 1b; ret. Entries of 1 and 2
 * tell which way was taken: 3 has none. */
static void test_what_follows_both_sides_is_not_recorded(void **state)
{
	static const uint8_t bytes[] = { 0x31, 0xc0, 0x40, 0xf6, 0xc7, 0x01, 0x74, 0x04, 0xff, 0xc0, 0xeb, 0x02,
					 0xff, 0xc8, 0xff, 0xcf, 0x75, 0xf0, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90 };

	check(bytes, sizeof(bytes), &in_place,
	      "2000 =1000 lea rsp, [rsp-0x80]\n"
	      "2005 -1000 push rax\n"
	      "2006 +1000 mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "200f +1000 mov qword ptr [rax], 0x07\n"
	      "2016 +1000 lea ax, [rax+0x04]\n"
	      "201a +1000 mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "2023 +1000 pop rax\n"
	      "2024 -1000 lea rsp, [rsp+0x80]\n"
	      "202c =1000 xor eax, eax\n"
	      "202e =1002 lea rsp, [rsp-0x80]\n"
	      "2033 -1002 push r15\n"
	      "2035 +1002 mov r15, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "203e +1002 test dil, 0x01\n"
	      "2042 +1006 jz 0x000000000000204F\n"
	      "2048 +1008 inc eax\n"
	      "204a +100a jmp 0x0000000000002066\n"
	      "204f +100c mov qword ptr [r15], 0x08\n"
	      "2056 +100c lea r15w, [r15+0x04]\n"
	      "205b +100c mov fs:[0xFFFFFFFFFFFFFFF8], r15\n"
	      "2064 +100c dec eax\n"
	      "2066 +100e mov qword ptr [r15], 0x09\n"
	      "206d +100e lea r15w, [r15+0x04]\n"
	      "2072 +100e mov fs:[0xFFFFFFFFFFFFFFF8], r15\n"
	      "207b +100e dec edi\n"
	      "207d +1010 jnz 0x000000000000203E\n"
	      "2083 +1012 pop r15\n"
	      "2085 -1012 lea rsp, [rsp+0x80]\n"
	      "208d =1012 ret\n"
	      "208e +100c mov r15, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "2097 +100c jmp 0x000000000000204F\n"
	      "209c +100e mov r15, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "20a5 +100e jmp 0x0000000000002066\n"
	      "1000 0 -> 2000\n");
}

/* push %rbx; call f; 1: mov %eax,%ebx; call *%rax; 2: pop %rbx; ret */
static const uint8_t calls[] = { 0x53, 0xe8, 0xfa, 0x1f, 0x00, 0x00, 0x89, 0xc3, 0xff, 0xd0, 0x5b, 0xc3,
				 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };

static void test_calls_are_executed_in_place(void **state)
{
	check(calls, sizeof(calls), &in_place,
	      "2000 =1000 lea rsp, [rsp-0x80]\n"
	      "2005 -1000 push rax\n"
	      "2006 +1000 mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "200f +1000 mov qword ptr [rax], 0x07\n"
	      "2016 +1000 lea ax, [rax+0x04]\n"
	      "201a +1000 mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "2023 +1000 pop rax\n"
	      "2024 -1000 lea rsp, [rsp+0x80]\n"
	      "202c =1000 push rbx\n"
	      "202d =1001 push 0x1006\n"
	      "2032 ~1001 jmp 0x0000000000003000\n"
	      "2037 =1006 lea rsp, [rsp-0x80]\n"
	      "203c -1006 push rax\n"
	      "203d +1006 mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "2046 +1006 mov qword ptr [rax], 0x08\n"
	      "204d +1006 lea ax, [rax+0x04]\n"
	      "2051 +1006 mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "205a +1006 pop rax\n"
	      "205b -1006 lea rsp, [rsp+0x80]\n"
	      "2063 =1006 mov ebx, eax\n"
	      "2065 =1008 jmp 0x0000000000001008\n"
	      "206a =100a lea rsp, [rsp-0x80]\n"
	      "206f -100a push rax\n"
	      "2070 +100a mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "2079 +100a mov qword ptr [rax], 0x09\n"
	      "2080 +100a lea ax, [rax+0x04]\n"
	      "2084 +100a mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "208d +100a pop rax\n"
	      "208e -100a lea rsp, [rsp+0x80]\n"
	      "2096 =100a pop rbx\n"
	      "2097 =100b ret\n"
	      "1000 0 -> 2000\n"
	      "1006 100f -> 2037\n"
	      "100a 0 -> 206a\n");
}

static void test_calls_are_taken_apart(void **state)
{
	check(calls, sizeof(calls), &apart,
	      "2000 =1000 lea rsp, [rsp-0x80]\n"
	      "2005 -1000 push rax\n"
	      "2006 +1000 mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "200f +1000 mov qword ptr [rax], 0x07\n"
	      "2016 +1000 lea ax, [rax+0x04]\n"
	      "201a +1000 mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "2023 +1000 pop rax\n"
	      "2024 -1000 lea rsp, [rsp+0x80]\n"
	      "202c =1000 push rbx\n"
	      "202d =1001 push 0x1006\n"
	      "2032 ~1001 jmp 0x0000000000003000\n"
	      "2037 =1006 lea rsp, [rsp-0x80]\n"
	      "203c -1006 push rax\n"
	      "203d +1006 mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "2046 +1006 mov qword ptr [rax], 0x08\n"
	      "204d +1006 lea ax, [rax+0x04]\n"
	      "2051 +1006 mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "205a +1006 pop rax\n"
	      "205b -1006 lea rsp, [rsp+0x80]\n"
	      "2063 =1006 mov ebx, eax\n"
	      "2065 =1008 push 0x100A\n"
	      "206a ~1008 jmp rax\n"
	      "206c =100a lea rsp, [rsp-0x80]\n"
	      "2071 -100a push rax\n"
	      "2072 +100a mov rax, fs:[0xFFFFFFFFFFFFFFF8]\n"
	      "207b +100a mov qword ptr [rax], 0x09\n"
	      "2082 +100a lea ax, [rax+0x04]\n"
	      "2086 +100a mov fs:[0xFFFFFFFFFFFFFFF8], rax\n"
	      "208f +100a pop rax\n"
	      "2090 -100a lea rsp, [rsp+0x80]\n"
	      "2098 =100a pop rbx\n"
	      "2099 =100b ret\n"
	      "1000 0 -> 2000\n"
	      "1006 100f -> 2037\n"
	      "100a 0 -> 206c\n");
}

/* A gate keeps the flags where code of the function may read them: the call's return site. For a caller by hand may be
 * given them. */
static void test_gates(void **state)
{
	check(calls, sizeof(calls), &gated,
	      "2000 =1000 lea rsp, [rsp-0x80]\n"
	      "2005 -1000 push rax\n"
	      "2006 +1000 mov rax, fs:[0x0000000000000038]\n"
	      "200f +1000 mov qword ptr [rax], 0x07\n"
	      "2016 +1000 lea ax, [rax+0x04]\n"
	      "201a +1000 mov fs:[0x0000000000000038], rax\n"
	      "2023 +1000 pop rax\n"
	      "2024 -1000 lea rsp, [rsp+0x80]\n"
	      "202c =1000 push rbx\n"
	      "202d =1001 push 0x1006\n"
	      "2032 ~1001 jmp 0x0000000000003000\n"
	      "2037 =1006 lea rsp, [rsp-0x80]\n"
	      "203c -1006 push rax\n"
	      "203d +1006 mov rax, fs:[0x0000000000000038]\n"
	      "2046 +1006 mov qword ptr [rax], 0x08\n"
	      "204d +1006 lea ax, [rax+0x04]\n"
	      "2051 +1006 mov fs:[0x0000000000000038], rax\n"
	      "205a +1006 pop rax\n"
	      "205b -1006 lea rsp, [rsp+0x80]\n"
	      "2063 =1006 mov ebx, eax\n"
	      "2065 =1008 jmp 0x0000000000001008\n"
	      "206a =100a lea rsp, [rsp-0x80]\n"
	      "206f -100a push rax\n"
	      "2070 +100a mov rax, fs:[0x0000000000000038]\n"
	      "2079 +100a mov qword ptr [rax], 0x09\n"
	      "2080 +100a lea ax, [rax+0x04]\n"
	      "2084 +100a mov fs:[0x0000000000000038], rax\n"
	      "208d +100a pop rax\n"
	      "208e -100a lea rsp, [rsp+0x80]\n"
	      "2096 =100a pop rbx\n"
	      "2097 =100b ret\n"
	      "2098 =1000 lea rsp, [rsp-0x80]\n"
	      "209d ~1000 push rax\n"
	      "209e ~1000 lahf\n"
	      "209f ~1000 seto al\n"
	      "20a2 ~1000 cmp dword ptr fs:[0x000000000000003C], 0x45\n"
	      "20ae ~1000 jz 0x00000000000020B9\n"
	      "20b4 ~1000 call 0x0000000000003000\n"
	      "20b9 ~1000 add al, 0x7F\n"
	      "20bb ~1000 sahf\n"
	      "20bc ~1000 pop rax\n"
	      "20bd ~1000 lea rsp, [rsp+0x80]\n"
	      "20c5 =1000 jmp 0x0000000000002000\n"
	      "20ca =1006 lea rsp, [rsp-0x80]\n"
	      "20cf ~1006 push rax\n"
	      "20d0 ~1006 lahf\n"
	      "20d1 ~1006 seto al\n"
	      "20d4 ~1006 cmp dword ptr fs:[0x000000000000003C], 0x45\n"
	      "20e0 ~1006 jz 0x00000000000020EB\n"
	      "20e6 ~1006 call 0x0000000000003000\n"
	      "20eb ~1006 add al, 0x7F\n"
	      "20ed ~1006 sahf\n"
	      "20ee ~1006 pop rax\n"
	      "20ef ~1006 lea rsp, [rsp+0x80]\n"
	      "20f7 =1006 jmp 0x0000000000002037\n"
	      "20fc =100a lea rsp, [rsp-0x80]\n"
	      "2101 ~100a push rax\n"
	      "2102 ~100a lahf\n"
	      "2103 ~100a seto al\n"
	      "2106 ~100a cmp dword ptr fs:[0x000000000000003C], 0x45\n"
	      "2112 ~100a jz 0x000000000000211D\n"
	      "2118 ~100a call 0x0000000000003000\n"
	      "211d ~100a add al, 0x7F\n"
	      "211f ~100a sahf\n"
	      "2120 ~100a pop rax\n"
	      "2121 ~100a lea rsp, [rsp+0x80]\n"
	      "2129 =100a jmp 0x000000000000206A\n"
	      "1000 0 -> 2098\n"
	      "1006 100f -> 20ca\n"
	      "100a 0 -> 20fc\n");
}

static void test_what_gates_call(void **state)
{
	const struct kymo_clone_map none = { 0 };
	uint8_t code[KYMO_CLONE_SLOW_SIZE];
	char found[4096];
	int end = kymo_clone_emit_slow(&gated, 0x2d0, code, sizeof(code));

	assert_true(end > 0);
	assert_int_equal(kymo_clone_emit_slow(&gated, 0x2d0, code, (size_t)end - 1), -28);
	(void)kymo_clone_emit_slow(&gated, 0x2d0, code, sizeof(code));
	write_code(code, end, &none, found, sizeof(found));
	compare(found, "2000 ~0 push rax\n"
		       "2001 ~0 push rcx\n"
		       "2002 ~0 push rdx\n"
		       "2003 ~0 push rsi\n"
		       "2004 ~0 mov rdx, 0x4500000000\n"
		       "200e ~0 mov eax, [rdx]\n"
		       "2010 ~0 cmp eax, [rdx+0x04]\n"
		       "2013 ~0 jnb 0x0000000000002062\n"
		       "2019 ~0 mov eax, 0x01\n"
		       "201e ~0 lock xadd [rdx], eax\n"
		       "2022 ~0 cmp eax, [rdx+0x04]\n"
		       "2025 ~0 jnb 0x0000000000002062\n"
		       "202b ~0 mov ecx, eax\n"
		       "202d ~0 shl rcx, 0x04\n"
		       "2031 ~0 mov rsi, fs:[0x0000000000000000]\n"
		       "203a ~0 mov [rdx+rcx*1+0x1000], rsi\n"
		       "2042 ~0 mov esi, fs:[0x00000000000002D0]\n"
		       "204a ~0 mov [rdx+rcx*1+0x1008], esi\n"
		       "2051 ~0 shl rax, 0x11\n"
		       "2055 ~0 lea rax, [rdx+rax*1+0x60000]\n"
		       "205d ~0 jmp 0x000000000000206D\n"
		       "2062 ~0 lock inc [rdx+0x08]\n"
		       "2066 ~0 lea rax, [rdx+0x40000]\n"
		       "206d ~0 mov fs:[0x0000000000000038], rax\n"
		       "2076 ~0 pop rsi\n"
		       "2077 ~0 pop rdx\n"
		       "2078 ~0 pop rcx\n"
		       "2079 ~0 pop rax\n"
		       "207a ~0 ret\n");
}

/* call f; the instruction; mov %rax,(%rdi); ret. What may leave rax alone leaves it what f has returned. */
static void test_registers_that_may_keep_their_value(void **state)
{
	static const struct {
		uint8_t bytes[5];
		size_t size;
		bool is_free;
	} insns[] = {
		{ { 0x48, 0x89, 0xc8 }, 3, true },              /* mov %rcx,%rax */
		{ { 0x0f, 0xbc, 0xc1 }, 3, false },             /* bsf %ecx,%eax */
		{ { 0x48, 0x0f, 0xbd, 0xc1 }, 4, false },       /* bsr %rcx,%rax */
		{ { 0xf3, 0x48, 0x0f, 0xbc, 0xc1 }, 5, false }, /* tzcnt %rcx,%rax */
		{ { 0xf3, 0x0f, 0xbd, 0xc1 }, 4, false },       /* lzcnt %ecx,%eax */
		{ { 0xf3, 0x48, 0x0f, 0x1e, 0xc8 }, 5, false }, /* rdsspq %rax */
		{ { 0xf3, 0x0f, 0x1e, 0xc8 }, 4, false },       /* rdsspd %eax */
		{ { 0x48, 0x0f, 0x44, 0xc1 }, 4, false },       /* cmove %rcx,%rax */
		{ { 0xf3, 0x48, 0xad }, 3, false },             /* rep lods (%rsi),%rax */
		{ { 0x0f, 0xb1, 0x0f }, 3, false },             /* cmpxchg %ecx,(%rdi) */
	};

	for (size_t i = 0; i < sizeof(insns) / sizeof(insns[0]); i++) {
		uint8_t bytes[32] = { 0xe8, 0xfb, 0x1f, 0x00, 0x00 };
		static const uint8_t end[] = { 0x48, 0x89, 0x07, 0xc3 };
		char found[8192];

		memcpy(bytes + 5, insns[i].bytes, insns[i].size);
		memcpy(bytes + 5 + insns[i].size, end, sizeof(end));
		memset(bytes + 5 + insns[i].size + sizeof(end), 0x90, sizeof(bytes) - 5 - insns[i].size - sizeof(end));
		write_clone(bytes, sizeof(bytes), &gated, found, sizeof(found));
		assert_int_equal(strstr(found, "=1005 mov rax, fs:") != NULL, insns[i].is_free);
	}
}

/* mov $number,%eax; syscall; ret. The last one has no number. */
static void test_what_makes_a_thread_is_refused(void **state)
{
	static const struct {
		uint8_t bytes[5];
		const char *reason; /* or NULL */
	} calls_of[] = {
		{ { 0xb8, 39, 0, 0, 0 }, NULL }, /* getpid */
		{ { 0xb8, 56, 0, 0, 0 },
		  "the system call at 0x1005 makes a thread, which would go on in the clone without a ring" },
		{ { 0xb8, 0xb3, 1, 0, 0 }, /* clone3 */
		  "the system call at 0x1005 makes a thread, which would go on in the clone without a ring" },
		{ { 0x48, 0x89, 0xf8, 0x66, 0x90 }, /* mov %rdi,%rax; xchg %ax,%ax */
		  "the system call at 0x1005 may make a thread, which would go on in the clone without a ring" },
	};

	for (size_t i = 0; i < sizeof(calls_of) / sizeof(calls_of[0]); i++) {
		uint8_t bytes[16] = { [5] = 0x0f, 0x05, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };
		struct kymo_refusal refusal = { .reason = "" };
		struct kymo_clone *clone = NULL;
		struct kymo_entry_map *map;
		struct alone alone;

		memcpy(bytes, calls_of[i].bytes, sizeof(calls_of[i].bytes));
		alone_init(&alone, TEXT, bytes, sizeof(bytes), (struct kymo_extent){ TEXT, TEXT + sizeof(bytes) },
			   TEXT);
		assert_int_equal(kymo_entry_map_create(&alone.code, &map), 0);
		assert_int_equal(kymo_clone_create(&alone.code, map, TEXT, &clone, &refusal),
				 calls_of[i].reason ? -EPERM : 0);
		if (calls_of[i].reason)
			assert_string_equal(refusal.reason, calls_of[i].reason);
		kymo_clone_destroy(clone);
		kymo_entry_map_destroy(map);
	}
}

/* push %rbx; call f; 1: mov %eax,%ebx; add $1,%ebx; pop %rbx; ret. Wherever it lies, what is written at once is within
 * one page: a write may be cut short between two. */
static void test_what_is_written_lies_in_one_page(void **state)
{
	static const uint8_t bytes[] = { 0x53, 0xe8, 0xfa, 0x1f, 0x00, 0x00, 0x89, 0xc3, 0x83, 0xc3, 0x01, 0x5b, 0xc3,
					 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };
	size_t n_islands = 0, n_uncaught = 0;

	for (uint64_t start = 0x1fe0; start < 0x2001; start++) {
		const struct kymo_catch *catches;
		struct kymo_refusal refusal = { .reason = "" };
		struct kymo_entry_map *map;
		struct kymo_clone *clone;
		struct alone alone;
		size_t n;
		int err;

		alone_init(&alone, start, bytes, sizeof(bytes), (struct kymo_extent){ start, start + sizeof(bytes) },
			   start);
		assert_int_equal(kymo_entry_map_create(&alone.code, &map), 0);
		err = kymo_clone_create(&alone.code, map, start, &clone, &refusal);
		/* A function can't do without what is written at its start. */
		assert_int_equal(err, start == 0x1fff ? -EPERM : 0);
		if (err) {
			kymo_entry_map_destroy(map);
			assert_string_equal(refusal.reason,
					    "no room for a jump at 0x1fff, where the function is entered");
			continue;
		}
		catches = kymo_clone_catches(clone, &n);
		for (size_t i = 0; i < n; i++) {
			uint64_t jump = catches[i].island ? catches[i].island : catches[i].vaddr;

			assert_int_equal(jump / 4096, (jump + KYMO_JUMP_SIZE - 1) / 4096);
			assert_int_equal(catches[i].vaddr / 4096, (catches[i].vaddr + 1) / 4096);
			n_islands += catches[i].island != 0;
		}
		n_uncaught += kymo_clone_n_uncaught(clone);
		kymo_clone_destroy(clone);
		kymo_entry_map_destroy(map);
	}
	assert_int_equal(n_uncaught, 1);
	assert_true(n_islands >= 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_loop_holds_the_position),
		cmocka_unit_test(test_a_loop_checks_the_position),
		cmocka_unit_test(test_a_loop_has_a_register_of_its_own),
		cmocka_unit_test(test_what_follows_both_sides_is_not_recorded),
		cmocka_unit_test(test_calls_are_executed_in_place),
		cmocka_unit_test(test_calls_are_taken_apart),
		cmocka_unit_test(test_gates),
		cmocka_unit_test(test_what_gates_call),
		cmocka_unit_test(test_registers_that_may_keep_their_value),
		cmocka_unit_test(test_what_makes_a_thread_is_refused),
		cmocka_unit_test(test_what_is_written_lies_in_one_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
