#include "cli/help.h"

#include <string.h>

#include "base/cleanup.h"
#include "cli/help_texts.h"

const char *cli_help(const char *topic)
{
	for (size_t i = 0; i < kymo_countof(help_texts); i++)
		if (!strcmp(help_texts[i].name, topic))
			return help_texts[i].text;
	return NULL;
}
