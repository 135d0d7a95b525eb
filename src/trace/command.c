#include "trace/command.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/utf8.h"

#define COMMAND_MAX 4096 /* bytes of a command that are kept */
#define COMMAND_MORE "…"

/* Cut long ones, as each look at the trace needs them in memory; between characters of UTF-8. */
static void cut(char *text)
{
	if (strnlen(text, COMMAND_MAX + 1) <= COMMAND_MAX)
		return;
	strcpy(text + kymo_utf8_cut(text, COMMAND_MAX - strlen(COMMAND_MORE)), COMMAND_MORE);
}

char *kymo_command_join(char *const *argv)
{
	size_t size = 0;
	char *text = calloc(1, COMMAND_MAX + 2);

	for (int i = 0; text && argv[i] && size <= COMMAND_MAX; i++)
		size += (size_t)snprintf(text + size, COMMAND_MAX + 2 - size, "%s%s", i ? " " : "", argv[i]);
	if (text)
		cut(text);
	return text;
}

char *kymo_command_of(pid_t pid)
{
	char name[64], *text;
	size_t size;

	snprintf(name, sizeof(name), "/proc/%d/cmdline", pid);
	if (kymo_read_file(AT_FDCWD, name, 1 << 20, &text, &size))
		return strdup("");
	for (size_t i = 0; i + 1 < size; i++)
		if (!text[i])
			text[i] = ' ';
	/* Titles that a program writes over its words are padded with blanks or NULs. */
	for (size_t end = strlen(text); end && text[end - 1] == ' '; end--)
		text[end - 1] = '\0';
	cut(text);
	return text;
}
