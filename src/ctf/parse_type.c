#include "ctf/parse_type.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctf/tsdl.h"

/* The type at the token, which stays there. */
static bool see_type(struct parser *p, enum kymo_type *ret)
{
	int type = -1;

	if (p->now.kind == TOKEN_NAME && p->now.size < 8)
		type = kymo_type_parse_any(p->now.text, (uint32_t)p->now.size);
	if (type < 0 || type == KYMO_TYPE_BYTES || (kymo_type_is_real((enum kymo_type)type) && !p->has_real[type]))
		return kymo_parser_fail_expected(p, "type", 4);
	*ret = (enum kymo_type)type;
	return true;
}

/* "integer { size = 3; align = 1; signed = false; byte_order = le; base = 10; }", or of characters, up to the last
 * token. */
static bool parse_integer(struct parser *p, bool allows_bits, struct parsed_type *ret)
{
	bool is_signed, is_character;
	uint64_t size;

	if (!kymo_parser_expect(p, "integer { size =") || !kymo_parser_take_limited_number(p, 64, &size) ||
	    !kymo_parser_expect(p, "; align ="))
		return false;
	is_character = size == 8 && kymo_parser_at_mark(p, "8");
	if (!size || (!is_character && !allows_bits))
		return kymo_parser_fail_expected(p, "8", 1);
	if (!kymo_parser_expect(p, is_character ? "8; signed =" : "1; signed ="))
		return false;
	is_signed = kymo_parser_at_mark(p, "true");
	if (!kymo_parser_expect(p, is_signed ? "true" : "false") || !kymo_parser_expect(p, "; byte_order = le;") ||
	    (is_character && !kymo_parser_expect(p, "encoding = UTF8;")) || !kymo_parser_expect(p, "base = 10;"))
		return false;
	if (is_character) {
		ret->type = is_signed ? KYMO_TYPE_S8 : KYMO_TYPE_U8;
		ret->naming = kymo_naming_characters();
	} else {
		ret->type = is_signed ? KYMO_TYPE_S64 : KYMO_TYPE_U64;
		ret->n_bits = (unsigned int)size;
	}
	return kymo_parser_at_mark(p, "}") || kymo_parser_fail_expected(p, "}", 1);
}

/* "NAME" = VALUE */
static bool parse_value_name(struct parser *p, enum kymo_type type, struct kymo_naming *naming)
{
	kymo_cleanup_free char *name = NULL;
	const unsigned int line = p->now.line;
	bool is_negative;
	uint64_t value;
	int err;

	if (!kymo_parser_take_string(p, &name) || !kymo_parser_expect(p, "="))
		return false;
	is_negative = kymo_parser_at_mark(p, "-");
	if (is_negative && (!kymo_type_is_signed(type) || !kymo_parser_advance(p)))
		return p->error ? false : kymo_parser_fail_expected(p, "number", 6);
	if (!kymo_parser_take_limited_number(p, is_negative ? (uint64_t)INT64_MAX + 1 : UINT64_MAX, &value))
		return false;
	err = kymo_naming_add(naming, name, strlen(name), (int64_t)(is_negative ? 0 - value : value));
	if (err == -ENOMEM)
		return kymo_parser_no_memory(p);
	return !err ||
	       kymo_parser_fail_at(p, line, "an enumeration has an empty name, or more than %d", KYMO_NAMING_NAMES_MAX);
}

/* Of a bit-field, or of a type. */
static bool parse_base(struct parser *p, bool allows_bits, struct parsed_type *ret)
{
	if (!allows_bits || !kymo_parser_at_mark(p, "integer")) {
		if (!see_type(p, &ret->type))
			return false;
		return kymo_type_is_integer(ret->type) || kymo_parser_fail_expected(p, "integer", 7);
	}
	if (!parse_integer(p, true, ret))
		return false;
	return ret->n_bits || kymo_parser_fail_expected(p, "1", 1);
}

/* All of it but its last token. */
static bool parse_enumeration(struct parser *p, bool allows_bits, struct parsed_type *ret)
{
	if (!kymo_parser_expect(p, "enum :") || !parse_base(p, allows_bits, ret))
		return false;
	ret->naming = kymo_naming_create();
	if (!ret->naming)
		return kymo_parser_no_memory(p);
	if (!kymo_parser_advance(p) || !kymo_parser_expect(p, "{"))
		return false;
	while (parse_value_name(p, ret->type, ret->naming))
		if (!kymo_parser_at_mark(p, ","))
			return kymo_parser_at_mark(p, "}") || kymo_parser_fail_expected(p, "}", 1);
		else if (!kymo_parser_advance(p))
			return false;
	return false;
}

bool kymo_parse_type(struct parser *p, bool is_of_structure, struct parsed_type *ret)
{
	*ret = (struct parsed_type){ .naming = NULL };
	if (kymo_parser_at_mark(p, "enum"))
		return parse_enumeration(p, is_of_structure, ret);
	if (kymo_parser_at_mark(p, "integer"))
		return parse_integer(p, is_of_structure, ret);
	return see_type(p, &ret->type);
}
