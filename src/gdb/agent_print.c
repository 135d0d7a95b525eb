#include "gdb/agent_print.h"

#include <stdio.h>
#include <string.h>

#include "base/page.h"

enum {
	WIDTH_MAX = 1000,
	STRING_MAX = 4096,
	STRING_PART = 256, /* that is read at once */
	DIGITS_MAX = 24,   /* of 64 bits, in octal */
};

/* A conversion: "%-08.3lx". */
struct conversion {
	bool is_left, has_plus, has_space, has_prefix, has_zeros, has_precision;
	unsigned int width, precision, size; /* `size` in bytes, of an integer */
	char type;
};

struct source {
	const char *at, *end;
};

static bool take(struct source *source, char c)
{
	if (source->at == source->end || *source->at != c)
		return false;
	source->at++;
	return true;
}

static bool take_number(struct source *source, unsigned int *ret)
{
	unsigned int value = 0;

	while (source->at < source->end && *source->at >= '0' && *source->at <= '9') {
		value = value * 10 + (unsigned int)(*source->at++ - '0');
		if (value > WIDTH_MAX)
			return false;
	}
	*ret = value;
	return true;
}

static void take_flags(struct source *source, struct conversion *ret)
{
	for (;;) {
		if (take(source, '-'))
			ret->is_left = true;
		else if (take(source, '+'))
			ret->has_plus = true;
		else if (take(source, ' '))
			ret->has_space = true;
		else if (take(source, '#'))
			ret->has_prefix = true;
		else if (take(source, '0'))
			ret->has_zeros = true;
		else
			return;
	}
}

static unsigned int take_size(struct source *source)
{
	if (take(source, 'h'))
		return take(source, 'h') ? 1 : 2;
	if (take(source, 'l')) {
		take(source, 'l');
		return 8;
	}
	return take(source, 'z') || take(source, 'j') || take(source, 't') ? 8 : 4;
}

static bool take_conversion(struct source *source, struct conversion *ret)
{
	*ret = (struct conversion){ .size = 4 };
	take_flags(source, ret);
	if (!take_number(source, &ret->width))
		return false;
	ret->has_precision = take(source, '.');
	if (ret->has_precision && !take_number(source, &ret->precision))
		return false;
	ret->size = take_size(source);
	if (source->at == source->end || !*source->at || !strchr("diuoxXcsp", *source->at))
		return false;
	ret->type = *source->at++;
	return ret->size == 4 || (ret->type != 'c' && ret->type != 's'); /* no wide characters */
}

/* ---- writing --------------------------------------------------------------------------------- */

static void fill(struct gdb_text *out, char c, size_t n)
{
	while (n--)
		gdb_text_bytes(out, &c, 1);
}

static void put_padded(struct gdb_text *out, const struct conversion *conversion, const char *bytes, size_t n)
{
	const size_t n_fill = conversion->width > n ? conversion->width - n : 0;

	if (!conversion->is_left)
		fill(out, ' ', n_fill);
	gdb_text_bytes(out, bytes, n);
	if (conversion->is_left)
		fill(out, ' ', n_fill);
}

static uint64_t cut(uint64_t value, unsigned int size, bool is_signed)
{
	const unsigned int spare = 64 - 8 * size;

	value <<= spare;
	return is_signed ? (uint64_t)((int64_t)value >> spare) : value >> spare;
}

static size_t digits_of(uint64_t value, char type, char ret[DIGITS_MAX])
{
	const int n = type == 'o'   ? snprintf(ret, DIGITS_MAX, "%lo", (unsigned long)value)
		      : type == 'x' ? snprintf(ret, DIGITS_MAX, "%lx", (unsigned long)value)
		      : type == 'X' ? snprintf(ret, DIGITS_MAX, "%lX", (unsigned long)value)
				    : snprintf(ret, DIGITS_MAX, "%lu", (unsigned long)value);

	return (size_t)n;
}

static const char *prefix_of(const struct conversion *conversion, bool is_signed, bool is_negative, uint64_t value)
{
	if (is_signed)
		return is_negative ? "-" : conversion->has_plus ? "+" : conversion->has_space ? " " : "";
	if (!conversion->has_prefix || !value || conversion->type == 'u')
		return "";
	return conversion->type == 'x' ? "0x" : conversion->type == 'X' ? "0X" : "0";
}

static bool is_without_digits(const struct conversion *conversion, uint64_t value)
{
	return !value && conversion->has_precision && !conversion->precision &&
	       !(conversion->type == 'o' && conversion->has_prefix);
}

/* As printf has it: a precision is a least number of digits, and the flag 0 has no meaning then. */
static void put_integer(struct gdb_text *out, const struct conversion *conversion, uint64_t value)
{
	const bool is_signed = conversion->type == 'd' || conversion->type == 'i';
	char digits[DIGITS_MAX];
	const char *prefix;
	size_t n, n_zeros = 0, n_all;

	value = cut(value, conversion->size, is_signed);
	prefix = prefix_of(conversion, is_signed, (int64_t)value < 0, value);
	if (is_signed && (int64_t)value < 0)
		value = -value;
	n = is_without_digits(conversion, value) ? 0 : digits_of(value, conversion->type, digits);
	if (conversion->has_precision && conversion->precision > n)
		n_zeros = conversion->precision - n;
	if (conversion->type == 'o' && n_zeros)
		prefix = "";
	n_all = strlen(prefix) + n_zeros + n;
	if (conversion->has_zeros && !conversion->is_left && !conversion->has_precision && conversion->width > n_all) {
		n_zeros += conversion->width - n_all;
		n_all = conversion->width;
	}
	if (!conversion->is_left && conversion->width > n_all)
		fill(out, ' ', conversion->width - n_all);
	gdb_text_put(out, prefix);
	fill(out, '0', n_zeros);
	gdb_text_bytes(out, digits, n);
	if (conversion->is_left && conversion->width > n_all)
		fill(out, ' ', conversion->width - n_all);
}

