/* Hexadecimal digits, whatever the locale. */
#ifndef KYMO_BASE_HEX_H
#define KYMO_BASE_HEX_H

/* What the digit stands for, or -1. */
static inline int kymo_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

#endif
