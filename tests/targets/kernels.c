/*
 * Five kernels that branch a lot, and some functions of other shapes, as a library: what clones of functions are tried
 * and measured on. Each takes how much to do and returns a checksum. Nothing here calls another library.
 */
#include <stddef.h>
#include <stdint.h>

#define LENGTH 256

static uint32_t next(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

/* ---- a sort, with a comparator by a pointer ---------------------------------------------------- */

typedef int compare_t(const void *, const void *);

int kernel_compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

__attribute__((noinline)) static void quick(uint32_t *items, long n, compare_t *compare)
{
	while (n > 1) {
		uint32_t pivot = items[n / 2], swap;
		long i = 0, k = n - 1;

		while (i <= k) {
			while (compare(&items[i], &pivot) < 0)
				i++;
			while (compare(&items[k], &pivot) > 0)
				k--;
			if (i > k)
				break;
			swap = items[i];
			items[i++] = items[k];
			items[k--] = swap;
		}
		quick(items, k + 1, compare);
		items += i;
		n -= i;
	}
}

__attribute__((noinline)) static void insert(uint32_t *items, long n)
{
	for (long i = 1; i < n; i++) {
		uint32_t item = items[i];
		long k = i;

		for (; k > 0 && items[k - 1] > item; k--)
			items[k] = items[k - 1];
		items[k] = item;
	}
}

long kernel_qsort(long n)
{
	static uint32_t items[LENGTH];
	uint32_t state = 7, sum = 0;

	for (long i = 0; i < n; i++) {
		for (int k = 0; k < LENGTH / 4; k++)
			items[k] = next(&state);
		quick(items, LENGTH / 4, kernel_compare);
		sum = sum * 31 + items[i % 64];
	}
	return sum;
}

long kernel_sort(long n)
{
	uint32_t state = 7, sum = 0, items[64];

	for (long i = 0; i < n; i++) {
		for (int k = 0; k < 64; k++)
			items[k] = next(&state);
		insert(items, 64);
		sum = sum * 31 + items[i % 64];
	}
	return sum;
}

/* ---- a bytecode interpreter -------------------------------------------------------------------- */

enum { PUSH, ADD, SUB, MUL, DUP, SWAP, LESS, JUMP_IF, DROP, AND, OVER, INC, HALT };

__attribute__((noinline)) static long interpret(const uint8_t *code, long start)
{
	long stack[16] = { start }, *top = stack;

	for (const uint8_t *pc = code;;) {
		long swap;

		switch (*pc++) {
		case PUSH:
			*++top = *pc++;
			break;
		case ADD:
			top--;
			*top += top[1];
			break;
		case SUB:
			top--;
			*top -= top[1];
			break;
		case MUL:
			top--;
			*top *= top[1];
			break;
		case DUP:
			top++;
			*top = top[-1];
			break;
		case SWAP:
			swap = *top;
			*top = top[-1];
			top[-1] = swap;
			break;
		case LESS:
			top--;
			*top = *top < top[1];
			break;
		case JUMP_IF:
			pc = *top-- ? code + *pc : pc + 1;
			break;
		case DROP:
			top--;
			break;
		case AND:
			top--;
			*top &= top[1];
			break;
		case OVER:
			top++;
			*top = top[-2];
			break;
		case INC:
			++*top;
			break;
		default:
			return *top;
		}
	}
}

long kernel_interpret(long n)
{
	/* sum = 0, i = 0; do sum = ((sum * 3 + i) & 127) - i; while (++i < 100) */
	static const uint8_t code[] = { PUSH, 0,    SWAP, PUSH, 3,    MUL, OVER, ADD,     PUSH, 127,  AND, OVER,
					SUB,  SWAP, INC,  DUP,  PUSH, 100, LESS, JUMP_IF, 2,    DROP, HALT };
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += interpret(code, i);
	return sum;
}

/* ---- a tokenizer ------------------------------------------------------------------------------- */

static int kind_of(unsigned char c)
{
	if (c == ' ' || c == '\n' || c == '\t')
		return 0;
	if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_')
		return 1;
	return c >= '0' && c <= '9' ? 2 : 3;
}

__attribute__((noinline)) static long tokenize(const char *text)
{
	long names = 0, numbers = 0, others = 0, value = 0;

	while (*text) {
		if (!kind_of((unsigned char)*text)) {
			text++;
		} else if (kind_of((unsigned char)*text) == 1) {
			while (kind_of((unsigned char)*text) == 1 || kind_of((unsigned char)*text) == 2)
				value = value * 33 + *text++;
			names++;
		} else if (kind_of((unsigned char)*text) == 2) {
			long number = 0;

			while (kind_of((unsigned char)*text) == 2)
				number = number * 10 + (*text++ - '0');
			value ^= number;
			numbers++;
		} else if (*text == '"') {
			text++;
			while (*text && *text != '"')
				text += *text == '\\' && text[1] ? 2 : 1;
			text += *text == '"';
			others++;
		} else {
			value += *text++;
			others++;
		}
	}
	return (value & 0xffffff) + names * 3 + numbers * 5 + others * 7;
}

long kernel_tokenize(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += tokenize(
			"static int f(long a, int b2) { return a == 42 ? g(\"x\\\"y\", b2 + 1000) : a * 3; }\n"
			"while (x < 0x7f && !done) { total += values[i++]; /* more */ if (total > 65536) break; }");
	return sum;
}

/* ---- recursion --------------------------------------------------------------------------------- */

__attribute__((noinline)) static long fib(long n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

long kernel_fib(long n)
{
	long sum = 0;

	for (long i = 0; i < n; i++)
		sum += fib(12);
	return sum;
}

/* ---- compression ------------------------------------------------------------------------------- */

__attribute__((noinline)) static long compress(const uint8_t *in, long size, uint8_t *out)
{
	uint16_t heads[256] = { 0 };
	uint8_t *to = out;

	for (long at = 0; at < size;) {
		uint16_t *head = &heads[(in[at] * 7 + (at + 1 < size ? in[at + 1] : 0)) & 255];
		long from = *head, length = 0;

		if (from) {
			from--;
			while (at + length < size && length < 255 && in[from + length] == in[at + length])
				length++;
		}
		*head = (uint16_t)(at + 1);
		if (length >= 4) {
			*to++ = 0;
			*to++ = (uint8_t)(at - from);
			*to++ = (uint8_t)length;
			at += length;
		} else {
			*to++ = in[at] | 1;
			at++;
		}
	}
	return to - out;
}

long kernel_lz(long n)
{
	static uint8_t in[LENGTH], out[3 * LENGTH];
	uint32_t state = 3;
	long sum = 0;

	for (long i = 0; i < LENGTH; i++)
		in[i] = (uint8_t)(next(&state) % 16 < 12 && i >= 40 ? in[i - 40] : next(&state) % 8);
	for (long i = 0; i < n; i++) {
		sum = sum * 31 + compress(in, LENGTH / 2 + i % (LENGTH / 2), out);
		sum += out[i % 100];
	}
	return sum;
}

/* ---- other shapes ------------------------------------------------------------------------------ */

/* As memchr is written. */
__attribute__((noinline)) static const char *find(const char *text, int c, size_t n)
{
	for (; n; n--, text++)
		if (*text == (char)c)
			return text;
	return NULL;
}

long kernel_find(long n)
{
	static const char text[] = "the quick brown fox jumps over the lazy dog";
	long sum = 0;

	for (long i = 0; i < n; i++) {
		const char *at = find(text, 'a' + (int)(i % 26), sizeof(text));

		sum = sum * 3 + (at ? at - text : -1);
	}
	return sum;
}

/* Vectors, floating point, red zone, a tail call by a pointer. */
static double steps[64];

__attribute__((noinline)) static double half(double x)
{
	return x / 2;
}

__attribute__((noinline)) static double apply(double (*function)(double), double x)
{
	return x < 1 ? x : function(x);
}

long kernel_floats(long n)
{
	double sum = 0;

	for (long i = 0; i < n; i++) {
		for (int k = 0; k < 64; k++)
			steps[k] = (double)k * (double)i;
		for (int k = 1; k < 64; k++)
			if (steps[k] > sum)
				sum += apply(half, steps[k] - steps[k - 1]);
	}
	return (long)sum;
}

/* Threaded code: labels as values. */
long kernel_labels(long n)
{
	static const void *const labels[] = { &&add, &&twice, &&back, &&end };
	static const uint8_t code[] = { 0, 1, 0, 2, 1, 0, 3 };
	long sum = 0;

	for (long i = 0; i < n; i++) {
		const uint8_t *pc = code;

		goto *labels[*pc];
add:
		sum += i;
		goto *labels[*++pc];
twice:
		sum = (sum * 2) & 0xffff;
		goto *labels[*++pc];
back:
		sum -= 3;
		goto *labels[*++pc];
end:;
	}
	return sum;
}