static void put_pointer(struct gdb_text *out, const struct conversion *conversion, uint64_t value)
{
	char text[DIGITS_MAX];
	const int n = value ? snprintf(text, sizeof(text), "0x%lx", (unsigned long)value)
			    : snprintf(text, sizeof(text), "(nil)");

	put_padded(out, conversion, text, (size_t)n);
}

static void put_string(struct gdb_text *out, const struct conversion *conversion, uint64_t address,
		       const struct gdb_agent_target *memory)
{
	const size_t most =
		conversion->has_precision && conversion->precision < STRING_MAX ? conversion->precision : STRING_MAX;
	char bytes[STRING_MAX];
	size_t n = 0;

	if (!address) {
		put_padded(out, conversion, "(null)", 6);
		return;
	}
	while (n < most) {
		const size_t wanted = most - n < STRING_PART ? most - n : STRING_PART,
			     part = kymo_page_part(address + n, wanted);
		const char *end;

		if (!memory->read_memory(memory->data, address + n, &bytes[n], part))
			break;
		end = memchr(&bytes[n], 0, part);
		if (end) {
			put_padded(out, conversion, bytes, (size_t)(end - bytes));
			return;
		}
		n += part;
	}
	if (n == most)
		put_padded(out, conversion, bytes, n);
	else
		put_padded(out, conversion, "(fault)", 7);
}

static void convert(struct gdb_text *out, const struct conversion *conversion, uint64_t value,
		    const struct gdb_agent_target *memory)
{
	switch (conversion->type) {
	case 's':
		put_string(out, conversion, value, memory);
		break;
	case 'c':
		put_padded(out, conversion, &(char){ (char)value }, 1);
		break;
	case 'p':
		put_pointer(out, conversion, value);
		break;
	default:
		put_integer(out, conversion, value);
		break;
	}
}

/* ---- the format ------------------------------------------------------------------------------ */

static bool take_octal(struct source *source, char *ret)
{
	unsigned int value = 0, n = 0;

	while (n < 3 && source->at < source->end && *source->at >= '0' && *source->at <= '7') {
		value = value * 8 + (unsigned int)(*source->at++ - '0');
		n++;
	}
	*ret = (char)value;
	return n != 0;
}

/* After a backslash. */
static bool take_escape(struct source *source, char *ret)
{
	static const char names[] = "\\\"abefnrtv", values[] = "\\\"\a\b\033\f\n\r\t\v";
	const char *found;

	if (take_octal(source, ret))
		return true;
	found = source->at < source->end && *source->at ? strchr(names, *source->at) : NULL;
	if (!found)
		return false;
	source->at++;
	*ret = values[found - names];
	return true;
}

/* What comes next: a character, of which is true, or a conversion. False: the format is wrong. */
static bool take_next(struct source *source, char *c_ret, bool *is_char_ret, struct conversion *conversion_ret)
{
	char c = *source->at++;

	if (c == '\\' && !take_escape(source, &c))
		return false;
	*c_ret = c;
	*is_char_ret = source->at[-1] != '%' || c != '%' || take(source, '%');
	return *is_char_ret || take_conversion(source, conversion_ret);
}

static bool print(struct source *source, const uint64_t *args, size_t n, const struct gdb_agent_target *memory,
		  struct gdb_text *out)
{
	struct conversion conversion;
	size_t i = 0;
	bool is_char;
	char c;

	while (source->at < source->end) {
		if (!take_next(source, &c, &is_char, &conversion))
			return false;
		if (is_char)
			gdb_text_bytes(out, &c, 1);
		else if (i == n)
			return false;
		else
			convert(out, &conversion, args[i++], memory);
	}
	return i == n;
}

bool gdb_agent_strings(const char *format, size_t size, size_t n, uint32_t *ret)
{
	struct source source = { format, format + size };
	struct conversion conversion;
	size_t i = 0;
	bool is_char;
	char c;

	*ret = 0;
	while (source.at < source.end) {
		if (!take_next(&source, &c, &is_char, &conversion))
			return false;
		if (is_char)
			continue;
		if (i == n || i == 32)
			return false;
		*ret |= (uint32_t)(conversion.type == 's') << i++;
	}
	return i == n;
}

bool gdb_agent_print(const char *format, size_t size, const uint64_t *args, size_t n,
		     const struct gdb_agent_target *memory, struct gdb_text *out)
{
	struct source source = { format, format + size };
	const size_t before = out->n;

	if (print(&source, args, n, memory, out))
		return true;
	if (!out->has_failed)
		out->n = before;
	return false;
}
