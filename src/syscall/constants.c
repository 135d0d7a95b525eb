/* Constants by their names, as numbers, or both: what -X says. */
#include "syscall/constants.h"

#include <inttypes.h>

#include "syscall/call.h"
#include "syscall/decode.h"

static bool shows_numbers(const struct decode *d)
{
	return d->target->style.constants != KYMO_CONSTANTS_NAMES;
}

static bool shows_names(const struct decode *d)
{
	return d->target->style.constants != KYMO_CONSTANTS_NUMBERS;
}

static void put_number(struct decode *d, const struct names *names, uint64_t value)
{
	if (names && names->is_decimal)
		put(d, "%d", (int)value);
	else
		put(d, "%#" PRIx64, value);
}

/* "", or what goes before the names; end_names() then, if there are names. */
static void begin_names(struct decode *d, const struct names *names, uint64_t value)
{
	if (shows_numbers(d))
		put_number(d, names, value);
	if (shows_numbers(d) && shows_names(d))
		puts_(d, " /* ");
}

static void end_names(struct decode *d)
{
	if (shows_numbers(d) && shows_names(d))
		puts_(d, " */");
}

static void put_unknown(struct decode *d, const struct names *names, uint64_t value)
{
	put_number(d, names, value);
	if (shows_names(d) && *names->unknown)
		put(d, " /* %s */", names->unknown);
}

const char *name_of(const struct names *names, uint64_t value)
{
	for (size_t i = 0; i < names->n; i++)
		if (names->items[i].value == value)
			return names->items[i].text;
	return NULL;
}

static void put_known(struct decode *d, const struct names *names, const char *name, uint64_t value)
{
	begin_names(d, names, value);
	if (shows_names(d))
		puts_(d, name);
	end_names(d);
}

void put_name(struct decode *d, const struct names *names, uint64_t value)
{
	const char *name = name_of(names, value);

	if (name)
		put_known(d, names, name, value);
	else
		put_unknown(d, names, value);
}

void print_flags(struct decode *d, unsigned arg, const void *data)
{
	put_flags(d, data, (unsigned)ARG);
}

void print_flags_long(struct decode *d, unsigned arg, const void *data)
{
	put_flags(d, data, ARG);
}

void print_name(struct decode *d, unsigned arg, const void *data)
{
	put_name(d, data, (unsigned)ARG);
}

void put_constant(struct decode *d, const char *name, int64_t value)
{
	static const struct names decimal = { .is_decimal = true };

	put_known(d, &decimal, name, (uint64_t)value);
}

void put_hex_constant(struct decode *d, const char *name, uint64_t value)
{
	put_known(d, NULL, name, value);
}

bool has_any_flag(const struct names *names, uint64_t value)
{
	for (size_t i = 0; i < names->n; i++)
		if (names->items[i].value && (value & names->items[i].value) == names->items[i].value)
			return true;
	return false;
}

/* Flags that have names, and the rest as a number. */
static void put_set_flags(struct decode *d, const struct names *names, uint64_t rest, bool any)
{
	for (size_t i = 0; i < names->n && rest; i++) {
		const uint64_t flag = names->items[i].value;

		if (!flag || (rest & flag) != flag)
			continue;
		put(d, "%s%s", any ? "|" : "", names->items[i].text);
		any = true;
		rest &= ~flag;
	}
	if (!any)
		put(d, "%#" PRIx64 " /* %s */", rest, names->unknown);
	else if (rest)
		put(d, "|%#" PRIx64, rest);
}

void put_flags(struct decode *d, const struct names *names, uint64_t value)
{
	const char *zero = value ? NULL : name_of(names, 0);

	if (zero) {
		put_known(d, names, zero, value);
	} else if (!value) {
		puts_(d, "0");
	} else if (!has_any_flag(names, value)) {
		put_unknown(d, names, value);
	} else {
		begin_names(d, names, value);
		if (shows_names(d))
			put_set_flags(d, names, value, false);
		end_names(d);
	}
}

void put_flags_plainly(struct decode *d, const struct names *names, uint64_t value)
{
	put_set_flags(d, names, value, false);
}

void put_flags_after(struct decode *d, const struct names *names, const char *first, uint64_t value, uint64_t rest)
{
	begin_names(d, names, value);
	if (shows_names(d)) {
		puts_(d, first);
		if (rest)
			put_set_flags(d, names, rest, true);
	}
	end_names(d);
}

bool begin_form(struct decode *d, const void *bytes, size_t n)
{
	if (shows_numbers(d)) {
		puts_(d, "\"");
		for (size_t i = 0; i < n; i++)
			put(d, "\\x%02x", ((const unsigned char *)bytes)[i]);
		puts_(d, shows_names(d) && n ? "\" /* " : "\"");
	}
	return shows_names(d) && (n || !shows_numbers(d));
}

void end_form(struct decode *d)
{
	end_names(d);
}
