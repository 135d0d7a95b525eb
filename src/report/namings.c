#include "report/namings.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "report/text.h"
#include "sym/demangle.h"

/* As C writes it. */
static char *character_label(unsigned char c)
{
	static const char from[] = "\a\b\t\n\v\f\r\\'", to[] = "abtnvfr\\'";
	const char *known = c ? strchr(from, c) : NULL;
	char *text;
	int n;

	if (known)
		n = asprintf(&text, "'\\%c'", to[known - from]);
	else if (c >= ' ' && c < 0x7f)
		n = asprintf(&text, "'%c'", c);
	else
		n = c ? asprintf(&text, "'\\x%02x'", c) : asprintf(&text, "'\\0'");
	return n < 0 ? NULL : text;
}

char *kymo_naming_label(const struct kymo_naming *naming, uint64_t value, bool unicode)
{
	kymo_cleanup_free char *text = NULL;

	if (naming && naming->is_character)
		return character_label((unsigned char)value);
	text = kymo_naming_text(naming, (int64_t)value);
	return text ? kymo_text_escape(text, unicode) : NULL;
}

bool kymo_naming_write(FILE *out, const struct kymo_naming *naming, uint64_t value, bool unicode)
{
	kymo_cleanup_free char *label = naming ? kymo_naming_label(naming, value, unicode) : NULL;

	if (label)
		fputs(label, out);
	return label;
}

bool kymo_naming_write_json(FILE *out, const char *before, const struct kymo_naming *naming, uint64_t value)
{
	kymo_cleanup_free char *text = kymo_naming_text(naming, (int64_t)value);

	if (!text)
		return false;
	fputs(before, out);
	kymo_json_string(out, text);
	return true;
}

char *kymo_naming_of_row(const struct kymo_ctf_record *record, uint32_t i)
{
	const struct kymo_ctf_field *field = &record->event->fields[i];

	if (record->event->kind != KYMO_CTF_AGGREGATION || field->type != KYMO_TYPE_STRING ||
	    (strcmp(field->name, "func") != 0 && strcmp(field->name, "probe") != 0))
		return NULL;
	return kymo_shown(kymo_ctf_string(record, i));
}
