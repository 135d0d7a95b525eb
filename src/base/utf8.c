#include "base/utf8.h"

/* Whether a byte goes on with a character, which an earlier byte begins. */
static bool continues(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

int32_t kymo_utf8_decode(const char *at, size_t n, size_t *size_ret)
{
	static const int32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	const unsigned char first = (unsigned char)*at;
	const size_t size = first < 0x80             ? 1
			    : (first & 0xe0) == 0xc0 ? 2
			    : (first & 0xf0) == 0xe0 ? 3
			    : (first & 0xf8) == 0xf0 ? 4
						     : 0;
	int32_t point;

	*size_ret = 1;
	if (size < 2)
		return size ? first : -1;
	point = first & (0x7f >> size);
	for (size_t i = 1; i < size; i++) {
		if (i == n || !continues(at[i]))
			return -1;
		point = point << 6 | ((unsigned char)at[i] & 0x3f);
	}
	if (point < least[size] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
		return -1;
	*size_ret = size;
	return point;
}

bool kymo_utf8_is_hidden(int32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0xad || point == 0x61c ||
	       (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2060 && point <= 0x206f) || point == 0xfeff || (point >= 0xfff9 && point <= 0xfffb) ||
	       point >= 0xe0000;
}

size_t kymo_utf8_count(const char *text, size_t n)
{
	size_t count = 0;

	for (size_t at = 0, size; at < n; at += size, count++)
		kymo_utf8_decode(text + at, n - at, &size);
	return count;
}

size_t kymo_utf8_cut(const char *text, size_t n)
{
	while (n && continues(text[n]))
		n--;
	return n;
}

void kymo_utf8_print(FILE *out, const char *text)
{
	size_t n_shown = 0; /* bytes before `text` that are to be written as they are */

	for (size_t size; *text; text += size) {
		int32_t point = kymo_utf8_decode(text, SIZE_MAX, &size);

		if (point >= 0 && !kymo_utf8_is_hidden(point)) {
			n_shown += size;
			continue;
		}
		fwrite(text - n_shown, 1, n_shown, out);
		fputc('?', out);
		n_shown = 0;
	}
	fwrite(text - n_shown, 1, n_shown, out);
}
